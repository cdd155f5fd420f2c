-- The tables of a host's messages.db, beside those of the pointers (`sessions`, `session_history`).
--
-- Times are ISO 8601 in UTC. Tables and columns of the first part are those of NanoClaw.


-- What was said ---------------------------------------------------------------------------------------------------------

CREATE TABLE chats (
    jid TEXT PRIMARY KEY,               -- `<channel>:<id in it>`
    name TEXT,
    last_message_time TEXT,
    channel TEXT,
    is_group INTEGER DEFAULT 0
);

CREATE TABLE messages (
    id TEXT,                            -- of a channel perhaps, so only unique in its chat
    chat_jid TEXT,
    sender TEXT,
    sender_name TEXT,
    content TEXT,
    timestamp TEXT,
    is_from_me INTEGER,                 -- 1: an agent wrote it
    is_bot_message INTEGER DEFAULT 0,
    PRIMARY KEY (id, chat_jid),
    FOREIGN KEY (chat_jid) REFERENCES chats(jid)
);
CREATE INDEX idx_timestamp ON messages(timestamp);

-- `last_timestamp`: of the latest message; `last_agent_timestamp`: JSON, of the latest answered message of each chat;
-- `moved_chats`: JSON, the new id of each chat that got one.
CREATE TABLE router_state (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Which chat belongs to which group, and what a message must hold for its agent to answer.
CREATE TABLE registered_groups (
    jid TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    folder TEXT NOT NULL UNIQUE,
    trigger_pattern TEXT NOT NULL,      -- a regular expression
    added_at TEXT NOT NULL,
    container_config TEXT,              -- dropped later: nothing read it
    requires_trigger INTEGER DEFAULT 1
);


-- Tasks -----------------------------------------------------------------------------------------------------------------

CREATE TABLE scheduled_tasks (
    id TEXT PRIMARY KEY,
    group_folder TEXT NOT NULL,
    chat_jid TEXT NOT NULL,
    prompt TEXT NOT NULL,
    schedule_type TEXT NOT NULL,        -- cron, interval or once
    schedule_value TEXT NOT NULL,       -- a cron expression, milliseconds, or a time
    context_mode TEXT DEFAULT 'isolated', -- or `group`: in the group's session
    next_run TEXT,                      -- null: never again
    last_run TEXT,
    last_result TEXT,
    status TEXT DEFAULT 'active',       -- or paused, completed, cancelled (until its last run is over)
    created_at TEXT NOT NULL
);
CREATE INDEX idx_next_run ON scheduled_tasks(next_run);
CREATE INDEX idx_status ON scheduled_tasks(status);

CREATE TABLE task_run_logs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL,
    run_at TEXT NOT NULL,
    duration_ms INTEGER NOT NULL,
    status TEXT NOT NULL,               -- success or error
    result TEXT,
    error TEXT,
    FOREIGN KEY (task_id) REFERENCES scheduled_tasks(id)
);
CREATE INDEX idx_task_run_logs ON task_run_logs(task_id, run_at);


-- The ledger: which message went into which prompt, and which reply answers it -------------------------------------------

-- The replies of agents.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL,
    chat_jid TEXT NOT NULL,
    kind TEXT NOT NULL,                 -- reply, task, notice or error
    delivered_at TEXT,                  -- null: not yet; added later: sent_parts, what its channel has sent of it
    FOREIGN KEY (message_id, chat_jid) REFERENCES messages(id, chat_jid)
);
CREATE INDEX idx_undelivered ON outbox(id) WHERE delivered_at IS NULL;

-- What agents are asked: a task, or, without `task_id`, messages.
CREATE TABLE prompts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    group_folder TEXT NOT NULL,
    chat_jid TEXT NOT NULL,
    uuid TEXT NOT NULL UNIQUE,          -- under which the runtime records it
    session_id TEXT,                    -- in which it was given last
    task_id TEXT REFERENCES scheduled_tasks(id) ON DELETE CASCADE,
    due_at TEXT,                        -- when the task was due
    attempt INTEGER NOT NULL DEFAULT 1,
    not_before TEXT,                    -- put off until then
    begun_at TEXT,
    answered_at TEXT,                   -- null: open
    reply_id INTEGER REFERENCES outbox(id), -- null with `answered_at`: the agent had nothing to say
    UNIQUE (task_id, due_at)
);
CREATE INDEX idx_open_prompts ON prompts(group_folder) WHERE answered_at IS NULL;

-- Messages that are to be answered, in the order in which they came.
CREATE TABLE inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL,
    chat_jid TEXT NOT NULL,
    group_folder TEXT NOT NULL,
    prompt_id INTEGER REFERENCES prompts(id), -- null: it waits; added later: is_called, 1: for the agent whatever the trigger
    UNIQUE (message_id, chat_jid),
    FOREIGN KEY (message_id, chat_jid) REFERENCES messages(id, chat_jid)
);
CREATE INDEX idx_waiting ON inbox(group_folder) WHERE prompt_id IS NULL;
CREATE INDEX idx_prompt ON inbox(prompt_id);
