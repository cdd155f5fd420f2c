"""Facts about one collision each: two sessions on the same file, branch or worktree; and the lines
about them."""

from __future__ import annotations

from ....common.system.git import is_commit
from ....common.text.format import ELLIPSIS, counted, enumerated, one_line, shorten
from ....common.text.paths import relative
from ....common.text.sanitize import beginning, for_prompt, quotable
from ....common.text.timestamps import age
from ..actions import COMMAND, EDIT, READ, REMOVE, FileAction
from ..call_log import EDITED, edited_key
from ..report import Report, label_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._new_entries import NewEntries
    from ..status_line import Edit
    from ._evidence import Evidence
    from ._working_set import WorkingSet
    from .ref_notes import Loss

TAKEN, HEAD, MOVED, BRANCH, LOST = "taken", "head", "moved", "branch", "lost"
SHORT_COMMIT = 7  # characters
ACTIVE_SECONDS = 3600  # a session that was active since then may still be working on its edit
# edits of a session that has done nothing since then leave half of the room to others
IDLE_SECONDS = 900
# The mtime of a file lies between the times of the call's record and its result, within this at
# each end: measured with six runtimes.
SLACK_SECONDS = 0.005
NAMED_FILES = 3
PATH_CHARACTERS = 60
COMMAND_CHARACTERS = 60
NAME_CHARACTERS = 40
LINE_CHARACTERS = 30  # of a path or a title in the status line
_ORDER = (LOST, HEAD, MOVED, TAKEN, EDITED, BRANCH)


