"""Commits and staged files that git still has, but nothing refers to.

No branch, tag, stash or worktree leads to them any more. It starts git, so prompts never use it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from ...common.system.files import read_whole
from ...common.system.git import Worktree, head_of, is_commit, ref_moves, worktrees_of
from ...common.system.git_process import GitUnavailableError, ask_git
from ...common.system.git_refs import STASH_REF, short_id

SECONDS = 20.0  # for one question: a person waits
DAYS = 14  # after which git may remove such objects
MOST_COMMITS = 50
MOST_FILES = 200
LARGEST_FILE = 4 * 1024 * 1024
BRANCHES = "rescue/"
# A rewritten commit keeps the original's author and time, and its subject or its files.
_KEYS = "%at %ae%x00%T%x00%s"
_FORMAT = f"%H%x00%ct%x00{_KEYS}"
_NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--no-color")
_STASHED_BY_REBASE = ("rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH")


class LostCommit(NamedTuple):
    """A commit, and when it was made, in seconds since the epoch."""

    id: str
    at: float
    subject: str


class LostFile(NamedTuple):
    """A staged file, and the time of staging in seconds since the epoch (0.0 if unknown)."""

    id: str
    at: float
    content: bytes


class LostObjects:
    """The lost objects of the repository of `worktree`. The methods raise GitUnavailableError."""

    def __init__(self, worktree: Worktree) -> None:
        self._git_dir = worktree.git_dir
        self._common_dir = worktree.common_dir
        self.worktrees = worktrees_of(worktree.common_dir)
        self._dangling: dict[str, list[str]] | None = None
        self._heads: list[str] | None = None

    def commits(self) -> list[LostCommit]:
        """Return the latest commit of each lost line of history, the newest first.

        Commits that `commit --amend` or `rebase` replaced are left out, because their work is not
        lost."""
        dangling = self._find()
        ids = dangling["commit"] + [
            self._ask("rev-parse", "--verify", "-q", f"{tag}^{{commit}}", fine=True).strip()
            for tag in dangling["tag"]
        ]
        since = f"--since={int(time.time()) - DAYS * 86400}"
        again: set[str] = set()
        for line in self._ask("log", "--all", since, f"--format={_KEYS}").split("\n"):
            again |= _keys(line)
        return [
            LostCommit(id, at, subject)
            for id, at, subject, keys in self._described([id for id in ids if id])
            if not keys & again and not self.is_reachable(id)
        ][:MOST_COMMITS]

    def described(self, id: str) -> LostCommit | None:
        """Return a commit; None if git has it no more."""
        commits = self._described([id]) if self._kind(id) == "commit" else []
        return LostCommit(*commits[0][:3]) if commits else None

    def is_reachable(self, id: str) -> bool:
        """Check if a ref, a stash or the HEAD of a worktree leads to a commit."""
        heads = self._commit_heads()
        return not self._ask("rev-list", "--max-count=1", id, "--not", "--all", *heads).strip()

    def files(self) -> list[LostFile]:
        """Return the files that were staged and are in no commit and no index, the newest first."""
        staged = {
            line.split(" ")[1]
            for worktree in self.worktrees
            for line in ask_git(
                worktree.git_dir, "ls-files", "--stage", "-z", is_failure_fine=True, seconds=SECONDS
            ).split("\0")[:-1]
        }
        times = {id: self._time_of(id) for id in self._find()["blob"] if id not in staged}
        newest = sorted(times, key=lambda id: -times[id])[:MOST_FILES]
        contents = self.contents(newest)
        return [LostFile(id, times[id], contents[id]) for id in newest if id in contents]

    def versions(self, paths: Iterable[str], lost: Iterable[str] = ()) -> dict[str, set[str]]:
        """Return the known versions of `paths`, as ids of git objects, by path.

        Paths are relative to the root. The versions come from recent commits, stashes, checked-out
        commits and the `lost` commits."""
        versions: dict[str, set[str]] = {path: set() for path in paths}
        if not versions:
            return versions
        since = f"--since={int(time.time()) - DAYS * 86400}"
        raw = ("--raw", "--no-abbrev", "-z", "-m", "--root", "--no-renames", "--format=")
        commits = [*self._commit_heads(), *lost]
        fields = self._ask("log", "--all", since, *raw, *commits).split("\0")
        for number, place in enumerate(fields[:-1]):
            path = fields[number + 1]
            if path in versions and place.lstrip("\n").startswith(":"):
                versions[path].add(place.split(" ")[3])
        for head in ("HEAD", *self._commit_heads()):
            answer = self._ask("ls-tree", "-r", "-z", head, fine=True)
            for line in answer.split("\0"):
                about, _, path = line.partition("\t")
                if path in versions:
                    versions[path].add(about.split(" ")[2])
        return versions

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Return the contents of the files with these object ids, except missing and large ones."""
        checked = self._ask("cat-file", "--batch-check", given="".join(f"{id}\n" for id in ids))
        small = [
            fields[0]
            for fields in map(str.split, checked.splitlines())
            if fields[1:2] == ["blob"] and int(fields[2]) <= LARGEST_FILE
        ]
        answer = self._ask("cat-file", "--batch", given="".join(f"{id}\n" for id in small))
        answers, at, contents = answer.encode("utf-8", "surrogateescape"), 0, {}
        while at < len(answers):
            line_end = answers.index(b"\n", at)
            id, _, size = answers[at:line_end].decode().split()
            at = line_end + 1 + int(size)
            contents[id] = answers[line_end + 1 : at]
            at += 1
        return contents

    def diff(self, id: str) -> str:
        """Return the changes of a commit and of its lost ancestors as a diff.

        The diff of a stash includes its untracked files."""
        options = ("-p", "-m", "--first-parent", "--root", "--reverse", *_NO_PROGRAMS)
        changes = self._ask("log", *options, "--format=commit %h %s", id, "--not", "--all")
        untracked = self._ask("rev-parse", "--verify", "-q", f"{id}^3", fine=True).strip()
        if untracked:
            changes += self._ask("show", "--root", "--format=", *_NO_PROGRAMS, untracked)
        return changes

    def make_branch(self, id: str) -> str:
        """Make a branch with a new name at a commit, and return the name."""
        for length in (len(short_id(id)), 12, len(id)):
            name = f"{BRANCHES}{id[:length]}"
            ref, none = f"refs/heads/{name}", "0" * len(id)
            if not self._ask("rev-parse", "--verify", "-q", ref, fine=True).strip():
                message = "branch: rescued by session-memory"
                self._ask("update-ref", "--create-reflog", "-m", message, ref, id, none)
                return name
        raise GitUnavailableError(f"the branches {BRANCHES}{short_id(id)}... already exist")

    def _described(self, ids: list[str]) -> list[tuple[str, float, str, set[str]]]:
        """Return each commit with its time, its subject and its keys.

        A rewritten commit has at least one key in common with its original."""
        if not ids:
            return []
        answer = self._ask(
            "log", "--no-walk=sorted", "--stdin", f"--format={_FORMAT}", given="\n".join(ids)
        )
        fields = [line.split("\0", 2) for line in answer.split("\n") if line]
        return [(id, float(at), keys.rpartition("\0")[2], _keys(keys)) for id, at, keys in fields]

    def _find(self) -> dict[str, list[str]]:
        if self._dangling is None:
            options = ("--no-reflogs", "--connectivity-only", "--no-progress", "--dangling")
            answer = self._ask("fsck", *options, fine=True)
            self._dangling = {"commit": [], "blob": [], "tag": []}
            for line in answer.splitlines():
                state, kind, id = [*line.split(" "), "", ""][:3]
                if state == "dangling" and kind in self._dangling:
                    self._dangling[kind].append(id)
        return self._dangling

    def _commit_heads(self) -> list[str]:
        """Return the commits that git needs but `--all` does not cover.

        These are the stashes, the HEAD of each worktree, and the stashes of running rebases."""
        if self._heads is None:
            heads = {move.after for move in ref_moves(self._common_dir, STASH_REF)}
            for worktree in self.worktrees:
                heads.add(head_of(worktree.git_dir))
                for name in _STASHED_BY_REBASE:
                    with suppress(OSError):
                        heads.add(read_whole(f"{worktree.git_dir}/{name}", 100).decode().strip())
            commits = [head for head in heads if is_commit(head)]
            self._heads = [head for head in commits if self._kind(head) == "commit"]
        return self._heads

    def _kind(self, id: str) -> str:
        return self._ask("cat-file", "-t", id, fine=True).strip()

    def _time_of(self, id: str) -> float:
        try:
            return os.stat(f"{self._common_dir}/objects/{id[:2]}/{id[2:]}").st_mtime
        except OSError:
            return 0.0

    def _ask(self, *arguments: str, given: str = "", fine: bool = False) -> str:
        return ask_git(
            self._git_dir, *arguments, given=given, is_failure_fine=fine, seconds=SECONDS
        )


def _keys(line: str) -> set[str]:
    """Return the keys in a line of the format _KEYS."""
    author, _, others = line.partition("\0")
    tree, _, subject = others.partition("\0")
    return {f"{author} tree {tree}", f"{author} subject {subject}"}
