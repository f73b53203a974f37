"""TensorRT-LLM's /metrics is a queue that readers empty: it is read once at most, and the page beside it found."""

import asyncio

from tests.data import RECORDINGS
from tests.integration.conftest import Serve
from tests.integration.server import Request, answer
from triage.domain.target import FailureReason, Target
from triage.gate import Access, Gate
from triage.sources.engine_scrape import EngineScrape

STATISTICS = (RECORDINGS / "samples/trtllm_iterations.json").read_bytes()
PAGE = (RECORDINGS / "samples/trtllm_serve.prom").read_bytes()


async def test_the_page_beside_the_queue_is_found_and_kept(serve: Serve, gate: Gate) -> None:
    async def engine(request: Request, writer: asyncio.StreamWriter) -> None:
        found = {"/metrics": STATISTICS, "/prometheus/metrics": PAGE}.get(request.path)
        writer.write(answer(found) if found is not None else answer("no", "404 Not Found"))

    server = await serve(engine)
    for url in (server.url, f"{server.url}/metrics"):
        server.requests.clear()
        source = EngineScrape(gate, [(Target("engine", url), Access(url))])
        for _ in range(3):
            (scrape,) = await source.read()
            assert scrape.page is not None
            assert scrape.page.engines[0].engine == "tensorrt-llm"
        assert [request.path for request in server.requests].count("/metrics") == 1


async def test_without_such_a_page_the_queue_is_still_left_alone(serve: Serve, gate: Gate) -> None:
    async def engine(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(answer("[]") if request.path == "/metrics" else answer("no", "404 Not Found"))

    server = await serve(engine)
    source = EngineScrape(gate, [(Target("engine", server.url), Access(server.url))])
    for _ in range(3):
        (scrape,) = await source.read()
        assert scrape.failure is not None
        assert scrape.failure.reason is FailureReason.NOT_FOUND
        assert "every reader takes away" in scrape.failure.detail
    assert [request.path for request in server.requests].count("/metrics") == 1
