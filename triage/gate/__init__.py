"""The one place that builds transports: what may be sent, to whom, for how long, and how much may come back.

Importing it loads no HTTP library; the first request does.
"""

from triage.gate.access import Access, Credential, CredentialKind
from triage.gate.address import Address, address_of
from triage.gate.allow import Purpose
from triage.gate.client import BODY_LIMIT, Answer, Client, Gate
from triage.gate.failures import failure_of
from triage.gate.transcript import Exchange

__all__ = [
    "BODY_LIMIT",
    "Access",
    "Address",
    "Answer",
    "Client",
    "Credential",
    "CredentialKind",
    "Exchange",
    "Gate",
    "Purpose",
    "address_of",
    "failure_of",
]
