"""Merges that are only tried, to tell what would conflict: of two commits, or of two worktrees with what is not
committed. Starts git: not for a prompt.

Git works in a directory of its own, with settings and attributes of its own, that only borrows the repository's
objects. So nothing is written to the repository (git may renew the time of an object that it has already), no lock is
taken, and no driver, filter, hook or remote that the repository names is used. Before git 2.38, which has `git
merge-tree --write-tree`, `git merge-file` merges file by file, and renames are not followed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from .branches import GitUnavailableError, ask_git
from .git import Worktree
from .git_objects import QUIET

MOST_CHANGED = 500  # files of a worktree that are not committed; with more it is not judged
MOST_BYTES = 8 * 1024 * 1024  # of one of them
MOST_HUNKS = 20  # of a file, that clash
_SETTINGS = "[core]\n\trepositoryformatversion = {}\n\tbare = true\n\tautocrlf = false\n{}"
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)
_OWN_DRIVERS = ("unspecified", "set", "unset", "text", "union", "binary")
_FILE = "100"  # how the mode of a file begins
_NO_SUCH_OPTION = 129  # the exit code of a git that does not know an option
_WHO = ("AUTHOR", "COMMITTER")


Hunk = tuple[tuple[int, int], tuple[int, int]]  # the first and last line of each side
Lines = tuple[int, int, int, int]  # of a hunk: the first and the one behind the last before; the first and last after


class Conflict(NamedTuple):
    """A file that does not merge: the hunks that clash, if it is text, the side that deleted it (0, 1; None), and the
    objects of both sides: as long as they stay, so does the conflict."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    deleted_by: int | None = None
    objects: tuple[str, str] = ("", "")

    @property
    def lines(self) -> Hunk:
        """Return the first hunk, (0, 0) of each side without one."""
        return self.hunks[0] if self.hunks else ((0, 0), (0, 0))


