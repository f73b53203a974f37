"""Ollama's process list (`/api/ps`): what it says of itself in place of a metrics page.

Shape: docs.ollama.com/api/ps. It names the models in memory; nothing of requests, tokens or times.
"""

from typing import Any

import msgspec

from triage.dialects.prometheus.answers import moment
from triage.domain.reading import LoadedModel, PageReading, ProcessList
from triage.domain.target import Target
from triage.domain.text import clean

ENGINE = "ollama"
# A machine holds a handful of models; what lists more is no process list.
_MOST_MODELS = 1000
# Bytes of a model: above it is no size.
_LARGEST = 1e18
# The year 3000. "For ever" (keep_alive -1) is 292 years from now, the longest duration Go can count.
_LATEST = 32_503_680_000.0
# Fields of an entry, of which at least one is there in every release that has the route.
_MARKS = frozenset({"size_vram", "expires_at"})


def read_loaded(data: Any, source: str, target: str = "") -> list[LoadedModel]:
    """The models of a decoded answer. Raises ValueError when it is none."""
    models = data.get("models") if isinstance(data, dict) else None
    if not isinstance(models, list):
        raise ValueError("no list 'models' in it")
    if len(models) > _MOST_MODELS or not all(isinstance(item, dict) for item in models):
        raise ValueError("'models' is no list of loaded models")
    return [_loaded(item, source, target) for item in models]


def read_processes(body: bytes, target: Target, source: str, at: float | None, version: str = "") -> PageReading | None:
    """The answer of a live server as the page it has instead of one; None when it is something else.

    An empty list is an answer too (nothing is loaded): whose it is must then be known from elsewhere.
    """
    data = decoded(body)
    if not isinstance(data, dict) or not isinstance(data.get("models"), list):
        return None
    if not all(isinstance(item, dict) and _MARKS & item.keys() for item in data["models"]):
        return None
    try:
        models = tuple(read_loaded(data, source, target.name))
    except ValueError:
        return None
    return PageReading(
        target=target,
        source=source,
        at=at,
        engines=(),
        gpus=(),
        families=frozenset(),
        processes=ProcessList(ENGINE, version, models),
    )


def read_version(body: bytes) -> str:
    """What `/api/version` says; '' when that is not its shape."""
    data = decoded(body)
    version = data.get("version") if isinstance(data, dict) else None
    return clean(version, 40) if isinstance(version, str) else ""


def decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None


def _loaded(item: dict[str, Any], source: str, target: str) -> LoadedModel:
    size, on_gpu, context = (_amount(item.get(key)) for key in ("size", "size_vram", "context_length"))
    name = next((item[key] for key in ("name", "model") if isinstance(item.get(key), str)), "")
    unloads_at = moment(item.get("expires_at"))
    return LoadedModel(
        source=source,
        name=clean(name, 120),
        # Its own estimate of what lies on the devices may exceed the size by rounding.
        on_gpu=min(on_gpu / size, 1.0) if size and on_gpu is not None else None,
        context=int(context) if context is not None and context >= 1 else None,
        target=target,
        unloads_at=unloads_at if unloads_at is None or unloads_at < _LATEST else None,
    )


def _amount(value: Any) -> float | None:
    """A number of bytes or tokens; None for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
        return None
    return float(value)
