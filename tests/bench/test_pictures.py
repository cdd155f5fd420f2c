"""The pictures of the README, which a command makes of invented sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from bench.pictures import PICTURES, SOURCES, checksum, sources
from bench.terminals import THEN, drawn, scene

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_pictures_are_made_and_stand_in_the_readme(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.pictures", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    readme = (ROOT / "README.md").read_text()
    assert set(made) == {"collision.svg", "page-light.png", "page-dark.png", SOURCES}
    for name, picture in made.items():
        if name.endswith(".png"):
            assert picture.startswith(b"\x89PNG")
            assert int.from_bytes(picture[16:20], "big") == 1200
        assert name == SOURCES or f"](docs/images/{name})" in readme
        assert (ROOT / "docs" / "images" / name).is_file()


def test_no_picture_of_the_page_is_older_than_the_view_that_it_shows() -> None:
    taken = json.loads((ROOT / "docs/images" / SOURCES).read_text())
    old = [file for file, (path, _) in PICTURES.items() if taken[file] != checksum(path)]
    assert old == [], "python -m bench.pictures takes them anew"


def test_the_sources_of_a_picture_are_all_files_that_decide_how_the_view_looks() -> None:
    names = {file.name for file in sources("")}
    assert {
        "now.html",
        "base.html",
        "list.html",
        "sessions.py",
        "page.css",
        "invented.yaml",
    } <= names
    assert not {"costs.html", "timeline.py"} & names


def test_the_terminals_show_what_the_hook_says_now(tmp_path: Path) -> None:
    lines = scene(tmp_path)
    shown = " ".join(" ".join(line.text for line in lines).split())
    assert (
        '! src/cart.ts: edited 3m ago by "Let people choose a time" (Codex), after you read it'
        in shown
    )
    left = [line.text for line in lines if line.pane == 0]
    assert (
        left.index("> Now add a second slot.")
        < left.index(f"● {THEN}")
        < left.index("● Edited src/cart.ts")
    )
    picture = drawn(lines)
    assert picture == (ROOT / "docs/images/collision.svg").read_text(), (
        "python -m bench.pictures makes it anew"
    )
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "animation" not in picture
