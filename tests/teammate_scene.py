"""A project of a person who has joined a team, from upkeep's files, without a server."""

from __future__ import annotations

import time
from pathlib import Path

from hooks_scene import told
from records import append, assistant, user
from tool_call_scene import Project

from session_memory.extras.team._activity import keep_activity
from session_memory.history.store.values import StoredEntry
from session_memory.memory.shared_store import RecentSession
from session_memory.sessions.settings.homes import person_home

GONE = "team: {url: 'postgresql://bob@127.0.0.1:1/gone', machine: desk}\n"


class TeamProject(Project):
    """The project of somebody who has joined a team, of which another member edits files on their laptop."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        config = self.user.root / ".session-memory" / "config.yaml"
        config.write_text(GONE)
        self.minutes_ago = 20.0
        self.done: list[StoredEntry] = []

    def elsewhere(self, *paths: str, branch: str = "main", title: str = "fix login") -> None:
        """Ann edits files on her laptop, and this machine hears of it."""
        at = int((time.time() - self.minutes_ago * 60) * 1000)
        self.minutes_ago -= 1
        for path in paths:
            number = len(self.done)
            self.done.append(StoredEntry(number, "tool", path, at, "", 0, number, "Edit", "edit"))
        session = RecentSession(
            7,
            "ann@laptop",
            "acme/app",
            "s-1",
            title,
            branch,
            "claude-code",
            (),
            0.0,
            tuple(self.done),
        )
        home = person_home({"HOME": str(self.user.root)})
        keep_activity(home, [session], {self.cwd: ("acme/app", str(self.directory))}, ())

    def edit(self, name: str) -> None:
        """This session edits a file."""
        call = {
            "type": "tool_use",
            "id": f"toolu_{name}",
            "name": "Edit",
            "input": {"file_path": f"{self.cwd}/{name}"},
        }
        append(self.own, assistant(call, cwd=self.cwd))
        (self.directory / name).write_text("2\n")
        append(
            self.own,
            user(
                [{"tool_use_id": call["id"], "type": "tool_result", "content": "Done."}],
                cwd=self.cwd,
            ),
        )

    def prompt(self) -> list[str]:
        """The collisions that a prompt tells of."""
        printed = self.user.run(cwd=self.cwd)
        return (
            [line for line in told(printed).split("\n") if line.startswith("! ")] if printed else []
        )
