"""Pushing to a team: what is pushed, only once, what is withdrawn, and pushes by killed processes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from postgres_server import EACH_ITEM, PostgresServer
from psycopg import errors
from store_scene import MINUTE, Scene, put, said, state, tool
from team_scene import AS_IT_IS, PROJECT, Team, push

from session_memory.extras.team import push as team_push
from session_memory.extras.team.postgres._session_push import PreparedBatch, SessionPush
from session_memory.extras.team.postgres.connection import (
    FullTeamError,
    TeamError,
    UnreachableTeamError,
    connect,
    explained,
)
from session_memory.extras.team.postgres.engine import TeamStore
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.postgres.schema import MIGRATIONS, migrate, schema_state, setup_sql
from session_memory.extras.team.push import SharedAs, push_new
from session_memory.history.store.ingest.values import ToolOutcome
from session_memory.history.store.values import Filter, key_of

ROOT = Path(__file__).resolve().parents[3]
IN_REPOSITORY = SharedAs(PROJECT, "team", "/srv/agent")
# What a machine does: pushes its store, with small batches, so that a kill finds it between two of
# them.
PUSHING = """
import sys
from contextlib import closing
from session_memory.extras.team import push as team_push
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.history.store.sqlite.engine import SqliteStore
team_push.BATCH_ITEMS = 40
url, database, machine = sys.argv[1:]
store = SqliteStore(database)
with closing(TeamPush(url, machine)) as team:
    team_push.push_new(store, team, lambda *_: team_push.SharedAs("p", "team", "/srv/agent"))
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def content(team: Team) -> dict[str, list[str]]:
    """Return the team's content, without numbers of sessions and times of pushes."""
    name = "SELECT s.owner, s.machine, s.file_path"
    of_session = {
        "session": f"{name}, s.share, s.title, s.cwd, s.next_number, s.mark, s.open_calls, s.item_count, s.text_count, "
        "s.term_count FROM session AS s",
        "item": f"{name}, i.number, i.role, i.text, i.at, i.cwd, i.outcome FROM item AS i "
        "JOIN session AS s ON s.id = i.session",
        "posting": f"{name}, p.term, i.id & {(1 << 32) - 1} FROM posting AS p {EACH_ITEM} "
        "LEFT JOIN session AS s ON (s.id, s.segment, s.share) = (i.id >> 32, p.segment, "
        "(SELECT g.share FROM segment AS g WHERE g.id = p.segment))",
        "conversation": f"{name}, c.first_number, c.last_number, c.first_at, c.last_at, c.message_count, c.text_bytes "
        "FROM conversation AS c JOIN session AS s ON s.id = c.session",
    }
    return {table: sorted(str(row) for row in team.rows(sql)) for table, sql in of_session.items()}


def fresh(team: Team, *machines: tuple[Scene, str]) -> dict[str, list[str]]:
    """What the team has where each machine pushes once, undisturbed."""
    team = Team(team.server)
    for scene, machine in machines:
        push(team.url(), scene, machine, lambda *_: SharedAs("p", "team", "/srv/agent"))
    return content(team)


def fill(scene: Scene, name: str, sessions: int, items: int = 20) -> None:
    for number in range(sessions):
        entries = [
            said(
                f"{name} {number} says word{n} and word{n * number}", n, key=f"{name} {number} {n}"
            )
            for n in range(items)
        ]
        put(scene, None, state(f"{name}-{number}"), *entries)


def test_what_was_pushed_is_not_pushed_again_and_what_is_new_is_added(scene, team):
    first = put(scene, None, state(), said("a zebra"), said("and a lion", 1))
    assert team.push(scene)[:2] == (1, 2)
    assert team.push(scene)[:2] == (0, 0)
    put(scene, first, first._replace(offset=5), said("the zebra again", 2), said("much later", 500))
    assert team.push(scene)[:2] == (1, 2)
    assert content(team) == {**content(team), **fresh_of(scene, team)}


