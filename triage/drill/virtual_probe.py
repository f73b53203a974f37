"""The announced probe in virtual time: one streamed question through the gateway, read as a real answer is."""

import math

from triage.dialects.streams.observer import StreamObserver
from triage.dialects.streams.sse import SseDecoder
from triage.domain.stream import OWN_PROBE, ProbeReading, StreamReading
from triage.lab.batching.request import Sequence
from triage.lab.load.question import question
from triage.lab.serving.answers import AnswerWriter, Spoiled
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service

_PROMPT_TOKENS = 40
_PATH = "/v1/chat/completions"
_GATEWAY = "gateway"


class VirtualProbe:
    """One question to a service. max_tokens, total_s: as in the budget of the real probe."""

    def __init__(self, service: Service, at: float, *, max_tokens: int, total_s: float) -> None:
        self._service = service
        self._total_s = total_s
        habits, shape = service.users.crowd.habits, service.spec.shape
        request = question(shape, habits, prompt_tokens=_PROMPT_TOKENS, max_tokens=max_tokens)
        self._call = Call(service.model, "probe", f"probe-{at}", request, at)
        self._call.identity = "probe"
        self._call.outside = True
        service.send(self._call, at)

    def result(self, now: float) -> tuple[ProbeReading, StreamReading | None] | None:
        """None while the answer is under way and its time is not over."""
        call = self._call
        late = now - call.sent >= self._total_s
        if call.open and not late:
            return None
        end = call.ended if not call.open else call.sent + self._total_s
        if late and call.open:
            self._service.gateway.leave(call, now)
        failed = call.outcome in (Outcome.FAILED, Outcome.REFUSED)
        stream = None if failed else self._read(end)
        marks = [] if stream is None else [stream.first_reasoning_s, stream.first_visible_s]
        probe = ProbeReading(
            OWN_PROBE,
            _GATEWAY,
            "POST",
            _PATH,
            call.status if failed else 200,
            total_s=end - call.sent,
            first_token_s=min([mark for mark in marks if mark is not None], default=None),
            output_tokens=None if stream is None else stream.completion_tokens,
            at=now,
            error="" if failed or call.outcome is not Outcome.LEFT else f"time-out: not over after {self._total_s:g} s",
            body=call.details if failed else "",
            model=call.model,
        )
        return probe, stream

    def _read(self, end: float) -> StreamReading:
        """The events that would have come, with their times, through the reader of real streams."""
        call, sequence = self._call, self._call.answer
        observer = StreamObserver(OWN_PROBE, _GATEWAY, call.model, 200)
        whole = call.outcome is Outcome.COMPLETE
        left = call.outcome is Outcome.LEFT
        if sequence is None or (self._service.gateway.hop.holds and not whole):
            return observer.close(end - call.sent, clean=None if left else False)
        flavour = next(one.spec.flavour for one in self._service.replicas if one.name == call.attempts[-1].replica)
        writer = AnswerWriter(flavour, call.model, True, sequence.request, Spoiled(blank=call.blank))
        decoder = SseDecoder()

        def feed(event: bytes, at: float) -> None:
            for item in decoder.feed(event):
                observer.feed(item.text, (end if self._service.gateway.hop.holds else at) - call.sent, item.event)

        for index, at in enumerate(_token_times(sequence, end)):
            if index == 0:
                for event in writer.opening():
                    feed(event, at)
            if event := writer.token(index):
                feed(event, at)
        for event in writer.closing(usage=True) if whole else ():
            feed(event, end)
        return observer.close(end - call.sent, clean=True if whole else None if left else False)


def _token_times(sequence: Sequence, end: float) -> list[float]:
    """Evenly between the marks that the engine knows. The sequence is over."""
    count = sequence.counted
    if math.isnan(sequence.first_token) or not count:
        return []
    thought = min(sequence.request.reasoning_tokens, count)
    visible = sequence.first_visible if not math.isnan(sequence.first_visible) else end
    times = [sequence.first_token + (visible - sequence.first_token) * i / max(thought, 1) for i in range(thought)]
    shown = count - thought
    start = visible if thought else sequence.first_token
    return times + [start + (end - start) * i / max(shown - 1, 1) for i in range(shown)]
