"""Own work: this session's side of the collisions at a prompt.

It consists of the files in hand, and the branch or commit.
"""

from __future__ import annotations

from ...common.system.files import is_file
from ...common.system.git import find_worktree, head_of
from .changes import HEAD_NUMBERS, head_stamp
from .session_state import OwnState, SessionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._new_entries import NewEntries
    from .actions import FileAction
    from .changes import OwnSession
    from .collisions._working_set import CollisionState
    from .collisions.ref_notes import RefNotes


class OwnWork:
    """This session's work.

    `state` is the state after reading on; None without a transcript. `worktree` is the current
    worktree. `heads` are the branch or commit at the last update and now; None if HEAD has not
    moved or no update is known. `own` is the stored state of the session, with the branch or
    commit. `shared_git_dir` is git's directory of the worktree, or of the last one if that is gone;
    `notes` belong to its repository. `sub_agents` are the offsets in the sub-agents' transcripts at
    the last update."""

    def __init__(
        self,
        session: OwnSession,
        kept: SessionState,
        now: float,
        oldest: float,
        first: NewEntries | None = None,
    ) -> None:
        """Read on in the transcript.

        `kept` is the session's state. The first time, the transcript is read back to `oldest`,
        unless its `first` entries were read already. Raises OSError if the transcript cannot be
        read."""
        before = kept.own or OwnState()
        self.worktree = find_worktree(session.directory, session.user_dir)
        git_dir = self.worktree.git_dir if self.worktree else ""
        # before HEAD is read: a later move is seen next time
        stamp = head_stamp(git_dir) if git_dir else []
        head = head_of(git_dir) if git_dir else ""
        known_head = before.branch if before.git_dir == git_dir else ""
        has_moved = before.stamp[:HEAD_NUMBERS] != stamp[:HEAD_NUMBERS]
        self.heads = (known_head, head) if known_head and has_moved else None
        self.shared_git_dir = git_dir or before.git_dir
        self.notes = session.deadline.attempt("git's refs", self._noted, session, now)
        self.own = before.copy()
        self.own.directory, self.own.git_dir = session.directory, git_dir
        self.own.stamp, self.own.branch, self.own.updated = stamp, head, now
        self.state: CollisionState | None = None
        self.sub_agents: dict[str, int] = {}
        self._content = kept.collisions or ""
        if is_file(session.path):  # at first it has not said anything yet
            new = first if before.cursor is None else None
            if new is None:
                from ._new_entries import read_own

                new = read_own(session, before.cursor, now, oldest)
            self.state = self._with(new, session, before, oldest)

    def _with(
        self, new: NewEntries, session: OwnSession, before: OwnState, oldest: float
    ) -> CollisionState:
        """Return the state with the actions in the new entries and of the sub-agents."""
        from .actions import actions_of, sub_agent_actions
        from .collisions._working_set import CollisionState, resolve_symlinks

        state = CollisionState.load(self._content, before.updated)
        self.sub_agents = dict(state.sub_agents)
        actions = actions_of(new.entries)
        actions += sub_agent_actions(
            session.sub_agents(), session.runtime, state.sub_agents, oldest
        )
        resolve_symlinks(actions)
        state.working_set.add(sorted(actions, key=lambda action: action.time))
        if new.is_read:
            self.own.cursor = new.cursor
        return state

    def _noted(self, session: OwnSession, now: float) -> RefNotes | None:
        """Record the stashes, branches and worktrees, and return the notes. Raises OSError."""
        if not self.shared_git_dir or session.home is None:
            return None
        from .collisions.ref_notes import note

        return note(session.home, self.shared_git_dir, now)

    @property
    def may_share(self) -> bool:
        """Check if a stash, branch or worktree is gone, or if this session may have made one."""
        if self.notes is None or self.state is None:
            return False
        from .actions import GIT

        commands = self.state.working_set.commands
        return bool(self.notes.losses) or any([action.kind == GIT for action in commands])

    @property
    def actions(self) -> dict[str, list[FileAction]]:
        """The last actions on the files in hand, by their absolute paths."""
        return self.state.working_set.actions if self.state else {}

    def moved(self) -> SessionState:
        """Return the session's own state and, if they have changed, the collisions to store."""
        changes = SessionState(own_state=self.own)
        if self.state is not None:
            self.own.has_open_calls = bool(self.state.open_actions)
            kept = self.state.dump()
            changes.collisions = kept if kept != self._content else None
        return changes
