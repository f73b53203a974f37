"""Prometheus's HTTP API through prometheus-api-client, blocking, on the gate's transport."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from triage.dialects.prometheus.answers import Envelope, NotPrometheusError, opened
from triage.domain.monitoring import MonitoringTrouble, Trouble
from triage.domain.text import clean
from triage.gate import Client
from triage.sources.prometheus_troubles import trouble_of

if TYPE_CHECKING:
    pass

# A window of 350 vLLM replicas (five samples of 276 series each, 92 KiB), which takes 4 s to read. Beyond that a
# person narrows the question.
_ANSWER_LIMIT = 32 * 1024 * 1024


class MonitoringError(Exception):
    """A question that got no usable answer."""

    def __init__(self, trouble: MonitoringTrouble) -> None:
        super().__init__(str(trouble))
        self.trouble = trouble


class PrometheusApi:
    """For one worker thread at a time; the loop that was given must be running meanwhile.

    Every method raises MonitoringError.
    """

    def __init__(self, client: Client, loop: asyncio.AbstractEventLoop) -> None:
        # The library, and requests with it, take 0.3 s to load: here, where the screen does not wait for it.
        from prometheus_api_client import PrometheusConnect

        from triage.gate.session import GateSession

        address = client.address
        self._base = f"{address.scheme}://{address.authority}{address.prefix}"
        self._warnings: dict[str, None] = {}
        self._infos: dict[str, None] = {}
        self._session = GateSession(client, loop, self._decoded, limit=_ANSWER_LIMIT)
        self._connect: PrometheusConnect = PrometheusConnect(url=self._base, session=self._session)

    def take_notes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(warnings, infos): what the server said beside its answers since they were last taken."""
        taken = tuple(self._warnings), tuple(self._infos)
        self._warnings, self._infos = {}, {}
        return taken

    def query(self, expression: str, *, at: float | None = None) -> list[Any]:
        """An instant query at `at` (unix seconds of the server's clock), or at the server's now."""
        params = {} if at is None else {"time": f"{at:.3f}"}
        found = self._ask(lambda: self._connect.custom_query(expression, params=params))
        if not isinstance(found, list):
            raise MonitoringError(_wrong("a query's answer is no list"))
        return found

    def names(self, selector: str) -> list[str]:
        """Names of all series ever stored that match."""
        found = self._ask(lambda: self._connect.get_label_values("__name__", params={"match[]": selector}))
        return [clean(name, 200) for name in found if isinstance(name, str)] if isinstance(found, list) else []

    def targets(self, state: str) -> Any:
        """state: active or dropped."""
        return self._ask(lambda: self._connect.get_targets(state=state))

    def alerting_rules(self) -> Any:
        return self._get("/api/v1/rules", {"type": "alert"})

    def alerts(self) -> Any:
        return self._get("/api/v1/alerts", {})

    def close(self) -> None:
        self._connect.close()

    def _get(self, path: str, params: Mapping[str, str]) -> Any:
        """Routes that the library has no method for, on its session."""
        return self._ask(lambda: self._session.get(self._base + path, params=params).json()["data"])

    def _ask(self, question: Any) -> Any:
        from triage.gate.session import GateError

        try:
            return question()
        except GateError as error:
            raise MonitoringError(trouble_of(error.failure)) from None
        except NotPrometheusError as error:
            raise MonitoringError(_wrong(str(error))) from None
        except (KeyError, TypeError):
            raise MonitoringError(_wrong("a field is missing in its answer")) from None

    def _decoded(self, body: bytes) -> dict[str, Any]:
        """What the library takes for the decoded answer; it looks at `data` alone."""
        answer: Envelope = opened(body)
        self._warnings.update(dict.fromkeys(answer.warnings))
        self._infos.update(dict.fromkeys(answer.infos))
        return {"data": answer.data}


def _wrong(says: str) -> MonitoringTrouble:
    return MonitoringTrouble(
        Trouble.WRONG_SERVER,
        clean(says, 200),
        "give the URL under which /api/v1/query answers, with its path (often /prometheus, or /select/0/prometheus)",
    )
