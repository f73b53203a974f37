"""From dialect tables to PromQL selectors: which series of a server are an engine's, and which of them are read."""

import re
from collections.abc import Iterable, Mapping, Sequence

from triage.dialects.table import Table
from triage.domain.quantity import Quantity

# What a text exposition appends to a family's name.
_SUFFIXES = "(?:_total|_bucket|_sum|_count)?"
_WITHOUT_BUCKETS = "(?:_total|_sum|_count)?"
# GPU exporters have no table: every field of them is read.
GPU_NAMES = "DCGM_FI_.+"

# What a time is compared with: speeds, and the load and the hits they were measured at. Without buckets a replica
# has about twenty of these series instead of three hundred.
BASELINE_QUANTITIES = frozenset(
    {
        Quantity.RUNNING,
        Quantity.WAITING,
        Quantity.KV_USAGE,
        Quantity.ITL,
        Quantity.REQUEST_TPOT,
        Quantity.TTFT,
        Quantity.QUEUE_TIME,
        Quantity.PREFILL_TIME,
        Quantity.E2E,
        Quantity.GENERATION_TOKENS,
        Quantity.GENERATION_TOKENS_LIVE,
        Quantity.GENERATION_SECONDS,
        Quantity.PROMPT_TOKENS,
        Quantity.PREFIX_QUERIES,
        Quantity.PREFIX_HITS,
        Quantity.ENGINE_STEPS,
        Quantity.DRAFTS,
        Quantity.ACCEPTED_TOKENS,
        Quantity.PROCESS_START,
    }
)


def any_engine(tables: Sequence[Table]) -> str:
    """A regular expression for the names by which engines are recognised, whatever the engine."""
    parts = [_alternatives(table, table.recognise.any) + _SUFFIXES for table in tables]
    return "|".join([*dict.fromkeys(parts), GPU_NAMES])


def present(tables: Sequence[Table], names: Iterable[str]) -> list[Table]:
    """The tables of which a recognising name is among these series names."""
    known = sorted(set(names))
    found = []
    for table in tables:
        own = re.compile(_alternatives(table, table.recognise.any) + _SUFFIXES)
        if any(map(own.fullmatch, known)):
            found.append(table)
    return found


def names_of(tables: Sequence[Table]) -> str:
    """A regular expression for every series that these tables read."""
    return "|".join([_alternatives(table, _read_by(table)) + _SUFFIXES for table in tables])


def baseline_names_of(tables: Sequence[Table]) -> str:
    """The same for what a baseline needs, and no buckets."""
    parts = []
    for table in tables:
        chosen = [name for quantity in BASELINE_QUANTITIES & table.metrics.keys() for name in _names(table, quantity)]
        rule = table.recognise
        parts.append(_alternatives(table, sorted({*chosen, *rule.any, *rule.all, *rule.none})) + _WITHOUT_BUCKETS)
    return "|".join(parts)


def selector(names: str, matchers: str = "", jobs: Iterable[str] = ()) -> str:
    """`{__name__=~"…",job=~"…",matchers}`. jobs: '' stands for series without one; none at all for any job."""
    parts = [f'__name__=~"{_quoted(names)}"']
    chosen = sorted(set(jobs))
    if chosen:
        parts.append(f'job=~"{_quoted("|".join(map(_escaped, chosen)))}"')
    return "{" + ",".join([*parts, *([matchers] if matchers else [])]) + "}"


def matching(labels: Mapping[str, str]) -> str:
    """Matchers for exactly these values; '' matches series without the label."""
    return ",".join(f'{label}="{_quoted(value)}"' for label, value in labels.items())


def _read_by(table: Table) -> list[str]:
    names = {name for quantity in table.metrics for name in _names(table, quantity)}
    names |= {mark.name for mark in table.versions}
    return sorted(names | {*table.recognise.any, *table.recognise.all, *table.recognise.none})


def _names(table: Table, quantity: Quantity) -> tuple[str, ...]:
    metric = table.metrics[quantity]
    return (*metric.names, metric.count) if metric.count else metric.names


def _alternatives(table: Table, names: Iterable[str]) -> str:
    """`(?:vllm:|ray_vllm_)(?:a|b)` and plain names: prefixes once, because proxies cut long URLs at 8 KiB."""
    names = sorted(set(names))
    prefixes = table.prefixes or tuple(_common_prefixes(names))
    own = prefixes[0] if prefixes else ""
    rest = [name[len(own) :] for name in names if own and name.startswith(own)]
    plain = [_escaped(name) for name in names if not (own and name.startswith(own))]
    parts = plain
    if rest:
        before = "|".join(map(_escaped, prefixes if table.prefixes else (own,)))
        parts = [*plain, f"(?:{before})(?:{'|'.join(map(_escaped, rest))})"]
    return f"(?:{'|'.join(parts)})"


def _common_prefixes(names: Sequence[str]) -> list[str]:
    """The spelling before ':' or the first '_' that most of the names share."""
    heads = [found[0] for name in names if (found := re.match(r"[a-z0-9]+[:_]", name))]
    return [max(sorted(set(heads)), key=heads.count)] if heads else []


def _escaped(text: str) -> str:
    """RE2 and Python agree on these; ':' and '-' need no escape, and each would cost three bytes in a URL."""
    return re.sub(r"([.+*?()|\[\]{}^$\\])", r"\\\1", text)


def _quoted(text: str) -> str:
    """Inside a PromQL string."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
