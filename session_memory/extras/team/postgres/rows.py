"""Shared parts of the engine's queries: the condition of a filter, and rows as values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ....common.text.format import one_line
from ....common.text.sanitize import plain
from ....history.store.sqlite.rows import SAID_CHARACTERS, first_words
from ....history.store.values import (
    ITEM_BITS,
    Conversation,
    Filter,
    StoredEntry,
    joined,
    project_patterns,
)

if TYPE_CHECKING:
    from ....history.store.values import Visible

LABEL_CHARACTERS = 1000  # of a name, a path, a kind
TEXT_CHARACTERS = 2_000_000
LATEST = 253_370_764_800_000  # the year 9999: behind it no program can write a time
LARGEST_SIZE = 1 << 40
# the most items that a conversation spans, and that have a term in a segment
MOST_NUMBERS = 1_000_000
LIVE_HOURS = 24  # that what a session changed counts


class UnmergedFile(NamedTuple):
    """A file at `path` in its project, changed by a session at the commit `head`.

    It has its objects where the branch left the default branch and now, '' for none. A hunk is its
    first line and the line after its last before the change, and its first and last line after it.
    `at` is in milliseconds since the epoch."""

    path: str
    head: str
    base: str
    blob: str
    hunks: tuple[tuple[int, int, int, int], ...]
    at: int


class OthersHandoff(NamedTuple):
    """A session that another member or machine handed over on a branch.

    `at` is in milliseconds since the epoch."""

    who: str
    project: str
    session_id: str
    runtime: str
    title: str
    branch: str
    at: int
    page: str


class OthersFile(NamedTuple):
    """A file that a session of another member or machine changed.

    It has the session's number in the team, and `who` as in ann@laptop."""

    session: int
    who: str
    project: str
    session_id: str
    runtime: str
    title: str
    branch: str
    file: UnmergedFile

    @property
    def at(self) -> int:
        return self.file.at


def time_in(column: str) -> str:
    """Return SQL for a time that a member pushed, NULL for an impossible one."""
    return f"CASE WHEN {column} BETWEEN {-LATEST // 5} AND {LATEST} THEN {column} END"


def size_in(column: str) -> str:
    """Return SQL for a size that a member pushed, NULL for an impossible one."""
    return f"CASE WHEN {column} BETWEEN 0 AND {LARGEST_SIZE} THEN {column} END"


# A condition on `conversation AS c`: this program wrote the row.
IS_SOUND = (
    f"c.first_number >= 0 AND c.last_number - c.first_number::bigint BETWEEN 0 AND {MOST_NUMBERS}"
)
# The fields of values.Conversation; if the title is made from the user's first words, these come
# last. A conversation is identified by its first item.
CONVERSATIONS = f"""
    SELECT c.session << {ITEM_BITS} | c.first_number, s.session_id, s.file_path, s.home, s.runtime, s.cwd, s.title,
        {time_in("c.first_at")}, {time_in("c.last_at")}, greatest(c.message_count, 0), '', '',
        s.owner || '@' || s.machine, CASE WHEN s.title = '' THEN (
            SELECT left(i.text, {SAID_CHARACTERS}) FROM item AS i
            WHERE i.session = c.session AND i.number BETWEEN c.first_number AND c.last_number AND i.role = 'user'
            ORDER BY i.number LIMIT 1
        ) END
    FROM conversation AS c JOIN session AS s ON s.id = c.session AND {IS_SOUND}
"""


def select_items(text_characters: int = TEXT_CHARACTERS) -> str:
    """Return SQL for the fields of values.StoredEntry, with the beginning of each text."""
    return f"""
        SELECT i.session << {ITEM_BITS} | i.number, i.role, left(i.text, {text_characters}), {time_in("i.at")},
            coalesce(i.cwd, s.cwd), i.byte_offset, i.message, coalesce(i.tool, ''), coalesce(i.kind, ''),
            coalesce(i.outcome, ''), coalesce(i.error, ''), {size_in("i.result_size")}, {size_in("i.result_lines")}
        FROM item AS i JOIN session AS s ON s.id = i.session
    """


def conversation_of(row: Sequence[Any]) -> Conversation:
    """Return the conversation of a row, titled by its first words if it has no title."""
    conversation = Conversation._make(labels(row[:-1]))
    said = plain(row[-1] or "")
    return conversation._replace(title=first_words(said)) if said else conversation


def entry_of(row: Sequence[Any]) -> StoredEntry:
    """Return the entry or tool use of a row."""
    return StoredEntry._make(labels(row))._replace(text=plain(row[2]))


def labels(values: Sequence[Any]) -> list[Any]:
    """Return values that are safe to show, whatever was pushed.

    Texts are on one short line without control characters."""
    return [
        one_line(plain(value[:LABEL_CHARACTERS])) if isinstance(value, str) else value
        for value in values
    ]


def where(wanted: Filter, visible: Visible, of: str = "c") -> tuple[str, list[Any]]:
    """Return the condition on `conversation AS c` and `session AS s`, and its values.

    There is no `status` here. Times are the conversation's, or with `of` "s" the session's."""
    patterns = project_patterns(wanted.project, re.escape)
    below = [
        value
        for directory in wanted.directories
        for value in (directory, f"{directory.rstrip('/')}/")
    ]
    is_in = " OR ".join(["s.cwd = %s OR starts_with(s.cwd, %s)"] * len(wanted.directories))
    return joined(
        (visible is not None, "s.home = ANY(%s)", [list(visible or ())]),
        (
            wanted.project,
            "(s.cwd ~ ANY(%s) OR s.file_path ~ ANY(%s))",
            [patterns[:2], patterns[2:]],
        ),
        (below, f"({is_in})", below),
        (wanted.session, "starts_with(s.session_id, %s)", (wanted.session,)),
        (wanted.runtime, "s.runtime = %s", (wanted.runtime,)),
        (wanted.status, "false", ()),
        (wanted.since is not None, f"{of}.last_at >= %s", (wanted.since,)),
        (wanted.until is not None, f"{of}.first_at <= %s", (wanted.until,)),
    )
