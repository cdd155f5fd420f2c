"""A host's directory with groups in it: sessions with transcripts, archives and histories, as a running host has them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from records import exchange, new_id, write

from session_memory.archives.groups import open_sessions
from session_memory.settings.host_layout import Group, Layout
from session_memory.tools import GroupBackend, ToolResult, call


class GroupDir:
    """A host in `root` with the groups that are added to it."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.layout = Layout(root)
        self.layout.make()
        self.sessions = open_sessions(self.layout)
        self.root = Path(self.layout.root)

    def close(self) -> None:
        self.sessions.close()

    def add(self, name: str) -> Group:
        group = self.layout.group(name)
        group.make()
        return group

    def transcript(self, name: str, session_id: str) -> Path:
        return Path(self.layout.group(name).transcript(session_id))

    def begin(self, name: str, *records: dict[str, Any]) -> str:
        """Makes a new session the group's active one; its id."""
        session_id = new_id()
        write(self.transcript(name, session_id), *(records or exchange("hello", "hi")))
        self.sessions.set(name, session_id)
        return session_id

    def backend(self, name: str) -> GroupBackend:
        return GroupBackend(self.layout, name, self.sessions)

    def call(self, group: str, tool: str, /, **arguments: Any) -> ToolResult:
        """Has the agent of `group` call a tool."""
        return call(self.backend(group), tool, arguments)

    def archives(self, name: str) -> list[str]:
        """The names of the group's archives."""
        directory = self.layout.group(name).conversations_dir
        return sorted(one for one in os.listdir(directory) if one.endswith(".md")) if os.path.isdir(directory) else []


@contextmanager
def three_groups(root: Path) -> Iterator[GroupDir]:
    """A host with the groups main, family and work."""
    with closing(GroupDir(root)) as host:
        for name in ("main", "family", "work"):
            host.add(name)
        yield host
