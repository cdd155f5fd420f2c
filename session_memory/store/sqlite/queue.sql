-- The queue of strategies and the token accounts: what no transcript tells, and so what no rebuild of the store brings
-- back. They have a database of their own, `memory.db.queue`, which is never replaced. Times are milliseconds since the
-- epoch.

-- One row for each conversation and strategy: what the strategy has made of it, or is about to. Group, transcript and
-- time of the first message identify a conversation; they stay the same when the store is rebuilt.
CREATE TABLE memory_work (
    home TEXT NOT NULL,
    source_file TEXT NOT NULL,
    first_message_at INTEGER NOT NULL,      -- 0 if no message has a time
    strategy TEXT NOT NULL,
    conversation_id INTEGER NOT NULL,       -- the last that it had in the store
    first_item INTEGER NOT NULL,            -- the strategy has seen the items from here to `seen_item`; 0 if the file
    seen_item INTEGER NOT NULL DEFAULT 0,   -- was read again and items have other ids: then the times decide
    seen_until INTEGER,
    outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'archived', 'skipped')),
    reason TEXT NOT NULL DEFAULT '',
    owner TEXT,                             -- the process that is at work on it, until when
    lease_until INTEGER NOT NULL DEFAULT 0,
    longest_until INTEGER NOT NULL DEFAULT 0,
    until_item INTEGER,                     -- what it was taken up to
    until_at INTEGER,
    result TEXT,                            -- what was made of it and is not among the memories yet
    attempts INTEGER NOT NULL DEFAULT 0,    -- that failed
    interruptions INTEGER NOT NULL DEFAULT 0, -- how often the process ended while it was at work on it
    next_try INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (home, source_file, first_message_at, strategy)
) WITHOUT ROWID;
CREATE INDEX memory_work_owner ON memory_work (owner) WHERE owner IS NOT NULL;
CREATE INDEX memory_work_result ON memory_work (strategy) WHERE result IS NOT NULL;
CREATE INDEX memory_work_items ON memory_work (strategy, first_item);

-- One row: the id of the store that ids of items are of.
CREATE TABLE memory_queue_store (
    id INTEGER NOT NULL
);
INSERT INTO memory_queue_store VALUES (0);

-- What models were paid for: an account for each attempt at a conversation.
CREATE TABLE memory_spending (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    day TEXT NOT NULL,                      -- UTC, 2026-02-01
    strategy TEXT NOT NULL,
    conversation_id INTEGER NOT NULL,
    model TEXT NOT NULL,
    reserved INTEGER NOT NULL,              -- tokens, before the first call
    calls INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,     -- estimated for calls that have not ended
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    is_settled INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX memory_spending_day ON memory_spending (day);
CREATE INDEX memory_spending_open ON memory_spending (conversation_id) WHERE NOT is_settled;
