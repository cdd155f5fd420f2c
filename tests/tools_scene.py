"""Input for tools: invented sessions, and sessions of an agent home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from records import NamedHome

from session_memory.app.tools.call import ToolResult, call
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.app.tools.values import (
    EVERYWHERE,
    ListedSession,
    SearchLimits,
    SearchResult,
)
from session_memory.history.patterns.errors import ErrorBlock
from session_memory.sessions.transcripts.entries import Entry

MONDAY = 1_790_000_000.0


class FakeAdministration:
    """The host of main's agent, which raises `fails` whatever it is asked."""

    group, is_main = "main", True

    def __init__(self, fails: Exception) -> None:
        self._fails = fails

    def __getattr__(self, name: str) -> Any:
        raise self._fails


class FakeBackend:
    """A backend with invented sessions; any call raises `fails`, also for a host."""

    def __init__(self, *sessions: ListedSession, fails: Exception | None = None) -> None:
        self._sessions = [*sessions]
        self._fails = fails
        self.administration = FakeAdministration(fails) if fails else None
        everyone = ("everyone", "graph", "team")
        self.audiences = (*everyone, "group", "main") if fails else ("everyone", "home")

    def sessions(self) -> list[ListedSession]:
        self._fail()
        return self._sessions

    def session_behind(self, word: str) -> None:
        self._fail()

    def search(
        self, query: str, limit: int, limits: SearchLimits = EVERYWHERE
    ) -> list[SearchResult]:
        self._fail()
        return []

    def errors(self, text: str, limit: int) -> list[ErrorBlock]:
        self._fail()
        return []

    def location(self) -> None:
        self._fail()

    def searched_location(self) -> None:
        self._fail()

    def remember(self, kind: str, text: str, quote: str) -> None:
        self._fail()

    def forget(self, id: str) -> None:
        self._fail()

    def clear(self, name: str) -> str:
        self._fail()
        return name

    def _fail(self) -> None:
        if self._fails:
            raise self._fails

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        return [Entry("user", f"said in {session.id}")], 0

    def ask(self, tool: str, /, **arguments: Any) -> ToolResult:
        return self.ask_with(tool, arguments)

    def ask_with(self, tool: str, arguments: object) -> ToolResult:
        return call(self, tool, arguments)  # type: ignore[arg-type]


class Home(NamedHome):
    """An agent home, and what the agent in its session `own` gets from a tool."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.own = ""

    def ask(self, tool: str, /, **arguments: Any) -> ToolResult:
        environ = {
            "CLAUDE_CONFIG_DIR": str(self.root / ".claude"),
            "SESSION_MEMORY_HOME": str(self.root),
        }
        if self.own:
            environ["CLAUDE_CODE_SESSION_ID"] = self.session_id(self.own)
        return call(HomeBackend(None, environ), tool, arguments)


def some_sessions(count: int) -> list[ListedSession]:
    return [
        ListedSession(f"id-{number}", f"session number {number}", f"id-{number}", MONDAY)
        for number in range(count)
    ]
