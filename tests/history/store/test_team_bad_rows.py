"""Invalid rows in a team's store, which no program of ours writes.

A member's bad rows may hide only that member's rows from others.
"""

from __future__ import annotations

import math
import random
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from share import some
from store_scene import EVERYTHING, Scene, put, said, state, tool
from team_scene import AS_IT_IS, PROJECT, Member, Team, memory

from session_memory.extras.team.postgres.connection import TeamError, connect
from session_memory.extras.team.postgres.engine import TeamStore, machines_of, recent_sessions
from session_memory.extras.team.postgres.memories import TeamMemories, push_memories
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.postgres.rows import MOST_NUMBERS
from session_memory.history.store.values import Filter
from session_memory.memory.memory_index import MemoryFilter

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


def insert_memory(**columns: object) -> str:
    """A statement that shares a memory with odd values."""
    given = {
        "machine": "'l'",
        "home": "''",
        "id": "'odd'",
        "project": "''",
        "share": "'team'",
        "kind": "'decision'",
        "title": "'harbour'",
        "content": "''",
        "subject": "''",
        "quote": "''",
        "session_id": "''",
        "message": 0,
        "strategy": "''",
        "cwd": "''",
        "doubts": "'{}'",
        "term_count": 0,
        "mark": 0,
        "pushed_at": 0,
        **columns,
    }
    values = f"({', '.join(given)}) VALUES ({', '.join(map(str, given.values()))})"
    return f"WITH made AS (INSERT INTO memory {values} RETURNING number) SELECT number FROM made"


ONE_HARBOUR = """
    DELETE FROM memory_posting;
    INSERT INTO memory_posting SELECT 'harbour', number, '{}' FROM memory WHERE owner = current_user
"""
# Those of a set change different tables, and none keeps another's rows from being read.
BAD = [
    [
        "UPDATE posting SET items = items || 'x'::bytea",
        "UPDATE item SET text = repeat('harbour ', 2000000) WHERE role = 'user' AND number = 0",
        f"UPDATE session SET term_count = {LARGEST}, text_count = {2**31 - 1}, pushes = {2**31 - 1}",
        f"UPDATE conversation SET text_bytes = {LARGEST}, last_at = {LARGEST}, message_count = -1",
        f"UPDATE machine SET pushed_at = {LARGEST}, joined_at = {SMALLEST}",
        ONE_HARBOUR.format("NaN"),
        insert_memory(doubts="'{{a,NULL},{b,c}}'"),
    ],
    [
        "UPDATE posting SET items = ''",
        f"UPDATE item SET at = {LARGEST}, byte_offset = {LARGEST}, result_size = {SMALLEST}, result_lines = {SMALLEST}",
        f"UPDATE session SET term_count = {SMALLEST}, text_count = {-(2**31)}",
        f"UPDATE conversation SET text_bytes = {SMALLEST}, first_at = {SMALLEST}, last_at = {SMALLEST}",
        ONE_HARBOUR.format("Infinity"),
        insert_memory(term_count=0, at=LARGEST),
    ],
    [
        "UPDATE posting SET items = int8send(1::bigint << 32 | 4000000000)",
        "UPDATE session SET text_count = 0, term_count = 0, item_count = -5",
        f"UPDATE conversation SET first_number = {-(2**31)}, last_number = {2**31 - 1}",
        insert_memory(term_count=-(2**31), at=SMALLEST),
    ],
    [
        "UPDATE posting SET items = decode(repeat('ff', 80), 'hex')",
        f"UPDATE session SET first_at = {LARGEST}, last_at = {LARGEST}, pushed_at = {LARGEST}",
        "UPDATE conversation SET last_number = -7",
        insert_memory(term_count=2**31 - 1),
    ],
    [
        f"UPDATE posting SET items = decode(repeat('0000000100000000', {MOST_NUMBERS + 1}), 'hex') "
        "WHERE term = 'harbour'",
        f"UPDATE session SET first_at = {SMALLEST}, last_at = {SMALLEST}",
        "DELETE FROM conversation",
    ],
    ["DELETE FROM item", f"UPDATE session SET next_number = {-(2**31)}"],
]


