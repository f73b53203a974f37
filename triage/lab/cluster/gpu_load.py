"""What an engine's devices do: activity between two looks, and the clocks, power, heat and memory that follow."""

import msgspec

from triage.lab.batching.clocks import Clock
from triage.lab.cluster.templates import memory_share
from triage.lab.machine.devices import L40S
from triage.lab.machine.step_time import Machine
from triage.lab.world.replica import Replica, State

# Parts of the data sheet's numbers at which kernels run when they are bound by them (as in machine.step_time).
_BANDWIDTH_REACHED = 0.8
_ARITHMETIC_REACHED = 0.5
# SMs that have a warp while a kernel runs; assumed.
_SM_FILL = 0.9
# Below this part of the time a device is called idle.
_IDLE = 0.005
# Idle draw and heat as parts of what they are under full load; an idle H100 draws 69 of 700 W. The rest is assumed.
_IDLE_POWER = 0.1
_KERNEL_POWER, _MEMORY_POWER, _TENSOR_POWER = 0.25, 0.35, 0.4
_COOL_C, _HEAT_C = 30.0, 42.0
# Where heat lowers the clocks the device is at its limit.
_SLOWDOWN_C = 87.0
# NVML clock event reasons.
_REASON_IDLE, _REASON_HARDWARE, _REASON_SOFTWARE_HEAT, _REASON_HARDWARE_HEAT = 0x1, 0x8, 0x20, 0x40
# A hardware slowdown halves the clocks or worse.
_HALVED = 0.5
_IDLE_SM_MHZ = {L40S.name: 210}
_MEMORY_MHZ = {L40S.name: 9001}
_IDLE_MEMORY_MHZ = {L40S.name: 405}
# H100: clocks of an idle one as in a recorded case; HBM keeps its clock.
_H100_IDLE_SM_MHZ, _H100_MEMORY_MHZ = 345, 2619
# What a CUDA context takes before any weights are there.
_CONTEXT_BYTES = 0.5e9
# Looks closer together than this are one: rates over less mean nothing.
_LEAST_WINDOW_S = 1.0
# Since the node was started, before the world began: it has counted energy for nine days.
_BOOTED_S = 9 * 86_400.0


class GpuLoad(msgspec.Struct, frozen=True):
    """Of each of a replica's devices alike. Ratios 0..1; energy_mj: since boot. reasons: NVML's bits."""

    active: float
    sm_active: float
    tensor: float
    dram: float
    sm_mhz: int
    memory_mhz: int
    power_w: float
    temperature_c: int
    reasons: int
    energy_mj: float


class _Look(msgspec.Struct, frozen=True):
    at: float
    starts: int
    steps: int
    prompts_s: float
    decoding: int


