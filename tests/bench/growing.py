"""How times grow with what there is to read and to judge."""

from itertools import count, cycle, islice
from typing import Final

from tests.bench import judging
from tests.bench.measure import least_cpu
from tests.bench.pages import page
from tests.bench.row import Row, grows
from tests.data import RECORDINGS
from triage.dialects.logs import read_log
from triage.dialects.pages import read_page
from triage.domain.target import Target

_LOG_LINES: Final = (1000, 10_000, 100_000, 1_000_000)
# 591 lines each.
_MODELS: Final = (1, 10, 100)
_REPEAT: Final = 3
_LOG: Final = RECORDINGS / "vllm" / "vllm-0.32.0-server.log"


def rows() -> list[Row]:
    return [*judging.growth_rows(), _log_row(), _page_row()]


def _log_row() -> Row:
    recorded = _LOG.read_text(encoding="utf-8").splitlines(keepends=True)

    def read_s(lines: int) -> float:
        text = "".join(islice(cycle(recorded), lines))
        return least_cpu(lambda: read_log(text, "engine.log", "bench"), repeat=_REPEAT, number=max(1, 10_000 // lines))

    return grows("growth of reading a log", "lines", _LOG_LINES, [read_s(lines) for lines in _LOG_LINES])


def _page_row() -> Row:
    target = Target("bench")
    fresh = count()

    def read_s(models: int) -> float:
        bodies = iter([_page_of(models, next(fresh)) for _ in range(_REPEAT)])
        return least_cpu(lambda: read_page(next(bodies), target, "/metrics", 0.0), repeat=_REPEAT, number=1)

    what = "growth of reading a page whose shape is new"
    return grows(what, "models on it", _MODELS, [read_s(models) for models in _MODELS])


def _page_of(models: int, turn: int) -> bytes:
    """Names that were never read before."""
    return b"".join(page(0, f"model-{turn}-{place}") for place in range(models))
