"""Lines of an update about collisions. Pure."""

from __future__ import annotations

from ...system.git import is_commit
from ...text.format import ELLIPSIS, enumerated, one_line, shorten
from ...text.paths import relative
from ...text.sanitize import all_for_prompt
from ...text.timestamps import age
from ..actions import READ
from ..call_log import EDITED
from .facts import BRANCH, HEAD, MOVED, SHORT_COMMIT, TAKEN, Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..new_entries import NewEntries
    from ..report import Report

NAMED_FILES = 3
PATH_CHARACTERS = 60
COMMAND_CHARACTERS = 60
NAME_CHARACTERS = 40
_ORDER = (HEAD, MOVED, TAKEN, EDITED, BRANCH)


class Other:
    """Another session in a line: its name, and if its commands may be shown."""

    __slots__ = ("may_quote", "name")

    def __init__(self, name: str, may_quote: bool) -> None:
        self.name = name
        self.may_quote = may_quote


def others_of(reports: Iterable[tuple[Report, NewEntries]]) -> dict[str, Other]:
    """Return the sessions with reports by their keys."""
    return {new.session.key: Other(report.called + "".join(report.place), report.may_quote) for report, new in reports}


def lines_of(
    facts: list[Fact], others: Mapping[str, Other], directory: str, now: float, room: int
) -> tuple[list[str], list[Fact]]:
    """Return a line for each group of similar facts, in at most `room` characters with a line feed before each, the
    gravest first; and the facts in them. Paths are relative to `directory`."""
    groups: dict[tuple[object, ...], list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: (_ORDER.index(fact.kind), fact.own_kind, -fact.is_after, -fact.time)):
        same = (fact.kind, fact.session, fact.own_kind, fact.is_after, fact.is_removed, fact.is_elsewhere, fact.words)
        groups.setdefault(same, []).append(fact)
    grouped = list(groups.values())
    texts = [_texts(group, others, directory) for group in grouped]
    # Sanitized in one call, which is faster.
    quotable = iter(all_for_prompt([text for one in texts for text in one]))
    lines: list[str] = []
    reported: list[Fact] = []
    for group, raw in zip(grouped, texts):
        line = _line(group, others, [one_line(next(quotable)).replace('"', "'") for _ in raw], now)
        if len(line) + 1 <= room:
            room -= len(line) + 1
            lines.append(line)
            reported += group
    return lines, reported


def _texts(group: list[Fact], others: Mapping[str, Other], directory: str) -> list[str]:
    """Return the untrusted texts of a line: up to NAMED_FILES paths, both branches or commits, the command, the
    name."""
    first = group[0]
    paths = [relative(fact.path, directory) for fact in group if fact.path]
    words = [f"'{word}'" if " " in word else word or ELLIPSIS for word in first.words]
    name = others[first.session].name if first.session in others else ""
    return [*paths[:NAMED_FILES], first.before, first.now, " ".join(["git", *words]), name]


def _line(group: list[Fact], others: Mapping[str, Other], texts: list[str], now: float) -> str:
    """Return the line about facts that differ only in their path; `texts` are those of `_texts`, sanitized."""
    first = group[0]
    other = others.get(first.session)
    *shown, before, after, command, name = texts
    files = [shorten(path, PATH_CHARACTERS) for path in shown]
    if len(group) > NAMED_FILES:
        files.append(f"{len(group) - NAMED_FILES} more")
    name = shorten(name, NAME_CHARACTERS)
    when = age(now - max(fact.time for fact in group))
    if other and other.may_quote and first.words:
        by = f'{name} ran "{shorten(command, COMMAND_CHARACTERS)}" {when}'
    else:
        by = f"by {name} {when}" if other else when
    if first.kind == HEAD:
        return f"! {_head(after)} now, it was {shorten(before, NAME_CHARACTERS)}: {by if other else 'switched ' + when}"
    if first.kind == MOVED:
        return f"! {_head(after)} still, but not at {before}: {by if other else 'moved ' + when}"
    if first.kind == TAKEN:
        return f"! {enumerated(files)}, which you had not committed: {by}"
    if first.kind == BRANCH:
        return f"! {files[0]}, the branch you are on: {name} works on it too, on another machine ({when})"
    it = "it" if len(group) == 1 else "them"
    done = f"removed or moved {it}" if first.is_removed else f"edited {it}"
    if first.is_elsewhere:
        return f"! {enumerated(files)}: {name} edited {it} on another machine {when}, and you edited {it} here"
    order = f"after you {'read' if first.own_kind == READ else 'edited'} {it}" if first.is_after else "before you did"
    return f"! {enumerated(files)}: {name} {done} {when}, {order}"


def _head(head: str) -> str:
    """Return the beginning of a sentence about the branch or commit checked out."""
    return f"HEAD is at {head[:SHORT_COMMIT]}" if is_commit(head) else f"branch is {shorten(head, NAME_CHARACTERS)}"
