"""A real Prometheus scrapes the demo's engines; what triage says from it must be what scraping itself would say."""

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.monitored import (
    Engine,
    Server,
    binary,
    lab_engines,
    scrape_config,
    spare,
    start_prometheus,
    start_victoria_metrics,
    wait_for,
)
from triage.diagnosis.diagnose import diagnose
from triage.dialects.pages import read_page
from triage.domain.limits import Limits
from triage.domain.monitoring import MonitoringReading, Past, Trouble
from triage.domain.quantity import Quantity as Q
from triage.domain.reading import Scrape
from triage.domain.situation import Replica, Situation, TargetStatus
from triage.domain.target import FailureReason, Target, TargetState
from triage.domain.verdict import Confidence, Kind
from triage.gate import Access, Gate
from triage.situation.store import Store
from triage.sources.prometheus import PrometheusSource

PROMETHEUS = binary("prometheus")
VICTORIA = binary("victoria-metrics") if os.environ.get("TRIAGE_TEST_VICTORIA_METRICS") else None
WINDOW_S = 5.0
RULES = """
groups:
- name: engines
  rules:
  - alert: EngineQueueing
    expr: vllm:num_requests_waiting{pod="chat-a"} > 10
    labels: {severity: page}
    annotations: {summary: "{{ $labels.model_name }} queues"}
  - alert: Watchdog
    expr: vector(1)
  - alert: Elsewhere
    expr: up{job="elsewhere"} == 0
  - alert: Broken
    expr: vllm:num_requests_waiting == on() group_left() (up * 1e9)
"""
ELSEWHERE = "- job_name: elsewhere\n  static_configs: [{targets: ['127.0.0.1:1']}]"

pytestmark = pytest.mark.skipif(
    PROMETHEUS is None,
    reason="no prometheus on the path (Debian: apt-get install prometheus), nor TRIAGE_TEST_PROMETHEUS",
)


class World:
    """The server and what it scrapes."""

    def __init__(self, server: Server, engines: list[Engine]) -> None:
        self.server = server
        self.engines = {engine.name: engine for engine in engines}


def _world(start: Callable[[list[Engine]], Server]) -> Iterator[World]:
    engines = [*lab_engines("load-surge"), spare("dies"), spare("restarts"), spare("quiet")]
    server = None
    try:
        server = start(engines)
        wait_for("a first scrape", lambda: server.has("sglang:num_running_reqs"))
        yield World(server, engines)
    finally:
        if server is not None:
            server.stop()
        for engine in engines:
            engine.stop()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("prometheus")

    def start(engines: list[Engine]) -> Server:
        write_past(folder, engines[0])
        return start_prometheus(str(PROMETHEUS), folder, scrape_config(engines, ELSEWHERE), RULES)

    yield from _world(start)


class Watcher:
    """One source and its store, as the monitor has them."""

    def __init__(self, source: PrometheusSource) -> None:
        self.source = source
        self.store = Store((), window_s=WINDOW_S, limits=Limits())
        self.scrapes: list[Scrape] = []
        self.told: MonitoringReading | None = None
        self.past: tuple[Past, ...] = ()

    async def look(self) -> Situation:
        readings = await self.source.read()
        self.store.add(readings)
        self.scrapes += [one for one in readings if isinstance(one, Scrape)]
        self.told = next((one for one in readings if isinstance(one, MonitoringReading)), self.told)
        self.past = (self.told.past if self.told else None) or self.past
        return self.store.situation(time.time(), 1.0)

    async def until(self, ready: Callable[[Situation], bool], patience_s: float = 20.0) -> Situation:
        """Look again and again until it is so: scrapes come at the server's pace."""
        end = time.monotonic() + patience_s
        situation = await self.look()
        while not ready(situation):
            troubles = [str(one) for one in self.told.troubles] if self.told else []
            assert time.monotonic() < end, (troubles, [str(status.state) for status in situation.targets])
            await asyncio.sleep(0.1)  # between two looks; the condition ends it
            situation = await self.look()
        return situation


