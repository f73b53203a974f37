"""An engine without a metrics page on the screen: well, with what it tells, and no error."""

import msgspec
import pytest

from tests.tui import factory
from tests.tui.test_fleet import rows_of
from triage.domain.reading import LoadedModel, ProcessList
from triage.domain.situation import TargetStatus
from triage.domain.target import TargetState
from triage.tui.fleet import Level
from triage.tui.target_text import target_lines

HALF = LoadedModel("/api/ps", "qwen3:32b", 0.62, 8192, "box")


def box(*models: LoadedModel, state: TargetState = TargetState.OK) -> TargetStatus:
    target = msgspec.structs.replace(factory.status("box").target, model=None)
    told = ProcessList("ollama", "0.12.3", models)
    return msgspec.structs.replace(factory.status("box", state), target=target, engine="ollama", processes=told)


def test_its_row_is_well_and_tells_what_is_loaded() -> None:
    row = rows_of(targets=(box(HALF),))["box"]
    assert (row.level, row.state, row.model) == (Level.WELL, TargetState.OK, "qwen3:32b")
    assert row.why == "qwen3:32b, 62 % in GPU memory, context 8,192 · ollama exports no queue and no times"
    assert row.about == "ollama 0.12.3 · http://box:8000"


def test_with_nothing_or_much_loaded() -> None:
    assert rows_of(targets=(box(),))["box"].why.startswith("no model loaded")
    row = rows_of(targets=(box(*[HALF] * 5),))["box"]
    assert row.model == ""
    assert "and 2 more" in row.why


def test_one_that_is_stale_is_to_be_watched() -> None:
    row = rows_of(targets=(box(HALF, state=TargetState.STALE),))["box"]
    assert row.level is Level.WATCH
    assert "seen" in row.why


@pytest.mark.parametrize("width", [40, 80, 140])
def test_its_page_names_every_model_and_what_is_not_known(width: int) -> None:
    lines = [line.plain for line in target_lines(None, box(HALF), width)]
    said = " ".join(" ".join(lines).split())
    assert "qwen3:32b, 62 % in GPU memory, context 8,192" in said
    assert "ollama 0.12.3: no metrics page, so neither queue nor times are known" in said
    assert all(len(line) <= width for line in lines)
    assert "no model" in " ".join(line.plain for line in target_lines(None, box(), width))
