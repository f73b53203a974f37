"""The allow-list: what is on it, and that nothing else gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.target import FailureReason
from triage.gate.allow import Purpose, refusal

READABLE = [
    "/metrics",
    "/metrics/",
    "/v1/metrics",
    "/prometheus/metrics",
    "/v1/models",
    "/api/ps",
    "/api/version",
    "/team-a/llama_3.1/metrics",
    "/api/v1/namespaces/x/services/http:y:8000/proxy/metrics",
]
# SGLang, vLLM and Ollama routes that change something, some of them on GET; and ways to hide one.
NEVER = [
    "/health",
    "/load",
    "/flush_cache",
    "/release_memory_occupation",
    "/start_profile",
    "/stop_profile",
    "/sleep",
    "/shutdown",
    "/generate",
    "/api/delete",
    "/api/tags",
    "/api/show",
    "/api/pull",
    "/api/chat",
    "/api/ps/x",
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/load_lora_adapter",
    "/reload",
    "/download",
    "/healthz",
    "/health_generate",
    "",
    "/",
    "metrics",
    "//metrics",
    "/a//metrics",
    "/../metrics",
    "/flush_cache/..",
    "/x/../metrics",
    "/./metrics",
    "/flush_cache;/metrics",
    "/flush_cache%2f..%2fmetrics",
    "/%2e%2e/metrics",
    "/flush_cache?/metrics",
    "/flush_cache#/metrics",
    "/flush_cache\\metrics",
    "/flush_cache /metrics",
    "/metrics\r\nX: y",
    "/metrics\n",
    "/metrics/flush_cache",
    "/metrics//",
    "/Metrics",
    "/mêtrics",
]


@pytest.mark.parametrize("path", READABLE)
def test_what_is_read(path: str) -> None:
    assert refusal(Purpose.READ, "GET", path) is None


@pytest.mark.parametrize("path", NEVER)
def test_what_is_never_sent(path: str) -> None:
    refused = refusal(Purpose.READ, "GET", path)
    assert refused is not None
    assert refused.reason is FailureReason.NOT_ALLOWED
    assert refused.detail.isprintable()


@pytest.mark.parametrize("path", READABLE)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "get", "GET ", ""])
def test_reading_is_get_alone(method: str, path: str) -> None:
    assert refusal(Purpose.READ, method, path) is not None


def test_a_probe_posts_to_the_chat_route_alone() -> None:
    for path in ("/v1/chat/completions", "/team/llama/v1/chat/completions"):
        assert refusal(Purpose.PROBE, "POST", path) is None
        assert refusal(Purpose.READ, "POST", path) is not None
        assert refusal(Purpose.PROBE, "GET", path) is not None
    for path in (*READABLE, *[path for path in NEVER if not path.endswith("/chat/completions")]):
        assert refusal(Purpose.PROBE, "POST", path) is not None


@given(st.text(alphabet="/.;%?#\\abmetrics \r\n\x00", max_size=40))
def test_an_allowed_path_means_the_same_to_every_server(path: str) -> None:
    if refusal(Purpose.READ, "GET", path) is None:
        assert not set(path) & set(";%?#\\ \r\n\x00")
        segments = path.removesuffix("/").split("/")
        assert segments[0] == ""
        assert "" not in segments[1:]
        assert not {".", ".."} & set(segments)
        assert segments[-1] == "metrics"
