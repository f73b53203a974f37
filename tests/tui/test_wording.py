"""Text fits its cells exactly, whatever it is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from triage.tui.wording import fit, fit_middle, fold, pack, shorten

# Wide, combining, zero-width, bidi and control characters beside plain ones.
TEXT = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("模型가́‏‮\x1b\x9b\x07[]@ ")), max_size=80)


@given(TEXT, st.integers(0, 60), st.booleans())
def test_fit_is_exact_and_free_of_controls(text: str, width: int, right: bool) -> None:
    fitted = fit(text, width, right=right)
    assert cell_len(fitted) == width
    assert "\x1b" not in fitted
    assert "\n" not in fitted


@given(TEXT, st.integers(0, 60))
def test_fit_middle_is_exact(text: str, width: int) -> None:
    assert cell_len(fit_middle(text, width)) == width


def test_fit_middle_keeps_both_ends_of_a_pod_name() -> None:
    assert fit_middle("vllm-llama-6d5f7c9b8d-x2x7k", 18).strip() == "vllm-llam…8d-x2x7k"


@given(TEXT, st.integers(2, 60))
def test_fold_stays_inside_and_loses_nothing(text: str, width: int) -> None:
    rows = fold(text, width)
    assert all(cell_len(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == "".join(" ".join(fold(text, 10_000)).split())


def test_fold_breaks_at_spaces_only() -> None:
    assert fold("one two three", 8) == ["one two", "three"]


@given(st.lists(TEXT, max_size=6), st.integers(12, 80), st.integers(1, 3))
def test_pack_keeps_to_its_lines(pieces: list[str], width: int, lines: int) -> None:
    rows = pack(pieces, width, lines)
    assert len(rows) <= lines
    assert all(cell_len(row) <= width for row in rows)


def test_pack_says_how_many_it_left_out() -> None:
    assert pack(["alpha beta", "gamma", "delta"], 20, 1) == ["alpha beta · +2 more"]
    assert pack(["alpha", "beta"], 20, 1) == ["alpha · beta"]


@pytest.mark.parametrize("width", [10, 12, 15])
def test_shorten_ends_after_a_whole_word(width: int) -> None:
    words = "one two three four five six seven"
    rows = shorten(words, width, 2)
    assert len(rows) == 2
    assert rows[-1].endswith(" …")
    assert set(" ".join(rows).replace("…", "").split()) <= set(words.split())
