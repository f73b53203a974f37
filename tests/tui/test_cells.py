"""What a replica's window says in its row."""

from tests.tui.factory import TTFT_EDGES, histogram, track, window
from triage.domain.derived import hit_share, per_token, speed
from triage.domain.histogram import Histogram
from triage.domain.quantity import Quantity
from triage.tui.cells import Cells, Column


def test_the_usual_row() -> None:
    found = Cells(
        window(
            gauges={Quantity.RUNNING: track(64), Quantity.WAITING: track(41), Quantity.KV_USAGE: track(0.93)},
            deltas={
                Quantity.GENERATION_TOKENS: 44_400,
                Quantity.PREFIX_QUERIES: 1000,
                Quantity.PREFIX_HITS: 610,
            },
            histograms={
                Quantity.TTFT: histogram(TTFT_EDGES, 9.4, 412),
                Quantity.ITL: Histogram((), (), 24.0, 1000),
            },
        ),
        0.6,
        {Column.TTFT95: "!"},
    )
    assert {column.value: cell.text for column, cell in found.items()} == {
        "run": "64",
        "wait": "41",
        "kv%": "93",
        "ttft p50/p95": "5–7.5 / 7.5–10",
        "ttft95": "7.5–10",
        "ms/tok": "24",
        "tok/s": "1480",
        "hit%": "61",
        "age": "0.6s",
    }
    assert found[Column.TTFT95].mark == "!"
    assert found[Column.WAITING].mark == ""


def test_nothing_exported_is_dashes_and_never_zero() -> None:
    found = Cells(window(), None, {})
    assert {cell.text for cell in found.values()} == {"–"}
    assert {cell.value for cell in found.values()} == {None}


def test_a_saturated_top_bucket_is_at_least() -> None:
    ttft = histogram(TTFT_EDGES, 30.0, 100, above=0.5)
    assert Cells(window(histograms={Quantity.TTFT: ttft}), None, {})[Column.TTFT95].text == "≥40"


def test_too_few_samples_give_no_quantile() -> None:
    few = Cells(window(histograms={Quantity.TTFT: histogram(TTFT_EDGES, 9.4, 59)}), None, {})
    assert few[Column.TTFT95].text == "–"
    assert few[Column.TTFT].text == "5–7.5 / –"


def test_tokens_counted_per_step_win_over_tokens_counted_at_finish() -> None:
    both = {Quantity.GENERATION_TOKENS: 300.0, Quantity.GENERATION_TOKENS_LIVE: 600.0}
    assert speed(window(deltas=both)) == 20.0
    assert speed(window(deltas={Quantity.GENERATION_TOKENS: 300.0})) == 10.0


def test_rates_from_an_assumed_interval_are_marked() -> None:
    assumed = window(deltas={Quantity.GENERATION_TOKENS: 300.0}, assumed=True)
    assert Cells(assumed, None, {})[Column.SPEED].text == "~10"
    assert Cells(window(assumed=True), None, {})[Column.SPEED].text == "–"


def test_hit_share_prefers_the_window_over_the_gauge() -> None:
    gauge = {Quantity.HIT_RATE: track(0.9)}
    counted = {Quantity.PREFIX_QUERIES: 200.0, Quantity.PREFIX_HITS: 50.0}
    assert hit_share(window(gauges=gauge, deltas=counted)) == 0.25
    assert hit_share(window(gauges=gauge)) == 0.9
    idle = {Quantity.PREFIX_QUERIES: 0.0, Quantity.PREFIX_HITS: 0.0}
    assert str(hit_share(window(deltas=idle))) == "–"


def test_time_per_token_falls_back_from_histograms_to_counters() -> None:
    itl, request = Histogram((), (), 2.0, 100), Histogram((), (), 3.0, 100)
    counters = {Quantity.GENERATION_SECONDS: 4.0, Quantity.GENERATION_TOKENS: 100.0}
    everything = {Quantity.ITL: itl, Quantity.REQUEST_TPOT: request}
    assert per_token(window(histograms=everything, deltas=counters)) == 0.02
    assert per_token(window(histograms={Quantity.REQUEST_TPOT: request}, deltas=counters)) == 0.03
    assert per_token(window(deltas=counters)) == 0.04
    assert str(per_token(window(deltas={Quantity.GENERATION_SECONDS: 4.0, Quantity.GENERATION_TOKENS: 0.0}))) == "–"
