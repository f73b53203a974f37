"""[prometheus] and --prometheus: what they can say, and whose key goes where."""

from pathlib import Path

import pytest

from triage.config import load_config, override
from triage.config.prometheus import prometheus_of
from triage.config.settings import Config
from triage.domain.errors import ConfigError
from triage.gate import Credential, CredentialKind

KEY = Credential(CredentialKind.ENVIRONMENT, ("PROM_TOKEN",))


def load(tmp_path: Path, text: str) -> Config:
    file = tmp_path / "triage.toml"
    file.write_text(text)
    return load_config(file, environ={})


def test_everything_it_can_say(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [prometheus]
        url = "https://mimir:8443/prometheus"
        matchers = 'namespace="llm", cluster=~"eu-.*",'
        ca = "ca.pem"
        key_env = "PROM_TOKEN"
        timeout_s = 30
        """,
    )
    assert config.prometheus is not None
    access = config.prometheus.access
    assert (access.url, access.ca, access.timeout_s) == (
        "https://mimir:8443/prometheus",
        str(tmp_path / "ca.pem"),
        30.0,
    )
    assert access.credential == KEY
    assert config.prometheus.matchers == 'namespace="llm", cluster=~"eu-.*"'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[prometheus]\nurl = "prom:9090"', "line 2, prometheus, url: unusable URL"),
        ('[prometheus]\nurl = "http://u:p@prom"', "user name or password"),
        (
            '[prometheus]\nurl = "http://p"\nmatchers = "namespace=llm"',
            "line 3, prometheus, matchers: unusable matchers",
        ),
        ('[prometheus]\nurl = "http://p"\nmatchers = \'a="b"}) or ({x="y"\'', "unusable matchers"),
        ('[prometheus]\nurl = "http://p"\npassword = "x"', "a secret has no place in a file"),
        ('[prometheus]\nurl = "http://p"\nmatcher = "x"', "did you mean matchers?"),
        ('[prometheus]\nurl = "http://p"\ntimeout_s = 0', "line 3, prometheus, timeout_s"),
        ("[prometheus]\ninsecure = true", "'url' is missing"),
        ('[prometheus]\nurl = "http://p"\nkey_env = "A"\nkey_file = "b"', "two credentials"),
        ('[[prometheus]]\nurl = "http://p"', "prometheus"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert says in str(caught.value)


def test_a_found_file_may_not_run_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "triage.toml").write_text('[prometheus]\nurl = "http://p"\nkey_command = "vault read"')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="key_command is not run"):
        load_config(environ={})


@pytest.mark.parametrize(
    "pasted",
    [
        "http://p:9090/prom/",
        "http://p:9090/prom/graph",
        "http://p:9090/prom/graph?g0.expr=up&g0.tab=1",
        "http://p:9090/prom/api/v1",
        "http://p:9090/prom/api/v1/query",
        "http://p:9090/prom/targets",
    ],
)
def test_what_people_paste_means_its_base(pasted: str) -> None:
    assert prometheus_of(pasted).access.url == "http://p:9090/prom"


def test_a_host_called_like_a_page_is_a_host() -> None:
    assert prometheus_of("http://graph").access.url == "http://graph"


def test_the_option_replaces_the_file_and_keeps_its_credential_for_the_same_url(tmp_path: Path) -> None:
    config = load(tmp_path, '[prometheus]\nurl = "http://p:9090"\nkey_env = "PROM_TOKEN"')
    same = override(config, prometheus="http://p:9090/graph", environ={}).prometheus
    other = override(config, prometheus="http://q:9090", environ={"TRIAGE_API_KEY": "x"}).prometheus
    assert same is not None
    assert same.access.credential == KEY
    assert other is not None
    assert other.access.credential is None, "neither the file's key nor the engines' goes to another address"


def test_a_key_of_the_command_line_goes_to_the_targets_where_there_are_any() -> None:
    alone = override(Config(), prometheus="http://p", credential=KEY, environ={})
    both = override(Config(), prometheus="http://p", targets=["http://e"], credential=KEY, environ={})
    assert alone.prometheus is not None
    assert alone.prometheus.access.credential == KEY
    assert both.prometheus is not None
    assert both.prometheus.access.credential is None
    assert both.targets[0].access.credential == KEY
    with pytest.raises(ConfigError, match="a credential without a target"):
        override(Config(), credential=KEY, environ={})


def test_a_time_out_of_the_command_line_is_for_both() -> None:
    config = override(Config(), prometheus="http://p", targets=["http://e"], timeout_s=2.0, environ={})
    assert config.prometheus is not None
    assert (config.prometheus.access.timeout_s, config.targets[0].access.timeout_s) == (2.0, 2.0)
