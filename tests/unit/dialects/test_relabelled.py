"""Pages whose series come under names that no engine exports."""

import re
from pathlib import Path

import pytest

from tests.data import RECORDINGS
from triage.dialects.pages import read_page
from triage.domain.reading import PageReading
from triage.domain.target import Target

ENGINES = [
    ("vllm", "vllm:", "vllm/vllm-0.32.0-queueing.prom"),
    ("sglang", "sglang:", "sglang/sglang-0.5.23-queueing.prom"),
]
PAGES = sorted(path for path in RECORDINGS.rglob("*.prom"))


def read(text: str) -> PageReading:
    return read_page(text.encode(), Target("a"), "page", None)


@pytest.mark.parametrize(("engine", "own", "name"), ENGINES)
@pytest.mark.parametrize("other", ["platform_llm_", "otel_llm_", "team7:"])
def test_an_engine_under_another_beginning_is_recognised(engine: str, own: str, name: str, other: str) -> None:
    page = read((RECORDINGS / name).read_text().replace(own, other))
    assert not page.engines
    assert page.relabelled.startswith(f"{engine}'s ")
    assert f" is {other}" in page.relabelled
    assert page.relabelled in str(page.no_engine())


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_page_as_it_was_exported_is_called_relabelled(path: Path) -> None:
    assert read(path.read_text(errors="replace")).relabelled == ""


def test_a_few_like_names_are_anybodys() -> None:
    text = (RECORDINGS / ENGINES[0][2]).read_text()
    kept = [line for line in text.splitlines() if re.match(r"vllm:(num_requests_|kv_cache_usage)", line)]
    assert read("\n".join(kept).replace("vllm:", "my_app_")).relabelled == ""
