"""The tables, as named migrations: each runs once, in one transaction with its record.

An item (an entry or a tool use) has the id `file id << 32 | its number in the file`: the items of a file, and so those
of a conversation, are a range of ids. Times are in milliseconds since the epoch. The tables of items are those that
packing.py makes of what `create_tables` made.
"""

from __future__ import annotations

from collections.abc import Callable

from .packed_texts import pack_texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from apsw import Connection

ITEM_BITS = 32
TOKENIZER = "porter unicode61 remove_diacritics 2"


def create_tables(connection: Connection) -> None:
    """Files, entries, tool uses, what forks share, conversations, and the index of all text."""
    connection.execute(f"""
        CREATE TABLE memory_file_states (
            id INTEGER PRIMARY KEY,
            home TEXT NOT NULL,
            file_path TEXT NOT NULL,
            root TEXT NOT NULL,
            source TEXT NOT NULL,
            session_id TEXT NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('idle', 'ingesting', 'gone')),
            last_modified INTEGER NOT NULL,
            file_size INTEGER NOT NULL,
            last_processed_offset INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            inode INTEGER NOT NULL,
            head INTEGER NOT NULL,
            tail INTEGER NOT NULL,
            next_ordinal INTEGER NOT NULL,
            unreadable INTEGER NOT NULL,
            first_entry_timestamp INTEGER,
            last_entry_timestamp INTEGER,
            cwd TEXT NOT NULL,
            title TEXT NOT NULL,
            title_rank INTEGER NOT NULL,
            UNIQUE (home, file_path)
        );
        CREATE INDEX memory_file_states_session ON memory_file_states (session_id);

        CREATE TABLE memory_transcript_entries (
            id INTEGER PRIMARY KEY,
            key INTEGER NOT NULL,
            message INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            byte_offset INTEGER NOT NULL,
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
            timestamp INTEGER,
            cwd TEXT,
            content TEXT NOT NULL
        );
        CREATE UNIQUE INDEX memory_transcript_entries_key ON memory_transcript_entries (key);

        CREATE TABLE memory_tool_uses (
            id INTEGER PRIMARY KEY,
            key INTEGER NOT NULL,
            call INTEGER NOT NULL,
            message INTEGER NOT NULL,
            byte_offset INTEGER NOT NULL,
            timestamp INTEGER,
            name TEXT NOT NULL,
            kind TEXT NOT NULL,
            argument TEXT NOT NULL,
            outcome TEXT CHECK (outcome IN ('ok', 'error')),
            error TEXT,
            result_size INTEGER,
            result_lines INTEGER
        );
        CREATE UNIQUE INDEX memory_tool_uses_key ON memory_tool_uses (key);
        CREATE INDEX memory_tool_uses_open ON memory_tool_uses (call) WHERE outcome IS NULL;

        CREATE TABLE memory_shared_items (
            id INTEGER PRIMARY KEY,
            original INTEGER NOT NULL
        );
        CREATE INDEX memory_shared_items_original ON memory_shared_items (original);

        CREATE TABLE memory_conversations (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            file_id INTEGER NOT NULL,
            session_id TEXT NOT NULL,
            source_file TEXT NOT NULL,
            first_item INTEGER NOT NULL UNIQUE,
            last_item INTEGER NOT NULL,
            first_message_at INTEGER,
            last_message_at INTEGER,
            entry_count INTEGER NOT NULL,
            last_message INTEGER NOT NULL,
            text_bytes INTEGER NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('active', 'ready', 'processing', 'archived', 'skipped')),
            reason TEXT NOT NULL DEFAULT ''
        );
        CREATE INDEX memory_conversations_status ON memory_conversations (status, last_message_at);
        CREATE INDEX memory_conversations_time ON memory_conversations (last_message_at);
        CREATE INDEX memory_conversations_file ON memory_conversations (file_id, first_item);

        CREATE VIEW memory_texts (id, text) AS
            SELECT id, content FROM memory_transcript_entries
            UNION ALL SELECT id, argument FROM memory_tool_uses;
        CREATE VIRTUAL TABLE memory_search USING fts5 (
            text, content = '', tokenize = '{TOKENIZER}', detail = none, columnsize = 0
        );

        CREATE VIEW transcript_entries AS
            SELECT entry.id, file.session_id, file.file_path AS source_file, entry.role, entry.content,
                strftime('%Y-%m-%dT%H:%M:%fZ', entry.timestamp / 1000.0, 'unixepoch') AS timestamp,
                coalesce(entry.cwd, file.cwd) AS cwd
            FROM memory_transcript_entries AS entry
            JOIN memory_file_states AS file ON file.id = entry.id >> {ITEM_BITS};
    """)


