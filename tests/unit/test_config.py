"""Options, the search order, and how they meet the file."""

from pathlib import Path

import pytest

from triage.config import Config, credential_of, load_config, override, parse_target
from triage.domain.errors import ConfigError
from triage.gate import Credential, CredentialKind


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def write(path: Path, window_s: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[window]\nwindow_s = {window_s}\n")
    return path


# ---- [NAME=]URL


@pytest.mark.parametrize(
    ("text", "name", "url"),
    [
        ("http://engine:8000", "engine:8000", "http://engine:8000"),
        ("http://engine", "engine", "http://engine"),
        ("http://gw/team/llama/v1", "gw/team/llama", "http://gw/team/llama/v1"),
        ("a=http://engine:8000", "a", "http://engine:8000"),
        (" replica 1 = http://engine:8000 ", "replica 1", "http://engine:8000"),
        ("x[/foo][@click=app.quit]=http://e", "x[/foo][@click=app.quit]", "http://e"),
    ],
)
def test_a_target_as_an_option(text: str, name: str, url: str) -> None:
    found = parse_target(text)
    assert (found.target.name, found.target.url, found.access.url) == (name, url, url)


@pytest.mark.parametrize("text", ["", "=http://engine", "a=", "a=engine:8000", "a\x1b[2J=http://e", "a=ftp://e"])
def test_a_target_that_cannot_be_meant(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_target(text)
    assert str(caught.value).isprintable()


def test_a_password_in_a_target_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="password") as caught:
        parse_target("a=http://user:hunter2@engine:8000")
    assert "hunter2" not in str(caught.value)
    assert "key_env" in caught.value.hint


# ---- where the file is looked for


def test_without_a_file_there_are_defaults() -> None:
    assert load_config(environ={}) == Config()


def test_the_search_order(tmp_path: Path, empty_folder: Path) -> None:
    own = write(tmp_path / "home" / ".config" / "triage" / "triage.toml", 10)
    assert load_config(environ={}).path == own
    xdg = write(tmp_path / "xdg" / "triage" / "triage.toml", 11)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert load_config(environ=environ).path == xdg
    write(empty_folder / "triage.toml", 12)
    assert load_config(environ=environ).window_s == 12
    environ["TRIAGE_CONFIG"] = str(write(tmp_path / "named.toml", 13))
    assert load_config(environ=environ).window_s == 13
    assert load_config(write(tmp_path / "option.toml", 14), environ=environ).window_s == 14


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        load_config(tmp_path / "none.toml", environ={})
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(environ={"TRIAGE_CONFIG": str(tmp_path)})


# ---- options over the file


def test_targets_of_options_replace_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "triage.toml"
    file.write_text('[[target]]\nurl = "http://file:1"\ntimeout_s = 2\n')
    config = load_config(file, environ={})
    assert override(config, environ={}) == config
    assert [one.target.name for one in override(config, targets=["a=http://x"], environ={}).targets] == ["a"]
    assert override(config, timeout_s=0.5, environ={}).targets[0].access.timeout_s == 0.5


def test_the_usual_key_goes_to_targets_of_options_alone(tmp_path: Path) -> None:
    file = tmp_path / "triage.toml"
    file.write_text('[[target]]\nurl = "http://file:1"\n')
    environ = {"TRIAGE_API_KEY": "sk-one"}
    config = load_config(file, environ=environ)
    assert override(config, environ=environ).targets[0].access.credential is None
    (one,) = override(config, targets=["http://x"], environ=environ).targets
    assert one.access.credential == Credential(CredentialKind.ENVIRONMENT, ("TRIAGE_API_KEY",))
    assert "sk-one" not in repr(one)
    (one,) = override(config, targets=["http://x"], environ={}).targets
    assert one.access.credential is None


def test_a_short_window_has_three_scrapes_all_the_same() -> None:
    assert override(Config(), window_s=4, environ={}).interval_s == 2
    assert override(Config(), window_s=60, environ={}).interval_s == 5
    assert override(Config(), window_s=60, interval_s=20, environ={}).interval_s == 20
    with pytest.raises(ConfigError, match="never two scrapes"):
        override(Config(), window_s=5, interval_s=10, environ={})


def test_two_targets_with_one_name_are_refused_with_both_addresses() -> None:
    with pytest.raises(ConfigError, match="'a' is http://x:1 and http://y:2"):
        override(Config(), targets=["a=http://x:1", "a=http://y:2"], environ={})
    with pytest.raises(ConfigError, match="one name"):
        override(Config(), targets=["http://x:1", "http://x:1/v1"], environ={})


def test_two_targets_with_one_address_are_a_notice() -> None:
    config = override(Config(), targets=["a=http://x:1", "b=http://X:1/"], environ={})
    assert len(config.targets) == 2
    assert config.notices == ("a and b are the same address, http://X:1/",)


# ---- credentials


def test_a_credential_is_one_reference() -> None:
    assert credential_of() is None
    assert credential_of(key_file="/run/key") == Credential(CredentialKind.FILE, ("/run/key",))
    assert credential_of(key_command="vault read -field 'a b'") == Credential(
        CredentialKind.COMMAND, ("vault", "read", "-field", "a b")
    )
    with pytest.raises(ConfigError, match="more than one"):
        credential_of(key_env="A", key_file="b")


@pytest.mark.parametrize("words", [{"key_env": "sk-abc.def"}, {"key_command": "'open"}, {"key_command": "  "}])
def test_a_credential_that_cannot_be_meant(words: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        credential_of(**words)
    assert "sk-abc" not in str(caught.value), "whoever writes the key instead of its name must not see it again"
