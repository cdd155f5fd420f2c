"""The pictures of the README, which a command makes of invented sessions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]


def test_the_pictures_are_made_and_stand_in_the_readme(browser: Browser, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.pictures", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    readme = (ROOT / "README.md").read_text()
    assert set(made) == {"prompt.png", "page-light.png", "page-dark.png"}
    for name, picture in made.items():
        assert picture.startswith(b"\x89PNG")
        assert int.from_bytes(picture[16:20], "big") == 1200
        assert f"](docs/images/{name})" in readme
        assert (ROOT / "docs" / "images" / name).is_file()
