"""The picture in the README shows today's screen."""

from tests.tui.picture import PICTURE, draw, texts


async def test_the_picture_is_fresh() -> None:
    kept = texts(PICTURE.read_text(encoding="utf-8"))
    assert kept == texts(await draw()), "run: python -m tests.tui.picture"


async def test_the_picture_needs_nothing_from_elsewhere() -> None:
    svg = PICTURE.read_text(encoding="utf-8")
    assert "url(http" not in svg
    assert "@font-face" not in svg
    assert "<script" not in svg


async def test_the_export_carries_the_verdict() -> None:
    joined = "\n".join(texts(await draw()))
    assert "LIKELY queueing (sequence-limit)" in joined
    assert "vllm-7f9-abc" in joined
