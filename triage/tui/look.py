"""Colours and marks.

The hues are those of Okabe and Ito's palette, which people with the common kinds of colour
blindness can tell apart ("Color Universal Design", 2008). A colour never stands alone: each
state also has its word, each mark its character. With NO_COLOR only bold, dim and reverse stay.
"""

from rich.style import Style
from textual.theme import Theme

from triage.domain.target import TargetState
from triage.domain.verdict import Confidence, Kind, Verdict

BLUE = "#56b4e9"
ORANGE = "#e69f00"
YELLOW = "#f0e442"
GREEN = "#2fbf95"  # bluish green, lightened for a dark ground (7:1)
RED = "#f0703a"  # vermillion, lightened for a dark ground (6:1)

THEME = Theme(
    name="triage",
    primary=BLUE,
    secondary=BLUE,
    accent=ORANGE,
    warning=ORANGE,
    error=RED,
    success=GREEN,
    foreground="#d8dde3",
    background="#0f1317",
    surface="#161b21",
    panel="#20272f",
    dark=True,
)

NORMAL = Style()
DIM = Style(dim=True)
BOLD = Style(bold=True)
REVERSED = Style(bold=True, reverse=True)
LABEL = Style(color=BLUE)
HEADING = Style(color=BLUE, bold=True)
GOOD = Style(color=GREEN)
NOTE = Style(color=YELLOW)
WARN = Style(color=ORANGE)
BAD = Style(color=RED, bold=True)

STATE_STYLE = {
    TargetState.OK: GOOD,
    TargetState.DARK: BAD,
    TargetState.NEVER: BAD,
    TargetState.NO_METRICS: WARN,
    TargetState.STALE: NOTE,
}

# Letters for 80 columns, where "no metrics" does not fit.
STATE_SHORT = {
    TargetState.OK: "ok",
    TargetState.DARK: "dark",
    TargetState.NEVER: "never",
    TargetState.NO_METRICS: "nomet",
    TargetState.STALE: "stale",
}


def confidence_word(verdict: Verdict) -> str:
    """CONFIRMED, LIKELY, POSSIBLE, or UNDECIDED where the data do not suffice."""
    return "UNDECIDED" if verdict.confidence is None else verdict.confidence.value.upper()


def verdict_style(verdict: Verdict) -> Style:
    """Green for healthy, blue for undecided, otherwise hotter the surer."""
    if verdict.kind is Kind.HEALTHY:
        return Style(color=GREEN, bold=True)
    if verdict.confidence is None:
        return Style(color=BLUE, bold=True)
    colour = {Confidence.CONFIRMED: RED, Confidence.LIKELY: ORANGE, Confidence.POSSIBLE: YELLOW}
    return Style(color=colour[verdict.confidence], bold=True)


def strength_mark(strength: int) -> str:
    """One to three stars; 1 is a hint, 3 decides on its own."""
    filled = min(max(strength, 0), 3)
    return "*" * filled + "·" * (3 - filled)
