"""Numbers as a tired person reads them."""

from collections.abc import Sequence


def count(value: float) -> str:
    return f"{value:,.0f}"


def many(value: float, noun: str) -> str:
    """'1 request', '22 requests'."""
    shown = count(value)
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def verb(value: float, one: str, more: str) -> str:
    """The form of a verb that goes with a number as `count` shows it."""
    return one if count(value) == "1" else more


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def seconds(value: float) -> str:
    """'24 ms', '0.35 s', '5.8 s', '2 min 10 s'."""
    if value == float("inf"):
        return "endless"
    if value < 0.1:
        return f"{1000 * value:.0f} ms" if value >= 0.0095 else f"{1000 * value:.1f} ms"
    if value < 1:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def listed(words: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
