"""The diagnosis on every public case: right often, wrong rarely, confidently wrong never."""

from functools import cache

import pytest

from tests.cases.public import FOLDER, all_cases, engine_cases, expected
from triage.diagnosis.diagnose import diagnose
from triage.domain.verdict import Confidence, Diagnosis, Kind
from triage.situation.folder import load_folder

SURE = (Confidence.LIKELY, Confidence.CONFIRMED)


@cache
def judged(case: str) -> Diagnosis:
    return diagnose(load_folder(FOLDER / case))


def outcome(case: str) -> str:
    first, answer = judged(case).verdicts[0], expected(case)
    if first.kind.value in (answer["verdict"], *answer["also_acceptable"]):
        return "right"
    if first.kind is Kind.INSUFFICIENT_DATA:
        return "abstained"
    if first.kind.value in answer["must_not_conclude"] or first.confidence in SURE:
        return "confident"
    return "wrong"


@pytest.mark.parametrize("case", all_cases())
def test_nothing_wrong_is_said_with_confidence(case: str) -> None:
    assert outcome(case) != "confident", judged(case).verdicts[0].summary


def test_most_engine_cases_are_right() -> None:
    cases = engine_cases()
    assert len(cases) == 30
    outcomes = {case: outcome(case) for case in cases}
    right = [case for case, result in outcomes.items() if result == "right"]
    assert len(right) >= 0.8 * len(cases), outcomes
    assert sum(result in ("wrong", "confident") for result in outcomes.values()) <= 0.05 * len(cases), outcomes


def test_right_causes_are_mostly_said_with_confidence() -> None:
    firsts = [judged(case).verdicts[0] for case in engine_cases() if outcome(case) == "right"]
    causes = [v for v in firsts if v.kind not in (Kind.HEALTHY, Kind.INSUFFICIENT_DATA)]
    said = [v for v in causes if v.confidence in SURE]
    assert len(said) >= 0.6 * len(causes)


@pytest.mark.parametrize("case", all_cases())
def test_not_judged_yet_names_a_source_that_would_help(case: str) -> None:
    first = judged(case).verdicts[0]
    if first.kind is Kind.INSUFFICIENT_DATA:
        assert first.next_test.startswith("collect: ")
        assert len(first.next_test) > len("collect: ")


# What decides each case, as its expected.yaml says in words: ids of evidence that must stand under the
# first verdict. A later detector may add others; these may not go.
DECISIVE = {
    "C01": {"engine.head-of-queue", "engine.waiting"},
    "C02": {"engine.log.prompt-ceiling", "engine.prompt-per-token"},
    "C03": {"engine.rank-queues", "engine.rank-kv"},
    "C06": {"engine.preemptions", "engine.kv-full"},
    "C08": {"engine.log.kv-full", "engine.log.context-error"},
    "C14": {"engine.no-progress", "probe.no-token"},
    "C21": {"engine.running", "probe.no-token"},
    "C22": {"engine.no-progress", "engine.log.stall-warning"},
    "C23": {"engine.idle", "probe.token"},
    "C25": {"engine.idle"},
    "C30": {"engine.per-token", "engine.acceptance"},
    "C33": {"engine.works"},
    "C35": {"probe.reasoning", "engine.tokens-flow"},
    "C42": {"probe.stream"},
    "C81": {"engine.renamed.vllm:gpu_cache_usage_perc"},
    "C84": {"gpu.no-profiling"},
    "C110": {"engine.per-token", "engine.acceptance", "engine.no-queue"},
    "C111": {"engine.per-token", "gpu.link", "engine.no-queue"},
    "R01": {"engine.works", "probe.token"},
    "R02": {"engine.waiting", "engine.queue-time", "engine.kv-free"},
    "R03": {"engine.preemptions", "engine.waiting"},
    "R04": {"engine.no-progress", "probe.no-token"},
    "R05": {"engine.log.fatal", "probe.health", "engine.gauges-frozen"},
    "R07": {"probe.reasoning", "engine.first-token-early"},
    "R09": {"engine.prompt-per-token", "engine.prefill-time"},
    "R11": {"engine.replica-queue", "engine.replica-idle", "probe.replicas"},
    "R12": {"engine.per-token", "kubernetes.cpu-throttled", "engine.no-queue"},
    "R13": {"engine.waiting", "engine.kv-free"},
    "R14": {"engine.waiting", "engine.kv-free"},
}


@pytest.mark.parametrize("case", sorted(DECISIVE))
def test_decisive_evidence_is_listed(case: str) -> None:
    listed = {item.id for item in judged(case).verdicts[0].evidence}
    assert listed >= DECISIVE[case]


def test_every_engine_case_has_decisive_evidence_or_is_undecidable() -> None:
    undecidable = {case for case in engine_cases() if expected(case)["verdict"] == "insufficient-data"}
    assert set(engine_cases()) == set(DECISIVE) | undecidable
