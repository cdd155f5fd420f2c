"""Hermes Agent."""

from __future__ import annotations

from .._mirrored import MirroredSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..base import Event


class Hermes(MirroredSessions):
    """Hermes keeps all sessions in one database, and changes the rows if a person undoes something.

    A session has a mirror (see sessions/transcripts/mirror.py and mirrors.py),
    `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it."""

    name = "hermes"
    TITLE = "Hermes"
    USUAL_DIR = ".hermes"
    CONFIG_VARIABLE = "HERMES_HOME"
    SOURCE = "state.db"
    SESSIONS_FOLDER = "hermes-sessions"
    PROGRAM = "hermes"
    SERVERS = ("gateway", "acp", "mcp", "dashboard", "cron")
    OWN_ID_VARIABLE = "HERMES_SESSION_ID"
    AGENT_VARIABLE = "HERMES_SESSION_ID"
    HAS_BACKUP = True
    PROMPT_EVENT = ""
    START_EVENT = ""
    TOOL_EVENT = ""
    AUTOMATED_MARKS = (b'"started_by": "cron"',)

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return False

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        from .rows import HermesSession

        return HermesSession.exported_lines(content)


RUNTIME = Hermes()