def share(team: Team, scene: Scene, member: str) -> None:
    """Share a session and a memory."""
    team.push(
        scene, member, shared_as=lambda file, _: AS_IT_IS if file.session_id == member else None
    )
    with closing(TeamPush(team.url(member), "laptop")) as pushing:
        pushing.note_machine("1", pushed=True)
        push_memories(pushing, [memory(f"{member} decides on the harbour", member)], ())


@pytest.fixture
def sessions(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path / "sessions")
    for member in ("ann", "bob"):
        entries = (
            said(f"{member} plans the harbour", tools=(tool(f"ls {member}"),)),
            said(f"and a quay by {member}", 1),
        )
        times = {
            "first_entry_timestamp": entries[0].timestamp,
            "last_entry_timestamp": entries[1].timestamp,
        }
        put(scene, None, state(member, **times), *entries)
    return scene


@pytest.fixture
def shared(team: Team, sessions: Scene) -> Team:
    """Ann and Bob share a session and a memory each."""
    for member in ("ann", "bob"):
        share(team, sessions, member)
    return team


@pytest.mark.parametrize(
    "statements", BAD, ids=lambda statements: statements[0].partition("|")[0][:40]
)
def test_bad_rows_of_a_member_take_nothing_from_what_others_share(
    shared: Team, statements: list[str]
) -> None:
    for statement in statements:
        made = shared.rows(statement, user="ann")
        for (number,) in made if "INSERT INTO memory " in statement else ():
            sql = "INSERT INTO memory_posting VALUES ('harbour', %s, 9), ('harbor', %s, 9)"
            shared.rows(sql, number, number, user="ann")
    began = time.monotonic()
    with closing(TeamStore(shared.url("cleo"))) as store:
        for query in (
            "harbour",
            "plans harbour",
            '"plans the harbour"',
            "harbour -quay",
            "harbour -zeppelin",
        ):
            assert query.endswith("-quay") or "bob" in {
                hit.conversation.session_id for hit in store.search(query, EVERYTHING)
            }
        listed = store.conversations(EVERYTHING)
        assert "bob" in {one.session_id for one in listed}
        for one in listed:
            texts = [entry.text for entry in store.entries(one.id)]
            assert one.session_id != "bob" or len(texts) == 3
            assert all(
                at is None or abs(at) < 2**53 for at in (one.first_message_at, one.last_message_at)
            )
        assert store.counts().entries >= 2
        assert all(abs(one.pushed_at or 0) < 2**53 for one in machines_of(store))
        memories = TeamMemories(store)
        for found in (
            memories.search("harbour", MemoryFilter()),
            memories.memories(MemoryFilter()),
        ):
            assert "bob decides on the harbour" in {one.title for one in found}
            assert all(one.at is None or abs(one.at) < 2**53 for one in found)
    with closing(TeamPush(shared.url("cleo"), "desk")) as pushing:
        assert "bob" in {
            one.session_id for one in recent_sessions(pushing, ["example.org/acme/app"])
        }
    # that of the server too: it ends, on a busy machine later
    assert time.monotonic() - began < 120


