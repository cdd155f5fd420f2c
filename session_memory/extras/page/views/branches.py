"""Branches with live sessions, and their conflicts, with both sides of each hunk."""

from __future__ import annotations

from typing import Any

from ....common.system.git_process import GitUnavailableError
from ....common.text.format import counted
from ....common.text.sanitize import for_people
from ....history.conflicts import Clash, Side, Unjudged, find_conflicts, live_sessions, sides_of
from ....history.git.merges import Conflict
from ....history.titles import TITLE_CHARACTERS
from .._page_request import PageRequest
from .._view import View, frame

SHOWN_FILES = 20  # of a repository
SHOWN_HUNKS = 5  # of a file
SHOWN_LINES = 40  # of each side of a hunk
SHOWN_CHARACTERS = 400  # of a line
_DETACHED = "(no branch)"


def _judged(request: PageRequest) -> dict[str, Any]:
    """Return `repositories`: each one's name, its `branches`, and the `files` that would not merge.

    Each pair of branches is listed once. Lines about pairs that could not be judged are in
    `not_judged`."""
    home = request.location.home
    sides = sides_of(live_sessions(home.root, request.environ, request.now), home.user_dir)
    repositories: dict[str, dict[str, Any]] = {}
    for side in sides:
        name = for_people(side.common_dir.removesuffix("/.git").rpartition("/")[2])
        shown = repositories.setdefault(
            side.common_dir, {"name": name, "branches": [], "files": [], "not_judged": []}
        )
        shown["branches"].append(_branch(side))
    seen, unjudged = set(), list[Unjudged]()
    for clash in request.while_wanted(find_conflicts(sides, unjudged=unjudged)):
        pair = (
            clash.conflict.path,
            *sorted((id(clash.own), id(clash.other))),
            clash.change and clash.change.session,
        )
        if pair not in seen:
            seen.add(pair)
            repositories[clash.own.common_dir]["files"].append(_file(clash))
    not_judged = {id(side) for pairs in unjudged for side in (pairs.own, pairs.other)}
    for pairs in unjudged[:SHOWN_FILES]:
        repositories[pairs.own.common_dir]["not_judged"].append(pairs.line)
    for repository in repositories.values():
        for branch in repository["branches"]:
            branch["is_judged"] = branch["side"] not in not_judged
            branch["files"] = sum(
                branch["label"] in (file["own"], file["other"]) for file in repository["files"]
            )
        repository["left_out"] = max(0, len(repository["files"]) - SHOWN_FILES)
        repository["files"] = repository["files"][:SHOWN_FILES]
    return {
        "repositories": sorted(
            repositories.values(), key=lambda repository: not repository["files"]
        )
    }


def _branch(side: Side) -> dict[str, Any]:
    sessions = [
        (session.id, session.title(TITLE_CHARACTERS) or "Untitled", session.runtime.name)
        for session in side.sessions
    ]
    return {
        "side": id(side),
        "label": _label(side),
        "root": for_people(side.root),
        "sessions": sessions,
        "at": side.sessions[0].last_at,
    }


def _label(side: Side | None) -> str:
    return for_people(side.branch or _DETACHED) if side else ""


def _file(clash: Clash) -> dict[str, Any]:
    """Return a file that would not merge, with both sides of each hunk.

    A side is a pair of its first line's number and its text."""
    conflict, own_label, other = (
        clash.conflict,
        _label(clash.own),
        _label(clash.other) or for_people(clash.other_branch),
    )
    other = f"{other or _DETACHED} ({for_people(clash.change.who)})" if clash.change else other
    if clash.commits:
        said = f"{other} got {counted(clash.commits, 'commit')} that {own_label} does not have"
    elif conflict.deleted_by is not None:
        deleted, changed = (own_label, other) if conflict.deleted_by == 0 else (other, own_label)
        said = f"deleted on {deleted}, changed on {changed}"
    else:
        said = f"changed on {own_label} and on {other}"
    return {
        "path": for_people(conflict.path),
        "own": own_label,
        "other": other,
        "said": said,
        "hunks": _hunks(clash, conflict),
        "left_out": max(0, len(conflict.hunks) - SHOWN_HUNKS),
    }


def _hunks(clash: Clash, conflict: Conflict) -> list[tuple[tuple[int, str], tuple[int, str]]]:
    if not conflict.hunks:
        return []
    try:
        texts = clash.texts()
    except GitUnavailableError:
        return []
    hunks = []
    for hunk in conflict.hunks[:SHOWN_HUNKS]:
        own_lines, other = [
            (span[0], for_people(_cut(lines, *span))) for lines, span in zip(texts, hunk)
        ]
        hunks.append((own_lines, other))
    return hunks


def _cut(lines: list[str], first: int, last: int) -> str:
    """Return the lines of a side, cut after SHOWN_LINES; a line, after SHOWN_CHARACTERS."""
    wanted = lines[max(0, first - 1) : last]
    shown = [line.rstrip("\r")[:SHOWN_CHARACTERS] for line in wanted[:SHOWN_LINES]]
    return "\n".join([*shown, "…"] if len(wanted) > SHOWN_LINES else shown)


VIEWS = (
    View("branches", "/branches", frame, "Branches", "b"),
    View("branches_judged", "/branches/judged", _judged),
)
