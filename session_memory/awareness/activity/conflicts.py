"""Conflicts with other branches: upkeep finds them and keeps them in a file of the home; a prompt
tells those of its session's worktree, and a call those of the file that it edits, each once."""

from __future__ import annotations

from ...common.system.files import os, read_whole, write_atomically
from ...common.system.git import find_worktree
from ...common.system.json import decode, encode
from ...common.text.format import shorten
from ...common.text.timestamps import age
from ...sessions.settings.compiled import stamp
from .call_log import reported_with_calls
from .changes import OwnSession, conflicts_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping
    from typing import Any

    from ...sessions.settings.homes import Home
    from .collisions.facts import Fact
    from .session_state import OwnState

MOST_LINES = 2
TEAM = "team:"  # how the key of a session of another machine begins
PATH_CHARACTERS = 60
OLD_SECONDS = 24 * 3600  # what was kept before is not told


def keep(home: Home, conflicts: list[dict[str, Any]], rules: Iterable[str]) -> bool:
    """Keep what upkeep found, with stamps of the files with the rules that it was judged by; return
    whether it differs from what was kept. Raises OSError."""
    kept = {"rules": [(path, stamp(path)) for path in rules], "conflicts": conflicts}
    content = encode(kept).encode()
    try:
        before = read_whole(home.conflicts_file)
    except FileNotFoundError:
        before = b""
    if content == before or (not conflicts and not before):
        return False
    write_atomically(home.conflicts_file, content)
    return True


def judged(own: OwnSession, now: float) -> list[dict[str, Any]] | None:
    """Return the conflicts that upkeep keeps and that may be told to the session; None if it has to
    judge again, as rules have changed. Raises OSError, ValueError."""
    if own.home is None:
        return None
    try:
        kept = decode(read_whole(own.home.conflicts_file).decode())
    except FileNotFoundError:
        return []
    if not all([stamp(path) == known for path, known in kept["rules"]]):
        return None
    session_id = own.runtime.session_id_of(own.path)
    return [
        one
        for one in kept["conflicts"]
        if session_id not in one["sessions"] and now - one["at"] <= OLD_SECONDS
    ]


def of_files(own: OwnSession, paths: list[str], now: float) -> list[dict[str, Any]]:
    """Return the conflicts in the files at `paths` (absolute, through no link). Raises OSError,
    ValueError."""
    return [one for one in judged(own, now) or () if one.get("file") in paths]


def of_copies(own: OwnSession, facts: list[Fact], ids: Mapping[str, str], now: float) -> list[Fact]:
    """Return the edits of copies in other worktrees or on other machines that a conflict tells of,
    or will: those that the merge has seen. `ids` are those of the sessions by their keys. Raises
    OSError, ValueError."""
    copies = [fact for fact in facts if fact.worktree or fact.session.startswith(TEAM)]
    found = of_files(own, [fact.path for fact in copies], now)
    seen = {(one["file"], session): one["at"] for one in found for session in one["sessions"]}
    return [
        fact
        for fact in copies
        if fact.time <= seen.get((fact.path, ids.get(fact.session, "")), 0.0)
    ]


def hit(own: OwnSession, path: str, replaced: list[str], now: float) -> dict[str, Any] | None:
    """Return the first conflict in the file at `path` whose own lines hold one of the `replaced`
    texts, with these lines. None if the file has been written since upkeep judged it: its lines are
    others. A text that does not stand exactly once in the file has no place. Raises OSError,
    ValueError."""
    found = [one for one in of_files(own, [path], now) if one["hunks"]]
    if (
        not found
        or own.home is None
        or os.stat(path).st_mtime_ns > os.stat(own.home.conflicts_file).st_mtime_ns
    ):
        return None
    content = read_whole(path).decode("utf-8", "replace").replace("\r\n", "\n")
    spans = []
    for text in [one.replace("\r\n", "\n") for one in replaced]:
        if text and content.count(text) == 1:
            first = content[: content.index(text)].count("\n") + 1
            spans.append((first, first + text.removesuffix("\n").count("\n")))
    for one in found:
        for hunk in one["hunks"]:
            if any([first <= hunk[0][1] and last >= hunk[0][0] for first, last in spans]):
                return {**one, "lines": hunk}
    return None


def new_lines(own: OwnSession, state: OwnState, now: float, room: int) -> list[str]:
    """Return the lines about conflicts of the session's worktree that it was not told of, in at
    most `room` characters with a line feed each, and note in its own `state` which. Solved
    ones are dropped from that. Raises OSError, ValueError."""
    stamped = conflicts_stamp(own)  # before it is read: a later change is seen next time
    found = judged(own, now)
    if found is None:
        return []
    worktree = find_worktree(own.directory, own.user_dir)
    found = [one for one in found if one["root"] == (worktree.root if worktree else "")]
    told = {*state.conflicts_told, *reported_with_calls(own.cursor_file, now)}
    lines, state.conflicts_told = lines_about(found, told, now, room)
    if len(state.conflicts_told) == len(found):
        state.conflicts = stamped
    return lines


def lines_about(
    conflicts: Iterable[dict[str, Any]], told: Container[str], now: float, room: int
) -> tuple[list[str], list[str]]:
    """Return lines about those conflicts whose keys are not among the `told` ones, in at most
    `room` characters with a line feed each, and the keys of all that are told by now."""
    lines: list[str] = []
    keys: list[str] = []
    for one in conflicts:
        if one["key"] not in told:
            line = line_of(one, now)
            if len(lines) == MOST_LINES or len(line) >= room:
                continue
            room -= len(line) + 1
            lines.append(line)
        keys.append(one["key"])
    return lines, keys


def line_of(conflict: dict[str, Any], now: float) -> str:
    """Return the line about a conflict, as upkeep keeps it: its texts are sanitized."""
    path, when = shorten(conflict["path"], PATH_CHARACTERS), age(now - conflict["at"])
    if conflict["commits"] == 1:
        return (
            f"! {path}: {conflict['branch']} has a newer commit that changes files you edited; "
            "your branch lacks it"
        )
    if conflict["commits"]:
        return (
            f"! {path}: {conflict['branch']} has {conflict['commits']} newer commits that change files you "
            "edited; your branch lacks them"
        )
    branch = f"branch {shorten(conflict['branch'], PATH_CHARACTERS)}" if conflict["branch"] else ""
    if conflict["name"]:
        by = f"by {conflict['name']} ({', '.join(filter(None, (conflict['runtime'], branch)))})"
    else:  # nothing proves which session did it
        by = f"on {branch}" if branch else "in another worktree"
    if conflict["deleted_by"] is not None:
        mine, theirs = ("deletion", "edit") if conflict["deleted_by"] == 0 else ("edit", "deletion")
        return f"! {path}: your {mine} conflicts with its {theirs} {when} {by}"
    mine, theirs = [_lines(lines) for lines in conflict["lines"]]
    if not mine or not theirs:
        return f"! {path}: your change conflicts with a change made {when} {by}"
    verb = "conflict" if mine.startswith("lines") else "conflicts"
    verb = verb if conflict.get("is_certain", True) else "may conflict"
    return f"! {path}: your {mine} {verb} with {theirs} changed {when} {by}"


def _lines(span: list[int]) -> str:
    first, last = span
    return "" if not first else f"line {first}" if first == last else f"lines {first}-{last}"
