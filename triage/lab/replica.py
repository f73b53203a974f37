"""One simulated engine process: load, engine and metrics page joined in virtual time."""

import random

from triage.lab.engine import Engine
from triage.lab.incidents import Flavour, Incident, ReplicaSpec
from triage.lab.sequence import Listener, Sequence
from triage.lab.sglang import SglangMetrics
from triage.lab.vllm import VllmMetrics
from triage.lab.workload import ClosedLoop, Request


class Replica:
    """Virtual seconds count from the start of the process. Deterministic by seed and calls."""

    def __init__(self, spec: ReplicaSpec, incident: Incident, seed: int) -> None:
        self.spec = spec
        self.now = 0.0
        self._workload = spec.steady or incident.workload
        self.metrics = (SglangMetrics if spec.flavour is Flavour.SGLANG else VllmMetrics)(spec.model, spec.settings)
        self.engine = Engine(spec.settings, self.metrics, f"{seed}/{spec.name}/engine")
        self._load = ClosedLoop(self._workload, f"{seed}/{spec.name}/load")
        self._answers = random.Random(f"{seed}/{spec.name}/answers")  # noqa: S311 - a reproducible model
        self.apply(incident)

    def apply(self, incident: Incident) -> None:
        """The incident begins now: other users, other answers, other speed. Open requests go on."""
        if self.spec.steady is None:
            self._workload = incident.workload
            self.engine.slowness = incident.slowness
            self._load.change(incident.workload, self.now)

    def advance(self, until: float) -> None:
        """Everything that happens up to `until`. A moment in the past changes nothing."""
        while True:
            arrival = self._load.next_at
            event = self.engine.next_at
            if min(arrival, event) > until:
                break
            if arrival <= event:
                self._arrive(arrival)
            else:
                self.engine.proceed()
        self.now = max(self.now, until)

    def compose(self, prompt_tokens: int, max_tokens: int | None, *, thinks: bool, streaming: bool) -> Request:
        """What the model will do with an outside request: as long an answer as the users get.

        max_tokens: None for whatever the context still holds. thinks: False where the client turned reasoning off.
        """
        drawn = self._workload.draw(self._answers)
        return Request(
            prompt_tokens=prompt_tokens,
            reasoning_tokens=drawn.reasoning_tokens if thinks else 0,
            visible_tokens=drawn.visible_tokens,
            max_tokens=self.spec.settings.max_model_len - prompt_tokens if max_tokens is None else max_tokens,
            streaming=streaming,
        )

    def submit(self, request: Request, on_token: Listener, on_end: Listener) -> Sequence:
        """An outside request joins the queue now. ValueError when it does not fit the context."""
        return self.engine.submit(request, self.now, on_token, on_end)

    def _arrive(self, at: float) -> None:
        user, request = self._load.take()
        self.engine.submit(request, at, on_end=lambda sequence: self._load.answered(user, sequence.finished))
