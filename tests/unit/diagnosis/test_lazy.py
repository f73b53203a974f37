"""Attributes that are worked out when first asked for."""

from triage.diagnosis.lazy import lazy


class Thing:
    def __init__(self) -> None:
        self.asked = 0

    @lazy
    def answer(self) -> int:
        """Says how often it was worked out."""
        self.asked += 1
        return self.asked


def test_it_is_worked_out_once_for_each_instance() -> None:
    one, other = Thing(), Thing()
    assert (one.answer, one.answer, other.answer) == (1, 1, 1)
    assert (one.asked, other.asked) == (1, 1)


def test_an_error_is_not_kept() -> None:
    class Fickle:
        ready = False

        @lazy
        def answer(self) -> int:
            return 1 // self.ready

    fickle = Fickle()
    try:
        _ = fickle.answer
    except ZeroDivisionError:
        fickle.ready = True
    assert fickle.answer == 1


def test_the_class_shows_what_it_says() -> None:
    assert Thing.answer.__doc__ == "Says how often it was worked out."
