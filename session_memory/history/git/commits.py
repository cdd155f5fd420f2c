"""Commits, the lines they added, and who wrote a file's lines.

It starts git, so prompts never use it. The worktree is read directly and compared with HEAD here:
git never sees its files and so runs no filter for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ...common.system.files import read_whole
from ...common.system.git import Worktree, commit_of
from ...common.system.git_objects import GitIndex, GitObjects
from ...common.system.git_process import (
    GitUnavailableError,
    ask_git,
    ask_person,
    common_dir_of,
    is_partial,
    usual_path,
)

BLAME_SECONDS = 20.0
MOST_BYTES = 16 * 1024 * 1024  # of a file of the worktree
LONG_LINES = 5000  # of the changed part of a file
MOST_ADDED = 10_000  # lines that a commit added, looked at
MOST_ADDED_TO_FILE = 2000  # the same, to one file: a longer addition was generated
_CONVERTING = ("filter", "working-tree-encoding", "ident")  # attributes
_UNSET = (None, "unspecified", "unset")
UNCOMMITTED = "0" * 40
_DIFF = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "-U0",
    "-w",
    "-M",
    "-l300",  # of more new and deleted files, only unchanged ones are compared as renames
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
_WITH_BLANKS = tuple(option for option in _DIFF if option not in ("-w", "-M"))
_FIRST_TIME = 100_000_000  # seconds: git 2.39 reads `@` and a smaller number as the present
MOST_COMMITS = 300  # since a time, the latest
MOST_REFORMATTED = 200  # lines of which it is looked up who changed their layout
MOST_FORMATTED = 2000  # characters of a line that is compared without its layout
LEAST_UNFORMATTED = 4  # characters of a line besides its layout
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_OLD_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_FORMATTING = re.compile(r"\s+|[,;]+\s*$")
_QUOTES = str.maketrans("'`", '""')
_VERSION = re.compile(r"[\^~]?\d+(?:\.\d+)+[\w.+-]*")
_FORMAT = "%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%s%x00%D"
_FIELDS = 8
# Commits that a blame looks through, as GitHub names the file
_IGNORED = ".git-blame-ignore-revs"
_ID = re.compile(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?")
_BLAMED = re.compile(r"^([0-9a-f]{40,64}) (\d+) (\d+)(?: \d+)?$")


class Commit(NamedTuple):
    """A commit: its times in milliseconds, its number of parents, and the files that it changed."""

    id: str
    parents: int
    author: str
    mail: str
    authored_at: int
    at: int
    subject: str
    branch: str
    files: tuple[str, ...]

    @property
    def words(self) -> str:
        """Return words to search for the commit: its subject, its branch and its files' names."""
        names = [os.path.basename(path) for path in self.files[:5]]
        return " ".join([self.subject, self.branch, *names]).strip()


class CodeLine(NamedTuple):
    """A line of a file: its number, the commit that wrote it, and its file and number in that
    commit. `reformatted` is a later commit that changed only its layout, '' for none."""

    path: str
    number: int
    text: str
    commit: str = UNCOMMITTED
    written_in: str = ""
    written_at: int = 0
    reformatted: str = ""


class _Written(NamedTuple):
    """The commit that wrote a line, and the line's file and number in it."""

    commit: str
    path: str
    number: int


