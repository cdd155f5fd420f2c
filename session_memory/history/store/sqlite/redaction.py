"""Redacts texts that were stored under earlier rules for secrets, a few items at a time.

The database records the progress, with a checksum of the rules. If the rules change, it starts
again.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ....common.system.files import read_whole
from ....common.system.sqlite import Connection, fetch
from ....common.text import secrets
from ..values import ITEM_BITS

BATCH_ITEMS = 2000
HIGHEST_ITEM = (1 << 63) - 1
# The columns of each table that contain text from elsewhere; the indexed column comes first.
_COLUMNS = {
    "memory_transcript_entries": ("content", "cwd"),
    "memory_tool_uses": ("argument", "name", "error", "cwd"),
}


class Redaction(NamedTuple):
    """The progress of redaction.

    Items up to `until` are done by `rules`. `is_changed` means that some text was redacted."""

    rules: str
    until: int
    is_changed: bool
    is_done: bool


def rule_set() -> str:
    """Return a checksum of the rules by which secrets are found."""
    from hashlib import blake2b  # imported late: loads OpenSSL, and a search hashes nothing

    directory = os.path.dirname(secrets.__file__)
    hashed = blake2b(digest_size=8)
    for name in sorted(os.listdir(directory)):
        if name.endswith((".py", ".tsv")):
            hashed.update(read_whole(f"{directory}/{name}"))
    return hashed.hexdigest()


def state(connection: Connection) -> Redaction:
    """Return how far the store is redacted by the rules of today."""
    rules = rule_set()
    rows = fetch(
        connection,
        "SELECT rules, until, is_changed, is_done FROM memory_redaction WHERE rules = ?",
        (rules,),
    )
    return next(
        (Redaction(*row[:2], *map(bool, row[2:])) for row in rows),
        Redaction(rules, 0, False, False),
    )


def keep(connection: Connection, known: Redaction) -> None:
    """Note how far it is, within the caller's transaction."""
    connection.execute("DELETE FROM memory_redaction")
    connection.execute("INSERT INTO memory_redaction VALUES (?, ?, ?, ?)", known)


def share_done(connection: Connection) -> float:
    """Return the share of items that are done, from 0 to 1."""
    known = state(connection)
    if known.is_done:
        return 1.0
    counts = [
        fetch(
            connection, f"SELECT count(*), coalesce(sum(id <= ?), 0) FROM {table}", (known.until,)
        )[0]
        for table in _COLUMNS
    ]
    return float(sum(done for _, done in counts) / max(1, sum(items for items, _ in counts)))


def redact_some(connection: Connection, known: Redaction) -> Redaction:
    """Redact the next items or, at the end, the files, within the caller's transaction.

    Return the new progress."""
    rows = {}
    for table, columns in _COLUMNS.items():
        sql = f"SELECT id, {', '.join(columns)} FROM {table} WHERE id > ? ORDER BY id LIMIT ?"
        rows[table] = fetch(connection, sql, (known.until, BATCH_ITEMS))
    ends = [batch[-1][0] for batch in rows.values() if len(batch) == BATCH_ITEMS]
    until = min(ends) if ends else HIGHEST_ITEM
    changed = [
        _redact(connection, table, [row for row in batch if row[0] <= until])
        for table, batch in rows.items()
    ]
    is_done = not ends
    if is_done:
        from ....common.text.sanitize import for_storage
        from . import _sub_agent_calls as sub_agent_calls

        files = fetch(connection, "SELECT title, cwd, id FROM memory_file_states")
        redacted = [(for_storage(title), for_storage(cwd), id) for title, cwd, id in files]
        differing = [after for before, after in zip(files, redacted) if before != after]
        connection.executemany(
            "UPDATE memory_file_states SET title = ?, cwd = ? WHERE id = ?", differing
        )
        changed += [bool(differing), sub_agent_calls.redact(connection)]
        # these are reloaded, and redacted
        connection.execute("UPDATE memory_pages SET stamp = 'unsettled'")
    after = Redaction(known.rules, until, known.is_changed or any(changed), is_done)
    keep(connection, after)
    return after


def _redact(connection: Connection, table: str, rows: list[tuple[Any, ...]]) -> bool:
    """Redact these rows of a table. Return whether anything changed."""
    from ....common.text.sanitize import all_for_people

    settings = ", ".join(f"{column} = ?" for column in _COLUMNS[table])
    has_changed = False
    texts = iter(all_for_people([text or "" for _, *before in rows for text in before]))
    for item, *before in rows:
        after = [text and new for text, new in zip(before, texts)]
        if after != before:
            has_changed = True
            connection.execute(f"UPDATE {table} SET {settings} WHERE id = ?", (*after, item))
            if before[0] != after[0]:
                reindex(connection, item, before[0], after[0])
    return has_changed


def reindex(connection: Connection, item: int, before: str, after: str) -> None:
    """Update the search index, and the sizes of the conversations that have the item."""
    from ...search.index import indexable

    sql = "INSERT INTO memory_search (memory_search, rowid, text) VALUES ('delete', ?, ?)"
    if before:
        connection.execute(sql, (item, indexable(before)))
    connection.execute(
        "INSERT INTO memory_search (rowid, text) VALUES (?, ?)", (item, indexable(after))
    )
    copies = fetch(connection, "SELECT id FROM memory_shared_items WHERE original = ?", (item,))
    longer = len(after.encode("utf-8", "replace")) - len(before.encode("utf-8", "replace"))
    connection.executemany(
        "UPDATE memory_conversations SET text_bytes = max(0, text_bytes + ?1) "
        f"WHERE file_id = ?2 >> {ITEM_BITS} AND ?2 BETWEEN first_item AND last_item",
        [(longer, copy) for (copy,) in [(item,), *copies]],
    )
