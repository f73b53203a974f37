"""When the series of both pages move: what is there at first, at once, late, or never."""

import math
from typing import Any

import msgspec
import pytest

from tests.unit.lab.conftest import RECORDINGS, ParsedFamily, parse, total
from triage.lab.batching.request import Request, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.fleets import workload_named
from triage.lab.machine.checkpoints import LLAMA_8B
from triage.lab.machine.devices import L40S
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import Flavour
from triage.lab.pages.writer import writers_of
from triage.lab.world.world import World

MACHINE = Machine(L40S, 1, LLAMA_8B)
STEP_S = MACHINE.costs().step_s(1, 100, 0, 0.0)
STARTED = 1_700_000_000.25
SETTINGS = EngineSettings(
    4, 256, 4096, 16, 512, prefix_caching=False, frontend_s=0.0, frontend_per_token_s=0.0, noise=0.0
)
AT_FINISH = ("e2e_request_latency", "request_queue_time", "request_inference_time", "request_prefill_time")


class Process:
    """One engine, asked by hand."""

    def __init__(self, flavour: Flavour, machine: Machine = MACHINE, **changes: Any) -> None:
        size = {"block_size": 1, "num_blocks": 8192} if flavour is Flavour.SGLANG else {}
        settings = msgspec.structs.replace(SETTINGS, **{**size, **changes})
        self.engine, self._page, _ = writers_of(flavour, settings, machine, STARTED, "seed")

    def ask(self, output: int, at: float = 0.0, prompt: int = 32, **more: Any) -> Sequence:
        request = msgspec.structs.replace(Request(prompt, output, output), **more)
        return self.engine.submit(request, at)

    def go_on(self, until: float) -> None:
        while self.engine.next_at <= until:
            self.engine.proceed()
        self.engine.settle(until)

    def look_often(self, until: float) -> None:
        """Every 10 ms, so that no run of steps is longer than one."""
        for tick in range(round(100 * until)):
            self.go_on(tick / 100)

    def page(self, at: float) -> dict[str, ParsedFamily]:
        self.go_on(at)
        return parse(self._page.text(STARTED, STARTED + at))


def recorded(name: str) -> dict[str, ParsedFamily]:
    return parse((RECORDINGS / name).read_text())


# ---- a process that has just started


def test_a_fresh_vllm_page_has_all_its_counters_and_they_say_nothing_happened() -> None:
    ours, real = Process(Flavour.VLLM).page(0.0), recorded("vllm/vllm-0.32.0-idle-fresh.prom")
    assert ours.keys() <= real.keys()
    left_out = {name for name in real.keys() - ours.keys() if name.startswith("vllm:")}
    assert all(name.startswith("vllm:estimated_") for name in left_out)
    for page in (ours, real):
        counted = [family for name, family in page.items() if name.startswith("vllm:") and family.kind != "gauge"]
        assert not [key for family in counted for key, value in family.samples.items() if value]


def test_process_start_and_births_stand_on_the_page_of_a_single_process_only() -> None:
    vllm, sglang = Process(Flavour.VLLM), Process(Flavour.SGLANG)
    page = vllm.page(5.0)
    assert list(page["process_start_time_seconds"].samples.values()) == [STARTED]
    assert set(page["vllm:time_to_first_token_seconds_created"].samples.values()) == {STARTED}
    sglang.ask(10)
    assert not [name for name in sglang.page(5.0) if name.startswith("process_") or name.endswith("_created")]


def test_sglang_counters_do_not_exist_before_their_first_use() -> None:
    process, real = Process(Flavour.SGLANG), recorded("sglang/sglang-0.5.23-idle-fresh.prom")
    ours = process.page(0.0)
    assert ours.keys() <= real.keys()
    for name in ("num_requests", "generation_tokens", "realtime_tokens", "queue_time_seconds", "cuda_graph_passes"):
        assert f"sglang:{name}" not in ours
    # The server's own warm-up.
    process.ask(8, prompt=13, streaming=False)
    warm = process.page(5.0)
    for name in ("prompt_tokens_total", "num_requests_total", "e2e_request_latency_seconds_count"):
        assert total(warm, f"sglang:{name}") == total(real, f"sglang:{name}", is_streaming="false") > 0, name
    for name, mode in (("realtime_tokens", "decode"), ("cuda_graph_passes", "decode_none")):
        assert total(warm, f"sglang:{name}_total", mode=mode) == total(real, f"sglang:{name}_total", mode=mode) == 7


@pytest.mark.xfail(strict=True, reason="gaps between tokens are counted for answers that are not streamed, too")
def test_sglang_knows_no_gaps_between_tokens_of_an_answer_that_came_in_one_piece() -> None:
    process = Process(Flavour.SGLANG)
    process.ask(8, prompt=13, streaming=False)
    name, real = "sglang:inter_token_latency_seconds", recorded("sglang/sglang-0.5.23-idle-fresh.prom")
    assert (name in process.page(5.0)) is (name in real)