Watch = Callable[..., Watcher]


@pytest.fixture
async def watch(world: World, gate: Gate) -> AsyncIterator[Watch]:
    started: list[PrometheusSource] = []

    def start(**options: object) -> Watcher:
        source = PrometheusSource(gate, Access(world.server.url, timeout_s=10.0), window_s=WINDOW_S, **options)  # type: ignore[arg-type]
        started.append(source)
        return Watcher(source)

    yield start
    for source in started:
        await source.close()


def replica_of(situation: Situation, name: str) -> Replica | None:
    return next((replica for replica in situation.replicas if replica.target.name == name), None)


def status_of(situation: Situation, name: str) -> TargetStatus | None:
    return next((status for status in situation.targets if status.target.name == name), None)


def windows(*names: str, readings: int = 3) -> Callable[[Situation], bool]:
    def ready(situation: Situation) -> bool:
        found = [replica_of(situation, name) for name in names]
        return all(one is not None and one.window.readings >= readings for one in found)

    return ready


async def test_the_same_quantities_and_verdict_as_from_scraping(watch: Watch, world: World) -> None:
    watcher = watch()
    situation = await watcher.until(windows("chat-a", "chat-b", "chat-c", "side-a"))
    assert {r.target.name: r.model for r in situation.replicas if r.target.name in ("chat-a", "chat-c", "side-a")} == {
        "chat-a": "llama-3.1-8b",
        "chat-c": "llama-3.1-8b",
        "side-a": "qwen3-8b",
    }
    for name in ("chat-a", "chat-c"):
        own = replica_of(situation, name)
        assert own is not None
        direct = read_page(world.engines[name]._page().encode(), Target(name), "direct", time.time()).engines[0]
        read = own.window.last
        assert (read.engine, read.dialect, read.version, read.names) == (
            direct.engine,
            direct.dialect,
            direct.version,
            direct.names,
        )
        assert set(read.values) == set(direct.values)
        assert set(read.histograms) == set(direct.histograms)
        for quantity, histogram in read.histograms.items():
            assert histogram.edges == direct.histograms[quantity].edges
            assert 0 <= histogram.count <= direct.histograms[quantity].count
        assert own.target.url == f"http://{world.engines[name].address}/metrics"
    verdict = diagnose(situation).verdicts[0]
    assert (verdict.kind, verdict.confidence, verdict.scope.model) == (Kind.QUEUEING, Confidence.LIKELY, "llama-3.1-8b")
    assert "prometheus vllm:num_requests_waiting" in verdict.evidence[0].source


async def test_every_reading_has_the_time_of_its_scrape_and_comes_once(watch: Watch) -> None:
    watcher = watch()
    await watcher.until(windows("chat-a", readings=4))
    asked = time.time()
    own = [scrape for scrape in watcher.scrapes if scrape.target.name == "chat-a"]
    times = [scrape.at for scrape in own]
    assert times == sorted(set(times))
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # Prometheus keeps its pace to a millisecond or two; the questions came whenever they came.
    assert all(abs(gap - round(gap)) < 0.1 and gap > 0.9 for gap in gaps), gaps
    assert all(scrape.every_s == 1.0 for scrape in own)
    assert all(scrape.page is not None and scrape.page.engines[0].at == scrape.at for scrape in own)
    assert all(0 < asked - at < 60 for at in times)


