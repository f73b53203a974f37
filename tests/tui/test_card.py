"""The verdict card's lines."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui import factory
from triage.domain.verdict import Kind
from triage.monitor.observation import Observation
from triage.tui.card import card_lines


def plain(observation: Observation, index: int = 0, width: int = 80, height: int = 12) -> list[str]:
    return [line.plain for line in card_lines(observation, index, width, height, probe_on=True)]


def test_eighty_columns_say_what_how_sure_how_much_and_what_next() -> None:
    shown = plain(factory.queueing())
    assert shown[0].startswith(" LIKELY  queueing (sequence-limit)  61 % (53–68) of end-to-end time")
    text = "\n".join(shown)
    for word in ("where", "for", "against", "out", "next", "also", "r runbook: queueing", "w sends the probe"):
        assert word in text


@pytest.mark.parametrize("width", [40, 60, 80, 110, 140, 200])
@pytest.mark.parametrize("height", [1, 3, 6, 12])
def test_it_keeps_to_its_room(width: int, height: int) -> None:
    for observation in (factory.queueing(), factory.healthy(), factory.insufficient(), factory.dark()):
        lines = card_lines(observation, 0, width, height, probe_on=True)
        assert 1 <= len(lines) <= height
        assert all(line.cell_len <= width for line in lines)


@given(st.integers(30, 200))
def test_no_word_of_the_summary_is_cut(width: int) -> None:
    verdict = factory.QUEUEING_VERDICT
    words = set(verdict.summary.split()) | {"…"}
    shown = plain(factory.observe((verdict,)), width=width)
    summary = [line.strip() for line in shown[1:3] if not line.startswith("   ")]
    assert set(" ".join(summary).split()) <= words


def test_the_head_drops_the_window_before_it_drops_the_share() -> None:
    assert "window" not in plain(factory.queueing(), width=80)[0]
    assert "30s window" in plain(factory.queueing(), width=120)[0]
    assert "61 % (53–68)" in plain(factory.queueing(), width=60)[0]


def test_without_enough_data_it_says_what_to_collect_and_what_was_not_seen() -> None:
    text = "\n".join(plain(factory.insufficient()))
    assert "UNDECIDED  insufficient-data" in text
    assert "collect A second reading" in text
    assert "gateway log (not configured)" in text


def test_an_assumed_interval_is_always_said() -> None:
    observation = factory.observe((factory.QUEUEING_VERDICT,), replicas=(factory.busy("a", assumed=True),))
    assert "interval assumed" in "\n".join(plain(observation, width=80))


def test_no_share_where_time_is_not_what_is_lost() -> None:
    assert "%" not in plain(factory.dark())[0]


def test_the_strongest_evidence_comes_first() -> None:
    verdict = msgspec.structs.replace(
        factory.QUEUEING_VERDICT,
        evidence=(
            factory.evidence("weak", "a weak hint", strength=1),
            factory.evidence("strong", "what decides it", strength=3),
        ),
    )
    line = next(line for line in plain(factory.observe((verdict,))) if line.startswith("   for"))
    assert line.index("what decides it") < line.index("a weak hint")


def test_without_probe_no_key_for_it_is_shown() -> None:
    lines = card_lines(factory.queueing(), 0, 80, 12, probe_on=False)
    assert "w sends the probe" not in "\n".join(line.plain for line in lines)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_can_be_drawn(kind: Kind) -> None:
    verdict = msgspec.structs.replace(factory.QUEUEING_VERDICT, kind=kind)
    assert kind.value in plain(factory.observe((verdict,)))[0]
