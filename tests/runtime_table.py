"""A table at the end of a test run: what was shown to work, on which real runtime.

A test says so itself, right behind the assertion that shows it: `shown("Codex, plugin", "hook
fires")`. Registered in conftest.py, since with xdist the tests' own process is not the one that
prints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

COLUMNS = ("hook fires", "skill listed", "install", "update", "uninstall leaves no trace")
_PROPERTY = "runtime table"

Shown = Callable[[str, str], None]


@pytest.fixture
def shown(request: pytest.FixtureRequest) -> Shown:
    """Notes for the table that a runtime has been seen to do what a column says."""

    def note(runtime: str, column: str) -> None:
        assert column in COLUMNS
        request.node.user_properties.append((_PROPERTY, [runtime, column]))

    return note


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the table, if any test had something to say."""
    rows: dict[str, set[str]] = {}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in getattr(report, "user_properties", ()):
            if name == _PROPERTY:
                rows.setdefault(value[0], set()).add(value[1])
    if not rows:
        return
    width = max(map(len, rows))
    terminalreporter.section("seen on real runtimes")
    terminalreporter.line(" | ".join(["runtime".ljust(width), *COLUMNS]))
    for runtime, seen in sorted(rows.items()):
        cells = [("yes" if column in seen else "-").ljust(len(column)) for column in COLUMNS]
        terminalreporter.line(" | ".join([runtime.ljust(width), *cells]))
