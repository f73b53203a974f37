"""What is usual among the others."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factory import serving
from triage.diagnosis.peers import Peers
from triage.diagnosis.view import ReplicaView

SPEEDS = st.lists(st.none() | st.floats(0.001, 10), min_size=1, max_size=12)


@given(SPEEDS)
def test_the_median_of_the_others(speeds: list[float | None]) -> None:
    views = [ReplicaView(serving(str(place))) for place in range(len(speeds))]
    speed_of = dict(zip(views, speeds, strict=True))
    peers = Peers(views)
    for view in views:
        others = [speed for other, speed in speed_of.items() if other is not view and speed is not None]
        assert peers.usual(view, speed_of.get) == (pytest.approx(median(others)) if others else None)


def test_each_feature_has_its_own_median() -> None:
    views = [ReplicaView(serving(str(place), running=place)) for place in range(3)]
    peers = Peers(views)
    assert peers.usual(views[0], lambda view: view.running.mean if view.running else None) == 1.5
    assert peers.usual(views[0], lambda view: float(view.name)) == 1.5
    assert peers.usual(views[0], lambda view: 7.0) == 7.0


def test_nobody_is_usual_for_a_replica_alone() -> None:
    alone = ReplicaView(serving())
    assert Peers([alone]).usual(alone, lambda view: 1.0) is None
