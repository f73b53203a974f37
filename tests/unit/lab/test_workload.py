import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from triage.lab.workload import ClosedLoop, Request, Spread, Workload

LOAD = Workload(
    users=5,
    think_s=2.0,
    prompt=Spread(median=100, sigma=0.5, low=10, high=500),
    visible=Spread(median=50, sigma=0.5, low=5, high=200),
)


def drained(load: ClosedLoop) -> set[int]:
    users = set()
    while load.next_at != float("inf"):
        user, _ = load.take()
        users.add(user)
    return users


@given(st.integers(1, 10_000), st.floats(0.0, 3.0), st.integers(1, 500), st.integers(0, 500), st.integers())
def test_a_spread_keeps_to_its_limits(median: int, sigma: float, low: int, width: int, seed: int) -> None:
    spread = Spread(median=median, sigma=sigma, low=low, high=low + width)
    assert low <= spread.draw(random.Random(seed)) <= low + width


def test_a_spread_has_its_median() -> None:
    rng = random.Random(1)
    draws = sorted(Spread(median=150, sigma=0.5, low=1, high=10_000).draw(rng) for _ in range(4001))
    assert 140 < draws[2000] < 160


def test_output_ends_at_the_limit_even_inside_reasoning() -> None:
    request = Request(prompt_tokens=10, reasoning_tokens=100, visible_tokens=20, max_tokens=30)
    assert (request.output_tokens, request.finish_reason) == (30, "length")
    roomy = msgspec.structs.replace(request, max_tokens=120)
    assert (roomy.output_tokens, roomy.finish_reason) == (120, "stop")


def test_same_seed_same_requests() -> None:
    def history(seed: str) -> list[tuple[float, int, Request]]:
        load = ClosedLoop(LOAD, seed)
        seen = []
        for _ in range(50):
            at = load.next_at
            user, request = load.take()
            seen.append((at, user, request))
            load.answered(user, at + 1.0)
        return seen

    assert history("a") == history("a")
    assert history("a") != history("b")


def test_a_user_asks_again_only_after_the_answer() -> None:
    load = ClosedLoop(LOAD, "a")
    assert drained(load) == {0, 1, 2, 3, 4}
    load.answered(3, 10.0)
    assert load.next_at > 10.0
    assert load.take()[0] == 3
    assert load.next_at == float("inf")


def test_users_come_and_go_with_the_workload() -> None:
    load = ClosedLoop(LOAD, "a")
    first, _ = load.take()  # this one waits for an answer while the workload changes
    load.change(msgspec.structs.replace(LOAD, users=8), 100.0)
    assert drained(load) == set(range(8)) - {first}
    load.change(msgspec.structs.replace(LOAD, users=0), 200.0)
    for user in range(8):
        load.answered(user, 201.0)
    assert load.next_at == float("inf")
    load.change(LOAD, 300.0)
    assert drained(load) == {0, 1, 2, 3, 4}


def test_users_who_left_while_thinking_can_come_back() -> None:
    load = ClosedLoop(LOAD, "a")
    load.change(msgspec.structs.replace(LOAD, users=2), 1.0)
    load.change(LOAD, 2.0)
    assert drained(load) == {0, 1, 2, 3, 4}
    assert load.next_at == float("inf")
