"""An evidence folder to a Situation. A bad file costs that file; only an unreadable folder is an error."""

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from triage.dialects.logs import read_log
from triage.dialects.ollama import read_loaded
from triage.dialects.pages import read_page
from triage.dialects.prometheus.answers import read_alerts
from triage.dialects.streams.capture import read_capture, read_response
from triage.dialects.streams.native import OLLAMA
from triage.domain.errors import EvidenceError
from triage.domain.limits import Limits
from triage.domain.logs import LogKind, LogReading
from triage.domain.reading import EngineReading, GpuReading, PageReading
from triage.domain.situation import (
    GpuWindow,
    NotSeen,
    Replica,
    Situation,
    TargetStatus,
)
from triage.domain.stream import ErrorAnswer, RequestReading, StreamReading
from triage.domain.target import Failure, FailureReason, Target, TargetState
from triage.domain.text import clean
from triage.situation import bodies, facts, prompts, queried
from triage.situation.costs import costs_of_absent, costs_of_file, costs_of_source
from triage.situation.windows import build_window, moments_of

# Distance of -t0, -t1, … when nothing says otherwise (cli.md); rates from it are marked assumed.
ASSUMED_INTERVAL_S = 30.0
# One file may be this large; logs beyond it are read from the end, where the incident is.
_LARGEST_FILE = 256 * 1024 * 1024
_SUFFIX = re.compile(r"^(?P<stem>.+?)-(?:t(?P<index>\d{1,6})|(?P<unix>\d{9,11}(?:\.\d+)?))$")
# What a target is called whose files do not name it.
_UNNAMED = "default"
# The only file with this meaning, and never read: it holds the answer of a test case.
_ANSWER_FILE = "expected.yaml"


# (target, baseline, model, engine)
_Group: TypeAlias = tuple[str, bool, str, str]


class _Scrape(NamedTuple):
    """One *.prom file. place: unix seconds, or an index on the assumed axis; timed says which."""

    target: str
    baseline: bool
    place: float
    timed: bool
    page: PageReading


