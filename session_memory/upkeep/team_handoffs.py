"""Sessions that others of a team handed over: kept for a first prompt on their branch, which asks no server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from .. import NAME
from ..runtimes import all_runtimes
from ..settings.homes import Home
from ..store.values import OthersHandoff
from ..system.files import write_atomically
from ..system.git import find_worktree
from ..text.format import one_line, shorten
from ..text.sanitize import for_prompt
from ..text.timestamps import local_time

NAME_CHARACTERS = 60


def keep_handoffs(
    home: Home, handoffs: Sequence[OthersHandoff], roots: Mapping[str, tuple[str, str]], own_ids: set[str]
) -> None:
    """Keep what others handed over, for `activity.handoffs`. `roots` maps directories to projects with their local
    roots. Raises OSError."""
    repositories: dict[str, set[str]] = {}
    for project, root in set(roots.values()):
        if worktree := find_worktree(root, home.user_dir):
            repositories.setdefault(project, set()).add(worktree.common_dir)
    kept = [
        {"repository": repository, "branch": one.branch, "session": one.session_id, "page": _safe(one.page),
         "line": _line(one)}
        for one in handoffs
        if one.session_id not in own_ids
        for repository in sorted(repositories.get(one.project, ()))
    ]  # fmt: skip
    if kept or os.path.exists(home.handoffs_file):
        write_atomically(home.handoffs_file, json.dumps(kept).encode())


def drop_handoffs(home: Home) -> None:
    """Delete what is kept. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(home.handoffs_file)


def _safe(page: str) -> str:
    """Return a page of another member without markup, but for the marks of quotations."""
    lines = [line.partition("> ") if line.startswith("> ") else (line, "", "") for line in page.split("\n")]
    return "\n".join(
        line if line == ">" else for_prompt(line) + mark + for_prompt(quoted) for line, mark, quoted in lines
    )


def _line(one: OthersHandoff) -> str:
    titles = {runtime.name: runtime.TITLE for runtime in all_runtimes()}
    given = one.title, one.who, titles.get(one.runtime, one.runtime), one.branch
    title, who, runtime, branch = [shorten(one_line(for_prompt(part)), NAME_CHARACTERS) for part in given]
    session = "".join(c for c in one.session_id if c.isalnum() or c in "._-")[:NAME_CHARACTERS]
    return (
        f'{who} ({runtime}) handed over "{title}" on branch {branch}, {local_time(one.at / 1000)}: '
        f"`{NAME} handoff {session}` prints it."
    )
