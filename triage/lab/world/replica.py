"""One engine process: starting, serving, dying, starting again; and what can be read from it."""

import math
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Lines
from enum import Enum

import msgspec

from triage.lab.batching.refusal import Reason, Refused
from triage.lab.batching.request import Listener, Request, Sequence
from triage.lab.batching.settings import EngineSettings
from triage.lab.pages.forms import Flavour
from triage.lab.pages.writer import writers_of
from triage.lab.world.spec import Condition, ReplicaSpec
from triage.lab.world.timeline import Timeline

# Lines of a log that are kept, of the process that runs and of the one before it.
_LOG_LINES = 2000
# Of a device's memory beside the engine's share (--gpu-memory-utilization): what others may take until a step fails.
_BESIDE = 0.1
_BACK_OFF_MOST_S = 300.0
_BACK_OFF_FORGOTTEN_S = 600.0


class State(Enum):
    STARTING = "starting"
    SERVING = "serving"
    BROKEN = "broken"  # the engine's core is gone, its front end answers
    DOWN = "down"  # nobody listens


class Exit(msgspec.Struct, frozen=True):
    """The end of a process, as its container tells it."""

    at: float
    code: int
    reason: str


class Replica:
    """Virtual seconds; `timeline` is the world's, `zero` the unix seconds at which it begins.

    changed: called when the state has changed. says: writes its log.
    started: when this process began. starts: how many there have been. startup_limit: seconds after which a start
    that is not over is killed. fails_start: memory that another process holds makes each start fail once the weights
    are loaded. placed: a node has room for it. xid: the driver's last error of its device, 0 for none.
    """

    def __init__(
        self,
        spec: ReplicaSpec,
        timeline: Timeline,
        seed: str,
        changed: "Callable[[Replica, float], None]",
        zero: float = 0.0,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.condition = Condition(acceptance=spec.machine.acceptance)
        self.settings = spec.settings
        self.start_times = spec.start
        self.startup_limit = math.inf
        self.fails_start = False
        self.placed = True
        self.xid = 0
        self.state = State.DOWN
        self.started = 0.0
        self.starts = 0
        self.exits: list[Exit] = []
        self.log: deque[tuple[float, str]] = deque(maxlen=_LOG_LINES)
        self.previous_log: deque[tuple[float, str]] = deque(maxlen=_LOG_LINES)
        self._timeline = timeline
        self._seed = seed
        self._changed = changed
        self._zero = zero
        self._leaked = 0.0
        self._leaked_at = 0.0
        self._boot()

    def _boot(self) -> None:
        """A new process: empty caches, counters at zero."""
        seed = f"{self._seed}/{self.name}/{self.starts}"
        made = writers_of(self.spec.flavour, self.settings, self.spec.machine, self._zero, seed)
        self.engine, self._page, self.says = made

    # ---- life

    def begin(self, at: float, *, long_ago: bool = False) -> None:
        """The process starts. long_ago: it has been serving for some time already, its start is not played."""
        self.previous_log = self.log
        self.log = deque(maxlen=_LOG_LINES)
        self.started = at
        self.starts += 1
        self._leaked, self._leaked_at = 0.0, at
        self._boot()
        serial = self.starts
        self._timeline.at(at + self.says.every_s, lambda moment: self._report(serial, moment))
        if long_ago:
            self.started = at - self.start_times.whole
            self._play_start(self.started)
            self._serve(at)
            return
        self._become(State.STARTING, at)
        for due, lines in self.says.start(at, self.start_times):
            self._timeline.at(due, lambda moment, lines=lines: self._if_same(serial, self.write, moment, lines))  # type: ignore[misc]
        if self.xid:
            greeted = at + self.start_times.launch
            self._timeline.at(greeted, lambda moment: self._if_same(serial, self._miss_device, moment))
            return
        if self.fails_start:
            loaded = at + self.start_times.loaded
            self._timeline.at(loaded, lambda moment: self._if_same(serial, self._fail_start, moment))
            return
        over = at + self.start_times.whole
        if over <= at + self.startup_limit:
            self._timeline.at(over, lambda moment: self._if_same(serial, lambda m: self._serve(m), moment))
        else:
            self._timeline.at(
                at + self.startup_limit,
                lambda moment: self._if_same(serial, lambda m: self.exit(m, 137, "Killed"), moment),
            )

    def _play_start(self, at: float) -> None:
        for due, lines in self.says.start(at, self.start_times):
            self.write(due, lines)

    def _serve(self, at: float) -> None:
        self._become(State.SERVING, at)
        self._apply(at)

    def exit(self, at: float, code: int, reason: str, lines: Lines[str] = ()) -> None:
        """The process ends; it is started again when its back-off is over."""
        if self.state is State.DOWN:
            return
        self.write(at, lines)
        self.exits.append(Exit(at, code, reason))
        self._become(State.DOWN, at)
        self.engine.die(at)
        recent = [one for one in self.exits if at - one.at < _BACK_OFF_FORGOTTEN_S]
        wait = min(self.spec.restarts_after * 2.0 ** (len(recent) - 1), _BACK_OFF_MOST_S)
        if math.isfinite(self.spec.restarts_after):
            serial = self.starts
            self._timeline.at(at + wait, lambda moment: self._start_again(serial, moment))

    def _start_again(self, serial: int, at: float) -> None:
        if serial == self.starts and self.state is State.DOWN and self.placed:
            self.begin(at)

    def _fail_start(self, at: float) -> None:
        self.exit(at, 1, "Error", self.says.out_of_memory(at))

    def _miss_device(self, at: float) -> None:
        self.exit(at, 1, "Error", self.says.device_lost(at))

    def slow_start(self, download: float, limit: float) -> None:
        """Starts from now on have the weights to download (seconds), and are killed after the limit (seconds)."""
        self.start_times = msgspec.structs.replace(self.spec.start, download=download)
        self.startup_limit = limit

    def vacate(self, at: float) -> None:
        """Its pod is taken away, and no node has room for the next one."""
        self.placed = False
        self.exit(at, 0, "Completed")

    def mend(self, at: float) -> None:
        """As at the beginning; a process that does not serve is replaced by one that does."""
        self.start_times, self.startup_limit = self.spec.start, math.inf
        self.fails_start, self.placed, self.xid = False, True, 0
        self.change(Condition(acceptance=self.spec.machine.acceptance), at)
        self._leaked = 0.0
        self.exits.clear()
        self.limit(self.spec.settings, at)
        if self.state is not State.SERVING or self.engine.settings != self.spec.settings:
            self.restart(at)

    def restart(self, at: float) -> None:
        """Another process in its place, at once: empty caches, counters at zero."""
        if not self.engine.dead:
            self.engine.die(at)
        self.begin(at, long_ago=True)

    def lose_core(self, at: float, lines: Lines[str]) -> None:
        """The engine's core process dies. vLLM's front end goes on answering, with errors; SGLang ends as a whole."""
        if self.state is not State.SERVING:
            return
        if self.spec.flavour is Flavour.SGLANG:
            self.exit(at, 1, "Error", lines)
        else:
            self.write(at, lines)
            self._become(State.BROKEN, at)
            self.engine.die(at)

    # ---- its condition

    def change(self, condition: Condition, at: float) -> None:
        self._leaked = self.leaked(at)
        self._leaked_at = at
        self.condition = condition
        if self.state is State.SERVING:
            self._apply(at)

    def limit(self, settings: EngineSettings, at: float) -> None:
        """Other limits: at once where an engine takes them while it runs, the rest with the next start."""
        self.settings = settings
        if self.state is State.SERVING:
            self.engine.limit(settings, at)

    def leaked(self, at: float) -> float:
        """Bytes per device that something has taken since the start."""
        return self._leaked + self.condition.leak * (at - self._leaked_at)

    def _apply(self, at: float) -> None:
        condition = self.condition
        machine = msgspec.structs.replace(
            self.spec.machine,
            compute=condition.compute,
            bandwidth=condition.bandwidth,
            host=condition.host,
            acceptance=condition.acceptance,
        )
        if machine != self.engine.machine:
            self.engine.change(machine, at)
        if condition.halted:
            self.engine.halt(at)
        else:
            self.engine.resume(at)
        if condition.leak > 0:
            serial = self.starts
            full = at + max(_BESIDE * self.spec.machine.device.memory - self.leaked(at), 0.0) / condition.leak
            self._timeline.at(full, lambda moment: self._if_same(serial, self._out_of_memory, moment))

    def _out_of_memory(self, at: float) -> None:
        if self.leaked(at) >= 0.999 * _BESIDE * self.spec.machine.device.memory:
            self.exit(at, 1, "Error", self.says.out_of_memory(at))

    # ---- what can be asked of it

    @property
    def listening(self) -> bool:
        """Somebody accepts connections on its port."""
        return self.state in (State.SERVING, State.BROKEN)

    @property
    def healthy(self) -> bool:
        """Its health route says 200: the process is there and does not know of a dead core."""
        return self.state is State.SERVING

    def submit(self, request: Request, at: float, listener: Listener) -> Sequence:
        """Refused when the engine takes nothing of it."""
        if self.state is State.BROKEN:
            raise Refused(Reason.DEAD, "the engine's core is gone")
        return self.engine.submit(request, at, listener)

    def page(self, at: float) -> str:
        """Its metrics page."""
        self.engine.settle(at)
        return self._page.text(self._zero + self.started, self._zero + at)

    def write(self, at: float, lines: Lines[str]) -> None:
        self.log.extend((at, line) for line in lines)

    # ---- inside

    def _report(self, serial: int, at: float) -> None:
        """An engine's regular line about its throughput; silent while its scheduler stands or it has no work."""
        if serial != self.starts or self.state in (State.DOWN, State.BROKEN):
            return
        if self.state is State.SERVING:
            self.engine.settle(at)
            self.write(at, self.says.report(at))
        self._timeline.at(at + self.says.every_s, lambda moment: self._report(serial, moment))

    def _become(self, state: State, at: float) -> None:
        self.state = state
        self._changed(self, at)

    def _if_same(self, serial: int, action: "Callable[..., None]", at: float, *more: object) -> None:
        """Only while the process is the one that set it."""
        if serial == self.starts and self.state is not State.DOWN:
            action(at, *more)
