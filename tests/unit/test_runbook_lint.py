"""What lint says about a runbook that breaks a rule, and on which line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.runbook import MARKS, examine, lint

GOOD = """\
---
topic: engine-dead
verdicts: [engine-dead]
aliases: [engine-dead-pod-ready]
severity: critical
last_reviewed: 2026-12-01
---

# Engine dead: gone

## Meaning

Text with `code` and a list without marks:

- one

## Impact

Nobody is served.

## Diagnosis

1. [reads] Look.

   ```sh
   # don't trust Ready
   kubectl -n {namespace} logs {replica} | grep -E 'a|b' | awk '{print $1}'
   ```

### `worker-died`, `engine-dead-pod-ready`: a worker

### `device-lost`: the device

### `process-gone`: the process

## Mitigation

1. [reads] Look again with `curl {url}/metrics`.
2. [changes] Act.
"""


def check(directory: Path, text: str, name: str = "engine-dead.md") -> list[str]:
    """Problems as `line: text`."""
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return [f"{problem.line}: {problem.text}" for problem in lint([path])]


def change(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, f"{old!r} must name one place"
    return GOOD.replace(old, new)


def test_a_good_runbook_has_no_problem(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD) == []
    assert check(tmp_path, GOOD.replace("\n", "\r\n")) == []
    assert check(tmp_path, "\ufeff" + GOOD) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD.removeprefix("---\n"), "1: no front matter: the file must begin with fields between two lines of ---"),
        ("", "1: no front matter: the file must begin with fields between two lines of ---"),
        ("---\ntopic: x\n", "1: no front matter: the file must begin with fields between two lines of ---"),
        (change("severity: critical\n", ""), "1: front matter lacks severity"),
        (change("topic: engine-dead\n", ""), "1: front matter lacks topic"),
        (change("topic: engine-dead", "topic: dead"), "2: topic is 'dead', but the file is called 'engine-dead'"),
        (change("topic: engine-dead", "topic: [dead]"), "2: topic must be one word"),
        (
            change("verdicts: [engine-dead]", "verdicts: [engine-daed]"),
            "3: verdicts: unknown word 'engine-daed': did you mean engine-dead?",
        ),
        (
            change("verdicts: [engine-dead]", "verdicts: engine-dead"),
            "3: verdicts must be a list of words, as in [one, two]",
        ),
        (change("verdicts: [engine-dead]", "verdicts: []"), "3: verdicts must be a list of words, as in [one, two]"),
        (
            change("aliases: [engine-dead-pod-ready]", "aliases:\n- engine-dead-pod-ready\n- Two Words"),
            "6: aliases: 'Two Words' is not a word of lower-case letters, digits and hyphens",
        ),
        (
            change("severity: critical", "severity: crtical"),
            "5: severity: unknown word 'crtical': did you mean critical?",
        ),
        (
            change("severity: critical", "severity: x"),
            "5: severity: unknown word 'x': known are critical, warning, info",
        ),
        (
            change("last_reviewed: 2026-12-01", "last_reviewed: yesterday"),
            "6: last_reviewed must be a date such as 2026-12-01, not 'yesterday'",
        ),
        (
            change("severity: critical", "severity: critical\nseverty: x"),
            "6: front matter has an unknown field 'severty': did you mean severity?",
        ),
        (change("severity: critical", "severity: critical\nseverity: info"), "6: front matter has severity twice"),
        (change("aliases: [engine-dead-pod-ready]", "aliases: [engine-dead-pod-ready"), "5: front matter is not YAML"),
        (change("topic: engine-dead\n", "- a\n- b\n"), "4: front matter is not YAML"),
        ("---\njust words\n---\n", "2: front matter must be fields, as in topic: queueing"),
        ("---\n---\n" + GOOD, "2: front matter must be fields, as in topic: queueing"),
        (change("# Engine dead: gone\n", ""), "8: no title"),
        (change("## Impact", "## Effect"), "17: heading 'Effect' is none of Meaning, Impact, Diagnosis, Mitigation"),
        (change("## Impact", "### Impact"), "8: heading Impact is missing"),
        (change("## Impact", "```\n## Impact\n```"), "8: heading Impact is missing"),
        (change("## Mitigation\n", "## Mitigation\n\n## Impact\n"), "38: heading Impact a second time"),
        (
            GOOD.replace("## Meaning", "## X").replace("## Impact", "## Meaning").replace("## X", "## Impact"),
            "17: heading Meaning comes too late: the order is Meaning, Impact, Diagnosis, Mitigation",
        ),
        (change("1. [reads] Look.\n", "1. Look.\n"), "23: step does not begin with [reads] or [changes]"),
        (change("2. [changes] Act.", "* Act."), "39: step does not begin with [reads] or [changes]"),
        (change("2. [changes] Act.", "2. [changes]Act."), "39: step does not begin with [reads] or [changes]"),
        (
            change("2. [changes] Act.", "2. [changes] Act.\n   - Nested."),
            "40: step does not begin with [reads] or [changes]",
        ),
        (GOOD[: GOOD.index("1. [reads] Look again")], "36: Mitigation has no step"),
        (
            change("### `device-lost`: the device", "### device-lost: the device"),
            "8: sub-cause device-lost of engine-dead has no section: a heading such as ### `device-lost`",
        ),
        (
            change("`worker-died`, `engine-dead-pod-ready`", "`worker-died`"),
            "8: alias engine-dead-pod-ready has no section: a heading such as ### `engine-dead-pod-ready`",
        ),
        (change("   ```\n", ""), "25: block of code is never closed"),
        (change("Nobody is served.", "Nobody is `served."), "19: backtick without a partner on its line"),
        (change("{replica}", "{pod}"), "27: unknown placeholder {pod}: known are replica,"),
        (change("Nobody is served.", "| a | {model} |"), "19: placeholder {model} in a table"),
        (change("{replica}", "'{replica}'"), "27: placeholder {replica} inside quotes"),
        (change("{replica}", '"x {replica}"'), "27: placeholder {replica} inside quotes"),
        (change("`curl {url}/metrics`", "`curl '{url}/metrics'`"), "38: placeholder {url} inside quotes"),
    ],
    ids=lambda value: value if value[:1].isdigit() else "",
)
def test_each_rule_names_its_line(tmp_path: Path, text: str, problem: str) -> None:
    found = check(tmp_path, text)
    assert any(line.startswith(problem) for line in found), found


@pytest.mark.parametrize(
    "text",
    [
        change("Nobody is served.", r"A \` is no code, `` ` `` is."),
        change("Nobody is served.", "Nothing of the shell: `${replica}` and `%{http_code}`."),
        change("{replica} |", "{replica} 'it''s' \"$HOME\" \\' |"),
        change("# don't trust Ready", "echo a # it's"),
        change("{replica}", "'x'{replica}'y'"),
        change("   ```sh\n", "   ~~~~ sh\n   ```\n   ~~~\n").replace("   ```\n\n###", "   ~~~~\n\n###"),
    ],
    ids=[
        "escaped backticks",
        "shell and curl variables",
        "quotes that close",
        "quote in a comment",
        "between quotes",
        "tildes",
    ],
)
def test_what_only_looks_wrong_is_left_alone(tmp_path: Path, text: str) -> None:
    assert check(tmp_path, text) == []


def test_several_problems_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = change("## Impact", "## Effect").replace("2. [changes] Act.", "2. Act.").replace("{url}", "{uri}")
    lines = [int(problem.split(":")[0]) for problem in check(tmp_path, text)]
    assert lines == sorted(lines)
    assert len(lines) == 4


def test_a_word_leads_to_one_runbook(tmp_path: Path) -> None:
    one, two = tmp_path / "engine-dead.md", tmp_path / "second.md"
    one.write_text(GOOD, encoding="utf-8")
    two.write_text(change("topic: engine-dead", "topic: second"), encoding="utf-8")
    problems = [str(problem) for problem in lint([one, two])]
    assert problems == [
        f"{two}:1: engine-dead already leads to engine-dead.md",
        f"{two}:1: engine-dead-pod-ready already leads to engine-dead.md",
    ]


def test_what_cannot_be_read_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "bytes.md").write_bytes(b"---\n\xff\xfe\n---\n")
    missing = tmp_path / "missing.md"
    (problem,) = lint([tmp_path / "bytes.md"])
    assert "cannot be read" in problem.text
    (problem,) = lint([missing])
    assert str(problem).startswith(f"{missing}:1: cannot be read")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet=st.sampled_from("-#`~[]{}:'\"\\|!&*%@ \n\tabdrs123.,"), max_size=200))
def test_no_text_makes_it_crash(tmp_path: Path, text: str) -> None:
    path = tmp_path / "engine-dead.md"
    path.write_text(text, encoding="utf-8")
    assert lint([path])  # nothing this short and random keeps all rules
    path.write_text(GOOD.split("\n## Meaning")[0] + "\n" + text, encoding="utf-8")
    lint([path])
    assert examine(path)[0] is not None


@given(mark=st.sampled_from(MARKS), words=st.text(alphabet="abc {}", max_size=20))
def test_a_mark_counts_only_in_front(mark: str, words: str) -> None:
    from triage.runbook.lint import _steps
    from triage.runbook.markdown import scan

    good = list(_steps(list(scan(f"## Diagnosis\n- {mark} {words}", 1))))
    assert good == []
    assert list(_steps(list(scan(f"## Diagnosis\n- x {words} {mark}", 1))))
