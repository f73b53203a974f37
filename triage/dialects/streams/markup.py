"""Tool calls that are written out in text, because no parser took them (diagnosis.md 6).

The text itself is never kept: only the kind of the marker and the name of the function that is called.
"""

import re

from triage.domain.text import clean

# Markers that open a call. Sources: tool parsers of vLLM (`vllm/tool_parsers`), SGLang (`sglang/srt/function_call`)
# and llama.cpp (`common/chat.cpp`): hermes, qwen3 coder, llama 3, mistral, deepseek v3 to v3.2 (DSML), kimi k2,
# granite, minimax, gemma, internlm, phi 4, cohere, lfm2, apertus, seed, longcat, olmo, hunyuan, jamba, harmony;
# cases C39, C107.
_MARKER = re.compile(
    r"<(?:[a-z]{1,12}[:_])?tool_calls?>|<\|tool_calls?(?:_section)?(?:_begin|_start)?\|>|<function=|<function_calls?>"
    r"|<start_function_call>|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tools_prefix\|>|<\|action_start\|><\|plugin\|>"
    r"|<\|START_ACTION\|>|functools\[|<｜tool[▁_]calls?[▁_]begin｜>"
    r"|<｜{1,2}DSML｜{1,2} ?(?:function_calls|tool_calls|invoke)>?|<invoke name=|\bto=functions\."
)
_LONGEST_MARKER = 48
# What may stand before the function's name, and how it is written. The first that matches names it.
_NAME = r"([A-Za-z_][\w.\-/]{0,79})"
_CALLS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf'^[^"\w]{{0,24}}"(?:name|function|tool_name)"\s*:\s*"{_NAME}"',  # a JSON object that begins with its name
        rf'^[^"]{{0,24}}"(?:arguments|parameters|id|type|tool_call_id)"\s*:.{{0,400}}?"(?:name|tool_name)"\s*:\s*"{_NAME}"',
        rf'^.{{0,80}}?<(?:｜{{1,2}}DSML｜{{1,2}} ?)?invoke name="{_NAME}"',
        rf'^ ?name="{_NAME}"',  # the marker itself was the head of an invoke
        rf'^"{_NAME}"',  # <invoke name="…
        rf"^\s*<function={_NAME}>",
        rf"^{_NAME}>\s*(?:<parameter|\{{|</function)",  # <function=…
        rf"^.{{0,60}}?<｜tool[▁_]sep｜>{_NAME}\s*\n",  # v3: the type stands before the separator
        rf"^(?:<｜tool[▁_]call[▁_]begin｜>)?{_NAME}<｜tool[▁_]sep｜>",
        rf"^(?:<\|tool_call_begin\|>)?\s*functions\.{_NAME}:\d",
        rf"^\s*{_NAME}\s*<arg_key>",
        rf"^\s*{_NAME}(?:\[CALL_ID\]\w{{1,40}})?(?:\[ARGS\])?\s*\{{",
        rf"^\s*call:{_NAME}\{{",
        rf"^\s*\[?{_NAME}\(",
        rf"^{_NAME}(?: |<\|)",  # harmony: to=functions.…
    )
)
# An answer that is nothing but a call, without any marker: llama 3 and xLAM as JSON, llama 4 and olmo as Python.
_BARE = (
    re.compile(
        rf'^\s*(?:```(?:json)?\s*)?\[?\s*\{{\s*"(?:name|function)"\s*:\s*"{_NAME}"\s*,\s*"(?:arguments|parameters)"\s*:'
    ),
    re.compile(rf"^\s*\[{_NAME}\((?:\w+\s*=|\))"),
)
_MARKS = re.compile(f"\n|`+|(?P<marker>{_MARKER.pattern})")
_QUOTES = "'\"“‘«"
_KEPT = 600


class CallWatch:
    """Watches one channel's text, however it is chunked, for the first call that stands neither in code nor in quotes.

    marker: how it is marked; "" without one. name: what is called; "" when that was not to be seen. A name without a
    marker is an answer that is nothing but a call, as JSON or as Python.
    """

    def __init__(self) -> None:
        self.marker = ""
        self.name = ""
        self._head = ""  # the first characters: a call without a marker fills the whole answer
        self._after: str | None = None  # what follows the marker, as far as it is needed to read a name
        self._pending = ""
        self._before = ""
        self._fenced = self._coded = False

    def feed(self, text: str) -> None:
        if len(self._head) < _KEPT:
            self._head += text[: _KEPT - len(self._head)]
        if self._after is not None:
            self._after += text[: _KEPT - len(self._after)]
            return
        self._pending += text
        self._search(max(len(self._pending) - _LONGEST_MARKER, 0))

    def finish(self) -> None:
        """The text has ended."""
        if self._after is None:
            self._search(len(self._pending))
        if self._after is not None:
            self.name = _called(self._after, _CALLS)
        else:
            self.name = _called(self._head, _BARE)
        self._head = self._pending = ""
        self._after = None

    def _search(self, until: int) -> None:
        """Look at what is pending up to a place behind which a marker may still be incomplete."""
        position = 0
        for found in _MARKS.finditer(self._pending):
            if found.start() >= until:
                break
            position = found.end()
            marker = found["marker"]
            if marker is None:
                self._code(found[0])
                continue
            before = self._pending[found.start() - 1] if found.start() else self._before
            if self._fenced or self._coded or (before and before in _QUOTES):
                continue
            self.marker = clean(marker, _LONGEST_MARKER)
            self._after = self._pending[found.end() : found.end() + _KEPT]
            self._pending = ""
            return
        done = max(position, until)
        self._before = self._pending[done - 1 : done] or self._before
        self._pending = self._pending[done:]

    def _code(self, mark: str) -> None:
        if mark == "\n":
            self._coded = False
        elif len(mark) >= 3:
            self._fenced = not self._fenced
        elif len(mark) == 1:
            self._coded = not self._coded


def _called(text: str, shapes: tuple[re.Pattern[str], ...]) -> str:
    for shape in shapes:
        found = shape.match(text)
        if found is not None:
            return clean(found[1], 80)
    return ""
