"""triage.toml, read strictly: what is not understood is refused, with its place and the nearest known word."""

import os
import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import msgspec

from triage.config.prometheus import DEFAULT_TIMEOUT_S as PROMETHEUS_TIMEOUT_S
from triage.config.prometheus import PrometheusConfig, prometheus_of
from triage.config.targets import DEFAULT_TIMEOUT_S, TargetConfig, credential_of, target_of
from triage.domain.errors import ConfigError
from triage.domain.limits import Limits
from triage.domain.text import clean
from triage.gate.access import Access, Credential

_LARGEST = 4 * 1024 * 1024
# msgspec's words in TOML's.
_IN_TOML = {
    "object": "a table",
    "array": "a list",
    "str": "a string",
    "bool": "true or false",
    "float": "a number",
    "int": "a number",
}
_SECRETS = frozenset({"key", "api_key", "apikey", "token", "bearer", "bearer_token", "password", "passwd", "secret"})

# A word of an error's title to the key it speaks of.
_KEY_OF = {"key_command": "key_command", "key_env": "key_env", "URL": "url", "target": "name", "matchers": "matchers"}

Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Target(msgspec.Struct, frozen=True):
    url: Text
    name: Text | None = None
    model: Text | None = None
    ca: Text | None = None
    insecure: bool = False
    key_env: Text | None = None
    key_file: Text | None = None
    key_command: Text | list[Text] | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=120)] = DEFAULT_TIMEOUT_S


class _Prometheus(msgspec.Struct, frozen=True):
    url: Text
    matchers: Text | None = None
    ca: Text | None = None
    insecure: bool = False
    key_env: Text | None = None
    key_file: Text | None = None
    key_command: Text | list[Text] | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=120)] = PROMETHEUS_TIMEOUT_S


class _Limits(msgspec.Struct, frozen=True):
    first_visible_p95_s: Seconds | None = None
    time_per_token_mean_s: Seconds | None = None
    failure_share: Share | None = None


class _Window(msgspec.Struct, frozen=True):
    window_s: Annotated[float, msgspec.Meta(ge=2, le=3600)] = 30.0
    interval_s: Annotated[float, msgspec.Meta(ge=0.5, le=300)] | None = None


class _File(msgspec.Struct, frozen=True):
    target: list[_Target] = []
    prometheus: _Prometheus | None = None
    limits: _Limits = _Limits()
    window: _Window = _Window()


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "target": _Target,
    "prometheus": _Prometheus,
    "limits": _Limits,
    "window": _Window,
}


def usual_interval(window_s: float) -> float:
    """Seconds between two scrapes where nobody said: 5, but at least three scrapes in a short window."""
    return min(5.0, window_s / 2)


class FileSettings(msgspec.Struct, frozen=True):
    """What one file says. limits.declared: the fields it sets."""

    targets: tuple[TargetConfig, ...]
    limits: Limits
    window_s: float
    interval_s: float
    prometheus: PrometheusConfig | None = None


def read_file(path: Path, *, found_here: bool) -> FileSettings:
    """ConfigError with file, key and line for anything that cannot be meant.

    found_here: it was merely found in the working directory, which may be somebody's evidence folder. Such a
    file must belong to this user, and its key_command, which would run a program, must be confirmed with --config.
    """
    text = _text_of(path, found_here)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML", clean(str(error))) from None
    place = _Places(path, text)
    _check_keys(data, place)
    try:
        found = msgspec.convert(data, _File)
    except msgspec.ValidationError as error:
        raise _wrong_value(str(error), place) from None
    window_s, interval_s = found.window.window_s, found.window.interval_s
    if interval_s is not None and interval_s > window_s:
        raise ConfigError(place.of("window", None, "interval_s"), "it is longer than window_s: never two scrapes")
    given = {key: value for key, value in msgspec.structs.asdict(found.limits).items() if value is not None}
    return FileSettings(
        targets=tuple([_target(item, number, place, found_here) for number, item in enumerate(found.target)]),
        limits=Limits(**given, declared=frozenset(given)),
        window_s=window_s,
        interval_s=usual_interval(window_s) if interval_s is None else interval_s,
        prometheus=_prometheus(found.prometheus, place, found_here) if found.prometheus is not None else None,
    )


def _text_of(path: Path, found_here: bool) -> str:
    try:
        with path.open("rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read", error.strerror or "") from None
    if found_here and owner not in (0, os.geteuid()):
        raise ConfigError(f"{path} is not used", "it belongs to another user", f"if you trust it: --config {path}")
    if len(content) > _LARGEST:
        raise ConfigError(f"{path} cannot be read", "it has more than 4 MiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} cannot be read", "it is not UTF-8 text") from None