# ---- vLLM


def test_vllm_writes_phases_at_finish_and_tokens_at_once() -> None:
    process = Process(Flavour.VLLM)
    process.ask(200)
    page = process.page(2.5)
    assert total(page, "vllm:num_requests_running") == total(page, "vllm:time_to_first_token_seconds_count") == 1
    steps = int((2.5 - STEP_S) / STEP_S)
    assert total(page, "vllm:generation_tokens_total") == pytest.approx(steps + 1, abs=1)
    assert total(page, "vllm:inter_token_latency_seconds_count") == total(page, "vllm:generation_tokens_total") - 1
    assert total(page, "vllm:prompt_tokens_total") == 32
    assert total(page, "vllm:kv_cache_usage_perc") == math.ceil((32 + steps) / 16) / 512
    for name in AT_FINISH:
        assert total(page, f"vllm:{name}_seconds_count") == 0
    page = process.page(60.0)
    for name in AT_FINISH:
        assert total(page, f"vllm:{name}_seconds_count") == 1
    assert total(page, "vllm:request_success_total", finished_reason="stop") == 1
    assert total(page, "vllm:generation_tokens_total") == total(page, "vllm:request_generation_tokens_sum") == 200
    assert total(page, "vllm:inter_token_latency_seconds_count") == 199
    assert total(page, "vllm:iteration_tokens_total_sum") == 200 + 32
    assert total(page, "vllm:kv_cache_usage_perc") == total(page, "vllm:num_requests_running") == 0
    # Without a front end these are the whole of it.
    phases = [total(page, f"vllm:request_{one}_time_seconds_sum") for one in ("queue", "prefill", "decode")]
    assert sum(phases) == pytest.approx(total(page, "vllm:e2e_request_latency_seconds_sum"))


def test_a_vllm_abort_leaves_no_trace() -> None:
    process = Process(Flavour.VLLM)
    sequence = process.ask(200)
    before = process.page(1.0)
    process.engine.abort(sequence, 1.0)
    after = process.page(2.0)
    for name in ("request_success_total", "e2e_request_latency_seconds_count", "request_queue_time_seconds_count"):
        assert total(after, f"vllm:{name}") == 0
    assert total(after, "vllm:time_to_first_token_seconds_count") == 1
    assert total(after, "vllm:generation_tokens_total") == total(before, "vllm:generation_tokens_total")
    assert total(after, "vllm:num_requests_running") == 0


def test_vllm_reports_the_reason_length() -> None:
    process = Process(Flavour.VLLM)
    process.ask(10, reasoning_tokens=40, max_tokens=8)
    assert total(process.page(5.0), "vllm:request_success_total", finished_reason="length") == 1
    assert total(process.page(5.0), "vllm:generation_tokens_total") == 8


def test_vllm_counts_preemptions_at_once_and_only_the_first_of_two_prompt_readings() -> None:
    process = Process(Flavour.VLLM, num_blocks=6)
    for _ in range(2):
        process.ask(40)
    assert total(process.page(0.6), "vllm:num_preemptions_total") == 1
    page = process.page(60.0)
    assert total(page, "vllm:request_num_preemptions_sum") == 1
    assert total(page, "vllm:prompt_tokens_total") == 64
    assert total(page, "vllm:time_to_first_token_seconds_count") == 2
    assert total(page, "vllm:generation_tokens_total") == 80


def test_a_stall_is_one_long_gap_on_vllms_page() -> None:
    process = Process(Flavour.VLLM)
    process.ask(100)
    process.page(1.0)
    process.engine.halt(1.0)
    process.ask(1, at=2.0)
    assert [total(process.page(8.0), f"vllm:num_requests_{which}") for which in ("running", "waiting")] == [1, 0]
    process.engine.resume(11.0)
    page, name = process.page(60.0), "vllm:inter_token_latency_seconds_bucket"
    assert [total(page, name, le=edge) for edge in ("7.5", "10.0", "20.0")] == [98, 98, 99]


# ---- SGLang


def test_sglang_counts_finished_requests_late_and_live_tokens_every_forty_iterations() -> None:
    process = Process(Flavour.SGLANG)
    process.ask(101)
    live, running = set(), set()
    for tick in range(120):
        page = process.page(tick / 50)
        live.add(total(page, "sglang:realtime_tokens_total", mode="decode"))
        running.add(total(page, "sglang:num_running_reqs"))
        assert not {"sglang:generation_tokens", "sglang:num_requests", "sglang:e2e_request_latency_seconds"} & {*page}
    assert (live, running) == ({0, 40, 80}, {0, 1})
    page = process.page(60.0)
    assert total(page, "sglang:generation_tokens_total", is_streaming="true") == 101
    assert total(page, "sglang:num_requests_total", is_streaming="true") == 1
    assert total(page, "sglang:realtime_tokens_total", mode="decode") == 100
    assert total(page, "sglang:inter_token_latency_seconds_count") == 100
    assert total(page, "sglang:num_running_reqs") == total(page, "sglang:token_usage") == 0


