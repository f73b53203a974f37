"""Names, ids and times of the cluster's objects: the same for the same fleet."""

import hashlib
import time
import uuid
from typing import Any

Object = dict[str, Any]

NAMESPACE = "lab"
# Pods of somebody else: they hold the devices that a replica without a place cannot have.
OTHERS = "research"
CONTAINER = "engine"

# Kubernetes leaves vowels and look-alikes out of generated suffixes (apimachinery, util/rand).
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_ROOT = uuid.UUID("6f0d3c1e-6f5a-4f0c-9d55-7d6b3f1f6a10")


def uid(kind: str, name: str, number: int = 0) -> str:
    """number: of objects that had this name before."""
    return str(uuid.uuid5(_ROOT, f"{kind}/{name}/{number}"))


def suffix(text: str, length: int) -> str:
    """As in generated names; equal for equal text."""
    digest = hashlib.sha256(text.encode()).digest()
    return "".join([_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length]])


def digest(text: str, length: int = 64) -> str:
    """Hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def dns_label(text: str) -> str:
    """A model's name as a Service may be called: no dots."""
    return "".join([letter if letter.isalnum() else "-" for letter in text.lower()]).strip("-")


def stamp(unix: float) -> str:
    """metav1.Time: whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix))


def micro_stamp(unix: float) -> str:
    """metav1.MicroTime."""
    micros = round(unix * 1e6)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(micros // 1_000_000))}.{micros % 1_000_000:06d}Z"


def nano_stamp(unix: float) -> str:
    """RFC 3339 with nine digits, as kubelet writes before lines of a log."""
    return f"{micro_stamp(unix)[:-1]}000Z"


def go_duration(seconds: float) -> str:
    """As Go prints whole seconds: 10s, 2m40s, 5m0s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
