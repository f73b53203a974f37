"""One streaming request against servers that stream well, badly, or not at all."""

import asyncio
import json
from collections.abc import Callable, Mapping

import pytest

from tests.integration.conftest import Serve
from tests.integration.question import budget
from tests.integration.server import Request, Server, answer, hang
from triage.domain.errors import TriageError
from triage.domain.stream import Completeness
from triage.domain.target import Failure, FailureReason, Target
from triage.gate import Access, Credential, CredentialKind, Gate
from triage.probing.budget import Budget
from triage.probing.measure import Measured, list_models, measure
from triage.probing.prober import MOST_REQUESTS, EngineProber

Patience = Callable[[], asyncio.Timeout]
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 2}}


def event(delta: dict[str, str] | None = None, finish: str | None = None, **more: object) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    payload = {"object": "chat.completion.chunk", "model": "m", "choices": choices, **more}
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


WHOLE = [
    event({"role": "assistant", "content": ""}),
    event({"reasoning": "Let me"}),
    event({"reasoning": " see."}),
    event({"content": "It "}),
    event({"content": "rolls."}),
    event({}, "stop"),
    event(None, usage=_USAGE),
    b"data: [DONE]\n\n",
]


def streaming(pieces: list[bytes], end: str = "close") -> Callable[[Request, asyncio.StreamWriter], object]:
    """end: 'close', or 'hang' with the connection open."""

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if end == "hang":
            await hang(request, writer)
        writer.close()

    return handler


async def ask(gate: Gate, server: Server, bounds: Budget | None = None, **access: object) -> Measured:
    client = gate.client(Access(server.url, **access))  # type: ignore[arg-type]
    return await measure(client, Target("engine", server.url), "m", bounds or budget())


async def test_every_milestone_of_a_good_answer(serve: Serve, gate: Gate) -> None:
    server = await serve(streaming(WHOLE))
    measured = await ask(gate, server)
    stream = measured.stream
    assert measured.failure is None
    assert stream is not None
    assert stream.completeness is Completeness.COMPLETE
    marks = [
        stream.first_event_s,
        stream.first_reasoning_s,
        stream.last_reasoning_s,
        stream.first_visible_s,
        stream.last_token_s,
        stream.closed_s,
        measured.probe.total_s,
    ]
    assert all(mark is not None and mark > 0 for mark in marks)
    assert marks == sorted(mark for mark in marks if mark is not None)
    assert (stream.reasoning_chars, stream.visible_chars) == (len("Let me see."), len("It rolls."))
    assert (stream.prompt_tokens, stream.completion_tokens, stream.reasoning_tokens) == (9, 4, 2)
    assert measured.probe.first_token_s == stream.first_reasoning_s
    assert measured.probe.output_tokens == 4


async def test_what_is_sent_is_marked_bounded_and_never_the_same(serve: Serve, gate: Gate) -> None:
    server = await serve(streaming(WHOLE))
    for _ in range(2):
        await ask(gate, server, budget(max_tokens=77))
    first, second = server.requests
    assert (first.method, first.path) == ("POST", "/v1/chat/completions")
    assert first.headers["x-triage-probe"] == "1"
    assert first.headers["user-agent"].startswith("triage/")
    assert first.headers["accept-encoding"] == "identity"
    body = json.loads(first.body)
    assert (body["model"], body["max_tokens"], body["stream"]) == ("m", 77, True)
    assert body["stream_options"] == {"include_usage": True}
    prompts = [json.loads(request.body)["messages"][0]["content"] for request in (first, second)]
    assert prompts[0][:16] != prompts[1][:16], "a common head would be in the prefix cache"
    assert first.connection != second.connection, "each probe pays for its connection"


