"""How one target is reached: address, trust, credential by reference, time."""

from enum import StrEnum
from pathlib import PurePath

import msgspec


class CredentialKind(StrEnum):
    ENVIRONMENT = "environment variable"
    FILE = "file"
    COMMAND = "command"


class Credential(msgspec.Struct, frozen=True):
    """Where a bearer token is found, never the token. words: one name or path, or the command's argv."""

    kind: CredentialKind
    words: tuple[str, ...]

    def __str__(self) -> str:
        """Safe to show: a command's arguments can hold secrets and stay out of it."""
        name = PurePath(self.words[0]).name if self.kind is CredentialKind.COMMAND else self.words[0]
        return f"{self.kind.value} {name}"


class Access(msgspec.Struct, frozen=True):
    """url: base or metrics URL, without user, password, query. ca: PEM file that is trusted instead of the system's.

    insecure: no certificate is checked. timeout_s: seconds for one whole read, from the first packet to the last byte.
    """

    url: str
    ca: str = ""
    insecure: bool = False
    credential: Credential | None = None
    timeout_s: float = 5.0
