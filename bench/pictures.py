"""`python -m bench.pictures`: the pictures in docs/images, of invented sessions: the page, light and dark, and two
terminals with a collision.

Needs Chromium: the one that is there, else the one that `playwright install chromium` brings.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from .browser import launched
from .command import run
from .invented import write_home
from .scenes import REPOSITORY
from .scratch import scratch_directory
from .terminals import drawn, scene

COMMAND = [sys.executable, "-c", "import sys; from session_memory.cli import main; sys.exit(main())"]
PICTURES = {"page-light.png": ("", "light"), "page-dark.png": ("/timeline?span=week", "dark")}
WIDTH, HEIGHT = 1200, 760
HOUR = 16
COLLISION = "collision.svg"


def main(out: Path = REPOSITORY / "docs" / "images") -> None:
    out.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = f"<here>{time.gmtime().tm_hour - HOUR:+d}"  # where it is that hour now: at night little happens
    time.tzset()
    with scratch_directory() as home:
        (out / COLLISION).write_text(drawn(scene(home)))
        print(out / COLLISION)
    with scratch_directory() as home, sync_playwright() as playwright:
        write_home(home, time.time())
        browser = launched(playwright)
        with served(home) as link:
            for file, (path, theme) in PICTURES.items():
                take(browser, link, path, theme, out / file)
                print(out / file)
        browser.close()


@contextmanager
def served(home: Path, *words: str) -> Iterator[str]:
    """The page of the person whose home this is, with all of it taken in: the link that opens it."""
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": os.environ.get("TZ", "UTC")}
    subprocess.run([*COMMAND, "ingest"], env=environment, cwd=home, check=True, capture_output=True)
    page = subprocess.Popen(
        [*COMMAND, "page", "--no-browser", *words], env=environment, cwd=home, text=True, stdout=subprocess.PIPE
    )
    try:
        assert page.stdout
        found = re.search(r"http://\S+", page.stdout.readline())
        assert found, "the page does not say where it is"
        yield found[0]
    finally:
        page.send_signal(signal.SIGINT)
        page.wait()


def take(browser: Browser, link: str, path: str, theme: str, file: Path) -> None:
    """Takes a picture of what lies at `path`, as soon as nothing is waited for."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark" if theme == "dark" else "light"
    )
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("#main h1")
    page.goto(link.rpartition("/enter")[0] + (path or "/"))
    page.wait_for_selector("#list a")
    page.wait_for_timeout(500)
    page.screenshot(path=str(file))
    context.close()


if __name__ == "__main__":
    run(main)
