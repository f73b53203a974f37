"""What the user calls slow."""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Bounds for responsive, fast enough, answered. declared: fields that the user set.

    Defaults: diagnosis.md 4a, "slow against what", last resort.
    """

    first_visible_p95_s: float = 3.0
    time_per_token_mean_s: float = 0.1
    failure_share: float = 0.01
    declared: frozenset[str] = frozenset()
