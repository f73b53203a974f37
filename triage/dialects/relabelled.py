"""An engine's series under names that no engine exports: what a relabelling rule or a collector made of them."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from triage.dialects.table import Table, engine_tables

# So many names of one engine must end like those on the page, all behind the same other beginning.
_ENOUGH = 6
# Shorter endings ("running", "requests") are anybody's.
_SHORTEST = 12
_SUFFIX = re.compile("_(?:total|bucket|sum|count|created)$")


def relabelled(families: Iterable[str]) -> str:
    """What the series seem to be, as `vllm's num_requests_running is platform_llm_num_requests_running`; '' else."""
    votes: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], tuple[str, str]] = {}
    for family in sorted({_SUFFIX.sub("", name) for name in families}):
        for ending, engines in _endings():
            if not family.endswith(ending) or family == ending:
                continue
            beginning = family.removesuffix(ending)
            if not beginning.endswith(("_", ":", ".")):
                continue
            for engine in engines:
                votes[engine, beginning] += 1
                example.setdefault((engine, beginning), (ending, family))
            break
    if not votes:
        return ""
    best = max(sorted(votes), key=lambda pair: votes[pair])
    if votes[best] < _ENOUGH:
        return ""
    ending, family = example[best]
    return f"{best[0]}'s {ending} is {family}"


@cache
def _endings() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(name without the engine's own beginning, engines that have it), the longest first."""
    found: dict[str, set[str]] = {}
    for table in engine_tables():
        for name in _names(table):
            _, colon, ending = name.partition(":")
            if not colon:
                continue  # without a beginning of its own a name cannot be told from its relabelled form
            if len(ending) >= _SHORTEST:
                found.setdefault(ending, set()).add(table.engine)
    return tuple(
        (ending, tuple(sorted(engines)))
        for ending, engines in sorted(found.items(), key=lambda item: (-len(item[0]), item[0]))
    )


def _names(table: Table) -> list[str]:
    return [name for metric in table.metrics.values() for name in metric.names]