async def test_a_stream_that_is_cut(serve: Serve, gate: Gate) -> None:
    async def cut(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in WHOLE[:4]:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        await writer.drain()
        writer.close()

    measured = await ask(gate, await serve(cut))
    assert measured.failure is not None
    assert measured.failure.reason is FailureReason.DISCONNECTED
    assert measured.stream is not None
    assert measured.stream.completeness is Completeness.TRUNCATED
    assert measured.stream.visible_chars == len("It ")
    assert measured.probe.error.startswith("disconnected")
    assert measured.probe.got_token


async def test_a_stream_that_ends_without_a_finish_reason(serve: Serve, gate: Gate) -> None:
    measured = await ask(gate, await serve(streaming(WHOLE[:4])))
    assert measured.stream is not None
    assert measured.stream.completeness is Completeness.TRUNCATED


async def test_an_error_inside_the_stream(serve: Serve, gate: Gate) -> None:
    error = b'data: {"error": {"message": "EngineCore encountered an issue.", "code": 500}}\n\n'
    measured = await ask(gate, await serve(streaming([*WHOLE[:2], error, b"data: [DONE]\n\n"])))
    assert measured.stream is not None
    assert measured.stream.completeness is Completeness.ERROR
    assert "EngineCore" in (measured.stream.error or "")


@pytest.mark.parametrize("pieces", [0, 4])
async def test_a_stream_that_falls_silent_ends_at_the_deadline(
    serve: Serve, gate: Gate, patience: Patience, pieces: int
) -> None:
    server = await serve(streaming(WHOLE[:pieces], end="hang"))
    async with patience():
        measured = await ask(gate, server, budget(total_s=0.4))
        await server.gone.wait()
    assert measured.failure is not None
    assert measured.failure.reason is FailureReason.TIMEOUT
    assert measured.stream is not None
    assert measured.stream.completeness is Completeness.OPEN
    assert measured.probe.got_token is bool(pieces)
    assert measured.probe.status == 200


async def test_a_request_that_is_taken_and_never_answered(serve: Serve, gate: Gate, patience: Patience) -> None:
    async with patience():
        measured = await ask(gate, await serve(hang), budget(total_s=0.3))
    assert measured.stream is None
    assert measured.failure is not None
    assert measured.failure.reason is FailureReason.TIMEOUT
    assert measured.probe.status is None
    assert measured.probe.error == "time-out: no answer within 0.3 s"


async def test_a_stream_that_never_ends_stops_at_the_byte_bound(serve: Serve, gate: Gate, patience: Patience) -> None:
    async def endless(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD)
        while True:
            writer.write(event({"content": "word " * 100}))
            await writer.drain()

    async with patience():
        measured = await ask(gate, await serve(endless), budget(answer_mib=0.25))
    assert measured.failure is not None
    assert measured.failure.reason is FailureReason.TOO_LARGE
    assert measured.stream is not None
    assert measured.stream.visible_chars <= 256 * 1024


async def test_a_gateway_that_answers_in_one_piece(serve: Serve, gate: Gate) -> None:
    whole = {"object": "chat.completion", "choices": [{"message": {"content": "It rolls."}, "finish_reason": "stop"}]}
    server = await serve(answer(json.dumps(whole), Content_Type="application/json", Connection="close"))
    measured = await ask(gate, server)
    assert measured.failure is None
    assert measured.stream is not None
    assert measured.stream.visible_chars == len("It rolls.")


async def test_a_page_instead_of_a_stream(serve: Serve, gate: Gate) -> None:
    measured = await ask(gate, await serve(answer("<html>Sign in</html>", Content_Type="text/html")))
    assert measured.stream is None
    assert measured.failure is not None
    assert measured.failure.reason is FailureReason.BAD_ANSWER
    assert "text/html" in measured.probe.error


async def test_an_error_status_keeps_what_the_engine_says(serve: Serve, gate: Gate) -> None:
    body = '{"error":{"message":"EngineCore encountered an issue. See stack trace (above)","code":500}}'
    measured = await ask(gate, await serve(answer(body, "500 Internal Server Error")))
    assert measured.stream is None
    assert measured.probe.status == 500
    assert "EngineCore encountered an issue" in measured.probe.body
    assert measured.probe.error == ""


async def test_a_missing_credential_sends_nothing(serve: Serve, gate: Gate) -> None:
    server = await serve(streaming(WHOLE))
    key = Credential(CredentialKind.ENVIRONMENT, ("TRIAGE_TEST_NO_SUCH_KEY",))
    measured = await ask(gate, server, credential=key)
    assert measured.failure is not None
    assert measured.failure.reason is FailureReason.CREDENTIAL
    assert server.connections == 0


async def test_cancelling_closes_the_connection(serve: Serve, gate: Gate, patience: Patience) -> None:
    server = await serve(streaming(WHOLE[:3], end="hang"))
    prober = EngineProber(gate, [(Target("engine", server.url, "m"), Access(server.url))], budget)
    probing = asyncio.create_task(prober.probe(lambda _: None))
    async with patience():
        await server.asked.wait()
        probing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probing
        await server.gone.wait()


# ---- which models


def models(*cards: Mapping[str, object]) -> bytes:
    return answer(json.dumps({"object": "list", "data": list(cards)}), Content_Type="application/json")


async def test_adapters_are_left_out(serve: Serve, gate: Gate) -> None:
    server = await serve(models({"id": "base", "parent": None}, {"id": "adapter", "parent": "base"}, {"id": "other"}))
    assert await list_models(gate.client(Access(server.url + "/v1"))) == ("base", "other")
    assert server.requests[0].path == "/v1/models"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"data": 3}', b'{"data": [1]}', b"[" * 100_000])
