"""What the lab's tests share: pages read by the reference parser, small engines, recordings."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from triage.lab.engine import EngineSettings
from triage.lab.incidents import Flavour, Incident, ReplicaSpec
from triage.lab.workload import Spread, Workload

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


@pytest.fixture
def settings() -> EngineSettings:
    """Steps of exactly 10 ms + 1 ms per decoding sequence + 0.1 ms per prompt token."""
    return EngineSettings(
        max_num_seqs=4,
        max_batched_tokens=64,
        max_model_len=4096,
        block_size=16,
        num_blocks=1024,
        step_base_s=0.010,
        step_per_sequence_s=0.001,
        prefill_per_token_s=0.0001,
        frontend_s=0.0,
        noise=0.0,
    )


@pytest.fixture
def quiet() -> Workload:
    """No users of its own; an outside request gets 5 tokens of reasoning and 10 of text."""
    exactly = [Spread(median=tokens, sigma=0.0, low=tokens, high=tokens) for tokens in (32, 5, 10)]
    return Workload(users=0, think_s=1.0, prompt=exactly[0], reasoning=exactly[1], visible=exactly[2])


@pytest.fixture
def spec(settings: EngineSettings) -> Callable[..., ReplicaSpec]:
    def build(flavour: Flavour = Flavour.VLLM, **changes: object) -> ReplicaSpec:
        return ReplicaSpec("one", flavour, "tiny", msgspec.structs.replace(settings, **changes))

    return build


@pytest.fixture
def nothing_wrong(quiet: Workload) -> Incident:
    return Incident(name="quiet", title="no load", cause="healthy", workload=quiet)
