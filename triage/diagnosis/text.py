"""Numbers as a tired person reads them."""


def count(value: float) -> str:
    return f"{value:,.0f}"


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
    return f"{value // 60:.0f} min {value % 60:.0f} s"
