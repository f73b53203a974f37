"""The history of one target as braille charts, one under the other."""

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from triage.domain.quantity import Quantity
from triage.tui import look, numbers
from triage.tui.braille import plot
from triage.tui.history import Trail, rates, resample, span_text
from triage.tui.lines import line
from triage.tui.wording import fit

_ROWS = 2
_LABEL = 22

Trails = Callable[[Quantity], Trail]


def chart_lines(trails: Trails, width: int) -> list[Text]:
    """Running, waiting, KV use and output speed over the time that the feed kept; nothing without history."""
    drawn = [(name, trail, share) for name, trail, share in _charted(trails) if len(trail) > 1]
    if not drawn:
        return []
    longest = max((trail for _, trail, _ in drawn), key=lambda trail: trail[-1][0] - trail[0][0])
    covered = f"   {numbers.clock_time(longest[0][0])} to {numbers.clock_time(longest[-1][0])}"
    lines = [line((f" History of {span_text(longest)}", look.HEADING), (covered, look.DIM))]
    for name, trail, share in drawn:
        lines.extend(_chart(name, trail, width, share=share))
    return [*lines, line()]


def _charted(trails: Trails) -> Iterator[tuple[str, Trail, bool]]:
    for name, quantity in (("running", Quantity.RUNNING), ("waiting", Quantity.WAITING)):
        yield name, trails(quantity), False
    yield "kv %", [(at, value * 100) for at, value in trails(Quantity.KV_USAGE)], True
    counted = trails(Quantity.GENERATION_TOKENS_LIVE) or trails(Quantity.GENERATION_TOKENS)
    yield "tok/s", rates(counted), False


def _chart(name: str, trail: Trail, width: int, *, share: bool) -> Iterator[Text]:
    values: Sequence[float] = [value for _, value in trail]
    # Zero is the ground of every chart, and 100 the top of a share: a wiggle must not look like a cliff.
    top = 100.0 if share else max(values)
    columns = max(width - _LABEL - 2, 4)
    rows = plot(resample(trail, columns * 2), _ROWS, 0.0, top)
    labels = (f"{name:<9}{numbers.count(values[-1]):>8}", f"{'':<9}{'0–' + numbers.count(top):>8}")
    for label, style, row in zip(labels, (look.BOLD, look.DIM), rows, strict=True):
        yield line((f"   {fit(label, _LABEL - 3)}", style), (row, look.GOOD))
