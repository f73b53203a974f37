"""What graded runs add up to: how often right, abstained and wrong, by fault and by word."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from triage.domain.verdict import Confidence, Kind
from triage.drill.course import Look, Run

# Words whose evidence lies in sources that are not read yet: a gateway's log, Kubernetes objects, GPU samples, the
# matrix of requests that must be refused.
UNREAD: dict[Kind, str] = {
    Kind.GATEWAY_TIMEOUT: "gateway log",
    Kind.GATEWAY_OVERHEAD: "gateway log",
    Kind.RETRY_STORM: "gateway log",
    Kind.TRUNCATED_STREAM: "gateway log",
    Kind.OVER_REJECTION: "gateway log",
    Kind.CLIENT_ABORT: "gateway log",
    Kind.TOOL_CALL_FAILURE: "captured answers",
    Kind.EMPTY_OUTPUT: "captured answers",
    Kind.READY_NOT_ROUTABLE: "kubernetes",
    Kind.UNSCHEDULABLE: "kubernetes",
    Kind.ROLLOUT_STUCK: "kubernetes",
    Kind.CRASH_LOOP: "kubernetes",
    Kind.GPU_THROTTLED: "gpu",
    Kind.GPU_FAULT: "gpu",
    Kind.AUTH_HOLE: "rejection matrix",
}


class Score(msgspec.Struct, frozen=True):
    """Numbers of looks. readable: their truth lies in sources that are read; the others are counted apart.

    confident_wrong: wrong although likely or confirmed. false_alarms: something else than healthy, on a fleet that
    was. right_when: (right, all) by confidence.
    """

    looks: int
    right: int
    abstained: int
    wrong: int
    confident_wrong: int
    unread: int
    unread_right: int
    unread_abstained: int
    unread_confident_wrong: int
    healthy: int
    false_alarms: int
    right_when: dict[str, tuple[int, int]]

    @property
    def top_1(self) -> float:
        return self.right / self.looks if self.looks else 0.0


def readable(look: Look) -> bool:
    """Whether something that is wrong can be told from what is read; that nothing is wrong, always can."""
    return not look.certain or any(kind not in UNREAD for kind in look.certain)


def score(looks: Sequence[Look]) -> Score:
    seen = [look for look in looks if readable(look)]
    unseen = [look for look in looks if not readable(look)]
    fine = [look for look in looks if look.accepted == {Kind.HEALTHY}]
    said: dict[str, tuple[int, int]] = {}
    for confidence in Confidence:
        of_it = [look for look in looks if look.confidence is confidence]
        said[confidence.value] = (sum([look.right for look in of_it]), len(of_it))
    return Score(
        looks=len(seen),
        right=sum([look.right for look in seen]),
        abstained=sum([is_abstained(look) for look in seen]),
        wrong=sum([is_wrong(look) for look in seen]),
        confident_wrong=sum([is_confident_wrong(look) for look in seen]),
        unread=len(unseen),
        unread_right=sum([look.right for look in unseen]),
        unread_abstained=sum([is_abstained(look) for look in unseen]),
        unread_confident_wrong=sum([is_confident_wrong(look) for look in unseen]),
        healthy=len(fine),
        false_alarms=sum([not look.right and not is_abstained(look) for look in fine]),
        right_when=said,
    )


def confusion(looks: Sequence[Look]) -> dict[Kind, Counter[Kind]]:
    """For each true word how often each word was said. A right word that is not the main one counts as it."""
    table: dict[Kind, Counter[Kind]] = defaultdict(Counter)
    for look in looks:
        table[look.truth][look.truth if look.right else look.kind] += 1
    return table


def by_fault(runs: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.name].append(run)
    return found


def time_to_right(runs: Sequence[Run]) -> list[float]:
    """Seconds from the page to the first right word, of runs in which one was said."""
    return [next(look.after_s for look in run.looks if look.right) for run in runs if any(x.right for x in run.looks)]


def is_abstained(look: Look) -> bool:
    return not look.right and look.kind is Kind.INSUFFICIENT_DATA


def is_wrong(look: Look) -> bool:
    return not look.right and look.kind is not Kind.INSUFFICIENT_DATA


def is_confident_wrong(look: Look) -> bool:
    return is_wrong(look) and look.confidence in (Confidence.LIKELY, Confidence.CONFIRMED)
