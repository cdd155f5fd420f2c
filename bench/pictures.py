"""`python -m bench.pictures`: makes the pictures in docs/images, of invented sessions.

They are the page, light and dark, and two terminals with a collision. `sources.json` there has a
checksum of the sources of each picture of the page. This needs a Chromium: the machine's own, or
one from `playwright install chromium`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, meta
from playwright.sync_api import Browser, sync_playwright

from session_memory.extras.page.jinja import TEMPLATES
from session_memory.extras.page.pages import VIEWS

from .browser import launched
from .command import run
from .invented import write_home
from .open_sessions import noted_process
from .scenes import REPOSITORY
from .scratch import scratch_directory
from .terminals import drawn, scene

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from session_memory.cli import main; sys.exit(main())",
]
PICTURES = {"page-light.png": ("", "light"), "page-dark.png": ("/timeline?span=week", "dark")}
WIDTH, HEIGHT = 1200, 760
HOUR = 16
COLLISION = "collision.svg"
SOURCES = "sources.json"
SHELL = ("base.html", "list.html")  # what surrounds each view


def main(out: Path = REPOSITORY / "docs" / "images") -> None:
    out.mkdir(parents=True, exist_ok=True)
    # where it is that hour now: at night little happens
    os.environ["TZ"] = f"<here>{time.gmtime().tm_hour - HOUR:+d}"
    time.tzset()
    with scratch_directory() as home:
        (out / COLLISION).write_text(drawn(scene(home)))
        print(out / COLLISION)
    with scratch_directory() as home, sync_playwright() as playwright:
        at_work, waiting = write_home(home, time.time())
        browser = launched(playwright)
        claude = home / ".claude"
        with (
            noted_process(claude, at_work, "busy"),
            noted_process(claude, waiting, "idle"),
            served(home) as link,
        ):
            for file, (path, theme) in PICTURES.items():
                take(browser, link, path, theme, out / file)
                print(out / file)
        browser.close()
    (out / SOURCES).write_text(
        json.dumps({file: checksum(path) for file, (path, _) in PICTURES.items()}, indent=2) + "\n"
    )
    print(out / SOURCES)


def checksum(path: str) -> str:
    """Return a SHA-256, in hex, of the sources of the view at `path`."""
    digest = hashlib.sha256()
    for file in sources(path):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def sources(path: str) -> list[Path]:
    """Return the files that determine the look of the view at `path`.

    They are templates, its module, styles, scripts and sessions."""
    view = next(view for view in VIEWS if view.path == (path.partition("?")[0] or "/"))
    module = Path(sys.modules[view.values.__module__].__file__ or "")
    static = [
        file for file in (TEMPLATES.parent / "static").iterdir() if file.suffix in {".css", ".js"}
    ]
    invented = [REPOSITORY / "bench" / name for name in ("invented.py", "invented.yaml")]
    return sorted({*used_templates({f"{view.name}.html", *SHELL}), module, *static, *invented})


def used_templates(names: set[str]) -> set[Path]:
    """Return the paths of templates and of all that they extend, include or import."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    waiting, used = [*names], set(names)
    while waiting:
        text = (TEMPLATES / waiting.pop()).read_text()
        new = {
            name for name in meta.find_referenced_templates(environment.parse(text)) if name
        } - used
        waiting += new
        used |= new
    return {TEMPLATES / name for name in used}


@contextmanager
def served(home: Path, *words: str) -> Iterator[str]:
    """Yield the link to the page of a home's person, after everything was ingested."""
    environment = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": os.environ.get("TZ", "UTC"),
    }
    subprocess.run([*COMMAND, "ingest"], env=environment, cwd=home, check=True, capture_output=True)
    page = subprocess.Popen(
        [*COMMAND, "page", "--no-browser", *words],
        env=environment,
        cwd=home,
        text=True,
        stdout=subprocess.PIPE,
    )
    try:
        assert page.stdout
        address = re.search(r"http://\S+", page.stdout.readline())
        assert address, "the page does not say where it is"
        yield address[0]
    finally:
        page.send_signal(signal.SIGINT)
        page.wait()


def take(browser: Browser, link: str, path: str, theme: str, file: Path) -> None:
    """Take a picture of the page at `path`, once nothing is loading."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme="dark" if theme == "dark" else "light",
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
