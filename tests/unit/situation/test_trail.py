"""An hour of one number."""

from hypothesis import given
from hypothesis import strategies as st

from triage.situation.trail import POINTS, Trail


@given(st.integers(0, 3 * POINTS))
def test_the_newest_points_are_kept_in_order(count: int) -> None:
    trail = Trail()
    for place in range(count):
        trail.add(100.0 + 5 * place, float(place))
    wanted = range(max(count - POINTS, 0), count)
    assert trail.points() == tuple((100.0 + 5 * place, float(place)) for place in wanted)
