"""Every fault by its name, and combinations of them."""

import difflib

from triage.domain.errors import TriageError
from triage.lab.faults.fault import Fault
from triage.lab.faults.gateways import GATEWAYS
from triage.lab.faults.load import FINE, LOAD
from triage.lab.faults.machines import MACHINES

HEALTHY = FINE[0]
FAULTS = (*FINE, *LOAD, *MACHINES, *GATEWAYS)
_BY_NAME = {fault.name: fault for fault in FAULTS}


def faults_named(words: str) -> tuple[Fault, ...]:
    """One fault, or several joined by "+". TriageError for a name that is none."""
    return tuple([fault_named(word.strip()) for word in words.split("+")])


def fault_named(name: str) -> Fault:
    """TriageError for a name that is none."""
    if name not in _BY_NAME:
        close = difflib.get_close_matches(name, _BY_NAME, n=3)
        known = f"did you mean {' or '.join(close)}?" if close else f"choose from: {', '.join(_BY_NAME)}"
        raise TriageError("there is no such incident", name, known)
    return _BY_NAME[name]
