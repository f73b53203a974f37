"""The one place that builds transports: what may be sent, to whom, for how long, and how much may come back.

Importing it loads no HTTP library; the first request does.
"""

from triage.gate.access import Access, Credential, CredentialKind
from triage.gate.client import Answer, Client, Gate
from triage.gate.failures import failure_of

__all__ = ["Access", "Answer", "Client", "Credential", "CredentialKind", "Gate", "failure_of"]
