"""Who asks for what and when: sizes, conversations, and people who wait, come back, give up."""

import math
import random
from collections.abc import Iterator
from statistics import median

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.lab.batching.request import Request, Sequence
from triage.lab.load.question import question
from triage.lab.load.session import Habits, Session
from triage.lab.load.shapes import AGENTS, BATCH, CHAT, SHAPES, Shape
from triage.lab.load.spread import Spread, by_p90
from triage.lab.world.call import Attempt, Call, Outcome
from triage.lab.world.timeline import Timeline
from triage.lab.world.users import Crowd, Users, impatient

SHAPE = st.sampled_from(SHAPES)
CONTEXT, PLAIN = 200_000, Habits()


@given(st.floats(1.0, 1e5), st.floats(0.0, 3.0), st.floats(1.0, 1e5), st.floats(0.0, 1e5), st.integers())
def test_a_spread_keeps_its_limits(middle: float, sigma: float, low: float, width: float, seed: int) -> None:
    spread = Spread(middle, sigma, low, low + width)
    assert low <= spread.draw(random.Random(seed)) <= low + width
    assert 3 * low <= spread.times(3.0).draw(random.Random(seed)) <= 3 * (low + width) + 1e-6


def test_a_spread_has_the_median_and_the_p90_it_was_made_with() -> None:
    rng, spread = random.Random(1), by_p90(150.0, 400.0, 1.0, 1e6)
    draws = sorted(spread.draw(rng) for _ in range(4001))
    assert (draws[2000], draws[3600]) == pytest.approx((150.0, 400.0), rel=0.07)
    assert isinstance(spread.tokens(rng), int)


# ---- conversations


def turns(session: Session, habits: Habits = PLAIN, context: int = CONTEXT) -> Iterator[tuple[Request, int]]:
    """Each turn and the visible tokens it was answered with, as if nothing ever went wrong."""
    while session.turns_left > 0:
        request = session.ask(habits, context)
        shown = min(request.visible_tokens, request.max_tokens)
        yield request, shown
        session.answered(request, shown)


@given(SHAPE, st.integers())
def test_prompts_of_a_session_hold_everything_before_them(shape: Shape, seed: int) -> None:
    session = Session("s", shape, Habits(), random.Random(seed))
    before = shape.template
    for number, (request, shown) in enumerate(turns(session, context=10_000_000)):
        assert sum(part.tokens for part in request.prefix) == before < request.prompt_tokens
        keys = [part.key for part in request.prefix]
        assert keys == [f"{shape.name}/0", f"{shape.name}/0/s"][: 2 if number else 1]
        assert request.keep == (f"{shape.name}/0/s" if session.turns_left > 1 else "")
        before = request.prompt_tokens + shown


@given(SHAPE, st.integers(100, CONTEXT), st.floats(1.0, 40.0), st.integers())
def test_prompt_and_answer_never_exceed_the_context(shape: Shape, context: int, opening: float, seed: int) -> None:
    habits = Habits(opening=opening)
    for request, _ in turns(Session("s", shape, habits, random.Random(seed)), habits, context):
        assert 0 < request.prompt_tokens < request.prompt_tokens + request.max_tokens < context
        assert all(part.tokens > 0 for part in request.prefix)
        assert sum(part.tokens for part in request.prefix) <= request.prompt_tokens


def test_agents_ask_as_the_fleets_of_agents_do() -> None:
    """Prompts of 59K tokens in the median and 125K at p90, two thirds and more of them said before."""
    rng = random.Random(1)
    asked = [one for number in range(600) for one, _ in turns(Session(f"{number}", AGENTS, Habits(), rng))]
    sizes = sorted(one.prompt_tokens for one in asked)
    assert (median(sizes), sizes[int(0.9 * len(sizes))]) == pytest.approx((59_000, 125_000), rel=0.1)
    assert 0.6 < sum(part.tokens for one in asked for part in one.prefix) / sum(sizes) < 0.8
    assert sum(one.calls_tool for one in asked) / len(asked) == pytest.approx(AGENTS.tool_share, abs=0.03)


def asked_with(habits: Habits, shape: Shape = CHAT) -> list[Request]:
    rng = random.Random(1)
    return [one for name in "abcd" for one, _ in turns(Session(name, shape, habits, rng), habits)]


