"""The DCGM exporter's page: the exporter's form, and values that follow from what the simulated machine does."""

from collections.abc import Mapping

import msgspec
import pytest

from tests.unit.lab.cluster import Town
from tests.unit.lab.conftest import RECORDINGS, parse
from triage.dialects.pages import read_page
from triage.domain.target import Target
from triage.lab.cluster.dcgm_page import dcgm_page
from triage.lab.cluster.gpu_load import GpuMeter
from triage.lab.world.replica import State

SETTLED_S = 60.0
LABELS = {
    "gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION",
    "container", "namespace", "pod",
}  # fmt: skip


class Machine:
    """One replica's devices. read: fields without their prefixes, by device."""

    def __init__(self, town: Town, name: str) -> None:
        self.town = town
        self.replica = town.replica(name)
        self.meter = GpuMeter(self.replica)

    def page(self) -> str:
        return dcgm_page(self.town.world, self.meter, self.town.world.now)

    def read(self) -> list[Mapping[str, float]]:
        page = read_page(self.page().encode(), Target("t"), "/metrics", 0.0)
        return [reading.fields for reading in sorted(page.gpus, key=lambda one: one.device)]

    def after(self, seconds: float) -> Mapping[str, float]:
        """Of its first device, as a mean over these seconds."""
        self.meter.read(self.town.world.now)
        self.town.pass_to(self.town.world.now + seconds)
        return self.read()[0]

    def change(self, **condition: float) -> None:
        changed = msgspec.structs.replace(self.replica.condition, **condition)
        self.town.do(lambda now: self.replica.change(changed, now))


def machine(name: str, workload: str = "chat") -> Machine:
    town = Town(workload)
    town.pass_to(SETTLED_S)
    return Machine(town, name)


@pytest.fixture
def chat() -> Machine:
    return machine("chat-a")


def test_names_help_types_and_number_forms_are_the_exporters(chat: Machine) -> None:
    """Against the recorded page of a T4, for what both export."""
    real = parse((RECORDINGS / "public/datadog/dcgm_exporter_t4.prom").read_text().split("# HELP DCGM_FI_DEV_SLOW")[0])
    ours = parse(chat.page())
    shared = ours.keys() & real.keys()
    assert len(shared) == 9
    assert all(ours[name].kind == real[name].kind for name in shared)
    recorded = (RECORDINGS / "public/datadog/dcgm_exporter_t4.prom").read_text().splitlines()
    written = chat.page().splitlines()
    for name in shared:
        for head in (f"# HELP {name} ", f"# HELP {name}_total "):
            lines = [line for line in written if line.startswith(head)]
            assert lines == [line for line in recorded if line.startswith(head)][: len(lines)]
    values = {line.split("{")[0]: line.rpartition(" ")[2] for line in written if not line.startswith("#")}
    assert "." in values["DCGM_FI_DEV_POWER_USAGE"]
    assert values["DCGM_FI_DEV_SM_CLOCK"].isdigit()


def test_labels_name_the_device_and_the_pod_that_holds_it(chat: Machine) -> None:
    for family in parse(chat.page()).values():
        ((_, where),) = family.samples
        labels = dict(where)
        assert labels.keys() == LABELS
        assert (labels["Hostname"], labels["pod"], labels["namespace"]) == ("gpu-l40s-0", "chat-a", "lab")
        assert labels["modelName"] == "NVIDIA L40S"


def test_a_machine_of_four_devices_has_four_of_everything() -> None:
    batch = machine("batch-a", "batch")
    ids = set()
    for family in parse(batch.page()).values():
        assert len(family.samples) == 4
        ids |= {dict(where)["UUID"] for _, where in family.samples}
    assert len(ids) == 4


