"""A container's log as kubelet hands it out."""

from collections.abc import Iterable

from triage.lab.cluster.asks import LogAsk
from triage.lab.cluster.names import CONTAINER, Object, nano_stamp
from triage.lab.cluster.statuses import bad_request
from triage.lab.world.replica import Replica, State

# (virtual seconds, text, which may have several lines)
Entry = tuple[float, str]


def check_container(pod: Object, container: str) -> None:
    """Refusal (400) for a container that the pod has not. container: "" for its only one."""
    names = [one["name"] for one in pod["spec"]["containers"]]
    if container and container not in names:
        raise bad_request(f"container {container} is not valid for pod {pod['metadata']['name']}")


def process_log(pod: Object, replica: Replica, *, previous: bool) -> Iterable[Entry]:
    """Of the process that runs or ran last, or of the one before. Refusal (400) when none has ended in this pod.

    While a container waits to be started again both are the log of the one that has ended, as kubelet does it.
    """
    if not previous:
        return replica.log
    if not pod["status"]["containerStatuses"][0]["lastState"]:
        name = pod["metadata"]["name"]
        raise bad_request(f'previous terminated container "{CONTAINER}" in pod "{name}" not found')
    return replica.log if replica.state is State.DOWN else replica.previous_log


def log_bytes(entries: Iterable[Entry], ask: LogAsk, zero: float) -> bytes:
    """zero: unix seconds of the virtual zero. The last lines first, then the first bytes of them."""
    lines = [
        f"{nano_stamp(zero + at)} {line}\n" if ask.timestamps else f"{line}\n"
        for at, text in entries
        if ask.since is None or zero + at >= ask.since
        for line in text.split("\n")
    ]
    if ask.tail is not None:
        lines = lines[max(len(lines) - ask.tail, 0) :]
    return "".join(lines).encode()[: ask.limit]


def after(entries: Iterable[Entry], last: Entry | None) -> list[Entry]:
    """Those behind `last`; all of them when it is not there any more."""
    kept = list(entries)
    for place in range(len(kept) - 1, -1, -1):
        if kept[place] is last:
            return kept[place + 1 :]
    return kept
