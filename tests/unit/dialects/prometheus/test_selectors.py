"""Dialect tables to selectors: everything a table reads is asked for, and little else."""

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data import RECORDINGS
from triage.dialects.exposition import parse_series, split_lines
from triage.dialects.prometheus.selectors import any_engine, baseline_names_of, names_of, present, selector
from triage.dialects.table import Table, engine_tables
from triage.domain.quantity import Quantity

TABLES = engine_tables()


def pages() -> list[str]:
    return [path.read_text("utf-8", "replace") for path in sorted((RECORDINGS / "vllm").glob("*.prom"))[:3]]


@pytest.mark.parametrize("table", TABLES, ids=[f"{table.engine}-{table.dialect}" for table in TABLES])
def test_every_spelling_that_a_table_reads_is_selected(table: Table) -> None:
    wanted = re.compile(names_of([table]))
    for quantity, metric in table.metrics.items():
        for name in metric.names:
            spellings = [name, f"{name}_total", f"{name}_bucket", f"{name}_sum", f"{name}_count"]
            assert all(map(wanted.fullmatch, spellings)), (quantity, name)
            for prefix in table.prefixes[1:]:
                if name.startswith(table.prefixes[0]):
                    assert wanted.fullmatch(prefix + name[len(table.prefixes[0]) :])
    assert not wanted.fullmatch("node_cpu_seconds_total")
    assert present(TABLES, [table.recognise.any[0]])


def test_what_is_recognised_on_a_page_is_present_in_a_server() -> None:
    for page in pages():
        names = [parse_series(key).name for key in split_lines(page).keys]
        assert "vllm" in {table.engine for table in present(TABLES, names)}
        assert any(map(re.compile(any_engine(TABLES)).fullmatch, names))


def test_a_question_fits_into_what_proxies_let_through() -> None:
    """8 KiB is nginx's bound for a request line; other engines' tables are not asked at the same time."""
    assert len(quote(selector(any_engine(TABLES)))) < 4096
    for table in TABLES:
        assert len(quote(selector(names_of([table]), 'namespace="llm"', ["vllm"]))) < 6144


def test_a_baseline_has_no_buckets_and_what_speed_is_measured_by() -> None:
    vllm = next(table for table in TABLES if (table.engine, table.dialect) == ("vllm", "v1"))
    wanted = re.compile(baseline_names_of([vllm]))
    assert wanted.fullmatch("vllm:inter_token_latency_seconds_sum")
    assert wanted.fullmatch("vllm:num_requests_running")
    assert not wanted.fullmatch("vllm:inter_token_latency_seconds_bucket")
    assert not wanted.fullmatch("vllm:lora_requests_info")
    assert wanted.fullmatch(vllm.metrics[Quantity.GENERATION_TOKENS].names[0] + "_total")


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=3), st.text(max_size=20))
def test_no_job_name_breaks_out_of_its_string(jobs: list[str], probe: str) -> None:
    text = selector("up", "", jobs)
    quoted = re.fullmatch(r'\{__name__=~"up",job=~"((?:[^"\\\n]|\\.)*)"\}', text, re.DOTALL)
    assert quoted is not None
    pattern = quoted[1].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    assert all(re.fullmatch(pattern, job) for job in jobs)
    assert bool(re.fullmatch(pattern, probe)) == (probe in jobs)
