-- The store: every transcript as entries and tool uses, cut into conversations and searchable; the index of
-- memories. The queue of strategies has a database of its own (queue.sql).
--
-- Read the views at the end: `sessions`, `conversations`, `entries` and `tool_uses` have plain names and ISO times,
-- need nothing but SQLite (or Datasette, or DuckDB), and stay as they are. The tables may change at any time.
--
-- In tables, times are milliseconds since the epoch (UTC). `home` is the group of a host, '' without groups.
-- An item is an entry or a tool use. Its id is `file id << 32 | its number in the file`, so that the items of a file,
-- and those of a conversation, are a range of ids in the order of the transcript.


-- Transcripts ---------------------------------------------------------------------------------------------------------

-- One row: the store's random id. A rebuilt store has another.
CREATE TABLE memory_store (
    id INTEGER NOT NULL
);

-- A transcript: how far it was read, and what identifies the file. No id is used twice: a file that is forgotten and
-- read again gets another.
CREATE TABLE memory_file_states (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    home TEXT NOT NULL,
    file_path TEXT NOT NULL,                -- relative to `root`: the same for a file and its backup elsewhere
    root TEXT NOT NULL,                     -- the directory that it was last read below
    source TEXT NOT NULL,                   -- the runtime, or `archive`
    session_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('idle', 'ingesting', 'gone')),
    last_modified INTEGER NOT NULL,
    file_size INTEGER NOT NULL,
    last_processed_offset INTEGER NOT NULL, -- the byte at which reading continues
    generation INTEGER NOT NULL,            -- counts how often the file was replaced by another one
    inode INTEGER NOT NULL,
    head INTEGER NOT NULL,                  -- checksum of the first bytes
    tail INTEGER NOT NULL,                  -- checksum of the bytes before the offset
    next_ordinal INTEGER NOT NULL,          -- the number that the next item gets
    unreadable INTEGER NOT NULL,            -- lines that are not records
    first_entry_timestamp INTEGER,
    last_entry_timestamp INTEGER,
    cwd TEXT NOT NULL,
    title TEXT NOT NULL,
    title_rank INTEGER NOT NULL,            -- of the title's source: a higher one is not replaced by a lower one
    UNIQUE (home, file_path)
);
-- With all that no transcript tells once it is gone: of a damaged page of the table nothing is lost.
CREATE INDEX memory_file_states_session ON memory_file_states (
    session_id, home, file_path, root, source, cwd, title, title_rank
);

-- Files that could not be ingested, or not whole: their state then, and the reason.
CREATE TABLE memory_unread_files (
    home TEXT NOT NULL,
    file_path TEXT NOT NULL,                -- as in memory_file_states
    root TEXT NOT NULL,
    inode INTEGER NOT NULL,
    file_size INTEGER NOT NULL,
    last_modified INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    problem TEXT NOT NULL,
    is_lasting INTEGER NOT NULL,            -- 1 if it is not retried until the file changes
    PRIMARY KEY (home, file_path)
) WITHOUT ROWID;

-- Files that lost items to damage, which no transcript could bring back: how many. What archives have of them is added.
CREATE TABLE memory_incomplete_files (
    file_id INTEGER PRIMARY KEY,
    lost INTEGER NOT NULL
);

-- Damaged stores that this one was made from: the path of the old one, when, and what was salvaged and lost.
CREATE TABLE memory_salvages (
    moved TEXT PRIMARY KEY,
    salvaged_at INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    tool_uses INTEGER NOT NULL,
    lost INTEGER NOT NULL
) WITHOUT ROWID;

-- The messages of users and assistants, with secrets redacted.
CREATE TABLE memory_transcript_entries (
    id INTEGER PRIMARY KEY,                 -- of the item
    message INTEGER NOT NULL,               -- the same number for all items of one message of the API
    generation INTEGER NOT NULL,            -- of the file, and the record's position in it
    byte_offset INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    timestamp INTEGER,
    cwd TEXT,                               -- NULL if it is the session's
    content TEXT NOT NULL
);

