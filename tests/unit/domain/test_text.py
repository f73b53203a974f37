"""Whatever a remote side writes, one clean line comes out."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.text import clean

BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
pieces = st.sampled_from(
    ["\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\", "\x9b31m", "\x90q\x9c", "\x00", "\r", "\n", "\t", *BIDI]
)
hostile = st.lists(st.one_of(st.text(max_size=10), pieces), max_size=12).map("".join)


@given(hostile)
def test_no_control_escape_or_bidi_survives(text: str) -> None:
    line = clean(text)
    assert all(unicodedata.category(char) not in ("Cc", "Cs", "Zl", "Zp") for char in line)
    assert not set(line) & set(BIDI)


@given(hostile, st.integers(1, 30))
def test_it_is_bounded_and_stable(text: str, limit: int) -> None:
    line = clean(text, limit)
    assert len(line) <= limit
    assert clean(line, limit) == line


@given(st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=50))
def test_ordinary_text_is_kept(text: str) -> None:
    kept = "".join(char for char in text if char not in BIDI)
    assert clean(text) == kept


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("\x1b]0;owned\x07model", "model"),
        ("a\x1b[31mred\x1b[0m", "ared"),
        ("two\nlines\tand tab", "two lines and tab"),
        ("x[/foo][@click=app.quit]", "x[/foo][@click=app.quit]"),
        ("\x9b2Jclean", "clean"),
    ],
)
def test_whole_sequences_go(text: str, line: str) -> None:
    assert clean(text) == line


def test_unterminated_title_does_not_swallow_the_line() -> None:
    assert "kept" in clean("\x1b]0;no end, but kept")
