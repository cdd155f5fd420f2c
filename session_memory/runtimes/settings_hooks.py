"""A hook as a runtime's settings file holds it, for those runtimes that are told of hooks there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Hook:
    """One hook of a settings file: the event, the matcher (None for all), and the object that stands in `hooks`."""

    event: str
    matcher: str | None
    entry: dict[str, Any]

    @property
    def command(self) -> str:
        """The shell command; '' for a hook that is no command."""
        command = self.entry.get("command")
        return command if isinstance(command, str) else ""