class Repository:
    """The repository at `git_dir`, and its worktree `root`.

    Methods raise GitUnavailableError. In a partial clone they use the local objects; if some are
    missing, `lacks` is then a sentence about them, else ''."""

    def __init__(self, git_dir: str, root: str) -> None:
        self._git_dir = git_dir if not os.path.isdir(f"{git_dir}/.git") else f"{git_dir}/.git"
        self.root = root
        self._commits: dict[str, Commit] = {}
        self.not_added: dict[str, int] = {}  # by the id of a commit
        self.lacks = ""

    def resolved(self, name: str) -> str:
        """Return the id of the commit that `name` refers to; '' if there is none."""
        if name.startswith("-"):
            return ""
        output = self._ask(
            "rev-parse", "--verify", "-q", "--end-of-options", f"{name}^{{commit}}", fine=True
        )
        return output.strip().splitlines()[-1] if output.strip() else ""

    def commit(self, id: str) -> Commit:
        if id not in self._commits:
            output = self._ask("log", "-1", "--no-show-signature", f"--format={_FORMAT}", id)
            changed = self._ask_all(
                id, "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", id
            )
            fields = output.strip("\n").split("\0")
            self._commits[id] = _commit_of(fields, changed.split("\0")[:-1])
        return self._commits[id]

    def commits_since(self, at: int, heads: Sequence[str] = ()) -> list[Commit]:
        """Return the commits on any branch, or below `heads`, since a time in milliseconds.

        The latest come first, at most MOST_COMMITS, without merges and without their files."""
        output = self._ask_all(
            "its history",
            "log",
            "-z",
            "--no-show-signature",
            "--no-merges",
            f"--max-count={MOST_COMMITS}",
            f"--since=@{max(at // 1000, _FIRST_TIME)}",
            f"--format={_FORMAT}",
            "--branches",
            *heads,
            "--",
        )
        fields = output.split("\0")[:-1]
        return [_commit_of(fields[at : at + _FIELDS], ()) for at in range(0, len(fields), _FIELDS)]

    def uncommitted(self, paths: Sequence[str]) -> list[str]:
        """Return which of a worktree's files differ from HEAD, or are new and not ignored."""
        worktree = Worktree(self.root, self._git_dir, common_dir_of(self._git_dir))
        places = {path: f"{self.root}/{path}" for path in paths}
        staged = GitIndex(worktree).as_they_are(places.values())
        objects, head = GitObjects(worktree.common_dir), commit_of(worktree)
        changed, new = [], []
        for path, place in places.items():
            committed = objects.at(head, path) if head else ""
            if committed is None or (committed and staged.get(place) == committed):
                continue
            is_there = os.path.lexists(place)
            if not committed and is_there:
                new.append(path)
            elif committed and (not is_there or self._seems_changed(path)):
                changed.append(path)
        if new:
            given = "".join(f"{path}\0" for path in new)
            output = ask_git(
                self._git_dir,
                *("check-ignore", "-z", "--stdin"),
                given=given,
                is_failure_fine=True,
                more=self._excludes_file(),
                root=self.root,
            )
            new = [path for path in new if path not in output.split("\0")]
        return [path for path in paths if path in (*changed, *new)]

    def _excludes_file(self) -> dict[str, str]:
        """Return the variables that give git the file of ignored names from the settings.

        Git gets no other setting. Without this one, it uses the person's usual file."""
        try:
            question = ("config", "-z", "--type=path", "--get", "core.excludesFile")
            path = ask_person(self.root, *question).rstrip("\0")
        except GitUnavailableError:  # none is set
            path = usual_path("ignore")
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.excludesFile",
            "GIT_CONFIG_VALUE_0": path,
        }

    def _seems_changed(self, path: str) -> bool:
        """Check if a file differs from HEAD; not if git would have to convert it first."""
        try:
            return self.is_changed(path)
        except GitUnavailableError:
            return False

    def added(self, id: str) -> tuple[list[CodeLine], list[str]]:
        """Return the lines that a commit added, and the lines that it removed.

        Re-indented lines do not count. At most MOST_ADDED_TO_FILE lines per file and MOST_ADDED in
        all are returned; `not_added` counts the others."""
        lines, removed, self.not_added[id] = _parsed(
            self._ask_all(id, "show", "--format=", "--root", *_DIFF, id), id
        )
        return lines, removed

    def staged(self) -> list[CodeLine]:
        """Return the lines that the index adds to HEAD."""
        return _parsed(self._ask("diff", "--cached", *_DIFF), UNCOMMITTED)[0]

    def lines(self, path: str, first: int, last: int) -> list[CodeLine]:
        """Return lines of a worktree's file, counted from 1, each with the commit that wrote it.

        The commit of an uncommitted line is UNCOMMITTED. Moved and re-indented lines have the
        commit of their origin, as in `git blame -w -M -C`. In a partial clone that lacks versions
        of the file, lines have the last commit that touched it."""
        now = worktree_lines(os.path.join(self.root, path))
        last = min(last, len(now))
        then = self.committed_lines(path)
        if then != now and (conversion := self._conversion(path)):
            raise GitUnavailableError(
                f"git passes {path} through {conversion}, which is not run here, so its lines "
                f"cannot be compared"
            )
        places = _places_before(then, now)
        known = [places[number] for number in range(first, last + 1) if number in places]
        blamed = self._blamed(path, min(known), max(known)) if known else {}
        is_short = bool(blamed) and len(known) <= MOST_REFORMATTED
        exact = self._blamed(path, min(known), max(known), is_exact=True) if is_short else {}
        code_lines = []
        for number in range(first, last + 1):
            place = places.get(number, 0)
            written = blamed.get(place, _Written(UNCOMMITTED, path, 0))
            latest = exact.get(place, written).commit
            reformatted = latest if latest != written.commit else ""
            line = CodeLine(path, number, now[number - 1], *written, reformatted)
            code_lines.append(line)
        return code_lines

    def before_reformatting(self, line: CodeLine) -> CodeLine | None:
        """Return a line before the commit that wrote it, if that changed only quotes, blanks, the
        last comma or a version in it; None if it changed more."""
        path = f":(top,literal){line.written_in}"
        diff = self._ask_all(
            line.commit, "show", "--format=", *_WITH_BLANKS, line.commit, "--", path
        )
        place = _reformatted_place(diff, line)
        if not place:
            return None
        number, text = place
        before = self._blamed(line.written_in, number, number, f"{line.commit}^").get(number)
        if before is None:
            return None
        return line._replace(
            text=text,
            commit=before.commit,
            written_in=before.path,
            written_at=before.number,
            reformatted=line.commit,
        )

    def committed_lines(self, path: str) -> list[str]:
        """Return the lines of a file in HEAD; [] if it is missing there.

        `worktree_lines` returns the lines in the worktree."""
        if not self._object_in_head(path):
            return []
        return _lines(self._ask("cat-file", "blob", f"HEAD:{path}"))

    def is_changed(self, path: str) -> bool:
        """Check if a file of the worktree differs from HEAD.

        The index decides for a file that git converts."""
        if worktree_lines(os.path.join(self.root, path)) == self.committed_lines(path):
            return False
        conversion = self._conversion(path)
        if not conversion:
            return True
        whole = f"{self.root}/{path}"
        index = GitIndex(Worktree(self.root, self._git_dir, common_dir_of(self._git_dir)))
        if staged := index.as_they_are([whole]).get(whole):
            return staged != self._object_in_head(path)
        raise GitUnavailableError(f"git passes {path} through {conversion}, which is not run here")

    def _object_in_head(self, path: str) -> str:
        return self._ask("rev-parse", "-q", "--verify", f"HEAD:{path}", fine=True).strip()

    def _conversion(self, path: str) -> str:
        """Return how git converts a file between the worktree and its objects, or ''."""
        output = ask_git(
            self._git_dir, "check-attr", "-z", "--stdin", *_CONVERTING, given=path, root=self.root
        )
        fields = output.split("\0")
        values = dict(zip(fields[1::3], fields[2::3]))
        return next(
            (
                f"the {name} {values[name]}"
                for name in _CONVERTING
                if values.get(name) not in _UNSET
            ),
            "",
        )

    def changed_at(self, path: str) -> int:
        """Return when a file of the worktree was last written, in milliseconds; 0 if it is gone."""
        try:
            return os.stat(os.path.join(self.root, path)).st_mtime_ns // 1_000_000
        except OSError:
            return 0

    def is_unmerged(self, path: str) -> bool:
        """Check if the index has both sides of a merge."""
        return bool(self._ask("ls-files", "-u", "--", f":(top,literal){path}"))

    def last_commit(self, path: str, before: str = "") -> Commit | None:
        """Return the last commit that changed a file, before the commit `before` if given."""
        start = f"{before}^" if before else "HEAD"
        id = self._ask("rev-list", "-1", start, "--", f":(top,literal){path}", fine=True).strip()
        return self.commit(id) if id else None

    def note(self, id: str, ref: str, text: str) -> None:
        """Write a note for a commit below refs/notes, as the person, replacing an earlier one."""
        name, _, mail = ask_person(self.root, "var", "GIT_COMMITTER_IDENT").partition(" <")
        who = {"NAME": name, "EMAIL": mail.partition(">")[0]}
        more = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in who.items()
        }
        ask_git(
            self._git_dir,
            "notes",
            f"--ref={ref}",
            "add",
            "-f",
            "-F",
            "-",
            id,
            given=text,
            more=more,
        )

    def _ignored(self) -> tuple[str, ...]:
        """Return the option that makes blame look through formatting and moving commits.

        A file in the worktree lists these commits. If it contains anything except ids, blame would
        fail, so it is left out."""
        path = f"{self.root}/{_IGNORED}"
        try:
            text = read_whole(path, MOST_BYTES).decode("utf-8", "replace")
        except OSError:
            return ()
        ids = filter(None, [line.partition("#")[0].strip() for line in text.split("\n")])
        return ("--ignore-revs-file", path) if all(map(_ID.fullmatch, ids)) else ()

    def _blamed(
        self, path: str, first: int, last: int, revision: str = "HEAD", *, is_exact: bool = False
    ) -> dict[int, _Written]:
        """Return who wrote each line of a revision, looking through changes of the layout unless
        `is_exact`."""
        looking = () if is_exact else ("-w",)
        options = ("--no-textconv", *looking, "-M", "-C", "--porcelain", "-L", f"{first},{last}")
        ignored = () if is_exact else self._ignored()
        try:
            output = self._ask_all(path, "blame", *ignored, *options, revision, "--", path)
        except GitUnavailableError:
            if not ignored:
                raise
            output = self._ask_all(path, "blame", *options, revision, "--", path)
        blame: dict[int, _Written] = {}
        if not output and revision == "HEAD" and (latest := self.last_commit(path)):
            return dict.fromkeys(range(first, last + 1), _Written(latest.id, path, 0))
        names: dict[str, str] = {}
        commit, number, before = "", 0, 0
        for line in output.split("\n"):
            if head := _BLAMED.match(line):
                commit, before, number = head[1], int(head[2]), int(head[3])
            elif line.startswith("filename "):
                names[commit] = line[len("filename ") :]
            elif line.startswith("\t"):
                blame[number] = _Written(commit, names.get(commit, path), before)
        return blame

    def _ask_all(self, about: str, *arguments: str) -> str:
        """Ask git a question that needs many objects.

        If a partial clone lacks some of them, record that and return ''."""
        try:
            return self._ask(*arguments, seconds=BLAME_SECONDS)
        except GitUnavailableError:
            if not is_partial(common_dir_of(self._git_dir)):
                raise
            self.lacks = (
                f"This clone is partial and lacks objects of {about}: only wording and dates were "
                f"compared. "
                f"`git {arguments[0]} {'-- ' * (arguments[0] == 'blame')}{about}` fetches them."
            )
            return ""

    def _ask(
        self, *arguments: str, fine: bool = False, given: str = "", seconds: float = 5.0
    ) -> str:
        return ask_git(
            self._git_dir, *arguments, given=given, is_failure_fine=fine, seconds=seconds
        )


