"""Evidence of a session's process: whether it runs, what the runtime notes of it, what it started.

By default a session belongs to a process of its runtime that works in its directory. A runtime that
notes the process of a session states it instead."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...common.system.files import real_path
from ...common.system.process_table import Process, ProcessTable

if TYPE_CHECKING:
    from ..transcripts.entries import ToolUse
    from .base import Runtime

# Notes of a runtime about a session
WORKING, WAITING, ASKING, IN_BACKGROUND = "working", "waiting", "asking", "in background"

_INTERPRETERS = ("node", "bun", "deno", "python", "python3")
_SHELLS = ("sh", "bash", "zsh", "dash", "fish")
# our own hooks, whose processes do nothing for a session
_HOOKS = (
    *("notice", "pi_archive", "pi_prompt", "pi_session_start", "plugin_start"),
    *("post_tool_use_failure", "pre_compact", "pre_tool_use", "session_end", "session_start"),
    *("session_waits", "status_line", "subagent_start", "upkeep", "user_prompt_submit", "waiting"),
)
_STARTUP_SECONDS = 10.0  # in which a process starts the servers that it needs
SLACK_SECONDS = 1.0  # between the clocks of a file system and of processes


@dataclass(frozen=True)
class ProcessEvidence:
    """Signs of a session's process. `is_alive` is None if that is unknown, for the `reason`.

    `noted` is one of the constants of this module, '' if the runtime notes nothing, `since` when
    that began, `question` what the session waits for. `children` are the processes that it
    started, without the runtime's own and our hooks. `calls` have no result yet and are in no
    transcript before they have one; they were made at `called_at`. `opened_at` is when the process
    began, by the clock of that time."""

    is_alive: bool | None
    reason: str = ""
    noted: str = ""
    since: float = 0.0
    question: str = ""
    process: Process | None = None
    children: tuple[Process, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    called_at: float = 0.0
    opened_at: float = 0.0

    @property
    def started_up_at(self) -> float:
        """The time by which the process has started the servers that it needs."""
        return (self.process.began if self.process else 0.0) + _STARTUP_SECONDS

    def runs_since(self, at: float, now: float) -> bool:
        """Return whether a process runs that the session started at that time or later.

        If the clock was set back since, any process counts that did not start with its own."""
        if at > now:
            at = self.started_up_at
        return any(child.began >= at - SLACK_SECONDS for child in self.children)

    def has_command(self, at: float) -> bool:
        """Return whether a command runs that the session started after that time.

        It is a shell with a command, or the program that the runtime's shell has become. A browser
        that a server of tools has started also leads, but below another child."""
        others = {child.pid for child in self.children}
        return any(
            child.began > at
            and (_is_shell(child.words) or (child.leads and child.parent not in others))
            for child in self.children
        )


@dataclass(frozen=True)
class SessionPlace:
    """A session that may have a process: where its transcript is, the directories that it worked
    in, and when it wrote last, in seconds since 1970."""

    path: str
    id: str
    directories: tuple[str, ...]
    modified: float


def _is_shell(words: Sequence[str]) -> bool:
    """Return whether a command line is of a shell that runs a command."""
    return len(words) > 1 and os.path.basename(words[0]) in _SHELLS and "c" in words[1][:4]


def _is_hook(words: Sequence[str]) -> bool:
    """Return whether a command line is of one of our own hooks, or of the shell that starts it."""
    scripts = [word.rpartition("/hooks/")[2] for word in words if "/hooks/" in word]
    return any(script.partition(".py")[0] in _HOOKS for script in scripts)


def _kind_of(runtime: Runtime, words: Sequence[str]) -> str:
    """Return what a command line is to a runtime: `session`, `server`, `helper`, or ''."""
    program = os.path.basename(words[0]) if words else ""
    if program in runtime.HELPERS:
        return "helper"
    if runtime.PROCESS_TITLE and program == runtime.PROCESS_TITLE:
        return "session"
    options = [word for word in words[1:] if word]
    if program in _INTERPRETERS:
        script = next((word for word in options if not word.startswith("-")), "")
        is_own = bool(runtime.PACKAGE) and f"/{runtime.PACKAGE}/" in script
        program = runtime.PROGRAM if is_own else os.path.basename(script)
        options = options[options.index(script) + 1 :] if script else []
    if program != runtime.PROGRAM:
        return "helper" if _is_hook(words) else ""
    return "server" if options[:1] and options[0] in runtime.SERVERS else "session"


class Processes:
    """A runtime's processes in a table."""

    def __init__(self, runtime: Runtime, table: ProcessTable) -> None:
        self.table = table
        self._kinds = {
            pid: kind
            for pid, process in table.processes.items()
            if (kind := _kind_of(runtime, process.words))
        }

    def sessions(self) -> Iterator[Process]:
        """Yield the processes of sessions, except children of another one."""
        for pid, kind in self._kinds.items():
            process = self.table.processes[pid]
            if kind == "session" and process.parent not in self._kinds:
                yield process

    def started_by(self, process: Process, directories: Iterable[str]) -> tuple[Process, ...]:
        """Return what a process started, and what a server of the runtime started for it."""
        started = [child for child in self.table.below(process.pid) if child.pid not in self._kinds]
        servers = [pid for pid, kind in self._kinds.items() if kind == "server"]
        known = {child.pid for child in started}
        for pid in servers:
            for child in self.table.below(pid):
                is_new = child.pid not in self._kinds and child.pid not in known
                if is_new and self.table.directory(child.pid) in directories:
                    started.append(child)
        return tuple(started)