def test_habits_are_factors_on_what_a_shape_asks_for() -> None:
    plain = asked_with(Habits())
    for habits, factor in ((Habits(visible=3.0), 3.0), (Habits(visible=0.5), 0.5)):
        longer = [one.visible_tokens for one in asked_with(habits)]
        assert longer == pytest.approx([factor * one.visible_tokens for one in plain], abs=1)
    first, longer_first = plain[0], asked_with(Habits(opening=5.0))[0]
    assert longer_first.prompt_tokens - 600 == pytest.approx(5 * (first.prompt_tokens - 600), abs=3)
    thinking = asked_with(Habits(reasoning=4.0))
    assert not any(one.reasoning_tokens for one in plain)
    assert all(one.reasoning_tokens == 3 * one.visible_tokens for one in thinking)
    agents, harder = asked_with(Habits(), AGENTS), asked_with(Habits(reasoning=2.0, hides=True), AGENTS)
    assert harder[0].reasoning_tokens == pytest.approx(2 * agents[0].reasoning_tokens, abs=1)
    assert [agents[0].shows_reasoning, harder[0].shows_reasoning] == [True, False]


def test_another_template_or_a_stamp_shares_nothing_with_the_last() -> None:
    def templates(habits: Habits) -> set[str]:
        return {one.prefix[0].key for one in asked_with(habits)}

    assert len(templates(Habits())) == 1
    assert not templates(Habits()) & templates(Habits(template=1))
    assert len(templates(Habits(stamped=1.0))) == len(asked_with(Habits(stamped=1.0)))


def test_an_application_may_drop_the_oldest_turns() -> None:
    limited = asked_with(Habits(history_limit=200))
    assert max(sum(part.tokens for part in one.prefix[1:]) for one in limited) == 200
    assert max(sum(part.tokens for part in one.prefix[1:]) for one in asked_with(Habits())) > 200


@pytest.mark.parametrize(
    ("shape", "habits", "thinks", "tokens"),
    [
        (CHAT, Habits(), True, 0),
        (CHAT, Habits(reasoning=3.0), True, 120),
        (AGENTS, Habits(), True, 900),
        (AGENTS, Habits(reasoning=2.0, hides=True), True, 1800),
        (AGENTS, Habits(), False, 0),
    ],
)
def test_a_question_from_outside_is_thought_about_as_long_as_others(
    shape: Shape, habits: Habits, thinks: bool, tokens: int
) -> None:
    asked = question(shape, habits, prompt_tokens=20, max_tokens=512, thinks=thinks)
    assert (asked.reasoning_tokens, asked.shows_reasoning, asked.prefix) == (tokens, not habits.hides, ())


def test_an_answer_ends_at_its_limit_even_inside_its_reasoning() -> None:
    request = Request(10, 20, 30, reasoning_tokens=100, calls_tool=True)
    assert (request.output_tokens, request.finish_reason) == (30, "length")
    roomy = msgspec.structs.replace(request, max_tokens=120)
    assert (roomy.output_tokens, roomy.finish_reason) == (120, "tool_calls")
    assert Request(10, 20, 30).finish_reason == "stop"


# ---- people


class Desk:
    """Somebody answers every call, when the test says so."""

    def __init__(self, shape: Shape = CHAT, seed: str = "a", users: int = 5, **crowd: object) -> None:
        self.timeline = Timeline()
        self.calls: list[Call] = []
        self.crowd = msgspec.structs.replace(Crowd(users), **crowd)
        self.users = Users("model", shape, self.crowd, self.timeline, seed, lambda call, at: self.calls.append(call))
        self.users.arrive(0.0)

    def until(self, at: float) -> list[Call]:
        """Calls that came since the last look."""
        seen = len(self.calls)
        while self.timeline.next_at <= at:
            self.timeline.proceed()
        return self.calls[seen:]

    def end(self, call: Call, at: float, outcome: Outcome = Outcome.COMPLETE, status: int = 200) -> None:
        call.outcome, call.status, call.ended = outcome, status, at
        attempt = Attempt("replica", call.sent)
        attempt.sequence = Sequence(call.request, call.sent, call.sent, None)
        attempt.sequence.counted = call.request.output_tokens
        call.attempts.append(attempt)
        self.users.ended(call, at)

    def change(self, at: float, **crowd: object) -> None:
        self.users.change(msgspec.structs.replace(self.users.crowd, **crowd), at)


def play(seed: str) -> list[tuple[float, str, str, Request, float]]:
    desk = Desk(seed=seed)
    for second in range(300):
        for call in desk.until(float(second)):
            desk.end(call, float(second))
    return [(call.sent, call.user, call.session, call.request, call.patient_until) for call in desk.calls]


def test_the_same_seed_gives_the_same_calls() -> None:
    assert len(play("a")) > 50
    assert play("a") == play("a") != play("b")


