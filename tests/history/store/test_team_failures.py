"""A push while the server goes away, has no room, or is unreachable.

Nothing is lost, and unfinished content is pushed the next time.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from store_scene import Scene, put, said, state
from team_scene import AS_IT_IS, PROJECT, Team

from session_memory.extras.team import push as team_push
from session_memory.extras.team.postgres.connection import (
    FullTeamError,
    UnreachableTeamError,
    connect,
)
from session_memory.extras.team.postgres.engine import others_files
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.push import push_new

SESSIONS, ITEMS = 6, 20


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A machine that pushes its sessions in three batches."""
    monkeypatch.setattr(team_push, "BATCH_ITEMS", 2 * ITEMS)
    scene = Scene(tmp_path)
    for number in range(SESSIONS):
        texts = [
            said(f"{number} says word{n} " + "and more " * 200, n, key=f"{number} {n}")
            for n in range(ITEMS)
        ]
        put(scene, None, state(f"s{number}"), *texts)
    return scene


def test_a_server_that_is_restarted_in_the_middle_of_a_push_has_what_was_written_and_gets_the_rest(
    scene, team
):
    started = team.server.started
    if started is None:
        pytest.skip("the server is not one that was started here")
    batches = []
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        write = pushing._write_conversations

        def restart(*given: object) -> None:
            batches.append(given)
            if len(batches) == 2:
                started.stop()
                started.start()
            write(*given)  # type: ignore[arg-type]

        pushing._write_conversations = restart  # type: ignore[method-assign]
        with pytest.raises(UnreachableTeamError):
            push_new(scene.store, pushing, lambda *_: AS_IT_IS)
    assert items(team) == 2 * ITEMS
    assert team.push(scene).items == (SESSIONS - 2) * ITEMS
    assert items(team) == SESSIONS * ITEMS


def test_a_full_disk_at_the_server_is_said_and_what_is_new_waits(scene, team):
    with no_room_for(team, "item"), pytest.raises(FullTeamError) as raised:
        team.push(scene)
    assert "is full" in str(raised.value)
    assert raised.value.hint == "new sessions wait here"
    assert items(team) == 0
    assert team.push(scene).items == SESSIONS * ITEMS
    assert items(team) == SESSIONS * ITEMS


@contextmanager
def no_room_for(team: Team, table: str) -> Iterator[None]:
    """A table's file is one that takes nothing, as on a full disk."""
    if team.server.started is None or not Path("/dev/full").exists():
        pytest.skip("the server's files are not at hand, or there is no /dev/full")
    team.rows(f"TRUNCATE {table}")  # no page of its has room
    team.rows("CHECKPOINT")
    [(directory, name)] = team.rows(
        f"SELECT current_setting('data_directory'), pg_relation_filepath('session_memory.{table}')"
    )
    file = Path(directory, name)
    kept = file.rename(file.with_name(f"{file.name}.kept"))
    file.symlink_to("/dev/full")
    try:
        yield
    finally:
        file.unlink()
        kept.rename(file)


def test_a_network_that_swallows_everything_in_the_middle_of_a_push_is_given_up(scene, team):
    with Network(team) as network:
        with closing(TeamPush(network.url, "laptop", seconds=1)) as pushing:
            prepare, batches = pushing.prepare, []

            def lose(batch: list[object]) -> object:
                batches.append(batch)
                if len(batches) == 3:
                    network.left = 5_000  # bytes of the second or the third batch
                return prepare(batch)  # type: ignore[arg-type]

            pushing.prepare = lose  # type: ignore[method-assign, assignment]
            began = time.monotonic()
            with pytest.raises(UnreachableTeamError):
                push_new(scene.store, pushing, lambda *_: AS_IT_IS)
            assert time.monotonic() - began < 10
        pushed = items(team)
        assert pushed in (2 * ITEMS, 4 * ITEMS)
    assert team.push(scene).items == SESSIONS * ITEMS - pushed
    assert items(team) == SESSIONS * ITEMS


def test_a_user_waits_no_longer_than_they_said_for_any_answer(team):
    with Network(team) as network, closing(TeamPush(network.url, "laptop", seconds=1)) as pushing:
        network.left = 0
        began = time.monotonic()
        with pytest.raises(UnreachableTeamError):
            others_files(pushing, [PROJECT])
        assert time.monotonic() - began < 10


def test_what_a_machine_has_locked_that_is_not_heard_any_more_is_not_locked_for_long(scene, team):
    team.push(scene)
    put(scene, None, state("new"), said("later", 900))
    with closing(connect(team.url(), seconds=1)) as gone:
        gone.execute("BEGIN")
        gone.execute("SELECT FROM segment FOR UPDATE")
        assert team.push(scene).items == 1


def items(team: Team) -> int:
    [(count,)] = team.rows("SELECT count(*) FROM item")
    return int(count)


class Network:
    """Between a member and the server; when no bytes are `left`, it passes nothing on and says nothing."""

    def __init__(self, team: Team) -> None:
        given = conninfo_to_dict(team.url())
        self._host, self._port = str(given["host"]), int(given.get("port") or 5432)
        self.left = 1 << 40
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = [self._listener]
        self.url = make_conninfo(
            team.url(), host="127.0.0.1", port=self._listener.getsockname()[1], sslmode="disable"
        )

    def __enter__(self) -> Network:
        threading.Thread(target=self._connect, daemon=True).start()
        return self

    def _connect(self) -> None:
        with suppress(OSError):
            near, _ = self._listener.accept()
            if self._host.startswith("/"):
                far = socket.socket(socket.AF_UNIX)
                far.connect(f"{self._host}/.s.PGSQL.{self._port}")
            else:
                far = socket.create_connection((self._host, self._port))
            self._open += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                passed = data[: max(0, self.left)]
                self.left -= len(data)
                other.sendall(passed)

    def __exit__(self, *_: object) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
