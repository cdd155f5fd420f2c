"""Branches: which one was checked out at a time, and whether it is merged.

It starts git, so prompts never use it.
"""

from __future__ import annotations

import os

from ...common.system.git import (
    USUAL_BRANCHES,
    HeadMove,
    Worktree,
    find_worktree,
    head_moves,
    head_of,
    is_commit,
)
from ...common.system.git_process import GitUnavailableError, ask_git

# of the commits that touch a branch's files, so many are compared with the branch
MOST_COMMITS = 200


class Branches:
    """The branches of repositories, with cached answers.

    Directories at `user_dir`, the person's home directory, or above it are not repositories."""

    def __init__(self, user_dir: str = "") -> None:
        self._user_dir = user_dir
        self._is_merged: dict[tuple[str, str], bool | None] = {}
        self._moves: dict[str, list[HeadMove]] = {}

    def checked_out(self, directory: str, time: float) -> str:
        """Return the branch that was checked out in a directory's worktree at a time.

        The log of HEAD decides. Return '' if no branch was checked out or it is unknown."""
        worktree = self._worktree(directory)
        if worktree is None:
            return ""
        git_dir = worktree.git_dir
        moves = self._moves[git_dir] = (
            self._moves[git_dir] if git_dir in self._moves else head_moves(git_dir, 0.0)
        )
        if not moves or time < moves[0].time:
            return ""
        switches = [(move.time, move.branches) for move in moves if move.branches]
        later = [branches[0] for when, branches in switches if branches and when > time]
        head = later[0] if later else head_of(worktree.git_dir)
        return "" if is_commit(head) else head

    def is_merged(self, directory: str, branch: str) -> bool | None:
        """Check if all of a branch is in the default branch of its repository.

        It is if the default branch has its commits, the same number of commits with the same
        changes, or one commit with all of them. Return None if either branch is missing or git
        cannot be run."""
        worktree = self._worktree(directory)
        if worktree is None:
            return None
        key = worktree.common_dir, branch
        if key not in self._is_merged:
            try:
                self._is_merged[key] = _is_merged(worktree.common_dir, branch)
            except GitUnavailableError:
                self._is_merged[key] = None
        return self._is_merged[key]

    def _worktree(self, directory: str) -> Worktree | None:
        """Return the worktree of a directory.

        Return None for a deleted directory, because another repository may contain its path."""
        return find_worktree(directory, self._user_dir) if os.path.isdir(directory) else None


def _is_merged(git_dir: str, branch: str) -> bool | None:
    tip = f"refs/heads/{branch}"
    name, targets = default_branch(git_dir)
    if not targets or tip not in _refs(git_dir, tip):
        return None
    is_ancestor = any(
        not ask_git(git_dir, "rev-list", "-n", "1", tip, f"^{target}").strip() for target in targets
    )
    return (
        branch == name
        or is_ancestor
        or any(_has_its_changes(git_dir, tip, target) for target in targets)
    )


def default_branch(git_dir: str) -> tuple[str, list[str]]:
    """Return the name of the default branch and its refs: `origin`'s, else a usual one."""
    cloned = ask_git(
        git_dir, "symbolic-ref", "-q", "refs/remotes/origin/HEAD", is_failure_fine=True
    ).strip()
    name = cloned.removeprefix("refs/remotes/origin/")
    if not name:
        there = _refs(git_dir, *[f"refs/heads/{usual}" for usual in USUAL_BRANCHES])
        name = next((usual for usual in USUAL_BRANCHES if f"refs/heads/{usual}" in there), "")
    return name, _refs(git_dir, f"refs/heads/{name}", f"refs/remotes/origin/{name}") if name else []


def _refs(git_dir: str, *names: str) -> list[str]:
    """Return the refs of `names` that exist."""
    return [
        ref
        for ref in ask_git(git_dir, "for-each-ref", "--format=%(refname)", *names).split()
        if ref in names
    ]


def _has_its_changes(git_dir: str, tip: str, target: str) -> bool:
    """Check if `target` has the same changes as `tip`, in as many commits or in one.

    As many commits result from a rebase, one from a squash."""
    base = ask_git(git_dir, "merge-base", tip, target, is_failure_fine=True).strip()
    if not base:
        return False
    own_patches = [
        line
        for line in ask_git(git_dir, "cherry", target, tip).splitlines()
        if line.startswith("+")
    ]
    if not own_patches:
        return True
    options = ("--no-ext-diff", "--no-textconv", "--no-color")
    whole = ask_git(git_dir, "diff", *options, base, tip)
    paths = ask_git(git_dir, "diff", "--name-only", "-z", *options, base, tip).split("\0")[:-1]
    if not paths:
        return True
    commits = ask_git(
        git_dir,
        "--literal-pathspecs",
        "log",
        "-p",
        "--no-merges",
        f"--max-count={MOST_COMMITS}",
        "--full-diff",
        *options,
        f"{base}..{target}",
        "--",
        *paths[:MOST_COMMITS],
    )
    return bool(_patch_ids(git_dir, whole) & _patch_ids(git_dir, commits))


def _patch_ids(git_dir: str, patches: str) -> set[str]:
    patch_lines = ask_git(git_dir, "patch-id", "--stable", given=patches).splitlines()
    return {line.partition(" ")[0] for line in patch_lines}