class Merges:
    """Trial merges in the repository at `common_dir`, in the new directory `directory`, for at most so many seconds."""

    def __init__(self, common_dir: str, directory: Path, seconds: float) -> None:
        self._common_dir = common_dir
        self._directory = directory
        self._end = monotonic() + seconds
        self._states: dict[str, str] = {}
        self._is_ready = False

    @property
    def is_over(self) -> bool:
        return monotonic() >= self._end

    def commit_of(self, git_dir: str, name: str) -> str:
        """Return the commit that a name stands for. Raises GitUnavailableError."""
        return ask_git(git_dir, "rev-parse", "--verify", "-q", f"{name}^{{commit}}").strip()

    def state_of(self, worktree: Worktree) -> str:
        """Return a commit with all that the tracked files of a worktree hold. Raises GitUnavailableError."""
        if worktree.root not in self._states:
            head = self.commit_of(worktree.git_dir, "HEAD")
            self._prepare(head)
            self._states[worktree.root] = self._with_changes(worktree, head)
        return self._states[worktree.root]

    def conflicts(self, one: str, other: str) -> list[Conflict]:
        """Return the files of two commits that do not merge, if they have an ancestor. Raises GitUnavailableError."""
        self._prepare(one)
        self._use_attributes(one)
        base = self._ask("merge-base", one, other, fine=(0, 1)).decode().strip()
        if not base:
            return []
        told = self._ask("merge-tree", "--write-tree", "-z", "--no-messages", one, other, fine=(0, 1, _NO_SUCH_OPTION))
        stages: dict[str, dict[str, tuple[str, str]]] = {} if told else self._stages(base, one, other)
        for line in told.split(b"\0")[1:]:
            facts, _, path = os.fsdecode(line).partition("\t")
            if path:
                mode, name, stage = facts.split(" ")
                stages.setdefault(path, {})[stage] = mode, name
        merging = self._merged_by_git(list(stages))
        found = [self._conflict(path, parts) for path, parts in stages.items() if path in merging]
        return [conflict for conflict in found if conflict is not None]

    def _stages(self, base: str, one: str, other: str) -> dict[str, dict[str, tuple[str, str]]]:
        """Return the stages of the files that do not merge, as `git merge-tree` tells them."""
        own, its = [{path: names for path, *names in self.changed_files(base, side)} for side in (one, other)]
        found = {}
        for path in sorted(own.keys() & its.keys()):
            names = [*own[path], its[path][1]]
            if names[1] != names[2] and not (all(names[1:]) and self._merges(*names)):
                found[path] = {number: (_FILE, name) for number, name in zip("123", names) if name}
        return found

    def _merges(self, base: str, one: str, other: str) -> bool:
        """Check if the changes of two sides of a file merge."""
        places = [str(self._directory / f"merged-{number}") for number in "213"]
        for place, name in zip(places, (one, base, other)):
            Path(place).write_bytes(self._ask("cat-file", "blob", name) if name else b"")
        return self._run("merge-file", "-p", "-q", *places).returncode == 0

    def texts(self, conflict: Conflict) -> tuple[list[str], list[str]]:
        """Return the lines of the file on both sides. Raises GitUnavailableError."""
        one, other = [self._ask("cat-file", "blob", name) if name else b"" for name in conflict.objects]
        return one.decode("utf-8", "replace").split("\n"), other.decode("utf-8", "replace").split("\n")

    def changed(self, commit: str, target: str) -> list[str]:
        """Return the files that `commit` changed since it left `target`. Raises GitUnavailableError."""
        base = self._ask("merge-base", commit, target, fine=(0, 1)).decode().strip()
        names = self._ask("diff-tree", "-r", "-z", "--name-only", base, commit) if base else b""
        return [os.fsdecode(name) for name in names.split(b"\0")[:-1]]

    def base_of(self, commit: str, target: str) -> str:
        """Return the common ancestor of two commits, '' without one. Raises GitUnavailableError."""
        self._prepare(commit)
        return self._ask("merge-base", commit, target, fine=(0, 1)).decode().strip()

    def blob_at(self, commit: str, path: str) -> str:
        """Return the object of a file in a commit; '' for no file, or an unknown commit. Raises GitUnavailableError."""
        self._prepare(commit)
        return self._ask("rev-parse", "-q", "--verify", f"{commit}:{path}", fine=(0, 1, 128)).decode().strip()

    def changed_files(self, base: str, commit: str) -> list[tuple[str, str, str]]:
        """Return the files that differ between two commits, with their objects, '' for none. Raises
        GitUnavailableError."""
        told = self._ask("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", base, commit).split(b"\0")
        found = []
        for fact, path in zip(told[:-1:2], told[1::2]):
            before, after, *names, _ = fact.decode().lstrip(":").split(" ")
            was, now = [name if name.strip("0") else "" for name in names]
            if (before if was else after).startswith(_FILE):
                found.append((os.fsdecode(path), was, now))
        return found

    def commits_since(self, commit: str, target: str, paths: list[str]) -> int:
        """Count the commits of `target`, not in `commit`, that touch one of the files. Raises GitUnavailableError."""
        told = self._ask("rev-list", "--count", "--no-merges", f"{commit}..{target}", "--", *paths)
        return int(told or 0)

    def _conflict(self, path: str, parts: dict[str, tuple[str, str]]) -> Conflict | None:
        """Return the conflict in a file by its stages: 1 the ancestor, 2 and 3 the sides; None for what is no file."""
        if not all(mode.startswith(_FILE) for mode, _ in parts.values()):
            return None
        base, *sides = [parts.get(stage, ("", ""))[1] for stage in "123"]
        objects = sides[0], sides[1]
        if not all(sides):
            return Conflict(path, deleted_by=sides.index(""), objects=objects) if any(sides) and base else None
        hunks = touching(self.hunks(base, sides[0]), self.hunks(base, sides[1])) if base else ()
        return Conflict(path, hunks, objects=objects)

    def hunks(self, base: str, side: str) -> list[Lines]:
        """Return the hunks between two files. Raises GitUnavailableError."""
        found = []
        options = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        for before, count, after, size in _HUNK.findall(self._ask("diff", "-U0", *options, base, side)):
            start, length, at = int(before), int(count or 1), int(after)
            start += not length  # an insertion stands behind the line that is named
            found.append((start, start + length, at, at + max(1, int(size or 1)) - 1))
        return found

    def _with_changes(self, worktree: Worktree, head: str) -> str:
        """Return a commit on `head` with the files of a worktree as they are, `head` itself if none has changed."""
        if not os.path.isfile(f"{worktree.git_dir}/index"):
            return head
        for name in os.listdir(worktree.git_dir):
            if name == "index" or name.startswith("sharedindex."):
                shutil.copyfile(f"{worktree.git_dir}/{name}", self._directory / name)
        options = ("-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
        place = {"GIT_INDEX_FILE": str(self._directory / "index"), "GIT_WORK_TREE": worktree.root}
        told = self._ask("diff-index", *options, head, extra=place)
        facts, names = told.split(b"\0")[:-1:2], told.split(b"\0")[1::2]
        if len(names) > MOST_CHANGED:
            raise GitUnavailableError(f"{worktree.root}: more than {MOST_CHANGED} files are not committed")
        lines = []
        for fact, path in zip(facts, names):
            before, after, was, _, status = fact.decode().lstrip(":").split(" ")
            if not (before if status == "D" else after).startswith(_FILE):
                continue
            if status == "D":
                lines.append(b"0 %s\t%s" % (b"0" * len(head), path))
            else:
                made = self._stored(os.path.join(os.fsencode(worktree.root), path), was)
                lines += [b"%s %s\t%s" % (after.encode(), made.encode(), path)] if made else []
        if not lines:
            return head
        with_index = {"GIT_INDEX_FILE": str(self._directory / "trial-index")}
        self._ask("read-tree", head, extra=with_index)
        self._ask("update-index", "-z", "--index-info", given=b"\0".join(lines) + b"\0", extra=with_index)
        tree = self._ask("write-tree", extra=with_index).decode().strip()
        return self._ask("commit-tree", tree, "-p", head, "-m", "trial").decode().strip()

    def _stored(self, path: bytes, before: str) -> str:
        """Store a file as an object and return its name, '' if it cannot be read or is large. Its line ends are those
        of the object `before`: git may have changed them as it was checked out."""
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
                return ""
            content = file.read(MOST_BYTES + 1)
        if b"\r\n" in content and before.strip("0") and b"\r\n" not in self._ask("cat-file", "blob", before):
            content = content.replace(b"\r\n", b"\n")
        whole = b"blob %d\0" % len(content) + content
        name = (hashlib.sha256 if len(before) == 64 else hashlib.sha1)(whole).hexdigest()
        place = self._directory / "objects" / name[:2] / name[2:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole, 1))
        return name

    def _merged_by_git(self, paths: list[str]) -> set[str]:
        """Return the files that git itself merges: what a driver of the repository would make of others is unknown."""
        if not paths:
            return set()
        told = self._ask("check-attr", "-z", "--stdin", "merge", given=os.fsencode("\0".join(paths)))
        fields = [os.fsdecode(field) for field in told.split(b"\0")]
        return {path for path, value in zip(fields[::3], fields[2::3]) if value in _OWN_DRIVERS}

    def _use_attributes(self, commit: str) -> None:
        """Let the attributes be those of a commit: of its root, and of the repository."""
        given = self._ask("cat-file", "blob", f"{commit}:.gitattributes", fine=(0, 128))
        try:
            given += b"\n" + Path(self._common_dir, "info/attributes").read_bytes()
        except OSError:
            pass
        (self._directory / "info/attributes").write_bytes(given)

    def _prepare(self, commit: str) -> None:
        if self._is_ready:
            return
        for name in ("objects/info", "refs", "info"):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        is_long = len(commit) == 64
        (self._directory / "config").write_text(_SETTINGS.format(int(is_long), _SHA256 if is_long else ""))
        (self._directory / "HEAD").write_text("ref: refs/heads/none\n")
        objects = os.path.join(self._common_dir, "objects")
        if "\n" in objects or objects.startswith('"'):
            raise GitUnavailableError(f"{objects}: this name cannot be borrowed from")
        (self._directory / "objects/info/alternates").write_bytes(os.fsencode(objects) + b"\n")
        shallow = Path(self._common_dir, "shallow")
        if shallow.is_file():
            shutil.copyfile(shallow, self._directory / "shallow")
        self._is_ready = True

    def _ask(
        self, *arguments: str, given: bytes = b"", fine: tuple[int, ...] = (0,), extra: Mapping[str, str] | None = None
    ) -> bytes:
        """Return the output of git; '' for an exit code that is `fine` and above 1. Raises GitUnavailableError."""
        done = self._run(*arguments, given=given, extra=extra)
        if done.returncode not in fine:
            said = done.stderr.decode(errors="replace").strip()
            raise GitUnavailableError(f"git {arguments[0]}: {said or f'exit code {done.returncode}'}")
        return done.stdout if done.returncode in (0, 1) else b""

    def _run(
        self, *arguments: str, given: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {
            **QUIET, "GIT_DIR": str(self._directory), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1", "HOME": str(self._directory), "XDG_CONFIG_HOME": str(self._directory),
            **{f"GIT_{who}_{what}": "trial@localhost" for who in _WHO for what in ("NAME", "EMAIL")}, **(extra or {}),
        }  # fmt: skip
        command = ["git", "--no-pager", "--no-replace-objects", "--literal-pathspecs", *arguments]
        try:
            return subprocess.run(
                command, input=given, env=environment, cwd=self._directory, capture_output=True,
                timeout=max(0.01, self._end - monotonic()),
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitUnavailableError(f"git {arguments[0]}: {error}") from error


def touching(own: Sequence[Lines], other: Sequence[Lines]) -> tuple[Hunk, ...]:
    """Return the lines on both sides whose changes of the same file touch each other, the first MOST_HUNKS."""
    found: list[Hunk] = []
    first = 0
    for start, end, *lines in own:
        while first < len(other) and other[first][1] < start:
            first += 1
        for begin, _, *others in other[first:]:
            if begin > end or len(found) == MOST_HUNKS:
                break
            found.append(((lines[0], lines[1]), (others[0], others[1])))
    return tuple(found)
