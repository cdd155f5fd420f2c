"""Lines about collisions: facts in words, the gravest first."""

from __future__ import annotations

from ....common.system.git import is_commit
from ....common.text.format import ELLIPSIS, counted, enumerated, one_line, shorten
from ....common.text.sanitize import beginning, for_prompt, quotable
from ....common.text.timestamps import age
from ..actions import READ
from ..call_log import EDITED
from ..report import NAME_CHARACTERS, Report, label_of
from .facts import (
    BRANCH,
    HEAD,
    IDLE_SECONDS,
    LOST,
    MOVED,
    PATH_CHARACTERS,
    SHORT_COMMIT,
    TAKEN,
    Fact,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._new_entries import NewEntries
    from ..status_line import Edit
    from ..viewpoint import Viewpoint

NAMED_FILES = 3
COMMAND_CHARACTERS = 60
LINE_CHARACTERS = 30  # of a path or a title in the status line
_ORDER = (LOST, HEAD, MOVED, TAKEN, EDITED, BRANCH)


def lines_of(
    facts: list[Fact], others: Mapping[str, Report], viewpoint: Viewpoint, now: float, room: int
) -> tuple[list[str], list[Fact]]:
    """Return a line for each group of similar facts, and the facts in these lines.

    The lines take at most `room` characters, including a line feed before each. The gravest come
    first, then the newest. Sessions that edited the same file share a line; edits of idle sessions
    come last. `others` are the reports of sessions by their keys. Paths are as the `viewpoint`
    shows them."""
    idle = {key for key, other in others.items() if other.last_active < now - IDLE_SECONDS}

    def order(fact: Fact) -> tuple[float, ...]:
        is_idle = fact.kind == EDITED and fact.session in idle
        return _ORDER.index(fact.kind), is_idle, -fact.is_after, -fact.time

    files: dict[tuple[object, ...], list[Fact]] = {}
    for fact in sorted(facts, key=order):
        session = "" if fact.kind == EDITED else fact.session
        files.setdefault((*_alike(fact), fact.path, session), []).append(fact)
    alike: dict[tuple[object, ...], list[Fact]] = {}
    for facts_of_file in files.values():
        sessions = facts_of_file[0].session, frozenset([fact.session for fact in facts_of_file])
        alike.setdefault((*_alike(facts_of_file[0]), *sessions), []).extend(facts_of_file)
    lines: list[str] = []
    reported: list[Fact] = []
    idle_room = room // 2
    for merged in alike.values():
        line = _line(merged, others.get(merged[0].session), viewpoint, now)
        is_idle = merged[0].kind == EDITED and merged[0].session in idle
        if len(line) < (min(room, idle_room) if is_idle and lines else room):
            room -= len(line) + 1
            idle_room -= len(line) + 1 if is_idle else 0
            lines.append(line)
            reported += merged
    return lines, reported


def newest_edit(
    facts: list[Fact], others: Mapping[str, Report], viewpoint: Viewpoint
) -> Edit | None:
    """Return the newest edit among `facts`, for the person's status line, or None."""
    edits = [fact for fact in facts if fact.kind == EDITED and fact.session in others]
    if not edits:
        return None
    fact = max(edits, key=lambda edit: edit.time)
    other = others[fact.session]
    *texts, path = quotable([*other.texts, viewpoint.shown(fact.path)])
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
    """Return the properties, besides files and sessions, that the facts of one line share."""
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
    """Return a session's name for a line, with its runtime if that is not this session's."""
    *texts, runtime = quotable([*report.texts, report.runtime])
    return label_of(texts, report.place[0]) + (f" ({runtime})" if runtime else "")


def shown_command(command: str) -> str:
    """Return a command as typed, on one line between backquotes."""
    typed = one_line(for_prompt(beginning(command, 2 * COMMAND_CHARACTERS))).replace("`", "'")
    return f"`{shorten(typed, COMMAND_CHARACTERS)}`"


def _line(facts: list[Fact], other: Report | None, viewpoint: Viewpoint, now: float) -> str:
    """Return the line for facts that differ only in path and session, the newest first."""
    first = facts[0]
    if first.kind == LOST:
        from ._loss_text import lost_line

        when = age(now - first.time)
        return lost_line(first, f"{when} by {called(other)}" if other else when)
    return f"! {_LINES[first.kind](_Words(facts, other, viewpoint, now))}"


class _Words:
    """Words about facts that share a line.

    They are its `files`, `by` whom and when these were changed, the git command that was `ran` (''
    if it may not be quoted), and the branches, commits and worktree of the `first` fact."""

    __slots__ = (
        "after",
        "before",
        "by",
        "files",
        "first",
        "is_worktree_in_name",
        "number",
        "ran",
        "worktree",
    )

    def __init__(
        self, facts: list[Fact], other: Report | None, viewpoint: Viewpoint, now: float
    ) -> None:
        first = self.first = facts[0]
        paths = [
            viewpoint.shown(path) for path in dict.fromkeys([fact.path for fact in facts]) if path
        ]
        self.number = len(paths)
        self.before, self.after, self.worktree, *paths = quotable(
            [first.before, first.now, first.worktree, *paths[:NAMED_FILES]]
        )
        self.files = [shorten(path, PATH_CHARACTERS) for path in paths]
        if self.number > NAMED_FILES:
            self.files.append(f"{self.number - NAMED_FILES} more")
        self.by = _by_whom(facts, other, now)
        self.ran = ""
        if other is not None and other.may_quote and first.words:
            quoted = [f'"{word}"' if " " in word else word or ELLIPSIS for word in first.words]
            self.ran = f"{shown_command(' '.join(['git', *quoted]))} run"
        self.is_worktree_in_name = other is not None and other.place[1] == first.worktree

    @property
    def pronoun(self) -> str:
        """Return the pronoun for the files."""
        return "it" if self.number == 1 else "them"


def _by_whom(facts: list[Fact], other: Report | None, now: float) -> str:
    """Return when the facts happened, and the session that made them."""
    by = age(now - max(fact.time for fact in facts))
    if other:
        by += f" {'during a command of' if facts[0].is_doubtful else 'by'} {called(other)}"
    more = len({fact.session for fact in facts}) - 1
    return f"{by} and {counted(more, 'more session')}" if more else by


def _head_line(words: _Words) -> str:
    before = shorten(words.before, NAME_CHARACTERS)
    return f"{_head(words.after, 'now')} (was {before}): {words.ran or 'switched'} {words.by}"


def _moved_line(words: _Words) -> str:
    still = _head(words.after, "still")
    return f"{still}, but no longer at {words.before}: {words.ran or 'moved'} {words.by}"


def _taken_line(words: _Words) -> str:
    edit = "edit was" if words.number == 1 else "edits were"
    commit = words.first.now[:SHORT_COMMIT] if words.ran else ""
    line = f"{enumerated(words.files)}: {words.ran or 'a git command run'} {words.by}, while your {edit} not"
    return f"{line} committed" + (f"; now in commit {commit}" if commit else "")


def _branch_line(words: _Words) -> str:
    return f"{words.files[0]}, the branch you are on: also worked on {words.by} on another machine"


def _edited_line(words: _Words) -> str:
    first, files = words.first, enumerated(words.files)
    if first.is_elsewhere or first.worktree:
        return f"{files}: edited {words.by}{_where(words)}, and you edited {words.pronoun} here"
    done = "removed or moved" if first.is_removed else "changed" if first.is_doubtful else "edited"
    order = (
        f"after you {'read' if first.own_kind == READ else 'edited'}"
        if first.is_after
        else "before you edited"
    )
    return f"{files}: {done} {words.by}, {order} {words.pronoun}"


def _where(words: _Words) -> str:
    """Return where another copy of a file was edited; '' if the session's name shows it."""
    if not words.first.worktree:
        return " on another machine"
    if words.is_worktree_in_name:
        return ""
    return f" in worktree {shorten(words.worktree, NAME_CHARACTERS)}"


_LINES = {
    HEAD: _head_line,
    MOVED: _moved_line,
    TAKEN: _taken_line,
    BRANCH: _branch_line,
    EDITED: _edited_line,
}


def _head(head: str, adverb: str) -> str:
    """Return the beginning of a sentence about the checked-out branch or commit."""
    return (
        f"HEAD is {adverb} at {head[:SHORT_COMMIT]}"
        if is_commit(head)
        else f"branch is {adverb} {shorten(head, NAME_CHARACTERS)}"
    )
