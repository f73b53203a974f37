"""One scrape to readings, against the parser of prometheus_client."""

from itertools import count, cycle
from typing import Final

from tests.bench.measure import least_cpu
from tests.bench.pages import page
from tests.bench.row import Row, against, duration, not_measured
from triage.dialects.pages import read_page
from triage.domain.target import Target

_WHAT: Final = "one engine scrape (vLLM 0.32, {kilobytes:.0f} KB, {lines} lines) to readings"
_BUDGET: Final = 0.1


def rows() -> list[Row]:
    body = page(0)
    what = _WHAT.format(kilobytes=len(body) / 1000, lines=body.count(b"\n"))
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        return [not_measured(what, f"≤ {_BUDGET:g} ×", "prometheus-client")]
    text = body.decode()
    reference_s = least_cpu(lambda: list(text_string_to_metric_families(text)))
    target = Target("bench")
    moving = cycle([page(step) for step in range(8)])
    warm_s = least_cpu(lambda: read_page(next(moving), target, "/metrics", 0.0))
    # A model name of its own makes every page a shape that was never seen.
    fresh = count()
    cold_s = least_cpu(lambda: read_page(page(0, f"model-{next(fresh)}"), target, "/metrics", 0.0), number=40)
    making_s = least_cpu(lambda: page(0, f"model-{next(fresh)}"), number=40)
    note = f"; {duration(cold_s - making_s)} when its shape is new"
    return [against(what, warm_s, "prometheus_client's parser", reference_s, budget=_BUDGET, note=note)]
