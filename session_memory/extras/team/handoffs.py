"""Sessions that others of a team handed over: upkeep keeps them in a file of the home, and a
session's first prompt on their branch offers them."""

from __future__ import annotations

from ...common.system.files import read_whole
from ...common.system.git import find_worktree, head_of
from ...common.system.json import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...awareness.events.context import Context
    from ...sessions.settings.homes import Home


def handoffs_file(home: Home) -> str:
    """Return the path of the file that keeps them."""
    return home.state_dir + "/team-handoffs.json"


def received(home: Home) -> list[dict[str, Any]]:
    """Return the handoffs, the latest first: `repository` (its common directory), `branch`, `line`,
    `session` and `page`."""
    try:
        handoffs = decode(read_whole(handoffs_file(home)).decode())
        return [handoff for handoff in handoffs if isinstance(handoff, dict)]
    except (OSError, ValueError, TypeError):
        return []


def offer(context: Context) -> str:
    """Return the line for the latest handoff on the branch that is checked out in the directory of
    an event, or ''."""
    home, directory = context.home, context.directory
    worktree = find_worktree(directory, home.user_dir) if directory else None
    branch = head_of(worktree.git_dir) if worktree else ""
    if not worktree or not branch:
        return ""
    for handoff in received(home):
        if (handoff["repository"], handoff["branch"]) == (worktree.common_dir, branch):
            return str(handoff["line"])
    return ""
