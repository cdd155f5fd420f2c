"""The messages of a test run: its size and duration, progress, failures, and the slowest tests.

The duration of each file is stored in pytest's cache; for a file that never ran, it is guessed.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import Any

import pytest

from session_memory.common.text.format import counted

EVERY_SECONDS = 30
GUESSED_SECONDS = 0.3  # a test
LISTED = 25  # tests that took longest
LEAST_SECONDS = 2  # of a test that is listed
_CACHE_KEY = "session-memory/seconds"


def pytest_configure(config: pytest.Config) -> None:
    """Registers `Progress` in the process that prints, which with xdist is not the one that runs tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


class Progress:
    """One run. `_left` has for each file how many of its tests have not ended yet, `_took` the
    seconds of those that have, `_tests` the seconds of each test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left: Counter[str] = Counter()
        self._took: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, float] = defaultdict(float)
        self._count: dict[str, int] = {}
        self._total = self._done = self._failed = 0
        self._began = self._said = time.monotonic()
        cache = getattr(config, "cache", None)  # none with -p no:cacheprovider
        known = cache.get(_CACHE_KEY, {}) if cache else {}
        self._known: dict[str, list[float]] = known if isinstance(known, dict) else {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """The tests are known, where this process runs them."""
        if session.items:
            self._begin([item.nodeid for item in session.items], 1)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """They are known to one of the processes that run them: all of these have the same."""
        if not self._total:
            self._begin(ids, len(self._config.option.tx))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A part of a test is over: names it if it failed, and now and then says how far the run is."""
        file = report.nodeid.partition("::")[0]
        self._took[file] += report.duration
        self._tests[report.nodeid] += report.duration
        if report.failed:
            self._failed += 1
            self._line(
                f"FAILED {report.nodeid} ({report.when}, {report.duration:.1f} s): {_reason(report)}"
            )
        if report.when == "teardown":
            self._done += 1
            self._left[file] -= 1
        if time.monotonic() - self._said > EVERY_SECONDS:
            took = _minutes(time.monotonic() - self._began)
            self._line(f"{self._done:,} of {self._total:,} tests, {self._failed} failed, {took}")

    def pytest_sessionfinish(self) -> None:
        """Keeps how long those files took that were run to their end."""
        for file, left in self._left.items():
            if not left:
                self._known[file] = [self._count[file], round(self._took[file], 2)]
        cache = getattr(self._config, "cache", None)
        if cache and self._took:
            cache.set(_CACHE_KEY, self._known)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List the tests that took longest, with what they set up, so that a slow one is seen."""
        longest = sorted(self._tests.items(), key=lambda item: -item[1])[:LISTED]
        slow = [(name, seconds) for name, seconds in longest if seconds >= LEAST_SECONDS]
        if not slow:
            return
        took, whole = sum(seconds for _, seconds in slow), sum(self._tests.values())
        terminalreporter.section(
            f"the slowest {len(slow)} of {counted(self._done, 'test')}: {took:.0f} of {whole:.0f} s"
        )
        for name, seconds in slow:
            terminalreporter.write_line(f"{seconds:6.1f} s {name}")

    def _begin(self, ids: list[str], processes: int) -> None:
        self._left = Counter(id.partition("::")[0] for id in ids)
        self._count = dict(self._left)
        self._total = len(ids)
        seconds, guessed = 0.0, 0
        for file, number in self._left.items():
            tests, took = self._known.get(file, [0, 0.0])
            seconds += took / tests * number if tests else GUESSED_SECONDS * number
            guessed += 0 if tests else number
        by = f", by {processes} processes" if processes > 1 else ""
        guess = f" (a guess for {guessed:,} that were not run here yet)" if guessed else ""
        expected = _minutes(seconds / processes)
        self._line(
            f"{counted(self._total, 'test')} in {counted(len(self._left), 'file')}{by}: about {expected}{guess}"
        )

    def _line(self, text: str) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.write_line(f"\n{text}" if self._done else text)  # behind the dots
        reporter.flush()
        self._said = time.monotonic()


def _reason(report: pytest.TestReport) -> str:
    """The last line of what went wrong that says it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longrepr).strip().splitlines()
    return lines[0][:200] if lines else ""


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
