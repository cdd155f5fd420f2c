"""The work of sessions since a time: requests, files, commands that still fail, and open questions.

It uses no model: texts are verbatim.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...common.text.shell_commands import COMMITTING, LOOKING, family, purpose
from ...sessions.transcripts.reader import is_request, says_enough, telling_request, title_of
from ..store.values import Conversation, Filter, StoredEntry, edits_in
from ._quotations import last_sentence, question_in
from .failures import is_failure

if TYPE_CHECKING:
    from ..store.sqlite.engine import SqliteStore

Message = tuple[str, int | None, str]
_GOING_ON = frozenset(f"git {name}" for name in (*COMMITTING, "push"))
_STOPPING = _GOING_ON - {"git push"} | {"git checkout", "git switch", "git add", "git stash"}
_AND = " && "  # joins the parts of a family
_LEAST_RUNS = 2  # of a command that still fails, unless it tests, checks or is of git


class WorkedSession(NamedTuple):
    """The work of a session since a time; `conversation` is its last one.

    `requests` are texts of the user, `files` absolute paths that it edited, `commands` its calls of
    a shell. `question` is the last sentence of its last answer if that asks something. It
    `is_unfinished` if no answer followed the last request or call. Times are in milliseconds."""

    conversation: Conversation
    first_at: int
    last_at: int
    requests: tuple[str, ...]
    files: tuple[str, ...]
    commands: tuple[StoredEntry, ...]
    question: str
    is_unfinished: bool

    @classmethod
    def all_since(cls, store: SqliteStore, wanted: Filter) -> list[WorkedSession]:
        """Return the work of the sessions that fit since `wanted.since`, the earliest first.

        Messages that a session copied from another count once. Raises DatabaseError."""
        seen: set[Message] = set()
        by_session: dict[tuple[str, str], WorkedSession] = {}
        for conversation in reversed(store.conversations(wanted)):
            items = [
                item
                for item in store.entries(conversation.id)
                if (item.timestamp or 0) >= (wanted.since or 0) and not _is_known(item, seen)
            ]
            if not items:
                continue
            calls = [
                call
                for call in store.sub_agent_calls(conversation.id)
                if (call.timestamp or 0) >= (wanted.since or 0)
            ]
            work = _work_of(conversation, items, calls)
            key = conversation.home, conversation.session_id
            before = by_session.get(key)
            by_session[key] = _continued(before, work) if before else work
        every = [
            work for work in by_session.values() if work.requests or work.files or work.commands
        ]
        return sorted(every, key=lambda work: work.first_at)

    @property
    def id(self) -> str:
        return self.conversation.session_id

    @property
    def titles(self) -> tuple[str, str]:
        """The first request that says enough and the last one, '' if that is the same."""
        first = title_of(telling_request(self.requests)) or self.conversation.title
        last = title_of(telling_request(reversed(self.requests)))
        return first, last if last != first and says_enough(last) else ""

    @property
    def test_runs(self) -> list[StoredEntry]:
        """The commands that ran tests, in order."""
        return [call for call in self.commands if purpose(call.text) == "test"]


class BrokenCommand(NamedTuple):
    """A command that failed when it ran last, whichever session ran it.

    It has the family of the command, the last call, the session, its directory, and how often it
    failed since it last succeeded."""

    command: str
    call: StoredEntry
    work: WorkedSession
    directory: str
    times: int

    @classmethod
    def all_in(cls, every: Iterable[WorkedSession]) -> list[BrokenCommand]:
        """Return the commands that failed when they ran last: tests first, then the latest.

        A success in any session with the same working directory ends a failure. A command that only ran
        once counts if it tests, checks, builds or is of git."""
        runs = [
            (call, work, call.cwd or work.conversation.cwd)
            for work in every
            for call in work.commands
            if call.outcome
        ]
        open_failures: dict[tuple[str, str], _OpenCommand] = {}
        number: dict[tuple[str, str], int] = {}
        for call, work, directory in sorted(runs, key=lambda run: run[0].timestamp or 0):
            name = family(call.text)
            if name in (LOOKING, ""):
                continue
            key = directory, name
            number[key] = number.get(key, 0) + 1
            if is_failure(call):
                times = open_failures[key].broken.times + 1 if key in open_failures else 1
                broken = BrokenCommand(name, call, work, directory, times)
                open_failures[key] = _OpenCommand(broken, set(name.split(_AND)))
            elif call.outcome == "ok":
                succeeded = {
                    key for key, each in open_failures.items() if each.succeeds(directory, name)
                }
                for fixed in succeeded:
                    del open_failures[fixed]
        every_broken = [
            each.broken
            for key, each in open_failures.items()
            if each.broken.importance or number[key] >= _LEAST_RUNS
        ]
        return sorted(
            every_broken, key=lambda each: (each.importance, each.call.timestamp or 0), reverse=True
        )

    @property
    def importance(self) -> int:
        """2 if it runs tests, 1 if it checks or builds something or is of git, else 0."""
        kind = purpose(self.call.text) or ("check" if self.command.startswith("git ") else "")
        return ("", "check", "test").index(kind)


def _is_known(item: StoredEntry, seen: set[Message]) -> bool:
    """Check if an item is a copy of an earlier one, which `seen` then contains."""
    key = item.role + item.tool, item.timestamp, item.text
    is_known = key in seen
    seen.add(key)
    return is_known


def _work_of(
    conversation: Conversation, items: list[StoredEntry], of_sub_agents: list[StoredEntry]
) -> WorkedSession:
    requests = [item.text for item in items if item.role == "user" and is_request(item.text)]
    edits = edits_in([*items, *of_sub_agents], conversation.cwd)
    times = [item.timestamp for item in items if item.timestamp is not None]
    last = items[-1]
    is_answer = last.role == "assistant"
    return WorkedSession(
        conversation,
        min(times, default=0),
        max(times, default=0),
        tuple(requests),
        tuple(dict.fromkeys(os.path.normpath(path) for _, path in edits)),
        tuple(item for item in items if item.kind == "command"),
        last_sentence(question_in(last.text)) if is_answer else "",
        last.role == "tool" or (last.role == "user" and is_request(last.text)),
    )


def _continued(before: WorkedSession, work: WorkedSession) -> WorkedSession:
    """Return the work of a session in an earlier and a later conversation."""
    return work._replace(
        first_at=min(before.first_at, work.first_at),
        requests=before.requests + work.requests,
        files=tuple(dict.fromkeys(before.files + work.files)),
        commands=before.commands + work.commands,
    )


class _OpenCommand(NamedTuple):
    """A command that failed, and its parts without a later success."""

    broken: BrokenCommand
    parts: set[str]

    def succeeds(self, directory: str, name: str) -> bool:
        """Note that a command succeeded; return whether all parts have.

        git goes on after a conflict with another command, so any of these ends its failure."""
        if directory == self.broken.directory:
            parts = name.split(_AND)
            self.parts.difference_update(parts)
            if not _GOING_ON.isdisjoint(parts):
                self.parts.difference_update(_STOPPING)
        return not self.parts
