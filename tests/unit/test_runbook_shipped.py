"""The runbooks that ship: complete, alike, true to their marks, and safe to copy from."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from triage.domain.verdict import DETAILS, Kind
from triage.resources import shipped
from triage.runbook import MARKS, PLACEHOLDERS, Runbook, Severity, lint, load, render
from triage.runbook.markdown import Line, Part, heading, item, scan

# The verdicts that engine metrics, logs and probes can give.
KINDS = (
    Kind.QUEUEING,
    Kind.SLOW_PREFILL,
    Kind.HIDDEN_REASONING,
    Kind.SLOW_DECODE,
    Kind.KV_PRESSURE,
    Kind.LOAD_IMBALANCE,
    Kind.ENGINE_STALLED,
    Kind.ENGINE_DEAD,
    Kind.CACHE_MISS_REGRESSION,
    Kind.COLD_START,
    Kind.METRICS_MISSING,
    Kind.METRICS_FROZEN,
    Kind.METRICS_RENAMED,
    Kind.TRUNCATED_STREAM,
    Kind.EMPTY_OUTPUT,
    Kind.TOOL_CALL_FAILURE,
    Kind.OVER_REJECTION,
    Kind.CLIENT_ABORT,
    Kind.HEALTHY,
    Kind.INSUFFICIENT_DATA,
)
# Topics that the recorded cases name for these verdicts.
TOPICS = {
    Kind.QUEUEING: ("queue-limits", "lora-slots", "autoscaling-signal", "health-check-under-load"),
    Kind.SLOW_PREFILL: ("prefill-saturation",),
    Kind.HIDDEN_REASONING: ("reasoning-budget",),
    Kind.SLOW_DECODE: ("spec-decode", "cpu-starvation", "gpu-link"),
    Kind.KV_PRESSURE: ("kv-cache-capacity",),
    Kind.LOAD_IMBALANCE: ("dp-load-balance", "session-affinity", "endpoint-picker"),
    Kind.ENGINE_STALLED: ("engine-hang", "nccl-hang"),
    Kind.ENGINE_DEAD: ("engine-dead-pod-ready",),
    Kind.CACHE_MISS_REGRESSION: ("prefix-cache",),
    Kind.COLD_START: ("weights-loading", "startup-budget", "compile-cache"),
    Kind.METRICS_MISSING: ("metrics-collection",),
    Kind.METRICS_FROZEN: ("stale-series",),
    Kind.METRICS_RENAMED: ("metric-aliases",),
    Kind.TRUNCATED_STREAM: (),
    Kind.EMPTY_OUTPUT: ("reasoning-parser",),
    Kind.TOOL_CALL_FAILURE: ("tool-parser",),
    Kind.OVER_REJECTION: ("context-limits", "clock-skew"),
    Kind.CLIENT_ABORT: ("client-timeouts",),
    Kind.HEALTHY: ("log-noise", "gauge-semantics", "batch-size", "stream-termination", "gpu-power"),
    Kind.INSUFFICIENT_DATA: ("histogram-saturation",),
}
LIBRARY = load()
BOOKS = pytest.mark.parametrize("book", LIBRARY.runbooks, ids=lambda book: book.topic)
BASH = shutil.which("bash")
# What a command may do in a step that is marked as reading, or in none.
READING_VERBS = {"get", "describe", "logs", "top", "rollout history"}


def test_they_keep_all_rules() -> None:
    assert [str(problem) for problem in lint(sorted(shipped("runbooks").glob("*.md")))] == []
    assert LIBRARY.problems == ()


@pytest.mark.parametrize("kind", KINDS)
def test_every_verdict_has_one_of_its_own_name(kind: Kind) -> None:
    book = LIBRARY.for_kind(kind)
    assert book is not None
    assert book.topic == kind.value
    assert book.title.count(": ") == 1  # the list shows what stands behind it


@pytest.mark.parametrize("kind", KINDS)
def test_every_topic_of_the_cases_leads_to_a_section(kind: Kind) -> None:
    for topic in TOPICS[kind]:
        found = LIBRARY.find(topic)
        assert kind in found.runbook.kinds
        assert found.section is not None
    book = LIBRARY.for_kind(kind)
    assert book is not None
    assert set(book.aliases) == set(TOPICS[kind])
    assert all(book.section(detail) for detail in DETAILS.get(kind, ()))


def test_what_stops_service_is_critical_and_what_does_not_is_not() -> None:
    critical = {book.topic for book in LIBRARY.runbooks if book.severity is Severity.CRITICAL}
    assert critical == {"engine-dead", "engine-stalled"}


@BOOKS
def test_it_is_short_enough_to_read_at_night_and_fits_80_columns(book: Runbook) -> None:
    assert 60 <= book.body.count("\n") + book.first <= 126
    wide = [line.number for line in scan(book.body, book.first) if line.part is Part.CODE and len(line.text) > 76]
    assert wide == []


@BOOKS
def test_it_says_what_it_is_not_and_what_not_to_do(book: Runbook) -> None:
    meaning, _, rest = book.body.partition("## Impact")
    others = {kind.value for kind in Kind if kind not in book.kinds}
    assert others & set(re.findall(r"\*([a-z-]+)\*", meaning)), "no neighbour named"
    assert "**Do not " in rest.partition("## Mitigation")[2]


@BOOKS
def test_mitigation_begins_with_what_is_safest(book: Runbook) -> None:
    """A restart is never the first thing, except where nothing is left to lose."""
    mitigation = book.body.partition("## Mitigation")[2]
    first = next(found for found in map(item, scan(mitigation, 1)) if found)
    if book.topic != "engine-dead":
        assert "restart" not in first.lower()


def commands(book: Runbook) -> Iterator[tuple[str, Line]]:
    """Every line of code that is a command, with the mark that it stands under."""
    mark = ""
    for line in scan(book.body, book.first):
        step = item(line)
        if step is not None:
            mark = next((mark for mark in MARKS if step.startswith(mark)), "")
        if heading(line) is not None:
            mark = ""
        if line.part is Part.CODE:
            yield mark, line
        elif line.part is Part.TEXT:
            for span in re.findall(r"`([^`]+)`", line.text):
                yield mark, Line(line.number, span, Part.CODE)


@BOOKS
def test_marks_are_honest(book: Runbook) -> None:
    for mark, line in commands(book):
        if mark == "[changes]":
            continue
        for verb in re.findall(r"\bkubectl (?:-n \S+ )?(rollout \w+|[a-z]+)", line.text):
            assert verb in READING_VERBS, f"{book.path.name}:{line.number}: {verb} changes something"
        assert not re.search(r"-X (POST|PUT|DELETE)|py-spy|\bsudo\b|\bkill\b|\brm\b", line.text), line


def test_admin_routes_are_only_called_in_steps_that_change() -> None:
    found = {
        (book.topic, mark) for book in LIBRARY.runbooks for mark, line in commands(book) if "/wake_up" in line.text
    }
    assert found == {("engine-stalled", "[changes]")}


def shell_blocks(markdown: str) -> list[str]:
    return [found[1] for found in re.finditer(r"^ *```sh\n(.*?)^ *```$", markdown, re.DOTALL | re.MULTILINE)]


@pytest.mark.skipif(BASH is None, reason="needs bash")
@BOOKS
def test_commands_are_shell(book: Runbook) -> None:
    names = dict.fromkeys(PLACEHOLDERS, "name")
    for block in shell_blocks(render(book, names)):
        answer = subprocess.run(
            [BASH or "", "-n"], input=block, capture_output=True, text=True, check=False, timeout=30
        )
        assert (answer.returncode, answer.stderr) == (0, ""), block


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_hostile_names_run_nothing_and_stay_one_word(tmp_path: Path) -> None:
    """All commands of all runbooks at once, with programs that only write down what they were given."""
    name = "x'; touch pwned; $(touch pwned) `touch pwned` \" | touch pwned & > pwned #"
    programs, place, notes = tmp_path / "bin", tmp_path / "work", tmp_path / "notes"
    programs.mkdir()
    place.mkdir()
    for program in ("curl", "kubectl", "nvidia-smi", "dmesg", "triage", "sleep", "date"):
        stub = programs / program
        stub.write_text(
            '#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done >>"$NOTES"\n'
            'case "$*" in *"@-"*) printf "BODY " >>"$NOTES"; tr -d "\\n" >>"$NOTES"; echo >>"$NOTES";; esac\n',
            encoding="utf-8",
        )
        stub.chmod(0o755)
    names = dict.fromkeys(PLACEHOLDERS, name)
    script = "\n".join(block for book in LIBRARY.runbooks for block in shell_blocks(render(book, names)))
    subprocess.run(
        [BASH or ""],
        input=f'{script}\necho finished >>"$NOTES"\n',
        cwd=place,
        env={"PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin", "NOTES": str(notes), "TRIAGE_API_KEY": "k"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert not (place / "pwned").exists()
    given = notes.read_text(encoding="utf-8").splitlines()
    assert given[-1] == "finished"  # no quote was left open on the way
    assert given.count(name) > 20
    assert f"{name}/metrics" in given


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_request_bodies_are_json(tmp_path: Path) -> None:
    stub = tmp_path / "curl"
    stub.write_text('#!/bin/sh\ncase "$*" in *"@-"*) tr -d "\\n"; echo;; esac\n', encoding="utf-8")
    stub.chmod(0o755)
    bodies = []
    for book in LIBRARY.runbooks:
        for block in shell_blocks(render(book, {"model": "org/model-7b:v1"})):
            if "@-" not in block:
                continue
            # Only what is sent matters: what would cut, count or store it is left out.
            sent = re.sub(r" \| (cut|sed) .*$| >\S+$", "", block.replace("<", "").replace(">", ""), flags=re.MULTILINE)
            answer = subprocess.run(
                [BASH or ""],
                input=sent,
                cwd=tmp_path,
                env={"PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin"},
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            bodies += [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]
    assert len(bodies) > 10
    assert {body["model"] for body in bodies} == {"org/model-7b:v1"}
    assert all(1 <= body["max_tokens"] <= 200 for body in bodies)
