"""An absent number can never be mistaken for zero."""

import pytest

from triage.domain.absence import NOT_EXPORTED, Absent, Missing, known, value_or


def test_truth_and_arithmetic_of_an_absent_number_are_errors() -> None:
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(NOT_EXPORTED)
    with pytest.raises(TypeError):
        NOT_EXPORTED + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        NOT_EXPORTED < 1  # type: ignore[operator]  # noqa: B015


def test_zero_is_known() -> None:
    assert known(0.0)
    assert not known(NOT_EXPORTED)
    assert value_or(0.0, 5.0) == 0.0
    assert value_or(NOT_EXPORTED, 5.0) == 5.0


def test_reasons_are_different_states() -> None:
    assert Absent(Missing.NOT_EXPORTED) != Absent(Missing.STALE)
    assert str(Absent(Missing.NEVER_SEEN)) == "–"
