"""The long texts: all evidence of a diagnosis, all quantities of a target."""

import msgspec
import pytest

from tests.tui import factory
from triage.domain.quantity import HISTOGRAMS, OF_FRONT_ENDS, Quantity
from triage.domain.situation import Replica
from triage.domain.target import Target, TargetState
from triage.tui.evidence_text import evidence_lines, verdict_text
from triage.tui.target_text import target_lines


def evidence_of(width: int = 100) -> str:
    return "\n".join(line.plain for line in evidence_lines(factory.queueing(), 0, width))


def target_of(replica: Replica | None, width: int = 140) -> str:
    return "\n".join(line.plain for line in target_lines(replica, factory.status("a"), width))


def test_evidence_has_id_value_unit_threshold_sample_source_age_and_strength() -> None:
    shown = evidence_of()
    assert "+*** 41 requests wait, 38 to 41 over the window" in shown
    for fact in (
        "engine.queue-time · 5.8 s (threshold 0.3) · n=412 · engine",
        "vllm-7f9-abc vllm:request_queue_time_seconds",
        "0.6s old",
        "-*·· KV use of 0.93 could bind as well",
        "phase histograms are observed at finish",
        "slow-decode: 23 ms per token, usual 23 ms, n=28000",
        "gateway log: not configured · costs gateway-timeout, truncated-stream",
        "POSSIBLE  kv-pressure (admission)",
        "30s window · judged at 03:04:05 UTC",
    ):
        assert fact in shown, fact


@pytest.mark.parametrize("width", [20, 40, 79, 139])
def test_long_texts_stay_inside_their_width(width: int) -> None:
    observation = factory.queueing()
    replica = observation.situation.replicas[0]
    lines = [*evidence_lines(observation, 0, width), *target_lines(replica, factory.status("a"), max(width, 79))]
    evidence = evidence_lines(observation, 0, width)
    assert all(line.cell_len <= width for line in evidence[1:] if not line.plain.startswith((" LIKELY", " POSSIBLE")))
    assert all(line.cell_len <= max(width, 79) for line in lines)


def test_the_copied_verdict_is_plain_and_whole() -> None:
    copied = verdict_text(factory.QUEUEING_VERDICT)
    assert copied.startswith(" LIKELY  queueing (sequence-limit)")
    assert "Send the probe twice" in copied
    assert "kv-pressure" not in copied


def test_a_target_names_every_quantity_there_is() -> None:
    shown = target_of(factory.busy("a"))
    for quantity in set(Quantity) - OF_FRONT_ENDS:
        assert quantity.value in shown, quantity
    assert Quantity.POOL_WAITING.value not in shown, "an engine has no pool, and nobody misses it"
    assert "vllm:num_requests_waiting" in shown
    assert "0.6s" in shown


def test_missing_quantities_say_why_and_are_never_zero() -> None:
    shown = target_of(Replica(Target("a"), "m", factory.window(not_applicable=frozenset({Quantity.KV_USAGE})), None))
    assert "– not applicable: kv_usage" in shown
    assert "– not exported: running, waiting," in shown
    missing = [line for line in shown.splitlines() if "ttft" in line]
    assert missing[0].strip().startswith("– not exported")
    assert " 0 " not in shown


def test_histograms_show_intervals_samples_and_the_share_above_the_top() -> None:
    ttft = factory.histogram(factory.TTFT_EDGES, 30.0, 400, above=0.25)
    shown = target_of(Replica(Target("a"), "m", factory.window(histograms={Quantity.TTFT: ttft}), 0.6))
    row = next(line for line in shown.splitlines() if line.startswith("   ttft"))
    assert row.split()[:7] == ["ttft", "30", "20–40", "≥40", "≥40", "400", "25"]
    assert "vllm:time_to_first_token_seconds" in row


def test_a_start_time_is_shown_as_how_long_ago() -> None:
    started = factory.window(gauges={Quantity.PROCESS_START: factory.track(factory.AT - 7300)})
    row = next(
        line for line in target_of(Replica(Target("a"), "m", started, 0.6)).splitlines() if "process_start" in line
    )
    assert row.split()[1:3] == ["2h", "ago"]


def test_a_window_says_what_is_wrong_with_it() -> None:
    window = msgspec.structs.replace(factory.window(assumed=True), resets=2, restarted=True, gaps=1)
    shown = target_of(Replica(Target("a"), "m", window, 0.6))
    assert "interval assumed, 2 counter resets, process restarted inside, 1 gaps" in shown


def test_a_target_without_replica_shows_what_is_known() -> None:
    status = msgspec.structs.replace(
        factory.status("web", TargetState.NO_METRICS, problems=("line 3 is no metric",)),
        families=frozenset({"go_gc", "up"}),
    )
    shown = "\n".join(line.plain for line in target_lines(None, status, 100))
    assert "line 3 is no metric" in shown
    assert "2 metric families: go_gc, up" in shown
    assert "Histograms" not in shown
    assert "no longer among the targets" in "\n".join(line.plain for line in target_lines(None, None, 100))


def test_histogram_quantities_are_not_listed_as_gauges() -> None:
    gauges = target_of(factory.busy("a")).split("Histograms")[0]
    assert not any(f" {quantity.value}," in gauges for quantity in HISTOGRAMS)
