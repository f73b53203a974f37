"""The lab in real time: a world with a past, a fault in it, and HTTP on loopback for each engine and gateway."""

import asyncio
import random
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from triage.domain.errors import TriageError
from triage.domain.situation import Alert
from triage.lab.account.alerts import firing
from triage.lab.account.ledger import Ledger, read_ledger
from triage.lab.account.page_text import page_text
from triage.lab.account.truth import Objectives, Truth, find_truth
from triage.lab.cluster.api import ClusterServer
from triage.lab.cluster.exporter import GpuExporter
from triage.lab.cluster.kubeconfig import write_kubeconfig
from triage.lab.faults.catalogue import FAULTS, HEALTHY, faults_named
from triage.lab.faults.fault import Fault, Ground
from triage.lab.fleets import COMPANION, WORKLOADS, Workload
from triage.lab.serving.engine_server import EngineServer
from triage.lab.serving.envoy import Envoy, Route, find_envoy, route_of
from triage.lab.serving.gateway_server import GatewayServer
from triage.lab.serving.pace import Pace
from triage.lab.serving.past import SPAN_S, KeptPage, Past, make_past
from triage.lab.serving.real_users import RealUsers

_FOLLOW_EVERY_S = 0.05
_KEY = "lab-key"


class LabTarget(msgspec.Struct, frozen=True):
    """One simulated engine, or the gateway of a model. url: without a path."""

    name: str
    url: str
    model: str


def workload_for(faults: tuple[Fault, ...]) -> Workload:
    """The first that has what all of these faults need. TriageError when there is none."""
    for workload in WORKLOADS:
        if all(fault.applies(workload.services[0]) for fault in faults):
            return workload
    raise TriageError("no workload has what these incidents need", "+".join(fault.name for fault in faults))