def _target(item: _Target, number: int, place: "_Places", found_here: bool) -> TargetConfig:
    try:
        credential = _credential(item, place, found_here)
        access = Access(item.url, place.beside(item.ca) or "", item.insecure, credential, item.timeout_s)
        return target_of(access, name=item.name, model=item.model)
    except ConfigError as error:
        raise _placed(error, place, "target", number) from None


def _prometheus(item: _Prometheus, place: "_Places", found_here: bool) -> PrometheusConfig:
    try:
        return prometheus_of(
            item.url,
            matchers=item.matchers or "",
            ca=place.beside(item.ca) or "",
            insecure=item.insecure,
            credential=_credential(item, place, found_here),
            timeout_s=item.timeout_s,
        )
    except ConfigError as error:
        raise _placed(error, place, "prometheus", None) from None


def _credential(item: "_Target | _Prometheus", place: "_Places", found_here: bool) -> Credential | None:
    if found_here and item.key_command is not None:
        raise ConfigError(
            "key_command is not run",
            "the file was only found in the working directory",
            f"if you trust it: --config {place.path}",
        )
    return credential_of(key_env=item.key_env, key_file=place.beside(item.key_file), key_command=item.key_command)


def _placed(error: ConfigError, place: "_Places", section: str, number: int | None) -> ConfigError:
    key = next((key for word, key in _KEY_OF.items() if word in error.title), "")
    return ConfigError(f"{place.of(section, number, key)}: {error.title}", error.what, error.hint)


def _check_keys(data: dict[str, Any], place: "_Places") -> None:
    for section, content in data.items():
        if section not in _SECTIONS:
            raise _unknown(place.of("", None, section), section, list(_SECTIONS))
        if section == "target" and isinstance(content, dict):
            raise ConfigError(place.of("", None, section), "it is a table", "write [[target]], once for each target")
        fields = list(_SECTIONS[section].__struct_fields__)
        tables = content if isinstance(content, list) else [content]
        for number, table in enumerate(tables):
            for key in table if isinstance(table, dict) else ():
                if key not in fields:
                    where = place.of(section, number if isinstance(content, list) else None, key)
                    raise _secret(where, key) if key.lower() in _SECRETS else _unknown(where, key, fields)


def _unknown(where: str, key: str, known: list[str]) -> ConfigError:
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return ConfigError(where, f"{clean(key, 60)!r} is not known", hint)


def _secret(where: str, key: str) -> ConfigError:
    return ConfigError(
        where,
        f"{key!r}: a secret has no place in a file that is copied and committed",
        "name where it is found: key_env, key_file or key_command",
    )


def _wrong_value(message: str, place: "_Places") -> ConfigError:
    """msgspec says `Expected `float`, got `str` - at `$.target[0].timeout_s``."""
    what, _, path = message.partition(" - at `$")
    found = re.fullmatch(r"\.(\w+)(?:\[(\d+)\])?(?:\.(\w+))?.*`", path)
    if found is None:
        return ConfigError(str(place.path), clean(message))
    section, number, key = found[1], found[2], found[3]
    if key is None and (missing := re.search(r"missing required field `(\w+)`", what)):
        what = f"{missing[1]!r} is missing"
    where = place.of(section, None if number is None else int(number), key or "")
    return ConfigError(where, clean(re.sub(r"`([\w ]+)`", lambda word: _IN_TOML.get(word[1], word[1]), what)))


class _Places:
    """Where a key stands in the text. tomllib does not say, so that this looks for it line by line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._lines = text.splitlines()

    def of(self, section: str, number: int | None, key: str) -> str:
        """'triage.toml, line 7, target 2, timeout_s'. section '': the key is itself a section."""
        line = self._line(section, number, key)
        parts = [str(self.path), f"line {line}" if line else ""]
        if section:
            parts.append(f"{section} {number + 1}" if number is not None else section)
        return ", ".join([*[part for part in parts if part], *([clean(key, 60)] if key else [])])

    def beside(self, name: str | None) -> str | None:
        """A path as the file means it: relative to the file, '~' is the user's home."""
        return None if name is None else str(self.path.parent / Path(name).expanduser())

    def _line(self, section: str, number: int | None, key: str) -> int | None:
        """Of the key, of its section's header when there is no key, or of `section = …` before all headers."""
        wanted, current, count = section or key, "", -1
        for place, line in enumerate(self._lines, start=1):
            header = re.match(r"\s*\[\[?\s*[\"']?([\w-]+)", line)
            if header is not None:
                current = header[1]
                count += current == wanted
                if current == wanted and (not section or not key) and number in (None, count):
                    return place
                continue
            assigned = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[.=]", line)
            if assigned is None:
                continue
            if not current and assigned[1] == wanted:
                return place
            if section and section == current and assigned[1] == key and number in (None, count):
                return place
        return None
