"""A real Chromium that opens the page: the machine's own, else Playwright's."""

from __future__ import annotations

import os
import shutil

from playwright.sync_api import Browser, Playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def launched(playwright: Playwright) -> Browser:
    """A browser. Raises playwright's Error where there is none."""
    browser_path = next(filter(None, map(shutil.which, NAMES)), None)
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # whom Chromium's sandbox refuses
    return playwright.chromium.launch(
        executable_path=browser_path, args=["--no-sandbox"] if is_root else []
    )