def test_what_is_new_of_a_session_and_a_new_session_share_the_rows_of_their_words(scene, team):
    first = put(scene, None, state("a"), said("a zebra"))
    team.push(scene)
    put(scene, first, first._replace(offset=5), said("the zebra again", 1))
    put(scene, None, state("b"), said("another zebra", 2))
    assert team.push(scene)[:2] == (2, 2)
    assert team.rows("SELECT segment, length(items) FROM posting WHERE term = 'zebra'") == [
        (1, 3 * 8)
    ]
    assert content(team) == fresh_of(scene, team)


def fresh_of(scene: Scene, team: Team) -> dict[str, list[str]]:
    """What one push of all that there is makes of it."""
    other = Team(team.server)
    other.push(scene)
    return content(other)


def test_paths_go_in_relation_to_the_repository_and_others_are_not_told(scene, team):
    use = tool("/srv/agent/src/main.py")._replace(name="Edit", kind="edit")
    put(
        scene,
        None,
        state(cwd="/srv/agent/src"),
        said("here", tools=(use,), cwd="/srv/agent/src"),
        said("elsewhere", 1, cwd="/home/ann/private"),
    )
    push(team.url(), scene, shared_as=lambda *_: IN_REPOSITORY)
    assert team.rows("SELECT cwd FROM session") == [(f"{PROJECT}/src",)]
    assert [text for _, text in team.rows("SELECT number, text FROM item ORDER BY number")] == [
        "here",
        "src/main.py",
        "elsewhere",
    ]
    assert "/home/ann" not in str(content(team))


def test_what_is_not_shared_any_more_is_withdrawn_and_what_is_shared_otherwise_says_so(scene, team):
    put(scene, None, state("a"), said("one thing"))
    put(scene, None, state("b"), said("another thing"))
    team.push(scene)
    team.push(
        scene,
        shared_as=lambda file, _: (
            AS_IT_IS._replace(share="mine") if file.session_id == "a" else None
        ),
    )
    assert team.rows("SELECT session_id, share FROM session") == [("a", "mine")]
    assert team.rows("SELECT term FROM posting ORDER BY term") == [("on",), ("thing",)]
    assert team.rows("SELECT count(*) FROM segment") == [(1,)]
    assert team.rows("SELECT count(*) FROM item") == [(1,)]


def test_what_is_forgotten_is_withdrawn_and_a_store_that_was_lost_takes_nothing_away(
    scene, team, tmp_path
):
    put(scene, None, state("a"), said("one thing"))
    put(scene, None, state("b"), said("another thing"))
    team.push(scene)
    lost = Scene(tmp_path / "lost")
    assert team.push(lost).withdrawn == 0
    assert team.push(lost, is_forgotten=lambda session: session.session_id == "b").withdrawn == 1
    assert team.rows("SELECT session_id FROM session") == [("a",)]


def test_a_conversation_that_is_forgotten_takes_its_words_with_it(scene, team):
    put(scene, None, state(), said("the walrus"), said("the carpenter", 500))
    team.push(scene)
    scene.store.forget_conversations(scene.conversations()[:1])
    team.push(scene)
    assert team.rows("SELECT text FROM item") == [("the carpenter",)]
    assert team.rows("SELECT count(*) FROM posting WHERE term = 'walru'") == [(0,)]


def test_a_transcript_that_was_read_anew_takes_the_place_of_what_was_pushed(scene, team):
    put(scene, None, state(), said("as it was"), said("and is", 1))
    team.push(scene)
    scene.store.forget("", "-srv-agent/a.jsonl")
    put(scene, None, state("other"), said("in between"))
    put(
        scene,
        None,
        state(),
        said("as it is now"),
        said("and is", 1, key="new"),
        said("and more", 2),
    )
    team.push(scene)
    texts = team.rows(
        "SELECT text FROM item JOIN session ON id = session WHERE session_id = 'a' ORDER BY number"
    )
    assert [text for (text,) in texts] == ["as it is now", "and is", "and more"]


