"""One measured streaming request, from the first packet to the close of the connection."""

import secrets
import time

import msgspec

from triage.dialects.ollama import read_processes
from triage.dialects.streams.observer import StreamObserver
from triage.dialects.streams.sse import SseDecoder, SseItem
from triage.domain.stream import OWN_PROBE, ProbeReading, StreamReading
from triage.domain.target import Failure, FailureReason, Target
from triage.domain.text import clean
from triage.gate import Answer, Client
from triage.probing.budget import Budget

_CHAT = "/v1/chat/completions"
_MODELS = "/v1/models"
_IN_MEMORY = "/api/ps"
_MODELS_LIMIT = 1024 * 1024
# An error body as far as evidence needs its words.
_BODY_KEPT = 500


class Measured(msgspec.Struct, frozen=True):
    """stream: None when no event stream came. failure: why the answer is not whole, or None."""

    probe: ProbeReading
    stream: StreamReading | None
    failure: Failure | None


async def measure(client: Client, target: Target, model: str, budget: Budget) -> Measured:
    """Ask `model` one short question and time its streamed answer. Cancelling closes the connection.

    Nothing of the answer is kept but counts and times.
    """
    unready = await client.prepare()
    if unready is not None:
        return _measured(client, target, model, unready, None, 0.0)
    watch = _Watch(target, model)
    ended = await client.probe(
        client.address.prefix + _CHAT,
        _question(model, budget),
        watch.take,
        limit=int(budget.answer_mib * 1024 * 1024),
        timeout_s=budget.total_s,
    )
    total_s = watch.elapsed()
    return _measured(client, target, model, ended, watch.close(ended, total_s), total_s)


async def list_models(client: Client) -> tuple[str, ...] | Failure:
    """Models by name as the target lists them; adapters on top of another listed model are left out.

    Ollama lists what lies on its disk, and a question would load it, perhaps in place of one that users need: of
    several models only those are given that are in memory.
    """
    answer = await client.get(client.address.prefix + _MODELS, limit=_MODELS_LIMIT)
    if isinstance(answer, Failure):
        return answer
    try:
        cards = msgspec.json.decode(answer.body, type=_ModelList).data
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return Failure(FailureReason.BAD_ANSWER, f"{_MODELS} is no list of models", answer.status)
    listed = tuple(dict.fromkeys(clean(card.id, 200) for card in cards if card.id and not card.parent))
    return listed if len(listed) < 2 else await _in_memory(client, listed)


async def _in_memory(client: Client, listed: tuple[str, ...]) -> tuple[str, ...] | Failure:
    path = client.address.prefix + _IN_MEMORY
    answer = await client.get(path, limit=_MODELS_LIMIT)
    page = read_processes(answer.body, Target(""), path, None) if isinstance(answer, Answer) else None
    if page is None or page.processes is None:
        return listed
    held = {model.name for model in page.processes.models}
    loaded = tuple(name for name in listed if name in held)
    return loaded or Failure(
        FailureReason.NOT_ALLOWED,
        f"none of {len(listed)} models is in memory, and a question would load one: name it as the target's model",
    )


class _Card(msgspec.Struct):
    id: str = ""
    parent: str | None = None  # vLLM: the base model of an adapter


class _ModelList(msgspec.Struct):
    data: list[_Card]


class _Watch:
    """Takes the bytes of the answer as they come, and their times."""

    def __init__(self, target: Target, model: str) -> None:
        self._started = time.monotonic()
        self._decoder = SseDecoder()
        self._observer = StreamObserver(OWN_PROBE, target.name, model, 200)

    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def take(self, chunk: bytes) -> None:
        self._observe(self._decoder.feed(chunk), self.elapsed())

    def close(self, ended: Answer | Failure, at: float) -> StreamReading | None:
        """None where no stream began: an error status, no connection, or a body that is none and holds no text."""
        self._observe(self._decoder.finish(), at)
        if isinstance(ended, Answer):
            began = ended.content_type.lower().startswith("text/event-stream")
        else:
            began = ended.status == 200 and ended.reason in _ENDS_A_STREAM
        reading = self._observer.close(at, clean=_was_clean(ended))
        return reading if began or reading.chunks else None

    def _observe(self, items: list[SseItem], at: float) -> None:
        for item in items:
            if item.kind == "data":
                self._observer.feed(item.text, at, item.event)
            else:
                self._observer.comment(at)


_ENDS_A_STREAM = frozenset({FailureReason.TIMEOUT, FailureReason.DISCONNECTED, FailureReason.TOO_LARGE})


def _was_clean(ended: Answer | Failure) -> bool | None:
    """True: the server ended it in order. False: it was cut. None: we stopped reading at a bound of our own."""
    if isinstance(ended, Answer):
        return True
    return None if ended.reason in (FailureReason.TIMEOUT, FailureReason.TOO_LARGE) else False


def _question(model: str, budget: Budget) -> bytes:
    return msgspec.json.encode(
        {
            "model": model,
            "messages": [{"role": "user", "content": budget.prompt.replace("{nonce}", secrets.token_hex(4))}],
            "max_tokens": budget.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    )


def _measured(
    client: Client, target: Target, model: str, ended: Answer | Failure, stream: StreamReading | None, total_s: float
) -> Measured:
    failure = ended if isinstance(ended, Failure) else None
    if isinstance(ended, Answer) and stream is None:
        what = ended.content_type or "an answer without a content type"
        failure = Failure(FailureReason.BAD_ANSWER, f"asked for an event stream, got {what}", ended.status)
    refused = failure is not None and failure.status is not None and failure.status >= 400
    marks = () if stream is None else (stream.first_reasoning_s, stream.first_visible_s, stream.first_tool_s)
    probe = ProbeReading(
        source=OWN_PROBE,
        target=target.name,
        method="POST",
        path=client.address.prefix + _CHAT,
        status=ended.status,
        total_s=total_s,
        first_token_s=min([mark for mark in marks if mark is not None], default=None),
        output_tokens=None if stream is None else stream.completion_tokens,
        at=time.time(),
        error="" if failure is None or refused else str(failure),
        body=failure.detail[:_BODY_KEPT] if failure is not None and refused else "",
        model=model,
    )
    return Measured(probe, stream, failure)
