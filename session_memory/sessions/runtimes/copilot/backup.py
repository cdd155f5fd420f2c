"""The files of Copilot's sessions: all in a session's directory."""

from __future__ import annotations

from collections.abc import Iterator

from ..backup import Backup, files_below

_EVENTS = "/events.jsonl"


class CopilotBackup(Backup):
    """The files in `session-state/<id>/`; older versions have one file for each session."""

    def transcripts(self, config_dir: str) -> Iterator[str]:
        for session in self.runtime.sessions_in(self.runtime.transcripts_dir(config_dir)):
            yield session.path

    def files_beside(self, path: str) -> list[str]:
        if not path.endswith(_EVENTS):
            return []
        return [
            file
            for file in files_below(path.removesuffix(_EVENTS))
            if file != path and not file.endswith(".lock")
        ]
