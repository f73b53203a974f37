"""The announced probe in virtual time: one streamed question to a simulated engine, read as a real answer is."""

import math

from triage.dialects.streams.observer import StreamObserver
from triage.dialects.streams.sse import SseDecoder
from triage.domain.stream import OWN_PROBE, ProbeReading, StreamReading
from triage.lab.batching.refusal import Refused
from triage.lab.batching.request import Request, Sequence
from triage.lab.load.session import Habits
from triage.lab.load.shapes import Shape
from triage.lab.serving.answers import AnswerWriter, Spoiled
from triage.lab.world.replica import Replica, State

_PROMPT_TOKENS = 40
# What the model says to such a short question, before it thinks as long as it does for others.
_ANSWER_TOKENS = 60
_PATH = "/v1/chat/completions"


class VirtualProbe:
    """One question to one replica. max_tokens, total_s: as in the budget of the real probe."""

    def __init__(
        self, replica: Replica, shape: Shape, habits: Habits, at: float, *, max_tokens: int, total_s: float
    ) -> None:
        self.sent = at
        self._replica = replica
        self._total_s = total_s
        self._sequence: Sequence | None = None
        self._status: int | None = 200
        self._error = ""
        usual = shape.reasoning.median if shape.reasoning is not None else 0.0
        thought = usual * habits.reasoning if usual else _ANSWER_TOKENS * (habits.reasoning - 1.0)
        self._request = Request(
            prompt_tokens=_PROMPT_TOKENS,
            visible_tokens=_ANSWER_TOKENS,
            max_tokens=max_tokens,
            reasoning_tokens=round(thought),
            shows_reasoning=shape.shows_reasoning and not habits.hides,
        )
        self._spoiled = Spoiled(blank=replica.condition.blank > 0.5)
        if replica.state in (State.DOWN, State.STARTING):
            self._status, self._error = None, "refused: nobody listens"
            return
        try:
            self._sequence = replica.submit(self._request, at, self)
        except Refused as refused:
            self._status, self._error = refused.reason.value, str(refused)

    def first_token(self, sequence: Sequence, at: float) -> None:
        """The reading takes its times from the sequence."""

    first_visible = ended = first_token

    def result(self, now: float) -> tuple[ProbeReading, StreamReading | None] | None:
        """None while the answer is under way and its time is not over."""
        sequence = self._sequence
        target = self._replica.name
        if sequence is None:
            refused = self._status is not None
            probe = ProbeReading(
                OWN_PROBE,
                target,
                "POST",
                _PATH,
                self._status,
                total_s=0.01,
                at=now,
                error="" if refused else self._error,
                body=self._error if refused else "",
            )
            return probe, None
        late = now - self.sent >= self._total_s
        if not sequence.ended and not late:
            return None
        stream = self._read(sequence, min(now, self.sent + self._total_s))
        marks = [mark for mark in (stream.first_reasoning_s, stream.first_visible_s) if mark is not None]
        probe = ProbeReading(
            OWN_PROBE,
            target,
            "POST",
            _PATH,
            200,
            total_s=stream.closed_s,
            first_token_s=min(marks, default=None),
            output_tokens=stream.completion_tokens,
            at=now,
            error="" if sequence.ended else f"time-out: not finished after {self._total_s:g} s",
        )
        return probe, stream

    def _read(self, sequence: Sequence, until: float) -> StreamReading:
        """The events that would have come, with their times, through the reader of real streams."""
        writer = AnswerWriter(
            self._replica.spec.flavour, self._replica.spec.model, True, sequence.request, self._spoiled
        )
        observer = StreamObserver(OWN_PROBE, self._replica.name, self._replica.spec.model, 200)
        decoder = SseDecoder()

        def feed(event: bytes, at: float) -> None:
            for item in decoder.feed(event):
                observer.feed(item.text, at - self.sent, item.event)

        times = self._token_times(sequence, until)
        for index, at in enumerate(times):
            if index == 0:
                for event in writer.opening():
                    feed(event, at)
            if event := writer.token(index):
                feed(event, at)
        whole = not math.isnan(sequence.finished) and sequence.phase.value == "finished"
        for event in writer.closing(usage=True) if whole else ():
            feed(event, sequence.finished)
        end = sequence.finished if sequence.ended else until
        return observer.close(end - self.sent, clean=True if whole else False if sequence.ended else None)

    def _token_times(self, sequence: Sequence, until: float) -> list[float]:
        """Evenly between the marks that the engine knows."""
        count = sequence.counted if sequence.ended else self._replica.engine.emitted(sequence)
        if math.isnan(sequence.first_token) or not count:
            return []
        thought = min(sequence.request.reasoning_tokens, count)
        end = sequence.finished if sequence.ended else until
        visible = sequence.first_visible if not math.isnan(sequence.first_visible) else end
        times = [sequence.first_token + (visible - sequence.first_token) * i / max(thought, 1) for i in range(thought)]
        shown = count - thought
        start = visible if thought else sequence.first_token
        return times + [start + (end - start) * i / max(shown - 1, 1) for i in range(shown)]
