"""Rows that no program of ours writes: a member's may cost others that member's rows, and nothing else."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from store_scene import EVERYTHING, Scene, put, said, state, tool
from team_scene import Member, Team, memory

from session_memory.store.postgres.activity import machines_of, recent_sessions
from session_memory.store.postgres.connection import TeamError, connect
from session_memory.store.postgres.engine import TeamStore
from session_memory.store.postgres.memories import TeamMemories, push_memories
from session_memory.store.postgres.push import TeamPush
from session_memory.store.sqlite.memory_index import MemoryFilter

LARGEST, SMALLEST = 2**63 - 1, -(2**63)
BAD = [
    "UPDATE posting SET items = items || 'x'::bytea",
    "UPDATE posting SET items = ''",
    "UPDATE posting SET items = int8send(1::bigint << 32 | 4000000000)",
    "UPDATE posting SET items = decode(repeat('ff', 80), 'hex')",
    "UPDATE posting SET items = decode(repeat('0000000100000000', 8000000), 'hex') WHERE term = 'harbour'",
    "UPDATE item SET text = repeat('harbour ', 20000000) WHERE role = 'user' AND number = 0",
    f"UPDATE session SET term_count = {LARGEST}, text_count = {2**31 - 1}, pushes = {2**31 - 1}",
    f"UPDATE session SET term_count = {SMALLEST}, text_count = {-(2**31)}",
    "UPDATE session SET text_count = 0, term_count = 0, item_count = -5",
    f"UPDATE session SET first_at = {LARGEST}, last_at = {LARGEST}, pushed_at = {LARGEST}",
    f"UPDATE session SET first_at = {SMALLEST}, last_at = {SMALLEST}",
    f"UPDATE conversation SET text_bytes = {LARGEST}, last_at = {LARGEST}, message_count = -1",
    f"UPDATE conversation SET text_bytes = {SMALLEST}, first_at = {SMALLEST}, last_at = {SMALLEST}",
    f"UPDATE conversation SET first_number = {-(2**31)}, last_number = {2**31 - 1}",
    "UPDATE conversation SET last_number = -7",
    f"UPDATE item SET at = {LARGEST}, byte_offset = {LARGEST}, result_size = {SMALLEST}, result_lines = {SMALLEST}",
    "DELETE FROM item",
    "DELETE FROM conversation",
    f"UPDATE machine SET pushed_at = {LARGEST}, joined_at = {SMALLEST}",
    "DELETE FROM memory_posting; INSERT INTO memory_posting SELECT 'harbour', number, 'NaN' FROM memory "
    "WHERE owner = current_user",
    "DELETE FROM memory_posting; INSERT INTO memory_posting SELECT 'harbour', number, 'Infinity' FROM memory "
    "WHERE owner = current_user",
]


def insert_memory(**columns: object) -> str:
    """A statement that shares a memory with odd values."""
    given = {
        "machine": "'l'", "home": "''", "id": "'odd'", "project": "''", "share": "'team'", "kind": "'decision'",
        "title": "'harbour'", "content": "''", "subject": "''", "quote": "''", "session_id": "''", "message": 0,
        "strategy": "''", "cwd": "''", "doubts": "'{}'", "term_count": 0, "mark": 0, "pushed_at": 0, **columns,
    }  # fmt: skip
    values = f"({', '.join(given)}) VALUES ({', '.join(map(str, given.values()))})"
    return f"WITH made AS (INSERT INTO memory {values} RETURNING number) SELECT number FROM made"


BAD += [
    insert_memory(term_count=count, at=at) for count, at in ((0, LARGEST), (-(2**31), SMALLEST), (2**31 - 1, "NULL"))
]


@pytest.fixture
def shared(team: Team, tmp_path: Path) -> Team:
    """Ann and Bob share a session and a memory each."""
    for member in ("ann", "bob"):
        scene = Scene(tmp_path / member)
        put(scene, None, state(member), said(f"{member} plans the harbour", tools=(tool("ls"),)), said("and a quay", 1))
        team.push(scene, member)
        with closing(TeamPush(team.url(member), "laptop")) as pushing:
            pushing.note_machine("1", pushed=True)
            push_memories(pushing, [memory(f"{member} decides on the harbour", member)], ())
    return team


@pytest.mark.parametrize("statement", BAD)
def test_bad_rows_of_a_member_take_nothing_from_what_others_share(shared: Team, statement: str) -> None:
    if "INSERT INTO memory " in statement:
        [(number,)] = shared.rows(statement, user="ann")
        shared.rows(
            "INSERT INTO memory_posting VALUES ('harbour', %s, 9), ('harbor', %s, 9)", number, number, user="ann"
        )
    else:
        shared.rows(statement, user="ann")
    began = time.monotonic()
    with closing(TeamStore(shared.url("cleo"))) as store:
        for query in ("harbour", "plans harbour", '"plans the harbour"', "harbour -quay", "harbour -zeppelin"):
            assert query.endswith("-quay") or "bob" in {
                hit.conversation.session_id for hit in store.search(query, EVERYTHING)
            }
        listed = store.conversations(EVERYTHING)
        assert "bob" in {one.session_id for one in listed}
        for one in listed:
            texts = [entry.text for entry in store.entries(one.id)]
            assert one.session_id != "bob" or len(texts) == 3
            assert all(at is None or abs(at) < 2**53 for at in (one.first_message_at, one.last_message_at))
        assert store.counts().entries >= 2
        assert all(abs(one.pushed_at or 0) < 2**53 for one in machines_of(store))
        memories = TeamMemories(store)
        for found in (memories.search("harbour", MemoryFilter()), memories.memories(MemoryFilter())):
            assert "bob decides on the harbour" in {one.title for one in found}
            assert all(one.at is None or abs(one.at) < 2**53 for one in found)
    with closing(TeamPush(shared.url("cleo"), "desk")) as pushing:
        assert "bob" in {one.session_id for one in recent_sessions(pushing, ["example.org/acme/app"])}
    assert time.monotonic() - began < 10


def test_control_characters_in_what_a_member_shares_reach_no_terminal(shared: Team, tmp_path: Path) -> None:
    evil = "'x' || chr(27) || ']0;owned' || chr(7) || chr(8238) || chr(10) || 'y'"
    text = ("session_id", "runtime", "project", "title", "cwd", "branch", "home")
    shared.rows(f"UPDATE session SET {', '.join(f'{one} = {evil}' for one in text)}", user="ann")
    shared.rows(f"UPDATE item SET text = text || {evil}, tool = {evil}, kind = {evil}, error = {evil}", user="ann")
    shared.rows(f"UPDATE machine SET name = {evil}, program = {evil}", user="ann")
    columns = dict.fromkeys(
        ("id", "kind", "title", "content", "quote", "session_id", "strategy", "project", "cwd"), evil
    )
    shared.rows(insert_memory(**columns, doubts=f"ARRAY[{evil}]"), user="ann")
    cleo = Member(tmp_path / "cleo")
    cleo.joins(shared, "cleo")
    [found] = [one["id"] for one in cleo.result("conversations", "--team")["conversations"] if "ann" in one["who"]]
    for words in (
        ("conversations", "--team"), ("search", "--team", "harbour"), ("show", found, "--team"), ("team", "status"),
        ("memories", "--team"), ("memories", "search", "harbour", "--team"),
    ):  # fmt: skip
        for options in ((), ("--json",)):
            done = cleo.run(*words, *options)
            assert "ann@" in done.stdout or words[0] == "memories", (words, done)
            odd = {character for character in done.stdout if not character.isprintable()} - {"\n"}
            assert (odd, "\\u001b" in done.stdout, done.stderr) == (set(), False, ""), (words, options)


def test_a_table_that_a_member_keeps_locked_is_said_soon(shared: Team) -> None:
    with closing(connect(shared.url("ann"))) as holding, holding.transaction():
        holding.execute("LOCK TABLE item, session IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with (
            pytest.raises(TeamError, match="another member keeps") as raised,
            closing(TeamStore(shared.url("bob"), seconds=1)) as store,
        ):
            store.search("harbour", EVERYTHING)
        assert time.monotonic() - began < 4
        assert "try again" in raised.value.hint
