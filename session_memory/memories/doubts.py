"""What speaks against a memory by now: files that it names were changed since, or its branch is not merged.

Nothing is said where that cannot be told. Starts git: not for a prompt.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..system.branches import Branches, GitUnavailableError, ask_git
from ..system.git import USUAL_BRANCHES, Worktree, find_worktree, staged_as_they_are
from ..text.format import counted
from .format import EPISODE

if TYPE_CHECKING:
    from ..store.sqlite.memory_index import IndexedMemory

SETTLED_SECONDS = 3600  # what is written or committed so soon after is still of the same work
MOST_FILES = 20  # that a memory names
_NAMED = re.compile(r"`([^`\s]+)`|(?<![\w/.@:-])((?:[\w.@+-]+/)+[\w.@+-]*\w|[\w+-]+\.[a-z]\w{0,5})(?![\w/])")
_NO_FILE = re.compile(r"[*?<>|{}$()\[\]'\"=,;]|://|^-")


def with_doubts(memories: Sequence[IndexedMemory], user_dir: str) -> list[IndexedMemory]:
    """The memories, each with what speaks against it. A repository at the person's home directory `user_dir` or above
    does not count."""
    branches = Branches(user_dir)
    return [memory._replace(doubts=tuple(_doubts(memory, branches, user_dir))) for memory in memories]


def files_named(memory: IndexedMemory) -> tuple[list[str], list[str]]:
    """The names of files in a memory, and the paths of those that there are, from the directory that it came from on;
    none where that is not known."""
    names = _files_named(_words(memory))
    _, directory = _latest(memory)
    if not os.path.isabs(directory):
        return names, []
    paths = [os.path.normpath(os.path.join(directory, name)) for name in names]
    return names, [path for path in paths if os.path.isfile(path)]


def settled_after(memory: IndexedMemory) -> float:
    """The time in seconds since the epoch after which a change of its files speaks against a memory."""
    at, _ = _latest(memory)
    return (at or 0) / 1000 + SETTLED_SECONDS


def unmerged_branch(memory: IndexedMemory, branches: Branches, deadline: float = float("inf")) -> str:
    """The branch that a memory came from where that is not merged, '' where it is or that cannot be told. From the
    moment `deadline` of the monotonic clock on git is not asked: then every branch counts as not merged."""
    at, directory = _latest(memory)
    if at is None or not os.path.isabs(directory) or not os.path.isdir(directory):
        return ""
    branch = branches.checked_out(directory, at / 1000)
    if not branch or branch in USUAL_BRANCHES:
        return ""
    is_open = time.monotonic() > deadline or branches.is_merged(directory, branch) is False
    return branch if is_open else ""


def _latest(memory: IndexedMemory) -> tuple[int | None, str]:
    """The time of a memory's latest origin, in milliseconds since the epoch, and the directory."""
    at, *_, directory = max(memory.origins, key=lambda origin: origin[0] or 0, default=(None, "", 0, "", 0, ""))
    return at, directory


def _words(memory: IndexedMemory) -> str:
    return f"{memory.title}\n{memory.text}"


def _doubts(memory: IndexedMemory, branches: Branches, user_dir: str) -> Iterable[str]:
    at, directory = _latest(memory)
    if at is None or not os.path.isabs(directory) or not os.path.isdir(directory):
        return
    if memory.kind != EPISODE:
        changed = _changed_since(_files_named(_words(memory)), directory, at / 1000, user_dir)
        if changed:
            yield f"{counted(changed, 'file')} it names changed since"
    branch = unmerged_branch(memory, branches)
    if branch:
        yield f"on branch {branch}, not merged"


def _files_named(text: str) -> list[str]:
    """The paths that a text names, as they stand there."""
    named = [found[1] or found[2] for found in _NAMED.finditer(text)]
    return [path for path in dict.fromkeys(named) if not _NO_FILE.search(path)][:MOST_FILES]


def _changed_since(names: Iterable[str], directory: str, at: float, user_dir: str) -> int:
    """How many of the files were changed well after a time in seconds since the epoch: by their time where git does not
    know them; a commit of before that was only checked out again does not count."""
    settled = at + SETTLED_SECONDS
    worktree = find_worktree(directory, user_dir)
    roots = [directory, *([worktree.root] if worktree and worktree.root else [])]
    later, gone = set(), set()
    for name in names:
        paths = [os.path.normpath(os.path.join(root, name)) for root in roots]
        there = next((path for path in paths if os.path.isfile(path)), "")
        if there and os.stat(there).st_mtime > settled:
            later.add(there)
        elif not there:
            gone.update(paths[-1:] if worktree else [])
    if worktree is None or not worktree.root or not later | gone:
        return len(later)
    as_committed = set(staged_as_they_are(worktree, later))
    return len(later - as_committed) + len(_committed_since(worktree, as_committed | gone, settled))


def _committed_since(worktree: Worktree, paths: Iterable[str], since: float) -> set[str]:
    """Those of the files that a commit changed, or deleted, which was made after a time; none where git cannot say."""
    inside = {path[len(worktree.root) + 1 :] for path in paths if path.startswith(worktree.root + "/")}
    if not inside:
        return set()
    options = ("--format=%x01%at", "--name-only", "-z", "--no-ext-diff", "--no-textconv", f"--since={int(since)}")
    try:
        told = ask_git(worktree.git_dir, "--literal-pathspecs", "log", *options, "--", *sorted(inside))
    except GitUnavailableError:
        return set()
    found: set[str] = set()
    for commit in told.split("\x01")[1:]:
        made, *names = [part.strip("\n") for part in commit.split("\0")]
        if made.isdecimal() and int(made) > since:
            found.update(names)
    return found & inside
