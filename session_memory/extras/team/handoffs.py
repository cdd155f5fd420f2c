"""Sessions that others of a team handed over.

Upkeep stores their pages in a file of the home, and a line about each in the inbox. The first
update of a session on their branch offers them.
"""

from __future__ import annotations

from ...awareness.activity.inbox import Note
from ...common.system.files import read_whole
from ...common.system.git import head_of
from ...common.system.json import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...awareness.activity.changes import OwnSession
    from ...common.system.git import Worktree
    from ...sessions.settings.homes import Home


class OfferedHandoff(Note):
    """A line about a session with the id `key` that was handed over on a `branch`.

    The `repository` is named by its common directory. Only the latest handoff on a branch is
    offered."""

    __slots__ = ("branch", "repository", "text")
    KIND = "handoffs"
    AT_START = True

    def __init__(self, key: str, repository: str, branch: str, text: str) -> None:
        self.key = key
        self.repository = repository
        self.branch = branch
        self.text = text

    @classmethod
    def load(cls, kept: Any) -> OfferedHandoff:
        """Return the handoff from a dump. Raises TypeError also for one with other parts."""
        return cls(**kept)

    def is_for(self, reader: OwnSession, worktree: Worktree | None, now: float) -> bool:
        """Check that its branch is checked out; the team's store drops old handoffs."""
        if worktree is None or worktree.common_dir != self.repository:
            return False
        return bool(self.branch) and head_of(worktree.git_dir) == self.branch

    def line(self, now: float, inside: str) -> str:
        """Return the line for an agent."""
        return self.text


def handoffs_file(home: Home) -> str:
    """Return the path of the file with the pages. 0.4.2 reads the lines from it too."""
    return home.state_dir + "/team-handoffs.json"


def received(home: Home) -> list[dict[str, Any]]:
    """Return the handoffs, the latest first.

    Each has its `repository` (the common directory), `branch`, `line`, `session` and `page`."""
    try:
        handoffs = decode(read_whole(handoffs_file(home)).decode())
        return [handoff for handoff in handoffs if isinstance(handoff, dict)]
    except (OSError, ValueError, TypeError):
        return []
