"""The chart that `python -m bench.scale --svg FILE` draws."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from bench.chart import Line, as_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_every_line_is_drawn_with_its_title_and_its_last_value():
    lines = [Line("import", [(100, 1.0), (1000, 1.1), (4000, 1.2)]), Line("search & more", [(100, 1.0), (4000, 3.0)])]
    drawn = ElementTree.fromstring(as_svg("Cost", "MB", lines))
    assert len(drawn.findall(f"{SVG}polyline")) == 2
    texts = [text.text for text in drawn.findall(f"{SVG}text")]
    assert {"Cost", "MB", "100", "1,000", "4,000", "import: 1.20 x", "search & more: 3.00 x"} <= set(texts)


def test_labels_do_not_lie_on_each_other():
    lines = [Line(f"line {number}", [(1, 1.0), (10, 1.0)]) for number in range(4)]
    drawn = ElementTree.fromstring(as_svg("Cost", "MB", lines))
    heights = sorted(
        float(text.get("y", "")) for text in drawn.findall(f"{SVG}text") if (text.text or "").startswith("line")
    )
    assert all(lower - upper >= 12 for upper, lower in pairwise(heights))


def test_one_size_alone_can_be_drawn():
    drawn = ElementTree.fromstring(as_svg("Cost", "MB", [Line("import", [(100, 1.0)])]))
    assert "100" in [text.text for text in drawn.iter(f"{SVG}text")]
