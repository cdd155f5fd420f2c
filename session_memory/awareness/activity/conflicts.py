"""Conflicts with other branches, found by upkeep and stored in the inbox.

A prompt reports the conflicts of its session's worktree, and a call reports the conflicts of the
file that it edits, each once."""

from __future__ import annotations

from ...common.system.files import os, read_whole
from ...common.text.format import shorten
from ...common.text.paths import relative
from ...common.text.timestamps import age
from .inbox import Inbox, Note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...common.system.git import Worktree
    from .changes import OwnSession
    from .collisions.facts import Fact

    Hunk = Sequence[Sequence[int]]  # the first and last lines of both sides, (0, 0) for none

_REMOTE = "team:"  # how the key of a session of another machine begins
PATH_CHARACTERS = 60
OLD_SECONDS = 24 * 3600  # older conflicts are not reported


class KeptConflict(Note):
    """A conflict as upkeep stores it, for sessions in the worktree `root`; its texts are sanitized.

    `path` is the file in the worktree, `file` its absolute path. `hunks` are the clashing places;
    the line about the conflict names the place `lines`. `deleted_by` is the side that deleted the
    file: 0 for the session, 1 for the other side, else None. The session `name` of a `runtime` (''
    if unknown) made the other change `at` a time, on a `branch`. For a branch that is only ahead,
    `commits` is the number of its commits. Sessions with the ids `sessions` are not told about the
    conflict. `key` identifies it; `pair` identifies the two sides, whatever they write."""

    __slots__ = (
        "at",
        "branch",
        "commits",
        "deleted_by",
        "file",
        "hunks",
        "is_certain",
        "lines",
        "name",
        "pair",
        "path",
        "root",
        "runtime",
        "sessions",
    )
    KIND = "conflicts"
    IS_JUDGED = True

    def __init__(
        self,
        path: str,
        at: float,
        *,
        file: str = "",
        root: str = "",
        lines: Hunk = ((0, 0), (0, 0)),
        hunks: Sequence[Hunk] = (),
        deleted_by: int | None = None,
        name: str = "",
        runtime: str = "",
        branch: str = "",
        commits: int = 0,
        is_certain: bool = True,
        sessions: Sequence[str] = (),
        key: str = "",
        pair: str = "",
    ) -> None:
        self.path = path
        self.file = file
        self.root = root
        self.lines = lines
        self.hunks = hunks
        self.deleted_by = deleted_by
        self.at = at
        self.name = name
        self.runtime = runtime
        self.branch = branch
        self.commits = commits
        self.is_certain = is_certain
        self.sessions = sessions
        self.key = key
        self.pair = pair

    def may_be_told(self, session_id: str, now: float) -> bool:
        """Check that the conflict has not expired and concerns the session with this id."""
        return session_id not in self.sessions and now - self.at <= OLD_SECONDS

    def is_for(self, reader: OwnSession, worktree: Worktree | None, now: float) -> bool:
        """Check that the session is in the conflict's worktree and wants collisions."""
        if not reader.directory or worktree is None or worktree.root != self.root:
            return False
        return self.may_be_told(reader.runtime.session_id_of(reader.path), now)

    def line(self, now: float, inside: str = "") -> str:
        """Return the line about the conflict for an agent that works `inside` a directory, or ''."""
        return _line_of(self, now, inside)


def _judged(own_session: OwnSession, now: float) -> tuple[list[KeptConflict], int]:
    """Return the conflicts that may be told to the session, and the time of upkeep's judgement.

    The time is in nanoseconds since 1970. If rules have changed since then, there are none until
    upkeep judges again. Raises OSError, ValueError, TypeError."""
    if own_session.home is None:
        return [], 0
    inbox = Inbox.read(own_session.home)
    if not inbox.is_valid:
        return [], 0
    loaded = [KeptConflict.load(dumped) for dumped in inbox.dumps.get(KeptConflict.KIND, ())]
    session_id = own_session.runtime.session_id_of(own_session.path)
    return [conflict for conflict in loaded if conflict.may_be_told(session_id, now)], inbox.judged


