-- After a migration: the members have no rights on a table that is new.

DO $$
DECLARE
    one text;
BEGIN
    FOR one IN
        SELECT DISTINCT pg_get_userbyid(grantee) FROM pg_class, aclexplode(relacl)
        WHERE oid = 'session'::regclass AND grantee != relowner AND grantee != 0
    LOOP
        PERFORM add_member(one);
    END LOOP;
END $$;