def create_work_tables(connection: Connection) -> None:
    """What strategies have made of conversations, or are about to (work.py), and what that cost in tokens."""
    connection.execute("""
        CREATE TABLE memory_work (
            conversation_id INTEGER NOT NULL,
            strategy TEXT NOT NULL,
            home TEXT NOT NULL,
            source_file TEXT NOT NULL,
            first_message_at INTEGER,
            first_item INTEGER NOT NULL,
            seen_item INTEGER NOT NULL DEFAULT 0,
            seen_until INTEGER,
            outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'archived', 'skipped')),
            reason TEXT NOT NULL DEFAULT '',
            owner TEXT,
            lease_until INTEGER NOT NULL DEFAULT 0,
            longest_until INTEGER NOT NULL DEFAULT 0,
            until_item INTEGER,
            until_at INTEGER,
            result TEXT,
            attempts INTEGER NOT NULL DEFAULT 0,
            interruptions INTEGER NOT NULL DEFAULT 0,
            next_try INTEGER NOT NULL DEFAULT 0,
            problem TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (conversation_id, strategy)
        ) WITHOUT ROWID;
        CREATE INDEX memory_work_file ON memory_work (source_file, home, strategy);
        CREATE INDEX memory_work_owner ON memory_work (owner) WHERE owner IS NOT NULL;
        CREATE INDEX memory_work_result ON memory_work (strategy) WHERE result IS NOT NULL;
        CREATE INDEX memory_work_items ON memory_work (strategy, first_item);
        -- The ids of a file that is forgotten may come to be those of another one.
        CREATE TRIGGER memory_work_forgets AFTER DELETE ON memory_file_states BEGIN
            UPDATE memory_work SET first_item = 0, seen_item = 0 WHERE source_file = old.file_path AND home = old.home;
        END;

        CREATE TABLE memory_spending (
            id INTEGER PRIMARY KEY,
            at INTEGER NOT NULL,
            day TEXT NOT NULL,
            strategy TEXT NOT NULL,
            conversation_id INTEGER NOT NULL,
            model TEXT NOT NULL,
            reserved INTEGER NOT NULL,
            calls INTEGER NOT NULL DEFAULT 0,
            pending INTEGER NOT NULL DEFAULT 0,
            input_tokens INTEGER NOT NULL DEFAULT 0,
            output_tokens INTEGER NOT NULL DEFAULT 0,
            cached_tokens INTEGER NOT NULL DEFAULT 0,
            is_settled INTEGER NOT NULL DEFAULT 0
        );
        CREATE INDEX memory_spending_day ON memory_spending (day);
        CREATE INDEX memory_spending_open ON memory_spending (conversation_id) WHERE NOT is_settled;
    """)


def create_memory_index(connection: Connection) -> None:
    """The index of the memories that lie as Markdown beside the store (memory_index.py), made from these files."""
    connection.execute(f"""
        CREATE TABLE memory_pages (
            home TEXT NOT NULL,
            path TEXT NOT NULL,
            stamp TEXT NOT NULL,
            PRIMARY KEY (home, path)
        ) WITHOUT ROWID;
        CREATE TABLE memory_items (
            number INTEGER PRIMARY KEY,
            home TEXT NOT NULL,
            path TEXT NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL,
            title TEXT NOT NULL,
            content TEXT NOT NULL,
            subject TEXT NOT NULL,
            quote TEXT NOT NULL,
            origins TEXT NOT NULL,
            at INTEGER,
            superseded TEXT NOT NULL,
            is_untrusted INTEGER NOT NULL,
            is_marked INTEGER NOT NULL,
            is_missing INTEGER NOT NULL DEFAULT 0
        );
        CREATE INDEX memory_items_path ON memory_items (home, path);
        CREATE INDEX memory_items_id ON memory_items (id);
        CREATE VIRTUAL TABLE memory_items_search USING fts5 (title, subject, content, quote, tokenize = '{TOKENIZER}');
    """)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    create_tables,
    create_work_tables,
    create_memory_index,
    pack_texts,
)
