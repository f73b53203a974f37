"""A question from outside: what somebody who is none of the simulated users gets to hear."""

from triage.lab.batching.request import Request
from triage.lab.load.session import Habits
from triage.lab.load.shapes import Shape

# What a model says to a short question, before it thinks as long as it does for others.
_ANSWER_TOKENS = 60


def question(
    shape: Shape,
    habits: Habits,
    *,
    prompt_tokens: int,
    max_tokens: int,
    thinks: bool = True,
    streaming: bool = True,
) -> Request:
    """The model thinks about it as it thinks for the users of this shape, with their present habits."""
    usual = shape.reasoning.median if shape.reasoning is not None else 0.0
    thought = usual * habits.reasoning if usual else _ANSWER_TOKENS * (habits.reasoning - 1.0)
    return Request(
        prompt_tokens=prompt_tokens,
        visible_tokens=_ANSWER_TOKENS,
        max_tokens=max_tokens,
        reasoning_tokens=round(thought) if thinks else 0,
        streaming=streaming,
        shows_reasoning=shape.shows_reasoning and not habits.hides,
    )
