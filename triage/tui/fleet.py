"""From an Observation to the rows of the fleet table, and how bad each row is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from statistics import median

import msgspec

from triage.domain.absence import known
from triage.domain.derived import last, per_token
from triage.domain.limits import Limits
from triage.domain.quantity import Quantity
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.target import TargetState
from triage.domain.verdict import Confidence, Diagnosis, Kind
from triage.domain.window import Window
from triage.tui import numbers
from triage.tui.cells import Cell, Cells, Column

# Peers of one model are compared from three replicas on, because of two nobody knows which is
# the odd one. Twice the median stands out; for waiting requests also five more than it, so that
# 2 against 0 is no news.
OUTLIER_PEERS = 3
OUTLIER_FACTOR = 2.0
OUTLIER_WAITING = 5

OVER = "!"  # behind a value: breaks a limit
ODD = "↑"  # behind a value: far above its peers


class Level(IntEnum):
    """How bad a row is. Coarse on purpose: rows must not jump with every reading."""

    WELL = 0
    WATCH = 1  # stale, or far above its peers
    OVER_LIMIT = 2
    GONE = 3  # dark, never seen, or without metrics
    NAMED = 4  # a likely or confirmed verdict names this replica


class FleetRow(msgspec.Struct, frozen=True):
    """key: unique, and the same from round to round. why: stands where the numbers would, when there are none.

    waiting: requests, for the order inside a level. reasons: why the level is what it is.
    about: model, engine and address, for the line below the table.
    """

    key: str
    target: str
    model: str
    name: str
    state: TargetState
    level: Level
    cells: Mapping[Column, Cell]
    waiting: float = 0.0
    why: str = ""
    about: str = ""
    reasons: tuple[str, ...] = ()


def fleet_rows(situation: Situation, diagnosis: Diagnosis) -> tuple[FleetRow, ...]:
    """One row per replica, and one per target that has none; in the situation's order."""
    statuses = {status.target.name: status for status in situation.targets}
    models_of = Counter(replica.target.name for replica in situation.replicas)
    named = _named(diagnosis)
    compared = [_compared(replica.window) for replica in situation.replicas]
    usual = _usual(situation.replicas, compared)
    rows: list[FleetRow] = []
    seen: Counter[str] = Counter()
    for replica, values in zip(situation.replicas, compared, strict=True):
        name = replica.target.name
        label = f"{name} · {replica.model}" if models_of[name] > 1 else name
        key = _key(seen, name, replica.model)
        kind = named.get(name, "")
        odd = _odd(values, usual.get(replica.model, {}))
        rows.append(_replica_row(key, label, replica, statuses.get(name), situation.limits, kind, odd))
    for status in situation.targets:
        name = status.target.name
        if name not in models_of:
            rows.append(_empty_row(_key(seen, name, ""), status, named.get(name, "")))
    return tuple(rows)


def find(situation: Situation, key: str) -> tuple[Replica | None, TargetStatus | None]:
    """What a row's key stands for in this round; (None, None) when it has gone."""
    name = key.partition("\n")[0]
    status = next((status for status in situation.targets if status.target.name == name), None)
    seen: Counter[str] = Counter()
    for replica in situation.replicas:
        if _key(seen, replica.target.name, replica.model) == key:
            return replica, status
    return None, status


def _key(seen: Counter[str], target: str, model: str) -> str:
    key = f"{target}\n{model}"
    seen[key] += 1
    return key if seen[key] == 1 else f"{key}\n{seen[key]}"


def _named(diagnosis: Diagnosis) -> dict[str, str]:
    """Replica name to the worst kind that names it."""
    named: dict[str, str] = {}
    for verdict in diagnosis.verdicts:
        sure = verdict.confidence in (Confidence.CONFIRMED, Confidence.LIKELY)
        if verdict.scope.replica and sure and verdict.kind is not Kind.HEALTHY:
            named.setdefault(verdict.scope.replica, verdict.kind.value)
    return named


def _compared(window: Window) -> dict[Column, float]:
    """The values in which outliers are looked for."""
    values = {
        Column.WAITING: last(window, Quantity.WAITING),
        Column.TTFT95: window.mean(Quantity.TTFT),
        Column.TOKEN_TIME: per_token(window),
    }
    return {column: value for column, value in values.items() if known(value)}