class Fact:
    """One collision. `kind` is EDITED, TAKEN (git committed or overwrote this session's uncommitted
    work), HEAD (another branch or commit is checked out), MOVED (the branch is at another commit,
    not by a plain commit), BRANCH (another machine works on the branch `path` too) or LOST (a stash,
    branch or worktree is gone: `loss`, with the key `path`, and with it uncommitted `files`; not
    `is_after` if this session took it from the other).

    `session` is the key of the other session, '' if unknown; `time` when it happened; `own_time`
    the time of this session's own action, by which the fact is reported once. `is_after` says that
    the edit came after the own action, whose kind is `own_kind`; `is_removed` that the file is
    gone; `words` are those of the git command; `before` and `now` the branch or commit checked out,
    or `now` the commit with the edit. `is_elsewhere` marks two machines' copies of a file,
    `worktree` names that of the repository with the copy that was edited. It `is_doubtful` if only
    the file's time shows it."""

    def __init__(
        self,
        kind: str,
        session: str,
        time: float,
        *,
        path: str = "",
        own_time: float = 0.0,
        own_kind: str = "",
        words: tuple[str, ...] = (),
        heads: tuple[str, str] = ("", ""),
    ) -> None:
        self.kind = kind
        self.session = session
        self.time = time
        self.path = path
        self.own_time = own_time
        self.own_kind = own_kind
        self.words = words
        self.before, self.now = heads
        self.is_after = True
        self.is_removed = False
        self.is_elsewhere = False
        self.is_doubtful = False
        self.worktree = ""
        self.loss: Loss | None = None
        self.files: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Identify the fact among those that were reported."""
        if self.kind == LOST:
            return f"{LOST} {self.path}"
        return f"{self.kind} {self.session} {self.path}" if self.path else self.kind


def edit_facts(
    own: WorkingSet,
    session: str,
    actions: list[FileAction],
    evidence: Evidence,
    settled: Mapping[str, float],
    reported: Mapping[str, float],
    *,
    is_active: bool,
) -> tuple[list[Fact], list[FileAction]]:
    """Return the edits, removals and moves of files of this session by `session`, after this one
    read or edited them; if it `is_active`, also before, unless committed or read since. Return too
    its actions without a result yet, to ask again. `settled` says by key up to when such actions
    need no report, `reported` which facts were reported."""
    facts: list[Fact] = []
    open_actions: list[FileAction] = []
    by_path: dict[str, list[FileAction]] = {}
    for action in actions:
        if action.kind in (EDIT, REMOVE):
            for path in own.reached_by(action):
                if action.time > settled.get(edited_key(session, path), 0.0):
                    by_path.setdefault(path, []).append(action)
    for path, found in by_path.items():
        mine = own.last(path, evidence)
        if mine is None or reported.get(edited_key(session, path), -1.0) >= mine.time:
            continue
        for action in reversed(found):
            if action.is_doubtful and _is_reported(path, mine.time, reported):
                continue
            fact = _edit_fact(own, mine, session, action, evidence, is_active)
            if fact is not None:
                facts.append(fact)
                break
            if not action.is_elsewhere and evidence.end(session, action)[0] is None:
                open_actions.append(action)
    return facts, open_actions


def _edit_fact(
    own: WorkingSet,
    mine: FileAction,
    session: str,
    action: FileAction,
    evidence: Evidence,
    is_active: bool,
) -> Fact | None:
    path = mine.path
    if action.is_elsewhere:  # the file here proves nothing: each machine has its own copy
        fact = Fact(EDITED, session, action.time, path=path, own_kind=EDIT, own_time=mine.time)
        fact.is_elsewhere = True
        return fact if own.last(path, evidence, (EDIT,)) is not None else None
    if not evidence.is_done(session, action):
        return None
    if action.copy:
        return _copy_fact(own, mine, session, action, evidence)
    if action.kind == REMOVE and evidence.modified(path) is not None:
        return None  # it was made again, or never gone
    end, _ = evidence.end(session, action)
    began = evidence.began(session, action) - SLACK_SECONDS
    own_end = evidence.ended("", mine)
    modified = evidence.modified(path, is_moved=bool(action.words))
    until = evidence.modified_until(path, is_moved=bool(action.words))
    if modified is not None and until < began:
        if action.is_command or end is None or not evidence.is_older(path, began):
            return None  # nothing has changed it since: the command did not get that far
        modified = until = end  # a tool says that it has: the clock of the file system is behind
    if action.is_doubtful and (
        modified is None or end is None or not began <= modified <= end + SLACK_SECONDS
    ):
        return None  # not even the file's time shows that it was run
    if (
        action.is_doubtful
        and modified
        and _may_have_written(own, path, (modified, until), evidence)
    ):
        return None
    when = action.time if end is None else end
    is_own = modified is not None and mine.call_id != ""  # a planned edit has no call yet
    is_own = (
        is_own
        and evidence.began("", mine) - SLACK_SECONDS <= until
        and (modified or 0) <= own_end + SLACK_SECONDS
    )
    if modified is not None and (
        began <= until and modified <= when if end is not None else not is_own
    ):
        when = max(modified, min(until, began + SLACK_SECONDS))
    if when > own_end + SLACK_SECONDS or (modified is None and when > mine.time):
        if modified is not None and until <= own_end + SLACK_SECONDS:
            return None  # as this session left it
        if modified is None and action.kind == EDIT and end is None:
            return None
        if modified is not None and mine.kind == EDIT and evidence.is_as_written(path, mine):
            return None
        is_last = modified is not None and (end is None or modified <= end + SLACK_SECONDS)
        if is_last and action.is_command and _is_untouched(mine, action, began, evidence):
            return None
        fact = Fact(EDITED, session, when, path=path, own_kind=mine.kind, own_time=mine.time)
        fact.is_removed = action.kind == REMOVE and modified is None
        fact.is_doubtful = action.is_doubtful
        return fact
    edit = own.last(path, evidence, (EDIT,)) if is_active and action.kind == EDIT else None
    if edit is None or not own.updated <= edit.time or action.time >= edit.time:
        return None
    if own.has_read(path, when, evidence):
        return None  # it has seen the edit
    if not evidence.is_in_worktree(path.rpartition("/")[0]) or _is_committed(path, when, evidence):
        return None
    fact = Fact(EDITED, session, when, path=path, own_kind=EDIT, own_time=mine.time)
    fact.is_after = False
    return fact


def _is_reported(path: str, since: float, reported: Mapping[str, float]) -> bool:
    """Check if an edit of a file by any session was reported since a time."""
    return any(
        [
            time >= since and key.startswith(EDITED) and key.endswith(f" {path}")
            for key, time in reported.items()
        ]
    )


def _may_have_written(
    working_set: WorkingSet, path: str, times: tuple[float, float], evidence: Evidence
) -> bool:
    """Check if a command of this session that names a file was perhaps running as that was written,
    by the earliest and the latest time of that."""
    name = path.rpartition("/")[2]
    commands = [
        action
        for action in working_set.commands
        if action.kind == COMMAND and name in action.words[0]
    ]
    ends = [evidence.ended("", action) for action in commands if action.time <= times[1]]
    return any([end + SLACK_SECONDS >= times[0] for end in ends])


def _is_untouched(mine: FileAction, action: FileAction, began: float, evidence: Evidence) -> bool:
    """Check if the command that wrote a file last, and began then, changed no byte of it, as with a
    `sed -i` that matched nothing: its replacement is not there; or the file is as committed, and
    this session has read it so, or its edit was committed before."""
    path = mine.path
    if evidence.lacks_replacement(path, action.command):
        return True
    later = [move for move in evidence.moves() if move.time >= int(mine.time)]
    later = [move for move in later if evidence.has_changed(move, path) is not False]
    # A commit after the command may have taken its change along.
    is_known = (
        not later if mine.kind == READ else later and all([move.time <= began for move in later])
    )
    return bool(is_known) and evidence.is_as_committed(path) is True


def _copy_fact(
    own: WorkingSet, mine: FileAction, session: str, action: FileAction, evidence: Evidence
) -> Fact | None:
    """Return that this session edited a file, and `session` the copy in another worktree, still as
    it left it."""
    end, _ = evidence.end(session, action)
    modified = evidence.modified(action.copy)
    if end is None or not modified or own.last(mine.path, evidence, (EDIT,)) is None:
        return None
    began, until = evidence.began(session, action), evidence.modified_until(action.copy)
    if until < began - SLACK_SECONDS or modified > end + SLACK_SECONDS:
        return None
    fact = Fact(EDITED, session, modified, path=mine.path, own_kind=EDIT, own_time=mine.time)
    fact.worktree = action.worktree
    return fact


def _is_committed(path: str, since: float, evidence: Evidence) -> bool:
    """Check if a commit may hold an edit made at the time `since`."""
    commits = [
        move
        for move in evidence.moves()
        if move.message.startswith("commit") and move.time >= int(since)
    ]
    taking = [move for move in commits if evidence.has_changed(move, path) is not False]
    modified = evidence.modified(path)
    if taking and modified is not None and modified <= since + SLACK_SECONDS:
        # The log has whole seconds, but the file is as it was left: compare the index.
        staged = evidence.staged([path]).get(path)
        return staged is not None and staged in [
            evidence.object_after(move, path) for move in taking
        ]
    return bool(taking)


def lines_of(
    facts: list[Fact], others: Mapping[str, Report], directory: str, now: float, room: int
) -> tuple[list[str], list[Fact]]:
    """Return a line for each group of similar facts, in at most `room` characters with a line feed
    before each, the gravest first, then the newest; and the facts in them. Several sessions that
    edited one file share a line; edits of idle ones come last. `others` are the reports of sessions
    by their keys. Paths are relative to `directory`."""
    idle = {key for key, other in others.items() if other.last_active < now - IDLE_SECONDS}

    def order(fact: Fact) -> tuple[float, ...]:
        is_idle = fact.kind == EDITED and fact.session in idle
        return _ORDER.index(fact.kind), is_idle, -fact.is_after, -fact.time

    files: dict[tuple[object, ...], list[Fact]] = {}
    for fact in sorted(facts, key=order):
        session = "" if fact.kind == EDITED else fact.session
        files.setdefault((*_alike(fact), fact.path, session), []).append(fact)
    groups: dict[tuple[object, ...], list[Fact]] = {}
    for found in files.values():
        sessions = found[0].session, frozenset([fact.session for fact in found])
        groups.setdefault((*_alike(found[0]), *sessions), []).extend(found)
    lines: list[str] = []
    reported: list[Fact] = []
    idle_room = room // 2
    for group in groups.values():
        line = _line(group, others.get(group[0].session), directory, now)
        is_idle = group[0].kind == EDITED and group[0].session in idle
        if len(line) < (min(room, idle_room) if is_idle and lines else room):
            room -= len(line) + 1
            idle_room -= len(line) + 1 if is_idle else 0
            lines.append(line)
            reported += group
    return lines, reported


def newest_edit(facts: list[Fact], others: Mapping[str, Report], directory: str) -> Edit | None:
    """Return the newest edit among `facts` for the person's status line; None if there is none."""
    edits = [fact for fact in facts if fact.kind == EDITED and fact.session in others]
    if not edits:
        return None
    fact = max(edits, key=lambda one: one.time)
    other = others[fact.session]
    *texts, path = quotable([*other.texts, relative(fact.path, directory)])
    by = other.runtime or label_of(texts, other.place[0], LINE_CHARACTERS)
    done = (
        "removed by"
        if fact.is_removed
        else "edited by"
        if fact.own_kind == READ
        else "also edited by"
    )
    done = "changed during a command of" if fact.is_doubtful else done
    return f"{shorten(path, LINE_CHARACTERS)} {done} {by}", fact.time, fact.session


