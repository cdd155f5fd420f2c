"""Trial merges of two commits or two worktrees, to find conflicts.

They include a worktree's uncommitted changes. They start git, so prompts never use them. Git works
in a separate directory, with its own settings and attributes, and only borrows the repository's
objects. So nothing is written to the repository (git may renew the time of an existing object), no
lock is taken, and no driver, filter, hook or remote of the repository is used. Git before 2.38
lacks `git merge-tree --write-tree`. There, and if a partial clone lacks objects, `git merge-file`
merges file by file, without following renames.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from time import monotonic
from typing import NamedTuple

from ...common.system.files import expanded, read_whole
from ...common.system.git import Worktree
from ...common.system.git_directories import TRIAL_HEAD
from ...common.system.git_process import (
    GitUnavailableError,
    TrialPlace,
    ask_git,
    ask_person,
    format_of,
    run,
    settings_text,
    usual_path,
)

# uncommitted files of a worktree that others changed too; with more, it is not judged
MOST_CHANGED = 500
MOST_BYTES = 8 * 1024 * 1024  # of one of them
MOST_HUNKS = 20  # of a file, that clash
_ATTRIBUTES_BYTES = 1024 * 1024
_USUAL = "\tbare = false\n\tquotePath = false\n\tautocrlf = input\n\tsafecrlf = false\n"
# Settings of the person and the repository that change how git merges; their values are words or
# numbers.
_MERGING = (
    "merge.renames",
    "merge.renamelimit",
    "merge.directoryrenames",
    "merge.renormalize",
    "diff.renames",
    "diff.renamelimit",
)
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)
_OWN_DRIVERS = ("unspecified", "set", "unset", "text", "union", "binary")
_FILE = "100"  # how the mode of a file begins
_LINK, _MODULE = "120000", "160000"
_NO_SUCH_OPTION = 129  # the exit code of a git that does not know an option
_FATAL = 128
# kinds of conflict that a driver could solve
_CONTENTS = ("CONFLICT (contents)", "CONFLICT (binary)")
# in the names of conflicts for which git refuses a merge even without a file in several stages
_OF_FOLDERS = "directory rename"
_WHO = ("AUTHOR", "COMMITTER")


Hunk = tuple[tuple[int, int], tuple[int, int]]  # the first and last line of each side
# a hunk: the first line and the line after the last before the change, then the first and last
# after
Lines = tuple[int, int, int, int]
# mode and object by stage: 1 is the ancestor, 2 and 3 are the sides
Stages = dict[str, tuple[str, str]]


class Change(NamedTuple):
    """A file of a worktree that differs from its HEAD.

    It has git's letter for the change, the current mode ('' if the file is gone), the object in
    HEAD ('' if none), and the object in the index, if the file has not changed since it was added.
    """

    path: str
    status: str
    mode: str
    before: str
    staged: str


class Conflict(NamedTuple):
    """A file that does not merge.

    It has the clashing hunks of a text, the side that deleted it (0 or 1, else None), and the
    objects of both sides. The conflict stays the same while these objects do."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    deleted_by: int | None = None
    objects: tuple[str, str] = ("", "")

    @property
    def lines(self) -> Hunk:
        """Return the first hunk; without one, (0, 0) for each side."""
        return self.hunks[0] if self.hunks else ((0, 0), (0, 0))


