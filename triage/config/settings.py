"""What holds for this run: the file that was found, and the options over it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from triage.config.prometheus import PrometheusConfig, prometheus_of
from triage.config.targets import TargetConfig, check_targets, credential_of, parse_target
from triage.domain.errors import ConfigError
from triage.domain.limits import Limits
from triage.gate.access import Credential

FILE_NAME = "triage.toml"
DEFAULT_KEY_VARIABLE = "TRIAGE_API_KEY"


class Config(msgspec.Struct, frozen=True):
    """window_s: seconds that are judged. interval_s: seconds between two scrapes. path: the file, or None.

    notices: what is probably not meant; for stderr.
    """

    targets: tuple[TargetConfig, ...] = ()
    limits: Limits = Limits()
    window_s: float = 30.0
    interval_s: float = 5.0
    path: Path | None = None
    notices: tuple[str, ...] = ()
    prometheus: PrometheusConfig | None = None


def load_config(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Config:
    """The file of --config, else of $TRIAGE_CONFIG, else ./triage.toml, else the user's own; defaults without one.

    ConfigError names the file, the key and, where it can be found, the line.
    """
    named = path or (Path(environ["TRIAGE_CONFIG"]) if environ.get("TRIAGE_CONFIG") else None)
    if named is not None:
        return _from_file(named, found_here=False)
    if os.path.isfile(FILE_NAME):
        return _from_file(Path(FILE_NAME), found_here=True)
    base = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    own = Path(base) / "triage" / FILE_NAME
    return _from_file(own, found_here=False) if os.path.isfile(own) else Config()


def override(
    config: Config,
    *,
    targets: Sequence[str] = (),
    prometheus: str | None = None,
    window_s: float | None = None,
    interval_s: float | None = None,
    timeout_s: float | None = None,
    credential: Credential | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Config:
    """Options over the file: targets replace the file's, times replace its times.

    Targets given as options use `credential`, else $TRIAGE_API_KEY when it is set. Those of a file name their
    credential themselves: a file that was merely found must not send a key to addresses of its own choice.
    A Prometheus given as option gets `credential` only when no target is given: an engine's key is not its business.
    """
    chosen = config.targets
    if credential is not None and not targets and not prometheus:
        raise ConfigError(
            "a credential without a target", "--key-* goes with --target or --prometheus", "name it in triage.toml"
        )
    server = config.prometheus
    if prometheus:
        server = prometheus_of(prometheus, credential=None if targets else credential)
        if config.prometheus is not None and server.access.url == config.prometheus.access.url and credential is None:
            server = config.prometheus
    if targets:
        default = credential_of(key_env=DEFAULT_KEY_VARIABLE) if environ.get(DEFAULT_KEY_VARIABLE) else None
        key = credential or default
        chosen = tuple([parse_target(text, credential=key) for text in targets])
    if timeout_s is not None:
        replaced = [msgspec.structs.replace(one.access, timeout_s=timeout_s) for one in chosen]
        chosen = tuple([TargetConfig(one.target, access) for one, access in zip(chosen, replaced, strict=True)])
        if server is not None:
            server = msgspec.structs.replace(server, access=msgspec.structs.replace(server.access, timeout_s=timeout_s))
    window = config.window_s if window_s is None else window_s
    interval = min(config.interval_s, window / 2) if interval_s is None else interval_s
    if interval > window:
        raise ConfigError("unusable interval", f"{interval:g} s in a window of {window:g} s: never two scrapes")
    return Config(chosen, config.limits, window, interval, config.path, check_targets(chosen), server)


def _from_file(path: Path, found_here: bool) -> Config:
    from triage.config.file import read_file  # 15 ms that a run without a file does without

    found = read_file(path, found_here=found_here)
    notices = check_targets(found.targets, str(path))
    return Config(found.targets, found.limits, found.window_s, found.interval_s, path, notices, found.prometheus)
