"""Targets and credentials as options and the file name them."""

import os
import re
import shlex
from collections.abc import Sequence

import msgspec

from triage.domain.errors import ConfigError
from triage.domain.target import Target
from triage.domain.text import clean
from triage.gate.access import Access, Credential, CredentialKind
from triage.gate.address import address_of

DEFAULT_TIMEOUT_S = 5.0


class TargetConfig(msgspec.Struct, frozen=True):
    """One target, and how it is reached."""

    target: Target
    access: Access


def parse_target(
    text: str, *, credential: Credential | None = None, timeout_s: float = DEFAULT_TIMEOUT_S
) -> TargetConfig:
    """`[NAME=]URL`. ConfigError when it cannot be meant."""
    before, scheme_ends, _ = text.partition("://")
    # A name may hold '=' too; a URL without a scheme is none, and then any '=' will do for the message.
    name, equals, _ = before.rpartition("=") if scheme_ends else before.partition("=")
    if not equals:
        return target_of(Access(text.strip(), credential=credential, timeout_s=timeout_s))
    if not name.strip():
        raise ConfigError("unusable target", "the name before '=' is empty", "write NAME=URL, or the URL alone")
    url = text[len(name) + 1 :].strip()
    return target_of(Access(url, credential=credential, timeout_s=timeout_s), name=name.strip())


def target_of(access: Access, *, name: str | None = None, model: str | None = None) -> TargetConfig:
    """Without a name it is called by its host, port and path prefix. ConfigError for what is no URL or no name."""
    address = address_of(access.url)
    name = address.authority + address.prefix if name is None else name
    if clean(name, 120) != name or not name.strip():
        raise ConfigError(
            "unusable target", f"the name {clean(name, 60)!r} is empty, too long or has control characters"
        )
    return TargetConfig(Target(name, access.url, model), access)


def credential_of(
    *, key_env: str | None = None, key_file: str | None = None, key_command: str | Sequence[str] | None = None
) -> Credential | None:
    """The one way that was named, or None. ConfigError for two, or for a command that cannot be split."""
    given = [word for word in (key_env, key_file, key_command) if word is not None]
    if len(given) > 1:
        raise ConfigError("two credentials", "more than one of key_env, key_file, key_command", "keep one of them")
    if key_env is not None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key_env):
            # Whoever puts the key itself here must not find it in an error message.
            raise ConfigError(
                "unusable key_env", "that is no name of an environment variable", "give its name, not its value"
            )
        return Credential(CredentialKind.ENVIRONMENT, (key_env,))
    if key_file is not None:
        return Credential(CredentialKind.FILE, (os.path.expanduser(key_file),))
    if key_command is None:
        return None
    try:
        argv = shlex.split(key_command) if isinstance(key_command, str) else list(key_command)
    except ValueError as error:
        raise ConfigError("unusable key_command", str(error)) from None
    if not argv:
        raise ConfigError("unusable key_command", "it is empty")
    return Credential(CredentialKind.COMMAND, tuple(argv))


def check_targets(targets: Sequence[TargetConfig], where: str = "") -> tuple[str, ...]:
    """ConfigError for two targets with one name; a notice for two with one address. where: the file's name, or ''."""
    by_name: dict[str, TargetConfig] = {}
    by_address: dict[object, TargetConfig] = {}
    notices = []
    for one in targets:
        same = by_name.setdefault(one.target.name, one)
        if same is not one:
            raise ConfigError(
                f"{where}: two targets with one name" if where else "two targets with one name",
                f"{one.target.name!r} is {same.target.url} and {one.target.url}",
                "name them: NAME=URL, or `name` in triage.toml",
            )
        twin = by_address.setdefault(address_of(one.access.url), one)
        if twin is not one:
            notices.append(f"{twin.target.name} and {one.target.name} are the same address, {one.target.url}")
    return tuple(notices)
