"""A row belongs to its owner: a member's possible actions with a login and SQL, row by row."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from postgres_server import PostgresServer
from psycopg import errors
from store_scene import Scene, put, said, state
from team_scene import AS_IT_IS, Team, memory

from session_memory.extras.team.postgres._session_push import packed
from session_memory.extras.team.postgres.connection import TeamError, connect
from session_memory.extras.team.postgres.engine import TeamStore, push_changed_files, push_handoff
from session_memory.extras.team.postgres.memories import TeamMemories, push_memories
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.postgres.rows import UnmergedFile
from session_memory.extras.team.postgres.schema import add_member, remove_member
from session_memory.history.store.values import Filter
from session_memory.memory.memory_index import MemoryFilter

TABLES = ("session", "segment", "item", "posting", "conversation", "changed_file", "handoff")
MEMORY_TABLES = ("memory", "memory_posting")
PARENT = {
    "item": "session",
    "conversation": "session",
    "posting": "segment",
    "changed_file": "session",
    "handoff": "session",
}
CHANGED = UnmergedFile("cart", "a" * 40, "b" * 40, "c" * 40, ((1, 2, 1, 1),), 0)
SESSION = (
    "segment, machine, home, file_path, session_id, runtime, project, share, title, cwd, shape"
)
# A session as it may be added, but for the column before it or the change to it.
OWN_SESSION = "id, 'l', '', 'x', 'x', 'x', 'x', share, '', '', 1 FROM segment WHERE owner = 'ann' AND share = 'team'"
MACHINE = "INSERT INTO machine (name, joined_at) VALUES ('laptop', 0)"


@pytest.fixture(scope="module")  # most of what is tried here changes nothing
def shared(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Team:
    """Ann has a session of her own and one that is shared with the team; so has Bob."""
    team, tmp_path = Team(postgres), tmp_path_factory.mktemp("members")
    for member in ("ann", "bob"):
        scene = Scene(tmp_path / member)
        put(
            scene,
            None,
            state("private"),
            said(f"{member} plans a secret zeppelin", key=f"{member} 1"),
        )
        put(
            scene,
            None,
            state("shared"),
            said(f"{member} paints a shared balloon", key=f"{member} 2"),
        )
        team.push(
            scene,
            member,
            shared_as=lambda file, _: AS_IT_IS._replace(
                share="team" if file.session_id == "shared" else "mine"
            ),
        )
        team.rows(MACHINE, user=member)
        with closing(TeamPush(team.url(member), "laptop")) as pushing:
            push_changed_files(pushing, {one.id: [CHANGED] for one in pushing.pushed().values()})
            for one in pushing.pushed().values():
                push_handoff(pushing, one.id, "main", f"{one.session.title} goes on")
            secret = memory(f"{member} decides on a secret zeppelin", "1", share="mine")
            push_memories(
                pushing, [secret, memory(f"{member} decides on a shared balloon", "2")], ()
            )
    return team


def sessions(team: Team, owner: str, share: str) -> int:
    """The number of the one session of this kind."""
    [(id,)] = team.rows("SELECT id FROM session WHERE owner = %s AND share = %s", owner, share)
    return int(id)


def segment(team: Team, owner: str, share: str) -> int:
    """The number of its segment."""
    [(id,)] = team.rows("SELECT id FROM segment WHERE owner = %s AND share = %s", owner, share)
    return int(id)


def everything(team: Team) -> list[list[str]]:
    """All that there is, for the administrator."""
    return [
        sorted(str(row) for row in team.rows(f"SELECT * FROM {table}"))
        for table in (*TABLES, *MEMORY_TABLES, "machine")
    ]


def test_a_member_reads_their_own_rows_and_those_that_are_shared(shared):
    for member, other in (("ann", "bob"), ("bob", "ann")):
        found = set(shared.rows("SELECT owner, share FROM session", user=member))
        assert found == {(member, "mine"), (member, "team"), (other, "team")}
        assert set(shared.rows("SELECT owner, share FROM segment", user=member)) == found
        for table, parent in PARENT.items():
            seen = {id for (id,) in shared.rows(f"SELECT {parent} FROM {table}", user=member)}
            assert (segment if parent == "segment" else sessions)(shared, other, "mine") not in seen
            assert len(seen) == 3


def test_a_search_finds_nothing_of_others_that_is_not_shared_and_counts_nothing_of_it(shared):
    with closing(TeamStore(shared.url("ann"))) as store:
        assert [hit.conversation.who for hit in store.search("zeppelin", Filter())] == [
            "ann@laptop"
        ]
        assert {hit.conversation.who for hit in store.search("balloon", Filter())} == {
            "ann@laptop",
            "bob@laptop",
        }
        assert store.counts().entries == 3
        assert store.conversation(sessions(shared, "bob", "mine") << 32) is None
        assert list(store.entries(sessions(shared, "bob", "mine") << 32)) == []


def test_a_member_reads_their_own_memories_and_those_that_are_shared(shared):
    with closing(TeamStore(shared.url("ann"))) as store:
        memories = TeamMemories(store)
        assert {(one.who, one.title) for one in memories.memories(MemoryFilter())} == {
            ("ann@laptop", "ann decides on a secret zeppelin"),
            ("ann@laptop", "ann decides on a shared balloon"),
            ("bob@laptop", "bob decides on a shared balloon"),
        }
        assert [one.who for one in memories.search("zeppelin", MemoryFilter())] == ["ann@laptop"]
    terms = shared.rows("SELECT memory FROM memory_posting WHERE term = 'zeppelin'", user="ann")
    assert terms == shared.rows("SELECT number FROM memory WHERE owner = 'ann' AND share = 'mine'")


def accepted(
    team: Team, statements: list[str], values: dict[str, int], *refusals: type[psycopg.Error]
) -> list[str]:
    """Return the statements that Ann is not refused for want of a privilege, or as `refusals` say,
    and why if so."""
    found = []
    for statement in statements:
        with closing(connect(team.url("ann"))) as connection:
            try:
                connection.execute(statement, values or None)
                found.append(statement)
            except (errors.InsufficientPrivilege, *refusals):
                pass
            except psycopg.Error as error:
                found.append(f"{statement}: {error}")
    return found


@pytest.mark.parametrize("share", ["mine", "team"])
def test_nothing_is_put_among_the_memories_of_another(shared, share):
    before = everything(shared)
    [(id,)] = shared.rows("SELECT number FROM memory WHERE owner = 'bob' AND share = %s", share)
    statements = [
        "UPDATE memory SET title = 'x' WHERE number = %(id)s",
        "UPDATE memory_posting SET memory = %(id)s",
        "INSERT INTO memory_posting VALUES ('zeppelin', %(id)s, 9)",
        "INSERT INTO memory OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(NULL::memory, "
        "to_jsonb(m) || jsonb_build_object('number', %(id)s + 100))).* FROM memory AS m LIMIT 1",
        "INSERT INTO memory (owner, machine, home, id, project, share, kind, title, content, subject, quote, "
        "session_id, message, strategy, cwd, doubts, term_count, mark, pushed_at) "
        "VALUES ('bob', 'l', '', 'x', '', 'team', '', '', '', '', '', '', 0, '', '', '{}', 0, 0, %(id)s)",
    ]
    assert accepted(shared, statements, {"id": id}) == []
    with closing(connect(shared.url("ann"))) as connection:
        connection.execute("DELETE FROM memory_posting WHERE memory = %s", (id,))
        connection.execute("DELETE FROM memory WHERE owner = 'bob'")
    assert everything(shared) == before


@pytest.mark.parametrize("share", ["mine", "team"])
def test_nothing_of_another_is_changed_or_deleted(shared, share):
    before = everything(shared)
    theirs = {"session": sessions(shared, "bob", share), "segment": segment(shared, "bob", share)}
    for table in ("session", "segment", "machine"):
        shared.rows(f"DELETE FROM {table} WHERE owner = 'bob'", user="ann")
    for table, parent in PARENT.items():
        shared.rows(f"DELETE FROM {table} WHERE {parent} = %s", theirs[parent], user="ann")
    shared.rows("UPDATE session SET title = 'x' WHERE owner = 'bob'", user="ann")
    shared.rows("UPDATE segment SET item_count = 0 WHERE owner = 'bob'", user="ann")
    shared.rows("UPDATE machine SET program = 'x' WHERE owner = 'bob'", user="ann")
    for column, table in (("text", "item"), ("items", "posting"), ("text_bytes", "conversation")):
        parent = PARENT[table]
        shared.rows(
            f"UPDATE {table} SET {column} = {column} WHERE {parent} = %s",
            theirs[parent],
            user="ann",
        )
    assert everything(shared) == before


@pytest.mark.parametrize("share", ["mine", "team"])
def test_nothing_is_put_into_a_session_of_another(shared, share):
    before = everything(shared)
    values = {"id": sessions(shared, "bob", share), "own": sessions(shared, "ann", "mine")}
    values |= {
        "segment": segment(shared, "bob", share),
        "own_segment": segment(shared, "ann", "mine"),
    }
    statements = [
        "INSERT INTO item (session, number, role, message, byte_offset, text) VALUES (%(id)s, 7, 'user', 7, 0, 'x')",
        "INSERT INTO changed_file VALUES (%(id)s, 'x', '', '', '', '', 0)",
        "UPDATE changed_file SET session = %(id)s",
        "INSERT INTO handoff VALUES (%(id)s, 'main', 'x', 0)",
        "INSERT INTO handoff VALUES (%(id)s, 'main', 'x', 0) ON CONFLICT (session) DO UPDATE SET page = 'x'",
        "UPDATE handoff SET session = %(id)s",
        "INSERT INTO item (session, number, role, message, byte_offset, text) VALUES (%(id)s, 0, 'user', 7, 0, 'x') "
        "ON CONFLICT (session, number) DO UPDATE SET text = excluded.text",
        "INSERT INTO posting VALUES ('zeppelin', %(segment)s, '')",
        "INSERT INTO posting VALUES ('zeppelin', %(segment)s, '') ON CONFLICT (term, segment) DO UPDATE SET items = ''",
        "INSERT INTO conversation VALUES (%(id)s, 9, 9, 0, 0, 1, 1)",
        "UPDATE item SET session = %(id)s, number = 9 WHERE session = %(own)s",
        "UPDATE posting SET segment = %(segment)s WHERE segment = %(own_segment)s",
        "INSERT INTO session (segment, machine, home, file_path, session_id, runtime, project, share, title, cwd, "
        "shape) SELECT %(segment)s, 'l', '', 'x', 'x', 'x', 'x', share, '', '', 1 FROM session LIMIT 1",
        "UPDATE conversation SET session = %(id)s, first_number = 9 WHERE session = %(own)s",
    ]
    assert accepted(shared, statements, values) == []
    assert everything(shared) == before


def test_a_member_is_refused_what_would_make_them_another(shared):
    before = everything(shared)
    statements = [
        "UPDATE session SET owner = 'bob'",
        "UPDATE session SET id = 99",
        "UPDATE machine SET owner = 'bob', name = 'other'",
        "INSERT INTO machine (owner, name, joined_at) VALUES ('bob', 'other', 0)",
        "UPDATE session SET share = 'team'",
        "UPDATE session SET segment = segment",
        "UPDATE segment SET share = 'team'",
        "UPDATE segment SET owner = 'bob'",
        f"INSERT INTO session (owner, {SESSION}) SELECT 'bob', {OWN_SESSION}",
        f"INSERT INTO session (id, {SESSION}) OVERRIDING SYSTEM VALUE SELECT 99, {OWN_SESSION}",
        f"INSERT INTO session ({SESSION}) SELECT id, 'l', '', 'x', 'x', 'x', 'x', 'mine', '', '', 1 FROM segment "
        "WHERE share = 'team'",
        "INSERT INTO segment (owner, machine, share) VALUES ('bob', 'l', 'team')",
        "ALTER TABLE session DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE session NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY shared_is_read ON session",
        "CREATE POLICY mine ON session USING (true)",
        "SET SESSION AUTHORIZATION bob",
        "SET ROLE bob",
        "GRANT bob TO ann",
        "TRUNCATE session",
        "DROP TABLE item",
        "CREATE TABLE session_memory.trap (x integer)",
        "CREATE FUNCTION session_memory.trap() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "INSERT INTO schema_version VALUES (99)",
        "SELECT add_member('eve')",
        "SELECT remove_member('bob')",
        "SET row_security = off; SELECT * FROM session",
        "COPY (SELECT pg_read_file('/etc/passwd')) TO STDOUT",
        "SELECT setval(pg_get_serial_sequence('session', 'id'), 1)",
    ]
    assert accepted(shared, statements, {}, errors.GeneratedAlways) == []
    assert everything(shared) == before


def test_words_that_a_member_ascribes_to_a_session_of_another_are_not_found(shared):
    ids = [sessions(shared, owner, "team") << 32 for owner in ("ann", "bob")]
    own = segment(shared, "ann", "team")
    shared.rows("INSERT INTO posting VALUES ('slander', %s, %s)", own, packed(ids), user="ann")
    with closing(TeamStore(shared.url("cleo"))) as store:
        assert [hit.conversation.who for hit in store.search("slander", Filter())] == ["ann@laptop"]
    shared.rows("DELETE FROM posting WHERE term = 'slander'", user="ann")


def test_who_is_no_member_reads_nothing(shared):
    shared.server.execute("DROP ROLE IF EXISTS eve", "CREATE ROLE eve LOGIN")
    with pytest.raises(TeamError) as raised:
        TeamStore(shared.url("eve"))
    assert "--member" in raised.value.hint
    for table in (*TABLES, *MEMORY_TABLES, "machine", "schema_version"):
        with pytest.raises(errors.InsufficientPrivilege):
            shared.rows(f"SELECT * FROM session_memory.{table}", user="eve")


def test_who_would_see_everything_is_refused_as_a_member(shared):
    with pytest.raises(TeamError) as raised:
        TeamStore(shared.admin_url)
    assert "can see everything" in str(raised.value)


def test_what_a_function_of_the_member_s_own_sees_is_what_they_may_read(shared):
    """A function that is cheap and reports its argument is tried on every row before others: not
    before the policies."""
    with closing(connect(shared.url("ann"))) as connection:
        seen = []
        connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
        connection.execute(
            "CREATE FUNCTION pg_temp.spy(text) RETURNS boolean COST 0.0000001 LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE WARNING '%', $1; RETURN true; END $$"
        )
        connection.execute("SELECT count(*) FROM item WHERE pg_temp.spy(text)")
        connection.execute("SELECT count(*) FROM posting WHERE pg_temp.spy(term)")
    assert "bob paints a shared balloon" in seen
    assert not [text for text in seen if "bob" in text and "zeppelin" in text]


def test_who_is_removed_reads_and_writes_nothing_and_what_they_shared_stays_unless_it_is_purged(
    shared: Team, postgres: PostgresServer
) -> None:
    with closing(connect(shared.admin_url)) as connection:
        add_member(connection, "dora")
    with closing(connect(shared.url("dora"))) as connection:
        connection.execute("INSERT INTO segment (machine, share) VALUES ('l', 'team')")
        connection.execute(
            f"INSERT INTO session ({SESSION}) SELECT {OWN_SESSION.replace('ann', 'dora')}"
        )
    with closing(connect(shared.admin_url)) as connection:
        remove_member(connection, "dora", purge=False)
        assert shared.rows("SELECT count(*) FROM session WHERE owner = 'dora'", user="ann") == [
            (1,)
        ]
        with pytest.raises(errors.InsufficientPrivilege):
            shared.rows("SELECT * FROM session_memory.session", user="dora")
        assert remove_member(connection, "dora", purge=True) == 1
    assert shared.rows("SELECT count(*) FROM session WHERE owner = 'dora'", user="ann") == [(0,)]
    assert len(shared.rows("SELECT * FROM session", user="ann")) == 3, "policies hold again"
