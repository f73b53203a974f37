"""Reports: the JSON contract, stable bytes, and hostile text in every form."""

import json

import jsonschema
import msgspec
import pytest

from tests.cases.public import FOLDER, engine_cases
from tests.factory import serving, situation
from triage.diagnosis.diagnose import diagnose
from triage.report.document import iso, json_schema, to_json
from triage.report.plain import to_markdown, to_text
from triage.situation.folder import load_folder


@pytest.mark.parametrize("case", engine_cases())
def test_every_report_fits_the_shipped_schema(case: str) -> None:
    found = load_folder(FOLDER / case)
    answer = json.loads(to_json(found, diagnose(found)))
    jsonschema.validate(answer, json.loads(msgspec.json.encode(json_schema())))
    assert list(answer)[:3] == ["schema", "at", "window_s"]
    assert answer["schema"] == "triage.diagnosis/1"
    assert answer["verdicts"]


@pytest.mark.parametrize("case", ["R02", "C03", "R14", "C87"])
def test_the_same_folder_gives_the_same_bytes(case: str) -> None:
    one, other = load_folder(FOLDER / case), load_folder(FOLDER / case)
    assert to_json(one, diagnose(one)) == to_json(other, diagnose(other))


def test_text_says_what_matters_first() -> None:
    case = situation(serving(waiting=24, ttft=9.0, queue=8.5))
    lines = to_text(case, diagnose(case)).splitlines()
    assert lines[2].startswith("LIKELY queueing (sequence-limit) · m a")
    text = "\n".join(lines)
    for part in ("share", "for", "next", "runbook  triage runbook show queueing", "ruled out", "targets"):
        assert part in text


def test_markdown_keeps_remote_text_in_code_spans() -> None:
    hostile = "x`](http://evil)<script>"
    case = situation(serving(hostile, waiting=24, ttft=9.0, queue=8.5, model=hostile))
    for line in to_markdown(case, diagnose(case)).splitlines():
        outside = "".join(line.split("`")[::2])
        assert "<script>" not in outside, line


def test_times_are_utc() -> None:
    assert iso(1796096493.0) == "2026-12-01T03:41:33Z"
    assert iso(1796096493.25) == "2026-12-01T03:41:33.250Z"
    assert iso(None) is None
