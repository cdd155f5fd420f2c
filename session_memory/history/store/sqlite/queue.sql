-- The queue of strategies and the token accounts, which cannot be rebuilt from transcripts. They have a database of
-- their own, `memory.db.queue`, which is never replaced. Times are milliseconds since the epoch.

-- One row for each conversation and strategy: the outcome, or the work in progress. Group, transcript and
-- time of the first message identify a conversation; they stay the same when the store is rebuilt.
CREATE TABLE memory_work (
    home TEXT NOT NULL,
    source_file TEXT NOT NULL,
    first_message_at INTEGER NOT NULL,      -- 0 if no message has a time
    strategy TEXT NOT NULL,
    conversation_id INTEGER NOT NULL,       -- its last id in the store
    first_item INTEGER NOT NULL,            -- the strategy has seen the items from here to `seen_item`; 0 if the file
    seen_item INTEGER NOT NULL DEFAULT 0,   -- was ingested again and items have other ids: then the times decide
    seen_until INTEGER,
    outcome TEXT NOT NULL DEFAULT '' CHECK (outcome IN ('', 'archived', 'skipped')),
    reason TEXT NOT NULL DEFAULT '',
    owner TEXT,                             -- the process that works on it
    lease_until INTEGER NOT NULL DEFAULT 0, -- until when, for versions up to 0.3
    longest_until INTEGER NOT NULL DEFAULT 0,
    until_item INTEGER,                     -- the last item of the part that it has taken, and its time
    until_at INTEGER,
    result TEXT,                            -- the strategy's result, until its memories are written
    attempts INTEGER NOT NULL DEFAULT 0,    -- that failed
    interruptions INTEGER NOT NULL DEFAULT 0, -- how often the process ended during the work
    next_try INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (home, source_file, first_message_at, strategy)
) WITHOUT ROWID;
CREATE INDEX memory_work_owner ON memory_work (owner) WHERE owner IS NOT NULL;
CREATE INDEX memory_work_result ON memory_work (strategy) WHERE result IS NOT NULL;
CREATE INDEX memory_work_items ON memory_work (strategy, first_item);

-- One row: the id of the store that the ids of items belong to.
CREATE TABLE memory_queue_store (
    id INTEGER NOT NULL
);
INSERT INTO memory_queue_store VALUES (0);

-- The tokens spent on models: an account for each attempt at a conversation.
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
