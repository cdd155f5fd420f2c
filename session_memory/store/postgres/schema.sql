-- The store of a team: what its members share of their sessions, searchable. Each machine keeps a store of its own,
-- which ingests; from there sessions are pushed here. docs/team.md says who may do what.
--
-- Times are milliseconds since the epoch (UTC). An item is an entry or a tool use; it is known by its session here and
-- its number in the transcript, joined as `session << 32 | number` where one number is asked for. Tables that grow with
-- what was said have `session` or `segment` in their primary keys, so that they may be distributed by it.

-- Who may do what is decided at the end, row by row. A member is the database's user of that name.
CREATE TABLE machine (
    owner text NOT NULL DEFAULT current_user,
    name text NOT NULL,
    joined_at bigint NOT NULL,
    pushed_at bigint,                       -- when it pushed last, whether there was anything new or not
    program text NOT NULL DEFAULT '',       -- the version of session-memory that it did so with
    PRIMARY KEY (owner, name)
);

-- Sessions of one machine that are shared with the same people and are indexed together, some 10,000 items.
CREATE TABLE segment (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL DEFAULT current_user,
    machine text NOT NULL,
    share text NOT NULL CHECK (share IN ('mine', 'team')),
    item_count bigint NOT NULL DEFAULT 0    -- items that came to it, also those that were deleted since
);
CREATE INDEX segment_machine ON segment (owner, machine);

-- A session on one machine, and how far it was pushed. Where it is to be shared with others, it goes anew.
CREATE TABLE session (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL DEFAULT current_user,
    segment bigint NOT NULL,                -- of the same owner, shared with the same people
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
CREATE INDEX session_segment ON session (segment);

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

-- Which items of a segment have a term: their ids (`session << 32 | number`), 8 bytes each, the highest byte first.
CREATE TABLE posting (
    term text COLLATE "C" NOT NULL,
    segment bigint NOT NULL,
    items bytea NOT NULL,
    PRIMARY KEY (term, segment)
);
CREATE INDEX posting_segment ON posting (segment);

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
-- goes with it, and words with their segment. Nobody chooses the number of a session or a segment, so that nobody can
-- take that of another one; nor is either moved to other people.
GRANT USAGE ON SCHEMA session_memory TO session_memory_member;
GRANT SELECT ON schema_version TO session_memory_member;
GRANT SELECT, INSERT, UPDATE, DELETE ON machine, item, posting, conversation TO session_memory_member;
GRANT SELECT, DELETE ON session, segment TO session_memory_member;
GRANT INSERT (machine, share, item_count), UPDATE (item_count) ON segment TO session_memory_member;
GRANT INSERT (
    segment, machine, home, file_path, session_id, runtime, project, share, title, cwd, branch, first_at, last_at,
    local_id, next_number, mark, rules, open_calls, item_count, text_count, term_count, pushes, pushed_at
) ON session TO session_memory_member;
GRANT UPDATE (
    machine, home, file_path, session_id, runtime, project, title, cwd, branch, first_at, last_at,
    local_id, next_number, mark, rules, open_calls, item_count, text_count, term_count, pushes, pushed_at
) ON session TO session_memory_member;

CREATE POLICY owner_adds ON session FOR INSERT WITH CHECK (
    owner = current_user AND EXISTS (
        SELECT FROM segment AS g WHERE (g.id, g.owner, g.share) = (session.segment, current_user, session.share)
    )
);
CREATE POLICY owner_adds ON machine FOR INSERT WITH CHECK (owner = current_user);
CREATE POLICY owner_adds ON segment FOR INSERT WITH CHECK (owner = current_user);
CREATE POLICY anyone_reads ON machine FOR SELECT USING (true);
CREATE POLICY shared_is_read ON session FOR SELECT USING (owner = current_user OR share = 'team');
CREATE POLICY shared_is_read ON segment FOR SELECT USING (owner = current_user OR share = 'team');

DO $$
DECLARE
    one text;
    parent text;
    is_its text;
    is_own text;
BEGIN
    FOREACH one IN ARRAY ARRAY['machine', 'session', 'segment', 'item', 'conversation', 'posting'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', one);
    END LOOP;
    FOREACH one IN ARRAY ARRAY['machine', 'session', 'segment'] LOOP
        EXECUTE format('CREATE POLICY owner_changes ON %I FOR UPDATE USING (owner = current_user)', one);
        EXECUTE format('CREATE POLICY owner_deletes ON %I FOR DELETE USING (owner = current_user)', one);
    END LOOP;
    -- What has a column named as the table that it belongs to.
    FOR one, parent IN VALUES ('item', 'session'), ('conversation', 'session'), ('posting', 'segment') LOOP
        is_its := format('SELECT FROM %1$I AS p WHERE p.id = %2$I.%1$I', parent, one);
        is_own := is_its || ' AND p.owner = current_user';
        EXECUTE format('CREATE POLICY as_parent ON %I FOR SELECT USING (EXISTS (%s))', one, is_its);
        EXECUTE format('CREATE POLICY owner_changes ON %I FOR UPDATE USING (EXISTS (%s))', one, is_own);
        EXECUTE format('CREATE POLICY owner_deletes ON %I FOR DELETE USING (EXISTS (%s))', one, is_own);
        EXECUTE format('CREATE POLICY owner_adds ON %1$I FOR INSERT
            WITH CHECK (%2$I IN (SELECT p.id FROM %2$I AS p WHERE p.owner = current_user))', one, parent);
    END LOOP;
END $$;