def test_users_turn_up_within_seconds_and_ask_again_only_after_the_answer() -> None:
    desk = Desk()
    first = desk.until(8.0)
    assert len({call.user for call in first}) == len(first) == 5
    assert desk.until(1000.0) == []
    desk.end(first[3], 1000.0)
    (again,) = desk.until(2000.0)
    assert again.user == first[3].user
    assert 1000.0 + CHAT.think.low <= again.sent <= 1000.0 + CHAT.gap.high


def test_a_conversation_goes_on_until_its_turns_are_over_and_then_another_begins() -> None:
    desk = Desk(users=1)
    (call,) = desk.until(8.0)
    for _ in range(30):
        desk.end(call, call.sent + 1.0)
        before, (call,) = call, desk.until(call.sent + 1000.0)
        assert (call.session == before.session) is bool(before.request.keep)
        assert (call.request.prompt_tokens > before.request.prompt_tokens) or not before.request.keep
    assert len({call.session for call in desk.calls}) > 4


def test_users_come_and_go_with_the_crowd() -> None:
    desk = Desk()
    first = desk.until(8.0)
    desk.change(100.0, users=8)
    more = desk.until(108.0)
    assert {call.user for call in more} == {"chat-5", "chat-6", "chat-7"}
    desk.change(200.0, users=2)
    for call in (*first, *more):
        desk.end(call, 201.0)
    left = desk.until(1000.0)
    assert {call.user for call in left} == {"chat-0", "chat-1"}
    desk.change(1000.0, users=5)
    assert {call.user for call in desk.until(1008.0)} == {"chat-2", "chat-3", "chat-4"}


def test_users_who_were_to_leave_while_thinking_stay_when_they_are_wanted_again() -> None:
    desk = Desk()
    for call in desk.until(8.0):
        desk.end(call, 8.0)
    desk.change(8.1, users=2)
    desk.change(8.2, users=5)
    assert sorted(call.user for call in desk.until(500.0)) == [f"chat-{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("outcome", "status", "again"),
    [
        (Outcome.FAILED, 500, True),
        (Outcome.FAILED, 503, True),
        (Outcome.FAILED, 504, True),
        (Outcome.FAILED, 429, True),
        (Outcome.FAILED, 408, True),
        (Outcome.FAILED, 404, False),
        (Outcome.REFUSED, 400, False),
        (Outcome.REFUSED, 401, False),
        (Outcome.CUT, 200, False),
        (Outcome.LEFT, 0, False),
        (Outcome.COMPLETE, 200, False),
    ],
)
def test_only_what_client_libraries_send_again_is_sent_again(outcome: Outcome, status: int, again: bool) -> None:
    desk = Desk(users=1)
    (call,) = desk.until(8.0)
    desk.end(call, 10.0, outcome, status)
    (other,) = desk.until(500.0)
    assert (other.request is call.request, other.again, other.sent < 10.5) == (again, int(again), again)


@pytest.mark.parametrize(("shape", "override", "tries"), [(CHAT, None, 3), (BATCH, None, 6), (CHAT, 0, 1)])
def test_a_client_gives_up_after_its_retries_and_waits_longer_each_time(
    shape: Shape, override: int | None, tries: int
) -> None:
    desk = Desk(shape, users=1, retries=override)
    (call,) = desk.until(8.0)
    waits: list[float] = []
    while desk.calls[-1].request is desk.calls[0].request and len(waits) < 20:
        desk.end(call, call.sent + 1.0, Outcome.FAILED, 503)
        ended, (call,) = call.ended, desk.until(call.sent + 1000.0)
        waits.append(call.sent - ended)
    assert len(waits) == tries
    assert waits[:-1] == [pytest.approx(0.4375 * 2**number, rel=0.15) for number in range(tries - 1)]


def test_who_shows_no_key_who_walks_off_and_who_loses_patience() -> None:
    plain = Desk(users=200).until(8.0)
    assert all(call.identity == call.user and call.walks_off_at == math.inf for call in plain)
    calls = Desk(users=200, keyless=0.5, leaving=0.5, patience=2.0).until(8.0)
    walking = [call.walks_off_at - call.sent for call in calls if call.walks_off_at < math.inf]
    assert (len(walking), sum(not call.identity for call in calls)) == pytest.approx((100, 100), abs=25)
    assert 0.3 <= min(walking) < max(walking) <= 5.0
    assert all(2 * CHAT.patience.low <= call.patient_until - call.sent <= 2 * CHAT.patience.high for call in calls)
    call = calls[0]
    assert [impatient(call, call.patient_until - 0.1), impatient(call, call.patient_until)] == [False, True]
    call.first_visible = 9.0
    assert not impatient(call, call.patient_until)