async def test_a_model_list_that_is_none(serve: Serve, gate: Gate, body: bytes) -> None:
    found = await list_models(gate.client(Access((await serve(answer(body))).url)))
    assert isinstance(found, Failure)
    assert found.reason is FailureReason.BAD_ANSWER


async def test_hostile_model_names_are_cleaned(serve: Serve, gate: Gate) -> None:
    server = await serve(models({"id": "x[/foo]\x1b]0;t\x07\u202e"}, {"id": ""}))
    assert await list_models(gate.client(Access(server.url))) == ("x[/foo]",)


def engine(*names: str) -> Callable[[Request, asyncio.StreamWriter], object]:
    stream = streaming(WHOLE)

    async def handler(request: Request, writer: asyncio.StreamWriter) -> None:
        if request.path == "/v1/models":
            writer.write(models(*[{"id": name} for name in names]))
        else:
            await stream(request, writer)  # type: ignore[misc]

    return handler


async def test_one_request_a_model_and_the_others_go_on(serve: Serve, gate: Gate) -> None:
    servers = [await serve(engine("a")), await serve(engine("a", "b")), await serve(answer(b"", "503 Loading"))]
    said: list[str] = []
    prober = EngineProber(gate, [(Target(f"t{n}", one.url), Access(one.url)) for n, one in enumerate(servers)], budget)
    results = await prober.probe(said.append)
    asked = [(probe.target, stream.model) for probe, stream in results if stream is not None]
    assert asked == [("t0", "a"), ("t1", "b")]
    assert any("t2" in line and "503" in line for line in said)


async def test_a_replica_in_doubt_is_asked_beside_the_gateway(serve: Serve, gate: Gate) -> None:
    front, doubted, other = [await serve(engine("a")) for _ in range(3)]
    behind = [(Target(name, one.url), Access(one.url)) for name, one in (("x", doubted), ("y", other))]
    prober = EngineProber(gate, [(Target("gateway", front.url), Access(front.url))], budget, behind)
    results = await prober.probe(lambda _: None, [("x", "a"), ("x", "a"), ("nobody", "a"), ("gateway", "a")])
    assert [probe.target for probe, _ in results] == ["gateway", "x"]
    assert not other.requests
    await prober.close()


async def test_a_gateway_with_many_models_is_not_flooded(serve: Serve, gate: Gate) -> None:
    server = await serve(engine(*[f"model-{number}" for number in range(40)]))
    results = await EngineProber(gate, [(Target("gateway", server.url), Access(server.url))], budget).probe(
        lambda _: None
    )
    assert len(results) == MOST_REQUESTS
    assert sum(request.method == "POST" for request in server.requests) == MOST_REQUESTS


async def test_nothing_to_probe_is_an_error_that_says_why(serve: Serve, gate: Gate) -> None:
    server = await serve(answer(b"", "404 Not Found"))
    prober = EngineProber(gate, [(Target("engine", server.url), Access(server.url))], budget)
    with pytest.raises(TriageError, match="engine: its models are not known"):
        await prober.probe(lambda _: None)
    assert str(MOST_REQUESTS) in prober.cost()
    assert "400 tokens" in prober.cost()
