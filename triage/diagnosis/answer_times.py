"""What servers say of their own time on single answers, where no metrics of them were read."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from triage.diagnosis.host import cpu_evidence
from triage.diagnosis.hypothesis import Hypothesis
from triage.diagnosis.offload import partly_on_cpu
from triage.diagnosis.text import count, percent, seconds
from triage.diagnosis.thresholds import ANSWERS_AGREE, DIAL_MINIMUM, LATE_ALLOWED
from triage.diagnosis.view import ReplicaView
from triage.domain.limits import Limits
from triage.domain.situation import Situation
from triage.domain.stream import ServerTimes, StreamReading
from triage.domain.verdict import TIMED_KINDS, Direction, Evidence, Family, Kind, Scope, Share

_OF = "the answer's time at the server"
_ROOM = "other models answer beside it: waiting until one makes room looks the same"


class _Timed(NamedTuple):
    """One answer and the server's times for it."""

    stream: StreamReading
    times: ServerTimes


class _Phase(NamedTuple):
    """A phase that may hold up the first token, and how it is called."""

    kind: Kind
    detail: str | None
    seconds: Callable[[ServerTimes], float]
    words: str
    next_test: str
    confounder: str


_PHASES = (
    _Phase(
        Kind.COLD_START,
        "model-load",
        lambda times: times.load_s,
        "passed until the model was in memory",
        "send the same request twice within a minute: the second must not load; if it does, compare num_ctx and "
        "keep_alive of the requests, and look for other models in /api/ps",
        "load time includes waiting until another model's requests end and it makes room: with several models in "
        "use that is a queue for memory",
    ),
    _Phase(
        Kind.QUEUEING,
        None,
        lambda times: times.queue_s or 0.0,
        "are in no phase that the server names: waiting for a free slot",
        "send one request when no other runs: this time must vanish; then count the slots (OLLAMA_NUM_PARALLEL)",
        "it is what remains of the total: preparing a request with images or a long history is in it as well",
    ),
    _Phase(
        Kind.SLOW_PREFILL,
        None,
        lambda times: times.prompt_s,
        "went to reading the prompt",
        "send the same request again at once: with its prompt in the cache it must be fast; then a short one",
        "a long prompt takes long on a healthy server",
    ),
)


def judge_answer_times(situation: Situation, views: Sequence[ReplicaView]) -> list[Hypothesis]:
    """Causes that the answers' own times show. views: engines whose pages were read; what those serve is left out."""
    paged = {view.model for view in views}
    by_model: dict[str, list[_Timed]] = defaultdict(list)
    for stream in situation.streams:
        measured = not views or (stream.model and "" not in paged and stream.model not in paged)
        if stream.server is not None and measured:
            by_model[stream.model].append(_Timed(stream, stream.server))

    def others(model: str) -> bool:
        return any(stream.model and stream.model != model for stream in situation.streams)

    found = []
    for model, answers in by_model.items():
        late = [answer for answer in answers if answer.times.before_s > situation.limits.first_visible_p95_s]
        for phase in _PHASES:
            own = [answer for answer in late if _leading(answer.times) is phase]
            if own:
                held = _held_up(phase, model, own, len(answers), situation.limits)
                found.append(held.doubted(_ROOM) if phase.kind is Kind.COLD_START and others(model) else held)
        slow = _slow_tokens(model, answers, situation)
        found += [slow] if slow is not None else []
    return found


def breaks_limit(times: ServerTimes, limits: Limits) -> str:
    """Which limit one answer broke by the server's own times, in words; '' when none."""
    if times.before_s > limits.first_visible_p95_s:
        return f"its first token took {seconds(times.before_s)} at the server"
    if _tokens_are_slow(times, limits):
        return f"its tokens took {seconds(times.per_token_s or 0.0)} each"
    return ""


def _leading(times: ServerTimes) -> _Phase:
    """The phase that takes most of the time before the first token."""
    return max(_PHASES, key=lambda phase: phase.seconds(times))


def _tokens_are_slow(times: ServerTimes, limits: Limits) -> bool:
    per_token = times.per_token_s
    return per_token is not None and times.decode_tokens >= DIAL_MINIMUM and per_token > limits.time_per_token_mean_s


