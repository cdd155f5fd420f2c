"""Sessions as `agents` and the page's Now show them: what each works on, its state, and what
endangers it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ..awareness.activity.actions import EDIT, READ
from ..awareness.activity.collisions.facts import IDLE_SECONDS
from ..awareness.activity.report import SessionSummary, summarize
from ..awareness.events.delivery_state import DeliveryState
from ..common.errors import described
from ..common.system.files import user_dir
from ..common.system.git import find_worktree, head_of
from ..common.text.format import one_line, shorten, shorten_both
from ..common.text.paths import relative
from ..common.text.sanitize import for_people
from ..sessions.states import State
from ..sessions.transcripts.entries import Entry
from ..sessions.transcripts.reader import is_request, is_title_of
from .labels import project_of, quoted
from .session_counts import NIGHT_HOURS as NIGHT_HOURS
from .session_counts import active_since as active_since

ENTRIES = 60  # of each transcript, from its end
REQUEST_CHARACTERS = 300
WORDS_CHARACTERS = 500
TITLE_CHARACTERS = 40
PLACE_CHARACTERS = 30
PATH_CHARACTERS = 30
COMMAND_CHARACTERS = 40
FILES = 8
COLLISION = "! "  # begins the lines about a collision: see awareness/activity/collisions/_lines.py
# rewritten for a person
_TO_THE_SESSION = re.compile(r"(, (?:before|after|which)) you ")


class LastUpdate(NamedTuple):
    """The update at a session's last prompt.

    It has its time, its exact text, and whether it arrived (None: unknown). The text is
    '' if it `is_withheld`, because it may contain something hidden by now."""

    at: float
    text: str
    has_arrived: bool | None
    is_withheld: bool = False


class ActiveSession(NamedTuple):
    """A session of today.

    `files` are its last edits, `collisions` the lines about collisions that it has not been told.
    `hands` has the files that it read or edited lately: the path, `edited` or `read`, and the time.
    `waiting` is the exact text that its next prompt gets, `problem` the reason if that is unknown.
    `worktree` is the name of its worktree's directory. A session of the team has `who`, as in
    ann@laptop, and the time at which that machine last pushed. `later_request` is its last request
    if its name is the first one."""

    id: str
    name: str
    runtime: str
    project: str
    cwd: str
    last_at: float
    branch: str = ""
    request: str = ""
    words: str = ""
    files: tuple[str, ...] = ()
    hands: tuple[tuple[str, str, float], ...] = ()
    update: LastUpdate | None = None
    waiting: str = ""
    collisions: tuple[str, ...] = ()
    problem: str = ""
    origin: str = ""
    state: State = State()
    worktree: str = ""
    who: str = ""
    pushed_at: float = 0.0
    later_request: str = ""

    @property
    def title(self) -> str:
        """The name, with the last request if the name is the first one."""
        return shorten_both(self.name, self.later_request, TITLE_CHARACTERS)

    @property
    def shown_request(self) -> str:
        """The last request; '' if it is the name."""
        return "" if is_title_of(self.name, self.request) else self.request

    @property
    def place(self) -> str:
        """The project, with the worktree and branch."""
        place = self.project or "-"
        if self.worktree and self.worktree not in (self.project, self.branch):
            place = f"{place}/{self.worktree}"
        if self.branch:
            place = f"{place} ({self.branch})"
        return shorten(one_line(place), PLACE_CHARACTERS)

    @property
    def doing(self) -> str:
        """The call that it asks for or runs, or its last edit; empty if nothing shows it."""
        state = self.state
        if state.names_call:
            argument = one_line(relative(for_people(state.argument), self.cwd))
            call = f"{state.tool}: {argument}" if argument else state.tool
            return shorten(call, COMMAND_CHARACTERS)
        if state.reason and (state.needs_user or self.who):
            return shorten(one_line(state.reason), COMMAND_CHARACTERS)
        if self.files:
            return f"edits {_tail(one_line(relative(self.files[0], self.cwd)))}"
        return ""

    def is_idle(self, now: float) -> bool:
        return not self.state.is_working and self.last_at < now - IDLE_SECONDS

    @classmethod
    def of_entries(
        cls, id: str, name: str, runtime: str, cwd: str, entries: list[Entry], last_at: float
    ) -> ActiveSession:
        """Return a session by its last entries, without its state."""
        summary = summarize(entries) or SessionSummary()
        request, words = _last_request(entries)
        branch, worktree = _branch_and_worktree(cwd)
        return cls(
            id,
            for_people(name),
            runtime,
            project_of(cwd),
            for_people(cwd),
            last_at,
            branch,
            quoted(request, REQUEST_CHARACTERS),
            quoted(words, WORDS_CHARACTERS),
            tuple(for_people(path) for path in summary.edited_files[: -FILES - 1 : -1]),
            _in_hand(summary.touched),
            worktree=worktree,
        )

    def with_delivery(self, state: Callable[[], DeliveryState | None]) -> ActiveSession:
        """Return the session with its last and its waiting update, and the collisions in that."""
        try:
            delivered, waiting, is_withheld, _ = state() or (None, "", False, ())
        except Exception as error:  # any error affects only this session
            return self._replace(problem=for_people(described(error)))
        update = None
        if delivered:
            update = LastUpdate(
                delivered.at, for_people(delivered.text or ""), delivered.acknowledged, is_withheld
            )
        waiting = for_people(waiting)
        collisions = [
            line.removeprefix(COLLISION)
            for line in waiting.splitlines()
            if line.startswith(COLLISION)
        ]
        shown = tuple(_TO_THE_SESSION.sub(r"\1 this session ", line) for line in collisions)
        return self._replace(update=update, waiting=waiting, collisions=shown)

    def with_delivery_of(self, earlier: ActiveSession) -> ActiveSession:
        """Return the session with the updates and collisions that were read earlier."""
        return self._replace(
            update=earlier.update,
            waiting=earlier.waiting,
            collisions=earlier.collisions,
            problem=self.problem or earlier.problem,
        )


def _in_hand(calls: Iterable[tuple[str, str, float | None]]) -> tuple[tuple[str, str, float], ...]:
    """Return each file with the last action on it; an edit counts more than later reading."""
    hands_by_path: dict[str, tuple[str, str, float]] = {}
    for path, kind, at in calls:
        if kind == EDIT or (kind == READ and hands_by_path.get(path, ("", ""))[1] != "edited"):
            hands_by_path[path] = path, "edited" if kind == EDIT else "read", at or 0.0
    return tuple(hands_by_path.values())


def _last_request(entries: list[Entry]) -> tuple[str, str]:
    """Return the last request, and the agent's last message since then; each '' if there is
    none."""
    request = words = ""
    for entry in entries:
        if entry.role == "user" and is_request(entry.text):
            request, words = entry.text, ""
        elif entry.role == "assistant" and entry.text:
            words = entry.text
    return request, words


def _branch_and_worktree(cwd: str) -> tuple[str, str]:
    """Return the branch at a directory, or the beginning of its commit, and its worktree's name."""
    worktree = find_worktree(cwd, user_dir(os.environ)) if cwd.startswith("/") else None
    if worktree is None:
        return "", ""
    head = head_of(worktree.git_dir)
    branch = head[:12] if len(head) == 40 else for_people(head)
    return branch, for_people(os.path.basename(worktree.root))


def _tail(path: str) -> str:
    """Return the end of a path, in whole names."""
    while len(path) > PATH_CHARACTERS and "/" in path:
        path = path.partition("/")[2]
    return shorten(path, PATH_CHARACTERS)