def _usual(replicas: Sequence[Replica], compared: Sequence[Mapping[Column, float]]) -> dict[str, dict[Column, float]]:
    """Medians by model; a quantity known on too few replicas is left out."""
    gathered: dict[str, dict[Column, list[float]]] = {}
    for replica, found in zip(replicas, compared, strict=True):
        columns = gathered.setdefault(replica.model, {})
        for column, value in found.items():
            columns.setdefault(column, []).append(value)
    return {
        model: {column: median(values) for column, values in columns.items() if len(values) >= OUTLIER_PEERS}
        for model, columns in gathered.items()
    }


def _odd(values: Mapping[Column, float], usual: Mapping[Column, float]) -> list[Column]:
    return [
        column
        for column, value in values.items()
        if column in usual
        and value > OUTLIER_FACTOR * usual[column]
        and (column is not Column.WAITING or value >= usual[column] + OUTLIER_WAITING)
    ]


def _over(window: Window, limits: Limits) -> dict[Column, str]:
    """Broken limits, in words. A quantile breaks one only when its whole bucket lies above."""
    over: dict[Column, str] = {}
    ttft = window.histograms.get(Quantity.TTFT)
    where = ttft.quantile(0.95) if ttft else None
    if where and where.low >= limits.first_visible_p95_s:
        bound = numbers.plain(limits.first_visible_p95_s)
        over[Column.TTFT95] = f"first token p95 {numbers.interval(where)} s, bound {bound} s"
    mean = per_token(window)
    if known(mean) and mean > limits.time_per_token_mean_s:
        bound = numbers.milliseconds(limits.time_per_token_mean_s)
        over[Column.TOKEN_TIME] = f"{numbers.milliseconds(mean)} ms per token, bound {bound} ms"
    return over


def _replica_row(
    key: str,
    label: str,
    replica: Replica,
    status: TargetStatus | None,
    limits: Limits,
    kind: str,
    odd: Sequence[Column],
) -> FleetRow:
    window = replica.window
    state = status.state if status else TargetState.OK
    over = _over(window, limits)
    reasons = [f"named by {kind}"] if kind else []
    if status and status.failure and state is not TargetState.OK:
        reasons.append(str(status.failure))
    reasons.extend(over.values())
    reasons.extend(f"{_HEADINGS[column]} far above its peers" for column in odd if column not in over)
    marks = {**dict.fromkeys(odd, ODD), **dict.fromkeys(over, OVER)}
    if Column.TTFT95 in marks:
        marks[Column.TTFT] = marks[Column.TTFT95]
    queue = last(window, Quantity.WAITING)
    engine = " ".join(part for part in (window.last.engine, window.last.version) if part)
    return FleetRow(
        key=key,
        target=replica.target.name,
        model=replica.model,
        name=label,
        state=state,
        level=_level(bool(kind), state, bool(over), bool(odd)),
        cells=Cells(window, replica.age_s, marks),
        waiting=queue if known(queue) else 0.0,
        about=" · ".join(part for part in (replica.model, engine, replica.target.url) if part),
        reasons=tuple(reasons),
    )


_HEADINGS = {
    Column.WAITING: "waiting",
    Column.TTFT95: "first token",
    Column.TOKEN_TIME: "time per token",
}


def _empty_row(key: str, status: TargetStatus, kind: str) -> FleetRow:
    told = status.processes
    why = str(status.failure) if status.failure else "; ".join(status.problems[:2]) or "no engine metrics read"
    if told is not None:
        why = str(told)
    if status.age_s is not None and status.state in (TargetState.DARK, TargetState.STALE):
        why = f"{why} · seen {numbers.age(status.age_s)} ago"
    return FleetRow(
        key=key,
        target=status.target.name,
        model=status.target.model or (told.models[0].name if told is not None and len(told.models) == 1 else ""),
        name=status.target.name,
        state=status.state,
        # An engine that has no page tells all it can: nothing is amiss.
        level=max(Level.WATCH if told is None else Level.WELL, _level(bool(kind), status.state, False, False)),
        cells={Column.AGE: Cell(numbers.age(status.age_s), status.age_s)},
        why=why,
        about=" · ".join(
            part for part in (told and f"{told.engine} {told.version}".strip(), status.target.url) if part
        ),
        reasons=(f"named by {kind}", why) if kind else (why,),
    )


def _level(named: bool, state: TargetState, over: bool, odd: bool) -> Level:
    if named:
        return Level.NAMED
    if state in (TargetState.DARK, TargetState.NEVER, TargetState.NO_METRICS):
        return Level.GONE
    if over:
        return Level.OVER_LIMIT
    return Level.WATCH if odd or state is TargetState.STALE else Level.WELL
