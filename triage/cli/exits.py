"""Exit codes, the same for every command (a contract with scripts)."""

from enum import IntEnum

from triage.domain.verdict import Diagnosis, Kind


class Exit(IntEnum):
    OK = 0  # healthy, pass
    WRONG = 1  # something is wrong, fail
    ERROR = 2  # usage or tool error
    INCONCLUSIVE = 3  # insufficient data, a control failed


def exit_of(diagnosis: Diagnosis) -> Exit:
    """The first verdict decides."""
    kind = diagnosis.verdicts[0].kind
    if kind is Kind.HEALTHY:
        return Exit.OK
    return Exit.INCONCLUSIVE if kind is Kind.INSUFFICIENT_DATA else Exit.WRONG
