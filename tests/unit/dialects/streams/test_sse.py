"""The event-stream decoder against the rules of the format, and against any chunking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.dialects.streams.sse import LONGEST, SseDecoder, SseItem


def items(*chunks: bytes) -> list[SseItem]:
    decoder = SseDecoder()
    return [item for chunk in chunks for item in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end(end: bytes) -> None:
    lines = [b": t=1", b"event: delta", b"data: a", b"data:b", b"", b"data: c", b"", b""]
    assert items(end.join(lines)) == [
        SseItem("comment", "t=1"),
        SseItem("data", "a\nb", "delta"),
        SseItem("data", "c"),
    ]


def test_only_one_space_goes_and_an_event_name_holds_for_one_event() -> None:
    assert items(b"event: x\ndata:  two\n\ndata: one\n\n") == [SseItem("data", " two", "x"), SseItem("data", "one")]


def test_byte_order_mark_other_fields_and_fields_without_a_colon() -> None:
    assert items(b"\xef\xbb\xbfdata: a\nid: 7\nretry: 9\nnonsense\ndata\n\n") == [SseItem("data", "a\n")]


def test_an_event_without_data_is_none_and_empty_data_is_one() -> None:
    assert items(b"event: ping\n\ndata:\n\n") == [SseItem("data", "")]


def test_a_return_at_the_end_of_a_chunk_and_its_newline_are_one_line_end() -> None:
    assert items(b"data: a\r", b"\n\r", b"\ndata: b\n\n") == [SseItem("data", "a"), SseItem("data", "b")]


def test_a_line_end_split_over_chunks_does_not_end_the_event() -> None:
    assert items(b"data: a\r", b"\ndata: b\r\n\r\n") == [SseItem("data", "a\nb")]


def test_what_is_pending_at_the_end_is_given_as_cut() -> None:
    assert items(b'data: {"a"') == [SseItem("data", '{"a"', "", True)]
    assert items(b"data: a\n") == [SseItem("data", "a", "", True)]
    assert items(b"data: a\n\n") == [SseItem("data", "a")]


def test_newline_delimited_json_is_data() -> None:
    assert items(b'{"done":false}\n{"done":true}') == [
        SseItem("data", '{"done":false}'),
        SseItem("data", '{"done":true}', "", True),
    ]


def test_an_endless_line_is_cut_and_marked() -> None:
    (item,) = items(*[b"data: " + b"x" * LONGEST] + [b"x" * 65536] * 4 + [b"\n\n"])
    assert item.cut
    assert len(item.text) == LONGEST - len("data: ")


def test_an_event_of_endless_lines_is_cut_and_marked() -> None:
    decoder = SseDecoder()
    line = b"data: " + b"x" * 65530 + b"\n"
    for _ in range(100):
        assert decoder.feed(line) == []
    (item,) = decoder.feed(b"\n")
    assert item.cut
    assert len(item.text) <= LONGEST + 100


def test_the_name_of_an_event_does_not_leak_into_the_next_after_a_cut() -> None:
    assert items(b"event: a\n\ndata: b\n\n") == [SseItem("data", "b")]


_BYTES = st.lists(
    st.sampled_from(
        [b"data: ", b"data:", b"event: e", b":", b"{", b"x", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xe2", b"\x82"]
    ),
    max_size=60,
).map(b"".join)


@given(body=_BYTES | st.binary(max_size=200), cuts=st.lists(st.integers(0, 200), max_size=12))
def test_any_chunking_gives_the_same_items(body: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(body)) for cut in cuts})
    chunks = [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
    assert items(*chunks) == items(body)
