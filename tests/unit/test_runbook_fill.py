"""Names from remote systems in commands and in prose: one shell word here, plain text there."""

import datetime
import shlex
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from triage.domain.text import clean
from triage.domain.verdict import Kind
from triage.runbook import Runbook, Severity, render

HOSTILE = [
    "x[/foo][@click=app.quit]",
    "; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "' ; touch pwned ; '",
    '" ; touch pwned ; "',
    "a\nb",
    "```\n# heading",
    "~~~",
    "<script>alert(1)</script>",
    "[click](http://evil.example)",
    "http://evil.example/?a=b&c=d",
    "www.evil.example",
    "someone@evil.example",
    "**bold** __bold__ *i* _i_ ~~s~~",
    "&lt;b&gt; &#42;",
    "| a | b |",
    "1. one",
    "12) twelve",
    "- item",
    "+ item",
    "> quote",
    "===",
    "# heading",
    "\\",
    "{model}",
    "${HOME} %{http_code}",
    "\x1b]0;title\x07\x9b31mred",
    "\u202eevil\u2066",
    "llama-3.1-70b-instruct",
    "größe 模型",
]
NAMES = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=60),
    st.lists(st.sampled_from(list("`~'\"\\*_[]()<>|#!&;$.:/@-+=> ab1")), max_size=12).map("".join),
)


def runbook(body: str) -> Runbook:
    return Runbook(
        topic="queueing",
        title="t",
        kinds=(Kind.QUEUEING,),
        aliases=(),
        severity=Severity.INFO,
        last_reviewed=datetime.date(2026, 12, 1),
        path=Path("queueing.md"),
        body=body,
        first=1,
        sections=(),
    )


def parsed(markdown: str) -> list[Token]:
    return MarkdownIt("gfm-like").parse(markdown)  # the dialect of the screen, with links made of bare addresses


def test_known_names_are_filled_in_and_others_stay_visible() -> None:
    book = runbook("Look at {replica} on {node}:\n\n```sh\nkubectl -n {namespace} logs {replica}\n```\n")
    assert render(book, {"replica": "vllm-7f9-abc", "node": "", "unused": "x"}) == (
        "Look at vllm-7f9-abc on \\<node\\>:\n\n```sh\nkubectl -n <namespace> logs vllm-7f9-abc\n```\n"
    )


def test_ordinary_names_stay_readable() -> None:
    book = runbook("`curl {url}/metrics` of {model}")
    assert render(book, {"url": "http://127.0.0.1:8000", "model": "llama-3.1-70b"}) == (
        "`curl http://127.0.0.1:8000/metrics` of llama-3.1-70b"
    )


def test_what_is_no_placeholder_is_left_alone() -> None:
    body = '`${replica} %{replica} {"model":1} {Replica} {{replica}}`\n\n```sh\nawk \'{print $1}\' x{reason="a"}\n```'
    assert render(runbook(body), {"replica": "r"}) == body.replace("{{replica}}", "{r}")


def test_nothing_is_filled_in_twice() -> None:
    book = runbook("a {replica}\n\n`b {replica}`")
    filled = render(book, {"replica": "{model}", "model": "secret"})
    assert "secret" not in filled
    assert filled == "a \\{model\\}\n\n`b '{model}'`"


@pytest.mark.parametrize("name", ["-o/etc/passwd", "--kubeconfig=evil", "\x1b[0m-x", "  -x"])
def test_an_option_is_no_name_for_a_command(name: str) -> None:
    filled = render(
        runbook("`kubectl logs {replica}`\n\n```sh\nkubectl logs {replica}\n```\n\n{replica}"), {"replica": name}
    )
    assert filled.startswith("`kubectl logs <replica>`\n\n```sh\nkubectl logs <replica>\n```\n\n")
    assert "\\-" in filled  # in prose it is shown: the person should see what calls itself so


def test_a_name_too_long_to_be_whole_is_not_filled_in() -> None:
    book = runbook("`x {replica}`")
    assert render(book, {"replica": "a" * 500}) == f"`x {'a' * 500}`"
    assert render(book, {"replica": "a" * 501}) == "`x <replica>`"


@given(name=NAMES)
def test_in_a_block_of_code_it_is_one_word(name: str) -> None:
    said = clean(name).strip()
    assume(said and not said.startswith("-"))
    tokens = parsed(
        render(runbook("Before\n\n1. [reads] a\n\n   ```sh\n   x {replica} y\n   ```\n\nAfter"), {"replica": name})
    )
    (fence,) = [token for token in tokens if token.type == "fence"]
    assert shlex.split(fence.content) == ["x", said, "y"]
    assert [token.content for token in tokens if token.type == "inline"] == ["Before", "[reads] a", "After"]


@given(name=NAMES)
def test_in_a_code_span_it_is_one_word(name: str) -> None:
    said = clean(name).strip()
    assume(said and not said.startswith("-"))
    (inline,) = [
        token for token in parsed(render(runbook("a `x {replica} y` b"), {"replica": name})) if token.type == "inline"
    ]
    kinds = [child.type for child in inline.children or []]
    assert kinds == ["text", "code_inline", "text"]
    assert shlex.split((inline.children or [])[1].content) == ["x", said, "y"]


@given(name=NAMES, before=st.sampled_from(["", "a ", "1. [reads] ", "- [reads] ", "a**", "## H\n\n"]))
def test_outside_code_it_is_plain_text(name: str, before: str) -> None:
    said = clean(name).strip()
    assume(said)
    template = f"{before}{{replica}} after"
    plain = parsed(render(runbook(template), {"replica": "word"}))
    tokens = parsed(render(runbook(template), {"replica": name}))
    assert [token.type for token in tokens] == [token.type for token in plain]
    children = [child for token in tokens for child in token.children or []]
    assert {child.type for child in children} <= {"text", "text_special"}
    assert "".join(child.content for child in children).endswith(f"{said} after")


@given(name=NAMES)
def test_nothing_hostile_reaches_the_screen(name: str) -> None:
    filled = render(runbook("{replica} `{replica}`\n\n```sh\n{replica}\n```"), {"replica": name})
    assert filled.count("\n") == 4
    assert all(clean(line, 10_000) == line for line in filled.split("\n"))
