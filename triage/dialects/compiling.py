"""Table and page to plans: done once for each shape of a page."""

from collections.abc import Iterable

from triage.dialects.finding import Found, every_spelling
from triage.dialects.plan import EnginePlan
from triage.dialects.recognition import own_series, recognised, version_of
from triage.dialects.series import PageIndex
from triage.dialects.table import Table
from triage.domain.text import clean

# Each model of a page costs up to 0.3 ms once per shape. Pages of whole fleets, through a federating
# monitor, have tens of models; a label that takes any value a client sends can have as many as it likes.
_MOST_MODELS = 1000
# Series that name no model are every model's: so many models times such series take 1.4 s. Real pages stay below
# 10,000: a hundred models and the routes of one server.
_MOST_SHARED = 100_000


def compile_engines(tables: Iterable[Table], page: PageIndex) -> tuple[tuple[EnginePlan, ...], tuple[str, ...]]:
    """One plan for each model of each engine on the page, and what could not be taken from it.

    A program around the only engine completes that engine's plan; without an engine it speaks for itself,
    and beside several engines nothing says whose its numbers are.
    """
    engines: list[EnginePlan] = []
    around: list[EnginePlan] = []
    problems: list[str] = []
    for table in tables:
        index = own_series(table, page)
        if recognised(table, index):
            via = table.via.get(page.prefix_used(table.prefixes), "") if table.via else ""
            models = _models(table, index)
            if len(models) > _MOST_MODELS:
                problems.append(f"{len(models):,} models: only the first {_MOST_MODELS:,} are read")
                models = models[:_MOST_MODELS]
            if len(models) > 1 and len(models) * _shared(table, index) > _MOST_SHARED:
                problems.append("too many series that name no model, beside many models: they are not read")
                index = index.without(lambda labels, label=table.model_label: label not in labels)  # type: ignore[misc]
            (around if table.joins else engines).extend(_compile_table(table, index, models, via))
    if not engines:
        return tuple(around), tuple(problems)
    if len(engines) == 1:
        for other in around:
            engines[0] = engines[0].joined(other)
    return tuple(engines), tuple(problems)


def _compile_table(table: Table, index: PageIndex, models: list[str], via: str) -> list[EnginePlan]:
    version = version_of(table.versions, index)
    parts = index.divided(table.model_label, models) if models else {"": index}
    return [_compile_model(table, part, model, version, via) for model, part in parts.items()]


def _shared(table: Table, index: PageIndex) -> int:
    """How many series of this table's names name no model."""
    names = {s for metric in table.metrics.values() for n in metric.names for s in every_spelling(n)}
    return sum(table.model_label not in placed.labels for name in names for placed in index.series(name))


def _models(table: Table, index: PageIndex) -> list[str]:
    """Values of the model label, in the order of the table's names."""
    if not table.model_label:
        return []
    all_names = [name for metric in table.metrics.values() for name in metric.names]
    for names in (table.models_from, all_names):
        found: dict[str, None] = {}
        for name in names:
            for spelling in every_spelling(name):
                for placed in index.series(spelling):
                    if table.model_label in placed.labels:
                        found.setdefault(placed.labels[table.model_label])
        if found:
            return list(found)
    return []


def _compile_model(table: Table, index: PageIndex, model: str, version: str, via: str) -> EnginePlan:
    found = Found(table, index)
    for quantity, metric in table.metrics.items():
        for name in metric.names:
            if found.take(quantity, metric, name):
                break
    ranks = tuple((label, tuple(parts)) for label, parts in found.by_rank.items()) if len(found.by_rank) > 1 else ()
    return EnginePlan(
        engine=table.engine,
        dialect=table.dialect,
        version=version,
        model=clean(model, 200),
        role=found.role,
        scalars=tuple(found.scalars),
        infos=tuple(found.infos),
        histograms=tuple(found.histograms),
        finished=tuple(found.finished),
        ranks=ranks,
        names=found.names,
        late=table.late,
        lingering=table.lingering,
        via=via,
        worker=found.worker,
    )
