"""Finds the calls that prove who wrote a line or made a commit, and the session that was at work."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..system.commits import UNCOMMITTED, CodeLine, Commit, Repository
from ..system.git import find_worktree, worktrees_of
from ..text.shell_commands import commit_message
from ..text.shell_effects import GIT, effects_of
from ..text.shell_written import can_have_written
from ..text.timestamps import now_milliseconds
from ..text.written_lines import LEAST_CHARACTERS, normalised
from ..transcripts.edits import edited_files
from ..transcripts.turns import UNANSWERED_SECONDS

if TYPE_CHECKING:
    from ..store.sqlite.engine import SqliteStore
    from ..store.sqlite.written_lines import TimedCall, WrittenLine
    from ..store.values import Conversation

SECOND = 1000  # git's times have no fraction: a commit was made within this of its time
LONGEST_CALL = 10 * 60_000  # between a commit and the time of the call that made it, before or after
MOST_AGE = 3 * 24 * 3600_000  # of a call that wrote a file, when it is committed
LEAST_LITERAL = 4  # characters of a line that a command shows to have written, if it contains them
Window = tuple[int, int, str]  # the first and the last time, and the subject of the commit at its end


class CallEvidence:
    """Answers questions about the calls in a repository from a store. `calls_between` returns the calls between two
    times, `conversations_near` the conversations in a directory at most so many milliseconds from a time."""

    def __init__(
        self,
        store: SqliteStore,
        repository: Repository,
        calls_between: Callable[[int, int], list[TimedCall]],
        conversations_near: Callable[[str, int, int], list[Conversation]],
    ) -> None:
        self._store = store
        self._repository = repository
        self._calls_between = calls_between
        self._conversations_near = conversations_near
        worktree = find_worktree(repository.root)
        roots = [linked.root for linked in worktrees_of(worktree.common_dir)] if worktree else []
        self._roots = [f"{os.path.realpath(root)}/" for root in dict.fromkeys([repository.root, *roots]) if root]
        self._calls: dict[tuple[str, str], list[TimedCall]] = {}

    def writer_of(self, line: CodeLine, commit: Commit | None) -> WrittenLine | None:
        """Return the call that wrote a line, if that is sure: of all sessions that edited the file between the commit
        before and this one, only one can have written it. Raises GitUnavailableError, DatabaseError."""
        text = normalised(line.text)
        able = [call for call in self._calls_on(line, commit) if _can_have_written(call, text)]
        literal = [call for call in able if len(text) >= LEAST_LITERAL and text in call.item.argument]
        for calls in (literal, able):
            if len({call.item.session_id for call in calls}) == 1:
                return calls[-1].item
        return None

    def is_disputed(self, line: CodeLine, commit: Commit) -> bool:
        """Return whether a session edited the file of a line before its commit, though nothing proves which."""
        return bool(self._calls_on(line, commit))

    def maker_of(self, commit: Commit) -> WrittenLine | None:
        """Return the `git commit` with the subject of a commit, run at its time; None if several sessions ran one.
        Raises DatabaseError."""
        at = commit.authored_at
        calls = self._calls_between(at - LONGEST_CALL, at + SECOND + LONGEST_CALL)
        made = [call for call in calls if _commits(call, commit.subject) and self._is_run_here(call)]
        return made[0].item if len({call.item.session_id for call in made}) == 1 else None

    def at_work(self, at: int, *, is_exact: bool = False) -> Conversation | None:
        """Return the conversation with a running turn at a time of git's, in milliseconds, if it is the only session
        with one in the repository; None if not. Raises DatabaseError."""
        last = at if is_exact else at + SECOND - 1
        near = {}
        for root in self._roots:
            for conversation in self._conversations_near(root.rstrip("/"), at, int(UNANSWERED_SECONDS * 1000)):
                near[conversation.id] = conversation
        running = self._store.running_at(
            [near_one for near_one in near.values() if (near_one.first_message_at or 0) <= last], at, last
        )
        return running[-1] if len({conversation.session_id for conversation in running}) == 1 else None

    def _calls_on(self, line: CodeLine, commit: Commit | None) -> list[TimedCall]:
        """Return the calls that edited the file of a line for a commit, the earliest first."""
        path = line.written_in or line.path
        key = commit.id if commit else UNCOMMITTED, path
        if key not in self._calls:
            window = self._window(path, commit)
            calls = self._calls_between(window[0] - SECOND, window[1] + LONGEST_CALL)
            self._calls[key] = [call for call in calls if self._has_edited(call, {path, line.path}, window)]
        return self._calls[key]

    def _window(self, path: str, commit: Commit | None) -> Window:
        """Return when a file was edited for a commit, or, without one, for the lines that are not committed."""
        before = self._repository.last_commit(path, commit.id if commit else "")
        after = before.at + SECOND if before else 0
        if commit is None:
            return after, now_milliseconds(), ""
        return max(after, commit.at - MOST_AGE), commit.at + SECOND - 1, commit.subject

    def _has_edited(self, call: TimedCall, paths: set[str], window: Window) -> bool:
        """Check if a call edited one of the files in a window, and not for another commit."""
        item, (since, until, subject) = call.item, window
        if not any(path.rpartition("/")[2] in item.argument for path in paths):
            return False
        is_commit = item.kind == "command" and bool(commit_message(item.argument))
        if is_commit and not _commits(call, subject):
            return False
        if not (is_commit or since <= (item.at or 0) <= until):
            return False
        files = edited_files(item.kind, item.argument, call.directory, call.outcome)
        return any(self._inside(file) in paths for file in files)

    def _inside(self, file: str) -> str:
        """Return a file's path in its worktree of the repository; '' if it is in none."""
        whole = os.path.join(os.path.realpath(os.path.dirname(file)), os.path.basename(file))
        root = max((root for root in self._roots if whole.startswith(root)), key=len, default="")
        return whole[len(root) :] if root else ""

    def _is_run_here(self, call: TimedCall) -> bool:
        places = [effect.path for effect in effects_of(call.item.argument, call.directory) if effect.kind == GIT]
        return any(f"{os.path.realpath(place)}/".startswith(tuple(self._roots)) for place in places)


def _can_have_written(call: TimedCall, text: str) -> bool:
    """Check if a call that edited a file can have written a line that none of the known lines is. An editing tool and a
    here-document show their lines, but only long ones are kept. A substitution shows a part of its lines."""
    if call.item.kind == "edit" or "<<" in call.item.argument:
        return len(text) < LEAST_CHARACTERS
    return can_have_written(call.item.argument, text)


def _commits(call: TimedCall, subject: str) -> bool:
    """Check if a command makes a commit with this subject."""
    command = call.item.argument
    if call.item.kind != "command" or not subject or "commit" not in command or subject not in command:
        return False
    lines = [line.strip() for line in command.splitlines()]
    quoted = any(f"{mark}{subject}{mark}" in command for mark in "'\"")
    return quoted or commit_message(command) == subject or subject in lines
