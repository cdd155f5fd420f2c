"""The sessions of a home, for the tools of its agent.

A named session of an agent home is cleared or resumed by changing the id that its name points to;
the program that runs the agent continues with the new id. Any other session must be switched by its
user, in the program that runs it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ...common.system.files import is_file, write_atomically
from ...common.system.json import encode
from ...common.text.format import one_line
from ...history.archives.list import former_names, is_private_path, settle
from ...history.archives.writer import ArchiveSource, archive_transcript
from ...sessions.runtimes.detection import running_session
from ...sessions.settings.homes import ENV_HOME
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.sessions import (
    AmbiguousSessionError,
    UnknownSessionError,
    choose,
    find_sessions,
)
from .backend import Backend
from .values import ListedSession, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...memory.shared_store import ConnectionPool
    from ...sessions.transcripts.entries import Entry
    from ...sessions.transcripts.sessions import FoundSession

_ONLY_THE_USER = "Nothing has changed yet, because only the user can do that. Tell them to"


class HomeBackend(Backend):
    """The `Backend` of the home at `path`, by default the current one.

    The home is an agent home or a project."""

    def __init__(
        self, path: str | None, environ: Mapping[str, str], pool: ConnectionPool | None = None
    ) -> None:
        super().__init__(path, path, environ, pool)
        self._found: dict[str, FoundSession] = {}  # as last listed
        # Also sessions that another thread has looked up
        self._readable: dict[str, FoundSession] = {}

    def sessions(self) -> list[ListedSession]:
        own_runtime, own_id = running_session(self.environ, os.getppid())
        try:
            sessions = find_sessions(
                self.path, False, self.environ, own_id=own_id, former_names=former_names
            )
        except UnknownSessionError:  # a home without sessions yet
            sessions = []
        self._found = {session.id: session for session in sessions}
        self._readable.update(self._found)
        runtime_of_caller = (
            own_runtime.name if own_runtime else sessions[0].runtime.name if sessions else ""
        )
        return [_listed(session, own_id, runtime_of_caller) for session in sessions]

    def session_behind(self, word: str) -> ListedSession | None:
        """Return the session of any project, as `session-memory read` finds it.

        Raises RefusedError if several match."""
        own_runtime, own_id = running_session(self.environ, os.getppid())
        try:
            id = self._id_behind(word)
            is_agent_s = bool(self.environ.get(ENV_HOME)) or any(
                session.home.sessions_dir for session in self._found.values()
            )
            # an agent with a home of its own sees that
            is_all = self.path is None and not is_agent_s
            every = find_sessions(
                self.path, is_all, self.environ, own_id=own_id, former_names=former_names
            )
            session = choose(every, id or word)
        except AmbiguousSessionError as error:
            raise RefusedError(str(error), error.hint) from None
        except UnknownSessionError:
            return None
        self._readable[session.id] = session
        return _listed(session, own_id, own_runtime.name if own_runtime else "")

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        return self._readable[session.id].last_entries(count)

    def clear(self, name: str) -> str:
        runtime, own_id = running_session(self.environ, os.getppid())
        self.sessions()
        current = self._found.get(own_id)
        if current is not None and _pointer(current):
            kept = f"this conversation is kept as {name!r} (id {own_id}){self._keep(current, name)}"
            os.unlink(_pointer(current))
            return (
                f"Done: {kept}. Finish your answer: the next message to {current.session.name!r} "
                f"starts a new conversation, and resume_session with id {own_id} returns to this "
                f"one.{_in_terminal(current.runtime.install.CLEAR)}"
            )
        if runtime is None:
            return (
                f"{_ONLY_THE_USER} start a new conversation in the program in which they talk to "
                f"you."
            )
        types = runtime.install
        return (
            f"{_ONLY_THE_USER} type `{types.RENAME.format(name=one_line(name))}`, then "
            f"`{types.CLEAR}`. This "
            f"conversation is kept: `{types.RESUME.format(id=own_id)}` in a terminal returns to it."
        )

    def resume(self, session: ListedSession, save_as: str | None) -> str:
        if session.is_active:
            raise RefusedError(f"you are already in {session.name!r}", "there is nothing to resume")
        target, current = self._found[session.id], self._found.get(self._own_session())
        types = target.runtime.install
        if (
            current is not None
            and _pointer(current)
            and not target.session.name
            and target.runtime is current.runtime
        ):
            kept = self._keep(current, save_as or "")
            write_atomically(_pointer(current), encode({"sessionId": target.id}).encode())
            return (
                f"Done: the next message to {current.session.name!r} continues {session.name!r}. "
                f"Finish your answer. "
                f"This conversation is kept{f' as {save_as!r}' if save_as else ''} "
                f"(id {current.id}){kept}."
                f"{_in_terminal(types.RESUME.format(id=target.id))}"
            )
        first = f"type `{types.RENAME.format(name=one_line(save_as))}`, then " if save_as else ""
        return (
            f"{_ONLY_THE_USER} {first}leave this conversation and run "
            f"`{types.RESUME.format(id=session.id)}` in a terminal, in the directory where this "
            f"conversation was started."
        )

    def _keep(self, session: FoundSession, title: str) -> str:
        """Archive the session under a title ('' for its own); return a phrase with the path.

        The phrase is '' if the archive may not be shown. Raises OSError, LockedError."""
        home, privacy = session.home, Privacy(self.environ, session.home)
        settle(home.conversations_dir, privacy)
        source = ArchiveSource(
            session.id,
            session.session.path,
            session.runtime,
            title=title,
            name=session.session.name,
        )
        archive = archive_transcript(
            source, home.conversations_dir, home.settings(), time.time(), privacy=privacy
        )
        is_shown = archive is not None and not is_private_path(archive)
        return f", archived in {archive}" if is_shown else ""

    def _own_session(self) -> str:
        return running_session(self.environ, os.getppid())[1]

    def _likely_session(self) -> str:
        """Return the most recently written session of the runtime that started this process.

        Gemini CLI and Qwen Code tell a command that they run it, but not in which session."""
        self.sessions()
        sessions = [
            session for session in self._found.values() if session.runtime.has_started(self.environ)
        ]
        return max(sessions, key=lambda session: session.modified).id if sessions else ""


def _listed(session: FoundSession, own_id: str, own_runtime: str) -> ListedSession:
    runtime = "" if session.runtime.name == own_runtime else session.runtime.name
    return ListedSession(
        session.id,
        session.name,
        session.id,
        session.last_at,
        session.id == own_id,
        runtime=runtime,
    )


def _pointer(session: FoundSession) -> str:
    """Return the path of the file that points from a session's name to its id, or ''."""
    path = f"{session.home.sessions_dir}/{session.session.name}.json"
    return path if session.home.sessions_dir and session.session.name and is_file(path) else ""


def _in_terminal(command: str) -> str:
    return (
        f" If the user talks to you in the runtime's own terminal, tell them to type `{command}`."
    )
