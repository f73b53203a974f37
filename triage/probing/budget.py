"""What the announced probe asks and how much it may cost: `probes/stream.yaml`."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from triage.domain.errors import ConfigError
from triage.resources import directories, files


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of one request. prompt: with {nonce}. total_s: seconds from start to end. answer_mib: bytes of the answer.

    400 tokens arrive as about 120 KB of events; 4 MiB leave room for verbose servers, not for a runaway one.
    """

    prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=4096)]
    total_s: Annotated[float, msgspec.Meta(gt=0, le=600)]
    answer_mib: Annotated[float, msgspec.Meta(gt=0, le=64)]


@cache
def shipped_budget() -> Budget:
    """The probe as it ships."""
    return load_budget(directories("probes"))


def load_budget(folders: Iterable[Path]) -> Budget:
    """The first `stream.yaml` of the folders. ConfigError names the file and what is wrong in it."""
    import yaml  # 70 ms: only who probes pays for it

    found = files(folders, ".yaml").get("stream", ())
    if not found:
        raise ConfigError("no probe", "no stream.yaml in the probes folder", "the installation is incomplete")
    try:
        return msgspec.convert(yaml.safe_load(found[0].read_text(encoding="utf-8")), Budget)
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"{found[0]} cannot be used", said) from error
