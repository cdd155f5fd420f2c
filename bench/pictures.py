"""`python -m bench.pictures`: the pictures in docs/images, of invented sessions: the page, light and dark, and what a
prompt gets.

Needs Chromium: the one that is there, else the one that `playwright install chromium` brings.
"""

from __future__ import annotations

import html
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

from playwright.sync_api import Browser, sync_playwright

from .browser import launched
from .command import run
from .invented import write_home
from .scenes import REPOSITORY
from .scratch import scratch_directory

COMMAND = [sys.executable, "-c", "import sys; from session_memory.cli import main; sys.exit(main())"]
PICTURES = {"page-light.png": ("", "light"), "page-dark.png": ("/timeline?span=week", "dark")}
WIDTH, HEIGHT = 1200, 760
HOUR = 16
PROMPT = "prompt.png"
# Two agents at work on one checkout; %s is what the hook tells the second.
TERMINAL = """<!doctype html><style>
body {margin: 0; padding: 22px 28px; background: #16181d; color: #d8dbe2; font: 17px/1.5 "DejaVu Sans Mono", monospace}
p {margin: 0 0 12px; white-space: pre-wrap} i {color: #8b93a3; font-style: normal}
.told {border-left: 3px solid #4f8ff7; padding: 2px 0 2px 16px; margin: 0 0 12px 14px; color: #aec7f5; font-size: 15px}
b {color: #ff8f85; font-weight: normal}
</style><p><i>~/code/bakery-shop $</i> claude</p><p>&gt; Also offer Sunday morning</p><p class="told">%s</p>
<p>● Another session is changing src/cart.ts. I will look at its edit first.</p>"""


def main(out: Path = REPOSITORY / "docs" / "images") -> None:
    out.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = f"<here>{time.gmtime().tm_hour - HOUR:+d}"  # where it is that hour now: at night little happens
    time.tzset()
    with scratch_directory() as home, sync_playwright() as playwright:
        write_home(home, time.time())
        browser = launched(playwright)
        picture_prompt(browser, told(home), out / PROMPT)
        print(out / PROMPT)
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


def told(home: Path) -> str:
    """What the hook told the one session that was told something, as its transcript has it."""
    for transcript in (home / ".claude/projects").rglob("*.jsonl"):
        for line in transcript.read_text().splitlines():
            if "hook_additional_context" in line:
                return str(json.loads(line)["attachment"]["content"][0])
    raise AssertionError("no session was told anything")


def picture_prompt(browser: Browser, told: str, file: Path) -> None:
    """Takes a picture of a terminal in which a prompt gets what it is told."""
    lines = [f"<b>{line}</b>" if line.startswith("!") else line for line in html.escape(told).split("\n")]
    page = browser.new_page(viewport={"width": WIDTH, "height": 100})
    page.set_content(TERMINAL % "\n".join(lines))
    page.screenshot(path=str(file), full_page=True)
    page.close()


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