def load_folder(folder: Path, limits: Limits | None = None) -> Situation:
    """Everything the folder says. Raises EvidenceError when it is not a readable folder."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != _ANSWER_FILE)
    except OSError as error:
        raise EvidenceError(
            f"cannot read {clean(str(folder), 200)}",
            clean(error.strerror or str(error)),
            "give an evidence folder: scrapes, logs, probes.json",
        ) from error
    loader = _Loader(limits or Limits())
    for path in files:
        loader.take(path)
    return loader.situation()


class _Loader:
    """Collects what the files say; one instance for one folder."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.scrapes: list[_Scrape] = []
        self.empty_pages: list[TargetStatus] = []
        self.not_seen: list[NotSeen] = []
        self.logs: list[LogReading] = []
        self.streams: list[StreamReading] = []
        self.baseline_streams: list[StreamReading] = []
        self.requests: list[RequestReading] = []
        self.errors: list[ErrorAnswer] = []
        self.prompts: list[tuple[str, bytes]] = []
        self.facts: dict[str, list[Any]] = defaultdict(list)
        self.queries: list[tuple[Any, str]] = []
        self.queried: list[tuple[str, list[dict[str, Any]]]] = []
        self.manifest: dict[str, Any] = {}

    def take(self, path: Path) -> None:
        name = clean(path.name, 120)
        try:
            body = _read_bounded(path)
        except OSError as error:
            self._miss(name, f"cannot be read: {clean(error.strerror or str(error))}")
            return
        if not body.strip():
            self._miss(name, "empty")
        elif path.suffix == ".prom":
            self._take_page(path.stem, name, body)
        elif path.suffix == ".log":
            self._take_log(path.stem, name, body)
        elif path.suffix == ".sse":
            reading = read_capture(body.decode("utf-8", "replace"), name, path.stem)
            (self.baseline_streams if _is_baseline(path.stem) else self.streams).append(reading)
        elif path.suffix == ".json":
            self._take_json(path.stem, name, body)
        else:
            self._miss(name, "no reader for this kind of file")

    def _take_log(self, stem: str, name: str, body: bytes) -> None:
        log = read_log(body.decode("utf-8", "replace"), name, _target_in(stem, "engine"))
        self.logs.append(log)
        costs = {
            LogKind.ACCESS: costs_of_source("gateway log"),
            LogKind.KERNEL: costs_of_source("gpu"),
            LogKind.UNKNOWN: costs_of_file(name),
        }.get(log.kind)
        if costs is not None:
            self.not_seen.append(NotSeen(name, f"{log.kind.value}: its lines are not judged yet", costs, expected=True))

    def _miss(self, source: str, why: str) -> None:
        self.not_seen.append(NotSeen(source, why, costs_of_file(source), expected=True))

    def _take_page(self, stem: str, name: str, body: bytes) -> None:
        found = _SUFFIX.match(stem)
        base = found["stem"] if found else stem
        unix = found["unix"] if found else None
        place = float(unix or (found["index"] if found else 0) or 0)
        target = _target_in(base, "metrics")
        page = read_page(body, Target(target), name, float(unix) if unix else None)
        if not page.families:
            why = page.problems[0] if page.problems else "no samples in it"
            self.empty_pages.append(
                TargetStatus(Target(target), TargetState.NO_METRICS, Failure(FailureReason.NOT_METRICS, why))
            )
        else:
            self.scrapes.append(_Scrape(target, _is_baseline(base), place, unix is not None, page))
        if page.families and page.problems:
            self.not_seen.append(NotSeen(name, f"partly unreadable: {page.problems[0]}", (), expected=True))

    def _take_json(self, stem: str, name: str, body: bytes) -> None:
        try:
            data = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            lines = read_capture(body.decode("utf-8", "replace"), name, stem) if stem.startswith("response") else None
            if lines is not None and lines.protocol == OLLAMA:
                self.streams.append(lines)  # it streams unless told not to: one object a line
                return
            self._miss(name, f"not JSON: {clean(str(error), 120)}")
            return
        if stem == "manifest" and isinstance(data, dict):
            self.manifest = data
            return
        if stem == "queries":
            self.queries.append((data, name))
            return
        if stem.startswith(("query", "range")):
            try:
                self.queried.append((name, queried.series_in(data)))
            except ValueError as error:
                self._miss(name, clean(str(error), 160))
            return
        if stem.startswith("response"):
            self._take_responses(data if isinstance(data, list) else [data], stem, name)
            return
        request = bodies.read_request(data, name) if stem.startswith("request") else None
        if request is not None:
            self.requests.append(request)
            self.prompts.append((name, prompts.prompt_text(data)))
            return
        reader = _READERS.get(stem)
        if reader is None:
            self._miss(name, "not read yet")
            return
        try:
            self.facts[stem].extend(reader(data, name))
        except (ValueError, AttributeError) as error:
            self._miss(name, clean(str(error), 160))

    def _take_responses(self, items: list[Any], stem: str, name: str) -> None:
        """Answers that were not streamed, and bodies that say why there is none."""
        for item in items:
            reading = read_response(item, name, stem) if isinstance(item, dict) else None
            error = bodies.read_error(item, name) if reading is None else None
            if reading is not None:
                self.streams.append(reading)
            elif error is not None:
                self.errors.append(error)
            else:
                self._miss(name, "no answer of a known API in it")
                return

    def situation(self) -> Situation:
        saved = queried.pages_of([series for _, series in self.queried], "prometheus")
        self.scrapes += [_Scrape(one.target, False, one.at, True, one.page) for one in saved]
        for name, series in self.queried if not saved else ():
            if series:
                self._miss(name, "no series of a known engine in it")
        replicas, statuses = self._replicas()
        families = frozenset().union(*(s.page.families for s in self.scrapes if s.page.engines and not s.baseline))
        queries = []
        for data, name in self.queries:
            try:
                queries.extend(facts.read_queries(data, name, families))
            except ValueError as error:
                self._miss(name, clean(str(error), 160))
        gpus = self._gpus()
        at = self._newest()
        window_s = max((replica.window.seconds for replica in replicas), default=0.0)
        present = {
            "engine metrics": bool(replicas),
            "probe": bool(self.facts["probes"] or self.streams),
            "gateway log": any(log.kind is LogKind.ACCESS for log in self.logs),
            "kubernetes": False,
            "gpu": bool(gpus),
        }
        return Situation(
            at=at,
            window_s=window_s,
            limits=self.limits,
            replicas=tuple(replicas),
            targets=tuple(statuses + list({page.target.name: page for page in self.empty_pages}.values())),
            streams=tuple(self.streams),
            baseline_streams=tuple(self.baseline_streams),
            probes=tuple(self.facts["probes"]),
            logs=tuple(self.logs),
            gpus=tuple(gpus),
            containers=tuple(self.facts["container"]),
            monitored=tuple(self.facts["targets"]),
            alerts=queried.merged([*self.facts["alerts"], *self.facts["rules"]]),
            queries=tuple(queries),
            loaded_models=tuple(self.facts["ps"]),
            requests=tuple(self.requests),
            error_answers=tuple(self.errors),
            answer_counts=tuple(self.facts["counts"]),
            served_models=tuple(self.facts["models"]),
            reuse=tuple(self.facts["requests"] + self.facts["usage"]),
            prompt_pairs=prompts.compare_prompts(self.prompts),
            adapters=tuple(self.facts["adapters"]),
            not_seen=tuple(self.not_seen) + costs_of_absent(present),
        )

    def _replicas(self) -> tuple[list[Replica], list[TargetStatus]]:
        interval = _interval(self.manifest)
        groups: dict[_Group, list[tuple[float, EngineReading]]] = defaultdict(list)
        assumed: dict[_Group, bool] = defaultdict(bool)
        statuses: dict[str, TargetStatus] = {}
        for scrape in sorted(self.scrapes, key=lambda s: (s.target, s.baseline, s.place)):
            at = scrape.place if scrape.timed else scrape.place * (interval or ASSUMED_INTERVAL_S)
            for reading in scrape.page.engines:
                key = (scrape.target, scrape.baseline, reading.model, reading.engine)
                groups[key].append((at, reading))
                assumed[key] |= not scrape.timed and interval is None
            if not scrape.baseline:
                statuses[scrape.target] = _status(scrape, statuses.get(scrape.target))
        windows = {key: build_window(moments_of(moments), assumed=assumed[key]) for key, moments in groups.items()}
        replicas = [
            Replica(Target(key[0]), key[2], window, age_s=0.0, baseline=windows.get((key[0], True, *key[2:])))
            for key, window in windows.items()
            if not key[1]
        ]
        return replicas, list(statuses.values())

    def _gpus(self) -> list[GpuWindow]:
        series: dict[tuple[str, str, str, str], list[GpuReading]] = defaultdict(list)
        for scrape in sorted(self.scrapes, key=lambda s: (s.target, s.place)):
            if not scrape.baseline:
                for gpu in scrape.page.gpus:
                    series[scrape.target, gpu.node, gpu.device, gpu.uuid].append(gpu)
        return [GpuWindow(readings[0], readings[-1]) for readings in series.values()]

    def _newest(self) -> float | None:
        times = [scrape.page.at for scrape in self.scrapes if scrape.page.at is not None]
        times += [probe.at for probe in self.facts["probes"] if probe.at is not None]
        times += [event.at for log in self.logs for event in log.events if event.at is not None]
        times += [line.at for log in self.logs for line in log.throughput if line.at is not None]
        declared = facts.moment(self.manifest.get("at"))
        return declared if declared is not None else max(times, default=None)


