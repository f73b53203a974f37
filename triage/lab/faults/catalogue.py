"""Every fault by its name, and combinations of them."""

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
    names = [word.strip() for word in words.split("+")]
    for name in names:
        if name not in _BY_NAME:
            known = ", ".join(_BY_NAME)
            raise TriageError(f"There is no incident {name!r}", hint=f"choose from: {known}; join several with +")
    return tuple([_BY_NAME[name] for name in names])
