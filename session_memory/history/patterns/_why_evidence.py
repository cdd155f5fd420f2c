"""Finds the calls that prove who wrote a line or made a commit, and the session at work then."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ...common.system.git import find_worktree, worktrees_of
from ...common.text.shell_commands import COMMITTING, commit_message, is_carrying, is_rewriting
from ...common.text.shell_effects import GIT, effects_of
from ...common.text.shell_written import can_have_written
from ...common.text.timestamps import now_milliseconds
from ...common.text.written_lines import (
    LEAST_CHARACTERS,
    commit_id,
    commit_subject,
    is_short,
    line_hashes,
    line_in,
    normalised,
)
from ...sessions.transcripts.edits import edited_files
from ...sessions.transcripts.turns import UNANSWERED_SECONDS
from ..git.commits import UNCOMMITTED, CodeLine, Commit, Repository

if TYPE_CHECKING:
    from ..store.sqlite.engine import SqliteStore
    from ..store.sqlite.written_lines import TimedCall, WrittenLine
    from ..store.values import Conversation

SECOND = 1000  # git's times are whole seconds, so a commit's real time is within this
# the largest distance between a commit and the call that made it, in either direction
LONGEST_CALL = 10 * 60_000
MOST_AGE = 3 * 24 * 3600_000  # of a call that wrote a file, when it is committed
# a command that contains a line proves that it wrote the line, if the line is this long
LEAST_LITERAL = 4
# the first and the last time, and the subject of the commit at its end
Window = tuple[int, int, str]


class CallEvidence:
    """Answers about the calls in a repository, from a store.

    `key` is the key of the store's lines. The answers are limited to the agent homes `of_home`
    (None: all)."""

    def __init__(
        self,
        store: SqliteStore,
        repository: Repository,
        key: bytes,
    ) -> None:
        self._store = store
        self._repository = repository
        self._key = key
        worktree = find_worktree(repository.root)
        roots = [linked.root for linked in worktrees_of(worktree.common_dir)] if worktree else []
        self._roots = [
            f"{os.path.realpath(root)}/"
            for root in dict.fromkeys([repository.root, *roots])
            if root
        ]
        self._calls: dict[tuple[str, str], list[TimedCall]] = {}

    def writer_of(self, line: CodeLine, commit: Commit | None) -> WrittenLine | None:
        """Return the call that wrote a line, if that is certain.

        It is certain if only one of the sessions that edited the file between the previous commit
        and this one can have written the line. Raises GitUnavailableError, DatabaseError."""
        text = normalised(line.text)
        editors = (
            self._items_with(line_in(line.path.rpartition("/")[2], text))
            if is_short(text)
            else set[int]()
        )
        able = [
            call for call in self._calls_on(line, commit) if _can_have_written(call, text, editors)
        ]
        literal = [
            call for call in able if len(text) >= LEAST_LITERAL and text in call.item.argument
        ]
        for calls in (literal, able):
            if len({call.item.session_id for call in calls}) == 1:
                return calls[-1].item
        return None

    def is_disputed(self, line: CodeLine, commit: Commit) -> bool:
        """Return whether sessions edited a line's file before its commit, without proof."""
        return bool(self._calls_on(line, commit))

    def maker_of(self, commit: Commit) -> WrittenLine | None:
        """Return the call that made a commit.

        Its result has the commit's id, or else it is the `git commit` with the commit's subject,
        run at its time. Return None if calls of several sessions fit. Raises DatabaseError."""
        return _of_one_session(self._printing(commit) or self._with_subject(commit))

    def first_maker_of(self, commit: Commit) -> WrittenLine | None:
        """Return the call that made a commit, if that call committed its session's own work.

        An amended, picked, rebased or reverted commit belongs to the session that first made it, if
        no other session had a part in it. Raises DatabaseError."""
        printing = self._printing(commit)
        if any(not is_rewriting(call.item.argument) for call in printing):
            return _of_one_session(printing)
        first = self._with_subject(commit)
        changing = [call for call in printing if not is_carrying(call.item.argument)]
        is_sure = first or changing == printing
        return _of_one_session([*first, *changing]) if is_sure else None

    def _printing(self, commit: Commit) -> list[TimedCall]:
        """Return the calls whose result says that they made a commit."""
        items = self._items_with(commit_id(commit.id))
        calls = self._calls_near(commit.at) if items else []
        return [
            call
            for call in calls
            if call.item.item in items and self._is_run_here(call, COMMITTING)
        ]

    def _with_subject(self, commit: Commit) -> list[TimedCall]:
        """Return the calls that first made a commit with the same subject."""
        items = self._items_with(commit_subject(commit.subject)) if commit.subject else set()
        return [
            call
            for call in self._calls_near(commit.authored_at)
            if self._is_run_here(call, ("commit",))
            and not is_carrying(call.item.argument)
            and (
                _commits(call, commit.subject)
                or (call.item.item in items and "commit" in call.item.argument)
            )
        ]

    def _items_with(self, text: str) -> set[int]:
        hashes = line_hashes([text], self._key) if self._key else []
        return {written.item for written in self._store.line_writers(hashes)}

    def _calls_near(self, at: int) -> list[TimedCall]:
        return self._calls_between(at - LONGEST_CALL, at + SECOND + LONGEST_CALL)

    def _calls_between(self, since: int, until: int) -> list[TimedCall]:
        return self._store.calls_between(since, until)

    def at_work(self, at: int, *, is_exact: bool = False) -> Conversation | None:
        """Return the conversation with a running turn at a time, if only one session has one.

        The time is git's, in milliseconds. Only sessions in the repository count. Raises
        DatabaseError."""
        last = at if is_exact else at + SECOND - 1
        near = {}
        for root in self._roots:
            within = int(UNANSWERED_SECONDS * 1000)
            for conversation in self._store.conversations_near(root.rstrip("/"), at, within):
                near[conversation.id] = conversation
        running = self._store.running_at(
            [near_one for near_one in near.values() if (near_one.first_message_at or 0) <= last],
            at,
            last,
        )
        return (
            running[-1] if len({conversation.session_id for conversation in running}) == 1 else None
        )

    def _calls_on(self, line: CodeLine, commit: Commit | None) -> list[TimedCall]:
        """Return the calls that edited a line's file in time for a commit, the earliest first."""
        path = line.written_in or line.path
        key = commit.id if commit else UNCOMMITTED, path
        if key not in self._calls:
            window = self._window(path, commit)
            calls = self._calls_between(window[0] - SECOND, window[1] + LONGEST_CALL)
            self._calls[key] = [
                call for call in calls if self._has_edited(call, {path, line.path}, window)
            ]
        return self._calls[key]

    def _window(self, path: str, commit: Commit | None) -> Window:
        """Return the window of time in which a file was edited for a commit.

        For uncommitted lines, the window ends now."""
        before = self._repository.last_commit(path, commit.id if commit else "")
        after = before.at + SECOND if before else 0
        if commit is None:
            return after, now_milliseconds(), ""
        return max(after, commit.at - MOST_AGE), commit.at + SECOND - 1, commit.subject

    def _has_edited(self, call: TimedCall, paths: set[str], window: Window) -> bool:
        """Check if a call edited one of the files in a window, and not for an earlier commit."""
        item, (since, until, subject) = call.item, window
        if not any(path.rpartition("/")[2] in item.argument for path in paths):
            return False
        is_commit = item.kind == "command" and bool(commit_message(item.argument))
        if not (since <= (item.at or 0) <= until or (is_commit and _commits(call, subject))):
            return False
        files = edited_files(item.kind, item.argument, call.directory, call.outcome)
        return any(self._inside(file) in paths for file in files)

    def _inside(self, file: str) -> str:
        """Return a file's path in its worktree of the repository; '' if it is outside."""
        whole = os.path.join(os.path.realpath(os.path.dirname(file)), os.path.basename(file))
        root = max((root for root in self._roots if whole.startswith(root)), key=len, default="")
        return whole[len(root) :] if root else ""

    def _is_run_here(self, call: TimedCall, subcommands: Collection[str]) -> bool:
        """Check if a call successfully ran one of these git commands in this repository."""
        if call.item.kind != "command":
            return False
        places = [
            effect.path
            for effect in effects_of(call.item.argument, call.directory)
            if effect.kind == GIT
            and effect.words[0] in subcommands
            and (effect.is_followed or call.outcome != "error")
        ]
        return any(f"{os.path.realpath(place)}/".startswith(tuple(self._roots)) for place in places)


def _of_one_session(calls: Sequence[TimedCall]) -> WrittenLine | None:
    """Return the first of the calls, if all belong to one session."""
    return calls[0].item if len({call.item.session_id for call in calls}) == 1 else None


def _can_have_written(call: TimedCall, text: str, editors: Collection[int]) -> bool:
    """Check if a call that edited a file can have written a line.

    Long lines are recorded by their hashes, so this one was not written by an edit. `editors` are
    the items whose editing tool wrote the line, if it is short. A here-document contains its lines,
    and a substitution parts of its lines."""
    if call.item.kind == "edit":
        return call.item.item in editors
    if "<<" in call.item.argument:
        return len(text) < LEAST_CHARACTERS and text in map(
            normalised, call.item.argument.splitlines()
        )
    return can_have_written(call.item.argument, text)


def _commits(call: TimedCall, subject: str) -> bool:
    """Check if a command makes a commit with this subject."""
    command = call.item.argument
    if (
        call.item.kind != "command"
        or not subject
        or "commit" not in command
        or subject not in command
    ):
        return False
    lines = [line.strip() for line in command.splitlines()]
    quoted = any(f"{mark}{subject}{mark}" in command for mark in "'\"")
    return quoted or commit_message(command) == subject or subject in lines