_READERS: dict[str, Callable[[Any, str], list[Any]]] = {
    "probes": facts.read_probes,
    "container": facts.read_containers,
    "targets": facts.read_monitored,
    "alerts": read_alerts,
    "rules": read_alerts,
    "ps": read_loaded,
    "models": bodies.read_models,
    "counts": bodies.read_counts,
    "requests": prompts.read_reuse,
    "usage": prompts.read_reuse,
    "adapters": facts.read_adapters,
}


def _status(scrape: _Scrape, earlier: TargetStatus | None) -> TargetStatus:
    engine = scrape.page.engines[0] if scrape.page.engines else None
    families = scrape.page.families | (earlier.families if earlier else frozenset())
    return TargetStatus(
        target=Target(scrape.target),
        state=TargetState.OK if engine or scrape.page.gpus else TargetState.NO_METRICS,
        failure=None if engine or scrape.page.gpus else scrape.page.no_engine(),
        answered_at=scrape.page.at,
        age_s=0.0,
        engine=engine.engine if engine else ("gpu exporter" if scrape.page.gpus else ""),
        dialect=engine.dialect if engine else "",
        families=families,
        relabelled=scrape.page.relabelled,
        problems=scrape.page.problems,
    )


def _is_baseline(stem: str) -> bool:
    """'baseline', 'metrics-before', 'baseline-pod0', 'metrics-before-pod0' (cli.md)."""
    words = stem.split("-")
    return words[0] == "baseline" or words[:2] == ["metrics", "before"]


def _target_in(stem: str, kind: str) -> str:
    """The target's name in a file name: 'metrics-pod0' is pod0, plain 'metrics' is default."""
    words = stem.split("-")
    if words[0] == "baseline":
        words = words[1:]
    elif words[:2] == [kind, "before"]:
        words = words[2:]
    elif words[0] == kind:
        words = words[1:]
    return clean("-".join(words), 80) or _UNNAMED


def _interval(manifest: dict[str, Any]) -> float | None:
    value = manifest.get("interval_s")
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _read_bounded(path: Path) -> bytes:
    with path.open("rb") as file:
        size = path.stat().st_size
        if size > _LARGEST_FILE:
            file.seek(size - _LARGEST_FILE)
        return file.read(_LARGEST_FILE)
