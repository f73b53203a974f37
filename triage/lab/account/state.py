"""Things that are broken whether or not users feel them: processes, lists, pages."""

import msgspec

from triage.domain.verdict import Kind
from triage.lab.world.replica import Replica, State
from triage.lab.world.service import Service
from triage.lab.world.watch import Watch


class Thing(msgspec.Struct, frozen=True):
    """kinds: verdicts that name it, the most exact one first. capacity: the fleet can serve less because of it.

    felt: it is wrong beyond doubt; otherwise both this and its absence may be said.
    """

    kinds: tuple[Kind, ...]
    why: str
    capacity: bool = False
    felt: bool = True


def broken_things(service: Service, watch: Watch) -> list[Thing]:
    """What is broken now."""
    found = [thing for replica in service.replicas for thing in _of_process(replica)]
    listed = set(service.gateway.listed)
    for replica in service.replicas:
        if replica.healthy and not replica.engine.halted and replica.name not in listed:
            # Seen from the engines alone it is a peer that gets nothing to do.
            kinds = (Kind.READY_NOT_ROUTABLE, Kind.LOAD_IMBALANCE)
            found.append(Thing(kinds, f"{replica.name} is ready and not in the gateway's list", capacity=True))
    found += [Thing((Kind.ROLLOUT_STUCK,), f"{pod} waits for a node", felt=False) for pod in service.unplaced]
    found += [Thing((Kind.METRICS_MISSING,), f"{name} exports no page") for name in sorted(watch.off)]
    found += [Thing((Kind.METRICS_FROZEN,), f"the page of {name} never changes") for name in sorted(watch.stale)]
    for name in sorted(watch.renamed):
        found.append(Thing((Kind.METRICS_RENAMED, Kind.METRICS_MISSING), f"the series of {name} have other names"))
    return found


def _of_process(replica: Replica) -> list[Thing]:
    name = replica.name
    if replica.state is State.BROKEN:
        kinds = (Kind.GPU_FAULT, Kind.ENGINE_DEAD) if replica.xid else (Kind.ENGINE_DEAD,)
        return [Thing(kinds, f"the core of {name} is gone", capacity=True)]
    if replica.state is State.SERVING:
        if replica.engine.halted:
            busy = replica.engine.open_requests > 0
            return [Thing((Kind.ENGINE_STALLED,), f"{name} stands still", capacity=True, felt=busy)]
        if replica.condition.leak:
            return [Thing((Kind.OUT_OF_MEMORY,), f"memory of {name} leaks", felt=False)]
        return []
    if not replica.placed:
        return [Thing((Kind.UNSCHEDULABLE, Kind.ENGINE_DEAD), f"{name} has no node", capacity=True)]
    names = [Kind.ENGINE_DEAD] if replica.state is State.DOWN else [Kind.COLD_START, Kind.ENGINE_DEAD]
    if replica.fails_start or replica.condition.leak:
        names.insert(0, Kind.OUT_OF_MEMORY)
    if len(replica.exits) > 1 or replica.fails_start or replica.startup_limit < replica.start_times.whole:
        names.insert(0, Kind.CRASH_LOOP)
    if replica.start_times.download and Kind.COLD_START not in names:
        names.insert(0, Kind.COLD_START)
    if replica.xid:
        names.insert(0, Kind.GPU_FAULT)
    words = f"{name} is {replica.state.value} after {len(replica.exits)} ended processes"
    return [Thing(tuple(names), words, capacity=True)]
