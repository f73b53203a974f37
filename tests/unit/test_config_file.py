"""triage.toml: what it can say, and how everything else is refused."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.config import load_config
from triage.config.file import read_file
from triage.domain.errors import ConfigError
from triage.domain.limits import Limits
from triage.domain.target import Target
from triage.gate import Access, Credential, CredentialKind

WHOLE = """
[[target]]
name = "replica = 1"
url = "https://engine:8000"
model = "llama"
ca = "certs/ca.pem"
key_env = "ENGINE_KEY"
timeout_s = 2

[[target]]
url = "http://other:8000/v1"
insecure = true
key_command = ["vault", "read", "x y"]

[limits]
first_visible_p95_s = 1.5
failure_share = 0

[window]
window_s = 60
interval_s = 10.0
"""


def load(tmp_path: Path, text: str) -> object:
    file = tmp_path / "triage.toml"
    file.write_text(text)
    return load_config(file, environ={})


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    said = str(caught.value)
    assert said.isprintable()
    assert said.startswith(str(tmp_path / "triage.toml"))
    return said.removeprefix(str(tmp_path / "triage.toml"))


def test_everything_it_can_say(tmp_path: Path) -> None:
    file = tmp_path / "triage.toml"
    file.write_text(WHOLE)
    config = load_config(file, environ={})
    first, second = config.targets
    assert first.target == Target("replica = 1", "https://engine:8000", "llama")
    assert first.access == Access(
        "https://engine:8000",
        ca=str(tmp_path / "certs" / "ca.pem"),
        credential=Credential(CredentialKind.ENVIRONMENT, ("ENGINE_KEY",)),
        timeout_s=2.0,
    )
    assert second.target.name == "other:8000"
    assert second.access.insecure
    assert second.access.credential == Credential(CredentialKind.COMMAND, ("vault", "read", "x y"))
    assert config.limits == Limits(1.5, 0.1, 0.0, frozenset({"first_visible_p95_s", "failure_share"}))
    assert (config.window_s, config.interval_s) == (60.0, 10.0)


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    config = load_config(_written(tmp_path, ""), environ={})
    assert (config.targets, config.limits, config.window_s, config.interval_s) == ((), Limits(), 30.0, 5.0)


UNKNOWN = {
    "[targets]\n": (", line 1, targets: 'targets' is not known", "did you mean target?"),
    "[limts]\n": (", line 1, limts", "did you mean limits?"),
    "[quux]\n": (", line 1, quux", "known: target, prometheus, limits, window"),
    "interval_s = 5\n": (", line 1, interval_s", "is not known"),
    '\n[[target]]\nurl = "http://a"\ntimout_s = 3\n': (", line 4, target 1, timout_s", "did you mean timeout_s?"),
    '[[target]]\nurl = "http://a"\n[[target]]\nurl="http://b"\nUrl = 1\n': (", line 5, target 2, Url", "url?"),
    "[limits]\nfirst_visible_p59_s = 3\n": (", line 2, limits, first_visible_p59_s", "first_visible_p95_s?"),
    '[window]\n"a\\u001b[2Jb" = 3\n': (", window, ab", "known: window_s, interval_s"),
}


@pytest.mark.parametrize("text", UNKNOWN)
def test_an_unknown_key_is_refused_with_its_place_and_the_nearest_known_one(tmp_path: Path, text: str) -> None:
    place, hint = UNKNOWN[text]
    said = refused(tmp_path, text)
    assert said.startswith(place)
    assert hint in said


WRONG = {
    '[[target]]\nurl = "http://a"\ntimeout_s = "3"\n': (
        ", line 3, target 1, timeout_s",
        "Expected a number, got a string",
    ),
    '[[target]]\nurl = "http://a"\ntimeout_s = true\n': (", line 3, target 1, timeout_s", "true or false"),
    '[[target]]\nurl = "http://a"\ntimeout_s = 0\n': (", line 3, target 1, timeout_s", "> 0"),
    '[[target]]\nurl = "http://a"\ntimeout_s = nan\n': (", line 3, target 1, timeout_s", ""),
    '[[target]]\nurl = "http://a"\ntimeout_s = inf\n': (", line 3, target 1, timeout_s", "120"),
    '[[target]]\nurl = "http://a"\ninsecure = "no"\n': (", line 3, target 1, insecure", "true or false"),
    "[[target]]\nurl = 8000\n": (", line 2, target 1, url", "Expected a string"),
    '[[target]]\nurl = ""\n': (", line 2, target 1, url", ">= 1"),
    '[[target]]\nname = "a"\n': (", line 1, target 1", "'url' is missing"),
    '[target]\nurl = "http://a"\n': (", line 1, target", "write [[target]]"),
    'target = ["http://a"]\n': (", line 1, target 1", "Expected a table"),
    "limits = 3\n": (", line 1, limits", "Expected a table"),
    "[limits]\nfailure_share = 2\n": (", line 2, limits, failure_share", "<= 1"),
    "[limits]\ntime_per_token_mean_s = -1\n": (", line 2, limits, time_per_token_mean_s", "> 0"),
    "[window]\nwindow_s = 1\n": (", line 2, window, window_s", ">= 2"),
    "[window]\nwindow_s = 5\ninterval_s = 6\n": (", line 3, window, interval_s", "never two scrapes"),
    '[[target]]\nname = "x"\nurl = "engine:8000"\n': (", line 3, target 1, url", "http://engine:8000"),
    '[[target]]\nurl = "http://a"\nkey_env = "sk-secret"\n': (", line 3, target 1, key_env", "environment variable"),
    '[[target]]\nurl = "http://a"\nkey_env = "A"\nkey_file = "b"\n': (
        ", line 1, target 1: two",
        "more than one of key_env",
    ),
    '[[target]]\nurl = "http://a"\nkey_command = []\n': (", line 3, target 1, key_command", "empty"),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    place, words = WRONG[text]
    said = refused(tmp_path, text)
    assert said.startswith(place)
    assert words in said
    assert "sk-secret" not in said


@pytest.mark.parametrize("key", ["key", "api_key", "token", "password", "secret", "Bearer"])
def test_a_secret_is_refused_with_what_to_write_instead(tmp_path: Path, key: str) -> None:
    said = refused(tmp_path, f'[[target]]\nurl = "http://a"\n{key} = "hunter2"\n')
    assert said.startswith(f", line 3, target 1, {key}")
    assert "key_env" in said
    assert "hunter2" not in said


def test_a_password_in_a_url_is_refused_with_its_place(tmp_path: Path) -> None:
    said = refused(tmp_path, '[[target]]\nurl = "http://u:hunter2@a"\n')
    assert said.startswith(", line 2, target 1, url")
    assert "hunter2" not in said


def test_two_targets_with_one_name(tmp_path: Path) -> None:
    said = refused(tmp_path, '[[target]]\nname="a"\nurl="http://x"\n[[target]]\nname="a"\nurl="http://y"\n')
    assert "'a' is http://x and http://y" in said


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    assert "line 2" in refused(tmp_path, '[[target]]\nurl = "http://a\n')


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "triage.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(file, environ={})


# ---- a file that was merely found


def test_a_found_file_runs_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _written(tmp_path, '[[target]]\nurl = "http://a"\nkey_command = "touch /tmp/owned"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"line 3, target 1, key_command.*--config"):
        load_config(environ={})
    assert load_config(file, environ={}).targets[0].access.credential is not None
    assert load_config(environ={"TRIAGE_CONFIG": "triage.toml"}).targets[0].access.credential is not None


def test_a_found_file_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _written(tmp_path, "")
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1 if file.stat().st_uid else 0)
    if file.stat().st_uid == 0:
        os.chown(file, 12345, -1)
    with pytest.raises(ConfigError, match="another user"):
        read_file(file, found_here=True)
    assert read_file(file, found_here=False).targets == ()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=6,
    ).flatmap(lambda value: st.sampled_from(["target", "limits", "window"]).map(lambda key: {key: value}))
)
def test_any_value_is_settings_or_a_config_error(tmp_path_factory: pytest.TempPathFactory, data: object) -> None:
    file = tmp_path_factory.mktemp("any") / "triage.toml"
    file.write_text(_toml(data), encoding="utf-8", errors="replace")
    try:
        read_file(file, found_here=False)
    except ConfigError:
        pass


def _toml(value: object, depth: int = 0) -> str:
    if isinstance(value, dict):
        pairs = [f"{_toml(str(key), depth + 1)} = {_toml(item, depth + 1)}" for key, item in value.items()]
        return "\n".join(pairs) if depth == 0 else "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item, depth + 1) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return "true" if value else "false"
    if isinstance(value, float):
        return str(value)
    escaped = "".join(
        f"\\U{ord(char):08x}" if not char.isalnum() or not char.isascii() else char for char in str(value)
    )
    return f'"{escaped}"'


def _written(folder: Path, text: str) -> Path:
    file = folder / "triage.toml"
    file.write_text(text)
    return file
