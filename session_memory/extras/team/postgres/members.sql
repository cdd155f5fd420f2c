-- Who may do what, in this database alone: a member is a user who was granted rights on its tables. There is no role
-- that several databases of a server would have in common.
--
-- Members read what is theirs and what is shared with the team; they write what is theirs. What belongs to a session
-- goes with it, and words with their segment. No member chooses the number of a session or a segment, so that none can
-- take that of another one; nor is either moved to other people.

CREATE OR REPLACE FUNCTION add_member(name text) RETURNS void
LANGUAGE plpgsql SET search_path = session_memory, pg_temp AS $$
DECLARE
    given text;
BEGIN
    PERFORM check_administrator();
    FOREACH given IN ARRAY ARRAY[
        'USAGE ON SCHEMA session_memory',
        'SELECT ON schema_version',
        'SELECT, INSERT, UPDATE, DELETE ON machine, item, posting, conversation, changed_file, handoff',
        'SELECT, DELETE ON session, segment, memory',
        'SELECT, INSERT, DELETE ON memory_posting',
        'INSERT (machine, share, item_count), UPDATE (item_count) ON segment',
        'INSERT (
            segment, machine, home, file_path, session_id, runtime, project, share, title, cwd, branch, first_at,
            last_at, shape, next_number, mark, rules, open_calls, item_count, text_count, term_count, pushes, pushed_at
        ), UPDATE (
            machine, home, file_path, session_id, runtime, project, title, cwd, branch, first_at,
            last_at, shape, next_number, mark, rules, open_calls, item_count, text_count, term_count, pushes, pushed_at
        ) ON session',
        'INSERT (
            machine, home, id, project, share, kind, title, content, subject, quote, at, session_id, message, strategy,
            cwd, doubts, term_count, mark, pushed_at
        ) ON memory'
    ] LOOP
        EXECUTE format('GRANT %s TO %I', given, name);
    END LOOP;
    FOREACH given IN ARRAY ARRAY['CONNECT', 'TEMPORARY'] LOOP -- which everybody has, unless it was taken from PUBLIC
        IF NOT has_database_privilege(name, current_database(), given) THEN
            EXECUTE format('GRANT %s ON DATABASE %I TO %I', given, current_database(), name);
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION remove_member(name text) RETURNS void
LANGUAGE plpgsql SET search_path = session_memory, pg_temp AS $$
BEGIN
    PERFORM check_administrator();
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA session_memory FROM %I', name);
    EXECUTE format('REVOKE ALL ON SCHEMA session_memory FROM %I', name);
END $$;

-- A GRANT by another user is only a warning.
CREATE OR REPLACE FUNCTION check_administrator() RETURNS void
LANGUAGE plpgsql SET search_path = session_memory, pg_temp AS $$
BEGIN
    IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'session'::regclass), 'USAGE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'only who owns the tables of the team may say who its members are';
    END IF;
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA session_memory FROM PUBLIC;


-- Row by row ----------------------------------------------------------------------------------------------------------

DO $$
DECLARE
    one record;
    is_its text;
    is_own text;
BEGIN
    FOR one IN SELECT policyname, tablename FROM pg_policies WHERE schemaname = 'session_memory' LOOP
        EXECUTE format('DROP POLICY %I ON %I', one.policyname, one.tablename);
    END LOOP;
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'session_memory' AND tablename != 'schema_version' LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', one.tablename);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', one.tablename);
    END LOOP;
    FOR one IN VALUES ('machine'), ('session'), ('segment'), ('memory') LOOP
        EXECUTE format('CREATE POLICY owner_deletes ON %I FOR DELETE USING (owner = current_user)', one.column1);
        EXECUTE format('CREATE POLICY owner_adds ON %I FOR INSERT WITH CHECK (owner = current_user)', one.column1);
        -- The policies apply to the owner of the tables too, except for rows of a member who is purged.
        EXECUTE format('CREATE POLICY administrator_purges ON %I TO current_user
            USING (owner = current_setting(''session_memory.purged'', true)) WITH CHECK (false)', one.column1);
    END LOOP;
    FOR one IN VALUES ('machine'), ('session'), ('segment') LOOP
        EXECUTE format('CREATE POLICY owner_changes ON %I FOR UPDATE USING (owner = current_user)', one.column1);
    END LOOP;
    FOR one IN VALUES ('session'), ('segment'), ('memory') LOOP
        EXECUTE format('CREATE POLICY shared_is_read ON %I FOR SELECT
            USING (owner = current_user OR share = ''team'')', one.column1);
    END LOOP;
    -- What has a column named as the table that it belongs to.
    FOR one IN VALUES ('item', 'session', 'id'), ('conversation', 'session', 'id'), ('posting', 'segment', 'id'),
        ('changed_file', 'session', 'id'), ('handoff', 'session', 'id'), ('memory_posting', 'memory', 'number')
    LOOP
        is_its := format('SELECT FROM %2$I AS p WHERE p.%3$I = %1$I.%2$I', one.column1, one.column2, one.column3);
        is_own := is_its || ' AND p.owner = current_user';
        EXECUTE format('CREATE POLICY as_parent ON %I FOR SELECT USING (EXISTS (%s))', one.column1, is_its);
        EXECUTE format('CREATE POLICY owner_deletes ON %I FOR DELETE USING (EXISTS (%s))', one.column1, is_own);
        EXECUTE format('CREATE POLICY owner_adds ON %1$I FOR INSERT
            WITH CHECK (%2$I IN (SELECT p.%3$I FROM %2$I AS p WHERE p.owner = current_user))',
            one.column1, one.column2, one.column3);
        EXECUTE format('CREATE POLICY administrator_purges ON %I FOR DELETE TO current_user
            USING (EXISTS (%s AND p.owner = current_setting(''session_memory.purged'', true)))', one.column1, is_its);
        IF one.column1 != 'memory_posting' THEN
            EXECUTE format('CREATE POLICY owner_changes ON %I FOR UPDATE USING (EXISTS (%s))', one.column1, is_own);
        END IF;
    END LOOP;
END $$;

CREATE POLICY anyone_reads ON machine FOR SELECT USING (true);
DROP POLICY owner_adds ON session;
CREATE POLICY owner_adds ON session FOR INSERT WITH CHECK (
    owner = current_user AND EXISTS (
        SELECT FROM segment AS g WHERE (g.id, g.owner, g.share) = (session.segment, current_user, session.share)
    )
);
