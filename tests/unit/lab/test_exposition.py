import math
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triage.lab.pages.exposition import LiveHistogram, Page, labels, number

SHARED_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (0.3157894736842105, "0.3157894736842105"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (1.1e6, "1.1e+06"),
        (1796092811.3284733, "1.7960928113284733e+09"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
        (-2_000_000.0, "-2000000.0"),
    ],
)
def test_numbers_look_as_in_the_recordings(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(allow_nan=False))
def test_a_number_survives_the_page(value: float) -> None:
    assert float(number(value)) == value


@SHARED_FIXTURES
@given(st.text(max_size=40))
def test_any_label_value_survives_the_page(parse_page: Callable, value: str) -> None:
    page = Page(created=None)
    page.gauge("thing", "A thing.", [(labels(model_name=value, engine="0"), 1.0)])
    (sample,) = parse_page(page.text())["thing"].samples
    assert dict(sample[1]) == {"model_name": value, "engine": "0"}


@SHARED_FIXTURES
@given(st.lists(st.tuples(st.sampled_from([0.05, 0.1, 0.11, 0.5, 0.51, 7.0]), st.integers(1, 9)), max_size=30))
def test_buckets_are_cumulative_and_an_edge_belongs_below(
    parse_page: Callable, observations: list[tuple[float, int]]
) -> None:
    histogram = LiveHistogram((0.1, 0.5))
    for value, times in observations:
        histogram.observe(value, times)
    page = Page(created=5.0)
    page.histogram("wait_seconds", "Waiting.", [(labels(engine="0"), histogram)])
    families = parse_page(page.text())
    samples = {
        (name, dict(where).get("le")): value for (name, where), value in families["wait_seconds"].samples.items()
    }

    def upto(edge: float) -> int:
        return sum(times for value, times in observations if value <= edge)

    assert samples["wait_seconds_bucket", "0.1"] == upto(0.1)
    assert samples["wait_seconds_bucket", "0.5"] == upto(0.5)
    assert samples["wait_seconds_bucket", "+Inf"] == samples["wait_seconds_count", None] == upto(math.inf)
    assert samples["wait_seconds_sum", None] == pytest.approx(sum(value * times for value, times in observations))
    assert families["wait_seconds_created"].kind == "gauge"


def test_what_was_never_used_is_not_on_the_page() -> None:
    page = Page(created=5.0)
    page.counter("sglang:num_aborted_requests", "Aborted.", [])
    page.histogram("sglang:time_to_first_token_seconds", "First token.", [])
    assert page.text().strip() == ""
