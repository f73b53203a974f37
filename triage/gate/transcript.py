"""What was sent and what came back, for a person who wants to see it."""

import msgspec


class Exchange(msgspec.Struct, frozen=True):
    """One request. at: unix seconds of its end. url: holds no credential (none is accepted in a URL).

    credential: where the token came from, '' without one; the token itself is nowhere. status: None when no
    answer came. size: bytes on the wire. took_ms: milliseconds. failure: its reason, '' for a good answer.
    """

    at: float
    method: str
    url: str
    credential: str
    status: int | None
    size: int
    took_ms: float
    failure: str = ""