class Fleet:
    """`async with Fleet(workload) as fleet: await fleet.start("healthy")`. Everything runs in one event loop.

    seed: the same seed gives the same past. severity 0..1: of every fault. speed: virtual seconds per real second.
    real_gateway: an Envoy is started where one is installed; without it the small proxy answers.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        seed: str = "demo-1",
        severity: float = 0.9,
        speed: float = 1.0,
        real_gateway: bool = True,
    ) -> None:
        self._real_gateway = real_gateway
        self.workload = workload
        self.objectives = Objectives(workload.first_visible_p95_s, workload.time_per_token_mean_s)
        self.incident = HEALTHY.name
        self.folder = Path()  # of the key, the access log and the configuration, while it runs
        self.past_pages: tuple[KeptPage, ...] = ()
        self._seed = seed
        self._severity = severity
        self._speed = speed
        self._rng = random.Random(f"{seed}/fleet")  # noqa: S311 - a reproducible draw, no secret
        self._past: Past | None = None
        self._pace: Pace | None = None
        self._engines: list[EngineServer] = []
        self._gateways: list[GatewayServer] = []
        self._envoy: Envoy | None = None
        self._exporters: list[GpuExporter] = []
        self._users: list[RealUsers] = []
        self._cluster: ClusterServer | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def incidents(self) -> tuple[Fault, ...]:
        """Those that this fleet can have."""
        return tuple([fault for fault in FAULTS if fault.applies(self.workload.services[0])])

    @property
    def targets(self) -> tuple[LabTarget, ...]:
        """The engines, also those that nobody can reach just now. Empty unless running."""
        return tuple([LabTarget(one.replica.name, one.url, one.replica.spec.model) for one in self._engines])

    @property
    def gateways(self) -> tuple[LabTarget, ...]:
        """One of each model. They want the key of `key_file`."""
        if self._envoy is not None:
            ports = self._envoy.ports.items()
            return tuple([LabTarget("gateway", f"http://127.0.0.1:{port}", model) for model, port in ports])
        return tuple([LabTarget("gateway", one.url, one.service.model) for one in self._gateways])

    @property
    def has_envoy(self) -> bool:
        """A real Envoy stands in front of the engines, not the small proxy."""
        return self._envoy is not None

    @property
    def kubeconfig(self) -> Path:
        """Of a Kubernetes API that knows this fleet's pods, nodes, events and logs."""
        return self.folder / "kubeconfig"

    @property
    def exporters(self) -> tuple[str, ...]:
        """Base URLs of DCGM exporters, one for each node."""
        return tuple([one.url for one in self._exporters])

    @property
    def ground(self) -> Ground:
        """The service that comes to harm. Only while running."""
        assert self._past is not None
        return self._past.ground

    @property
    def key_file(self) -> Path:
        return self.folder / "key"

    @property
    def access_log(self) -> Path:
        return self.folder / "access.log"

    async def start(self, incident: str = HEALTHY.name) -> None:
        """Simulate the past, then serve in real time. Ready when it returns.

        TriageError: unknown incident, already running, or no port to listen on.
        """
        faults = self._faults(incident)
        if self._past is not None:
            raise TriageError("the lab is already running", hint="use switch to change the incident")
        self.folder = Path(tempfile.mkdtemp(prefix="triage-lab-"))
        self.key_file.touch(0o600)
        self.key_file.write_text(_KEY)
        # In a thread: seconds of computing, during which a screen may want to draw.
        self._past = past = await asyncio.to_thread(self._make_past, faults)
        self.incident, self.past_pages = incident, past.pages
        self._pace = pace = Pace(past.world, self._speed)
        try:
            for service in past.world.services:
                for replica in service.replicas:
                    server = EngineServer(service, replica, past.watch, pace)
                    self._engines.append(server)
                    await server.start()
            await self._open_gateways(past, pace)
            await self._open_cluster(past, pace)
        except OSError as error:
            await self.close()
            raise TriageError("the lab cannot listen on 127.0.0.1", str(error)) from error
        past.log.hosts = {one.replica.name: f"127.0.0.1:{one.port}" for one in self._engines}
        self._tasks = [asyncio.create_task(pace.run()), asyncio.create_task(self._follow())]

    def switch(self, incident: str) -> None:
        """Begin another incident now. TriageError when it is unknown or the lab is not running."""
        faults = self._faults(incident)
        if self._past is None or self._pace is None:
            raise TriageError("the lab is not running", hint="start it first")
        self._pace.catch_up()
        self.ground.mend()
        self._look_at_cluster()
        self.incident = incident
        self._begin(self.ground, faults)
        self._look_at_cluster()

    def truth(self) -> Truth:
        """What is wrong for users now, by the simulated requests of the last minute."""
        assert self._past is not None
        return find_truth(
            self.ground.service, self._past.watch, self.objectives, self._past.before, self._last_minute()
        )

    def page(self) -> str:
        """What somebody is woken up with."""
        return page_text(self.ground.service.model, self.alerts(), self._last_minute(), self.objectives)

    def _last_minute(self) -> Ledger:
        assert self._pace is not None
        now = self._pace.catch_up()
        return read_ledger(self.ground.service, now - SPAN_S, now)

    def alerts(self) -> tuple[Alert, ...]:
        """What rules on the gateways' counters say now."""
        if self._past is None or self._pace is None:
            return ()
        world = self._past.world
        now = self._pace.catch_up()
        return tuple([one for each in world.services for one in firing(each, self.objectives, now, world.zero)])

    async def close(self) -> None:
        """Stop serving; open answers are cut. Can be called at any time, and again."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await cluster.close()
        servers = [*self._engines, *self._gateways, *self._exporters]
        self._engines, self._gateways, self._exporters = [], [], []
        users, self._users = self._users, []
        await asyncio.gather(*[one.close() for one in users])
        envoy, self._envoy = self._envoy, None
        if envoy is not None:
            await envoy.close()
        await asyncio.gather(*[server.close() for server in servers])
        past, self._past = self._past, None
        if past is not None:
            past.log.close()
        folder, self.folder = self.folder, Path()
        if folder != Path():
            shutil.rmtree(folder, ignore_errors=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- inside

    async def _open_gateways(self, past: Past, pace: Pace) -> None:
        program = find_envoy() if self._real_gateway else None
        if program is not None:
            envoy = Envoy(program, self.folder, self.access_log, _KEY)
            if await envoy.start(self._routes()):
                self._envoy = envoy
                self._send_real_users(past, pace, envoy)
                return
        for service in past.world.services:
            gateway = GatewayServer(service, pace, past.log.write)
            self._gateways.append(gateway)
            await gateway.start()

    def _send_real_users(self, past: Past, pace: Pace, envoy: Envoy) -> None:
        for service in past.world.services:
            users = RealUsers(service, f"http://127.0.0.1:{envoy.ports[service.model]}", _KEY, pace)
            service.carrier = users
            self._users.append(users)
            for server in self._engines:
                if server.replica in service.replicas:
                    server.users = users

    async def _open_cluster(self, past: Past, pace: Pace) -> None:
        ports = {one.replica.name: one.port for one in self._engines}
        self._cluster = cluster = ClusterServer(past.world, pace, ports, secrets.token_urlsafe(16), past.history)
        await cluster.start()
        write_kubeconfig(self.kubeconfig, cluster.url, cluster.token)
        for replica in past.world.replicas:
            exporter = GpuExporter(past.world, replica, pace)
            self._exporters.append(exporter)
            await exporter.start()

    def _look_at_cluster(self) -> None:
        """What begins and ends is noticed at its time, not at the next look."""
        if self._cluster is not None:
            self._cluster.look()

    def _routes(self) -> list[Route]:
        assert self._past is not None
        ports = {one.replica.name: one.port for one in self._engines}
        return [route_of(service, ports) for service in self._past.world.services]

    def _faults(self, incident: str) -> tuple[Fault, ...]:
        faults = faults_named(incident)
        for fault in faults:
            if not fault.applies(self.workload.services[0]):
                raise TriageError(
                    "this fleet cannot have that incident",
                    fault.name,
                    f"start it with: triage demo --incident {fault.name}",
                )
        return faults

    def _begin(self, ground: Ground, faults: tuple[Fault, ...]) -> None:
        for fault in faults:
            fault.begin(ground, self._severity, self._rng)

    def _make_past(self, faults: tuple[Fault, ...]) -> Past:
        services = [*self.workload.services, COMPANION]
        return make_past(services, self._seed, lambda ground: self._begin(ground, faults), self.access_log)

    async def _follow(self) -> None:
        """Ports open and close with the processes behind them."""
        while True:
            for server in self._engines:
                with suppress(OSError):  # somebody else has the port just now: the next look tries again
                    await server.follow()
            if self._envoy is not None:
                self._envoy.follow(self._routes())
            await asyncio.sleep(_FOLLOW_EVERY_S)
