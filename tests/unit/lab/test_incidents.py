"""Each incident shows its cause, and only that, in a window of 30 s."""

from collections.abc import Callable

import msgspec
import pytest

from triage.domain.errors import TriageError
from triage.domain.verdict import Kind
from triage.lab.incidents import HEALTHY, INCIDENTS, REPLICAS, Flavour, ReplicaSpec, incident_named
from triage.lab.replica import Replica

HIT = [spec for spec in REPLICAS if spec.steady is None]
SPARED = next(spec for spec in REPLICAS if spec.steady is not None)
NAMES = {
    Flavour.VLLM: {
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
        "kv": "vllm:kv_cache_usage_perc",
        "itl": "vllm:inter_token_latency_seconds",
        "ttft": "vllm:time_to_first_token_seconds",
        "queue": "vllm:request_queue_time_seconds",
        "e2e": "vllm:e2e_request_latency_seconds",
        "length": "vllm:request_generation_tokens",
    },
    Flavour.SGLANG: {
        "running": "sglang:num_running_reqs",
        "waiting": "sglang:num_queue_reqs",
        "kv": "sglang:token_usage",
        "itl": "sglang:inter_token_latency_seconds",
        "ttft": "sglang:time_to_first_token_seconds",
        "queue": "sglang:queue_time_seconds",
        "e2e": "sglang:e2e_request_latency_seconds",
        "length": "sglang:generation_tokens_histogram",
    },
}


class Seen(msgspec.Struct):
    """A window of 30 s: gauges every 2 s, means of what was observed inside, and how many finished."""

    running: list[float]
    waiting: list[float]
    kv: list[float]
    means: dict[str, float]
    finished: float


@pytest.fixture
def look(parse_page: Callable, add_up: Callable) -> Callable[[ReplicaSpec, str], Seen]:
    def watch(spec: ReplicaSpec, incident: str) -> Seen:
        replica = Replica(spec, HEALTHY, seed=2)
        replica.advance(120.0)
        replica.apply(incident_named(incident))
        replica.advance(165.0)
        names = NAMES[spec.flavour]
        first = parse_page(replica.metrics.page(1.7e9))
        gauges: dict[str, list[float]] = {"running": [], "waiting": [], "kv": []}
        for _ in range(15):
            replica.advance(replica.now + 2.0)
            last = parse_page(replica.metrics.page(1.7e9))
            for key, seen in gauges.items():
                seen.append(add_up(last, names[key]))

        def delta(key: str, part: str) -> float:
            return add_up(last, f"{names[key]}_{part}") - add_up(first, f"{names[key]}_{part}")

        means = {key: delta(key, "sum") / delta(key, "count") for key in ("itl", "ttft", "queue", "e2e", "length")}
        return Seen(**gauges, means=means, finished=delta("e2e", "count"))

    return watch


EACH = pytest.mark.parametrize("spec", HIT, ids=lambda spec: spec.name)


@EACH
def test_healthy(spec: ReplicaSpec, look: Callable) -> None:
    seen = look(spec, "healthy")
    assert max(seen.waiting) == 0
    assert max(seen.running) < 0.6 * spec.settings.max_num_seqs
    assert seen.means["ttft"] < 0.5
    assert 0.022 < seen.means["itl"] < 0.028
    assert seen.finished >= 40


@EACH
def test_queueing(spec: ReplicaSpec, look: Callable) -> None:
    seen = look(spec, "queueing")
    limit = spec.settings.max_num_seqs
    assert min(seen.running) >= limit - 3
    assert max(seen.running) <= limit
    assert min(seen.waiting) >= 2 * limit
    assert max(seen.waiting) - min(seen.waiting) < limit  # steady
    assert seen.means["queue"] > 5.0
    assert seen.means["ttft"] > 5.0
    assert seen.means["itl"] < 0.032
    assert max(seen.kv) < 0.5
    # Little's law over the whole system: users inside = rate × time inside.
    inside = sum(seen.running + seen.waiting) / len(seen.running)
    assert seen.finished / 30.0 * seen.means["e2e"] == pytest.approx(inside, rel=0.15)


@EACH
def test_slow_decode(spec: ReplicaSpec, look: Callable) -> None:
    seen = look(spec, "slow-decode")
    assert 0.19 < seen.means["itl"] < 0.25
    assert max(seen.waiting) == 0
    assert max(seen.running) < spec.settings.max_num_seqs
    assert seen.means["queue"] < 0.3
    assert seen.means["ttft"] < 1.0
    assert seen.finished >= 5


@EACH
def test_hidden_reasoning(spec: ReplicaSpec, look: Callable) -> None:
    seen, usual = look(spec, "hidden-reasoning"), look(spec, "healthy")
    assert seen.means["ttft"] < 0.5
    assert 0.022 < seen.means["itl"] < 0.03
    assert max(seen.waiting) == 0
    assert seen.means["length"] > 6 * usual.means["length"]
    assert max(seen.kv) < 0.5
    assert seen.finished >= 5


def test_nine_tokens_in_ten_are_reasoning() -> None:
    replica = Replica(HIT[0], incident_named("hidden-reasoning"), seed=2)
    drawn = [replica.compose(20, 2000, thinks=True, streaming=True) for _ in range(500)]
    reasoning = sum(one.reasoning_tokens for one in drawn)
    share = reasoning / (reasoning + sum(one.visible_tokens for one in drawn))
    assert 0.86 < share < 0.92
    assert replica.compose(20, 2000, thinks=False, streaming=True).reasoning_tokens == 0


def test_the_other_model_never_notices(parse_page: Callable) -> None:
    pages = []
    for incident in INCIDENTS:
        replica = Replica(SPARED, HEALTHY, seed=2)
        replica.advance(60.0)
        replica.apply(incident)
        replica.advance(120.0)
        pages.append(replica.metrics.page(1.7e9))
    assert len(set(pages)) == 1


def test_an_incident_ends_when_the_next_one_begins(parse_page: Callable, add_up: Callable) -> None:
    replica = Replica(HIT[0], incident_named("queueing"), seed=2)
    replica.advance(60.0)
    assert add_up(parse_page(replica.metrics.page(1.7e9)), "vllm:num_requests_waiting") > 60
    replica.apply(HEALTHY)
    replica.advance(120.0)
    assert add_up(parse_page(replica.metrics.page(1.7e9)), "vllm:num_requests_waiting") == 0


def test_the_fleet_is_three_of_one_model_and_one_of_another() -> None:
    assert [(spec.name, spec.flavour.value) for spec in REPLICAS] == [
        ("chat-a", "vllm"),
        ("chat-b", "vllm"),
        ("chat-c", "sglang"),
        ("small-a", "vllm"),
    ]
    assert len({spec.model for spec in HIT}) == 1
    assert SPARED.model not in {spec.model for spec in HIT}


def test_causes_are_verdict_words() -> None:
    assert {incident.cause for incident in INCIDENTS} <= {kind.value for kind in Kind}


def test_an_unknown_incident_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TriageError, match="healthy, queueing, hidden-reasoning, slow-decode"):
        incident_named("meteor")
