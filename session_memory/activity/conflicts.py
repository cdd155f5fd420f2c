"""Conflicts with other branches: upkeep finds them and keeps them in a file of the home; a prompt tells those of its
session's worktree, each once."""

from __future__ import annotations

from ..settings.compiled import stamp
from ..system.files import read_whole, write_atomically
from ..system.git import find_worktree
from ..system.json import decode, encode
from ..text.format import shorten
from ..text.timestamps import age
from .changes import conflicts_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..settings.homes import Home
    from ..transcripts.cursor import Cursor
    from .changes import OwnSession

MOST_LINES = 2
PATH_CHARACTERS = 60
OLD_SECONDS = 24 * 3600  # what was kept before is not told


def keep(home: Home, conflicts: list[dict[str, Any]], rules: Iterable[str]) -> bool:
    """Keep what upkeep found, with stamps of the files with the rules that it was judged by; return whether it differs
    from what was kept. Raises OSError."""
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


def new_lines(own: OwnSession, cursor: Cursor, now: float, room: int) -> list[str]:
    """Return the lines about conflicts of the session's worktree that it was not told of, in at most `room` characters
    with a line feed each, and note in its own `cursor` which. What is solved is dropped from that. Raises OSError,
    ValueError."""
    home = own.home
    if home is None:
        return []
    stamped = conflicts_stamp(own)  # before it is read: a later change is seen next time
    try:
        kept = decode(read_whole(home.conflicts_file).decode())
    except FileNotFoundError:
        kept = {"rules": [], "conflicts": []}
    if not all([stamp(path) == known for path, known in kept["rules"]]):
        return []  # upkeep judges again
    worktree = find_worktree(own.directory, home.user_dir)
    root, session_id = worktree.root if worktree else "", own.runtime.session_id_of(own.path)
    told, known = set(cursor.get("conflicts_told", ())), []
    lines: list[str] = []
    are_all = True
    for one in kept["conflicts"]:
        if one["root"] != root or session_id in one["sessions"] or now - one["at"] > OLD_SECONDS:
            continue
        if one["key"] not in told:
            line = line_of(one, now)
            if len(lines) == MOST_LINES or len(line) >= room:
                are_all = False
                continue
            room -= len(line) + 1
            lines.append(line)
        known.append(one["key"])
    cursor["conflicts_told"] = known
    if are_all:
        cursor["conflicts"] = stamped
    return lines


def line_of(one: dict[str, Any], now: float) -> str:
    """Return the line about a conflict, as upkeep keeps it: its texts are sanitized."""
    path, when = shorten(one["path"], PATH_CHARACTERS), age(now - one["at"])
    if one["commits"]:
        are = "1 commit that touches" if one["commits"] == 1 else f"{one['commits']} commits that touch"
        return f"! {path}: {one['branch']} got {are} what you changed; your branch begins before"
    branch = f", branch {shorten(one['branch'], PATH_CHARACTERS)}" if one["branch"] else ""
    by = f"by {one['name']} ({one['runtime']}{branch})"
    if one["deleted_by"] is not None:
        done = "which you deleted, changed" if one["deleted_by"] == 0 else "deleted"
        return f"! {path}: {done} {when} {by}, conflicts with your {'deletion' if one['deleted_by'] == 0 else 'edit'}"
    own, other = [_span(lines) for lines in one["lines"]]
    if not own or not other:
        return f"! {path}: changed {when} {by}, conflicts with your change"
    noun, verb = ("lines", "conflict") if "-" in other else ("line", "conflicts")
    return f"! {path}: {noun} {other} changed {when} {by} {verb} with your {own}"


def _span(lines: list[int]) -> str:
    first, last = lines
    return "" if not first else f"{first}" if first == last else f"{first}-{last}"