-- Tool calls: the argument and the outcome, not the result.
CREATE TABLE memory_tool_uses (
    id INTEGER PRIMARY KEY,                 -- of the item
    call INTEGER NOT NULL,                  -- hash of the id that the result will name; 0 once it is there
    message INTEGER NOT NULL,
    byte_offset INTEGER NOT NULL,
    timestamp INTEGER,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,                     -- command, edit, read or other
    argument TEXT NOT NULL,                 -- the main one: the command, the path, the query
    outcome TEXT CHECK (outcome IN ('ok', 'error')),
    error TEXT,                             -- the line of the result that names the error
    result_size INTEGER,                    -- in characters
    result_lines INTEGER,
    cwd TEXT                                -- NULL if it is the session's
);
CREATE INDEX memory_tool_uses_open ON memory_tool_uses (call) WHERE outcome IS NULL;

-- The key of an item, a hash of the ids in its record, identifies its copies in other files.
CREATE TABLE memory_item_keys (
    key INTEGER PRIMARY KEY,
    id INTEGER NOT NULL
) WITHOUT ROWID;

-- The lines that edits, patches and here-documents wrote, as keyed hashes (sqlite/written_lines.py), each with the item.
CREATE TABLE memory_written_lines (
    line INTEGER NOT NULL,
    item INTEGER NOT NULL,
    PRIMARY KEY (line, item)
) WITHOUT ROWID;

-- Calls of sub-agents that write files or run git, each with its session's call that started the sub-agent.
CREATE TABLE memory_sub_agent_calls (
    item INTEGER NOT NULL,                  -- the session's call
    call INTEGER NOT NULL,                  -- hash of the id of the sub-agent's call
    timestamp INTEGER NOT NULL,
    kind TEXT NOT NULL,                     -- command or edit
    argument TEXT NOT NULL,                 -- the command or the path
    outcome TEXT CHECK (outcome IN ('ok', 'error')),
    cwd TEXT NOT NULL,
    PRIMARY KEY (item, call)
) WITHOUT ROWID;

-- Files with lines and calls that upkeep reads: those of sub-agents that wrote since a time (Unix milliseconds), or, if that is NULL,
-- all, since an earlier version ingested the file or rules exclude it.
CREATE TABLE memory_unread_lines (
    file_id INTEGER PRIMARY KEY,
    since INTEGER
);

-- Files of earlier versions whose transcripts upkeep reads once more, for words of a person that these left out.
CREATE TABLE memory_unread_words (
    file_id INTEGER PRIMARY KEY
);

-- What `costs` and `proof` counted in a transcript (sqlite/counted_files.py). The id is a hash of its path (for a
-- sub-agent's, also of its session's), the state the file's at that time. The rows have names of files and models, no
-- messages: `notes` is JSON (history/told.py), `models` the names in the file's answers.
CREATE TABLE memory_counted_files (
    id INTEGER PRIMARY KEY,
    inode INTEGER NOT NULL,
    file_size INTEGER NOT NULL,
    last_modified INTEGER NOT NULL,
    version INTEGER NOT NULL,               -- of the program, its counts and its rules for secrets, as a hash
    runtime TEXT NOT NULL,
    notes TEXT,                             -- NULL if they were not counted
    models TEXT                             -- JSON, NULL if the answers were not counted
);

-- The answers of models in these transcripts: their tokens, web searches, and dollars if the transcript has them.
-- `is_advisor` is 1 if a model gave it to the one at work.
CREATE TABLE memory_counted_answers (
    file_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    answer INTEGER NOT NULL,                -- hash of its id, the same for all copies, 0 for none
    timestamp INTEGER,
    model INTEGER NOT NULL,                 -- its place in the file's `models`
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    written INTEGER NOT NULL,
    written_for_an_hour INTEGER NOT NULL,
    dollars REAL,
    searches INTEGER NOT NULL,
    is_copy INTEGER NOT NULL,
    is_advisor INTEGER NOT NULL,
    PRIMARY KEY (file_id, number)
) WITHOUT ROWID;

