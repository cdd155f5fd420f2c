"""A team on a real server, and machines that push to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict
from store_scene import Scene

from session_memory.store.postgres.connection import connect
from session_memory.store.postgres.engine import TeamStore
from session_memory.store.postgres.push import TeamPush
from session_memory.store.postgres.session_push import SharedSession
from session_memory.store.sqlite.shareable import StoredFile
from session_memory.store.team_push import SharedAs, TeamPushReport, push_new

PROJECT = "example.org/acme/app"


class Team:
    """A team to which nothing was pushed."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.name = name = server.database
        self.admin_url = server.url_of(name)
        self.rows("TRUNCATE machine, session, item, posting, conversation RESTART IDENTITY")

    def url(self, member: str = "ann") -> str:
        return self.server.url_of(self.name, member)

    def typed_url(self, member: str = "") -> str:
        """The address as a person would type it."""
        given = conninfo_to_dict(self.admin_url)
        port = f"&port={given['port']}" if given.get("port") else ""
        password = f":{given['password']}" if given.get("password") and not member else ""
        return f"postgresql://{member or given['user']}{password}@/{self.name}?host={given['host']}{port}"

    def rows(self, sql: str, *values: object, user: str = "") -> list[tuple[Any, ...]]:
        """What a statement returns, for the administrator or a member."""
        with closing(connect(self.server.url_of(self.name, user))) as connection:
            cursor = connection.execute(sql, values)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def push(self, scene: Scene, member: str = "ann", machine: str = "laptop", **options: Any) -> TeamPushReport:
        """Pushes a machine's store as a member; everything with the team, unless told otherwise."""
        return push(self.url(member), scene, machine, **options)


def push(
    url: str, scene: Scene, machine: str = "laptop", shared_as: Callable[[StoredFile, SharedSession | None], SharedAs | None] | None = None,
    **options: Any,
) -> TeamPushReport:  # fmt: skip
    with closing(TeamPush(url, machine)) as pushing:
        return push_new(scene.store, pushing, shared_as or (lambda *_: AS_IT_IS), **options)


class _AsItIs(SharedAs):
    """Shared with the team, its directories as they are called on the machine."""

    __slots__ = ()

    def directory(self, path: str) -> str:
        return path


AS_IT_IS = _AsItIs(PROJECT, "team", "/nowhere")


class TeamScene(Scene):
    """As `Scene`, but what is read is read from a team, to which all that was written is pushed before."""

    def __init__(self, path: Path, team: Team, **options: Any) -> None:
        super().__init__(path, **options)
        self.team = team
        self.reader = TeamStore(team.url())
        self._pushed = -1

    @property
    def told(self) -> TeamStore:
        if self._pushed != self.store.connection.total_changes():
            assert self.team.push(self).is_complete
            self._pushed = self.store.connection.total_changes()
        return self.reader
