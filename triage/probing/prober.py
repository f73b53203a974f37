"""The announced probe: one streamed request for each model that the targets serve."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triage.domain.errors import TriageError
from triage.domain.stream import ProbeReading, StreamReading
from triage.domain.target import Failure, Target
from triage.gate import Access, Client, Gate
from triage.probing.budget import Budget

if TYPE_CHECKING:
    from triage.probing.measure import Measured

# A gateway may list a hundred models; a probe is a question, not a load test.
MOST_REQUESTS = 8
# Model lists that are read at the same time; the scrapes hold most of the descriptors.
_LISTS_AT_ONCE = 32


class EngineProber:
    """Sends nothing before probe() is called. Cancelling probe() closes every connection."""

    def __init__(
        self,
        gate: Gate,
        targets: Sequence[tuple[Target, Access]],
        budget: Callable[[], Budget],
        direct: Sequence[tuple[Target, Access]] = (),
    ) -> None:
        """ConfigError when a URL cannot be meant. budget: read when it is needed, for most runs never probe.

        direct: engines behind the targets, asked only when they are suspected; by default the targets themselves.
        """
        self._aims = [(target, gate.client(access)) for target, access in targets]
        behind = [(target, gate.client(access)) for target, access in direct]
        self._engines = {target.name: (target, client) for target, client in (*self._aims, *behind)}
        self._budget = budget

    def cost(self) -> str:
        """What probe() sends, in a few words. ConfigError when the installation lacks the probe."""
        budget = self._budget()
        return (
            f"one streamed request a model, and one to each replica in doubt, {MOST_REQUESTS} at most, "
            f"each at most {budget.max_tokens} tokens and {budget.total_s:g} s"
        )

    async def probe(
        self, progress: Callable[[str], None], suspects: Sequence[tuple[str, str]] = ()
    ) -> list[tuple[ProbeReading, StreamReading | None]]:
        """Ask every model once, all at the same time. TriageError when no target names a model.

        suspects: (target, model) pairs that a verdict doubts: they are asked themselves, too.
        """
        progress("asking which models are served")
        questions, unknown = await self._questions()
        asked = {(target.name, model) for model, target, _ in questions}
        for name, model in dict.fromkeys(suspects):
            if name in self._engines and (name, model) not in asked and len(questions) < MOST_REQUESTS:
                questions.append((model, *self._engines[name]))
        for why in unknown:
            progress(why)
        if not questions:
            raise TriageError(
                "no probe", "; ".join(unknown) or "no target", "name the model of a target in triage.toml"
            )
        return [(measured.probe, measured.stream) for measured in await self._ask(questions, progress)]

    async def close(self) -> None:
        for _, client in self._engines.values():
            await client.close()

    async def _questions(self) -> tuple[list[tuple[str, Target, Client]], list[str]]:
        """For each model the first target that serves it, and why targets were left out."""
        slots = asyncio.Semaphore(_LISTS_AT_ONCE)
        listed = await asyncio.gather(*[_models_of(target, client, slots) for target, client in self._aims])
        chosen: dict[str, tuple[str, Target, Client]] = {}
        unknown = []
        for (target, client), models in zip(self._aims, listed, strict=True):
            if isinstance(models, Failure):
                unknown.append(f"{target.name}: its models are not known: {models}")
            elif not models:
                unknown.append(f"{target.name}: it lists no model")
            else:
                for model in models:
                    chosen.setdefault(model, (model, target, client))
        return list(chosen.values())[:MOST_REQUESTS], unknown

    async def _ask(
        self, questions: list[tuple[str, Target, Client]], progress: Callable[[str], None]
    ) -> "list[Measured]":
        # With the readers of all protocols it is 8 ms before the first paint: only who probes pays for them.
        from triage.probing.measure import measure

        budget = self._budget()

        async def ask(model: str, target: Target, client: Client) -> "Measured":
            progress(f"{target.name}: asking {model}")
            measured = await measure(client, target, model, budget)
            progress(f"{target.name}: {_told(measured)}")
            return measured

        # A group, so that cancelling ends every request.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ask(*question)) for question in questions]
        return [task.result() for task in tasks]


async def _models_of(target: Target, client: Client, slots: asyncio.Semaphore) -> tuple[str, ...] | Failure:
    from triage.probing.measure import list_models

    if target.model:
        return (target.model,)
    async with slots:
        listed = await list_models(client)
        await client.close()
    return listed


def _told(measured: "Measured") -> str:
    first = measured.probe.first_token_s
    if first is not None:
        return f"first token after {first:.2f} s, closed after {measured.probe.total_s or 0:.2f} s"
    if measured.failure is not None:
        return str(measured.failure)
    return "no token" if measured.stream is None else f"no token: {measured.stream.completeness.value}"