def evidence_by_directory(
    runtime: Runtime, candidates: Sequence[SessionPlace], table: ProcessTable
) -> dict[str, ProcessEvidence]:
    """Return the evidence of sessions, by the paths of their transcripts.

    If N processes work in a directory, its N latest sessions that wrote since these began are
    theirs. A process that resumes a session has it from the start."""
    if not table.is_known:
        nothing = ProcessEvidence(None, "the system does not list its processes")
        return {candidate.path: nothing for candidate in candidates}
    processes = Processes(runtime, table)
    free: dict[str, list[_Free]] = {}
    ids = {candidate.id for candidate in candidates}
    for process in processes.sessions():
        values = [word.rpartition("=")[2] for word in process.words]
        free.setdefault(table.directory(process.pid), []).append(
            _Free(
                process,
                table.opened_at(process),
                next((value for value in values if value in ids), ""),
                any(value in runtime.CONTINUES for value in values),
            )
        )
    evidence = {}
    for place in sorted(candidates, key=lambda each: -each.modified):
        directories = {real_path(directory) for directory in place.directories if directory}
        match = _take(free, directories, place)
        evidence[place.path] = (
            ProcessEvidence(
                True,
                process=match.process,
                children=processes.started_by(match.process, frozenset(directories)),
                opened_at=match.opened_at,
            )
            if match
            else ProcessEvidence(False)
        )
    return evidence


class _Free(NamedTuple):
    """A process that has no session so far; see ProcessTable.opened_at.

    `named` is the session in its command line, '' if there is none, `continues` whether that goes
    on with the last one."""

    process: Process
    opened_at: float
    named: str
    continues: bool

    def may_have(self, place: SessionPlace) -> bool:
        """Return whether it names the session, may have written it, or continues the last one."""
        return self.named == place.id or self.continues or self._may_have_written(place)

    def order(self, place: SessionPlace) -> tuple[bool, bool, bool, bool, float]:
        """Return a key by which the likeliest process of a session is the greatest.

        One that names another session has that one, unless it began a new one since."""
        return (
            self.named == place.id,
            not self.named,
            self._may_have_written(place),
            self.continues,
            self.process.began,
        )

    def _may_have_written(self, place: SessionPlace) -> bool:
        return self.opened_at - SLACK_SECONDS <= place.modified


def _take(
    free: dict[str, list[_Free]], directories: Iterable[str], place: SessionPlace
) -> _Free | None:
    """Take the likeliest process of a session from the free ones."""
    for directory in directories:
        fitting = [each for each in free.get(directory, ()) if each.may_have(place)]
        if fitting:
            best = max(fitting, key=lambda each: each.order(place))
            free[directory].remove(best)
            return best
    return None
