"""A team on a real server, and machines that push to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from postgres_server import MEMBERS, PostgresServer
from psycopg.conninfo import conninfo_to_dict
from records import exchange
from store_scene import MONDAY, Scene, StoreUser

from session_memory.extras.team.postgres._session_push import SharedSession
from session_memory.extras.team.postgres.connection import connect
from session_memory.extras.team.postgres.engine import TeamStore
from session_memory.extras.team.postgres.memories import MemoryPush
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.push import SharedAs, TeamPushReport, push_new
from session_memory.history.store.sqlite.tool_uses import StoredFile

TABLES = (
    "machine",
    "session",
    "segment",
    "item",
    "posting",
    "conversation",
    "changed_file",
    "handoff",
    "memory",
    "memory_posting",
)
PROJECT = "example.org/acme/app"
ORIGIN = "https://ann:token@example.org/acme/app.git"


class Member(StoreUser):
    """A machine of somebody, with a clone of the repository."""

    def __init__(self, home: Path, origin: str = ORIGIN) -> None:
        super().__init__(home)
        self.clone = home / "work" / "app"
        self.clone.mkdir(parents=True)
        for command in (["init", "-q"], ["remote", "add", "origin", origin]):
            subprocess.run(
                ["git", *command],
                cwd=self.clone,
                check=True,
                env={"PATH": os.defpath, "HOME": str(home)},
            )

    def says(self, session: str, text: str, below: str = "", cwd: str = "") -> Path:
        directory = cwd or f"{self.clone}{below}"
        return self.session(
            session, *exchange(text, "All right.", at=MONDAY, cwd=directory), project=session
        )

    def joins(self, team: Team, name: str, *rules: str) -> None:
        """Has joined as a member, on the machine `laptop`; `rules` are lines of its settings."""
        lines = ["team:", f"  url: '{team.typed_url(name)}'", "  machine: laptop", *rules]
        self.config("\n".join(lines) + "\n")


class Team:
    """A team to which nothing was pushed."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.name = name = server.database
        self.admin_url = server.url_of(name)
        emptied = [f"DELETE FROM {table}" for table in TABLES]  # a third of the time of TRUNCATE
        restarted = [
            f"ALTER SEQUENCE {one}_seq RESTART"
            for one in ("session_id", "segment_id", "memory_number")
        ]
        # an earlier test may have removed one
        members = ", ".join([f"('{member}')" for member in MEMBERS])
        added = (
            f"SELECT add_member(name) FROM (VALUES {members}) AS member (name) "
            "WHERE NOT has_table_privilege(name, 'session', 'SELECT')"
        )
        self.rows("; ".join([*emptied, *restarted, added]))

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

    def push(
        self, scene: Scene, member: str = "ann", machine: str = "laptop", **options: Any
    ) -> TeamPushReport:
        """Pushes a machine's store as a member; everything with the team, unless told otherwise."""
        return push(self.url(member), scene, machine, **options)


def memory(title: str, id: str, *, share: str = "team", **values: Any) -> MemoryPush:
    """A decision about the harbour, drawn from the session `plan`."""
    given = MemoryPush(
        "",
        id,
        PROJECT,
        share,
        "decision",
        title,
        "",
        "harbour",
        "",
        1_760_000_000_000,
        "plan",
        1,
        "summary",
        PROJECT,
        (),
    )
    return given._replace(**values)


def push(
    url: str,
    scene: Scene,
    machine: str = "laptop",
    shared_as: Callable[[StoredFile, SharedSession | None], SharedAs | None] | None = None,
    **options: Any,
) -> TeamPushReport:
    with closing(TeamPush(url, machine)) as pushing:
        return push_new(scene.store, pushing, shared_as or (lambda *_: AS_IT_IS), **options)


class _AsItIs(SharedAs):
    """Shared with the team, its directories as they are called on the machine."""

    __slots__ = ()

    def directory(self, path: str) -> str:
        return path


AS_IT_IS = _AsItIs(PROJECT, "team", "/nowhere")


class TeamScene(Scene):
    """As `Scene`, but what is read is read from a team, to which all that was written is pushed
    before."""

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