class GpuMeter:
    """Reads one replica's devices; loads are means since the read before, or since the process serves."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._before: _Look | None = None
        self._load: GpuLoad | None = None
        self._energy_at = -_BOOTED_S
        self._energy_mj = 0.0

    def read(self, now: float) -> GpuLoad:
        """now: virtual seconds, never less than before. The same load again when the last read was just now."""
        before, load = self._before, self._load
        same = before is not None and before.starts == self.replica.starts
        if load is not None and before is not None and same and now - before.at < _LEAST_WINDOW_S:
            return load
        self.replica.engine.settle(now)
        engine = self.replica.engine
        look = _Look(now, self.replica.starts, engine.steps, engine.clocks.times[Clock.PROMPTS], engine.decoding)
        if engine.dead and not same:
            before = look  # of the process before nothing is known but its end
        elif before is None or not same:
            began = self.replica.started + self.replica.start_times.whole
            before = _Look(min(began, now), look.starts, 0, 0.0, look.decoding)
        self._before, self._load = look, self._measure(before, look)
        return self._load

    def _measure(self, before: _Look, look: _Look) -> GpuLoad:
        active, tensor, dram = _activity(self.replica, before, look)
        device, condition = self.replica.spec.machine.device, self.replica.condition
        idle = active < _IDLE
        lowered = min(condition.compute, condition.bandwidth) < 1.0
        effort = (
            _KERNEL_POWER * active
            + _MEMORY_POWER * dram / _BANDWIDTH_REACHED
            + _TENSOR_POWER * tensor / _ARITHMETIC_REACHED
        )
        # A slower clock draws less for the same work per cycle.
        share = _IDLE_POWER + (1.0 - _IDLE_POWER) * min(effort, 1.0) * condition.compute
        power = device.power_w * share
        heat = _COOL_C + _HEAT_C * share
        self._energy_mj += 1000.0 * (
            power * (look.at - max(self._energy_at, 0.0)) + _IDLE_POWER * device.power_w * max(-self._energy_at, 0.0)
        )
        self._energy_at = look.at
        return GpuLoad(
            active=active,
            sm_active=active * _SM_FILL,
            tensor=tensor,
            dram=dram,
            sm_mhz=_sm_clock(self.replica, idle=idle),
            memory_mhz=_memory_clock(self.replica),
            power_w=power,
            temperature_c=round(max(heat, _SLOWDOWN_C) if lowered and not idle else heat),
            reasons=_reasons(condition.compute, idle=idle, lowered=lowered),
            energy_mj=self._energy_mj,
        )


def _activity(replica: Replica, before: _Look, look: _Look) -> tuple[float, float, float]:
    """Parts of the time in which a kernel runs, the tensor pipes work, and memory is read."""
    engine, seconds = replica.engine, look.at - before.at
    steps = look.steps - before.steps
    if seconds <= 0 or steps <= 0:
        return 0.0, 0.0, 0.0
    costs, machine = engine.machine.costs(), engine.machine
    decoding = max(0.5 * (before.decoding + look.decoding), 1.0)
    context = engine.kv.used * engine.settings.block_size
    tokens = decoding * (1 + machine.drafted)
    reading = costs.reading_s(tokens) + costs.context_s * context
    computing = costs.token_s * tokens + costs.pair_s * context
    # Prompts make steps longer by arithmetic; the clock of that runs in the engine. Its seconds are those of a
    # machine in good condition.
    prompts = (look.prompts_s - before.prompts_s) / machine.compute
    busy = steps * max(reading, computing) + prompts
    waiting = steps * (costs.base_s + costs.sequence_s * decoding)
    scale = seconds / max(busy + waiting, seconds)  # means of two looks may come to more than there was
    part = scale / seconds
    return (
        min(busy * part, 1.0),
        min((steps * computing + prompts) * part, 1.0) * _ARITHMETIC_REACHED,
        min(steps * reading * part, 1.0) * _BANDWIDTH_REACHED,
    )


def _sm_clock(replica: Replica, *, idle: bool) -> int:
    """In steps of 15 MHz, as the driver sets it."""
    device = replica.spec.machine.device
    if idle:
        return _IDLE_SM_MHZ.get(device.name, _H100_IDLE_SM_MHZ)
    return round(device.sm_clock_mhz * replica.condition.compute / 15.0) * 15


def _memory_clock(replica: Replica) -> int:
    """A process on the device keeps its memory awake."""
    name = replica.spec.machine.device.name
    if replica.state is State.DOWN:
        return _IDLE_MEMORY_MHZ.get(name, _H100_MEMORY_MHZ)
    return round(_MEMORY_MHZ.get(name, _H100_MEMORY_MHZ) * replica.condition.bandwidth)


def _reasons(compute: float, *, idle: bool, lowered: bool) -> int:
    reasons = _REASON_IDLE if idle else 0
    if lowered:
        reasons |= _REASON_SOFTWARE_HEAT
        if compute < _HALVED:
            reasons |= _REASON_HARDWARE | _REASON_HARDWARE_HEAT
    return reasons


def memory_used(replica: Replica, now: float) -> float:
    """Bytes in use on each of its devices, by whomever."""
    machine = replica.spec.machine
    whole, weights = machine.device.memory, machine.checkpoint.size / machine.count
    others = 0.0
    if replica.fails_start:
        # So much that the weights still fit beside it, and a KV cache does not.
        others = 0.8 * (whole - weights)
    if not replica.placed or replica.state in (State.DOWN, State.BROKEN):
        return others  # a process that is gone holds nothing
    own = memory_share(replica.settings, machine) * whole + replica.leaked(now)
    if replica.state is State.STARTING:
        own = _while_starting(replica, machine, now - replica.started, own)
    return min(others + own, whole)


def _while_starting(replica: Replica, machine: Machine, age: float, in_the_end: float) -> float:
    """Weights come in bit by bit; room for the KV cache is taken once the graphs are compiled."""
    times = replica.start_times
    if age < times.launch:
        return 0.0
    if age >= times.loaded + times.compile:
        return in_the_end
    loading = age - times.launch - times.download
    part = min(max(loading, 0.0) / times.weights, 1.0)
    return _CONTEXT_BYTES + part * machine.checkpoint.size / machine.count
