"""A real Chromium for the tests of the page: the one that is there, else the one that Playwright has installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from page_scene import ServedPage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

MISSING = "there is no Chromium: install the system's package, or run `.venv/bin/python -m playwright install chromium`"
COLOURS = "color-contrast"  # the rule that takes longest
SIZES = {"desktop": (1400, 900), "tablet": (900, 1180), "phone": (400, 844)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser, for the tests of one module: while Playwright runs, so does a loop of asyncio, within which no other
    test can run one of its own. Skips where there is no browser."""
    from playwright.sync_api import Error, expect, sync_playwright

    from bench.browser import launched

    expect.set_options(timeout=20_000)  # of a machine that has other tests to run
    with sync_playwright() as playwright:
        try:
            found = launched(playwright)
        except Error:
            pytest.skip(MISSING)
        yield found
        found.close()


def visit(browser: Browser, page: ServedPage, path: str = "/") -> Page:
    """A tab that has come by the page's link, and shows `path`. What goes wrong in it is in its `faults`."""
    from playwright.sync_api import expect

    width, height = SIZES["desktop"]
    context: BrowserContext = browser.new_context(viewport={"width": width, "height": height})
    tab = context.new_page()
    tab.faults = []  # type: ignore[attr-defined]
    tab.on("pageerror", lambda error: tab.faults.append(str(error)))  # type: ignore[attr-defined]
    tab.on("console", lambda line: tab.faults.append(line.text) if line.type == "error" else None)  # type: ignore[attr-defined]
    tab.on("dialog", lambda dialog: tab.faults.append(dialog.message))  # type: ignore[attr-defined]
    tab.on("request", lambda asked: _note_foreign(tab, page, asked.url))
    tab.goto(page.link)
    tab.wait_for_url(f"http://{page.host}{page.root}/")
    tab.goto(f"http://{page.host}{page.root}{path}")
    expect(tab.locator("main")).not_to_be_empty()
    return tab


def violations(page: Page, *, colours: bool = True, all_else: bool = True) -> list[str]:
    """What axe-core finds, by the rule for colours and by all others."""
    from axe_playwright_python.base import AXE_FILE_PATH

    page.evaluate(AXE_FILE_PATH.read_text())
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if not all_else:
        options["runOnly"] = [COLOURS]
    elif not colours:
        options["rules"] = {COLOURS: {"enabled": False}}
    found = page.evaluate("options => axe.run(document, options)", options)
    return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]


def _note_foreign(tab: Page, page: ServedPage, address: str) -> None:
    if not address.startswith((f"http://{page.host}{page.root}/", "data:")):
        tab.faults.append(f"asked for {address}")  # type: ignore[attr-defined]
