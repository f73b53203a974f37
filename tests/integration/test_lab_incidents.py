"""Every incident of the demo, live: the diagnosis is right, or says that it cannot tell and which source could."""

import pytest

from triage.cli.demo import monitor_of_fleet
from triage.cli.live import one_window
from triage.domain.verdict import Confidence, Kind
from triage.lab.faults.catalogue import FAULTS, faults_named
from triage.lab.serving.fleet import Fleet, workload_for

PAIRS = ("gpu-throttled+load-surge", "metrics-frozen+engine-stalled", "retry-storm+cpu-starvation")


@pytest.mark.slow
@pytest.mark.parametrize("incident", [*[fault.name for fault in FAULTS], *PAIRS])
async def test_the_diagnosis_is_right_or_names_the_source_that_would_tell(incident: str) -> None:
    async with Fleet(workload_for(faults_named(incident))) as fleet:
        await fleet.start(incident)
        monitor = monitor_of_fleet(fleet, 30.0)
        try:
            observation = await one_window(monitor, 3.0, probe=True)
        finally:
            await monitor.close()
        truth = fleet.truth()
    first = observation.diagnosis.verdicts[0]
    if first.kind in truth.accepted:
        return
    said = (first.kind, first.confidence, first.summary, truth.why)
    if first.kind is Kind.INSUFFICIENT_DATA and not truth.certain:
        return  # nobody could be sure
    unread = {kind for seen in observation.situation.not_seen for kind in seen.costs}
    assert unread & {kind.value for kind in truth.accepted}, (said, sorted(unread))
    assert first.kind is Kind.INSUFFICIENT_DATA or first.confidence is Confidence.POSSIBLE, said