def _held_up(phase: _Phase, model: str, own: Sequence[_Timed], answers: int, limits: Limits) -> Hypothesis:
    worst = max(own, key=lambda answer: phase.seconds(answer.times))
    took, whole = phase.seconds(worst.times), worst.times.whole_s
    bound = limits.first_visible_p95_s
    # By itself it breaks the limit, and nothing else took longer, writing the answer included.
    decisive = phase.kind not in TIMED_KINDS and took > bound and took > worst.times.decode_s
    many = f"{len(own)} of {answers} answers" if answers > 1 else "an answer"
    longest = "in the longest " if len(own) > 1 else ""
    found = Hypothesis(
        kind=phase.kind,
        detail=phase.detail,
        scope=Scope(model=model or None),
        summary=f"{many} came late: {longest}{seconds(took)} of {seconds(whole)} {phase.words}",
        evidence=(
            Evidence(
                id=f"probe.server.{phase.detail or phase.kind.value}",
                direction=Direction.FOR,
                strength=3 if decisive else 2,
                family=Family.PROBE,
                text=f"the server's own times: {_told(worst)}",
                value=took,
                unit="s",
                threshold=bound,
                n=len(own),
                source=worst.stream.source,
            ),
        ),
        share=_share([phase.seconds(answer.times) / answer.times.whole_s for answer in own]),
        next_test=phase.next_test,
        confounders=(phase.confounder,),
    )
    return _weighed(found, len(own), answers, one_is_enough=phase.kind not in TIMED_KINDS)


def _slow_tokens(model: str, answers: Sequence[_Timed], situation: Situation) -> Hypothesis | None:
    limits = situation.limits
    slow = [answer for answer in answers if _tokens_are_slow(answer.times, limits)]
    if not slow:
        return None
    tokens = sum(answer.times.decode_tokens for answer in slow)
    mean = sum(answer.times.decode_s for answer in slow) / tokens
    on_cpu = partly_on_cpu(model, situation.loaded_models)
    starved = cpu_evidence(situation.containers)
    worst = max(slow, key=lambda answer: answer.times.per_token_s or 0.0)
    many = f"{len(slow)} of {len(answers)} answers" if len(answers) > 1 else "an answer"
    words = f": {on_cpu[0].text}" if on_cpu else ": the container gets too little CPU" if starved else ""
    found = Hypothesis(
        kind=Kind.SLOW_DECODE,
        detail="cpu-offload" if on_cpu else "cpu-starvation" if starved else None,
        scope=Scope(model=model or None),
        summary=f"{many} took {seconds(mean)} for each token{words}",
        evidence=(
            Evidence(
                id="probe.server.per-token",
                direction=Direction.FOR,
                strength=3 if mean >= 2 * limits.time_per_token_mean_s else 2,
                family=Family.PROBE,
                text=f"the server's own times: {seconds(mean)} for each of {count(tokens)} tokens",
                value=mean,
                unit="s",
                threshold=limits.time_per_token_mean_s,
                n=tokens,
                source=worst.stream.source,
            ),
            *on_cpu,
            *starved,
        ),
        share=_share([answer.times.decode_s / answer.times.whole_s for answer in slow]),
        next_test=(
            "load a smaller model or quantisation, or a smaller context, so that /api/ps shows all of it in GPU memory"
            if on_cpu
            else "send one request when no other runs: slow tokens then are the device's, else the batch's"
        ),
        confounders=("requests that run beside it share each step: their number is not known",),
    )
    return _weighed(found, len(slow), len(answers), one_is_enough=bool(on_cpu or starved))


def _weighed(found: Hypothesis, own: int, answers: int, *, one_is_enough: bool) -> Hypothesis:
    """No surer than possible where few answers show it.

    one_is_enough: another witness agrees, or the server names the cause itself.
    """
    if own <= LATE_ALLOWED * answers:
        return found.doubted(f"{own} of {answers} answers may be late at a limit for the 95th percentile")
    if one_is_enough:
        return found
    if own < ANSWERS_AGREE:
        return found.doubted("a single answer" if answers == 1 else f"only {own} of {answers} answers")
    return found.doubted("most answers do not show it") if 2 * own <= answers else found


def _share(parts: Sequence[float]) -> Share:
    ordered = sorted(parts)
    return Share(ordered[len(ordered) // 2], ordered[0], ordered[-1], _OF)


def _told(answer: _Timed) -> str:
    times = answer.times
    prompt = f" for {count(answer.stream.prompt_tokens)} tokens" if answer.stream.prompt_tokens else ""
    parts = [f"load {seconds(times.load_s)}"] * (times.load_s > 0)
    parts += [
        f"prompt {seconds(times.prompt_s)}{prompt}",
        f"{count(times.decode_tokens)} tokens in {seconds(times.decode_s)}",
    ]
    if times.queue_s is not None:
        parts.append(f"the rest {seconds(times.queue_s)} ({percent(times.queue_s / times.whole_s)})")
    return ", ".join(parts)
