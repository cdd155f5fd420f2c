"""Writes a batch within the caller's transaction.

It writes items, shared items of forks, the index and conversations.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ....common.system.sqlite import Connection, fetch
from ....common.text.secrets.assignments import MARK
from ....sessions.settings.forgotten import ForgottenMessages, Tombstone, forgotten_until
from ....sessions.transcripts.marks import key_mark
from ....sessions.transcripts.mirror import EXCLUDED
from ...search.index import indexable
from ..ingest.values import Batch, FileState, NewEntry
from ..values import ITEM_BITS, NUMBERS, items_of_file, key_of
from ._conversations import TimedItem, add_items
from ._sub_agent_calls import remove as remove_sub_agent_calls
from .exclusions import GIVEN_TITLE
from .redaction import reindex
from .rows import ids_of
from .written_lines import is_without_lines
from .written_lines import remove as remove_lines

# The columns of FileState.
_COLUMNS = tuple(
    ["last_processed_offset" if field == "offset" else field for field in FileState._fields]
)
SELECT_STATE = f"SELECT {', '.join(_COLUMNS)} FROM memory_file_states WHERE home = ?"
_UPDATE_STATE = (
    f"UPDATE memory_file_states SET {', '.join(f'{column} = ?' for column in _COLUMNS)} "
    "WHERE id = ?"
)
_OPEN = "SELECT max(id) FROM memory_tool_uses WHERE call = ? AND outcome IS NULL AND id >> ? = ?"
_END = "UPDATE memory_tool_uses SET call = 0, outcome = ?, error = ?, result_size = ?, result_lines = ? WHERE id = ?"
_LAST_MESSAGE = (
    "SELECT last_message, last_item FROM memory_conversations WHERE file_id = ? "
    "ORDER BY first_item DESC LIMIT 1"
)
_NUMBER = (
    "SELECT message FROM memory_transcript_entries WHERE id = ?1 "
    "UNION ALL SELECT message FROM memory_tool_uses WHERE id = ?1"
)
_UNKNOWN = (None, None, None, None)  # how a tool use ended whose result has not come


def write(
    connection: Connection, batch: Batch, gap: int, lines: list[tuple[int, int]]
) -> FileState | None:
    """Store `batch` except for its lines, which `lines` gets, and return the new state of its file.

    Return None if another process has read further in the file. A silence of more than `gap`
    milliseconds ends a conversation. An item that is known from an earlier generation of the file,
    or from another file, is not stored again."""
    before, after = batch.before, batch.after
    states = fetch(connection, f"{SELECT_STATE} AND file_path = ?", (after.home, after.file_path))
    stored = FileState._make(states[0]) if states else None
    if before and stored and not before.id:  # the batch before left it, perhaps in this transaction
        before = before._replace(id=stored.id, next_ordinal=stored.next_ordinal)
    if stored != before:
        return None
    if not before:
        row = {column: value for column, value in zip(_COLUMNS, after) if column != "id"}
        sql = (
            f"INSERT INTO memory_file_states ({', '.join(row)}) VALUES "
            f"({', '.join('?' * len(row))})"
        )
        connection.execute(sql, tuple(row.values()))
    file_id = before.id if before else connection.last_insert_rowid()
    first = file_id << ITEM_BITS | (before.next_ordinal if before else 0)
    rows = _Rows(connection, batch, file_id, first)
    new_lines = rows.insert(connection)
    if rows.rewritten:
        lines[:] = [line for line in lines if line[1] not in rows.rewritten]
        _remove_lines(connection, rows.rewritten)
    lines += new_lines
    ordinal = (first & NUMBERS) + len(rows.items)
    state = after._replace(id=file_id, next_ordinal=ordinal)
    add_items(connection, state, rows.items, gap, is_new=not before)
    if before:
        connection.execute(_UPDATE_STATE, (*state, file_id))
    else:  # an update of all columns would also write both indexes again
        sql = "UPDATE memory_file_states SET next_ordinal = ? WHERE id = ?"
        connection.execute(sql, (ordinal, file_id))
    sql = "INSERT OR IGNORE INTO memory_unread_lines VALUES (?, ?)"
    connection.execute(sql, (file_id, before.last_modified if before else 0))
    return state


def without_forgotten(
    batch: Batch, tombstones: Sequence[Tombstone], messages: ForgottenMessages
) -> Batch:
    """Return the batch without forgotten entries, and without a title that may quote them.

    If nothing is left, the state of the file reveals nothing either."""
    state = batch.after
    before = forgotten_until(tombstones, state.home, state.session_id, state.cwd)
    kept = [
        entry for entry in batch.entries if not (messages and messages.has(key_mark(entry.key)))
    ]
    if before is None and len(kept) == len(batch.entries):
        return batch
    if before is not None:
        kept = [entry for entry in kept if entry.timestamp is not None and entry.timestamp > before]
    is_empty = not kept and not state.next_ordinal
    if is_empty:
        state = state._replace(cwd="", first_entry_timestamp=None, last_entry_timestamp=None)
    if is_empty or state.title_rank < GIVEN_TITLE:
        state = state._replace(title="", title_rank=-1)
    return batch._replace(entries=kept, after=state)


def drop_made_title(connection: Connection, file_id: int) -> None:
    """Remove the title of a file, unless a person gave it."""
    sql = (
        "UPDATE memory_file_states SET title = '', title_rank = -1 WHERE id = ? AND title_rank < ?"
    )
    connection.execute(sql, (file_id, GIVEN_TITLE))


def remove(connection: Connection, file_id: int) -> None:
    """Remove a file and its items. An item that other files share moves to the first of these."""
    remove_items(connection, *items_of_file(file_id))
    connection.execute("DELETE FROM memory_excluded_items WHERE because = ?", (file_id,))
    connection.execute("DELETE FROM memory_excluded_files WHERE file_id = ?", (file_id,))
    connection.execute("DELETE FROM memory_unread_lines WHERE file_id = ?", (file_id,))
    connection.execute("DELETE FROM memory_unread_words WHERE file_id = ?", (file_id,))
    connection.execute("DELETE FROM memory_incomplete_files WHERE file_id = ?", (file_id,))
    connection.execute("DELETE FROM memory_file_states WHERE id = ?", (file_id,))


def remove_items(connection: Connection, first: int, last: int) -> None:
    """Remove items of a file from `first` to `last`, and conversations that begin with one of them.

    An item that other files share moves to the first of these."""
    connection.execute("DELETE FROM memory_shared_items WHERE id BETWEEN ? AND ?", (first, last))
    sql = (
        "SELECT original, min(id) FROM memory_shared_items WHERE original BETWEEN ? AND ? "
        "GROUP BY original"
    )
    new_ids = dict(fetch(connection, sql, (first, last)))
    _move_keys(connection, first, last, new_ids)
    remove_lines(connection, first, last, new_ids)
    remove_sub_agent_calls(connection, first, last, new_ids)
    connection.executemany(
        "INSERT INTO memory_search (memory_search, rowid, text) VALUES ('delete', ?, ?)",
        _indexed(connection, first, last),
    )
    sql = "SELECT session_id, cwd FROM memory_file_states WHERE id = ?"
    [(session_id, cwd)] = fetch(connection, sql, (first >> ITEM_BITS,))
    # rules for that session and its directory exclude it still
    for original, new_id in new_ids.items():
        connection.execute(
            "UPDATE OR IGNORE memory_foreign_items SET id = ? WHERE id = ?", (new_id, original)
        )
        connection.execute(
            "INSERT OR IGNORE INTO memory_foreign_items VALUES (?, ?)", (new_id, session_id)
        )
        connection.execute("DELETE FROM memory_shared_items WHERE id = ?", (new_id,))
        connection.execute(
            "UPDATE memory_shared_items SET original = ? WHERE original = ?", (new_id, original)
        )
        for table in ("memory_transcript_entries", "memory_tool_uses"):
            sql = f"UPDATE {table} SET id = ?, cwd = coalesce(cwd, ?) WHERE id = ?"
            connection.execute(sql, (new_id, cwd, original))
        connection.executemany(
            "INSERT INTO memory_search (rowid, text) VALUES (?, ?)",
            _indexed(connection, new_id, new_id),
        )
    for table in ("memory_transcript_entries", "memory_tool_uses"):
        connection.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (first, last))
    connection.execute("DELETE FROM memory_foreign_items WHERE id BETWEEN ? AND ?", (first, last))
    connection.execute(
        "DELETE FROM memory_conversations WHERE first_item BETWEEN ? AND ?", (first, last)
    )


def _move_keys(connection: Connection, first: int, last: int, new_ids: dict[int, int]) -> None:
    """Move the keys of the items from `first` to `last` to their new ids, and delete other keys."""
    # a scan: forgetting a file is rare
    sql = "SELECT key, id FROM memory_item_keys WHERE id BETWEEN ? AND ?"
    keys = fetch(connection, sql, (first, last))
    connection.executemany(
        "UPDATE memory_item_keys SET id = ? WHERE key = ?",
        [(new_ids[item], key) for key, item in keys if item in new_ids],
    )
    connection.executemany(
        "DELETE FROM memory_item_keys WHERE key = ?",
        [(key,) for key, item in keys if item not in new_ids],
    )


def _indexed(connection: Connection, first: int, last: int) -> list[tuple[int, str]]:
    """Return the items from `first` to `last`, with their texts as they are in the index."""
    sql = (
        "SELECT id, content FROM memory_transcript_entries WHERE id BETWEEN ?1 AND ?2 UNION ALL "
        "SELECT id, argument FROM memory_tool_uses WHERE id BETWEEN ?1 AND ?2 AND argument != ''"
    )
    return [(item, indexable(text)) for item, text in connection.execute(sql, (first, last))]


class _Rows:
    """The rows of a batch; `items` are the items that are new to this file, in order."""

    def __init__(self, connection: Connection, batch: Batch, file_id: int, first: int) -> None:
        self.entries: list[tuple[Any, ...]] = []
        self.tools: list[tuple[Any, ...]] = []
        self.shared: list[tuple[int, int]] = []
        self.keys: list[tuple[int, int]] = []
        self.foreign: list[tuple[int, str]] = []
        self.indexed: list[tuple[int, str]] = []
        self.lines: list[tuple[int, int]] = []
        self.items: list[TimedItem] = []
        # items that were excluded: their earlier and present texts, and the outcome
        self.told: dict[int, tuple[Any, ...]] = {}
        self._outcomes, self._lines_of_calls = batch.outcomes, batch.lines
        self._whole = batch.whole
        # items of earlier parts that failed, or whose results have the whole lines
        self.rewritten: set[int] = set()
        self._is_shared: set[int] = set()
        self._own_keys: dict[int, int] = {}  # of items whose key another file has for another text
        self._file_id = file_id
        self._is_known = batch.before is not None
        self._next = first
        # the last item's message, and the ordinal of that message's first item
        self._message, self._number = (
            _last_message(connection, file_id) if self._is_known else (0, 0)
        )
        known = self._recognise(connection, batch)
        for entry in batch.entries:
            self._take(entry, batch.after, known)

    def _recognise(self, connection: Connection, batch: Batch) -> dict[int, int]:
        """Return the ids of the known items by their keys, and note which of them get a text."""
        texts = [(entry.key, entry.text) for entry in batch.entries if entry.text]
        texts += [(tool.key, tool.argument) for entry in batch.entries for tool in entry.tools]
        known = _known(connection, [key for key, _ in texts])
        if not known:
            return known
        stored = _texts(connection, known.values())
        ended = {tool.key: tool.ended for entry in batch.entries for tool in entry.tools}
        for key, text in texts:
            item = known.get(key, 0)
            if item >> ITEM_BITS == self._file_id:
                if not _is_blank(text) and _is_blank(stored.get(item, text)):
                    self.told[item] = (stored[item], text, *(ended.get(key) or _UNKNOWN))
            elif item and _differs(stored.get(item, text), text):
                self._own_keys[key] = key_of(f"{key} {text}")
        originals = [item for item in stored if item >> ITEM_BITS != self._file_id]
        if originals:
            known.update(_known(connection, list(self._own_keys.values())))
            self._is_shared = self._shared_among(connection, originals)
        return known

    def _shared_among(self, connection: Connection, originals: list[int]) -> set[int]:
        """Return the items of other files that are already recorded as shared with this file."""
        sql = "SELECT original FROM memory_shared_items WHERE original IN carray(?) AND id >> ? = ?"
        rows = fetch(connection, sql, (ids_of(originals), ITEM_BITS, self._file_id))
        return {item for (item,) in rows}

    def _take(self, entry: NewEntry, state: FileState, known: dict[int, int]) -> None:
        key, message, offset, role, text, when, cwd, tools, origin = entry
        first = len(self.keys)
        cwd = cwd or state.cwd  # unknown: a later part may know it
        if text and (item := self._new_id(key, known, message, when, text)):
            elsewhere = None if cwd == state.cwd else cwd
            self.entries.append(
                (item, self._number, state.generation, offset, role, when, elsewhere, text)
            )
        for key, call, name, kind, argument, ended, lines in tools:
            if item := self._new_id(key, known, message, when, argument):
                how = ended or _UNKNOWN
                if ended:
                    call = 0  # only a pending result needs it
                elsewhere = None if cwd == state.cwd else cwd
                self.lines += [(line, item) for line in lines]
                self.tools.append(
                    (item, call, self._number, offset, when, name, kind, argument, *how, elsewhere)
                )
        if origin:
            self.foreign += [(item, origin) for _, item in self.keys[first:]]

    def _new_id(
        self, key: int, known: dict[int, int], message: int, when: int | None, text: str
    ) -> int:
        """Return the id of an item that is new to the store, or 0 for a known item.

        A known item is noted as shared if this file does not have it yet. `known` has the ids of
        items by their keys."""
        key = self._own_keys.get(key, key)
        original = known.get(key)
        item = self._next
        if original is None:
            known[key] = item
            self.keys.append((key, item))
            if text:
                self.indexed.append((item, text))
        elif original >> ITEM_BITS == self._file_id or original in self._is_shared:
            return 0
        else:
            self._is_shared.add(original)
            self.shared.append((item, original))
        if not message or message != self._message:
            self._message = message
            self._number = item & NUMBERS
        self._next += 1
        self.items.append(
            TimedItem(item, message, when, len(text) if text.isascii() else len(text.encode()))
        )
        return item if original is None else 0

    def insert(self, connection: Connection) -> list[tuple[int, int]]:
        """Write the rows, and the outcomes of tool uses that were stored earlier.

        Return the rows of written lines, which are still to be written."""
        connection.executemany(
            "INSERT INTO memory_transcript_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", self.entries
        )
        connection.executemany(
            "INSERT INTO memory_tool_uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            self.tools,
        )
        connection.executemany("INSERT INTO memory_item_keys VALUES (?, ?)", sorted(self.keys))
        connection.executemany("INSERT INTO memory_shared_items VALUES (?, ?)", self.shared)
        connection.executemany(
            "INSERT OR REPLACE INTO memory_foreign_items VALUES (?, ?)", self.foreign
        )
        connection.executemany(
            "INSERT INTO memory_search (rowid, text) VALUES (?, ?)",
            ((item, indexable(text)) for item, text in self.indexed),
        )
        for item, (before, text, *how) in self.told.items():
            connection.execute(
                "UPDATE memory_transcript_entries SET content = ? WHERE id = ?", (text, item)
            )
            connection.execute(
                "UPDATE memory_tool_uses SET argument = ?, outcome = coalesce(?, outcome), error "
                "= coalesce(?, error), "
                "result_size = coalesce(?, result_size), result_lines = coalesce(?, "
                "result_lines) WHERE id = ?",
                (text, *how, item),
            )
            reindex(connection, item, before, text)
        waits = bool(self.lines) and self._is_known and is_without_lines(connection, self._file_id)
        lines = [] if waits else self.lines
        for call in self._whole:
            self.rewritten.update(self._open_calls(connection, call))
        for call, line in self._lines_of_calls:
            lines += [(line, item) for item in self._open_calls(connection, call)]
        for call, ended in self._outcomes:
            for item in self._open_calls(connection, call):
                connection.execute(_END, (*ended, item))
                if ended.outcome == "error":
                    self.rewritten.add(item)
        return lines

    def _open_calls(self, connection: Connection, call: int) -> list[int]:
        """Return the last item whose call with this hash of an id has no result yet, if any."""
        rows = fetch(connection, _OPEN, (call, ITEM_BITS, self._file_id))
        return [item for (item,) in rows if item]


def _remove_lines(connection: Connection, items: Iterable[int]) -> None:
    """Remove the lines of calls that were stored before their results.

    The table is only scanned if one of the calls may have written lines."""
    sql = (
        "SELECT id FROM memory_tool_uses WHERE id IN carray(?) AND (kind = 'edit' "
        "OR kind = 'command' AND argument LIKE '%<<%')"
    )
    writing = [item for (item,) in fetch(connection, sql, (ids_of(items),))]
    if writing:
        sql = "DELETE FROM memory_written_lines WHERE item IN carray(?)"
        connection.execute(sql, (ids_of(writing),))


def _last_message(connection: Connection, file_id: int) -> tuple[int, int]:
    """Return the message of a file's last item, and its number; zeros without an item."""
    for message, last in fetch(connection, _LAST_MESSAGE, (file_id,)):
        shared = fetch(connection, "SELECT original FROM memory_shared_items WHERE id = ?", (last,))
        stored = shared[0][0] if shared else last
        for (number,) in fetch(connection, _NUMBER, (stored,)):
            return message, number + last - stored & NUMBERS
    return 0, 0


def _known(connection: Connection, keys: list[int]) -> dict[int, int]:
    """Return the ids of the items with these keys, by key.

    The id of a shared item is its id in the first file."""
    sql = "SELECT key, id FROM memory_item_keys WHERE key IN carray(?)"
    return dict(fetch(connection, sql, (ids_of(keys),))) if keys else {}


def _texts(connection: Connection, items: Iterable[int]) -> dict[int, str]:
    """Return the texts of items by id."""
    sql = (
        "SELECT id, content FROM memory_transcript_entries WHERE id IN carray(?1) UNION ALL "
        "SELECT id, argument FROM memory_tool_uses WHERE id IN carray(?1)"
    )
    return dict(fetch(connection, sql, (ids_of(items),)))


def _is_blank(text: str) -> bool:
    """Check if a text belongs to an item in the mirror of an excluded session."""
    return not text or EXCLUDED in text


def _differs(stored: str, text: str) -> bool:
    """Check if two texts differ before the first secret.

    After that they may differ because redaction has changed since one of them was stored."""
    if stored == text or _is_blank(stored) or _is_blank(text):
        return False
    cut = min([at for at in (stored.find(MARK), text.find(MARK)) if at >= 0], default=None)
    return stored[:cut] != text[:cut]