async def test_a_target_that_dies(watch: Watch, world: World) -> None:
    watcher = watch()
    # The server is asked for its last sample on a grid of five seconds: who lives shorter may fall between.
    await watcher.until(lambda _: sum(s.target.name == "dies" and s.page is not None for s in watcher.scrapes) >= 7)
    world.engines["dies"].stop()

    def gone(situation: Situation) -> bool:
        """Dark, and its last minutes, in which it still worked, are out of the window."""
        status = status_of(situation, "dies")
        return status is not None and status.state is TargetState.DARK and replica_of(situation, "dies") is None

    situation = await watcher.until(gone)
    status = status_of(situation, "dies")
    assert status is not None
    assert status.failure is not None
    assert status.failure.reason is FailureReason.REFUSED
    assert "monitoring says" in status.failure.detail
    assert status.answered_at is not None
    verdicts = diagnose(situation).verdicts
    dead = next(verdict for verdict in verdicts if verdict.kind is Kind.ENGINE_DEAD)
    assert (dead.scope.replica, dead.detail, dead.confidence) == ("dies", "process-gone", Confidence.LIKELY)
    down = {target.url for target in situation.monitored if target.health == "down"}
    assert f"http://{world.engines['dies'].address}/metrics" in down
    assert not any(":1/" in url for url in down), "what is no engine's target is nobody's business here"
    assert watcher.told is not None
    assert [one for one in watcher.told.troubles if one.trouble is Trouble.TARGET_DOWN and "refused" in one.says]
    # Who comes later, as people do after a page, learns the same from what the server remembers.
    late = await watch().look()
    again = status_of(late, "dies")
    assert again is not None
    assert (again.state, again.answered_at) == (TargetState.DARK, pytest.approx(status.answered_at, abs=8.0))
    assert Kind.ENGINE_DEAD in {verdict.kind for verdict in diagnose(late).verdicts}


async def test_a_target_that_restarts(watch: Watch, world: World) -> None:
    watcher = watch()
    before = replica_of(await watcher.until(windows("restarts")), "restarts")
    assert before is not None
    world.engines["restarts"].restart()

    def again(situation: Situation) -> bool:
        own = replica_of(situation, "restarts")
        return own is not None and own.window.resets == 1 and own.window.readings >= 4

    own = replica_of(await watcher.until(again), "restarts")
    assert own is not None
    assert own.window.restarted
    assert own.window.last.values[Q.GENERATION_TOKENS] < before.window.last.values[Q.GENERATION_TOKENS]
    assert min(own.window.deltas.values()) >= 0
    assert own.window.deltas[Q.GENERATION_TOKENS] < before.window.last.values[Q.GENERATION_TOKENS]


async def test_a_target_that_lives_and_loses_its_series_is_stale(watch: Watch, world: World) -> None:
    watcher = watch()
    await watcher.until(windows("quiet"))
    world.engines["quiet"].go_quiet()

    def stale(situation: Situation) -> bool:
        status = status_of(situation, "quiet")
        return status is not None and status.state is TargetState.STALE

    situation = await watcher.until(stale)
    assert not [v for v in diagnose(situation).verdicts if v.kind is Kind.ENGINE_DEAD and v.scope.replica == "quiet"]


async def test_alerts_about_engines_are_told_and_decide_nothing(watch: Watch) -> None:
    watcher = watch()
    situation = await watcher.until(lambda situation: bool(situation.alerts))
    assert {alert.name for alert in situation.alerts} == {"EngineQueueing"}, "neither the heartbeat nor elsewhere"
    (alert,) = situation.alerts
    assert (alert.state, alert.summary) == ("firing", "llama-3.1-8b queues")
    assert 'vllm:num_requests_waiting{pod="chat-a"} > 10' in alert.expression
    assert dict(alert.labels)["severity"] == "page"
    assert watcher.told is not None
    broken = [one for one in watcher.told.troubles if "cannot be evaluated" in one.says]
    assert [one.says.split(": ")[1] for one in broken] == ["Broken"]
    assert not any(one.blind for one in broken)


async def test_a_metric_that_nobody_ever_stored(watch: Watch) -> None:
    watcher = watch(matchers='job="elsewhere"')
    situation = await watcher.look()
    (trouble,) = [one for one in watcher.told.troubles if one.blind] if watcher.told else []
    assert trouble.trouble is Trouble.UNKNOWN_METRIC
    assert "matchers" in trouble.todo
    (seen,) = [seen for seen in situation.not_seen if seen.expected]
    assert seen.why.startswith("unknown metric: ")
    assert Kind.QUEUEING.value in seen.costs
    assert diagnose(situation).verdicts[0].kind is Kind.INSUFFICIENT_DATA


