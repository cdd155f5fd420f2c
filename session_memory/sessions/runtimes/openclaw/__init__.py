"""OpenClaw."""

from __future__ import annotations

from ....common.system.files import is_file, names_in
from .._mirrored import MirroredSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..base import Event

AGENTS = "agents"  # the folder with a folder for each agent
DATABASE = "agent/openclaw-agent.sqlite"  # in an agent's folder


class OpenClaw(MirroredSessions):
    """OpenClaw: each agent has a database, whose rows are the records of Pi's sessions.

    A session has a mirror (see sessions/transcripts/mirror.py and mirrors.py),
    `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it. Only plugins
    have hooks, and they need entries in OpenClaw's settings and the user's consent."""

    name = "openclaw"
    TITLE = "OpenClaw"
    USUAL_DIR = ".openclaw"
    CONFIG_VARIABLE = "OPENCLAW_STATE_DIR"
    SOURCE = AGENTS
    SESSIONS_FOLDER = "openclaw-sessions"
    PROGRAM = "openclaw"
    PACKAGE = "openclaw"
    SERVERS = ("gateway", "node", "acp", "mcp")
    CONTINUES = ()
    # OpenClaw does not set it. If a person does, the commands of an agent know their session.
    OWN_ID_VARIABLE = "OPENCLAW_SESSION_ID"
    AGENT_VARIABLE = "OPENCLAW_SHELL"
    HAS_BACKUP = True
    PROMPT_EVENT = ""
    START_EVENT = ""
    TOOL_EVENT = ""
    SHOWS_WHAT_WAS_TOLD = False
    AUTOMATED_MARKS = (b'"started_by":"cron"', b'"started_by":"hook"')

    def watched_dirs(self, config_dir: str) -> list[str]:
        return [f"{config_dir}/{AGENTS}"]

    def agents(self, config_dir: str) -> list[str]:
        """Return the agents that have a database."""
        names = names_in(f"{config_dir}/{AGENTS}")
        return [name for name in names if is_file(self.database(config_dir, name))]

    def database(self, config_dir: str, agent: str) -> str:
        """Return the path of an agent's database."""
        return f"{config_dir}/{AGENTS}/{agent}/{DATABASE}"

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return False

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        from .rows import WindowRow

        return WindowRow.exported_lines(content)


RUNTIME = OpenClaw()
