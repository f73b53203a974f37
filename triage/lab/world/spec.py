"""What a replica and a service are made of, before anything goes wrong."""

import msgspec

from triage.lab.batching.settings import EngineSettings
from triage.lab.load.shapes import Shape
from triage.lab.machine.step_time import Machine
from triage.lab.pages.forms import Flavour, StartTimes
from triage.lab.world.hop import Hop


class ReplicaSpec(msgspec.Struct, frozen=True):
    """One engine process. restarts_after: seconds until a process that ended is started again, doubled each time."""

    name: str
    flavour: Flavour
    machine: Machine
    settings: EngineSettings
    start: StartTimes = StartTimes()
    restarts_after: float = 10.0

    @property
    def model(self) -> str:
        return self.machine.checkpoint.name


class Condition(msgspec.Struct, frozen=True):
    """What can differ from the start without a restart: of the machine, and of what wraps the model's answers.

    compute, bandwidth, host, acceptance: as in Machine. leak: bytes per device that something takes each second, of
    the room beside the engine's; when it is full the next large step fails. unparsed: part of the tool calls that
    arrive as text. blank: part of the answers whose text is lost. halted: the scheduler stands still.
    """

    compute: float = 1.0
    bandwidth: float = 1.0
    host: float = 1.0
    acceptance: float = 0.8
    leak: float = 0.0
    unparsed: float = 0.0
    blank: float = 0.0
    halted: bool = False


class ServiceSpec(msgspec.Struct, frozen=True):
    """One model behind the gateway: replicas, users of one shape, and the way to them.

    context: tokens that applications believe a prompt and its answer may have.
    """

    model: str
    replicas: tuple[ReplicaSpec, ...]
    shape: Shape
    users: int
    hop: Hop = Hop()
    context: int = 32_768
