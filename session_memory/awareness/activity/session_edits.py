"""Edits of a session that its transcript proves, including its sub-agents' edits.

Failed calls are left out.
"""

from __future__ import annotations

from ...common.system.files import Opened, os, real_path
from ...common.system.json import objects_in
from ...sessions.transcripts.edits import edited_files
from ...sessions.transcripts.lines import lines_forward
from .actions import COMMAND, GIT, FileAction, actions_of, sub_agent_entries
from .collisions._evidence import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from ...sessions.runtimes.base import Runtime
    from ...sessions.transcripts.edits import Edit
    from ...sessions.transcripts.entries import Entry, Session

# a command line that contains a line of this length has written the line
LEAST_LITERAL = 4


class SessionEdit:
    """One edit of the file at `path`.

    The record of its call is at `offset` of the transcript `written_in`. `began` and `ended` are
    when the call was made and when its result came, in seconds since 1970."""

    def __init__(
        self,
        path: str,
        action: FileAction,
        written_in: str,
        runtime: Runtime,
        times: tuple[float, float],
    ) -> None:
        self.path = path
        self.began, self.ended = times
        self.is_command = action.is_command
        self.command = action.words[0] if action.words else ""
        self.offset = action.offset
        self.call_id = action.call_id
        self.written_in = written_in
        self._runtime = runtime

    def count_written(self, lines: Iterable[str]) -> int | None:
        """Return how many of these lines of the file the call wrote, judged by its arguments.

        Return None if the arguments cannot tell."""
        wanted = {line.strip() for line in lines if line.strip()}
        if not wanted:
            return None
        if self.is_command:
            return self._count_by_command(wanted)
        edits = self.texts()
        if not edits:
            return None
        before = {line.strip() for old, _ in edits for line in old.split("\n")}
        after = {line.strip() for _, new in edits for line in new.split("\n")}
        return len(wanted & (after - before))

    def texts(self) -> list[Edit]:
        """Return each replaced text ('' if unknown) with the new text.

        Return [] if the call's arguments do not have them, as for a command."""
        if self.is_command:
            return []
        try:
            with Opened(self.written_in) as descriptor:
                lines_there = lines_forward(descriptor, self.offset, os.fstat(descriptor).st_size)
                _, record_line = next(iter(lines_there), (0, b""))
        except OSError:
            return []
        for record in objects_in(record_line):
            if edits := self._runtime.records.edits(record, self.call_id):
                return edits
        return []

    def _count_by_command(self, wanted: set[str]) -> int | None:
        if count := sum([len(line) >= LEAST_LITERAL and line in self.command for line in wanted]):
            return count
        from ...common.text.shell_written import can_have_written  # only conflicts need it

        return None if any(can_have_written(self.command, line) for line in wanted) else 0


class SessionCalls:
    """Calls in these `entries` of a session.

    `edits` are in no certain order. They include edits of its sub-agents since a time, in the
    entries that `permitted` returns."""

    def __init__(
        self,
        session: Session,
        runtime: Runtime,
        entries: Sequence[Entry],
        permitted: Callable[[Iterable[Entry]], list[Entry]] | None = None,
        since: float = 0.0,
    ) -> None:
        self._path = session.path
        self._runtime = runtime
        self._entries = entries
        self.edits = _edits_in(runtime, session.path, entries, "")
        for transcript in (*runtime.sub_agents(session.path), *session.known_sub_agents):
            try:
                of_agent = sub_agent_entries(transcript, runtime, {}, since)
            except OSError:
                continue
            of_agent = permitted(of_agent) if permitted else of_agent
            self.edits += _edits_in(runtime, transcript, of_agent, transcript)

    def git_runs(self, commands: Container[str]) -> list[tuple[float, float]]:
        """Return when calls with one of these git `commands` began and ended.

        The times are in seconds since the epoch."""
        evidence = Evidence({"": self._runtime}, {"": self._path}, None, "")
        return [
            (evidence.began("", action), evidence.ended("", action))
            for action in actions_of(self._entries, lambda command: "git" in command)
            if action.kind == GIT and action.words[0] in commands and evidence.is_done("", action)
        ]


def _edits_in(
    runtime: Runtime, path: str, entries: Sequence[Entry], of_sub_agent: str
) -> list[SessionEdit]:
    evidence = Evidence({"": runtime}, {"": path}, None, "")
    edits = []
    for entry in entries:
        for tool in entry.tools:
            if not edited_files(tool.kind, tool.argument, entry.cwd):
                continue
            action = FileAction(tool.kind, "", (entry.timestamp or 0.0, entry.offset, tool.call_id))
            action.is_command = tool.kind == COMMAND
            action.words, action.transcript = (tool.argument,), of_sub_agent
            outcome = evidence.outcome("", action, is_last=entry is entries[-1])
            times = evidence.began("", action), evidence.ended("", action)
            edits += [
                SessionEdit(_real(file), action, path, runtime, times)
                for file in edited_files(tool.kind, tool.argument, entry.cwd, outcome)
            ]
    return edits


def _real(path: str) -> str:
    """Return a path with the real path of its directory, as git has it."""
    directory, slash, name = path.rpartition("/")
    return real_path(directory).rstrip("/") + slash + name
