"""Reasoning between tags in the content, in whatever pieces it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.streams.tags import ThinkTags
from triage.dialects.streams.tally import Tally


def split(*pieces: str) -> tuple[Tally, Tally]:
    """Tallies of reasoning and visible text; piece n comes at n seconds."""
    reasoning, visible = Tally(), Tally()
    tags = ThinkTags(reasoning, visible)
    for second, piece in enumerate(pieces):
        tags.feed(piece, float(second))
    tags.finish()
    return reasoning, visible


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("[THINK]", "[/THINK]"),
        ("<seed:think>", "</seed:think>"),
        ("◁think▷", "◁/think▷"),
        ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
        ("analysis", "assistantfinal"),
    ],
)
def test_tags(opening: str, closing: str) -> None:
    reasoning, visible = split("\n" + opening, "because", closing, "\n\n", "yes", "!")
    assert (visible.chars, visible.first_s, visible.last_s) == (4, 4.0, 5.0)
    extra = len(opening) if opening == "analysis" else 0  # without its markers the word itself looks like text
    assert reasoning.chars == len("because") + extra
    assert reasoning.last_s == 1.0


def test_a_missing_opening_is_known_by_the_closing() -> None:
    reasoning, visible = split("so ", "it is ", "four\n</th", "ink>\n\nFour", ".")
    assert reasoning.chars == len("so it is four\n")
    assert reasoning.first_s == 0.0
    assert (visible.chars, visible.first_s) == (len("Four."), 3.0)


def test_without_a_closing_everything_is_visible() -> None:
    reasoning, visible = split("a ", "b")
    assert (reasoning.chars, visible.chars, visible.first_s) == (0, 3, 0.0)


def test_an_opening_that_is_never_closed_is_reasoning_to_the_end() -> None:
    reasoning, visible = split("<thi", "nk>a", "bc")
    assert (reasoning.chars, reasoning.first_s, visible.chars) == (3, 1.0, 0)


def test_an_empty_block_is_no_reasoning() -> None:
    reasoning, visible = split("<think>", "\n\n", "</th", "ink>", "\n\nHello")
    assert (reasoning.chars, reasoning.first_s) == (0, None)
    assert (visible.chars, visible.first_s) == (5, 4.0)


def test_half_a_tag_at_the_end_is_text() -> None:
    assert split("<thi")[1].chars == 4


def test_tags_that_are_talked_about_are_text() -> None:
    assert split("The tag `</think>` ends it.")[0].chars == 0
    # An opening inside the text shows that its beginning was no reasoning (real random-weight models write this).
    reasoning, visible = split("some text <think>gh</think> more")
    assert (reasoning.chars, visible.chars) == (0, 32)


def test_after_the_reasoning_tags_are_text() -> None:
    reasoning, visible = split("<think>a</think>b</think>c")
    assert (reasoning.chars, visible.chars) == (1, len("b</think>c"))


_TEXT = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<", "think", ">", "/", "`", " ", "\n", "word", "analysis", "assistantfinal", "é"]
    ),
    max_size=25,
).map("".join)


@given(text=_TEXT, cuts=st.lists(st.integers(0, 150), max_size=10))
def test_any_splitting_gives_the_same_counts(text: str, cuts: list[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    whole, parts = split(text), split(*pieces)
    assert [tally.chars for tally in parts] == [tally.chars for tally in whole]