def test_control_characters_in_what_a_member_shares_reach_no_terminal(
    shared: Team, tmp_path: Path
) -> None:
    evil = "'x' || chr(27) || ']0;owned' || chr(7) || chr(8238) || chr(10) || 'y'"
    text = ("session_id", "runtime", "project", "title", "cwd", "branch", "home")
    shared.rows(f"UPDATE session SET {', '.join(f'{one} = {evil}' for one in text)}", user="ann")
    shared.rows(
        f"UPDATE item SET text = text || {evil}, tool = {evil}, kind = {evil}, error = {evil}",
        user="ann",
    )
    shared.rows(f"UPDATE machine SET name = {evil}, program = {evil}", user="ann")
    columns = dict.fromkeys(
        ("id", "kind", "title", "content", "quote", "session_id", "strategy", "project", "cwd"),
        evil,
    )
    shared.rows(insert_memory(**columns, doubts=f"ARRAY[{evil}]"), user="ann")
    cleo = Member(tmp_path / "cleo")
    cleo.joins(shared, "cleo")
    [found] = [
        one["id"]
        for one in cleo.result("conversations", "--team")["conversations"]
        if "ann" in one["who"]
    ]
    for words in (
        ("conversations", "--team"),
        ("search", "--team", "harbour"),
        ("show", found, "--team"),
        ("team", "status"),
        ("memories", "--team"),
        ("memories", "search", "harbour", "--team"),
    ):
        for options in ((), ("--json",)):
            assert "ann@" in check_printed(cleo, *words, *options) or words[0] == "memories", (
                words,
                options,
            )


def test_a_table_that_a_member_keeps_locked_is_said_soon(shared: Team) -> None:
    with closing(connect(shared.url("ann"))) as holding, holding.transaction():
        holding.execute("LOCK TABLE item, session IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with (
            pytest.raises(TeamError, match="another member keeps") as raised,
            closing(TeamStore(shared.url("bob"), seconds=1)) as store,
        ):
            store.search("harbour", EVERYTHING)
        assert time.monotonic() - began < 120
        assert "try again" in raised.value.hint