def test_what_a_rebuilt_store_has_instead_takes_the_place_of_what_was_pushed(scene, team, tmp_path):
    put(scene, None, state(), said("as it was"), said("and is", 1))
    team.push(scene)
    rebuilt = Scene(tmp_path / "rebuilt")
    put(rebuilt, None, state(), said("as it was"), said("and is cleaned", 1), said("and more", 2))
    team.push(rebuilt)
    assert team.rows("SELECT text FROM item ORDER BY number") == [
        ("as it was",),
        ("and is cleaned",),
        ("and more",),
    ]


def test_a_store_that_was_rebuilt_as_it_was_pushes_only_what_is_new(scene, team, tmp_path):
    put(scene, None, state(), said("as it was", tools=(tool("ls"),)))
    team.push(scene)
    rebuilt = Scene(tmp_path / "rebuilt")
    put(rebuilt, None, state("other"), said("read first now"))
    ended = tool("ls", ToolOutcome("error", "no", 10, 2))
    put(rebuilt, None, state(), said("as it was", tools=(ended,)), said("and more", 2))
    assert team.push(rebuilt) == (2, 2, 0, True)
    assert content(team) == fresh_of(rebuilt, team)


def test_a_conversation_that_is_forgotten_while_its_session_goes_on_is_withdrawn(scene, team):
    first = put(scene, None, state(), said("the walrus"), said("the carpenter", 500))
    team.push(scene)
    scene.store.forget_conversations(scene.conversations()[:1])
    put(scene, first, first._replace(offset=5), said("the oysters", 501))
    team.push(scene)
    assert team.rows("SELECT text FROM item ORDER BY number") == [
        ("the carpenter",),
        ("the oysters",),
    ]
    assert team.rows("SELECT count(*) FROM posting WHERE term = 'walru'") == [(0,)]


@pytest.mark.parametrize(("of_fork", "told"), [("team", []), ("mine", ["hello there"])])
def test_what_a_fork_copied_is_shared_as_the_strictest_of_the_sessions_that_have_it(
    scene, team, of_fork, told
):
    for name, more in (("a", said("mine", 1)), ("b", said("other way", 2))):
        put(scene, None, state(name, title="about hello", title_rank=1), said("hello there"), more)
    shares = {"a": "mine" if of_fork == "mine" else None, "b": of_fork}
    team.push(
        scene,
        shared_as=lambda file, _: (
            (share := shares[file.session_id]) and AS_IT_IS._replace(share=share)
        ),
    )
    texts = [
        text
        for (text,) in team.rows(
            "SELECT text FROM item JOIN session ON id = session WHERE session_id = 'b'"
        )
    ]
    assert texts == [*told, "other way"]
    assert ("about hello" in str(team.rows("SELECT title FROM session"))) == bool(told)
    team.push(scene)
    with closing(TeamStore(team.url("bob"))) as store:
        assert len(store.search("hello", Filter())) == 1


def test_results_that_come_later_are_told_later(scene, team):
    first = put(scene, None, state(), said("", tools=(tool("ls"), tool("pwd"))))
    team.push(scene)
    assert team.rows("SELECT open_calls FROM session") == [([0, 1],)]
    put(
        scene,
        first,
        first._replace(offset=5),
        outcomes=[(key_of("ls"), ToolOutcome("error", "no", 10, 2))],
    )
    team.push(scene)
    assert team.rows("SELECT outcome, error FROM item ORDER BY number") == [
        ("error", "no"),
        (None, None),
    ]
    assert team.rows("SELECT open_calls FROM session") == [([1],)]


def test_a_fork_is_told_whole_and_found_once(scene, team):
    put(scene, None, state("a"), said("hello there"), said("mine", 1))
    put(scene, None, state("b"), said("hello there"), said("other way", 2))
    team.push(scene)
    with closing(TeamStore(team.url("bob"))) as store:
        assert [hit.conversation.session_id for hit in store.search("hello", Filter())] == ["a"]
        texts = [
            [item.text for item in store.entries(one.id)] for one in store.conversations(Filter())
        ]
        assert sorted(texts) == [["hello there", "mine"], ["hello there", "other way"]]


