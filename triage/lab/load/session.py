"""One conversation: each turn's prompt holds everything before it."""

import random

import msgspec

from triage.lab.batching.request import Request, Segment
from triage.lab.load.shapes import Shape


class Habits(msgspec.Struct, frozen=True):
    """What the operator and the application decide about all sessions.

    template: version of the instructions; another one shares no prefix with the last. stamped: part of the prompts
    that begin with a text of their own (a time, an id), so that nothing behind it is ever shared.
    reasoning, opening, visible: factors on the shape's. hides: reasoning is not streamed to the client.
    history_limit: the application drops the oldest turns beyond so many tokens; 0 keeps all.
    """

    template: int = 0
    stamped: float = 0.0
    reasoning: float = 1.0
    opening: float = 1.0
    visible: float = 1.0
    hides: bool = False
    history_limit: int = 0


class Session:
    """name: unique. Turns are asked for one after another."""

    def __init__(self, name: str, shape: Shape, habits: Habits, rng: random.Random) -> None:
        self.name = name
        self.shape = shape
        self.turns_left = max(round(shape.turns.draw(rng)), 1)
        self._rng = rng
        self._history = 0
        self._fresh = round(shape.opening.draw(rng) * habits.opening)

    def ask(self, habits: Habits, context: int) -> Request:
        """The next turn's request. context: tokens that prompt and answer may have together."""
        shape, rng = self.shape, self._rng
        stamp = f"!{rng.getrandbits(48):x}" if rng.random() < habits.stamped else ""
        template = f"{shape.name}/{habits.template}{stamp}"
        key = f"{template}/{self.name}"
        if habits.history_limit:
            self._history = min(self._history, habits.history_limit)
        visible = max(round(shape.visible.draw(rng) * habits.visible), 1)
        reasoning = round(shape.reasoning.draw(rng) * habits.reasoning) if shape.reasoning is not None else 0
        if shape.reasoning is None and habits.reasoning > 1.0:
            # A model that can think and did not: thinking was switched on, as long as answers times the factor.
            reasoning = round(visible * (habits.reasoning - 1.0))
        limit = min(shape.max_tokens, context // 2)
        # An application keeps its prompts inside the context by dropping what is oldest.
        most = context - limit - 1
        prompt = min(shape.template + self._history + self._fresh, most)
        history = max(min(self._history, prompt - shape.template - 1), 0)
        return Request(
            prompt_tokens=prompt,
            visible_tokens=visible,
            max_tokens=limit,
            reasoning_tokens=reasoning,
            prefix=(Segment(template, min(shape.template, prompt)), *([Segment(key, history)] if history else [])),
            keep=key if self.turns_left > 1 else "",
            streaming=shape.streaming,
            shows_reasoning=shape.shows_reasoning and not habits.hides,
            calls_tool=rng.random() < shape.tool_share,
        )

    def answered(self, request: Request, visible_tokens: int) -> None:
        """The turn is over; its prompt and the visible part of its answer are history now."""
        self.turns_left -= 1
        self._history = request.prompt_tokens - min(self.shape.template, request.prompt_tokens) + visible_tokens
        self._fresh = self.shape.turn.tokens(self._rng)