class Merges:
    """Trial merges in the repository at `common_dir`, in the new directory `directory`.

    They take at most `seconds`. `left_out` are the files that the last call could not judge,
    because objects are missing here."""

    def __init__(self, common_dir: str, directory: Path, seconds: float) -> None:
        self._common_dir = common_dir
        self._directory = directory
        self._end = monotonic() + seconds
        self._changes: dict[str, list[Change]] = {}
        self._states: dict[str, str] = {}
        self._with_attributes_of = ""
        self._is_ready = self._has_long_names = False
        self._line_ends: dict[str, str] = {}
        self.left_out: list[str] = []

    @property
    def is_over(self) -> bool:
        return monotonic() >= self._end

    def commit_of(self, git_dir: str, name: str) -> str:
        """Return the commit that a name refers to. Raises GitUnavailableError."""
        return ask_git(git_dir, "rev-parse", "--verify", "-q", f"{name}^{{commit}}").strip()

    def changes_of(self, worktree: Worktree) -> list[Change]:
        """Return the tracked files of a worktree that differ from its HEAD.

        Raises GitUnavailableError."""
        if worktree.root not in self._changes:
            head = self.commit_of(worktree.git_dir, "HEAD")
            self._prepare(head)
            is_empty = not os.path.isfile(f"{worktree.git_dir}/index")
            self._changes[worktree.root] = (
                [] if is_empty else list(self._changed_in(worktree, head))
            )
        return self._changes[worktree.root]

    def wanted(self, worktree: Worktree, others: Iterable[tuple[str, set[str]]]) -> set[str]:
        """Return the files of a worktree whose text decides if it merges with others.

        Each of `others` is a commit and its uncommitted files. The result is the files that both
        sides changed, and if one of them is gone here, the added files that it may have been
        renamed to. Raises GitUnavailableError."""
        changes = self.changes_of(worktree)
        head = self.commit_of(worktree.git_dir, "HEAD")
        names: set[str] = set()
        for other, uncommitted in others if changes else ():
            theirs = self._since(head, other).keys() | uncommitted
            ours = {
                **self._since(other, head),
                **{change.path: change.status for change in changes},
            }
            names |= theirs
            if any(status == "D" and path in theirs for path, status in ours.items()):
                names |= {path for path, status in ours.items() if status == "A"}
        return names

    def _since(self, commit: str, other: str) -> dict[str, str]:
        """Return the files that `other` changed since its common ancestor with `commit`.

        Each has git's letter for the change."""
        fields = self._ask(
            "diff", "--name-status", "-z", "--no-renames", f"{commit}...{other}", fine=(0, _FATAL)
        )
        parts = [os.fsdecode(field) for field in fields.split(b"\0")]
        return dict(zip(parts[1::2], parts[:-1:2]))

    def state_of(self, worktree: Worktree, wanted: Iterable[str] | None = None) -> str:
        """Return a commit with the current content of a worktree's tracked files.

        Of the uncommitted files, only `wanted` ones are copied (None: all). Others get a
        placeholder text that marks them as changed. Raises GitUnavailableError."""
        if worktree.root not in self._states:
            changes = self.changes_of(worktree)
            copied = {change.path for change in changes}
            copied = copied if wanted is None else copied.intersection(wanted)
            head = self.commit_of(worktree.git_dir, "HEAD")
            self._states[worktree.root] = self._with_changes(worktree, head, changes, copied)
        return self._states[worktree.root]

    def conflicts(self, first: str, other: str) -> list[Conflict]:
        """Return the files of two commits that do not merge; [] without a common ancestor.

        Raises GitUnavailableError."""
        self.left_out = []
        self._prepare(first)
        self._use_attributes(first)
        base = self._ask("merge-base", first, other, fine=(0, 1)).decode().strip()
        if not base:
            if (self._directory / "shallow").exists():
                raise GitUnavailableError("this clone is shallow and lacks their common ancestor")
            return []
        done = self._run(
            "merge-tree", "--write-tree", "-z", "--messages", first, other, more=self._line_ends
        )
        if done.returncode in (0, 1):
            stages, kinds = _merged(done.stdout, (first, other), is_clean=done.returncode == 0)
        elif done.returncode in (_FATAL, _NO_SUCH_OPTION):
            stages = self._stages(base, first, other)
            kinds = dict.fromkeys(stages, _CONTENTS[0])
        else:
            raise _failed(done, "merge-tree")
        merging = self._merged_by_git([path for path, kind in kinds.items() if kind in _CONTENTS])
        return [
            self._conflict(path, stages.get(path, {}))
            for path, kind in kinds.items()
            if (kind not in _CONTENTS or path in merging)
            and not any(mode == _MODULE for mode, _ in stages.get(path, {}).values())
        ]

    def _stages(self, base: str, first: str, other: str) -> dict[str, Stages]:
        """Return the stages of the files that do not merge, in the form of `git merge-tree`.

        Files with missing objects are left out."""
        ours, theirs = [
            {path: facts for path, *facts in self._raw_changes(base, side)}
            for side in (first, other)
        ]
        stages: dict[str, Stages] = {}
        for path in sorted(ours.keys() & theirs.keys()):
            sides = [ours[path][0], ours[path][1], theirs[path][1]]
            names = [name for _, name in sides]
            if sides[1] == sides[2]:
                continue
            is_text = all(mode.startswith(_FILE) for mode, name in sides if name)
            lacking = [name for name in names if is_text and name and not self._has(name)]
            if lacking and all(names[1:]):
                self.left_out.append(path)
            elif not (is_text and all(names[1:]) and self._merges(*names)):
                stages[path] = {number: side for number, side in zip("123", sides) if side[1]}
        return stages

    def _has(self, name: str) -> bool:
        """Check if an object exists locally."""
        return self._run("cat-file", "-e", name).returncode == 0

    def _merges(self, base: str, first: str, other: str) -> bool:
        """Check if the changes of two sides of a file merge."""
        places = [str(self._directory / f"merged-{number}") for number in "213"]
        for place, name in zip(places, (first, base, other)):
            Path(place).write_bytes(self._ask("cat-file", "blob", name) if name else b"")
        return self._run("merge-file", "-p", "-q", *places).returncode == 0

    def texts(self, conflict: Conflict) -> tuple[list[str], list[str]]:
        """Return the lines of the file on both sides. Raises GitUnavailableError."""
        first, other = [
            self._ask("cat-file", "blob", name) if name else b"" for name in conflict.objects
        ]
        return first.decode("utf-8", "replace").split("\n"), other.decode("utf-8", "replace").split(
            "\n"
        )

    def changed(self, commit: str, target: str) -> list[str]:
        """Return the files that `commit` changed since its common ancestor with `target`.

        Raises GitUnavailableError."""
        base = self.base_of(commit, target)
        names = self._ask("diff-tree", "-r", "-z", "--name-only", base, commit) if base else b""
        return [os.fsdecode(name) for name in names.split(b"\0")[:-1]]

    def base_of(self, commit: str, target: str) -> str:
        """Return the common ancestor of two commits, or ''. Raises GitUnavailableError."""
        self._prepare(commit)
        return self._ask("merge-base", commit, target, fine=(0, 1)).decode().strip()

    def blob_at(self, commit: str, path: str) -> str:
        """Return the object of a file in a commit; '' if either is missing.

        Raises GitUnavailableError."""
        self._prepare(commit)
        return (
            self._ask("rev-parse", "-q", "--verify", f"{commit}:{path}", fine=(0, 1, 128))
            .decode()
            .strip()
        )

    def changed_files(self, base: str, commit: str) -> list[tuple[str, str, str]]:
        """Return the files that differ between two commits, with their objects.

        The object is '' for a missing file. Raises GitUnavailableError."""
        return [
            (path, before, after)
            for path, (mode, before), (mode_after, after) in self._raw_changes(base, commit)
            if (mode if before else mode_after).startswith(_FILE)
        ]

    def _raw_changes(
        self, base: str, commit: str
    ) -> Iterator[tuple[str, tuple[str, str], tuple[str, str]]]:
        """Yield the differences between two commits.

        Each has a path, and its mode and object before and after ('' for a missing file)."""
        fields = self._ask(
            "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", base, commit
        ).split(b"\0")
        for fact, path in zip(fields[:-1:2], fields[1::2]):
            mode, mode_after, *names, _ = fact.decode().lstrip(":").split(" ")
            before, after = [name if name.strip("0") else "" for name in names]
            yield (
                os.fsdecode(path),
                (mode if before else "", before),
                (mode_after if after else "", after),
            )

    def commits_since(self, commit: str, target: str, paths: list[str]) -> int:
        """Count the commits of `target` that `commit` lacks and that touch one of the files.

        Raises GitUnavailableError."""
        count = self._ask("rev-list", "--count", "--no-merges", f"{commit}..{target}", "--", *paths)
        return int(count or 0)

    def _conflict(self, path: str, stages: Stages) -> Conflict:
        """Return the conflict in a file by its stages."""
        base, *sides = [stages.get(stage, ("", ""))[1] for stage in "123"]
        objects = sides[0], sides[1]
        if base and any(sides) and not all(sides):
            return Conflict(path, deleted_by=sides.index(""), objects=objects)
        is_text = base and all(sides) and all(mode.startswith(_FILE) for mode, _ in stages.values())
        hunks = touching(self.hunks(base, sides[0]), self.hunks(base, sides[1])) if is_text else ()
        return Conflict(path, hunks, objects=objects)

    def hunks(self, base: str, side: str) -> list[Lines]:
        """Return the hunks between two files. Raises GitUnavailableError."""
        hunks = []
        options = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-renames")
        for before, count, after, size in _HUNK.findall(
            self._ask("diff", "-U0", *options, base, side)
        ):
            start, length, at = int(before), int(count or 1), int(after)
            start += not length  # an insertion is after the named line
            hunks.append((start, start + length, at, at + max(1, int(size or 1)) - 1))
        return hunks

    def _changed_in(self, worktree: Worktree, head: str) -> Iterator[Change]:
        """Yield the tracked files of a worktree that differ from HEAD, judged by the index.

        The index has the files' times and sizes."""
        for name in os.listdir(worktree.git_dir):
            if name.startswith("sharedindex."):  # git renews the time of the one it reads
                shutil.copyfile(f"{worktree.git_dir}/{name}", self._directory / name)
        options = ("-z", "--raw", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
        fields = self._ask("diff-index", *options, head, more=_of(worktree)).split(b"\0")
        for fact, path in zip(fields[:-1:2], fields[1::2]):
            before, after, was, now, status = fact.decode().lstrip(":").split(" ")
            if (before if status == "D" else after).startswith((_FILE, _LINK)):
                known = [name if name.strip("0") else "" for name in (was, now)]
                yield Change(
                    os.fsdecode(path), status, "" if status == "D" else after, known[0], known[1]
                )

    def _with_changes(
        self, worktree: Worktree, head: str, changes: Sequence[Change], copied: set[str]
    ) -> str:
        """Return a commit on `head` with a worktree's current files, or `head` if none changed."""
        if not changes:
            return head
        if len(copied) > MOST_CHANGED:
            raise GitUnavailableError(
                f"{worktree.root}: more than {MOST_CHANGED} files are not committed"
            )
        unknown = [change for change in changes if change.mode and not change.staged]
        stored = self._stored(worktree, [change for change in unknown if change.path in copied])
        stored |= {
            change.path: self._store(os.fsencode(f"changed: {worktree.root}/{change.path}"))
            for change in unknown
            if change.path not in copied
        }
        lines = []
        for change in changes:
            name = change.staged or stored.get(change.path, "")
            if not change.mode:
                lines.append(f"0 {'0' * len(head)}\t{change.path}")
            elif name:
                lines.append(f"{change.mode} {name}\t{change.path}")
        if not lines:
            return head
        with_index = {"GIT_INDEX_FILE": str(self._directory / "trial-index")}
        self._ask("read-tree", head, more=with_index)
        given = os.fsencode("\0".join(lines) + "\0")
        self._ask("update-index", "-z", "--index-info", given=given, more=with_index)
        tree = self._ask("write-tree", more=with_index).decode().strip()
        return self._ask("commit-tree", tree, "-p", head, "-m", "trial").decode().strip()

    def _stored(self, worktree: Worktree, changes: Sequence[Change]) -> dict[str, str]:
        """Store files of a worktree as git would add them, without running filters.

        Return the objects by their paths. Unreadable and large files are left out. So are files
        with a filter, because the filter may be their only difference from the committed text."""
        stored: dict[str, str] = {}
        files = []
        for change in changes:
            path = f"{worktree.root}/{change.path}"
            try:
                status = os.lstat(path)
                if stat.S_ISLNK(status.st_mode):
                    stored[change.path] = self._store(os.fsencode(os.readlink(path)))
                elif stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES:
                    files.append(change.path)
            except OSError:
                continue
        filtered = self._attributes("filter", files, _of(worktree))
        files = [
            path
            for path in files
            if filtered[path] in ("unspecified", "unset") and "\n" not in path and path[0] != '"'
        ]
        given = os.fsencode("".join(f"{path}\n" for path in files))
        names = (
            self._ask("hash-object", "-w", "--stdin-paths", given=given, more=_of(worktree))
            if files
            else b""
        )
        return {**stored, **dict(zip(files, names.decode().split()))}

    def _store(self, content: bytes) -> str:
        """Store a small object and return its name."""
        whole = b"blob %d\0" % len(content) + content
        name = (hashlib.sha256 if self._has_long_names else hashlib.sha1)(whole).hexdigest()
        place = self._directory / "objects" / name[:2] / name[2:]
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(zlib.compress(whole, 1))
        return name

    def _merged_by_git(self, paths: list[str]) -> set[str]:
        """Return the files that git itself merges.

        The result of a repository's merge driver cannot be predicted."""
        return {
            path
            for path, value in self._attributes("merge", paths).items()
            if value in _OWN_DRIVERS
        }

    def _attributes(
        self, name: str, paths: list[str], more: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the value of an attribute of files."""
        if not paths:
            return {}
        output = self._ask(
            "check-attr", "-z", "--stdin", name, given=os.fsencode("\0".join(paths)), more=more
        )
        fields = [os.fsdecode(field) for field in output.split(b"\0")]
        return dict(zip(fields[::3], fields[2::3]))

    def _use_attributes(self, commit: str) -> None:
        """Use the attributes that a commit has in all its folders."""
        if self._with_attributes_of == commit:
            return
        tree = self._directory / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir()
        self._with_attributes_of = commit
        for name in self._ask("ls-tree", "-r", "-z", "--name-only", commit).split(b"\0"):
            path = os.fsdecode(name)
            if path.rpartition("/")[2] == ".gitattributes":
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_bytes(
                    self._ask("cat-file", "blob", f"{commit}:{path}", fine=(0, 128))
                )

    def _prepare(self, commit: str) -> None:
        if self._is_ready:
            return
        self._has_long_names = len(commit) == 64
        for name in ("objects/info", "refs", "info", "tree"):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        (self._directory / "HEAD").write_bytes(TRIAL_HEAD)
        kept = {
            key: value
            for key, value in format_of(self._common_dir).items()
            if key != "extensions.refstorage"
        }
        (self._directory / "config").write_text(settings_text(kept, _USUAL + self._settings()))
        objects = os.path.join(self._common_dir, "objects")
        if "\n" in objects or objects.startswith('"'):
            raise GitUnavailableError(
                f"{objects}: git cannot borrow objects from a directory with this name"
            )
        (self._directory / "objects/info/alternates").write_bytes(os.fsencode(objects) + b"\n")
        for source, place in (("shallow", "shallow"), ("info/attributes", "info/attributes")):
            if os.path.isfile(f"{self._common_dir}/{source}"):
                shutil.copyfile(f"{self._common_dir}/{source}", self._directory / place)
        self._is_ready = True

    def _settings(self) -> str:
        """Return the person's and the repository's settings lines that decide how git merges.

        None of them names a program. Their setting for line ends is noted separately, because it
        matters only when files of a worktree are stored."""
        wanted = "|".join([*_MERGING, "core.attributesfile", "core.autocrlf"]).replace(".", r"\.")
        try:
            output = ask_person(self._common_dir, "config", "-z", "--get-regexp", f"^({wanted})$")
        except GitUnavailableError:  # none is set
            output = ""
        lines = [line if "\n" in line else f"{line}\ntrue" for line in output.split("\0") if line]
        values = {key: value for key, _, value in [line.partition("\n") for line in lines]}
        line_ends = values.pop("core.autocrlf", "false")
        self._line_ends = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.autocrlf",
            "GIT_CONFIG_VALUE_0": line_ends if line_ends.isalnum() else "false",
        }
        attributes = values.pop("core.attributesfile", usual_path("attributes"))
        lines = []
        try:
            (self._directory / "attributes").write_bytes(
                read_whole(expanded(attributes, os.environ), _ATTRIBUTES_BYTES)
            )
            lines.append(f'\tattributesFile = "{self._directory}/attributes"\n')
        except OSError:
            pass
        for key, value in values.items():
            section, _, name = key.partition(".")
            lines += [f"[{section}]\n\t{name} = {value}\n"] if value.isalnum() else []
        return "".join(lines)

    def _ask(
        self,
        *arguments: str,
        given: bytes = b"",
        fine: tuple[int, ...] = (0,),
        more: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the output of git; '' for an exit code above 1 that is `fine`.

        Raises GitUnavailableError."""
        done = self._run(*arguments, given=given, more=more)
        if done.returncode not in fine:
            raise _failed(done, arguments[0])
        return done.stdout if done.returncode in (0, 1) else b""

    def _run(
        self, *arguments: str, given: bytes = b"", more: Mapping[str, str] | None = None
    ) -> CompletedProcess[bytes]:
        seconds = self._end - monotonic()
        if seconds <= 0:
            raise GitUnavailableError(
                f"git {arguments[0]}: not done within the time limit for all trial merges"
            )
        directory = str(self._directory)
        who = {f"GIT_{who}_{what}": "trial@localhost" for who in _WHO for what in ("NAME", "EMAIL")}
        variables = {"GIT_WORK_TREE": f"{directory}/tree", **who, **(more or {})}
        place = TrialPlace(directory, variables.pop("GIT_WORK_TREE"), variables)
        return run(place, arguments, given, seconds)


def _of(worktree: Worktree) -> dict[str, str]:
    """Return the variables that make git use a worktree's files and index."""
    return {"GIT_WORK_TREE": worktree.root, "GIT_INDEX_FILE": f"{worktree.git_dir}/index"}


def _failed(done: CompletedProcess[bytes], command: str) -> GitUnavailableError:
    said = done.stderr.decode(errors="replace").strip()
    return GitUnavailableError(f"git {command}: {said or f'exit code {done.returncode}'}")


def _merged(
    output: bytes, commits: tuple[str, str], *, is_clean: bool
) -> tuple[dict[str, Stages], dict[str, str]]:
    """Parse the output of `git merge-tree -z --messages`: stages and kinds of conflict, by path.

    A path that git invents, such as `f~<commit>` beside a folder `f`, is replaced by the file's. A
    conflict without stages counts only if it is about renamed folders, or if the merge is not clean
    and has no other conflict. Git names the conflict's own path first."""
    made_up = re.compile(rf"~(?:{'|'.join(commits)})(?:_\d+)?$")
    head, _, messages = output.partition(b"\0\0")
    stages: dict[str, Stages] = {}
    for line in head.split(b"\0")[1:]:
        facts, _, path = os.fsdecode(line).partition("\t")
        mode, name, stage = facts.split(" ")
        stages.setdefault(made_up.sub("", path), {})[stage] = mode, name
    kinds: dict[str, str] = {}
    unstaged: dict[str, str] = {}
    fields = [os.fsdecode(field) for field in messages.split(b"\0")]
    while len(fields) > 1:
        count = int(fields[0])
        paths = [made_up.sub("", path) for path in fields[1 : count + 1]]
        path, kind = next((path for path in paths if path in stages), ""), fields[count + 1]
        if path and kind.startswith("CONFLICT") and not (kind in _CONTENTS and path in kinds):
            kinds[path] = kind
        # git may have solved it, by another name for a file
        elif paths and kind.startswith("CONFLICT") and not path:
            (kinds if _OF_FOLDERS in kind else unstaged)[paths[0]] = kind
        fields = fields[count + 3 :]
    return stages, kinds or ({} if is_clean else unstaged)


def touching(changes: Sequence[Lines], other: Sequence[Lines]) -> tuple[Hunk, ...]:
    """Return the hunks, as ranges of lines on both sides, whose changes touch each other.

    At most MOST_HUNKS are returned."""
    hunks: list[Hunk] = []
    first = 0
    for start, end, *lines in changes:
        while first < len(other) and other[first][1] < start:
            first += 1
        for begin, _, *others in other[first:]:
            if begin > end or len(hunks) == MOST_HUNKS:
                break
            hunks.append(((lines[0], lines[1]), (others[0], others[1])))
    return tuple(hunks)
