-- From version 1 to 2, when the tables are there as they are now: words by segment.

DO $$
DECLARE
    one record;
    made bigint;
BEGIN
    IF to_regclass('session_memory.posting_of_session') IS NOT NULL THEN
        FOR one IN SELECT id, owner, machine, share, item_count FROM session LOOP
            INSERT INTO segment (owner, machine, share, item_count)
            VALUES (one.owner, one.machine, one.share, one.item_count) RETURNING id INTO made;
            UPDATE session SET segment = made WHERE id = one.id;
        END LOOP;
        INSERT INTO posting (term, segment, items)
        SELECT p.term, s.segment, (
            SELECT string_agg(int8send(s.id << 32 | ('x' || encode(substr(p.numbers, at, 4), 'hex'))::bit(32)::bigint), ''
                ORDER BY at)
            FROM generate_series(1, length(p.numbers), 4) AS at
        )
        FROM posting_of_session AS p JOIN session AS s ON s.id = p.session;
        ALTER TABLE session ALTER COLUMN segment SET NOT NULL;
        DROP TABLE posting_of_session;
    END IF;
END $$;
