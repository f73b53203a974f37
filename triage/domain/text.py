"""Cleaning of remote text, once, where it enters.

Escape sequences, C0/C1 controls and bidirectional overrides reach the terminal through
Textual and Rich unfiltered (window title, clipboard, reordered lines), so they are taken
out before any type of the domain is built.
"""

import re

# C0 and C1 controls, DEL, line and paragraph separators, bidi embeddings, overrides,
# isolates and marks, zero-width characters, the byte-order mark, interlinear annotations,
# tag characters, and lone surrogates (which no terminal encoding can carry).
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
# A whole escape sequence goes, not only its first byte: "\x1b]0;title\x07" must not leave "]0;title".
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]P^_X]|[\x9d\x90\x9e\x9f\x98])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC, DCS, PM, APC, SOS
    r"|\x1b[ -/]*[0-~]"
)


def clean(text: str, limit: int = 500) -> str:
    """One line of remote text that is safe to draw: no controls, no bidi, at most `limit` characters."""
    if text.isascii() and text.isprintable():
        return text if len(text) <= limit else text[: limit - 1] + "…"
    bounded = text[: 8 * limit]
    plain = _HOSTILE.sub("", _ESCAPES.sub("", bounded.replace("\t", " ").replace("\n", " ").replace("\r", " ")))
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
