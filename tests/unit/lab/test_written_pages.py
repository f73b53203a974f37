"""The pages of the lab's engines against the recordings of the real ones: families, types, labels, buckets."""

from collections.abc import Callable

import pytest

from tests.unit.lab.conftest import RECORDINGS
from triage.dialects.pages import read_page
from triage.domain.target import Target
from triage.lab.fleets import workload_named
from triage.lab.pages.forms import Flavour
from triage.lab.world.replica import Replica
from triage.lab.world.world import World

ZERO = 1_764_800_000.0
RECORDED = {
    Flavour.VLLM: "vllm/vllm-0.32.0-queueing.prom",
    Flavour.SGLANG: "sglang/sglang-0.5.23-queueing.prom",
}
REPLICA = {Flavour.VLLM: "chat-a", Flavour.SGLANG: "chat-c"}
# vLLM's estimates are behind a flag; SGLang's count of open HTTP requests belongs to a front end that the lab has not.
NOT_SIMULATED: dict[Flavour, set[str]] = {
    Flavour.VLLM: {"flops_per_gpu", "read_bytes_per_gpu", "write_bytes_per_gpu"},
    Flavour.SGLANG: {"inflight"},
}
FLAVOURS = pytest.mark.parametrize("flavour", list(Flavour))


@pytest.fixture(scope="module")
def world() -> World:
    """A chat fleet that has served for four minutes, with clients that leave and prompts that wait."""
    world = World(workload_named("chat").services, "pages", ZERO)
    world.advance(240.0)
    return world


def replica_of(world: World, flavour: Flavour) -> Replica:
    return next(one for one in world.replicas if one.name == REPLICA[flavour])


@FLAVOURS
def test_families_types_labels_and_buckets_are_those_of_the_real_engine(
    world: World, flavour: Flavour, parse_page: Callable, recording: Callable
) -> None:
    real = all_recorded(flavour, recording)
    replica = replica_of(world, flavour)
    ours = parse_page(replica.page(world.now))
    assert ours.keys() <= real.keys()
    # Edges of the token-count families end at the context limit, which is the engine's own.
    limit = replica.settings.max_model_len
    for name, family in ours.items():
        assert family.kind == real[name].kind, name
        if name.startswith("vllm:request_") and name.endswith("_tokens"):
            shared = [edge for edge in real[name].edges if edge <= limit]
            assert [edge for edge in family.edges if edge <= real[name].edges[-2]] == shared, name
            assert family.edges[-2] <= limit, name
        else:
            assert family.edges == real[name].edges, name
        if name == "vllm:cache_config_info":  # any subset of its thirty labels will do
            continue
        labels = {(sample, frozenset(key for key, _ in where)) for sample, where in family.samples}
        assert labels <= {(sample, frozenset(key for key, _ in where)) for sample, where in real[name].samples}, name


def all_recorded(flavour: Flavour, recording: Callable) -> dict:
    """Every family of this release: some come with their first use, some with another set-up."""
    found: dict = {}
    folder, release = RECORDED[flavour].split("/")
    for path in sorted((RECORDINGS / folder).glob(f"{'-'.join(release.split('-')[:2])}-*.prom")):
        for name, family in recording(f"{folder}/{path.name}").items():
            there = found.setdefault(name, family)
            there.samples.update(family.samples)
    return found


@FLAVOURS
def test_every_quantity_that_can_be_read_from_the_real_page_can_be_read_from_ours(
    world: World, flavour: Flavour
) -> None:
    def read(text: bytes) -> set[str]:
        page = read_page(text, Target("t"), "/metrics", ZERO)
        return {quantity.value for engine in page.engines for quantity in (*engine.values, *engine.histograms)}

    real = read((RECORDINGS / RECORDED[flavour]).read_bytes())
    ours = read(replica_of(world, flavour).page(world.now).encode())
    assert real - ours <= NOT_SIMULATED[flavour]


@FLAVOURS
def test_counters_never_fall_and_buckets_are_cumulative(flavour: Flavour, parse_page: Callable) -> None:
    world = World(workload_named("chat").services, "counters", ZERO)
    replica = replica_of(world, flavour)
    before: dict = {}
    for turn in range(1, 9):
        world.advance(turn * 13.7)
        now: dict = {}
        for name, family in parse_page(replica.page(world.now)).items():
            if family.kind not in ("counter", "histogram"):
                continue
            now |= {(name, *key): value for key, value in family.samples.items()}
            series: dict = {}
            for (sample, where), value in family.samples.items():
                rest = frozenset(pair for pair in where if pair[0] != "le")
                series.setdefault(rest, {})[sample.removeprefix(name), dict(where).get("le")] = value
            for one in series.values() if family.kind == "histogram" else ():
                buckets = [value for (suffix, _), value in one.items() if suffix == "_bucket"]
                assert buckets == sorted(buckets), name
                assert buckets[-1] == one["_count", None], name
        assert before.keys() <= now.keys()
        assert all(now[key] >= value for key, value in before.items())
        before = now


@FLAVOURS
def test_the_process_spends_cpu_time_while_its_scheduler_stands(flavour: Flavour, parse_page: Callable) -> None:
    """A page on which not even that moves is a copy."""
    world = World(workload_named("chat").services, "cpu", ZERO)
    replica = replica_of(world, flavour)
    world.advance(30.0)
    replica.engine.halt(30.0)
    name = "process_cpu_seconds" if flavour is Flavour.VLLM else "sglang:process_cpu_seconds"
    spent = []
    for at in (40.0, 70.0):
        world.advance(at)
        spent.append(sum(parse_page(replica.page(at))[name].samples.values()))
    assert spent[1] > spent[0]
