"""A kubeconfig file for the lab's cluster."""

import os
from pathlib import Path

import yaml

from triage.lab.cluster.names import NAMESPACE

_NAME = "triage-lab"


def write_kubeconfig(path: Path, url: str, token: str) -> None:
    """One context, in the lab's namespace. Readable by its owner alone, also when the file was there before."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": url}}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": NAMESPACE}}],
        "current-context": _NAME,
    }
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        yaml.safe_dump(config, file, sort_keys=False)
