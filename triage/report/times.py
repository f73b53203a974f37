"""Times as reports write them."""

from datetime import UTC, datetime


def iso(at: float) -> str:
    """ISO 8601 in UTC, to the millisecond, without an empty fraction."""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z").replace(".000Z", "Z")