def _alike(fact: Fact) -> tuple[object, ...]:
    """Return what the facts of one line have in common beside their files and sessions."""
    return (
        fact.kind,
        fact.own_kind,
        fact.is_after,
        fact.is_removed,
        fact.is_elsewhere,
        fact.is_doubtful,
        fact.worktree,
        (fact.words, fact.now, fact.path if fact.kind == LOST else ""),
    )


def reports_by_key(reports: Iterable[tuple[Report, NewEntries]]) -> dict[str, Report]:
    """Return the reports by the keys of their sessions."""
    return {new.session.key: report for report, new in reports}


def called(report: Report) -> str:
    """Return what a session is called in a line, with its runtime if that is not this session's."""
    *texts, runtime = quotable([*report.texts, report.runtime])
    return label_of(texts, report.place[0]) + (f" ({runtime})" if runtime else "")


def shown_command(command: str) -> str:
    """Return a command as it was typed, on one line between backquotes."""
    typed = one_line(for_prompt(beginning(command, 2 * COMMAND_CHARACTERS))).replace("`", "'")
    return f"`{shorten(typed, COMMAND_CHARACTERS)}`"


def _line(group: list[Fact], other: Report | None, directory: str, now: float) -> str:
    """Return the line about facts that differ only in their path and session, the newest first."""
    first = group[0]
    if first.kind == LOST:
        from ._loss_text import lost_line

        when = age(now - first.time)
        return lost_line(first, f"{when} by {called(other)}" if other else when)
    paths = [
        relative(path, directory) for path in dict.fromkeys([fact.path for fact in group]) if path
    ]
    number, more = len(paths), len({fact.session for fact in group}) - 1
    words = " ".join(
        ["git", *[f'"{word}"' if " " in word else word or ELLIPSIS for word in first.words]]
    )
    before, after, worktree, *paths = quotable(
        [first.before, first.now, first.worktree, *paths[:NAMED_FILES]]
    )
    files = [shorten(path, PATH_CHARACTERS) for path in paths]
    if number > NAMED_FILES:
        files.append(f"{number - NAMED_FILES} more")
    when = age(now - max(fact.time for fact in group))
    by = (
        f"{when} {'during a command of' if first.is_doubtful else 'by'} {called(other)}"
        if other
        else when
    )
    by += f" and {counted(more, 'more session')}" if more else ""
    is_quoted = other is not None and other.may_quote and first.words
    ran = f"{shown_command(words)} run" if is_quoted else ""
    if first.kind == HEAD:
        return (
            f"! {_head(after, 'now')}, it was {shorten(before, NAME_CHARACTERS)}: "
            f"{ran or 'switched'} {by}"
        )
    if first.kind == MOVED:
        return f"! {_head(after, 'still')}, but no longer at {before}: {ran or 'moved'} {by}"
    if first.kind == TAKEN:
        edit = "edit was" if number == 1 else "edits were"
        commit = f"; now in commit {first.now[:SHORT_COMMIT]}" if first.now and is_quoted else ""
        return (
            f"! {enumerated(files)}: {ran or 'git run'} {by}, while your {edit} not "
            f"committed{commit}"
        )
    if first.kind == BRANCH:
        return f"! {files[0]}, the branch you are on: also worked on {by} on another machine"
    it = "it" if number == 1 else "them"
    if first.is_elsewhere or first.worktree:
        where = (
            f" in worktree {shorten(worktree, NAME_CHARACTERS)}"
            if first.worktree
            else " on another machine"
        )
        # its name tells
        where = "" if first.worktree and other and other.place[1] == first.worktree else where
        return f"! {enumerated(files)}: edited {by}{where}, and you edited {it} here"
    done = "removed or moved" if first.is_removed else "changed" if first.is_doubtful else "edited"
    order = (
        f"after you {'read' if first.own_kind == READ else 'edited'}"
        if first.is_after
        else "before you edited"
    )
    return f"! {enumerated(files)}: {done} {by}, {order} {it}"


def _head(head: str, adverb: str) -> str:
    """Return the beginning of a sentence about the branch or commit checked out."""
    return (
        f"HEAD is {adverb} at {head[:SHORT_COMMIT]}"
        if is_commit(head)
        else f"branch is {adverb} {shorten(head, NAME_CHARACTERS)}"
    )
