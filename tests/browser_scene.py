"""A real Chromium for the tests of the page: the machine's own, else Playwright's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from page_scene import ServedPage
    from playwright.sync_api import Browser, Page

MISSING = "there is no Chromium: install the system's package, or run `.venv/bin/python -m playwright install chromium`"
COLOURS = "color-contrast"  # the rule that takes longest
SIZES = {"desktop": (1400, 900), "tablet": (900, 1180), "phone": (400, 844)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser, for the tests of one module: while Playwright runs, so does a loop of asyncio,
    within which no other test can run one of its own. Skips where there is no browser."""
    from playwright.sync_api import expect, sync_playwright

    from bench.browser import launched

    expect.set_options(timeout=20_000)  # of a machine that has other tests to run
    with sync_playwright() as playwright:
        try:
            found = launched(playwright)
        # a plain one where the Node that Playwright brings lacks a library
        except Exception as error:
            pytest.skip(
                f"{MISSING} ({str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__})"
            )
        yield found
        found.close()


class Visitor:
    """A person at a browser with one tab: a new one takes as long as five views. `faults` has what
    went wrong in it."""

    def __init__(self, browser: Browser) -> None:
        self.tab = tab = browser.new_context().new_page()
        self.faults: list[str] = []
        self._root = ""
        tab.on("pageerror", lambda error: self.faults.append(str(error)))
        tab.on(
            "console", lambda line: self.faults.append(line.text) if line.type == "error" else None
        )
        tab.on("dialog", lambda dialog: self.faults.append(dialog.message))
        tab.on("request", lambda asked: self._note_foreign(asked.url))

    def enter(self, page: ServedPage) -> Page:
        """Come by the page's link."""
        self._root = f"http://{page.host}{page.root}/"
        self.tab.goto(page.link)
        return self.tab

    def visit(self, page: ServedPage, path: str = "/") -> Page:
        """Go to `path`, as somebody who has come by the link before."""
        from playwright.sync_api import expect

        self._root = f"http://{page.host}{page.root}/"
        name, _, value = page.cookie.partition("=")
        self.tab.context.add_cookies([{"name": name, "value": value, "url": self._root}])
        self.tab.goto(self._root + path.removeprefix("/"))
        expect(self.tab.locator("main")).not_to_be_empty()
        return self.tab

    def begin(self) -> None:
        """Forget the last test."""
        width, height = SIZES["desktop"]
        if self._root and self.tab.url.startswith(self._root):
            self.tab.evaluate("localStorage.clear()")
        self.tab.unroute_all()
        self.tab.context.clear_cookies()
        self.tab.goto("about:blank")
        self.tab.set_viewport_size({"width": width, "height": height})
        self.tab.emulate_media(color_scheme="light")
        self._root = ""
        self.faults.clear()

    def _note_foreign(self, address: str) -> None:
        if not address.startswith((self._root or "about:", "data:")):
            self.faults.append(f"asked for {address}")


@pytest.fixture(scope="module")
def only_visitor(browser: Browser) -> Iterator[Visitor]:
    visitor = Visitor(browser)
    yield visitor
    visitor.tab.context.close()


@pytest.fixture
def visitor(only_visitor: Visitor) -> Iterator[Visitor]:
    """A visitor who has seen nothing yet. Whatever goes wrong in the browser fails the test."""
    only_visitor.begin()
    yield only_visitor
    assert only_visitor.faults == []


def violations(page: Page, *, colours: bool = True, all_else: bool = True) -> list[str]:
    """What axe-core finds, by the rule for colours and by all others."""
    from axe_playwright_python.base import AXE_FILE_PATH

    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_FILE_PATH.read_text())
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if not all_else:
        options["runOnly"] = [COLOURS]
    elif not colours:
        options["rules"] = {COLOURS: {"enabled": False}}
    found = page.evaluate("options => axe.run(document, options)", options)
    return [f"{one['id']}: {node['html']}" for one in found["violations"] for node in one["nodes"]]