def test_a_busy_engine(chat: Machine) -> None:
    """Decoding is bound by memory: the memory is busy, the tensor pipes are not."""
    found = chat.after(30.0)
    assert found["PROF_GR_ENGINE_ACTIVE"] > 0.8
    assert found["DEV_GPU_UTIL"] == round(100 * found["PROF_GR_ENGINE_ACTIVE"])
    assert 0.5 < found["PROF_DRAM_ACTIVE"] <= 0.8
    assert found["PROF_PIPE_TENSOR_ACTIVE"] < 0.2
    assert found["PROF_SM_ACTIVE"] <= found["PROF_GR_ENGINE_ACTIVE"]
    assert 150 < found["DEV_POWER_USAGE"] < 350
    assert found["DEV_SM_CLOCK"] == 2520
    assert found["DEV_CLOCKS_EVENT_REASONS"] == 0
    assert found["DEV_XID_ERRORS"] == 0


def test_prompts_work_the_tensor_pipes() -> None:
    reading = machine("batch-a", "batch").after(30.0)
    decoding = machine("side-a").after(30.0)
    assert reading["PROF_PIPE_TENSOR_ACTIVE"] > 5 * decoding["PROF_PIPE_TENSOR_ACTIVE"]
    assert reading["PROF_DRAM_ACTIVE"] < decoding["PROF_DRAM_ACTIVE"]


def test_a_standing_scheduler_leaves_the_devices_idle_and_full(chat: Machine) -> None:
    full = chat.read()[0]["DEV_FB_USED"]
    chat.change(halted=True)
    found = chat.after(30.0)
    assert (found["DEV_GPU_UTIL"], found["PROF_DRAM_ACTIVE"], found["PROF_PIPE_TENSOR_ACTIVE"]) == (0, 0, 0)
    assert found["DEV_POWER_USAGE"] == pytest.approx(35.0)
    assert found["DEV_SM_CLOCK"] == 210
    assert int(found["DEV_CLOCKS_EVENT_REASONS"]) & 0x1
    assert found["DEV_FB_USED"] == full


def test_lowered_clocks_are_hot_slow_and_say_why(chat: Machine) -> None:
    well = chat.after(30.0)
    chat.change(compute=0.4, bandwidth=0.5)
    found = chat.after(30.0)
    assert found["DEV_SM_CLOCK"] == pytest.approx(0.4 * 2520, abs=8)
    assert found["DEV_MEM_CLOCK"] == pytest.approx(0.5 * well["DEV_MEM_CLOCK"], abs=1)
    assert int(found["DEV_CLOCKS_EVENT_REASONS"]) & 0x20
    assert found["DEV_GPU_TEMP"] > well["DEV_GPU_TEMP"] + 10
    assert found["DEV_POWER_USAGE"] < well["DEV_POWER_USAGE"]
    assert found["PROF_GR_ENGINE_ACTIVE"] > 0.8


def test_a_host_without_time_leaves_gaps(chat: Machine) -> None:
    well = chat.after(30.0)
    chat.change(host=0.1)
    assert chat.after(30.0)["PROF_GR_ENGINE_ACTIVE"] < well["PROF_GR_ENGINE_ACTIVE"] - 0.1