async def test_a_replica_that_is_scraped_directly_counts_once(watch: Watch, world: World) -> None:
    direct = Target("mine", f"http://{world.engines['chat-a'].address}")
    watcher = watch(direct={world.engines["chat-a"].address: direct})
    situation = await watcher.until(windows("chat-b"))
    assert replica_of(situation, "chat-a") is None
    assert replica_of(situation, "mine") is None
    assert "mine" in {past.target for past in watcher.past}, "what was usual for it is known all the same"


def write_past(folder: Path, engine: Engine) -> None:
    """Two pasts of one engine: a good day ago, and an incident a week ago."""
    program = binary("promtool")
    assert program is not None, "promtool comes with prometheus"
    by_name: dict[str, list[str]] = {}
    for days, step_s in ((1, 0.02), (7, 0.5)):
        first = time.time() - days * 86_400 - 300
        for n in range(25):
            for sample in _counters(engine):
                line = sample.format(n=600 * n, s=600 * n * step_s)
                by_name.setdefault(line.partition("{")[0], []).append(f"{line} {first + 15 * n:.3f}")
    families = [f"# TYPE {name} unknown\n" + "\n".join(lines) for name, lines in sorted(by_name.items())]
    (folder / "past.om").write_text("\n".join([*families, "# EOF", ""]))
    argv = [program, "tsdb", "create-blocks-from", "openmetrics", "past.om", "data"]
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)


def _counters(engine: Engine) -> list[str]:
    """A vLLM's speed and load as series of the target, with places for a count and a sum."""
    target = f'engine="own",instance="{engine.address}",job="engines",pod="chat-a"'
    labels = f'{{{{exported_engine="0",model_name="llama-3.1-8b",{target}}}}}'
    return [
        f"vllm:num_requests_running{labels} 12",
        f"vllm:num_requests_waiting{labels} 0",
        f"vllm:generation_tokens_total{labels} {{n}}",
        f"vllm:inter_token_latency_seconds_count{labels} {{n}}",
        f"vllm:inter_token_latency_seconds_sum{labels} {{s:.3f}}",
    ]


async def test_the_same_time_a_day_ago_is_what_a_replica_is_measured_against(watch: Watch) -> None:
    situation = await watch().until(windows("chat-a", "chat-b", "side-a"))
    own = replica_of(situation, "chat-a")
    assert own is not None
    assert own.baseline_name == "the same time a day ago", "the week before was an incident itself"
    assert own.baseline is not None
    assert own.baseline.mean(Q.ITL) == pytest.approx(0.02)
    assert own.baseline.gauges[Q.RUNNING].mean == 12.0
    assert own.baseline.seconds == pytest.approx(285.0, abs=31.0)
    peer, other = replica_of(situation, "chat-b"), replica_of(situation, "side-a")
    assert peer is not None
    assert peer.baseline_name == "the same time a day ago, other replicas of the model"
    assert other is not None
    assert other.baseline is None


@pytest.mark.skipif(VICTORIA is None, reason="opt-in: set TRIAGE_TEST_VICTORIA_METRICS to its program")
async def test_victoria_metrics_gives_the_same(tmp_path: Path, gate: Gate) -> None:
    def start(engines: list[Engine]) -> Server:
        return start_victoria_metrics(str(VICTORIA), tmp_path, scrape_config(engines, ELSEWHERE))

    for one in _world(start):
        watcher = Watcher(PrometheusSource(gate, Access(one.server.url, timeout_s=10.0), window_s=WINDOW_S))
        situation = await watcher.until(windows("chat-a", "chat-b", "chat-c"), patience_s=60)
        assert diagnose(situation).verdicts[0].kind is Kind.QUEUEING
        one.engines["dies"].stop()
        dark = await watcher.until(
            lambda s: (d := status_of(s, "dies")) is not None and d.state is TargetState.DARK, 60
        )
        assert [v for v in diagnose(dark).verdicts if v.kind is Kind.ENGINE_DEAD]
        await watcher.source.close()
