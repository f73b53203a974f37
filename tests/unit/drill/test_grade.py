"""Graded runs add up, the truth decides, and the command prints what scripts may rely on."""

import msgspec
import pytest
from typer.testing import CliRunner

from triage.cli.main import app
from triage.domain.errors import TriageError
from triage.domain.verdict import Confidence, Kind
from triage.drill.course import Look, Run
from triage.drill.grade import GRADING, TUNING, tasks_of
from triage.drill.grade_report import grade_of, to_text
from triage.lab.faults.catalogue import FAULTS, fault_named


def look(said: Kind, truth: Kind, confidence: Confidence | None = Confidence.LIKELY, after_s: float = 90.0) -> Look:
    certain = () if truth is Kind.HEALTHY else (truth,)
    return Look(after_s, said, confidence, None, truth, certain, frozenset({truth}), "summary", "why")


def run(*looks: Look, name: str = "load-surge", seed: str = "grading-0") -> Run:
    return Run(name, "chat", seed, 0.5, looks)


def test_right_abstained_and_wrong_are_counted_by_the_truth_and_apart_where_its_source_is_unread() -> None:
    grade = grade_of(
        [
            run(look(Kind.QUEUEING, Kind.QUEUEING)),
            run(look(Kind.INSUFFICIENT_DATA, Kind.QUEUEING, None)),
            run(look(Kind.SLOW_DECODE, Kind.QUEUEING)),
            run(look(Kind.QUEUEING, Kind.HEALTHY, Confidence.POSSIBLE), name="healthy"),
            run(look(Kind.HEALTHY, Kind.RETRY_STORM, Confidence.POSSIBLE), name="retry-storm"),
        ]
    )
    assert (grade.runs, grade.readable, grade.unread) == (5, 4, 1)
    assert (grade.right, grade.abstained, grade.wrong, grade.top1) == (1, 1, 2, 0.25)
    assert (grade.confident_wrong, grade.healthy, grade.false_alarms) == (1, 1, 1)
    assert grade.confusion["queueing"] == {"queueing": 1, "insufficient-data": 1, "slow-decode": 1}
    assert {miss.said for miss in grade.misses} == {"insufficient-data", "slow-decode", "queueing", "healthy"}


def test_the_last_look_counts_and_the_first_right_one_tells_how_long_it_took() -> None:
    grade = grade_of(
        [run(look(Kind.QUEUEING, Kind.QUEUEING, after_s=30.0), look(Kind.SLOW_DECODE, Kind.QUEUEING, after_s=90.0))]
    )
    assert (grade.right, grade.faults[0].right_after_s) == (0, 30.0)


def test_the_order_in_which_runs_end_changes_nothing() -> None:
    runs = [run(look(Kind.QUEUEING, Kind.QUEUEING), seed=f"grading-{n}") for n in range(3)]
    assert to_text(grade_of(runs)) == to_text(grade_of(runs[::-1]))


def test_seeds_that_tune_never_grade() -> None:
    seeds = {purpose: {task.seed for task in tasks_of(5, purpose=purpose)} for purpose in (TUNING, GRADING)}
    assert len(seeds[TUNING]) == len(seeds[GRADING]) == 5
    assert not seeds[TUNING] & seeds[GRADING]


def test_an_unknown_incident_names_its_neighbours() -> None:
    with pytest.raises(TriageError) as raised:
        fault_named("engine-ded")
    assert "engine-dead" in str(raised.value.hint)


def test_the_commands_list_every_incident_and_grade_one() -> None:
    listed = CliRunner().invoke(app, ["drill", "list"])
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [fault.name for fault in FAULTS]
    graded = CliRunner().invoke(
        app, ["drill", "grade", "engine-dead", "--seeds", "1", "--purpose", "tuning", "--format", "json"]
    )
    assert graded.exit_code == 0
    told = msgspec.json.decode(graded.stdout)
    assert (told["schema"], told["seeds"], told["runs"]) == ("triage.grade/1", ["tuning-0"], 3)
    assert told["right"] + told["abstained"] + told["wrong"] == told["readable"] == 3
