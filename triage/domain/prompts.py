"""How prompts begin, and how much of them a prefix cache found. Texts are compared, never kept."""

import msgspec


class Reuse(msgspec.Struct, frozen=True):
    """One request's prompt and how much of it was found in the prefix cache, in tokens.

    track: who sent it, or the slot that took it. turn: its place in one conversation, where that is said.
    """

    track: str
    prompt: int
    cached: int
    turn: int | None = None


class PromptPair(msgspec.Struct, frozen=True):
    """Two requests' prompts from their beginning, in characters.

    shared: equal from the start. changed: the stretch behind it in which they differ, the longer of both. rest: equal
    behind that stretch; 0 when they do not agree again. length: of the shorter one.
    """

    first: str
    second: str
    length: int
    shared: int
    changed: int
    rest: int
