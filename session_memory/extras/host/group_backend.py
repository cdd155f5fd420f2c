"""The sessions of a host's group, for its agent's tools; main's agent gets all groups' sessions.

Ids and names are looked up among the group's sessions: no argument of a tool becomes part of a
path."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...app.tools.backend import Backend
from ...app.tools.values import ListedSession, RefusedError
from ...common.text.paths import is_name
from ...common.text.timestamps import epoch_seconds
from ...history.archives.list import is_private_path
from ...sessions.confined_files import OutsideGroupError, directory_below, pinned
from ...sessions.settings.host_layout import GLOBAL, MAIN
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.gate import Family, Gate, describe
from ...sessions.transcripts.log import has_entries, last_entries
from ._audiences import audiences_of_group
from ._kept_transcripts import restore_if_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...memory.shared_store import ConnectionPool
    from ...sessions.settings.host_layout import Group, Layout
    from ...sessions.transcripts.entries import Entry
    from ...sessions.transcripts.gate import Described
    from ...sessions.transcripts.pointers import SavedSession, SessionManager
    from ._values import Administration

_UNTITLED = "the present conversation"


class GroupBackend(Backend):
    """The `Backend` of a group's agent; `administration` has the host's services for it.

    Raises GroupNameError."""

    def __init__(
        self,
        layout: Layout,
        group: str,
        sessions: SessionManager,
        administration: Administration | None = None,
        pool: ConnectionPool | None = None,
    ) -> None:
        self._layout = layout
        self._group = layout.group(group)
        self._sessions = sessions
        root = layout.root if self._group.is_main else self._group.root
        super().__init__(root, self._group.root, {}, pool)
        self.administration = administration

    @property
    def own_audiences(self) -> tuple[str, ...]:
        if self.administration is None:
            return super().own_audiences
        return audiences_of_group(is_main=self.administration.is_main)

    def why(self, what: str) -> str:
        if self.administration is not None:
            raise RefusedError("a group has no repository", "continue without it")
        return super().why(what)

    def sessions(self) -> list[ListedSession]:
        """Return the sessions, other groups' last."""
        return [
            session
            for group in self._groups()
            for session in self._sessions_of(group, self._privacy(group))
        ]

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        group = self._layout.group(session.home_name) if session.home_name else self._group
        try:
            with self._transcript(group, session.session_id) as path:
                gate = None if self._is_own(session) else self._gate(group, path, session)[0]
                return last_entries(group.runtime, path, count, gate)
        except FileNotFoundError:
            hint = "its archive may still be there: use search_sessions"
            raise RefusedError(f"the transcript of {session.name!r} is gone", hint) from None

    def clear(self, name: str) -> str:
        kept = self._sessions.clear(self._group.name, name)
        return (
            f"Done: this conversation is kept as {name!r} (id "
            f"{kept.history_id}){_archived(kept)}. Finish your answer: "
            f"the next message starts a new conversation, and resume_session with id "
            f"{kept.history_id} "
            f"returns to this one."
        )

    def resume(self, session: ListedSession, save_as: str | None) -> str:
        if self._is_own(session):
            raise RefusedError("you are already in that session", "there is nothing to resume")
        if session.home_name:
            hint = "use read_session to see its messages"
            raise RefusedError(
                f"only the agent of the group {session.home_name} can resume its sessions", hint
            )
        restored = restore_if_gone(self._layout, self._group, session.session_id)
        kept = self._sessions.resume(self._group.name, int(session.id), save_as)
        if kept is None:
            before = ""
        elif kept.history_id is None:
            before = f" The previous session is no longer listed{_archived(kept)}."
        else:
            before = f" The previous session is kept as {save_as!r} (id {kept.history_id}){_archived(kept)}."
        return (
            f"Done: the next message continues {session.name!r}.{restored} "
            f"Finish your answer.{before}"
        )

    def _groups(self) -> list[Group]:
        """Return the group itself and, for main, all others."""
        if not self._group.is_main:
            return [self._group]
        with (
            directory_below(self._layout.root, self._layout.groups_dir) as directory,
            os.scandir(directory) as entries,
        ):
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        others = [name for name in names if is_name(name) and name.casefold() not in (MAIN, GLOBAL)]
        return [self._group, *map(self._layout.group, others)]

    def _privacy(self, group: Group) -> Privacy:
        """Return the current rules for reporting about a group.

        They are its own, the asking group's, their host's and its person's."""
        return Privacy(os.environ, self._group.memory_home, group.memory_home)

    def _is_own(self, session: ListedSession) -> bool:
        """Return whether this is the agent's current session, which it may see completely."""
        return session.is_active and not session.home_name

    def _sessions_of(self, group: Group, privacy: Privacy) -> list[ListedSession]:
        label = "" if group.name == self._group.name else group.name
        active = self._sessions.get(group.name)
        shown = self._active(group, active, label) if active else None
        listed = [shown] if shown else []
        for entry in self._sessions.get_history(group.name):
            modified = epoch_seconds(entry.archived_at)
            listed.append(
                ListedSession(str(entry.id), entry.name, entry.session_id, modified, False, label)
            )
        return [
            session
            for session in listed
            if is_name(session.session_id)
            and (self._is_own(session) or self._is_told(session, listed, privacy, group))
        ]

    def _is_told(
        self, session: ListedSession, listed: list[ListedSession], privacy: Privacy, group: Group
    ) -> bool:
        """Return whether a session may be listed.

        Each of its names among the group's `listed` sessions must be permitted, and a part of it
        must not be forgotten."""
        names = [other.name for other in listed if other.session_id == session.session_id]
        gate = Gate(privacy, session.session_id, group.root, names)
        if gate.rule.ignore or gate.until is None:
            return not gate.rule.ignore
        try:
            with self._transcript(group, session.session_id) as path:
                return has_entries(group.runtime, path, gate)
        except (OSError, OutsideGroupError):
            return False

    def _gate(self, group: Group, path: str, session: ListedSession) -> tuple[Gate, Described]:
        """Return the gate of a group's session whose transcript is at `path`, and its description.

        Raises OSError."""
        privacy = self._privacy(group)
        described = describe(group.runtime, path, privacy)
        described.start = group.root
        history = self._sessions.get_history(group.name)
        names = [entry.name for entry in history if entry.session_id == session.session_id]
        return Family(privacy, group.runtime, path, {path: names}).gate(path, described), described

    @contextmanager
    def _transcript(self, group: Group, session_id: str) -> Iterator[str]:
        """Yield a path to a transcript on which no symlink can be put.

        Raises OSError, OutsideGroupError."""
        path = group.transcript(session_id)
        with pinned(self._layout.root, os.path.dirname(path)) as directory:
            yield f"{directory}/{os.path.basename(path)}"

    def _active(self, group: Group, session_id: str, label: str) -> ListedSession | None:
        """Return the group's active session under its title, or None.

        The transcript must be readable and the title permitted. For another group's session it is
        None if it is excluded."""
        shown = ListedSession(session_id, _UNTITLED, session_id, None, True, label)
        try:
            with self._transcript(group, session_id) as path:
                gate, described = self._gate(group, path, shown)
                title = (described.rank, described.title)
                title = gate.shown_title(group.runtime, path, title) if label else title
                modified = os.stat(path, follow_symlinks=False).st_mtime
        except (OSError, OutsideGroupError):
            return shown
        if label and gate.rule.ignore:
            return None
        return shown._replace(name=title[1] or _UNTITLED, modified=modified)

    def _own_session(self) -> str:
        return self._sessions.get(self._group.name) or ""


def _archived(kept: SavedSession) -> str:
    """Return the archive's path as the group's agent sees it; '' for one that a rule hides."""
    if not kept.archive or is_private_path(kept.archive):
        return ""
    return f", all of it in conversations/{os.path.basename(kept.archive)}"