-- A fork begins with a copy of its original: the items of the fork, each with its original.
CREATE TABLE memory_shared_items (
    id INTEGER PRIMARY KEY,
    original INTEGER NOT NULL
);
CREATE INDEX memory_shared_items_original ON memory_shared_items (original);

-- Items whose record names another session than the file's: a rule for that session excludes them too.
CREATE TABLE memory_foreign_items (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL
);

-- The items of a file from `first_item` to `last_item`, without a silence longer than the gap among them, which is the
-- database's `PRAGMA user_version`, in minutes.
CREATE TABLE memory_conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file_id INTEGER NOT NULL,
    session_id TEXT NOT NULL,
    source_file TEXT NOT NULL,
    first_item INTEGER NOT NULL UNIQUE,
    last_item INTEGER NOT NULL,
    first_message_at INTEGER,
    last_message_at INTEGER,
    entry_count INTEGER NOT NULL,           -- messages: several items of one message count once
    last_message INTEGER NOT NULL,          -- identifies the last item's message, so that its next item does not count again
    text_bytes INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'ready', 'processing', 'archived', 'skipped')),
    reason TEXT NOT NULL DEFAULT ''         -- the reason if it was skipped
);
CREATE INDEX memory_conversations_status ON memory_conversations (status, last_message_at);
CREATE INDEX memory_conversations_time ON memory_conversations (last_message_at);
CREATE INDEX memory_conversations_file ON memory_conversations (file_id, first_item);

-- The items that have a term, without texts and positions. Positions would take 0.25 to 0.66 bytes more for each byte
-- of text (search/search.py says why phrases are checked in the texts instead).
CREATE VIRTUAL TABLE memory_search USING fts5 (
    text, content = '', tokenize = 'porter unicode61 remove_diacritics 2', detail = none, columnsize = 0
);


-- What is excluded ----------------------------------------------------------------------------------------------------

-- What the rules in the settings exclude (docs/use/privacy.md): transcripts, and items of others, because of the file in
-- which they are excluded. `is_told`: only the text is excluded. Excluding deletes nothing.
CREATE TABLE memory_excluded_files (
    file_id INTEGER PRIMARY KEY,
    is_told INTEGER NOT NULL
);
CREATE TABLE memory_excluded_items (
    item INTEGER NOT NULL,
    because INTEGER NOT NULL,
    is_told INTEGER NOT NULL,
    PRIMARY KEY (item, because)
) WITHOUT ROWID;
CREATE INDEX memory_excluded_items_because ON memory_excluded_items (because);

-- The files and directories that the rules were read from, and their state then.
CREATE TABLE memory_rules (
    place TEXT PRIMARY KEY,
    stamp TEXT NOT NULL
) WITHOUT ROWID;

-- The progress of redacting what was stored under earlier rules: all up to the item `until` is done by the rules with
-- the checksum `rules`.
CREATE TABLE memory_redaction (
    rules TEXT PRIMARY KEY,
    until INTEGER NOT NULL,
    is_changed INTEGER NOT NULL,            -- 1 if something was redacted, which free pages may still hold
    is_done INTEGER NOT NULL
) WITHOUT ROWID;


-- Memories ------------------------------------------------------------------------------------------------------------

-- The pages of Markdown with memories, as they were when the index read them.
CREATE TABLE memory_pages (
    home TEXT NOT NULL,
    path TEXT NOT NULL,                     -- below the directory of the group's memories
    stamp TEXT NOT NULL,                    -- changes with the page
    PRIMARY KEY (home, path)
) WITHOUT ROWID;

