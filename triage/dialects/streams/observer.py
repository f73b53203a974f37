"""Watches one streamed answer, of whichever inference API, and says how it went."""

import json
from typing import Any

import msgspec

from triage.dialects.streams.chunk import Chunk, Usage
from triage.dialects.streams.completeness import Facts, judge
from triage.dialects.streams.markup import CallWatch
from triage.dialects.streams.protocols import read_payload
from triage.dialects.streams.responses import RESPONSES
from triage.dialects.streams.tags import ThinkTags
from triage.dialects.streams.tally import Tally, ToolCalls
from triage.domain.stream import ServerTimes, StreamReading

_DONE = "[DONE]"


class StreamObserver:
    """Feed it the data of each event with its time in seconds since the request, or None where unknown.

    Memory is bounded whatever the stream does: texts are counted, never kept. Nothing here raises on
    anything a server can send.
    """

    def __init__(self, source: str, target: str, model: str = "", status: int | None = None) -> None:
        self._source, self._target, self._model, self._status = source, target, model, status
        self._protocol = ""
        self._timed = False
        self._first_event_s: float | None = None
        self._last_token_s: float | None = None
        self._seen_s: float | None = None
        self._events = self._chunks = self._comments = self._broken = 0
        self._finish = self._error = ""
        self._done = False
        self._usage = Usage()
        self._reasoning, self._visible = Tally(), Tally()
        self._tags: ThinkTags | None = ThinkTags(self._reasoning, self._visible)
        self._written, self._thought_call = CallWatch(), CallWatch()
        self._begun: set[int] = set()
        self._ended: set[int] = set()
        self._tools = ToolCalls()
        self._thought_s: float | None = None
        self._times: ServerTimes | None = None

    def feed(self, data: str, t: float | None, event: str = "") -> None:
        """The data of one event. event: the name given by its `event:` line."""
        data = data.strip()
        if not data:
            return
        if data == _DONE:
            self._done = True
            self._mark(t)
            return
        payload = _decode(data)
        if payload is None and "\n" in data:
            # A capture whose blank lines were lost: every line is an event of its own.
            for line in data.split("\n"):
                self.feed(line, t, event)
            return
        chunk = read_payload(payload, event) if isinstance(payload, dict) else None
        if chunk is None:
            self._broken += payload is None
            return
        self.take(chunk, t)

    def comment(self, t: float | None) -> None:
        """A comment: bytes that keep the connection alive, no event."""
        self._comments += 1
        self._mark(t)

    def take(self, chunk: Chunk, t: float | None) -> None:
        """One event, already translated."""
        self._mark(t)
        if chunk.ping:
            return
        self._protocol = self._protocol or chunk.protocol
        self._model = self._model or chunk.model
        if not self._events:
            self._first_event_s = t
        self._events += 1
        self._finish = self._finish or chunk.finish
        self._begun.update(chunk.begun)
        self._ended.update(chunk.ended)
        self._error = self._error or chunk.error
        self._done = self._done or chunk.done
        self._count_usage(chunk.usage)
        self._times = chunk.times or self._times
        if chunk.protocol == RESPONSES and chunk.done and self._chunks:
            return  # the end event repeats what the deltas carried
        self._count_text(chunk, t)

    def close(self, t: float | None, clean: bool | None, left: bool = False) -> StreamReading:
        """The end. clean: the server closed in order (True), it was cut (False), we stopped or nobody knows (None).

        t: seconds since the request when the connection, or the recording of it, ended. left: the client ended it.
        """
        if self._tags is not None:
            self._tags.finish()
        self._written.finish()
        self._thought_call.finish()
        broken_tool = self._tools.broken()
        closed_s = t if t is not None else self._seen_s
        self._timed = self._timed or t is not None
        error = self._error or (f"HTTP {self._status}" if self._status is not None and self._status >= 400 else "")
        idle_s = None if closed_s is None or self._last_token_s is None else closed_s - self._last_token_s
        completeness, detail = judge(
            Facts(
                events=self._events,
                comments=self._comments,
                broken=self._broken,
                finish=self._finish,
                done=self._done,
                clean=clean,
                error=error,
                reasoning_chars=self._reasoning.chars,
                visible_chars=self._visible.chars,
                tool_chars=self._tools.chars,
                tool_calls=len(self._tools),
                broken_tool=broken_tool,
                usage=self._usage,
                idle_s=idle_s,
                unfinished=len(self._begun - self._ended),
            )
        )
        notes = [detail] if detail else []
        if self._written.marker:
            notes.append(f"tool-call markup {self._written.marker} in the visible text")
        if self._broken and self._finish:
            notes.append(f"{self._broken} events are not JSON")
        first_reasoning = self._reasoning.first_s if self._reasoning.first_s is not None else self._thought_s
        return StreamReading(
            source=self._source,
            target=self._target,
            model=self._model,
            protocol=self._protocol,
            completeness=completeness,
            timed=self._timed,
            first_event_s=self._first_event_s,
            first_reasoning_s=first_reasoning,
            last_reasoning_s=self._reasoning.last_s if self._reasoning.last_s is not None else first_reasoning,
            first_visible_s=self._visible.first_s,
            first_tool_s=self._tools.first_s,
            last_token_s=self._last_token_s,
            closed_s=closed_s,
            chunks=self._chunks,
            reasoning_chars=self._reasoning.chars,
            visible_chars=self._visible.chars,
            tool_calls=len(self._tools),
            prompt_tokens=self._usage.prompt,
            completion_tokens=self._usage.completion,
            reasoning_tokens=self._usage.reasoning,
            finish_reason=self._finish or None,
            error=error or None,
            events=self._events,
            status=self._status,
            detail="; ".join(notes),
            markup=self._written.marker,
            written_call=self._written.name,
            hidden_call=self._thought_call.name,
            broken_arguments=broken_tool,
            left=left,
            server=self._times,
        )

    def _mark(self, t: float | None) -> None:
        if t is not None:
            self._timed = True
            self._seen_s = t

    def _count_usage(self, usage: Usage | None) -> None:
        """The last count wins: vLLM can report a running one with every chunk."""
        if usage is not None:
            pairs = zip(usage, self._usage, strict=True)
            self._usage = Usage(*(before if now is None else now for now, before in pairs))

    def _count_text(self, chunk: Chunk, t: float | None) -> None:
        if chunk.reasoning:
            self._reasoning.add(chunk.reasoning, t)
            self._thought_call.feed(chunk.reasoning)
            self._stop_tags()
        elif chunk.thought:
            self._stop_tags()
            self._thought_s = t if self._thought_s is None else self._thought_s
        if chunk.content:
            visible = chunk.content
            if self._tags is not None:
                before = self._visible.chars
                visible = self._tags.feed(chunk.content, t)
                if self._visible.chars < before:
                    self._written = CallWatch()  # what looked visible so far was reasoning
            else:
                self._visible.add(chunk.content, t)
            self._written.feed(visible)
        for part in chunk.tools:
            self._tools.add(part, t)
        if chunk.reasoning or chunk.content or chunk.tools:
            self._chunks += 1
            self._last_token_s = t

    def _stop_tags(self) -> None:
        """Reasoning has a field of its own: tags in the content are text."""
        if self._tags is not None:
            self._tags.finish()
            self._tags = None


def _decode(data: str) -> Any:
    """Decoded JSON, or None. Strict and fast first; the lenient way takes lone surrogates and NaN too."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
