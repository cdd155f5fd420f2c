"""Stashes, branches and worktrees of a repository, read from its files without starting git.

All worktrees of the repository share them. If it stores its refs in a table (reftable), only its
worktrees are known.
"""

from __future__ import annotations

from . import files
from .git import BRANCH_REFS, HeadMove, head_of, is_commit, ref_moves, worktrees_of

STASH, BRANCH, WORKTREE = "stash", "branch", "worktree"
STASH_REF = "refs/stash"
MOST_BRANCHES = 1000  # each may be a file to read
PACKED_BYTES = 4 * 1024 * 1024
SHORT_COMMIT = 7  # characters
# The beginnings of git's messages about a branch that continued from its commit, or that has the
# same changes in other commits.
_FORWARD = ("commit", "revert", "cherry-pick", "am:", "rebase", "pull --rebase", "branch: renamed")
_FAST_FORWARD = ("Fast-forward", "fast-forward")


class SharedRef:
    """A stash, branch or worktree (`kind`) with its `commit`.

    A stash has the `time` of its creation, in seconds since the epoch, and git's message as `text`.
    A branch has its `name`. A worktree has git's `name` for it, its directory as `text`, the
    checked-out `branch` ('' for none), and the `time` of its creation."""

    def __init__(
        self, kind: str, name: str, commit: str, text: str = "", branch: str = "", time: float = 0.0
    ) -> None:
        self.kind = kind
        self.name = name
        self.commit = commit
        self.text = text
        self.branch = branch
        self.time = time

    @property
    def key(self) -> str:
        """Identify the ref in its repository."""
        return f"{self.kind} {self.commit if self.kind == STASH else self.name}"

    def dump(self) -> list[object]:
        """Return the fields, to be stored."""
        return [self.kind, self.name, self.commit, self.text, self.branch, self.time]


def shared_refs(common_dir: str) -> list[SharedRef]:
    """Return the stashes, the newest first, then the branches and the worktrees."""
    stashes = [
        SharedRef(STASH, STASH_REF, move.after, move.message, time=float(move.time))
        for move in reversed(ref_moves(common_dir, STASH_REF))
    ]
    tips = _branch_tips(common_dir)
    branches = [SharedRef(BRANCH, name, commit) for name, commit in sorted(tips.items())]
    worktrees = []
    for worktree in worktrees_of(common_dir):
        if worktree.git_dir != common_dir:
            head = head_of(worktree.git_dir)
            branch = "" if is_commit(head) else head
            made = files.status_at(worktree.git_dir + "/commondir")
            ref = SharedRef(WORKTREE, worktree.name, tips.get(branch, head), worktree.root, branch)
            ref.time = made.st_mtime if made else 0.0
            worktrees.append(ref)
    return stashes + branches + worktrees


def short_id(commit: str) -> str:
    """Return the beginning of a commit id, longer if it has only digits.

    `git stash` would take a few digits for the number of a stash."""
    length = SHORT_COMMIT
    while commit[:length].isdigit() and length < len(commit):
        length += 1
    return commit[:length]


def _branch_tips(common_dir: str) -> dict[str, str]:
    """Return the commits of at most MOST_BRANCHES branches, by their names."""
    tips: dict[str, str] = {}
    try:
        packed = files.read_whole(common_dir + "/packed-refs", PACKED_BYTES)
    except OSError:
        packed = b""
    if BRANCH_REFS.encode() in packed:
        for line in packed.decode("utf-8", "surrogateescape").split("\n"):
            commit, _, name = line.partition(" ")
            if name.startswith(BRANCH_REFS) and len(tips) < MOST_BRANCHES:
                tips[name[len(BRANCH_REFS) :]] = commit
    for name in _loose(common_dir + "/" + BRANCH_REFS.rstrip("/")):
        commit = _content(f"{common_dir}/{BRANCH_REFS}{name}")
        if commit:
            tips[name] = commit
    return tips


def went_on(common_dir: str, branch: str, before: str, after: str) -> bool:
    """Check by a branch's log that it lost no commits between `before` and `after`.

    It only continued from there, or its commits were rewritten. Without a log it may have lost
    some."""
    moves: list[HeadMove] = []
    for move in reversed(ref_moves(common_dir, BRANCH_REFS + branch)):
        if not moves and move.after != after:
            return False
        moves.append(move)
        if move.before == before:
            return all([_is_forward(move) for move in moves])
    return False


def _is_forward(move: HeadMove) -> bool:
    return move.message.startswith(_FORWARD) or move.message.endswith(_FAST_FORWARD)


def _loose(directory: str) -> list[str]:
    """Return the names of the branches with a file of their own, as paths below `directory`."""
    names: list[str] = []
    below = [""]
    while below and len(names) < MOST_BRANCHES:
        place = below.pop()
        for name in files.names_in(f"{directory}/{place}".rstrip("/")):
            path = f"{place}{name}"
            if files.is_directory(f"{directory}/{path}"):
                below.append(path + "/")
            elif not name.endswith(".lock"):
                names.append(path)
    return names


def _content(path: str) -> str:
    """Return the commit in a branch's file; '' if it has none or names another ref."""
    try:
        text = files.read_whole(path, 4096).decode("ascii", "replace").strip()
    except OSError:
        return ""
    return text if is_commit(text) else ""
