"""A one-line input that takes no control characters, not even from a paste."""

from textual.widgets import Input

# Controls, escapes, bidi and zero-width characters: see triage.domain.text.
_HARMLESS = r"[^\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]*"


class LineInput(Input):
    DEFAULT_CSS = """
    LineInput, LineInput:focus { border: none; height: 1; padding: 0 1; background: $surface; }
    """

    def __init__(self, placeholder: str) -> None:
        super().__init__(placeholder=placeholder, restrict=_HARMLESS, max_length=200, compact=True)
        self.cursor_blink = False
