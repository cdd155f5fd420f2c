"""Own work: this session's side of the collisions at a prompt. Its files in hand, and its branch or
commit."""

from __future__ import annotations

from ...common.system.files import is_file
from ...common.system.git import find_worktree, head_of
from .changes import head_stamp
from .state import COLLISIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from ...sessions.transcripts.lines import Cursor
    from .changes import OwnSession
    from .collisions._working_set import CollisionState
    from .state import Cursors


class OwnWork:
    """The `state` of the `session` after its transcript was read on; None if it has said nothing
    yet. `worktree` is the one that it works in. `heads` are the branch or commit at the last update
    and now, None if HEAD has not moved or no update is known. `cursor` is the own one with the
    branch or commit. `sub_agents` are the offsets in the transcripts of sub-agents at the last
    update."""

    def __init__(self, session: OwnSession, cursors: Cursors, now: float, oldest: float) -> None:
        """`cursors` are its own; `oldest` says how far back its transcript is read at first. Raises
        OSError if the transcript cannot be read."""
        before = cursors.get(session.key, {})
        self.worktree = find_worktree(session.directory, session.user_dir)
        git_dir = self.worktree.git_dir if self.worktree else ""
        # before HEAD is read: a later move is seen next time
        stamp = head_stamp(git_dir) if git_dir else []
        head = head_of(git_dir) if git_dir else ""
        known_head = before.get("branch", "") if before.get("git") == git_dir else ""
        self.heads = (known_head, head) if known_head and before.get("stamp") != stamp else None
        checked_out = {
            "directory": session.directory,
            "git": git_dir,
            "stamp": stamp,
            "branch": head,
            "at": now,
        }
        self.cursor: Cursor = {"offset": 0, **before, **checked_out}
        self.state: CollisionState | None = None
        self.sub_agents: dict[str, int] = {}
        self._content = cursors.get(COLLISIONS, "")
        if is_file(session.path):  # at first it has not said anything yet
            # 0.2.0 kept the collisions elsewhere
            is_known = "tail" in before and COLLISIONS in cursors
            self.state = self._read_on(
                session, before if is_known else None, before.get("at", 0.0), now, oldest
            )

    def _read_on(
        self, session: OwnSession, cursor: Cursor | None, updated: float, now: float, oldest: float
    ) -> CollisionState:
        from ._new_entries import read_own
        from .actions import actions_of, sub_agent_actions
        from .collisions._working_set import CollisionState, resolve_symlinks

        state = CollisionState(self._content, updated)
        self.sub_agents = dict(state.sub_agents)
        new = read_own(session, cursor, now, oldest)
        actions = actions_of(new.entries)
        actions += sub_agent_actions(
            session.sub_agents(), session.runtime, state.sub_agents, oldest
        )
        resolve_symlinks(actions)
        state.working_set.add(sorted(actions, key=lambda action: action.time))
        self.cursor.update(new.cursor)
        return state

    @property
    def paths(self) -> Container[str]:
        """The absolute paths of the files in hand."""
        return self.state.working_set.actions if self.state else ()

    def moved(self, own_key: str) -> Cursors:
        """Return the own cursor and, if it has changed, the state to keep."""
        if self.state is None:
            return {own_key: self.cursor}
        self.cursor["open"] = bool(self.state.open_actions)  # calls that had no result yet
        kept = self.state.content()
        return {own_key: self.cursor, **({COLLISIONS: kept} if kept != self._content else {})}
