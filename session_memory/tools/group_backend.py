"""The sessions of a host's group, which the tools of its agent work over; for the agent of main those of all groups.

Ids and names are looked up among what the group has: nothing that a tool is given becomes part of a path.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from ..settings.host_layout import GLOBAL, MAIN
from ..settings.privacy import Privacy
from ..system.confined_files import OutsideGroupError, directory_below, pinned
from ..text.names import is_name
from ..text.timestamps import epoch_seconds
from ..transcripts.log import last_entries
from ..transcripts.reader import USER_RANK
from ..transcripts.sessions import describe, what_may_be_told
from .archive_search import search_archives
from .backend import ListedSession, RefusedError
from .store_backend import StoreBackend

if TYPE_CHECKING:
    from ..settings.host_layout import Group, Layout
    from ..settings.rules import Rule
    from ..store.postgres.pool import TeamPool
    from ..transcripts.entries import Entry
    from ..transcripts.pointers import PutBy, SessionManager
    from .backend import Administration, Search, SearchLimits, SearchResult
    from .store_backend import GraphSearch, MemoryChanges
    from .store_search import MemorySearch

_UNTITLED = "the present conversation"


class GroupBackend(StoreBackend):
    """What the agent of a group sees, as a `Backend`.

    A `search` has to find what the group may see and no more. `administration` is what the group's host does for it.
    Raises GroupNameError.
    """

    def __init__(
        self,
        layout: Layout,
        group: str,
        sessions: SessionManager,
        search: Search | None = None,
        memory_search: MemorySearch | None = None,
        administration: Administration | None = None,
        memory_changes: MemoryChanges | None = None,
        graph_search: GraphSearch | None = None,
        teams: TeamPool | None = None,
    ) -> None:
        self._layout = layout
        self._group = layout.group(group)
        self._sessions = sessions
        self.administration = administration
        root = layout.root if self._group.is_main else self._group.root
        super().__init__(root, self._group.root, {}, search, memory_search, memory_changes, graph_search, teams)

    def sessions(self) -> list[ListedSession]:
        """See Backend. Those of other groups come last."""
        return [one for group in self._groups() for one in self._sessions_of(group, self._privacy(group))]

    def entries(self, session: ListedSession, count: int) -> tuple[list[Entry], int]:
        """See Backend."""
        group = self._layout.group(session.group) if session.group else self._group
        path = group.transcript(session.session_id)
        try:
            with pinned(self._layout.root, os.path.dirname(path)) as directory:
                entries, unreadable = last_entries(group.runtime, f"{directory}/{os.path.basename(path)}", count)
        except FileNotFoundError:
            hint = "its archive may still be there: use search_sessions"
            raise RefusedError(f"the transcript of {session.name!r} is gone", hint) from None
        if self._is_own(session):
            return entries, unreadable
        privacy = self._privacy(group)
        history = self._sessions.get_history(group.name)
        names = [entry.name for entry in history if entry.session_id == session.session_id]
        rule = privacy.rule(group.root, session.name, session.session_id, *names)
        return what_may_be_told(entries, privacy, rule, group.root), unreadable

    def clear(self, name: str) -> str:
        """See Backend."""
        kept = self._sessions.clear(self._group.name, name)
        return (
            f"Done: this conversation is kept as {name!r} (id {kept.history_id}){_archived(kept)}. Finish your answer: "
            f"the next message begins a new one, and resume_session with id {kept.history_id} comes back to this one."
        )

    def resume(self, session: ListedSession, save_as: str | None) -> str:
        """See Backend."""
        if self._is_own(session):
            raise RefusedError("you are in that session already", "there is nothing to resume")
        if session.group:
            hint = "use read_session to see what was said in it"
            raise RefusedError(f"only the agent of the group {session.group} can resume its sessions", hint)
        kept = self._sessions.resume(self._group.name, int(session.id), save_as)
        if kept is None:
            before = ""
        elif kept.history_id is None:
            before = f" This one is not listed any more{_archived(kept)}."
        else:
            before = f" This one is kept as {save_as!r} (id {kept.history_id}){_archived(kept)}."
        return f"Done: the next message goes on with {session.name!r}. Finish your answer.{before}"

    def _groups(self) -> list[Group]:
        """The group itself, and for main the others that there are."""
        if not self._group.is_main:
            return [self._group]
        with directory_below(self._layout.root, self._layout.groups_dir) as directory, os.scandir(directory) as found:
            names = sorted(one.name for one in found if one.is_dir(follow_symlinks=False))
        others = [name for name in names if is_name(name) and name.casefold() not in (MAIN, GLOBAL)]
        return [self._group, *map(self._layout.group, others)]

    def _privacy(self, group: Group) -> Privacy:
        """The rules, as they are, for what is told of a group: its own and those of the group that asks, of their host
        and of its person."""
        return Privacy(os.environ, self._group.memory_home, group.memory_home)

    def _is_own(self, session: ListedSession) -> bool:
        """Whether it is the session that the agent is in, which is told all of itself."""
        return session.is_active and not session.group

    def _sessions_of(self, group: Group, privacy: Privacy) -> list[ListedSession]:
        label = "" if group.name == self._group.name else group.name
        active = self._sessions.get(group.name)
        shown = self._active(group, active, label, privacy) if active else None
        listed = [shown] if shown else []
        for entry in self._sessions.get_history(group.name):
            modified = epoch_seconds(entry.archived_at)
            listed.append(ListedSession(str(entry.id), entry.name, entry.session_id, modified, False, label))
        return [
            one for one in listed
            if is_name(one.session_id) and (self._is_own(one) or not self._rule(one, listed, privacy, group).ignore)
        ]  # fmt: skip

    def _rule(self, one: ListedSession, listed: list[ListedSession], privacy: Privacy, group: Group) -> Rule:
        """The rule for a session by each of the names that it has among the `listed` ones of its group."""
        names = [other.name for other in listed if other.session_id == one.session_id]
        return privacy.rule(group.root, one.session_id, *names)

    def _active(self, group: Group, session_id: str, label: str, privacy: Privacy) -> ListedSession | None:
        """The group's active session under its title, as far as there is a transcript that can be read and the title
        may be told; None for one of another group that is excluded."""
        path = group.transcript(session_id)
        title, modified = "", None
        try:
            with pinned(self._layout.root, os.path.dirname(path)) as directory:
                inside = f"{directory}/{os.path.basename(path)}"
                described = describe(group.runtime, inside, with_all_titles=True)
                modified = os.stat(inside, follow_symlinks=False).st_mtime
            rule = privacy.rule(group.root, *filter(None, (described.title, session_id)))
            if label and rule.ignore:
                return None
            if not label or rule.text or described.rank >= USER_RANK:
                title = described.title
        except (OSError, OutsideGroupError):
            pass
        return ListedSession(session_id, title or _UNTITLED, session_id, modified, True, label)

    def _own_session(self) -> str:
        return self._sessions.get(self._group.name) or ""

    def _search_archives(self, query: str, limit: int, limits: SearchLimits) -> list[SearchResult]:
        with ExitStack() as stack:
            places = {}
            for group in self._groups():
                try:
                    directory = stack.enter_context(pinned(self._layout.root, group.conversations_dir))
                except (FileNotFoundError, OutsideGroupError):
                    continue
                is_own = group.name == self._group.name
                name = "conversations" if is_own else f"groups/{group.name}/conversations"
                places[directory] = name, self._privacy(group)
            return search_archives(places, query, limit, limits)


def _archived(kept: PutBy) -> str:
    """Where the archive lies, as the group's agent sees it."""
    return f", all of it in conversations/{os.path.basename(kept.archive)}" if kept.archive else ""
