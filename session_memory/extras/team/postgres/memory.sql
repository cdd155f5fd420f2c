-- The memories that a team's members share, each with its owner and machine. They are found as items are, by their
-- terms, which each machine makes and pushes. Times are milliseconds since the epoch (UTC).

-- A memory on a machine. `number` is the server's own; `id` stands on the memory's page, and two machines may both have
-- one that says the same.
CREATE TABLE IF NOT EXISTS memory (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL DEFAULT current_user,
    machine text NOT NULL,
    home text NOT NULL,                     -- the group of a host, '' without groups
    id text NOT NULL,
    project text NOT NULL,                  -- as in `session`
    share text NOT NULL CHECK (share IN ('mine', 'team')),
    kind text NOT NULL,
    title text NOT NULL,
    content text NOT NULL,
    subject text NOT NULL,
    quote text NOT NULL,                    -- what bears it out
    at bigint,                              -- the time of that
    session_id text NOT NULL,               -- the session that it was drawn from last,
    message integer NOT NULL,               -- the number of the item there, counted from 1; 0: of no single one
    strategy text NOT NULL,
    cwd text NOT NULL,                      -- the project, and the directory in its repository
    doubts text[] NOT NULL,                 -- what speaks against it, by the repository on its machine
    term_count integer NOT NULL,
    mark bigint NOT NULL,                   -- checksum of all that was pushed
    pushed_at bigint NOT NULL,
    UNIQUE (owner, machine, home, id)
);

-- How often a memory has a term; in its title that counts more than in its text.
CREATE TABLE IF NOT EXISTS memory_posting (
    term text COLLATE "C" NOT NULL,
    memory bigint NOT NULL,
    frequency real NOT NULL,
    PRIMARY KEY (term, memory)
);
CREATE INDEX IF NOT EXISTS memory_posting_memory ON memory_posting (memory);