def odd_value(chance: random.Random, kind: str) -> object:
    """Return a value that a column of this type may take and that no program of ours writes."""
    if kind in ("bigint", "integer"):
        bits = 64 if kind == "bigint" else 32
        most = (1 << (bits - 1)) - 1
        return chance.choice((0, -1, most, -most - 1, most // 3, chance.getrandbits(20), None))
    if kind == "real":
        return chance.choice((0.0, -1.0, 1e38, math.nan, math.inf, -math.inf))
    if kind == "bytea":
        return chance.randbytes(chance.choice((0, 1, 7, 8, 9, 16, 800)))
    if kind == "ARRAY":
        return chance.choice(
            ("{}", "{NULL}", "{-1,2147483647}", "{{1},{2}}", '{"\x1b]0;owned\x07"}', "[5:6]={1,2}")
        )
    signs = "".join(
        [
            chr(chance.choice((chance.randrange(1, 160), 0x202E, 0x2066, 0xFFFE, 0xE0041)))
            for _ in range(9)
        ]
    )
    texts = (
        signs,
        signs,
        "",
        "\x1b]0;owned\x07",
        "\r\nharbour\n\n",
        "\x9b31m",
        "harbour " * 90_000,
        "'; --",
        "{}",
        "-1",
        None,
    )
    return chance.choice(texts)


def change(
    connection: psycopg.Connection[tuple[Any, ...]], table: str, column: str, value: object
) -> None:
    """Put a value into the rows of a member. Memories are not changed, but replaced."""
    if not table.startswith("memory"):
        connection.execute(f"UPDATE {table} SET {column} = %s", (value,))  # type: ignore[arg-type]
        return
    cursor = connection.execute(f"DELETE FROM {table} RETURNING *")  # type: ignore[arg-type]
    names = [one.name for one in cursor.description or ()]
    for row in cursor.fetchall():
        given = {**dict(zip(names, row)), column: value}
        given = {
            name: one
            for name, one in given.items()
            if (table, name) not in (("memory", "number"), ("memory", "owner"))
        }
        made = connection.execute(
            f"INSERT INTO {table} ({', '.join(given)}) VALUES ({', '.join(['%s'] * len(given))}) RETURNING *",  # type: ignore[arg-type]
            list(given.values()),
        ).fetchall()
        if table == "memory":
            connection.execute(
                "INSERT INTO memory_posting VALUES ('harbour', %s, 1)", (made[0][0],)
            )


@pytest.mark.timeout(1800)
def test_random_odd_rows_of_a_member_cost_that_member_s_rows_at_most(
    team: Team, sessions: Scene, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    columns = team.rows(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'session_memory' AND table_name != 'schema_version' ORDER BY 1, 2"
    )
    cleo = Member(tmp_path / "cleo")
    cleo.joins(team, "cleo")
    share(team, sessions, "bob")
    for round in range(some(20, 3)):
        team.rows(OF_ANN)
        share(team, sessions, "ann")
        done: list[object] = []
        for table, column, kind in chance.choices(columns, k=chance.randint(1, 12)):
            value = odd_value(chance, kind)
            with (
                suppress(psycopg.Error),
                closing(connect(team.url("ann"))) as connection,
                connection.transaction(),
            ):
                change(connection, table, column, value)
                done.append((table, column, value))
        try:
            check_what_cleo_reads(team, cleo, round)
        except BaseException:
            print(f"seed {seed}: {done}"[:5000])
            raise


OF_ANN = """
    DELETE FROM item USING session AS s WHERE s.id = session AND owner = 'ann';
    DELETE FROM conversation USING session AS s WHERE s.id = session AND owner = 'ann';
    DELETE FROM posting USING segment AS s WHERE s.id = segment AND owner = 'ann';
    DELETE FROM memory_posting USING memory AS m WHERE m.number = memory AND owner = 'ann';
    DELETE FROM session WHERE owner = 'ann';
    DELETE FROM segment WHERE owner = 'ann';
    DELETE FROM memory WHERE owner = 'ann';
    DELETE FROM machine WHERE owner = 'ann';
"""


def check_what_cleo_reads(team: Team, cleo: Member, round: int) -> None:
    """Check that Bob's rows are found everywhere, and that nothing that is printed is more than
    text: every other round as JSON."""
    with closing(TeamStore(team.url("cleo"))) as store:
        of_bob = {one.id for one in store.conversations(EVERYTHING) if one.who.startswith("bob@")}
        for query in ("harbour", '"plans the harbour"', "bob -zeppelin", "plans quay ls"):
            limits = (
                Filter(project="srv"),
                Filter(role="user"),
                Filter(since=0),
                Filter(session="bob"),
            )
            for wanted in (EVERYTHING, *limits):
                assert of_bob <= {hit.conversation.id for hit in store.search(query, wanted)}, (
                    query,
                    wanted,
                )
        for one in store.conversations(EVERYTHING):
            texts = [entry.text for entry in store.entries(one.id)]
            assert one.id not in of_bob or len(texts) == 3
        assert len(of_bob) == 1
        assert "bob@laptop" in {one.who for one in machines_of(store)}
        memories = TeamMemories(store)
        for found in (
            memories.search("harbour", MemoryFilter()),
            memories.memories(MemoryFilter()),
        ):
            assert "bob decides on the harbour" in {one.title for one in found}
        shown = str(max(of_bob))
    with closing(TeamPush(team.url("cleo"), "desk")) as pushing:
        assert "bob" in {one.session_id for one in recent_sessions(pushing, [PROJECT])}
    for words in (
        ("conversations", "--team"),
        ("search", "--team", "harbour"),
        ("show", shown, "--team"),
        ("team", "status"),
        ("memories", "--team"),
        ("memories", "search", "harbour", "--team"),
    ):
        check_printed(cleo, *words, *(["--json"] if round % 2 else []))


def check_printed(member: Member, *words: str) -> str:
    """Return what a command prints: a text without control characters, and no error."""
    done = member.run(*words)
    odd = {character for character in done.stdout if not character.isprintable()} - {"\n"}
    assert (done.returncode, odd, "\\u001b" in done.stdout, done.stderr) == (0, set(), False, ""), (
        words,
        done.stderr,
    )
    return done.stdout
