"""URLs as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.errors import ConfigError
from triage.domain.text import clean
from triage.gate.address import Address, address_of

GOOD = {
    "http://engine:8000": Address("http", "engine", 8000, "", None),
    "http://engine": Address("http", "engine", 80, "", None),
    "https://Engine.Example/": Address("https", "engine.example", 443, "", None),
    "HTTP://10.0.0.7:30000/metrics": Address("http", "10.0.0.7", 30000, "", "/metrics"),
    "http://[::1]:8000": Address("http", "::1", 8000, "", None),
    "http://engine:8000/v1": Address("http", "engine", 8000, "", None),
    "http://engine:8000/v1/": Address("http", "engine", 8000, "", None),
    "http://gw/team/llama": Address("http", "gw", 80, "/team/llama", None),
    "http://gw/team/llama/v1": Address("http", "gw", 80, "/team/llama", None),
    "http://gw/team/v1/metrics": Address("http", "gw", 80, "/team", "/team/v1/metrics"),
    "http://trt:8000/prometheus/metrics": Address("http", "trt", 8000, "", "/prometheus/metrics"),
    "http://e:8000/v1/chat/completions": Address("http", "e", 8000, "", None),
    "http://exporter:9400/gpu/metrics/": Address("http", "exporter", 9400, "/gpu", "/gpu/metrics/"),
    "http://modell.münchen:80": Address("http", "modell.xn--mnchen-3ya", 80, "", None),
}


@pytest.mark.parametrize("url", GOOD)
def test_what_a_url_means(url: str) -> None:
    assert address_of(url) == GOOD[url]


BAD = {
    "": "no scheme",
    "engine:8000": "http://engine:8000",
    "localhost": "http://localhost",
    "ftp://engine": "neither http nor https",
    "unix:///run/engine.sock": "neither http nor https",
    "http://": "no host",
    "http://:8000": "no host",
    "http://engine:port": "not a port",
    "http://engine:0": "not a port",
    "http://engine:65536": "not a port",
    "http://engine:-1": "not a port",
    "http://engine:": "not a port",
    "http://engine:²": "not a port",
    "http://[::1": "",
    "http://[nonsense]:80": "",
    "http://eng ine": "spaces or control",
    "http://engine\n": "spaces or control",
    "http://engine\x1b[31m": "spaces or control",
    "http://a..b": "no host",
    "http://engine/pfad/ü": "ASCII",
    "http://engine/metrics?x=1": "query",
    "http://engine/metrics#x": "query",
}


@pytest.mark.parametrize("url", BAD)
def test_what_cannot_be_meant_is_said(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address_of(url)
    assert BAD[url] in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "http://user:hunter2@engine:8000",
        "http://hunter2@engine",
        "https://user:hun/ter2@engine",
        "user:hunter2@engine:8000",
        "gopher://user:hunter2@engine",
        "http://engine?key=hunter2",
        "http://engine:bad?key=hunter2",
        "engine?key=hunter2",
        "http://engine#hunter2",
    ],
)
def test_no_message_repeats_a_secret(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        address_of(url)
    assert "hunter2" not in str(caught.value)
    assert "ter2" not in str(caught.value)


@given(st.text(max_size=60) | st.text(max_size=40).map("http://{}".format))
def test_any_text_is_an_address_or_a_config_error(text: str) -> None:
    try:
        address = address_of(text)
    except ConfigError as error:
        said = str(error)
        assert clean(said, 2000) == said
        return
    assert address.scheme in ("http", "https")
    assert address.host
    assert address.authority.isascii()
    assert 1 <= address.port <= 65535
