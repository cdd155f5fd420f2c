-- The store of a team: what its members share of their sessions, searchable. Each machine keeps a store of its own,
-- which ingests; from there sessions are pushed here. docs/team.md says who may do what.
--
-- Times are milliseconds since the epoch (UTC). An item is an entry or a tool use; it is known by its session here and
-- its number in the transcript, joined as `session << 32 | number` where one number is asked for. Every table but
-- `session`, `machine` and `schema_version` has `session` in its primary key, so that it may be distributed by it.

-- Who may do what is decided at the end, row by row. A member is the database's user of that name.
CREATE TABLE machine (
    owner text NOT NULL DEFAULT current_user,
    name text NOT NULL,
    joined_at bigint NOT NULL,
    pushed_at bigint,                       -- when it pushed last, whether there was anything new or not
    program text NOT NULL DEFAULT '',       -- the version of session-memory that it did so with
    PRIMARY KEY (owner, name)
);

-- A session on one machine, and how far it was pushed.
CREATE TABLE session (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL DEFAULT current_user,
    machine text NOT NULL,
    home text NOT NULL,                     -- the group of a host, '' where there are none
    file_path text NOT NULL,                -- the transcript, as that machine's store knows it
    session_id text NOT NULL,
    runtime text NOT NULL,
    project text NOT NULL,                  -- the same on all machines: the address of its repository, or a name
    share text NOT NULL CHECK (share IN ('mine', 'team')),
    title text NOT NULL,
    cwd text NOT NULL,                      -- the project, and the directory in its repository
    branch text NOT NULL DEFAULT '',
    first_at bigint,
    last_at bigint,
    local_id bigint NOT NULL,               -- the file in that machine's store
    next_number integer NOT NULL DEFAULT 0, -- all items with lower numbers are here
    mark bigint NOT NULL DEFAULT 0,         -- checksum of them: tells whether a transcript that was read anew is another
    rules text NOT NULL DEFAULT '',         -- what secrets were looked for when it was pushed
    open_calls integer[] NOT NULL DEFAULT '{}', -- tool uses whose result had not come
    item_count integer NOT NULL DEFAULT 0,
    text_count integer NOT NULL DEFAULT 0,  -- items that can be found, and how many terms they have in all
    term_count bigint NOT NULL DEFAULT 0,
    pushes integer NOT NULL DEFAULT 0,
    pushed_at bigint NOT NULL DEFAULT 0,
    UNIQUE (owner, machine, home, file_path)
);
CREATE INDEX session_project ON session (project, last_at);

-- What users and assistants said (role `user`, `assistant`), and what tools were called with (role `tool`).
CREATE TABLE item (
    session bigint NOT NULL,
    number integer NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    at bigint,
    cwd text,                               -- NULL where it is the session's
    message integer NOT NULL,               -- the same for all items of one message
    byte_offset bigint NOT NULL,
    tool text,                              -- of a tool use: its name, its kind, how it ended; NULL: not known
    kind text,
    outcome text CHECK (outcome IN ('ok', 'error')),
    error text,
    result_size bigint,
    result_lines bigint,
    text text NOT NULL,
    PRIMARY KEY (session, number)
);

-- Which items of a session have a term: their numbers in order, 4 bytes each, the highest byte first.
CREATE TABLE posting (
    term text COLLATE "C" NOT NULL,
    session bigint NOT NULL,
    numbers bytea NOT NULL,
    PRIMARY KEY (term, session)
);
CREATE INDEX posting_session ON posting (session);

-- The items of a session from `first_number` to `last_number`, without a long silence among them.
CREATE TABLE conversation (
    session bigint NOT NULL,
    first_number integer NOT NULL,
    last_number integer NOT NULL,
    first_at bigint,
    last_at bigint,
    message_count integer NOT NULL,
    text_bytes bigint NOT NULL,
    PRIMARY KEY (session, first_number)
);


-- Who may do what -----------------------------------------------------------------------------------------------------

