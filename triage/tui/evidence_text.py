"""All verdicts with all their evidence, as lines of text."""

from collections.abc import Iterable, Iterator

from rich.style import Style
from rich.text import Text

from triage.domain.verdict import Diagnosis, Direction, Evidence, Verdict
from triage.monitor.observation import Observation
from triage.tui import look, numbers
from triage.tui.card import kind_text, scope_pieces, share_text, window_text
from triage.tui.lines import labelled, line
from triage.tui.wording import fold, pack

_TEXT = 7  # indent of evidence text: sign, stars, gap


def evidence_lines(observation: Observation, chosen: int, width: int) -> list[Text]:
    """Every verdict, then what is ruled out and what was not seen. chosen: verdict of the card, marked."""
    diagnosis = observation.diagnosis
    lines: list[Text] = []
    for place, verdict in enumerate(diagnosis.verdicts):
        lines.extend(verdict_lines(verdict, width, marked=place == chosen and len(diagnosis.verdicts) > 1))
        lines.append(line())
    lines.extend(_ruled_out(diagnosis, width))
    lines.extend(_not_seen(diagnosis, width))
    ends = f"{window_text(observation)} · judged at {numbers.clock_time(diagnosis.at)}"
    return [*lines, *_rows([ends], width, look.DIM)]


def verdict_lines(verdict: Verdict, width: int, *, marked: bool = False) -> Iterator[Text]:
    """One verdict: head, summary, evidence for and against, confounders, next test."""
    word = (look.confidence_word(verdict), look.verdict_style(verdict))
    yield line("▸" if marked else " ", word, (f"  {kind_text(verdict)}", look.BOLD))
    yield from _rows(pack((share_text(verdict), *scope_pieces(verdict.scope)), width - 4, 4), width)
    yield from _rows([verdict.summary], width)
    for direction, sign, style in ((Direction.FOR, "+", look.NORMAL), (Direction.AGAINST, "-", look.WARN)):
        for item in verdict.evidence:
            if item.direction is direction:
                yield from _evidence(item, sign, style, width)
    yield from _listed("may mislead", verdict.confounders, width)
    yield from _listed("collect" if verdict.confidence is None else "next", [verdict.next_test], width)
    yield from _listed("runbook", [verdict.runbook or ""], width)


def verdict_text(verdict: Verdict, width: int = 100) -> str:
    """The same as plain text, for the clipboard."""
    return "\n".join(line.plain.rstrip() for line in verdict_lines(verdict, width))


def _evidence(item: Evidence, sign: str, style: Style, width: int) -> Iterator[Text]:
    for place, row in enumerate(fold(item.text, width - _TEXT)):
        mark = f"{sign}{look.strength_mark(item.strength)} " if place == 0 else " " * 5
        yield line("  ", (mark, look.LABEL), (row, style))
    for row in pack(_facts(item), width - _TEXT, 6):
        yield line((f"       {row}", look.DIM))


def _facts(item: Evidence) -> list[str]:
    facts = [item.id]
    if item.value is not None:
        bound = f" (threshold {numbers.plain(item.threshold)})" if item.threshold is not None else ""
        facts.append(f"{numbers.plain(item.value)} {item.unit}".rstrip() + bound)
    if item.n is not None:
        facts.append(f"n={item.n}")
    facts.append(item.family.value)
    if item.source:
        facts.append(item.source)
    facts.append(f"{numbers.age(item.age_s)} old" if item.age_s is not None else "age unknown")
    return facts


def _ruled_out(diagnosis: Diagnosis, width: int) -> Iterator[Text]:
    if diagnosis.ruled_out:
        yield line((" Ruled out", look.HEADING))
    for item in diagnosis.ruled_out:
        where = ", ".join(scope_pieces(item.scope))
        yield from _rows([f"{item.kind.value}{f' [{where}]' if where else ''}: {item.because}"], width)
    if diagnosis.ruled_out:
        yield line()


def _not_seen(diagnosis: Diagnosis, width: int) -> Iterator[Text]:
    if diagnosis.not_seen:
        yield line((" Not seen", look.HEADING))
    for item in diagnosis.not_seen:
        costs = f" · costs {', '.join(item.costs)}" if item.costs else ""
        yield from _rows([f"{item.source}: {item.why}{costs}"], width)
    if diagnosis.not_seen:
        yield line()


def _listed(label: str, items: Iterable[str], width: int) -> list[Text]:
    rows = [row for item in items for row in fold(item, width - 15)]
    return labelled(label, rows, 2, 12)


def _rows(texts: Iterable[str], width: int, style: Style = look.NORMAL) -> Iterator[Text]:
    for text in texts:
        for place, row in enumerate(fold(text, width - 4)):
            yield line(("  " if place == 0 else "    ") + row if style is look.NORMAL else (f"  {row}", style))
