"""Evidence against a memory: its files changed since, or its branch is not merged.

When unsure, reports nothing. Starts git, so a prompt must not use it."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..common.system.git import USUAL_BRANCHES, Worktree, find_worktree
from ..common.system.git_objects import GitIndex
from ..common.system.git_process import GitUnavailableError, ask_git
from ..common.text.format import counted
from ..history.git.branches import Branches
from .format import EPISODE
from .memory_index import IndexedMemory, Origin

SETTLED_SECONDS = 3600  # a change within the hour belongs to the same work
MOST_FILES = 20  # named in one memory
MOST_ASKED = 500  # files in one git command: a command line has a limit
_NAMED = re.compile(
    r"`([^`\s]+)`|(?<![\w/.@:-])((?:[\w.@+-]+/)+[\w.@+-]*\w|[\w+-]+\.[a-z]\w{0,5})(?![\w/])"
)
_NO_FILE = re.compile(r"[*?<>|{}$()\[\]'\"=,;]|://|^-")


class _NamedFiles(NamedTuple):
    """Files named in a memory that may have changed.

    `changed` have a newer time on disk; `asked` must be looked up with git, in their worktree. Both
    count changes after a time in seconds since 1970."""

    since: float
    changed: set[str]
    asked: set[str]
    worktree: Worktree | None


def with_doubts(memories: Sequence[IndexedMemory], user_dir: str) -> list[IndexedMemory]:
    """Return the memories with the evidence against each.

    Ignores a repository at `user_dir` or above it. Runs git once for each repository."""
    branches = Branches(user_dir)
    named = [_named(memory, user_dir) for memory in memories]
    commits = _latest_commits([files for files in named if files.asked])
    return [
        memory._replace(doubts=tuple(_doubts(memory, files, commits, branches)))
        for memory, files in zip(memories, named)
    ]


def files_named(memory: IndexedMemory) -> tuple[list[str], list[str]]:
    """Return the file names in a memory, and the existing paths relative to its directory.

    Return empty lists if the directory is unknown."""
    names = _files_named(memory.whole_text)
    _, directory = _latest(memory)
    if not os.path.isabs(directory):
        return names, []
    paths = [os.path.normpath(os.path.join(directory, name)) for name in names]
    return names, [path for path in paths if os.path.isfile(path)]


def settled_after(memory: IndexedMemory) -> float:
    """Return the time after which a changed file is evidence against a memory.

    It is in seconds since 1970."""
    at, _ = _latest(memory)
    return (at or 0) / 1000 + SETTLED_SECONDS


def unmerged_branch(
    memory: IndexedMemory, branches: Branches, deadline: float = float("inf")
) -> str:
    """Return the memory's branch if it is not merged; '' if it is merged or unknown.

    After `deadline` on the monotonic clock, git is not asked and every branch counts as not
    merged."""
    at, directory = _latest(memory)
    if at is None or not os.path.isabs(directory) or not os.path.isdir(directory):
        return ""
    branch = branches.checked_out(directory, at / 1000)
    is_usual = not branch or branch in USUAL_BRANCHES
    is_open = not is_usual and (
        time.monotonic() > deadline or branches.is_merged(directory, branch) is False
    )
    return branch if is_open else ""


def _latest(memory: IndexedMemory) -> tuple[int | None, str]:
    """Return the time (milliseconds since 1970) and directory of a memory's latest origin."""
    latest = max(memory.origins, key=lambda origin: origin.at or 0, default=Origin(None, "", 0, ""))
    return latest.at, latest.directory


def _doubts(
    memory: IndexedMemory,
    files: _NamedFiles,
    commits: dict[tuple[str, str], int],
    branches: Branches,
) -> Iterator[str]:
    git_dir = files.worktree.git_dir if files.worktree else ""
    committed = [path for path in files.asked if commits.get((git_dir, path), 0) > files.since]
    changed = len(files.changed) + len(committed)
    if changed:
        yield f"{counted(changed, 'file')} it names changed since"
    branch = unmerged_branch(memory, branches)
    if branch:
        yield f"on branch {branch}, not merged"


def _files_named(text: str) -> list[str]:
    """Return the paths in a text, as written."""
    named = [match[1] or match[2] for match in _NAMED.finditer(text)]
    return [path for path in dict.fromkeys(named) if not _NO_FILE.search(path)][:MOST_FILES]


def _named(memory: IndexedMemory, user_dir: str) -> _NamedFiles:
    """Return the files of a memory that changed well after it.

    Files that git tracks or that are gone are left to git, because checking out an old commit
    changes a file's time too."""
    at, directory = _latest(memory)
    settled = settled_after(memory)
    if (
        at is None
        or memory.kind == EPISODE
        or not os.path.isabs(directory)
        or not os.path.isdir(directory)
    ):
        return _NamedFiles(settled, set(), set(), None)
    worktree = find_worktree(directory, user_dir)
    roots = [directory, *([worktree.root] if worktree and worktree.root else [])]
    later, gone = set(), set()
    for name in _files_named(memory.whole_text):
        paths = [os.path.normpath(os.path.join(root, name)) for root in roots]
        there = next((path for path in paths if os.path.isfile(path)), "")
        if there and os.stat(there).st_mtime > settled:
            later.add(there)
        elif not there:
            gone.update(paths[-1:] if worktree else [])
    if worktree is None or not worktree.root or not later | gone:
        return _NamedFiles(settled, later, set(), None)
    as_committed = set(GitIndex(worktree).as_they_are(later))
    to_ask_git = {path for path in as_committed | gone if path.startswith(worktree.root + "/")}
    return _NamedFiles(settled, later - as_committed, to_ask_git, worktree)


def _latest_commits(named: Iterable[_NamedFiles]) -> dict[tuple[str, str], int]:
    """Return the time of each file's last commit that changed or deleted it, by repository, path.

    Leaves out a repository if git fails."""
    by_worktree: dict[str, list[_NamedFiles]] = {}
    for files in named:
        if files.worktree:
            by_worktree.setdefault(files.worktree.git_dir, []).append(files)
    times: dict[tuple[str, str], int] = {}
    for git_dir, of_it in by_worktree.items():
        root = of_it[0].worktree.root if of_it[0].worktree else ""
        paths = sorted({path[len(root) + 1 :] for files in of_it for path in files.asked})
        since = int(min(files.since for files in of_it))
        for at in range(0, len(paths), MOST_ASKED):
            for name, made in _commits(git_dir, paths[at : at + MOST_ASKED], since):
                key = git_dir, f"{root}/{name}"
                times[key] = max(made, times.get(key, 0))
    return times


def _commits(git_dir: str, paths: Sequence[str], since: int) -> Iterator[tuple[str, int]]:
    """Yield the paths that commits since a time changed, each with the commit's time.

    Yield nothing if git fails."""
    options = (
        "--format=%x01%at",
        "--name-only",
        "-z",
        "--no-ext-diff",
        "--no-textconv",
        f"--since={since}",
    )
    try:
        log = ask_git(git_dir, "--literal-pathspecs", "log", *options, "--", *paths)
    except GitUnavailableError:
        return
    for commit in log.split("\x01")[1:]:
        made, *names = [part.strip("\n") for part in commit.split("\0")]
        if made.isdecimal():
            yield from [(name, int(made)) for name in names]
