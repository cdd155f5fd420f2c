"""Sessions that others of a team handed over: upkeep keeps them in a file of the home, and a
session's first prompt on their branch offers them."""

from __future__ import annotations

from ...common.system.files import read_whole
from ...common.system.git import find_worktree, head_of
from ...common.system.json import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...sessions.settings.homes import Home


def kept(home: Home) -> list[dict[str, Any]]:
    """Return them, the latest first: `repository` (its common directory), `branch`, `line`,
    `session` and `page`."""
    try:
        return [
            one for one in decode(read_whole(home.handoffs_file).decode()) if isinstance(one, dict)
        ]
    except (OSError, ValueError, TypeError):
        return []


def offer(home: Home, directory: str) -> str:
    """Return the line for the latest one on the branch that is checked out in a directory; '' for
    none."""
    worktree = find_worktree(directory, home.user_dir) if directory else None
    branch = head_of(worktree.git_dir) if worktree else ""
    place = (worktree.common_dir, branch) if worktree else None
    return next(
        (
            str(one["line"])
            for one in kept(home)
            if branch and (one["repository"], one["branch"]) == place
        ),
        "",
    )