def test_a_text_that_postgresql_would_not_take_is_pushed_nevertheless(scene, team):
    put(scene, None, state(), said("a \0 b " + "x" * 100_000), said("词" * 3000, 1))
    assert team.push(scene).items == 2
    with closing(TeamStore(team.url())) as store:
        assert len(store.search("x" * 5000, Filter())) == 0
        assert len(store.search("词词", Filter())) == 1


def test_a_clock_that_is_off_changes_nothing_of_what_is_pushed_and_when(scene, team):
    put(scene, None, state(), said("from tomorrow", 24 * 60), said("and today", 0))
    team.push(scene)
    put(scene, None, state("b"), said("later"))
    assert team.push(scene).items == 1
    now = time.time() * 1000
    assert all(abs(at - now) < 10 * MINUTE for (at,) in team.rows("SELECT pushed_at FROM session"))


def test_two_processes_of_a_machine_push_what_is_new_once(scene, team, monkeypatch):
    fill(scene, "s", 5)
    with (
        closing(TeamPush(team.url(), "laptop")) as one,
        closing(TeamPush(team.url(), "laptop")) as other,
    ):
        as_before = other.pushed()
        push_new(scene.store, one, lambda *_: AS_IT_IS)
        monkeypatch.setattr(other, "pushed", lambda: as_before)
        report = push_new(scene.store, other, lambda *_: AS_IT_IS)
    assert not report.is_complete
    assert content(team) == fresh_of(scene, team)


def test_machines_that_are_killed_while_they_push_lose_nothing_and_double_nothing(team, tmp_path):
    machines = []
    for name in ("laptop", "server"):
        scene = Scene(tmp_path / name)
        fill(scene, name, 15)
        machines.append((scene, name))
    chance = random.Random(18)
    begun = time.monotonic()

    def push_and_kill(scene: Scene, name: str, kills: int) -> None:
        for _ in range(kills):
            process = start(team, scene, name)
            time.sleep(chance.uniform(0.3, 1.5))
            process.send_signal(signal.SIGKILL)
            process.wait()

    threads = [threading.Thread(target=push_and_kill, args=(*machine, 2)) for machine in machines]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and time.monotonic() - begun < 3:
        # cut connections
        team.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann'")
        time.sleep(0.5)
    for thread in threads:
        thread.join()
    assert [process.wait(120) for process in [start(team, *machine) for machine in machines]] == [
        0,
        0,
    ]
    pushed = content(team)
    assert len(pushed["item"]) == 2 * 15 * 20
    assert pushed == fresh(team, *machines)


def start(team: Team, scene: Scene, machine: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PUSHING, team.url(), str(scene.database), machine]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)


def test_a_connection_that_is_cut_leaves_nothing_of_the_batch(scene, team, monkeypatch):
    fill(scene, "s", 3)
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        write = pushing._write_conversations

        def cut(*sessions: object) -> None:
            team.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ann'"
            )
            write(*sessions)  # type: ignore[arg-type]

        monkeypatch.setattr(pushing, "_write_conversations", cut)
        with pytest.raises(UnreachableTeamError):
            push_new(scene.store, pushing, lambda *_: AS_IT_IS)
    assert content(team)["item"] == []
    team.push(scene)
    assert len(content(team)["item"]) == 60


def test_what_was_under_way_when_the_time_was_spent_is_counted(scene, team, monkeypatch):
    monkeypatch.setattr(team_push, "BATCH_ITEMS", 40)
    fill(scene, "s", 5)
    spent = iter([False, False, True])
    report = team.push(scene, is_spent=lambda: next(spent))
    assert report == (4, 80, 0, False)
    assert len(content(team)["item"]) == 80


