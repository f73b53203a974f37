"""The readings of every public case against the numbers that a correct reader gets from its scrapes."""

import shutil
from pathlib import Path

import pytest

from tests.cases.public import FOLDER, all_cases, expected
from triage.domain.absence import known
from triage.domain.quantity import Quantity as Q
from triage.domain.window import Window
from triage.situation.folder import load_folder

# name in expected.yaml: how it is read out of a window. Histogram means there have no sample minimum.
READERS = {
    "running": lambda w: w.gauges[Q.RUNNING].last,
    "waiting": lambda w: w.gauges[Q.WAITING].last,
    "inflight": lambda w: w.gauges[Q.INFLIGHT].last,
    "queued": lambda w: w.gauges[Q.QUEUED].last,
    "kv_usage_max": lambda w: w.gauges[Q.KV_USAGE].last,
    "generation_tokens_delta": lambda w: w.delta(Q.GENERATION_TOKENS),
    "prompt_tokens_delta": lambda w: w.delta(Q.PROMPT_TOKENS),
    "preemptions_delta": lambda w: w.delta(Q.PREEMPTIONS),
    "engine_steps_delta": lambda w: w.delta(Q.ENGINE_STEPS),
    "prefix_queries_delta": lambda w: w.delta(Q.PREFIX_QUERIES),
    "prefix_hits_delta": lambda w: w.delta(Q.PREFIX_HITS),
    "aborts_delta": lambda w: w.delta(Q.ABORTED),
    # The Dynamo worker re-exports no finish counter; its end-to-end histogram counts the same requests.
    "finished_delta": lambda w: w.delta(Q.FINISHED if Q.FINISHED in w.last.values else Q.E2E),
    "draft_tokens_delta": lambda w: w.delta(Q.DRAFT_TOKENS),
    "accepted_tokens_delta": lambda w: w.delta(Q.ACCEPTED_TOKENS),
    "itl_mean_ms": lambda w: w.mean(Q.ITL, 1) * 1000,
    "ttft_mean_s": lambda w: w.mean(Q.TTFT, 1),
    "queue_time_mean_s": lambda w: w.mean(Q.QUEUE_TIME, 1),
    "prefill_time_mean_s": lambda w: w.mean(Q.PREFILL_TIME, 1),
}
# Names that mean an earlier window of the same target (cli.md), not a target.
BASELINES = ("baseline", "before")


def windows(case: str, copy: Path) -> dict[str, Window]:
    """Windows by target name; the facts are about -t0 and -t1, so a third scrape stays out."""
    for file in (FOLDER / case).iterdir():
        if file.suffix == ".prom" and not file.stem.endswith("-t2"):
            shutil.copy(file, copy)
    found: dict[str, Window] = {}
    for replica in load_folder(copy).replicas:
        found[replica.target.name] = replica.window
        if replica.baseline is not None:
            found.update(dict.fromkeys(BASELINES, replica.baseline))
    return found


def facts() -> list[tuple[str, str, str, float]]:
    return [
        (case, target, name, value)
        for case in all_cases()
        for target, values in (expected(case).get("facts") or {}).items()
        for name, value in values.items()
    ]


def test_there_are_facts_and_every_name_has_a_reader() -> None:
    assert len(facts()) > 500
    assert {name for _, _, name, _ in facts()} <= set(READERS)


@pytest.mark.parametrize("case", sorted({case for case, _, _, _ in facts()}))
def test_readings_are_the_facts(case: str, tmp_path: Path) -> None:
    own = windows(case, tmp_path)
    wrong = []
    for _, target, name, value in (fact for fact in facts() if fact[0] == case):
        read = READERS[name](own[target])
        if not known(read) or read != pytest.approx(value, rel=2e-3, abs=5e-4):
            wrong.append((target, name, value, read))
    assert not wrong
