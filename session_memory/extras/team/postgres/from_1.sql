-- From version 1 to 2, before the tables are there as they are now. Version 1 was changed twice without another number:
-- it may lack memories, and have words by session instead of by segment.

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'session_memory' AND tablename != 'schema_version' LOOP
        EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', one.tablename); -- else no row is seen here
    END LOOP;
    ALTER TABLE session RENAME COLUMN local_id TO shape;
    IF to_regclass('session_memory.segment') IS NULL THEN
        ALTER TABLE session ADD COLUMN segment bigint;
        ALTER TABLE posting RENAME TO posting_of_session;
        ALTER TABLE posting_of_session RENAME CONSTRAINT posting_pkey TO posting_of_session_pkey;
    END IF;
END $$;
