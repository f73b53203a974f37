"""`triage drill`: lists, and runs without a terminal."""

import pytest

from tests.cli.run import triage


def test_every_incident_is_listed_with_what_it_is() -> None:
    answer = triage("drill", "list")
    assert answer.returncode == 0
    assert "load-surge" in answer.stdout
    assert "(agents only)" in answer.stdout


@pytest.mark.parametrize(("said", "code"), [("slow-decode", 0), ("queueing", 1)])
def test_a_run_gives_the_page_and_the_truth(said: str, code: int) -> None:
    answer = triage("drill", "run", "speculation-collapse", "--seed", "s", "--answer", said)
    assert answer.returncode == code, answer.stderr
    page, _, end = answer.stdout.partition("\n\n")
    assert page
    assert "speculation" not in page, "the page tells symptoms only"
    assert "it was    speculation-collapse" in end
    assert f"{said}: {'right' if code == 0 else 'not right'}" in end


@pytest.mark.parametrize(
    "words",
    [
        ["--answer", "fire"],
        ["metoer"],
        ["load-surge", "--workload", "games"],
        ["affinity-lost", "--workload", "chat"],
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(words: list[str]) -> None:
    answer = triage("drill", "run", *words)
    assert answer.returncode == 2
    assert answer.stdout == ""
