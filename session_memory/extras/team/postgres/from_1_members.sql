-- From version 1 to 2, when rights are given member by member. In version 1 the members of all teams on a server had
-- one role in common. Of those who have it now, all who have joined here stay members; the others must be added again.

DO $$
DECLARE
    one record;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'session_memory_member') THEN
        REVOKE ALL ON ALL TABLES IN SCHEMA session_memory FROM session_memory_member;
        REVOKE ALL ON SCHEMA session_memory FROM session_memory_member;
        FOR one IN
            SELECT DISTINCT r.rolname FROM machine AS m JOIN pg_roles AS r ON r.rolname = m.owner
            WHERE pg_has_role(r.oid, 'session_memory_member', 'USAGE')
        LOOP
            PERFORM add_member(one.rolname);
        END LOOP;
        BEGIN
            DROP ROLE session_memory_member; -- else `team remove` of 0.2.0 would take it from a member, and be content
        EXCEPTION WHEN dependent_objects_still_exist OR insufficient_privilege THEN
            NULL; -- another team on this server is not migrated yet, or another user made it
        END;
    END IF;
END $$;
