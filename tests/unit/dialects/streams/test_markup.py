"""Calls that are written out in text, however it is chunked, and what only looks like one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.streams.markup import CallWatch

WRITTEN = {
    "hermes": '<tool_call>\n{"name": "get_pods", "arguments": {"ns": "x"}}\n</tool_call>',
    "behind text": 'Let me look.\n<tool_call>\n{"arguments": {"ns": "x"}, "name": "get_pods"}',
    "qwen coder": "<tool_call>\n<function=get_pods>\n<parameter=ns>\nx\n</parameter>\n</function>\n</tool_call>",
    "llama 3": '<|python_tag|>{"name": "get_pods", "parameters": {"ns": "x"}}',
    "mistral": '[TOOL_CALLS] [{"name": "get_pods", "arguments": {"ns": "x"}}]',
    "mistral v11": '[TOOL_CALLS]get_pods[CALL_ID]abc[ARGS]{"ns": "x"}',
    "deepseek v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_pods\n```json\n{}\n```",
    "deepseek v3.1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_pods<｜tool▁sep｜>{"ns": "x"}<｜tool▁call▁end｜>',
    "deepseek v3.2": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_pods">\n<｜DSML｜parameter name="ns">x',
    "deepseek v4": '<｜｜DSML｜｜tool_calls>\n<｜｜DSML｜｜invoke name="get_pods">\n',
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_pods:0<|tool_call_argument_begin|>{}",
    "glm": "<tool_call>get_pods\n<arg_key>ns</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    "granite": '<|tool_call|>[{"name": "get_pods", "arguments": {"ns": "x"}}]',
    "minimax": '<minimax:tool_call>\n<invoke name="get_pods">\n<parameter name="ns">x</parameter>',
    "gemma": "<start_function_call>call:get_pods{ns:<escape>x<escape>}<end_function_call>",
    "phi": 'functools[{"name": "get_pods", "arguments": {"ns": "x"}}]',
    "gpt-oss": '<|channel|>commentary to=functions.get_pods <|constrain|>json<|message|>{"ns":"x"}',
    "cohere": '<|START_ACTION|>[\n {"tool_call_id": "0", "tool_name": "get_pods", "parameters": {"ns": "x"}}\n]',
    "lfm": '<|tool_call_start|>[get_pods(ns="x")]<|tool_call_end|>',
    "olmo": '<function_calls>get_pods(ns="x")</function_calls>',
    "functionary": '<function=get_pods>{"ns": "x"}</function>',
    "internlm": '<|action_start|><|plugin|>\n{"name": "get_pods", "parameters": {"ns":"x"}}',
}
UNMARKED = {
    "llama 3 without its tag": '{"name": "get_pods", "parameters": {"ns": "x"}}',
    "fenced": '```json\n{"name": "get_pods", "arguments": {}}\n```',
    "pythonic": '[get_pods(ns="x"), get_pods(ns="y")]',
}
TALK = {
    "code block": 'Use this:\n```\n<tool_call>\n{"name": "get_pods", "arguments": {}}\n</tool_call>\n```\nDone.',
    "inline code": 'The `<tool_call>` tag comes first, then {"name": "x"}.',
    "code with more in it": 'Write `a <tool_call> b` and {"name": "x"}.',
    "quotes": "Models write '<tool_call>' and then JSON.",
    "JSON that was asked for": '{"name": "Ada", "age": 36}',
    "link": "[link](http://host)",
    "list": "[print(x) for x in y]",
    "plain": "Four pods are ready.",
    "nothing": "",
}


def watch(text: str, cuts: list[int] | None = None) -> CallWatch:
    watching = CallWatch()
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts or ())})
    for start, end in pairwise(places):
        watching.feed(text[start:end])
    watching.finish()
    return watching


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN.keys())
def test_the_name_is_read_in_every_format(text: str) -> None:
    found = watch(text)
    assert found.name == "get_pods"
    assert found.marker != ""


@pytest.mark.parametrize("text", UNMARKED.values(), ids=UNMARKED.keys())
def test_an_answer_that_is_nothing_but_a_call(text: str) -> None:
    assert (watch(text).name, watch(text).marker) == ("get_pods", "")


@pytest.mark.parametrize("text", TALK.values(), ids=TALK.keys())
def test_talk_about_calls_is_no_call(text: str) -> None:
    assert (watch(text).name, watch(text).marker) == ("", "")


def test_a_marker_behind_a_closed_code_block_counts() -> None:
    assert watch(f"```\nls\n```\n{WRITTEN['hermes']}").name == "get_pods"


def test_a_marker_alone_has_no_name() -> None:
    found = watch("noise <tool_call> noise")
    assert (found.marker, found.name) == ("<tool_call>", "")


@given(st.sampled_from([*WRITTEN.values(), *UNMARKED.values(), *TALK.values()]), st.lists(st.integers(0, 400)))
def test_chunking_changes_nothing(text: str, cuts: list[int]) -> None:
    whole, parts = watch(text), watch(text, cuts)
    assert (whole.marker, whole.name) == (parts.marker, parts.name)


PIECES = st.sampled_from(
    ["`", "```", "\n", "<tool_call>", "<function=f>", '{"name": "f"}', "'", " ", "text", "<", "to="]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_any_text_is_taken_and_its_chunking_changes_nothing(text: str, cuts: list[int]) -> None:
    whole, parts = watch(text), watch(text, cuts)
    assert (whole.marker, whole.name) == (parts.marker, parts.name)
