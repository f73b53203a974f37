"""How reading a target went, from its last page and its last failure."""

from collections.abc import Sequence

from triage.domain.reading import PageReading
from triage.domain.situation import TargetStatus
from triage.domain.target import Failure, FailureReason, Target, TargetState

_ANSWERS_WITHOUT_METRICS = frozenset(
    {
        FailureReason.NOT_FOUND,
        FailureReason.NOT_METRICS,
        FailureReason.EMPTY,
        FailureReason.TOO_LARGE,
        FailureReason.SERVER_ERROR,
        FailureReason.CLIENT_ERROR,
        FailureReason.UNAUTHORIZED,
        FailureReason.FORBIDDEN,
        FailureReason.REDIRECT,
    }
)


def status_of(
    target: Target,
    page: PageReading | None,
    failure: Failure | None,
    *,
    answered_at: float | None,
    at: float,
    patience: float,
) -> TargetStatus:
    """State at `at`. page: its last good one. failure: of the last attempt. patience: seconds until it is stale."""
    engine = page.engines[0] if page and page.engines else None
    # An old list says nothing about now: models are unloaded after minutes.
    processes = page.processes if page and failure is None else None
    age = None if answered_at is None else max(at - answered_at, 0.0)
    if failure is not None and failure.reason in _ANSWERS_WITHOUT_METRICS:
        state = TargetState.NO_METRICS
    elif failure is not None:
        state = TargetState.NEVER if answered_at is None else TargetState.DARK
    elif page is None:
        state = TargetState.NEVER
    elif not page.engines and not page.gpus and page.processes is None:
        state = TargetState.NO_METRICS
        failure = page.no_engine()
    else:
        state = TargetState.STALE if age is not None and age > patience else TargetState.OK
    return TargetStatus(
        target=target,
        state=state,
        failure=failure,
        answered_at=answered_at,
        age_s=age,
        engine=_engine_of(page),
        dialect=engine.dialect if engine else "",
        families=page.families if page else frozenset(),
        problems=page.problems if page else (),
        relabelled=page.relabelled if page else "",
        processes=processes,
    )


def _engine_of(page: PageReading | None) -> str:
    if page is None:
        return ""
    if page.engines:
        return page.engines[0].engine
    if page.processes is not None:
        return page.processes.engine
    return "gpu exporter" if page.gpus else ""


def without_page(statuses: Sequence[TargetStatus]) -> str:
    """Why there are no engine metrics although engines answer; '' when that is not the reason."""
    names = sorted({status.processes.engine for status in statuses if status.processes is not None})
    return f"{' and '.join(names)} exports neither queue nor times: a probe and answers tell" if names else ""