def test_memory_is_weights_and_kv_and_what_leaks(chat: Machine) -> None:
    device = chat.replica.spec.machine.device
    before = chat.read()[0]
    assert before["DEV_FB_USED"] == pytest.approx(0.9 * device.memory / 2**20, rel=0.001)
    assert before["DEV_FB_USED"] + before["DEV_FB_FREE"] == pytest.approx(device.memory / 2**20, abs=1)
    chat.change(leak=10 * 2.0**20)
    assert chat.after(20.0)["DEV_FB_USED"] == pytest.approx(before["DEV_FB_USED"] + 200, abs=2)
    settings = msgspec.structs.replace(chat.replica.settings, num_blocks=chat.replica.settings.num_blocks // 2)
    chat.replica.limit(settings, chat.town.world.now)
    assert chat.read()[0]["DEV_FB_USED"] < before["DEV_FB_USED"] - 1000


def test_memory_while_an_engine_starts(chat: Machine) -> None:
    """Nothing at first, then weights, then all of it.

    The start is 10 s behind the end, and lasts 53 s: launch 8, weights 13, compile 20, graphs 12.
    """
    weights = chat.replica.spec.machine.checkpoint.size / 2**20
    town, used = chat.town, []
    town.do(lambda now: chat.replica.exit(now, 1, "Error"))
    for at in (1.0, 15.0, 24.0, 33.0, 60.0):
        town.pass_to(SETTLED_S + at)
        used.append(chat.read()[0]["DEV_FB_USED"])
    assert chat.replica.state is State.STARTING
    assert used[0] == used[1] == 0
    assert 0 < used[2] < weights
    assert weights < used[3] < weights + 1000
    assert used[4] > weights + 10_000


def test_memory_that_somebody_else_holds_stays_when_the_engine_has_ended(chat: Machine) -> None:
    chat.replica.fails_start = True
    chat.town.do(lambda now: chat.replica.exit(now, 1, "Error"))
    found = chat.after(3.0)
    assert found["DEV_FB_USED"] > 20_000
    assert found["DEV_GPU_UTIL"] == 0
    # Weights fit beside it, a KV cache does not.
    assert found["DEV_FB_FREE"] > chat.replica.spec.machine.checkpoint.size / 2**20


@pytest.mark.parametrize(("name", "workload", "others"), [("chat-a", "chat", 0), ("batch-a", "batch", 3)])
def test_a_device_off_the_bus_has_its_xid_and_nothing_else(name: str, workload: str, others: int) -> None:
    one = machine(name, workload)
    one.replica.xid = 79
    one.town.do(lambda now: one.replica.lose_core(now, ["its last words"]))
    one.town.pass_to(SETTLED_S + 10.0)
    readings = one.read()
    lost = [fields for fields in readings if fields["DEV_XID_ERRORS"] == 79]
    assert lost == [{"DEV_XID_ERRORS": 79}]
    left = [fields for fields in readings if fields["DEV_XID_ERRORS"] == 0]
    assert len(left) == others
    assert all(len(fields) == 14 for fields in left)
    assert "NaN" not in one.page()


def test_energy_is_power_times_time(chat: Machine) -> None:
    before = chat.after(10.0)["DEV_TOTAL_ENERGY_CONSUMPTION"]
    chat.town.pass_to(chat.town.world.now + 20.0)
    found = chat.read()[0]
    spent = found["DEV_TOTAL_ENERGY_CONSUMPTION"] - before
    assert spent == pytest.approx(1000.0 * 20.0 * found["DEV_POWER_USAGE"], rel=0.01)
    # Nine days of idling are behind it.
    assert before > 9 * 86_400 * 35_000


def test_two_looks_at_once_show_the_same(chat: Machine) -> None:
    chat.after(10.0)
    first = chat.page()
    chat.town.world.advance(chat.town.world.now + 0.3)
    assert chat.page() == first


def test_a_restart_begins_a_new_mean(chat: Machine) -> None:
    """Steps are counted anew with the process."""
    chat.after(10.0)
    chat.town.do(chat.replica.restart)
    assert 0.0 < chat.after(20.0)["PROF_GR_ENGINE_ACTIVE"] <= 1.0


def test_a_device_without_our_pod_is_held_by_somebody_elses(chat: Machine) -> None:
    chat.town.do(chat.replica.vacate)
    chat.town.pass_to(SETTLED_S + 5.0)
    (where,) = [dict(where) for _, where in parse(chat.page())["DCGM_FI_DEV_GPU_UTIL"].samples]
    assert (where["namespace"], where["pod"]) == ("research", "notebook-gpu-l40s-0")
    assert where["pod"] in chat.town.of("pods")
    assert chat.read()[0]["DEV_GPU_UTIL"] == 0


@pytest.mark.parametrize("change", [{"host": 0.03}, {"compute": 0.2, "bandwidth": 0.3}, {}], ids=str)
def test_ratios_stay_ratios(chat: Machine, change: Mapping[str, float]) -> None:
    chat.change(**change)
    for _ in range(5):
        for name, value in chat.after(7.3).items():
            if name.startswith("PROF_"):
                assert 0.0 <= value <= 1.0, name