-- The memories on these pages.
CREATE TABLE memories (
    number INTEGER PRIMARY KEY,
    home TEXT NOT NULL,
    path TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    subject TEXT NOT NULL,
    quote TEXT NOT NULL,
    origins TEXT NOT NULL,                  -- JSON: the conversations that it was drawn from
    at INTEGER,
    superseded TEXT NOT NULL,               -- the id of the memory that replaced it, '' if it is current
    is_untrusted INTEGER NOT NULL,
    is_marked INTEGER NOT NULL,             -- 1 if a strategy made it, 0 if a person did
    is_missing INTEGER NOT NULL DEFAULT 0   -- 1 if it was on no page the last time
);
CREATE INDEX memories_path ON memories (home, path);
CREATE INDEX memories_id ON memories (id);
CREATE VIRTUAL TABLE memories_search USING fts5 (
    title, subject, content, quote, tokenize = 'porter unicode61 remove_diacritics 2'
);


-- For reading ---------------------------------------------------------------------------------------------------------

-- They omit what the rules excluded when the store was last written. If only the text is excluded, the session and its
-- conversations are there, without titles and directories.

-- (The casts give columns a type for programs that ask for one, such as DuckDB.)

-- One row a transcript. `status` is `gone` if the runtime has deleted it.
CREATE VIEW sessions AS
SELECT
    file.session_id,
    file.source AS runtime,
    file.home AS group_name,
    CAST(iif(file.id IN (SELECT file_id FROM memory_excluded_files), '', file.title) AS TEXT) AS title,
    CAST(iif(file.id IN (SELECT file_id FROM memory_excluded_files), '', file.cwd) AS TEXT) AS directory,
    CAST(strftime('%Y-%m-%dT%H:%M:%fZ', file.first_entry_timestamp / 1000.0, 'unixepoch') AS TEXT) AS started_at,
    CAST(strftime('%Y-%m-%dT%H:%M:%fZ', file.last_entry_timestamp / 1000.0, 'unixepoch') AS TEXT) AS ended_at,
    CAST(iif(file.id IN (SELECT file_id FROM memory_excluded_files), '', file.root || '/' || file.file_path) AS TEXT)
        AS transcript,
    file.status
FROM memory_file_states AS file
WHERE NOT EXISTS (SELECT 1 FROM memory_excluded_files AS x WHERE x.file_id = file.id AND NOT x.is_told);

-- One row a conversation: `session-memory read ID` prints it. Its title is its session's, else how the first user entry
-- begins. `messages` and `text_bytes` include what a fork copied.
CREATE VIEW conversations AS
SELECT
    conversation.id,
    conversation.session_id,
    file.source AS runtime,
    file.home AS group_name,
    CAST(iif(file.id IN (SELECT file_id FROM memory_excluded_files), '', coalesce(nullif(file.title, ''), (
        SELECT substr(entry.content, 1, 80) FROM memory_transcript_entries AS entry
        WHERE entry.id BETWEEN conversation.first_item AND conversation.last_item AND entry.role = 'user'
            AND entry.id NOT IN (SELECT item FROM memory_excluded_items)
        ORDER BY entry.id LIMIT 1
    ), '')) AS TEXT) AS title,
    CAST(iif(file.id IN (SELECT file_id FROM memory_excluded_files), '', file.cwd) AS TEXT) AS directory,
    CAST(strftime('%Y-%m-%dT%H:%M:%fZ', conversation.first_message_at / 1000.0, 'unixepoch') AS TEXT) AS started_at,
    CAST(strftime('%Y-%m-%dT%H:%M:%fZ', conversation.last_message_at / 1000.0, 'unixepoch') AS TEXT) AS ended_at,
    (
        SELECT max(0, conversation.entry_count
            - count(DISTINCT coalesce(nullif(coalesce(entry.message, tool_use.message), 0), -x.item)))
        FROM memory_excluded_items AS x
        LEFT JOIN memory_transcript_entries AS entry ON entry.id = x.item
        LEFT JOIN memory_tool_uses AS tool_use ON tool_use.id = x.item
        WHERE x.item BETWEEN conversation.first_item AND conversation.last_item AND NOT x.is_told
        UNION ALL SELECT conversation.entry_count WHERE false -- gives the type, which after a cast would be INT
    ) AS messages,
    conversation.text_bytes,
    conversation.status,
    conversation.reason
