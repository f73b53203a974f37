"""Metrics that show the past: a page served again and again, gauges nobody writes, an exporter that repeats itself."""

from collections.abc import Sequence

from triage.diagnosis.devices import gpu_evidence, stands_still
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.text import count, many, seconds
from triage.diagnosis.thresholds import STALL_SECONDS
from triage.diagnosis.view import ReplicaView
from triage.diagnosis.witness import probe_evidence
from triage.domain.absence import known, value_or
from triage.domain.quantity import Quantity
from triage.domain.situation import GpuWindow
from triage.domain.stream import ProbeReading
from triage.domain.verdict import Kind, Scope


def page_is_old(view: ReplicaView) -> bool:
    """Not even the process's own CPU time moved, which answering a scrape costs (0.1 s in 30 s on a stalled vLLM)."""
    window = view.window
    cpu = window.delta(Quantity.PROCESS_CPU)
    still = view.comparable and window.seconds >= STALL_SECONDS and known(cpu) and cpu == 0
    return still and window.first.values == window.last.values


def stale_page(view: ReplicaView) -> Hypothesis:
    return Hypothesis(
        kind=Kind.METRICS_FROZEN,
        detail="stale-page",
        scope=Scope(model=view.model or None, replica=view.name),
        summary="the same page is served again and again: it is a copy, not the engine's own answer",
        evidence=(
            view.evidence(
                "same-page",
                f"no series moved in {seconds(view.window.seconds)}, not even the process's CPU time",
                quantity=Quantity.PROCESS_CPU,
                strength=3,
                value=0.0,
                unit="s",
                threshold=0.0,
            ),
        ),
        next_test="scrape the replica past every proxy and compare",
    )


def frozen_gauges(view: ReplicaView, answered: Sequence[ProbeReading]) -> Hypothesis:
    running = view.running
    evidence = (
        probe_evidence(answered[0], "answered", f"{answered[0].target}: a request was answered with tokens", 3),
        view.evidence(
            "still",
            f"every counter stands still with {many(running.last if running else 0, 'request')} running",
            quantity=view.work_quantity,
            value=0.0,
        ),
    )
    return Hypothesis(
        kind=Kind.METRICS_FROZEN,
        detail="stale-gauges",
        scope=Scope(model=view.model or None, replica=view.name),
        summary="the engine answers while its metrics stand still: the page shows the past",
        evidence=evidence,
        next_test="scrape again right after one answered request: the counters must have moved",
    )


def judge_stale_exporters(gpus: Sequence[GpuWindow], views: Sequence[ReplicaView]) -> list[Hypothesis]:
    """A GPU exporter that repeats its last values while engines make tokens."""
    frozen = [gpu for gpu in gpus if stands_still(gpu)]
    working = [view for view in views if known(view.generated) and view.generated > 0]
    if not frozen or not working:
        return []
    tokens = sum(value_or(view.generated, 0.0) for view in working)
    return [
        Hypothesis(
            kind=Kind.METRICS_FROZEN,
            detail="stale-exporter",
            scope=Scope(node=frozen[0].last.node or None),
            summary="the GPU exporter repeats old values: its energy counter stands still while engines make tokens",
            evidence=(
                gpu_evidence(frozen[0], "same", "two scrapes are equal down to the energy counter", strength=3),
                working[0].evidence(
                    "tokens",
                    f"{count(tokens)} tokens were generated meanwhile",
                    quantity=Quantity.GENERATION_TOKENS,
                    value=tokens,
                    unit="tokens",
                ),
            ),
            next_test="restart nothing yet: read the exporter's log for collection errors",
        )
    ]