def of_files(own_session: OwnSession, paths: list[str], now: float) -> list[KeptConflict]:
    """Return the conflicts in the files at `paths` (absolute, without links).

    Raises OSError, ValueError."""
    return [conflict for conflict in _judged(own_session, now)[0] if conflict.file in paths]


def of_copies(
    own_session: OwnSession, facts: list[Fact], ids: Mapping[str, str], now: float
) -> list[Fact]:
    """Return the edits of copies that a conflict line reports or will report.

    The copies are in other worktrees or on other machines, and the trial merge included the edits.
    `ids` are the sessions' ids by their keys. Raises OSError, ValueError."""
    copies = [fact for fact in facts if fact.worktree or fact.session.startswith(_REMOTE)]
    conflicts = of_files(own_session, [fact.path for fact in copies], now)
    seen = {
        (conflict.file, session): conflict.at
        for conflict in conflicts
        for session in conflict.sessions
    }
    return [
        fact
        for fact in copies
        if fact.time <= seen.get((fact.path, ids.get(fact.session, "")), 0.0)
    ]


def hit(own_session: OwnSession, path: str, replaced: list[str], now: float) -> KeptConflict | None:
    """Return the first conflict whose own lines in the file contain a `replaced` text.

    The result includes these lines. Return None if the file at `path` was written after upkeep
    judged it, because its lines may have moved. A text that occurs several times in the file, or
    not at all, is ignored. Raises OSError, ValueError."""
    conflicts, judged_at = _judged(own_session, now)
    conflicts = [conflict for conflict in conflicts if conflict.file == path and conflict.hunks]
    if not conflicts or os.stat(path).st_mtime_ns > judged_at:
        return None
    content = read_whole(path).decode("utf-8", "replace").replace("\r\n", "\n")
    spans = []
    for text in [text.replace("\r\n", "\n") for text in replaced]:
        if text and content.count(text) == 1:
            first = content[: content.index(text)].count("\n") + 1
            spans.append((first, first + text.removesuffix("\n").count("\n")))
    for conflict in conflicts:
        for hunk in conflict.hunks:
            if any([first <= hunk[0][1] and last >= hunk[0][0] for first, last in spans]):
                conflict.lines = hunk
                return conflict
    return None


def _line_of(conflict: KeptConflict, now: float, inside: str) -> str:
    path = relative(f"/{conflict.path}", "/", inside)
    path, when = shorten(path, PATH_CHARACTERS), age(now - conflict.at)
    if conflict.commits == 1:
        return (
            f"! {path}: {conflict.branch} has a newer commit that changes files you edited; "
            "your branch lacks it"
        )
    if conflict.commits:
        return (
            f"! {path}: {conflict.branch} has {conflict.commits} newer commits that change files you "
            "edited; your branch lacks them"
        )
    branch = f"branch {shorten(conflict.branch, PATH_CHARACTERS)}" if conflict.branch else ""
    if conflict.name:
        by = f"by {conflict.name} ({', '.join(filter(None, (conflict.runtime, branch)))})"
    else:  # nothing proves which session did it
        by = f"on {branch}" if branch else "in another worktree"
    if conflict.deleted_by is not None:
        mine, theirs = ("deletion", "edit") if conflict.deleted_by == 0 else ("edit", "deletion")
        return f"! {path}: your {mine} conflicts with the {theirs} made {when} {by}"
    mine, theirs = [_lines(lines) for lines in conflict.lines]
    if not mine or not theirs:
        return f"! {path}: your change conflicts with a change made {when} {by}"
    verb = "conflict" if mine.startswith("lines") else "conflicts"
    verb = verb if conflict.is_certain else "may conflict"
    return f"! {path}: your {mine} {verb} with {theirs} changed {when} {by}"


def _lines(span: Sequence[int]) -> str:
    first, last = span
    return "" if not first else f"line {first}" if first == last else f"lines {first}-{last}"
