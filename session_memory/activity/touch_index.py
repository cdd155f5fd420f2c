"""Which files the other sessions of a session touched since its last prompt, and when: kept between its tool calls.

It only says where something may be found: what is told is read again from the transcripts, by the rules as they are
then. Any number of calls may read and replace the file at once, without a lock: whichever is last, what it holds of a
session goes with the cursor that it holds.
"""

from __future__ import annotations

from ..system.files import os, read_whole, replace, write_private
from ..system.json import sealed, unsealed
from .changes import changed_sessions
from .cursor_file import are_cursors, is_whole
from .touches import EDIT, GIT, LOOKS, REMOVE, touches_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..runtimes import Runtime
    from ..transcripts.cursor import Cursor
    from ..transcripts.entries import Session
    from .changes import OwnSession
    from .touches import Touch
    from .unseen import Budget, Unseen

MOST_PATHS = 1000  # of one session


class TouchIndex:
    """The file of one session: of each other one the cursor, and by path the time of its last edit there; under GIT
    that of its last git command. What sub-agents did their session did."""

    def __init__(self, cursor_file: str, told: Mapping[str, Cursor], suffix: str = ".touched") -> None:
        """`told` are the cursors of the last prompt: what lies before them is not needed, unless there are none."""
        self.path = cursor_file.removesuffix(".json") + suffix
        self.cursors: dict[str, Cursor] = {}
        self.touched: dict[str, dict[str, float]] = {}  # of the sessions that did something since the last prompt
        self.sub_agents: dict[str, int] = {}
        try:
            self._load(unsealed(read_whole(self.path)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        for key, cursor in told.items():
            if is_whole(cursor) and "tail" in cursor:
                self._take_cursor(key, cursor)

    def read_on(
        self, own: OwnSession, sessions: list[Session], now: float, oldest: float, budget: Budget | None = None
    ) -> None:  # fmt: skip
        """Read what the sessions, which are other ones than `own`, did since, those without a cursor since `oldest`, as
        far as the `budget` goes. Raises OSError if the file cannot be written."""
        changed = changed_sessions(sessions, self.cursors, oldest, own.deadline)
        if changed:
            from .unseen import Budget, read_changed

            of_all = (own.runtime, now, oldest, len(changed), own.deadline, budget or Budget())
            read, _ = read_changed(changed, self.cursors, *of_all)
            own.deadline.attempt_each(read, self._take_unseen, lambda unseen: unseen.session.path)
        has_more = bool(changed)
        for session in sessions:
            sub_agents = own.sub_agents_of(session) if session.key in self.touched else []
            if sub_agents:
                asked = (session.key, sub_agents, own.runtime_of(session), oldest)
                has_more = bool(own.deadline.attempt(session.path, self._read_sub_agents, *asked)) or has_more
        if has_more:
            self._write({session.key for session in sessions})

    def last_edit(self, key: str, path: str) -> float:
        """When a session last edited or removed what lies at `path`, or a directory that it is in; 0 for never."""
        found = self.touched.get(key)
        times = [0.0]
        while found and path:
            times.append(found.get(path, 0.0))
            path = path.rpartition("/")[0]
        return max(times)

    def last_git(self, key: str) -> float:
        """When a session last ran a git command that may change something; 0 for never."""
        return self.touched.get(key, {}).get(GIT, 0.0)

    def is_behind(self, key: str) -> bool:
        """Check if a session did more than was read."""
        return "unread" in self.cursors.get(key, {"unread": ()})

    def _take_cursor(self, key: str, cursor: Cursor) -> None:
        """Takes the cursor of a prompt where that has read further, and forgets what it has read."""
        seen = cursor.get("seen", 0)
        # What a prompt left unread is older than what it has seen.
        behind = 0 if "unread" in cursor else seen
        found = {path: time for path, time in self.touched.pop(key, {}).items() if time > behind}
        if self.cursors.get(key, {}).get("seen", -1) < seen:
            self.cursors[key] = cursor
            if found:
                self.touched[key] = found
        elif key in self.cursors:
            self.touched[key] = found

    def _read_sub_agents(self, key: str, transcripts: list[str], runtime: Runtime, oldest: float) -> bool:
        from .sub_agents import sub_agent_touches

        before = dict(self.sub_agents)
        touches = sub_agent_touches(transcripts, runtime, self.sub_agents, oldest, lambda command: True)
        self._take(key, touches)
        return before != self.sub_agents

    def _take_unseen(self, unseen: Unseen) -> None:
        """Take what is new in a session, and its cursor."""
        root = unseen.session.team_root
        if root:
            from .team_collisions import touches_elsewhere

            self._take(unseen.session.key, touches_elsewhere(unseen.entries, root))
        else:
            self._take(unseen.session.key, touches_of(unseen.entries, lambda command: True))
        self.cursors[unseen.session.key] = unseen.cursor

    def _take(self, key: str, touches: list[Touch]) -> None:
        found = self.touched.setdefault(key, {})
        for touch in touches:
            is_git = touch.kind == GIT and bool(touch.words) and touch.words[0] not in LOOKS
            path = touch.path if touch.kind in (EDIT, REMOVE) else GIT if is_git else ""
            if path:
                found[path] = max(touch.time, found.pop(path, 0.0))

    def _write(self, keys: set[str]) -> None:
        """Replaces the file, with what is known of the sessions with these keys beyond what prompts know."""
        from _thread import get_ident

        keys &= self.touched.keys()
        content = {
            "cursors": {key: cursor for key, cursor in self.cursors.items() if key in keys},
            "touched": {
                key: dict(list(found.items())[-MOST_PATHS:]) for key, found in self.touched.items() if key in keys
            },
            "sub_agents": dict(list(self.sub_agents.items())[-MOST_PATHS:]),
        }
        temporary = f"{self.path}.{os.getpid()}-{get_ident()}.tmp"
        write_private(temporary, sealed(content))
        replace(temporary, self.path)

    def _load(self, content: dict[str, dict[str, Any]]) -> None:
        if are_cursors(content["cursors"]) and all(map(is_whole, content["cursors"].values())):
            self.touched = {key: dict(found) for key, found in content["touched"].items()}
            self.sub_agents = {str(path): int(offset) for path, offset in content["sub_agents"].items()}
            self.cursors = content["cursors"]
