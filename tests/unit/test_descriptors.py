"""The limit of open files, raised where it can be and reported where it cannot."""

import resource

import pytest

from triage.sources.descriptors import raise_descriptor_limit


class Limits:
    """Stands for the process's own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> None:
        self.now = (soft, hard)
        self.refuses = False
        monkeypatch.setattr(resource, "getrlimit", lambda _: self.now)
        monkeypatch.setattr(resource, "setrlimit", self.set)

    def set(self, _: int, wanted: tuple[int, int]) -> None:
        if self.refuses:
            raise ValueError("not allowed to raise maximum limit")
        self.now = wanted


def test_a_small_fleet_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(monkeypatch, 1024, 4096)
    assert raise_descriptor_limit(800) == ""
    assert limits.now == (1024, 4096)


@pytest.mark.parametrize("hard", [4096, resource.RLIM_INFINITY])
def test_a_large_fleet_gets_room(monkeypatch: pytest.MonkeyPatch, hard: int) -> None:
    limits = Limits(monkeypatch, 1024, hard)
    assert raise_descriptor_limit(2000) == ""
    assert limits.now == (2200, hard)


@pytest.mark.parametrize("refuses", [True, False])
def test_what_cannot_be_had_is_said(monkeypatch: pytest.MonkeyPatch, refuses: bool) -> None:
    limits = Limits(monkeypatch, 1024, 2048)
    limits.refuses = refuses
    told = raise_descriptor_limit(3000)
    assert "3200" in told
    assert "ulimit -n" in told
    assert limits.now == ((1024, 2048) if refuses else (2048, 2048))


def test_no_limit_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    Limits(monkeypatch, resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert raise_descriptor_limit(100_000) == ""
