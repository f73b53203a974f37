"""The picture of the screen in the README: python -m tests.tui.picture writes it."""

import asyncio
import re
from pathlib import Path
from xml.etree import ElementTree

from tests.tui import factory
from tests.tui.screen import make_app

PICTURE = Path(__file__).parents[2] / "docs" / "screen.svg"
SIZE = (110, 30)

_TEXT = "{http://www.w3.org/2000/svg}text"


async def draw() -> str:
    """The overview of the queueing observation as SVG, exported by the app itself."""
    app = make_app(factory.FakeFeed(factory.queueing()))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        svg = app.export_screenshot(title="triage")
    # The exporter names a web font's address; the picture must not make anybody's browser fetch one.
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)
    return re.sub(r"[ \t]+\n", "\n", svg)


def texts(svg: str) -> list[str]:
    """The lines of text in the picture, top to bottom; ids and colours, which may differ, left out."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for element in ElementTree.fromstring(svg).iter(_TEXT):
        place, row = float(element.get("x", 0)), float(element.get("y", 0))
        rows.setdefault(row, []).append((place, "".join(element.itertext())))
    joined = ("".join(text for _, text in sorted(row)) for _, row in sorted(rows.items()))
    return [" ".join(line.replace("\xa0", " ").split()) for line in joined]


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(asyncio.run(draw()), encoding="utf-8")
