"""Simulated users who really ask: each call ends once, however it ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from tests.integration.lab import Served, serving, until
from triage.lab.batching.request import Request
from triage.lab.serving.real_users import MOST, RealUsers
from triage.lab.world.call import Call, Outcome
from triage.lab.world.service import Service


class Asking(NamedTuple):
    served: Served
    service: Service
    users: RealUsers

    def call(self, user: int = 0, **changes: object) -> Call:
        call = Call(self.service.model, f"chat-{user}", f"s-{user}", Request(20, 10, 30), self.served.world.now)
        for name, value in changes.items():
            setattr(call, name, value)
        self.service.send(call, self.served.world.now)
        return call


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    async with serving() as served:
        service = served.world.services[0]
        users = RealUsers(service, served.url, "key", served.server._pace)
        service.carrier = served.server.users = users
        yield Asking(served, service, users)
        await users.close()


async def test_a_call_is_answered_with_what_the_user_asked(asking: Asking) -> None:
    call = asking.call()
    await until(lambda: not call.open)
    assert (call.outcome, call.status, list(asking.service.calls)) == (Outcome.COMPLETE, 200, [call])
    assert call.answer is not None
    assert (call.answer.request, call.answer.counted) == (call.request, 10)
    assert call.attempts[0].at_end is not None
    assert not asking.service.open_calls


async def test_others_than_the_first_few_go_the_simulated_way(asking: Asking) -> None:
    call = asking.call(MOST)
    assert not call.carried
    assert asking.call().carried


async def test_who_leaves_before_anything_was_sent_has_left(asking: Asking) -> None:
    call = asking.call()
    assert asking.users.leave(call)
    await until(lambda: not call.open)
    assert (call.outcome, list(asking.service.calls)) == (Outcome.LEFT, [call])
    assert not asking.users.leave(call)


async def test_who_leaves_in_the_middle_is_dropped_by_the_engine(asking: Asking) -> None:
    asking.served.condition(host=1e-5)
    call = asking.call()
    await until(lambda: asking.served.replica.engine.open_requests == 1)
    asking.users.leave(call)
    await until(lambda: not call.open and asking.served.replica.engine.open_requests == 0)
    assert call.outcome is Outcome.LEFT


@pytest.mark.parametrize("listening", [True, False])
async def test_an_engine_that_is_gone_fails_the_call(asking: Asking, listening: bool) -> None:
    if listening:
        asking.served.replica.lose_core(asking.served.world.now, [])
    else:
        await asking.served.server.close()
    call = asking.call(again=2)  # a third time: nobody tries it again
    await until(lambda: not call.open)
    assert (call.outcome, call.status) == (Outcome.FAILED, 500 if listening else 503)


async def test_closing_ends_what_is_under_way_and_tells_nobody(asking: Asking) -> None:
    asking.served.condition(host=1e-5)
    asking.call()
    await asyncio.sleep(0)
    await asking.users.close()
    assert not asking.users.open
    assert not asking.service.calls
