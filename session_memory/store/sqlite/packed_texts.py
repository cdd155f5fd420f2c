"""The migration from tables that held their texts as they are, and each key twice, to packed ones."""

from __future__ import annotations

from .texts import Texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from apsw import Connection

_TABLES = """
    DROP INDEX memory_tool_uses_open;
    DROP VIEW transcript_entries;
    DROP VIEW memory_texts;
    ALTER TABLE memory_transcript_entries RENAME TO former_entries;
    ALTER TABLE memory_tool_uses RENAME TO former_tool_uses;

    CREATE TABLE memory_transcript_entries (
        id INTEGER PRIMARY KEY,
        message INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        byte_offset INTEGER NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
        timestamp INTEGER,
        cwd TEXT,
        content NOT NULL
    );
    CREATE TABLE memory_tool_uses (
        id INTEGER PRIMARY KEY,
        call INTEGER NOT NULL,
        message INTEGER NOT NULL,
        byte_offset INTEGER NOT NULL,
        timestamp INTEGER,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        argument NOT NULL,
        outcome TEXT CHECK (outcome IN ('ok', 'error')),
        error,
        result_size INTEGER,
        result_lines INTEGER
    );
    CREATE TABLE memory_item_keys (
        key INTEGER PRIMARY KEY,
        id INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE VIEW memory_texts (id, text) AS
        SELECT id, content FROM memory_transcript_entries
        UNION ALL SELECT id, argument FROM memory_tool_uses;
"""
_ENTRIES = "SELECT id, message, generation, byte_offset, role, timestamp, cwd, content FROM former_entries ORDER BY id"
_TOOL_USES = """
    SELECT id, call, message, byte_offset, timestamp, name, kind, argument, outcome, error, result_size, result_lines
    FROM former_tool_uses ORDER BY id
"""
# The former indexes have the keys in order. That an entry has the key of a tool use does not happen by chance.
_KEYS = """
    INSERT OR IGNORE INTO memory_item_keys
    SELECT key, id FROM former_entries UNION ALL SELECT key, id FROM former_tool_uses ORDER BY key
"""


def pack_texts(connection: Connection) -> None:
    """Texts deflated (texts.py), with the dictionary for that, and one table of the keys by which items are known."""
    connection.execute("CREATE TABLE memory_dictionaries (number INTEGER PRIMARY KEY, content BLOB NOT NULL)")
    texts = Texts(connection)
    texts.learn(())
    connection.execute(_TABLES)
    connection.executemany(
        "INSERT INTO memory_transcript_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _packed_entries(connection, texts)
    )
    connection.executemany(
        "INSERT INTO memory_tool_uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _packed_tool_uses(connection, texts)
    )
    connection.execute(_KEYS)
    connection.execute("""
        DROP TABLE former_entries;
        DROP TABLE former_tool_uses;
        CREATE INDEX memory_tool_uses_open ON memory_tool_uses (call) WHERE outcome IS NULL;
    """)


def _packed_entries(connection: Connection, texts: Texts) -> Iterator[tuple[Any, ...]]:
    for *row, content in connection.execute(_ENTRIES):
        yield (*row, texts.kept(content))


def _packed_tool_uses(connection: Connection, texts: Texts) -> Iterator[tuple[Any, ...]]:
    for row in connection.execute(_TOOL_USES):
        yield (*row[:7], texts.kept(row[7]), row[8], row[9] and texts.kept(row[9]), *row[10:])
