"""What the lab's tests share: pages read by the reference parser, recordings."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"

Families = Mapping[str, "ParsedFamily"]


class ParsedFamily(msgspec.Struct):
    """samples: (name, labels) to value. edges: `le` values in page order, without +Inf, of the first series."""

    kind: str
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]
    edges: list[float]


def parse(text: str) -> dict[str, ParsedFamily]:
    families: dict[str, ParsedFamily] = {}
    for family in text_string_to_metric_families(text):
        samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        edges: list[float] = []
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, f"{key} twice"
            samples[key] = sample.value
            if sample.name == f"{family.name}_bucket" and float(sample.labels["le"]) not in edges:
                edges.append(float(sample.labels["le"]))
        families[family.name] = ParsedFamily(family.type, samples, edges)
    return families


def total(families: Families, name: str, **labels: str) -> float:
    """Sum of the samples of that name that carry these labels; 0 when there are none."""
    wanted = set(labels.items())
    return sum(
        value
        for family in families.values()
        for (sample, where), value in family.samples.items()
        if sample == name and wanted <= where
    )


@pytest.fixture
def parse_page() -> Callable[[str], dict[str, ParsedFamily]]:
    return parse


@pytest.fixture
def add_up() -> Callable[..., float]:
    return total


@pytest.fixture
def recording() -> Callable[[str], dict[str, ParsedFamily]]:
    return lambda name: parse((RECORDINGS / name).read_text())