def test_whoever_interrupts_a_push_does_not_wait_for_the_server(scene, team, monkeypatch):
    monkeypatch.setattr(team_push, "BATCH_ITEMS", 40)
    fill(scene, "s", 5)
    began = time.monotonic()
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        prepare, asked = pushing.prepare, threading.Event()

        def sleep(_: object) -> None:
            with pushing.asking():
                asked.set()
                pushing.connection.execute("SELECT pg_sleep(30)")

        def interrupt(batch: list[SessionPush]) -> PreparedBatch:
            if asked.wait(0.2):
                raise KeyboardInterrupt
            return prepare(batch)

        monkeypatch.setattr(pushing, "push", sleep)
        monkeypatch.setattr(pushing, "prepare", interrupt)
        with pytest.raises(KeyboardInterrupt):
            push_new(scene.store, pushing, lambda *_: AS_IT_IS)
    assert time.monotonic() - began < 10


def test_a_server_that_is_gone_or_full_or_empty_is_said_in_words(postgres: PostgresServer):
    with pytest.raises(UnreachableTeamError) as gone:
        connect("postgresql://ann:secret@127.0.0.1:1/team")
    assert str(gone.value).startswith("127.0.0.1:1/team: ")
    assert "secret" not in str(gone.value)
    with pytest.raises(FullTeamError) as full, explained("postgresql://db/team"):
        raise errors.DiskFull("could not extend file: No space left on device")
    assert "sessions wait here" in full.value.hint
    with postgres.empty_database() as url, pytest.raises(TeamError) as empty:
        TeamStore(url)
    assert "team init" in empty.value.hint


def test_a_server_that_stops_answering_is_given_up(team):
    with closing(connect(team.url())) as connection:
        began = time.monotonic()
        with pytest.raises(UnreachableTeamError), explained(team.url(), connection, 0.2):
            connection.execute("SELECT pg_sleep(30)")
        assert time.monotonic() - began < 10


def test_of_several_who_migrate_at_once_one_does_it(postgres):
    with postgres.empty_database() as url:
        done: list[list[int]] = []

        def run() -> None:
            with closing(connect(url)) as connection:
                done.append(migrate(connection))

        threads = [threading.Thread(target=run) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == [[]] * 5 + [[4]]


def test_a_migration_that_fails_leaves_the_schema_as_it_was(postgres):
    with postgres.empty_database() as url, closing(connect(url)) as connection:
        migrate(connection)
        with pytest.raises(errors.SyntaxError):
            migrate(
                connection, (*MIGRATIONS, lambda: "ALTER TABLE session ADD colour text; nonsense")
            )
        assert schema_state(connection).version == 4
        assert migrate(
            connection, (*MIGRATIONS, lambda: "ALTER TABLE session ADD colour text")
        ) == [5]
        assert schema_state(connection).is_newer


def test_a_client_that_is_older_than_the_schema_reads_and_says_so(scene, team):
    put(scene, None, state(), said("hello"))
    team.push(scene)
    team.rows("INSERT INTO schema_version VALUES (99)")
    try:
        with closing(TeamStore(team.url())) as store:
            assert store.is_newer
            assert len(store.search("hello", Filter())) == 1
        with pytest.raises(TeamError) as raised:
            team.push(scene)
        assert "pushes nothing" in str(raised.value)
    finally:
        team.rows("DELETE FROM schema_version WHERE version = 99")


def test_the_sql_for_an_administrator_makes_the_same_team(postgres, scene):
    postgres.execute("DROP ROLE IF EXISTS frida")
    with postgres.empty_database() as url:
        with closing(connect(url)) as connection:
            connection.execute(setup_sql(["frida"]))
        put(scene, None, state(), said("hello"))
        of_frida = postgres.url_of(url.split("dbname=")[1].split()[0], "frida")
        assert push(of_frida, scene).items == 1
    postgres.execute("DROP ROLE frida")