def test_a_sglang_prefill_report_leaves_out_the_requests_it_brings_in() -> None:
    process = Process(Flavour.SGLANG)
    process.ask(500)
    process.page(0.2)
    for _ in range(2):
        process.ask(500, at=0.2)
    assert total(process.page(0.3), "sglang:num_running_reqs") == 1
    process.look_often(5.0)
    page = process.page(5.0)
    assert total(page, "sglang:num_running_reqs") == 3
    assert total(page, "sglang:gen_throughput") == pytest.approx(3 / STEP_S, rel=0.02)


def test_sglang_counts_aborts_and_writes_queue_time_when_scheduled() -> None:
    process = Process(Flavour.SGLANG, max_num_seqs=1)
    first, second = process.ask(100), process.ask(100)
    page = process.page(0.5)
    assert total(page, "sglang:queue_time_seconds_count") == 1
    assert "sglang:num_aborted_requests" not in page
    process.engine.abort(first, 0.5)
    page = process.page(0.6)
    assert total(page, "sglang:num_aborted_requests_total") == 1
    assert total(page, "sglang:queue_time_seconds_count") == 2
    assert total(page, "sglang:queue_time_seconds_sum") == pytest.approx(second.scheduled) != 0
    assert "sglang:num_requests" not in page


@pytest.mark.parametrize("output", [20, 200])
def test_sglang_hides_the_first_token_of_a_whole_answer_for_fifty_tokens(output: int) -> None:
    process = Process(Flavour.SGLANG)
    sequence = process.ask(output, streaming=False)
    process.look_often(10.0)
    page = process.page(10.0)
    seen = total(page, "sglang:time_to_first_token_seconds_sum", is_streaming="false")
    assert seen == pytest.approx(sequence.first_token + (min(output, 50) - 1) * STEP_S, abs=0.02)
    assert total(page, "sglang:time_to_first_token_seconds_count", is_streaming="true") == 0


# ---- looking changes nothing

Three = tuple[World, World, World]


@pytest.fixture(scope="module")
def worlds() -> dict[str, Three]:
    """Three of each workload after 40 s: in one piece, in many, and by another seed."""
    found = {}
    for name in ("chat", "agents", "batch"):
        whole, pieces, other = (World(workload_named(name).services, seed, STARTED) for seed in ("a", "a", "b"))
        for tick in range(800):
            pieces.advance(tick / 20)
        for world in (whole, pieces, other):
            world.advance(40.0)
        found[name] = (whole, pieces, other)
    return found


@pytest.mark.parametrize("name", ["chat", "agents", "batch"])
def test_users_get_the_same_however_time_is_cut(worlds: dict[str, Three], name: str) -> None:
    def history(world: World) -> list[tuple[object, ...]]:
        calls = world.services[0].calls
        return [(one.user, one.sent, one.first_byte, one.ended, one.outcome) for one in calls]

    whole, pieces, other = (history(world) for world in worlds[name])
    assert len(whole) > 5
    assert repr(whole) == repr(pieces) != repr(other)


def assert_same(one: dict[str, ParsedFamily], other: dict[str, ParsedFamily]) -> None:
    assert one.keys() == other.keys()
    for name in sorted(one.keys() - {"sglang:fwd_occupancy"}):
        assert one[name].samples == pytest.approx(other[name].samples, rel=1e-9), name


def test_a_page_is_the_same_however_time_is_cut(worlds: dict[str, Three]) -> None:
    whole, pieces, other = (world.replicas[0].page(world.now) for world in worlds["agents"])
    assert_same(parse(whole), parse(pieces))
    assert whole != other


ONE_REPORT = pytest.mark.xfail(strict=True, reason="steps that nobody looked between are told of as their mean or end")


@pytest.mark.parametrize(
    ("flavour", "drafted", "streaming"),
    [
        (Flavour.VLLM, 0, True),
        pytest.param(Flavour.VLLM, 3, True, marks=ONE_REPORT),
        pytest.param(Flavour.SGLANG, 0, True, marks=ONE_REPORT),
        pytest.param(Flavour.SGLANG, 0, False, marks=ONE_REPORT),
    ],
)
def test_a_page_says_the_same_to_who_looks_once_and_to_who_looks_often(
    flavour: Flavour, drafted: int, streaming: bool
) -> None:
    machine = msgspec.structs.replace(MACHINE, drafted=drafted, acceptance=0.5)
    rarely, often = (Process(flavour, machine, max_num_seqs=8) for _ in range(2))
    for process in (rarely, often):
        for _ in range(8):
            process.ask(400, streaming=streaming)
    often.look_often(2.4)
    assert_same(rarely.page(2.4), often.page(2.4))