def _commit_of(fields: Sequence[str], files: Iterable[str]) -> Commit:
    """Return the commit with the fields of `_FORMAT`."""
    name, parents, author, mail, authored, committed, subject, refs = fields
    names = refs.strip("\n").replace("HEAD -> ", "").split(", ")
    branch = next((ref for ref in names if not ref.startswith("tag: ")), "")
    count = len(parents.split())
    times = int(authored) * 1000, int(committed) * 1000
    return Commit(name, count, author, mail, *times, subject, branch, tuple(files))


def worktree_lines(path: str) -> list[str]:
    """Return the lines of a file of a worktree. Raises GitUnavailableError."""
    try:
        text = read_whole(path, MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise GitUnavailableError(f"{path}: {error.strerror or error}") from error
    return _lines(text)


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _places_before(then: Sequence[str], now: Sequence[str]) -> dict[int, int]:
    """Map the numbers of lines that are unchanged, counted from 1, to their earlier numbers."""
    before, after = [[line.rstrip("\r") for line in lines] for lines in (then, now)]
    start = end = 0
    shorter = min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    # Many equal lines take quadratic time. In a long text, the most frequent lines are matched only
    # beside others.
    inner = SequenceMatcher(None, old, new, autojunk=len(new) > LONG_LINES)
    blocks = [
        (start + block.a, start + block.b, block.size) for block in inner.get_matching_blocks()
    ]
    blocks += [(0, 0, start), (len(before) - end, len(after) - end, end)]
    return {b + number: a + number for a, b, size in blocks for number in range(1, size + 1)}


def _without_formatting(text: str) -> str:
    """Return a line without what formatters and package managers change."""
    return _VERSION.sub("0", _FORMATTING.sub("", text).translate(_QUOTES))


def _reformatted_place(diff: str, line: CodeLine) -> tuple[int, str] | None:
    """Return the number and text of the removed line that a diff made a line of; None if the line
    differs from each in more than the layout."""
    wanted = _without_formatting(line.text[:MOST_FORMATTED])
    if len(wanted) < LEAST_UNFORMATTED or len(line.text) > MOST_FORMATTED:
        return None
    old = new = 0
    removed: list[tuple[int, str]] = []
    for text in diff.split("\n"):
        if hunk := _OLD_HUNK.match(text):
            old, new, removed = int(hunk[1]), int(hunk[2]), []
        elif old and text.startswith("-"):
            if len(text) <= MOST_FORMATTED:
                removed.append((old, text[1:]))
            old += 1
        elif old and text.startswith("+"):
            if new == line.written_at:
                same = [pair for pair in removed if _without_formatting(pair[1]) == wanted]
                return same[0] if len(same) == 1 else None
            new += 1
    return None


def _parsed(diff: str, commit: str) -> tuple[list[CodeLine], list[str], int]:
    """Return the added lines within the limits, the removed lines, and the number left out."""
    added: list[CodeLine] = []
    removed: list[str] = []
    path, number, left, is_hunk = "", 0, 0, False
    of_file = beyond = 0
    lines = diff.split("\n")
    at = -1
    while (at := at + 1) < len(lines):
        line = lines[at]
        if is_hunk and line.startswith("-"):
            removed.append(line[1:])
        elif is_hunk and left and line.startswith("+"):
            if of_file >= MOST_ADDED_TO_FILE or len(added) >= MOST_ADDED:
                beyond, at, left = beyond + left, at + left - 1, 0  # past the hunk
                continue
            added.append(CodeLine(path, number, line[1:], commit, path))
            number, left, of_file = number + 1, left - 1, of_file + 1
        elif hunk := _HUNK.match(line):
            number, left, is_hunk = int(hunk[1]), int(hunk[2] or 1), True
        elif line.startswith("diff --git "):
            is_hunk, of_file = False, 0
        elif not is_hunk and line.startswith("+++ "):
            path = line[6:].rstrip("\t") if line.startswith("+++ b/") else ""
    return added, removed, beyond
