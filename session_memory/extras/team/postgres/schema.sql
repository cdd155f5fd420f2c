-- The store of a team: what its members share of their sessions, searchable. Each machine keeps a store of its own,
-- which ingests; from there sessions are pushed here. docs/use/team.md says who may do what.
--
-- Times are milliseconds since the epoch (UTC). An item is an entry or a tool use; it is known by its session here and
-- its number in the transcript, joined as `session << 32 | number` if one number is needed. Tables that grow with
-- what was said have `session` or `segment` in their primary keys, so that they may be distributed by it.

-- Who may do what is decided in members.sql, row by row. A member is the database's user of that name.
CREATE TABLE IF NOT EXISTS machine (
    owner text NOT NULL DEFAULT current_user,
    name text NOT NULL,
    joined_at bigint NOT NULL,
    pushed_at bigint,                       -- when it pushed last, whether there was anything new or not
    program text NOT NULL DEFAULT '',       -- the version of session-memory that it did so with
    PRIMARY KEY (owner, name)
);

-- Sessions of one machine that are shared with the same people and are indexed together, some 10,000 items.
CREATE TABLE IF NOT EXISTS segment (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL DEFAULT current_user,
    machine text NOT NULL,
    share text NOT NULL CHECK (share IN ('mine', 'team')),
    item_count bigint NOT NULL DEFAULT 0    -- items that came to it, also those that were deleted since
);
CREATE INDEX IF NOT EXISTS segment_machine ON segment (owner, machine);

-- A session on one machine, and how far it was pushed. If it is to be shared with others, it is pushed again.
CREATE TABLE IF NOT EXISTS session (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL DEFAULT current_user,
    segment bigint NOT NULL,                -- of the same owner, shared with the same people
    machine text NOT NULL,
    home text NOT NULL,                     -- the group of a host, '' without groups
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
    shape bigint NOT NULL,                  -- which items of which file in that machine's store were pushed
    next_number integer NOT NULL DEFAULT 0, -- all items with lower numbers are here
    mark bigint NOT NULL DEFAULT 0,         -- checksum of them: compared if `shape` differs
    rules text NOT NULL DEFAULT '',         -- the rules for secrets and terms when it was pushed
    open_calls integer[] NOT NULL DEFAULT '{}', -- tool uses whose result had not come
    item_count integer NOT NULL DEFAULT 0,
    text_count integer NOT NULL DEFAULT 0,  -- items that can be found, and how many terms they have in all
    term_count bigint NOT NULL DEFAULT 0,
    pushes integer NOT NULL DEFAULT 0,
    pushed_at bigint NOT NULL DEFAULT 0,
    UNIQUE (owner, machine, home, file_path)
);
CREATE INDEX IF NOT EXISTS session_project ON session (project, last_at);
CREATE INDEX IF NOT EXISTS session_segment ON session (segment);

-- What users and assistants said (role `user`, `assistant`), and what tools were called with (role `tool`).
CREATE TABLE IF NOT EXISTS item (
    session bigint NOT NULL,
    number integer NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    at bigint,
    cwd text,                               -- NULL if it is the session's
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
CREATE TABLE IF NOT EXISTS posting (
    term text COLLATE "C" NOT NULL,
    segment bigint NOT NULL,
    items bytea NOT NULL,
    PRIMARY KEY (term, segment)
);
CREATE INDEX IF NOT EXISTS posting_segment ON posting (segment);

-- The items of a session from `first_number` to `last_number`, without a long silence among them.
CREATE TABLE IF NOT EXISTS conversation (
    session bigint NOT NULL,
    first_number integer NOT NULL,
    last_number integer NOT NULL,
    first_at bigint,
    last_at bigint,
    message_count integer NOT NULL,
    text_bytes bigint NOT NULL,
    PRIMARY KEY (session, first_number)
);

-- What a live session changed and nobody has merged yet, by file: names of git's objects and lines, no text.
CREATE TABLE IF NOT EXISTS changed_file (
    session bigint NOT NULL,
    path text NOT NULL,                     -- in the repository
    head text NOT NULL,                     -- the commit that was checked out
    base text NOT NULL,                     -- the file's blob where the branch left the default branch; '' for none
    blob text NOT NULL,                     -- its blob now, committed or not; '' if it was deleted
    hunks text NOT NULL,                    -- JSON, for each: the first line and the one behind the last before; after: both
    at bigint NOT NULL,
    PRIMARY KEY (session, path)
);

-- The page with which somebody handed a session over, for who starts one on its branch.
CREATE TABLE IF NOT EXISTS handoff (
    session bigint PRIMARY KEY,
    branch text NOT NULL,
    page text NOT NULL,
    at bigint NOT NULL
);
