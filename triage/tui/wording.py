"""Fitting text into terminal cells: wide characters count two, hostile ones are taken out.

Remote text is cleaned where it enters; it is cleaned again here because a terminal is the one
place where a missed byte does harm (window title, clipboard, reordered lines).
"""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

from triage.domain.text import clean

ELLIPSIS = "…"


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Exactly `width` cells: padded, or cut at the end with an ellipsis."""
    if width <= 0:
        return ""
    text = clean(text)
    length = cell_len(text)
    if length <= width:
        gap = " " * (width - length)
        return gap + text if right else text + gap
    return set_cell_size(set_cell_size(text, width - 1).rstrip() + ELLIPSIS, width)


def fit_middle(text: str, width: int) -> str:
    """Exactly `width` cells, cut in the middle: names of pods differ at both ends."""
    text = clean(text)
    if cell_len(text) <= width or width < 8:
        return fit(text, width)
    tail_width = (width - 1) // 2
    tail = ""
    for character in reversed(text):
        if cell_len(character + tail) > tail_width:
            break
        tail = character + tail
    head = set_cell_size(text, width - 1 - cell_len(tail)).rstrip()
    return fit(head + ELLIPSIS + tail, width)


def fold(text: str, width: int) -> list[str]:
    """Lines of at most `width` cells, broken at spaces; only a word longer than a line is split."""
    width = max(width, 2)  # a wide character needs two cells
    lines: list[str] = []
    line = ""
    for word in clean(text, limit=4000).split():
        for piece in chop_cells(word, width) if cell_len(word) > width else [word]:
            joined = f"{line} {piece}" if line else piece
            if cell_len(joined) <= width:
                line = joined
            else:
                lines.append(line)
                line = piece
    return [*lines, line] if line else lines


def shorten(text: str, width: int, lines: int) -> list[str]:
    """Like fold, but at most `lines` lines; what is left out shows as an ellipsis after a whole word."""
    folded = fold(text, width)
    if len(folded) <= lines:
        return folded
    kept = folded[:lines]
    last = kept[-1]
    while last and cell_len(last) > width - 2:
        last = last.rpartition(" ")[0]
    kept[-1] = f"{last} {ELLIPSIS}" if last else fit(kept[-1], width)
    return kept


def pack(pieces: Iterable[str], width: int, lines: int, *, separator: str = " · ") -> list[str]:
    """Whole pieces side by side, in order, on at most `lines` lines; says how many did not fit."""
    texts = [text for text in (clean(piece, limit=4000).strip() for piece in pieces) if text]
    for shown in range(len(texts), 0, -1):
        left_out = len(texts) - shown
        tail = [f"+{left_out} more"] if left_out else []
        packed = _rows([*texts[:shown], *tail], width, separator)
        if len(packed) <= lines:
            return packed
    if not texts:
        return []
    tail_text = f"{separator}+{len(texts) - 1} more" if len(texts) > 1 else ""
    if width - cell_len(tail_text) < 8:
        tail_text = ""  # too narrow for both: the first piece matters more
    first = shorten(texts[0], width - cell_len(tail_text), lines)
    return [*first[:-1], first[-1] + tail_text]


def _rows(texts: Sequence[str], width: int, separator: str) -> list[str]:
    rows: list[str] = []
    for text in texts:
        joined = f"{rows[-1]}{separator}{text}" if rows else text
        if rows and cell_len(joined) <= width:
            rows[-1] = joined
        else:
            rows.extend(fold(text, width))
    return rows
