"""What `triage doctor` found out, as plain data: one entry a target, built from one Situation."""

import msgspec

from triage.diagnosis.needs import Lack, all_needs, lacks
from triage.dialects.table import Switch, engine_tables, table_of
from triage.domain.quantity import Quantity
from triage.domain.reading import EngineReading, LoadedModel, ProcessList, Role
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.target import TargetState
from triage.report.document import iso


class Cost(msgspec.Struct, frozen=True):
    """Verdicts that the page does not support. lacks: any one of these quantities would mend it.

    possible: this dialect has at least one of them, so that they are missing here and not by nature.
    """

    verdicts: tuple[str, ...]
    lacks: tuple[str, ...]
    possible: bool


class Mend(msgspec.Struct, frozen=True):
    """flag: what to set at the server. instead: nothing brings these quantities; it says where else to look.

    feature: the flag turns on what would be measured; nothing is lost without it.
    """

    flag: str
    quantities: tuple[str, ...]
    instead: bool = False
    feature: bool = False


class Seen(msgspec.Struct, frozen=True):
    """One engine or front end on a target's page.

    exported: quantities by name. missing: those that its dialect knows and this page lacks (some counters and
    histograms appear with their first use). late: exported, but moved only when a request finishes.
    lingering: exported, but not rewritten while the engine is idle. loaded: models in memory, where it tells no more.
    """

    engine: str
    dialect: str
    title: str
    version: str
    model: str
    role: str
    via: str
    worker: str
    exported: tuple[str, ...]
    missing: tuple[str, ...]
    late: tuple[str, ...]
    lingering: tuple[str, ...]
    costs: tuple[Cost, ...]
    mends: tuple[Mend, ...]
    loaded: tuple[str, ...] = ()


class Check(msgspec.Struct, frozen=True):
    """One target that was read. hint: what would mend it, or ''."""

    name: str
    url: str
    state: TargetState
    says: str
    hint: str = ""
    seen: tuple[Seen, ...] = ()


class DoctorReport(msgspec.Struct, frozen=True):
    """missing: sources that are not configured, with the verdicts that costs.

    unread: sources that are configured and could not be read, and why. notes: what a source said beside its answers.
    """

    targets: tuple[Check, ...]
    missing: dict[str, tuple[str, ...]]
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def report_of(situation: Situation) -> DoctorReport:
    replicas: dict[str, list[Replica]] = {}
    for replica in situation.replicas:
        replicas.setdefault(replica.target.name, []).append(replica)
    checks = tuple(_check(status, replicas.get(status.target.name, [])) for status in situation.targets)
    # What an engine by nature does not export stands with its target.
    told = {"engine metrics"} if any(status.processes is not None for status in situation.targets) else set()
    unseen = [seen for seen in situation.not_seen if not seen.expected and seen.source not in told]
    missing = {seen.source: seen.costs for seen in unseen if seen.costs}
    unread = tuple([f"{seen.source}: {seen.why}" for seen in situation.not_seen if seen.expected])
    notes = tuple([f"{seen.source}: {seen.why}" for seen in unseen if not seen.costs])
    return DoctorReport(checks, missing, unread, notes)


def _check(status: TargetStatus, replicas: list[Replica]) -> Check:
    seen = tuple(_seen(replica.window.last, replica.model) for replica in replicas)
    if status.processes is not None:
        seen = (_pageless(status.processes),)
    if seen:
        says = "; ".join(
            " ".join(part for part in (one.engine, one.dialect, one.version, one.model) if part) for one in seen
        )
    else:
        says = str(status.failure) if status.failure else status.engine or status.state.value
    hint = "" if status.state is TargetState.OK else hint_for(says)
    return Check(status.target.name, status.target.url, status.state, says, hint, seen)


def _seen(reading: EngineReading, model: str) -> Seen:
    table = table_of(reading.engine, reading.dialect)
    exported = {*reading.values, *reading.histograms, *reading.not_applicable}
    known = set(table.metrics) if table else set()
    missed = lacks(reading)
    return Seen(
        engine=reading.engine,
        dialect=reading.dialect,
        title=table.title if table else reading.engine,
        version=reading.version,
        model=model,
        role=reading.role.value,
        via=reading.via,
        worker=reading.worker,
        exported=_names(exported),
        missing=_names(known - exported),
        late=_names(reading.late & exported),
        lingering=_names(reading.lingering & exported),
        costs=_costs(missed, known),
        mends=_mends(table.switches if table else (), exported, {q for lack in missed for q in lack.quantities}),
    )


