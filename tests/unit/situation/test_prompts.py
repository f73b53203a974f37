"""Request bodies compared from their beginning; nothing of their text leaves."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.situation import AdapterUse
from triage.situation import facts
from triage.situation.folder import load_folder
from triage.situation.prompts import compare_prompts, prompt_text, read_reuse

RULES = "You are a coding agent. Follow the rules of the repository. " * 40


def body(head: str, question: str = "go", rules: str = RULES) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": question}], "system": head + rules}


def pair(one: object, other: object) -> tuple[int, int, int, int]:
    (found,) = compare_prompts([("a", prompt_text(one)), ("b", prompt_text(other))])
    return found.length, found.shared, found.changed, found.rest


def test_a_changing_word_at_the_front() -> None:
    length, shared, changed, rest = pair(body("cch=8ae40;"), body("cch=4e20a;"))
    assert (shared, changed) == (5, 5)
    assert rest == length - shared - changed


def test_words_of_different_length() -> None:
    _, shared, changed, rest = pair(body("at 9:59 "), body("at 10:00:01 "))
    assert (shared, changed) == (4, 8)
    assert rest > 1000


def test_a_conversation_that_went_on_shares_all_but_its_end() -> None:
    length, shared, _, rest = pair(body(""), body("", "go and then do something else"))
    assert shared > 0.9 * length
    assert rest == 0


def test_prompts_of_different_work_do_not_agree_again() -> None:
    _, shared, _, rest = pair(body("", rules="Translate into French. " * 30), body("", rules="Sum up the text. " * 30))
    assert shared <= 2
    assert rest < 100


def test_the_system_text_comes_first_wherever_it_stands() -> None:
    one, other = body("a"), dict(reversed(list(body("a", "other").items())))
    assert pair(one, other)[1] > len(RULES)


@pytest.mark.parametrize("nothing", [None, [], {}, {"model": "m"}, {"messages": []}, "text"])
def test_bodies_without_a_prompt_are_left_out(nothing: object) -> None:
    assert compare_prompts([("a", prompt_text(nothing)), ("b", prompt_text(body("x")))]) == ()


def test_equal_prompts_and_all_beyond_ten_pairs_are_left_out() -> None:
    assert compare_prompts([("a", b"same text"), ("b", b"same text")]) == ()
    assert len(compare_prompts([(str(n), str(n).encode() * 50) for n in range(40)])) == 10


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_lengths_fit_into_the_texts(one: bytes, other: bytes) -> None:
    for found in compare_prompts([("a", one), ("b", other)]):
        assert 0 <= found.shared <= found.length
        assert found.shared + found.rest <= max(len(one), len(other))
        assert one[: found.shared] == other[: found.shared]


@given(st.binary(min_size=40, max_size=400), st.binary(min_size=1, max_size=60), st.binary(min_size=1, max_size=60))
def test_a_long_common_rest_is_found(rest: bytes, one: bytes, other: bytes) -> None:
    for found in compare_prompts([("a", one + rest), ("b", other + rest)]):
        assert found.shared + found.rest + found.changed >= 32


def test_no_text_is_kept(tmp_path: Path) -> None:
    for name, head in (("request-1", "secret-one "), ("request-2", "secret-two ")):
        (tmp_path / f"{name}.json").write_text(json.dumps(body(head)))
    situation = load_folder(tmp_path)
    assert len(situation.prompt_pairs) == 1
    assert b"secret" not in msgspec.json.encode(situation.prompt_pairs)
    assert b"coding agent" not in msgspec.json.encode(situation)


def test_lists_of_requests() -> None:
    found = read_reuse([{"turn": 1, "prompt_tokens": 9, "cached_tokens": 4}, {"note": "no tokens"}], "requests.json")
    assert [(reuse.turn, reuse.cached) for reuse in found] == [(1, 4)]
    with pytest.raises(ValueError, match="no request"):
        read_reuse([{"note": "no tokens"}], "requests.json")


def test_adapters() -> None:
    data = {"max_loras_per_batch": 2, "loaded": ["a", "b"], "requested_last_5m": ["a", "b", "c", "c"]}
    assert facts.read_adapters(data, "x.json") == [AdapterUse("x.json", 2, 3)]
    for wrong in ({"loaded": ["a"]}, {"max_loras": 4}, {"max_loras": True, "loaded": []}, 7):
        with pytest.raises(ValueError, match=r"adapter|object"):
            facts.read_adapters(wrong, "x.json")
