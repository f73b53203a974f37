"""Captured streams and whole answers in an evidence folder."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from triage.dialects.streams.chunk import Chunk
from triage.dialects.streams.observer import StreamObserver
from triage.dialects.streams.protocols import read_payload
from triage.dialects.streams.sse import SseDecoder
from triage.domain.stream import StreamReading

# ': t=1.25' gives seconds since the request for the events that follow (cli.md).
_TIME = re.compile(r"t=(\d{1,9}(?:\.\d{1,9})?)s?$")
_TIME_IN_NOTE = re.compile(r"\bt=(\d{1,9}(?:\.\d{1,9})?)")
# The client ended a stream that went on, by a decision of its own or at a time-out of its own (curl's exit code 28).
_LEFT = re.compile(
    r"(?:client|user) (?:stopped|left|closed|cancell?ed|aborted|gave up|time[ds -]?out)"
    r"|(?:cancell?ed|stopped|ended|closed|aborted) by (?:the )?(?:client|user)|curl: \(28\)|\bmax-time\b",
    re.IGNORECASE,
)
# What a person or a recorder notes about the end. First match wins. None: the recording ended, not the stream.
_NOTES: tuple[tuple[re.Pattern[str], bool | None], ...] = (
    (_LEFT, None),
    (
        re.compile(
            r"capture ended|still open|stopped (?:reading|recording)|(?:cancell?ed|stopped|ended) by (?:the )?observer",
            re.IGNORECASE,
        ),
        None,
    ),
    (
        re.compile(
            r"closed without|\breset\b|broken pipe|\baborted\b|connection (?:lost|dropped|cut)|tim(?:ed|e)[ -]?out"
            r"|unexpected eof",
            re.IGNORECASE,
        ),
        False,
    ),
    (
        re.compile(
            r"closed (?:cleanly|normally|in order)|clean (?:close|end)|closed by (?:the )?server", re.IGNORECASE
        ),
        True,
    ),
)
# Comments that servers send while they work; they may well speak of a time-out.
_KEPT_ALIVE = re.compile(r"keep-?alive|heartbeat|\bping\b", re.IGNORECASE)


def read_capture(text: str, source: str, target: str) -> StreamReading:
    """A `*.sse` file: events, `: t=` marks and notes about the end, in any of the known APIs."""
    decoder = SseDecoder()
    observer = StreamObserver(source, target)
    at: float | None = None
    closed_s: float | None = None
    clean: bool | None = None
    noted = left = False
    for item in (*decoder.feed(text.encode("utf-8", "replace")), *decoder.finish()):
        if item.kind == "data":
            observer.feed(item.text, at, item.event)
            noted, left, clean, closed_s = False, False, None, None  # a note before this was not about the end
            continue
        mark = _TIME.match(item.text)
        if mark is not None:
            at = float(mark[1])
            continue
        note = _note(item.text)
        if note is None:
            observer.comment(at)
        elif not noted:
            noted = True
            left = _LEFT.search(item.text) is not None
            clean = note[0]
            closed_s = note[1] if note[1] is not None else at
    return observer.close(closed_s, clean, left)


def read_response(body: Mapping[str, Any], source: str, target: str) -> StreamReading | None:
    """An answer that was not streamed; None when it is no finished answer of a known API, or an error body."""
    chunk = read_payload(body)
    if chunk is None or chunk.error or chunk.ping or not chunk.protocol or not (chunk.finish or _has_text(chunk)):
        return None
    observer = StreamObserver(source, target)
    observer.take(chunk._replace(done=True), None)
    return msgspec.structs.replace(observer.close(None, True), whole=True)


def _has_text(chunk: Chunk) -> bool:
    return bool(chunk.reasoning or chunk.content or chunk.tools)


def _note(text: str) -> tuple[bool | None, float | None] | None:
    if _KEPT_ALIVE.search(text):
        return None
    for pattern, clean in _NOTES:
        if pattern.search(text):
            found = _TIME_IN_NOTE.search(text)
            return clean, float(found[1]) if found else None
    return None