FROM memory_conversations AS conversation
JOIN memory_file_states AS file ON file.id = conversation.file_id
WHERE NOT EXISTS (SELECT 1 FROM memory_excluded_files AS x WHERE x.file_id = file.id AND NOT x.is_told)
AND (
    SELECT count(DISTINCT item) FROM memory_excluded_items AS x
    WHERE x.item BETWEEN conversation.first_item AND conversation.last_item AND NOT x.is_told
) <= conversation.last_item - conversation.first_item;

-- One row a message of a user or an assistant, in the session that has it first: what a fork copied is there once.
-- `source_file` is the transcript below its root, `tool_names` are the tools that the same message of the API uses, as
-- Read,Bash. (The conversations come first in the join since only from them the entries are found by an index. The items
-- of a message are consecutive, so its tools are searched up to the next entries of other messages.)
CREATE VIEW entries AS
SELECT
    entry.id,
    conversation.id AS conversation_id,
    conversation.session_id,
    file.source AS runtime,
    file.home AS group_name,
    entry.role,
    entry.content AS text,
    CAST(strftime('%Y-%m-%dT%H:%M:%fZ', entry.timestamp / 1000.0, 'unixepoch') AS TEXT) AS time,
    CAST(coalesce(entry.cwd, file.cwd) AS TEXT) AS directory,
    file.file_path AS source_file,
    CAST(coalesce((
        SELECT group_concat(name, ',') FROM (SELECT tool_use.name FROM memory_tool_uses AS tool_use
        WHERE entry.message != 0 AND tool_use.message = entry.message
        AND tool_use.id > coalesce((
            SELECT before.id FROM memory_transcript_entries AS before
            WHERE before.id BETWEEN conversation.first_item AND entry.id AND before.message != entry.message
            ORDER BY before.id DESC LIMIT 1
        ), conversation.first_item - 1)
        AND tool_use.id < coalesce((
            SELECT after.id FROM memory_transcript_entries AS after
            WHERE after.id BETWEEN entry.id AND conversation.last_item AND after.message != entry.message
            ORDER BY after.id LIMIT 1
        ), conversation.last_item + 1)
        AND tool_use.id NOT IN (SELECT item FROM memory_excluded_items) ORDER BY tool_use.id)
    ), '') AS TEXT) AS tool_names
FROM memory_file_states AS file
CROSS JOIN memory_conversations AS conversation ON conversation.file_id = file.id
CROSS JOIN memory_transcript_entries AS entry
    ON entry.id BETWEEN conversation.first_item AND conversation.last_item
WHERE file.id NOT IN (SELECT file_id FROM memory_excluded_files)
AND entry.id NOT IN (SELECT item FROM memory_excluded_items);

-- One row a tool use, likewise. `outcome` is ok or error, NULL without a result; `error` is one line of it.
CREATE VIEW tool_uses AS
SELECT
    tool_use.id,
    conversation.id AS conversation_id,
    conversation.session_id,
    file.source AS runtime,
    file.home AS group_name,
    tool_use.name AS tool,
    tool_use.kind,
    tool_use.argument,
    tool_use.outcome,
    tool_use.error,
    tool_use.result_size AS result_characters,
    tool_use.result_lines,
    CAST(strftime('%Y-%m-%dT%H:%M:%fZ', tool_use.timestamp / 1000.0, 'unixepoch') AS TEXT) AS time,
    CAST(coalesce(tool_use.cwd, file.cwd) AS TEXT) AS directory
FROM memory_file_states AS file
CROSS JOIN memory_conversations AS conversation ON conversation.file_id = file.id
CROSS JOIN memory_tool_uses AS tool_use
    ON tool_use.id BETWEEN conversation.first_item AND conversation.last_item
WHERE file.id NOT IN (SELECT file_id FROM memory_excluded_files)
AND tool_use.id NOT IN (SELECT item FROM memory_excluded_items);
