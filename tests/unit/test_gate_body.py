"""Bodies within bounds, in any chunking."""

import gzip
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.gate.body import Body, CutError, EncodingError, TooLargeError

LIMIT = 4096


def read(body: Body, content: bytes, cuts: list[int]) -> bytes:
    places = sorted({min(cut, len(content)) for cut in cuts} | {0, len(content)})
    parts = [body.feed(content[a:b]) for a, b in pairwise(places)]
    body.finish()
    return b"".join(parts)


@given(st.binary(max_size=3000), st.lists(st.integers(0, 3000), max_size=8), st.booleans(), st.booleans())
def test_the_chunking_does_not_matter(content: bytes, cuts: list[int], packed: bool, members: bool) -> None:
    wire = content
    if packed:
        wire = gzip.compress(content[:700]) + gzip.compress(content[700:]) if members else gzip.compress(content)
    assert read(Body("gzip" if packed else "", LIMIT), wire, cuts) == content


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_garbage_that_says_gzip_is_a_known_error_or_empty(content: bytes, cuts: list[int]) -> None:
    try:
        read(Body("gzip", LIMIT), content, cuts)
    except (EncodingError, CutError, TooLargeError):
        return
    assert not content or content.startswith(b"\x1f\x8b")


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1])
@pytest.mark.parametrize("packed", [True, False])
def test_the_bound_is_the_bound(size: int, packed: bool) -> None:
    content = bytes(size)
    body = Body("gzip" if packed else "identity", LIMIT)
    wire = gzip.compress(content) if packed else content
    if size <= LIMIT:
        assert read(body, wire, [10]) == content
    else:
        with pytest.raises(TooLargeError, match="4 KiB"):
            read(body, wire, [10])


def test_a_bomb_is_not_unpacked_beyond_the_bound() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    body = Body("gzip", 2 * len(bomb))
    tracemalloc.start()
    with pytest.raises(TooLargeError, match="decompressed"):
        body.feed(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, br", "\x1b[31m"])
def test_other_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(EncodingError):
        Body(encoding, LIMIT)


def test_a_cut_stream_is_noticed() -> None:
    body = Body("gzip", LIMIT)
    body.feed(gzip.compress(b"x" * 1000)[:-9])
    with pytest.raises(CutError):
        body.finish()
