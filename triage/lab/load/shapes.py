"""Workload shapes: how long prompts and answers are, and how people and programs come back."""

import msgspec

from triage.lab.load.spread import Spread, by_p90


class Shape(msgspec.Struct, frozen=True):
    """One kind of user. Sizes in tokens, times in seconds.

    template: instructions that all sessions begin with. opening: what a session brings besides, at its first turn.
    turn: what each further turn adds to the history (tool results, pasted text, a question). turns: of a session.
    think: between an answer and the next turn. gap: between a session's end and the user's next one.
    reasoning, tool_share: of the answers. shows_reasoning: it is streamed, though no user reads it.
    patience: seconds without a visible token after which the user leaves.
    retries: how often the client's library sends a failed request again.
    """

    name: str
    template: int
    opening: Spread
    turn: Spread
    visible: Spread
    turns: Spread
    think: Spread
    gap: Spread
    patience: Spread
    reasoning: Spread | None = None
    tool_share: float = 0.0
    streaming: bool = True
    shows_reasoning: bool = True
    max_tokens: int = 2048
    retries: int = 2


# People at a chat window: short questions, half a screen of answer, the last turns again in each prompt.
CHAT = Shape(
    name="chat",
    template=600,
    opening=Spread(150, 0.8, 8, 3000),
    turn=Spread(80, 0.8, 8, 2000),
    visible=Spread(220, 0.6, 8, 1200),
    turns=Spread(4, 0.5, 1, 12),
    think=Spread(14, 0.6, 3, 90),
    gap=Spread(25, 0.6, 5, 120),
    patience=Spread(60, 0.3, 30, 180),
)

# Coding agents (the-job.md): prompts of 59K tokens in the median, 125K at p90, two thirds of them in the cache,
# minutes of thinking, tools in nearly every turn. Two thirds come out of few turns a session (sub-agents start many
# of them) that open with most of the context and add a tenth of it a turn.
AGENTS = Shape(
    name="agents",
    template=12_000,
    opening=by_p90(36_000, 95_000, 4_000, 160_000),
    turn=by_p90(5_000, 12_000, 500, 30_000),
    visible=Spread(260, 0.7, 20, 2000),
    turns=Spread(3, 0.6, 1, 12),
    think=Spread(6, 0.8, 1, 60),
    gap=Spread(20, 0.5, 5, 60),
    patience=Spread(900, 0.2, 600, 1800),
    reasoning=Spread(900, 0.6, 100, 4000),
    tool_share=0.85,
    max_tokens=8192,
)

# A job over documents: each prompt once, answers short, nobody watches.
BATCH = Shape(
    name="batch",
    template=300,
    opening=Spread(2500, 0.6, 200, 12_000),
    turn=Spread(1, 0.1, 1, 1),
    visible=Spread(120, 0.5, 10, 600),
    turns=Spread(1, 0.1, 1, 1),
    think=Spread(1, 0.1, 1, 1),
    gap=Spread(1.5, 0.6, 0.2, 10),
    patience=Spread(3600, 0.1, 3000, 7200),
    streaming=False,
    retries=5,
)

SHAPES = (CHAT, AGENTS, BATCH)