def _pageless(told: ProcessList) -> Seen:
    """An engine that has no metrics page by nature: no flag brings one, and answers say more than it does."""
    return Seen(
        engine=told.engine,
        dialect="",
        title=f"{told.engine.capitalize()}, which has no metrics page",
        version=told.version,
        model=", ".join(model.name for model in told.models),
        role=Role.MIXED.value,
        via="",
        worker="",
        exported=(),
        missing=(),
        late=(),
        lingering=(),
        costs=(Cost(tuple(kind.value for kind in all_needs()), ("metrics page",), False),),
        mends=(Mend(_IN_ANSWERS, _names(_TOLD_BY_ANSWERS), instead=True),),
        loaded=tuple(_kept(model) for model in told.models) or ("no model",),
    )


# The durations of /api/chat and /api/generate (metrics.md 8).
_IN_ANSWERS = "a probe, or kept answers of /api/chat: their last object has load, prompt and decode time"
_TOLD_BY_ANSWERS = frozenset({Quantity.TTFT, Quantity.ITL, Quantity.QUEUE_TIME, Quantity.PREFILL_TIME, Quantity.E2E})


def _kept(model: LoadedModel) -> str:
    until = iso(model.unloads_at)
    return f"{model}, unloads {until} unless it is asked" if until else str(model)


def _costs(missed: tuple[Lack, ...], known: set[Quantity]) -> tuple[Cost, ...]:
    """Verdicts that lack the same thing together; of alternatives the ones that the dialect has."""
    together: dict[tuple[str, ...], list[Lack]] = {}
    for lack in missed:
        own = tuple(q.value for q in lack.quantities if q in known)
        together.setdefault(own or tuple(q.value for q in lack.quantities), []).append(lack)
    return tuple(
        Cost(tuple(lack.kind.value for lack in group), names, any(q in known for q in group[0].quantities))
        for names, group in together.items()
    )


def _mends(switches: tuple[Switch, ...], exported: set[Quantity], wanted: set[Quantity]) -> tuple[Mend, ...]:
    """Flags for what is missing; where nothing switches it on, only what a verdict would have needed."""
    found = []
    for switch in switches:
        absent = set(switch.quantities) - exported
        if switch.instead:
            absent &= wanted
        if absent:
            found.append(Mend(switch.flag, _names(absent), switch.instead, switch.feature))
    return tuple(found)


def _names(quantities: set[Quantity] | frozenset[Quantity]) -> tuple[str, ...]:
    """In the order of the vocabulary."""
    return tuple(quantity.value for quantity in Quantity if quantity in quantities)


def hint_for(says: str) -> str:
    """What would mend a target that does not answer as it should; '' when nothing is known."""
    for word, hint in (
        ("401", "name a credential: key_env, key_file or key_command of the target, or $TRIAGE_API_KEY"),
        ("403", "the credential is known and may not read this route"),
        ("every reader takes away", "return_perf_metrics: true (LLM args) brings /prometheus/metrics"),
        ("404", f"give the metrics URL itself, or switch the page on: {_page_switches()}"),
        ("--metrics", "restart the server with the flag it names"),
        ("refused", "nothing listens there: check host and port"),
        ("time-out", "a firewall, a wrong address or a stuck process; try a larger --timeout"),
        ("tls", "name the CA as ca of the target"),
        ("name not found", "check the host name"),
        ("a page of", "this is other software: give the engine's own metrics URL"),
        ("not metrics", "this is another page; give the engine's own metrics URL"),
        ("redirect", "give the address it redirects to"),
    ):
        if word in says:
            return hint
    return ""


def _page_switches() -> str:
    """What each engine's whole page hangs on."""
    flags = {table.engine: s.flag for table in engine_tables() for s in table.switches if not s.quantities}
    return "; ".join(f"{engine}: {flag}" for engine, flag in flags.items())
