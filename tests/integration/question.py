"""The shipped probe with other bounds."""

from typing import Any

import msgspec

from triage.probing.budget import Budget, shipped_budget


def budget(**changes: Any) -> Budget:
    return msgspec.structs.replace(shipped_budget(), **changes)
