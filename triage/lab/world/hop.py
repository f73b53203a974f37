"""The gateway's settings: what a request may take, how often it is tried, and where it is sent."""

from enum import StrEnum

import msgspec


class Balance(StrEnum):
    LEAST = "least request"
    ROUND = "round robin"
    SESSION = "session affinity"


class Hop(msgspec.Struct, frozen=True):
    """Seconds; None where nothing limits. Tries are made again on refused connections, resets, 5xx, and tries over.

    per_try_s: until the first byte of a try. holds: the answer is handed on when it is complete.
    keepalive_race: chance that a request meets a connection that the engine is just closing.
    lag_s: from a replica's readiness to its place in the gateway's list.
    ghosts: addresses in the list that nobody listens on. checks_keys: requests need a key.
    by_port: replicas are listed while their port is open, whatever their health route says.
    unlisted: replicas that the list leaves out.
    loose: part of the calls that affinity does not hold.
    pinned: part of the sessions that some rule sends to the first replica, whatever the balance.
    cuts: part of the streams that something behind it ends in the middle.
    """

    timeout_s: float | None = 600.0
    idle_s: float | None = 300.0
    per_try_s: float | None = None
    retries: int = 1
    holds: bool = False
    balance: Balance = Balance.LEAST
    keepalive_race: float = 0.0
    lag_s: float = 3.0
    ghosts: int = 0
    by_port: bool = False
    unlisted: frozenset[str] = frozenset()
    checks_keys: bool = True
    loose: float = 0.0
    pinned: float = 0.0
    cuts: float = 0.0
