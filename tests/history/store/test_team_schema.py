"""The schema of a team's database: from earlier versions, for two teams, by limited administrators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PostgresServer
from psycopg import errors
from psycopg.conninfo import make_conninfo
from store_scene import Scene, put, said, state
from team_scene import push

from session_memory.extras.team.postgres.connection import TeamError, connect
from session_memory.extras.team.postgres.engine import (
    TeamStore,
    others_handoffs,
    push_changed_files,
)
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.postgres.schema import (
    MIGRATIONS,
    add_member,
    lets_everybody_in,
    members,
    migrate,
    remove_member,
)
from session_memory.history.store.values import Filter

FIXTURES = Path(__file__).parents[2] / "fixtures" / "team"
# Of the commits of 0.2.0: that of its version, and the last before version 2. 0.1.0 had no team.
VERSIONS = {"0.2.0": ["by_session"], "by segment": ["by_segment", "memories"]}
CATALOG = (
    "SELECT table_name, column_name, data_type, is_nullable, is_identity FROM information_schema.columns "
    "WHERE table_schema = 'session_memory'",
    "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'session_memory'",
    "SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies WHERE schemaname = 'session_memory'",
    "SELECT relname, relrowsecurity, relforcerowsecurity, relacl::text FROM pg_class "
    "WHERE relnamespace = 'session_memory'::regnamespace AND relkind IN ('r', 'S')",
    "SELECT attrelid::regclass::text, attname, attacl::text FROM pg_attribute WHERE attacl IS NOT NULL",
    "SELECT nspacl::text FROM pg_namespace WHERE nspname = 'session_memory'",
)

Databases = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def database(postgres: PostgresServer) -> Databases:
    """An empty database of an administrator who is no superuser: its URL is theirs."""

    @contextmanager
    def made(owner: str = "olga") -> Iterator[str]:
        role = f"DO $$ BEGIN CREATE ROLE {owner} LOGIN CREATEROLE; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        with postgres.empty_database() as url:
            postgres.execute(role, f"ALTER DATABASE {name_of(url)} OWNER TO {owner}")
            yield make_conninfo(url, user=owner)

    return made


def name_of(url: str) -> str:
    return url.split("dbname=")[1].split()[0]


def of(user: str, url: str) -> str:
    return make_conninfo(url, user=user)


def rows(url: str, sql: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(connect(url)) as connection:
        cursor = connection.execute(sql, values)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def team_in(url: str, *names: str) -> None:
    with closing(connect(url)) as connection:
        migrate(connection)
        for name in names:
            add_member(connection, name)


def made_by_version_1(url: str, *files: str) -> None:
    """What `team init` of 0.2.0 did, with its files; ann and bob are members, and so is cleo of
    another team."""
    with closing(connect(url)) as connection:
        connection.execute("""
            DO $$ BEGIN CREATE ROLE session_memory_member; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
            CREATE SCHEMA session_memory; SET search_path = session_memory;
            CREATE TABLE schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
            INSERT INTO schema_version VALUES (1)
        """)
        for file in files:
            connection.execute((FIXTURES / f"{file}.sql").read_text())  # type: ignore[arg-type]
        for name in ("ann", "bob", "cleo"):
            connection.execute(f"GRANT session_memory_member TO {name}")  # type: ignore[arg-type]


def shared_by_ann(url: str, *, by_segment: bool) -> None:
    """A session with two items, as the programs of version 1 pushed it."""
    segment, column = "", ""
    if by_segment:
        rows(url, "INSERT INTO segment (machine, share) VALUES ('laptop', 'team')")
        segment, column = "1, ", "segment, "
    rows(url, "INSERT INTO machine (name, joined_at) VALUES ('laptop', 0)")
    rows(
        url,
        f"INSERT INTO session ({column}machine, home, file_path, session_id, runtime, project, share, title, cwd, "
        f"local_id, next_number, text_count, term_count, item_count) VALUES ({segment}'laptop', '', "
        "'-srv-agent/a.jsonl', 'a', 'claude-code', 'p', 'team', '', 'p', 1, 300, 2, 4, 2)",
    )
    for number, text in ((0, "a zebra"), (299, "zebra again")):
        rows(
            url,
            "INSERT INTO item (session, number, role, message, byte_offset, text) VALUES (1, %s, 'user', %s, 0, %s)",
            number,
            number,
            text,
        )
    size = 8 if by_segment else 4
    items = b"".join(
        [(number + by_segment * (1 << 32)).to_bytes(size, "big") for number in (0, 299)]
    )
    rows(url, "INSERT INTO posting VALUES ('zebra', 1, %s)", items)
    rows(url, "INSERT INTO conversation VALUES (1, 0, 299, 0, 9, 2, 20)")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_version_1_becomes_one_as_it_is_made_now_with_what_was_shared(
    database, version
):
    with database() as url, database() as fresh:
        made_by_version_1(url, *VERSIONS[version])
        shared_by_ann(of("ann", url), by_segment=version == "by segment")
        with pytest.raises(TeamError, match="must be migrated") as raised:
            TeamStore(of("ann", url))
        assert "team init URL" in raised.value.hint
        with pytest.raises(TeamError, match="must be migrated"):
            TeamPush(of("ann", url), "laptop")
        team_in(fresh, "ann")
        with closing(connect(url)) as connection:
            assert migrate(connection) == [2, 3, 4]
            assert migrate(connection) == []
        for sql in CATALOG:
            assert sorted(map(str, rows(url, sql))) == sorted(map(str, rows(fresh, sql)))
        with closing(TeamStore(of("ann", url))) as store:
            found = store.search("zebra", Filter())
            assert sorted(hit.entry.text for hit in found) == ["a zebra", "zebra again"]


def test_the_members_of_a_database_of_version_2_push_again_after_its_migration(database):
    with database() as url:
        with closing(connect(url)) as connection:
            migrate(connection, MIGRATIONS[:1])
            add_member(connection, "ann")
            connection.execute("DROP TABLE changed_file, handoff")
            assert migrate(connection) == [3, 4]
        with closing(TeamPush(of("ann", url), "laptop")) as pushing:
            push_changed_files(pushing, {})
            assert others_handoffs(pushing, ["app"]) == []


def test_after_a_migration_nobody_may_do_more_than_before_and_who_never_joined_nothing(database):
    with database() as url, database() as other:
        made_by_version_1(url, *VERSIONS["by segment"])
        made_by_version_1(other, *VERSIONS["by segment"])
        shared_by_ann(of("ann", url), by_segment=True)
        for name in ("bob", "cleo"):
            rows(of(name, url), "INSERT INTO machine (name, joined_at) VALUES ('desk', 0)")
        rows(of("cleo", url), "DELETE FROM machine")
        rows(url, "REVOKE session_memory_member FROM bob")
        with closing(connect(url)) as connection:
            migrate(connection)
            assert members(connection) == ["ann"]
        for name in ("bob", "cleo"):
            with pytest.raises(errors.InsufficientPrivilege):
                rows(of(name, url), "SELECT * FROM session_memory.item")
        rows(other, "GRANT session_memory_member TO bob")  # as `team init` of 0.2.0 does
        with pytest.raises(errors.InsufficientPrivilege):
            rows(of("bob", url), "SELECT * FROM session_memory.item")
        with closing(connect(other)) as connection:
            migrate(connection)
        assert rows(url, "SELECT FROM pg_roles WHERE rolname = 'session_memory_member'") == []


def test_members_of_one_team_neither_read_nor_write_another_on_the_same_server(database, tmp_path):
    scene = Scene(tmp_path)
    put(scene, None, state(), said("a zebra"))
    with database("olga") as one, database("otto") as other:
        team_in(one, "ann", "bob")
        team_in(other, "bob", "cleo")
        push(of("ann", one), scene)
        push(of("bob", other), scene)
        for name, url in (("ann", other), ("cleo", one)):
            with pytest.raises(TeamError):
                TeamStore(of(name, url))
            for sql in (
                "SELECT * FROM session_memory.item",
                "INSERT INTO session_memory.machine (name, joined_at) VALUES ('x', 0)",
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    rows(of(name, url), sql)
        with closing(connect(other)) as connection:
            remove_member(connection, "bob", purge=True)
        with closing(TeamStore(of("bob", one))) as store:
            assert len(store.search("zebra", Filter())) == 1, "bob is a member here still"
        with pytest.raises(TeamError):
            TeamStore(of("bob", other))
        assert rows(of("cleo", other), "SELECT * FROM item") == []


def test_only_who_owns_the_tables_adds_and_removes_members_and_whoever_has_that_role_too(
    database, postgres
):
    with database("olga") as url, database("otto"):
        team_in(url, "ann")
        with closing(connect(of("otto", url))) as connection:
            for change in (
                lambda: add_member(connection, "bob"),
                lambda: remove_member(connection, "ann", purge=True),
            ):
                with pytest.raises(errors.InsufficientPrivilege):
                    change()
        postgres.execute("GRANT olga TO otto")
        with closing(connect(of("otto", url))) as connection:
            add_member(connection, "bob")
            assert members(connection) == ["ann", "bob"]
        postgres.execute("REVOKE olga FROM otto")


def test_a_member_may_connect_and_make_tables_of_their_own_connection_though_nobody_else_may(
    database,
):
    with database() as url:
        team_in(url, "ann")
        with closing(connect(url)) as connection:
            statement = lets_everybody_in(connection)
            assert statement.endswith(
                f'FROM PUBLIC; GRANT CONNECT ON DATABASE "{name_of(url)}" TO "ann";'
            )
            connection.execute(statement)  # type: ignore[arg-type]
            connection.execute(f"REVOKE TEMPORARY ON DATABASE {name_of(url)} FROM PUBLIC")  # type: ignore[arg-type]
            assert lets_everybody_in(connection) == ""
            add_member(connection, "bob")
        TeamPush(of("bob", url), "laptop").close()
        with pytest.raises(TeamError, match="permission denied"):
            TeamPush(of("cleo", url), "laptop")
        with pytest.raises(TeamError) as raised:
            TeamPush(of("ann", url), "laptop")
        assert (
            raised.value.hint
            == f"the database administrator must run GRANT TEMPORARY ON DATABASE {name_of(url)} TO ann"
        )


def test_whoever_administers_a_team_is_held_to_its_policies_and_purges_what_one_member_shared(
    database, tmp_path
):
    scene = Scene(tmp_path)
    put(scene, None, state(), said("a zebra"))
    with database() as url:
        team_in(url, "ann", "bob", "olga")
        for name in ("ann", "bob"):
            push(of(name, url), scene)
        with closing(connect(of("bob", url))) as connection:
            connection.execute("SET session_memory.purged = 'ann'")
            connection.execute("DELETE FROM item")
            connection.execute("DELETE FROM session")
        assert rows(of("ann", url), "SELECT owner FROM session") == [("ann",)]
        assert len(rows(of("ann", url), "SELECT * FROM item")) == 1
        with closing(connect(url)) as connection, connection.transaction():
            connection.execute("LOCK TABLE item IN ROW SHARE MODE")  # as a search does, meanwhile
            with closing(connect(url)) as other:
                other.execute("SET lock_timeout = '2s'")
                assert remove_member(other, "ann", purge=True) == 1
        assert rows(of("bob", url), "SELECT DISTINCT owner FROM session") == []
