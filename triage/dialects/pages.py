"""One metrics page in, one PageReading out. Never raises: garbage is an empty page with problems."""

from collections import OrderedDict
from hashlib import blake2b
from typing import NamedTuple

from triage.dialects.compiling import compile_engines
from triage.dialects.exposition import Lines, is_plain, parse_series, read_lines, split_lines
from triage.dialects.foreign import software_of
from triage.dialects.gpu.dcgm import GpuPlan, compile_gpus
from triage.dialects.json_page import told_of_json
from triage.dialects.plan import EnginePlan
from triage.dialects.relabelled import relabelled
from triage.dialects.series import PageIndex
from triage.dialects.table import engine_tables
from triage.domain.reading import PageReading
from triage.domain.target import Target

# Shapes kept. A replica has one shape that changes a few times in its life (a counter appears on
# first use); replicas with the same labels share it. One takes about 55 KB.
_SHAPES_KEPT = 2048
# A page with more series than this is not kept as a shape: it is read, but it must not fill the memory.
_LARGEST_SHAPE = 20_000


class _Shape(NamedTuple):
    engines: tuple[EnginePlan, ...]
    gpus: tuple[GpuPlan, ...]
    families: frozenset[str]
    software: str
    relabelled: str
    problems: tuple[str, ...]


# By digest of the series keys: the keys themselves take 75 KB a page, which a thousand replicas would feel.
_shapes: OrderedDict[bytes, _Shape] = OrderedDict()


def read_page(body: bytes, target: Target, source: str, at: float | None) -> PageReading:
    """Read a page in the Prometheus text format, whoever wrote it.

    body: the page, UTF-8 (broken bytes are replaced). source: what to call it in evidence.
    at: unix seconds of the scrape, or None.
    """
    text = body.decode("utf-8", "replace")
    problems: tuple[str, ...] = ()
    lines = split_lines(text)
    key = _digest(lines.keys)
    shape = _shapes.get(key)
    values = _numbers(lines.values) if shape is not None else None
    if shape is None or values is None:
        if not is_plain(lines.keys) or (values := _numbers(lines.values)) is None:
            lines, problems = read_lines(text)
            values = [float(value) for value in lines.values]
        shape = _shape_of(lines)
        if not lines.keys and (told := told_of_json(body)):
            problems = (told,)
    else:
        _shapes.move_to_end(key)
    return PageReading(
        target=target,
        source=source,
        at=at,
        engines=tuple(plan.read(values, target.name, source, at) for plan in shape.engines),
        gpus=tuple(plan.read(values, target.name, source, at) for plan in shape.gpus),
        families=shape.families,
        problems=problems + shape.problems,
        software=shape.software,
        relabelled=shape.relabelled,
    )


def _numbers(texts: list[str]) -> list[float] | None:
    """All values, or None when one is no number: then the slow way says which."""
    if "_" in "".join(texts):
        return None  # float() takes 1_000, the text format does not
    try:
        return list(map(_Once().__getitem__, texts))
    except ValueError:
        return None


class _Once(dict[str, float]):
    """Equal texts become one number: most values of a page are buckets that repeat the one before (77 of 415 differ).

    Of 1,000 replicas that is a third of all memory.
    """

    def __missing__(self, text: str) -> float:
        self[text] = number = float(text)
        return number


def _digest(keys: list[str]) -> bytes:
    return blake2b("\n".join(keys).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _shape_of(lines: Lines) -> _Shape:
    key = _digest(lines.keys)
    known = _shapes.get(key)
    if known is not None:
        _shapes.move_to_end(key)
        return known
    index = PageIndex(map(parse_series, lines.keys))
    (engines, problems), gpus = compile_engines(engine_tables(), index), compile_gpus(index)
    software = "" if engines or gpus else software_of(index.families)
    other = "" if engines or gpus or software else relabelled(index.families)
    shape = _Shape(engines, gpus, index.families, software, other, problems)
    if len(lines.keys) <= _LARGEST_SHAPE:
        _shapes[key] = shape
        if len(_shapes) > _SHAPES_KEPT:
            _shapes.popitem(last=False)
    return shape
