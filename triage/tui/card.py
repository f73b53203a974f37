"""The verdict card as lines of text: what is wrong, how sure, why, and what to do next."""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from triage.domain.text import clean
from triage.domain.verdict import Direction, Evidence, Kind, RuledOut, Scope, Verdict
from triage.monitor.observation import Observation
from triage.tui import look, numbers
from triage.tui.arrange import WIDE
from triage.tui.lines import labelled, line
from triage.tui.wording import pack, shorten

_LABEL = 11  # cells for the label of a line, margins included


def card_lines(observation: Observation, index: int, width: int, height: int, *, probe_on: bool) -> list[Text]:
    """The card of one verdict in at most `height` lines; the evidence view has the rest.

    A healthy or short verdict takes fewer lines. When there is not enough room the lines that a
    reader misses least go first: other verdicts, what speaks against, what is ruled out.
    """
    diagnosis = observation.diagnosis
    verdict = diagnosis.verdicts[index]
    room = max(width - _LABEL - 1, 10)
    lines = 1 if width >= WIDE else 2
    blocks: list[tuple[int, list[Text]]] = [
        (0, [_head(observation, verdict, index, width)]),
        (1, _plain(shorten(verdict.summary, width - 2, 2))),
        (3, _labelled("where", pack([*scope_pieces(verdict.scope), *_assumed(observation)], room, 1))),
        (1, _labelled("for", pack(_texts(verdict, Direction.FOR), room, lines))),
        (5, _labelled("against", pack(_texts(verdict, Direction.AGAINST), room, 1), look.WARN)),
        (4, _labelled("out", pack(map(_ruled_out, diagnosis.ruled_out), room, 1))),
        (2, _next(verdict, room, probe_on=probe_on)),
        (3, _labelled("unseen", _unseen(observation, verdict, room))),
        (6, _labelled("also", pack(_others(diagnosis.verdicts, index), room, 1))),
    ]
    while sum(len(block) for _, block in blocks) > height and len(blocks) > 1:
        blocks.remove(max(blocks, key=lambda block: block[0]))
    return [line for _, block in blocks for line in block]


def kind_text(verdict: Verdict) -> str:
    """queueing (sequence-limit)."""
    return f"{verdict.kind.value} ({clean(verdict.detail)})" if verdict.detail else verdict.kind.value


def share_text(verdict: Verdict, *, of: bool = True) -> str:
    """61 % (53–68) of end-to-end time, or nothing where time is not what is lost."""
    if verdict.share is None:
        return ""
    return f"{numbers.share(verdict.share)} of {clean(verdict.share.of)}" if of else numbers.share(verdict.share)


def scope_pieces(scope: Scope) -> list[str]:
    """model llama-70b, replica vllm-0: only what the verdict is limited to."""
    named = (("model", scope.model), ("replica", scope.replica), ("hop", scope.hop), ("node", scope.node))
    return [f"{word} {value}" for word, value in named if value]


def window_text(observation: Observation) -> str:
    """30s window, interval assumed."""
    return ", ".join([f"{numbers.age(observation.diagnosis.window_s)} window", *_assumed(observation)])


def _assumed(observation: Observation) -> list[str]:
    """Says so when the time between readings is not in the evidence."""
    return ["interval assumed"] if any(replica.window.assumed for replica in observation.situation.replicas) else []


def _head(observation: Observation, verdict: Verdict, index: int, width: int) -> Text:
    total = len(observation.diagnosis.verdicts)
    ends = [f"{index + 1} of {total} [ ]"] if total > 1 else []
    ends.insert(0, f"{numbers.age(observation.diagnosis.window_s)} window")
    full, brief = share_text(verdict), share_text(verdict, of=False)
    # From the fullest wording to the shortest, the first that fits.
    wordings: list[tuple[str, list[str]]] = [
        (full, ends),
        (full, ends[1:]),
        (brief, ends),
        (brief, ends[1:]),
        (brief, []),
        ("", []),
    ]
    for share, tail in wordings:
        word = (look.confidence_word(verdict), look.verdict_style(verdict))
        head = line(" ", word, (f"  {kind_text(verdict)}", look.BOLD), f"  {share}" if share else "")
        right = "  ".join(tail)
        gap = width - head.cell_len - len(right) - 1
        if gap >= (2 if right else 0):
            head.append(" " * gap)
            head.append(right, look.DIM)
            return head
    head.truncate(width, overflow="ellipsis")
    return head


def _labelled(label: str, rows: Iterable[str], style: Style = look.NORMAL) -> list[Text]:
    return labelled(label, rows, 3, _LABEL - 3, style)


def _plain(rows: Iterable[str]) -> list[Text]:
    return [line(f" {row}") for row in rows]


def _texts(verdict: Verdict, direction: Direction) -> list[str]:
    """Strongest first; equal ones stay in the diagnosis's order."""
    items: list[Evidence] = [item for item in verdict.evidence if item.direction is direction]
    return [item.text for item in sorted(items, key=lambda item: -item.strength)]


def _ruled_out(item: RuledOut) -> str:
    return f"{item.kind.value} ({item.because})"


def _next(verdict: Verdict, room: int, *, probe_on: bool) -> list[Text]:
    label = "collect" if verdict.kind is Kind.INSUFFICIENT_DATA else "next"
    keys = ["w sends the probe"] if probe_on else []
    keys += [f"r runbook: {clean(verdict.runbook)}"] if verdict.runbook else []
    hint = " · ".join(keys)
    rows = shorten(verdict.next_test, room, 2)
    if rows and hint and cell_len(rows[-1]) + cell_len(hint) + 3 <= room:
        rows[-1] = f"{rows[-1]}   {hint}"
    elif hint:
        rows.append(shorten(hint, room, 1)[0])
    return _labelled(label, rows)


def _unseen(observation: Observation, verdict: Verdict, room: int) -> list[str]:
    """What could not be looked at, where that is the point: without enough data, and on a wide screen."""
    if verdict.kind is not Kind.INSUFFICIENT_DATA and room < WIDE - _LABEL - 1:
        return []
    return pack((f"{item.source} ({item.why})" for item in observation.diagnosis.not_seen), room, 2)


def _others(verdicts: Sequence[Verdict], index: int) -> list[str]:
    pieces = []
    for place, verdict in enumerate(verdicts):
        if place != index:
            share = share_text(verdict, of=False)
            word = look.confidence_word(verdict).lower()
            pieces.append(" ".join(part for part in (word, kind_text(verdict), share) if part))
    return pieces
