"""Reasoning that is left in the content, between tags (streaming.md 1).

The opening tag may be missing, because the chat template wrote it into the prompt: then what came
before the closing tag was reasoning, which is known only once that tag arrives.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

from triage.dialects.streams.tally import Tally


class _Tag(NamedTuple):
    """sure: the opening alone proves reasoning. alone: the closing alone does, when no opening was seen."""

    opening: str
    closing: str
    sure: bool = True
    alone: bool = True


# Sources: vLLM `vllm/reasoning` parsers (deepseek_r1, mistral, seed_oss, kimi, cohere, minimax); OpenAI harmony
# format for gpt-oss, whose markers vanish to bare words when special tokens are skipped.
_TAGS = (
    _Tag("<think>", "</think>"),
    _Tag("<thinking>", "</thinking>"),
    _Tag("<thought>", "</thought>"),
    _Tag("<reasoning>", "</reasoning>"),
    _Tag("[THINK]", "[/THINK]"),
    _Tag("<seed:think>", "</seed:think>"),
    _Tag("◁think▷", "◁/think▷"),
    _Tag("<|START_THINKING|>", "<|END_THINKING|>"),
    _Tag("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    _Tag("analysis", "assistantfinal", sure=False, alone=False),
)
_LONGEST = max(len(text) for tag in _TAGS for text in (tag.opening, tag.closing))
# A tag in quotes or code is talked about, not meant.
_NOT_QUOTED = r"(?<![`'\"])"


def _closing(*tags: _Tag) -> re.Pattern[str]:
    return re.compile(_NOT_QUOTED + "(?:" + "|".join(re.escape(tag.closing) for tag in tags) + ")")


_ANY_CLOSING = _closing(*(tag for tag in _TAGS if tag.alone))
# An opening inside the text: so its beginning was no reasoning with the opening left out.
_LATE_OPENING = re.compile(_NOT_QUOTED + "(?:" + "|".join(re.escape(tag.opening) for tag in _TAGS if tag.sure) + ")")


def _search(pattern: re.Pattern[str], text: str, old: int) -> re.Match[str] | None:
    """The first tag that ends behind `old`: what ends before was judged when the quote before it was still there."""
    return next((found for found in pattern.finditer(text) if found.end() > old), None)


class _State(Enum):
    OPENING = auto()  # nothing but white space and perhaps a part of an opening tag
    REASONING = auto()
    UNDECIDED = auto()  # looks visible, unless a closing tag comes
    VISIBLE = auto()


class ThinkTags:
    """Splits content over two tallies. `visible_text` is what the last call added to the visible one."""

    def __init__(self, reasoning: Tally, visible: Tally) -> None:
        self._reasoning = reasoning
        self._visible = visible
        self._state = _State.OPENING
        self._closing = _ANY_CLOSING
        self._pending = ""
        self._pending_s: float | None = None
        self._tail = ""

    def feed(self, text: str, at: float | None) -> str:
        """Count the text; gives back what of it looks visible now."""
        match self._state:
            case _State.OPENING:
                return self._open(text, at)
            case _State.VISIBLE:
                self._visible.add(text, at)
                return text
            case _:
                return self._close(text, at)

    def finish(self) -> None:
        """The stream has ended: what waited for the rest of a tag is text."""
        if self._state is _State.OPENING and self._pending:
            self._visible.add(self._pending, self._pending_s)

    def _open(self, text: str, at: float | None) -> str:
        if not self._pending:
            text = text.lstrip()
            self._pending_s = at
        self._pending += text
        if not self._pending:
            return ""
        if any(len(self._pending) < len(tag.opening) and tag.opening.startswith(self._pending) for tag in _TAGS):
            return ""
        pending, self._pending = self._pending, ""
        for tag in _TAGS:
            if pending.startswith(tag.opening):
                if tag.sure:
                    self._closing = _closing(tag)
                    self._state = _State.REASONING
                    return self._close(pending[len(tag.opening) :], at)
                self._closing = _closing(tag)
        self._state = _State.UNDECIDED
        return self._close(pending, self._pending_s)

    def _close(self, text: str, at: float | None) -> str:
        counted = self._reasoning if self._state is _State.REASONING else self._visible
        joined = self._tail + text
        found = _search(self._closing, joined, len(self._tail))
        if counted is self._visible:
            opening = _search(_LATE_OPENING, joined, len(self._tail))
            if opening is not None and (found is None or opening.start() < found.start()):
                self._state = _State.VISIBLE
                self._visible.add(text, at)
                return text
        if found is None:
            self._tail = joined[-_LONGEST:]
            counted.add(text, at)
            return text if counted is self._visible else ""
        fresh = found.start() - len(self._tail)  # negative: the tag began in an earlier chunk and was counted
        if fresh > 0:
            counted.add(text[:fresh], at)
        else:
            counted.take_back(-fresh)
        if counted is self._visible:
            self._visible.move_to(self._reasoning)
        self._state = _State.VISIBLE
        rest = joined[found.end() :]
        self._visible.add(rest, at)
        return rest
