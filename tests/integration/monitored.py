"""A real Prometheus (or VictoriaMetrics) on loopback that scrapes the demo's engines, some of which come to harm."""

import http.server
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from triage.lab.faults.catalogue import fault_named
from triage.lab.faults.fault import Ground
from triage.lab.fleets import COMPANION, workload_named
from triage.lab.world.replica import Replica
from triage.lab.world.spec import ServiceSpec
from triage.lab.world.watch import Watch
from triage.lab.world.world import World

# Simulated before the first scrape: lifetime means exist, and the incident is under way.
_PAST_S = 120.0
_INCIDENT_S = 60.0
_PATIENCE_S = 20.0


def binary(name: str) -> str | None:
    """A program of $TRIAGE_TEST_<NAME>, or on the path."""
    return os.environ.get(f"TRIAGE_TEST_{name.upper().replace('-', '_')}") or shutil.which(name)


def wait_for(what: str, ready: Callable[[], bool], patience_s: float = _PATIENCE_S) -> None:
    """Poll a condition that another process brings about."""
    end = time.monotonic() + patience_s
    pause = threading.Event()
    while not ready():
        assert time.monotonic() < end, f"{what}: not within {patience_s:g} s"
        pause.wait(0.05)


class Lab:
    """A world that runs with the clock, read from several threads."""

    def __init__(self, services: Sequence[ServiceSpec], incident: str = "healthy") -> None:
        self._lock = threading.Lock()
        self.world = World(services, "monitored", time.time() - _PAST_S - _INCIDENT_S)
        self.world.advance(_PAST_S)
        fault_named(incident).begin(Ground(self.world, self.world.services[0], Watch()), 0.9, random.Random(1))
        self.world.advance(_PAST_S + _INCIDENT_S)
        self._began, self._virtual = time.monotonic(), self.world.now

    def page(self, replica: Replica) -> str:
        with self._lock:
            self.world.advance(self._virtual + time.monotonic() - self._began)
            return replica.page(self.world.now)


class Engine:
    """One of the lab's replicas behind a port that stays the same over its lives."""

    def __init__(self, lab: Lab, replica: Replica) -> None:
        self.name = replica.name
        self._lab = lab
        self._replica = replica
        self._server: http.server.HTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._page: Callable[[], str] = str
        self.port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Counters that begin at nothing but the simulated past."""
        self._page = lambda: self._lab.page(self._replica)
        if self._server is None:
            self._serve()

    def go_quiet(self) -> None:
        """It serves on, and no engine series any more."""
        self._page = lambda: "process_cpu_seconds_total 1\n"

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None and self._thread is not None:
            server.shutdown()
            server.server_close()
            self._thread.join()

    def restart(self) -> None:
        self.stop()
        self._replica.restart(self._lab.world.now)
        self.start()

    def _serve(self) -> None:
        engine = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = engine._page().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = http.server.HTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()


def lab_engines(incident: str) -> list[Engine]:
    """The chat fleet with this fault, and the other model beside it."""
    lab = Lab([*workload_named("chat").services, COMPANION], incident)
    return [Engine(lab, replica) for replica in lab.world.replicas]


def spare(name: str) -> Engine:
    """One more of a small model, to do harm to."""
    (small,) = COMPANION.replicas
    model = f"{name}-model"
    checkpoint = msgspec.structs.replace(small.machine.checkpoint, name=model)
    machine = msgspec.structs.replace(small.machine, checkpoint=checkpoint)
    own = msgspec.structs.replace(small, name=name, machine=machine)
    lab = Lab([msgspec.structs.replace(COMPANION, model=model, replicas=(own,))])
    return Engine(lab, lab.world.replicas[0])


class Server:
    """A monitoring server in a process of its own."""

    def __init__(self, argv: Sequence[str], folder: Path, port: int, ready: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(argv, stdout=self._log, stderr=self._log, cwd=folder)
        try:
            wait_for(f"{argv[0]} answers", lambda: self._answers(ready))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self._process.send_signal(signal.SIGKILL)  # nothing of it is kept
        self._process.wait()
        self._log.close()

    def has(self, series: str) -> bool:
        """It answers with a sample of this name."""
        query = urllib.parse.urlencode({"query": series})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{query}", timeout=5) as answer:
            return b'"value"' in answer.read()

    def _answers(self, path: str) -> bool:
        assert self._process.poll() is None, "it ended"
        try:
            with urllib.request.urlopen(self.url + path, timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scrape_config(engines: Sequence[Engine], extra: str = "") -> str:
    """Once a second. The label `engine` is the target's own, so that the page's becomes `exported_engine`."""
    lines = ["global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}"]
    lines += ["scrape_configs:", "- job_name: engines", "  static_configs:"]
    for engine in engines:
        lines.append(f"  - {{targets: ['{engine.address}'], labels: {{pod: {engine.name}, engine: own}}}}")
    return "\n".join([*lines, extra, ""])


def start_prometheus(program: str, folder: Path, config: str, rules: str = "groups: []\n") -> Server:
    (folder / "prometheus.yml").write_text(f"rule_files: [rules.yml]\n{config}")
    (folder / "rules.yml").write_text(rules)
    port = free_port()
    argv = [
        program,
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    return Server(argv, folder, port, "/-/ready")


def start_victoria_metrics(program: str, folder: Path, config: str) -> Server:
    (folder / "scrape.yml").write_text(config)
    port = free_port()
    argv = [
        program,
        "-promscrape.config=scrape.yml",
        "-storageDataPath=data",
        "-promscrape.config.strictParse=false",
        "-promscrape.suppressScrapeErrors",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-search.latencyOffset=1s",
    ]
    return Server(argv, folder, port, "/health")
