"""The moving page is what an engine at work would show."""

from tests.bench.pages import MODEL, page
from triage.dialects.pages import read_page
from triage.domain.quantity import Quantity
from triage.domain.target import Target
from triage.situation.windows import reset_between


def test_a_later_page_continues_the_earlier_one() -> None:
    before, after = (read_page(page(step), Target("a"), "/metrics", None).engines[0] for step in (3, 4))
    assert after.model == MODEL
    assert after.values[Quantity.GENERATION_TOKENS] > before.values[Quantity.GENERATION_TOKENS]
    assert after.histograms[Quantity.TTFT].minus(before.histograms[Quantity.TTFT]) is not None
    assert reset_between(before, after) == (False, False)
