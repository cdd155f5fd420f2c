"""The pictures of the README, which a command makes of invented sessions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from bench.terminals import drawn, scene

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_pictures_are_made_and_stand_in_the_readme(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.pictures", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    readme = (ROOT / "README.md").read_text()
    assert set(made) == {"collision.svg", "page-light.png", "page-dark.png"}
    for name, picture in made.items():
        if name.endswith(".png"):
            assert picture.startswith(b"\x89PNG")
            assert int.from_bytes(picture[16:20], "big") == 1200
        assert f"](docs/images/{name})" in readme
        assert (ROOT / "docs" / "images" / name).is_file()


def test_the_terminals_show_what_the_hook_says_now(tmp_path: Path) -> None:
    lines = scene(tmp_path)
    shown = " ".join(" ".join(line.text for line in lines).split())
    assert '! src/cart.ts: edited 3m ago by "Let people choose a time" (Codex), after you read it' in shown
    seconds = {line.text: line.second for line in lines}
    assert seconds["● Read src/cart.ts"] < seconds["● Edited src/cart.ts"] < seconds["> Now add a second slot."]
    picture = drawn(lines)
    assert picture == (ROOT / "docs/images/collision.svg").read_text(), "python -m bench.pictures makes it anew"
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "prefers-reduced-motion" in picture