-- Members read what is theirs and what is shared with the team; they write what is theirs. What belongs to a session
-- goes with it. Nobody chooses the number of a session, so that nobody can take that of another one.
GRANT USAGE ON SCHEMA session_memory TO session_memory_member;
GRANT SELECT ON schema_version TO session_memory_member;
GRANT SELECT, INSERT, UPDATE, DELETE ON machine, item, posting, conversation TO session_memory_member;
GRANT SELECT, DELETE ON session TO session_memory_member;
GRANT INSERT (
    machine, home, file_path, session_id, runtime, project, share, title, cwd, branch, first_at, last_at, local_id,
    next_number, mark, rules, open_calls, item_count, text_count, term_count, pushes, pushed_at
) ON session TO session_memory_member;
GRANT UPDATE (
    machine, home, file_path, session_id, runtime, project, share, title, cwd, branch, first_at, last_at, local_id,
    next_number, mark, rules, open_calls, item_count, text_count, term_count, pushes, pushed_at
) ON session TO session_memory_member;

ALTER TABLE machine ENABLE ROW LEVEL SECURITY;
ALTER TABLE machine FORCE ROW LEVEL SECURITY;
CREATE POLICY anyone_reads ON machine FOR SELECT USING (true);
CREATE POLICY owner_adds ON machine FOR INSERT WITH CHECK (owner = current_user);
CREATE POLICY owner_changes ON machine FOR UPDATE USING (owner = current_user);
CREATE POLICY owner_deletes ON machine FOR DELETE USING (owner = current_user);

ALTER TABLE session ENABLE ROW LEVEL SECURITY;
ALTER TABLE session FORCE ROW LEVEL SECURITY;
CREATE POLICY shared_is_read ON session FOR SELECT USING (owner = current_user OR share = 'team');
CREATE POLICY owner_adds ON session FOR INSERT WITH CHECK (owner = current_user);
CREATE POLICY owner_changes ON session FOR UPDATE USING (owner = current_user);
CREATE POLICY owner_deletes ON session FOR DELETE USING (owner = current_user);

ALTER TABLE item ENABLE ROW LEVEL SECURITY;
ALTER TABLE item FORCE ROW LEVEL SECURITY;
CREATE POLICY as_session ON item FOR SELECT
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = item.session));
CREATE POLICY owner_adds ON item FOR INSERT
    WITH CHECK (session IN (SELECT s.id FROM session AS s WHERE s.owner = current_user));
CREATE POLICY owner_changes ON item FOR UPDATE
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = item.session AND s.owner = current_user));
CREATE POLICY owner_deletes ON item FOR DELETE
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = item.session AND s.owner = current_user));

ALTER TABLE posting ENABLE ROW LEVEL SECURITY;
ALTER TABLE posting FORCE ROW LEVEL SECURITY;
CREATE POLICY as_session ON posting FOR SELECT
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = posting.session));
CREATE POLICY owner_adds ON posting FOR INSERT
    WITH CHECK (session IN (SELECT s.id FROM session AS s WHERE s.owner = current_user));
CREATE POLICY owner_changes ON posting FOR UPDATE
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = posting.session AND s.owner = current_user));
CREATE POLICY owner_deletes ON posting FOR DELETE
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = posting.session AND s.owner = current_user));

ALTER TABLE conversation ENABLE ROW LEVEL SECURITY;
ALTER TABLE conversation FORCE ROW LEVEL SECURITY;
CREATE POLICY as_session ON conversation FOR SELECT
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = conversation.session));
CREATE POLICY owner_adds ON conversation FOR INSERT
    WITH CHECK (session IN (SELECT s.id FROM session AS s WHERE s.owner = current_user));
CREATE POLICY owner_changes ON conversation FOR UPDATE
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = conversation.session AND s.owner = current_user));
CREATE POLICY owner_deletes ON conversation FOR DELETE
    USING (EXISTS (SELECT FROM session AS s WHERE s.id = conversation.session AND s.owner = current_user));
