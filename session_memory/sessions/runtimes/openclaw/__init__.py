"""OpenClaw."""

from __future__ import annotations

from ....common.system.files import is_file, names_in
from ....common.system.json import as_object, as_string
from ....common.text.paths import is_name
from ...transcripts.edits import patch_uses
from ...transcripts.entries import ToolUse, called, in_directory
from .._mirrored import MirroredSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..base import Event

_AGENT_VARIABLE = "OPENCLAW_SESSION_AGENT"  # our plugin sets it
AGENTS = "agents"  # the folder with a folder for each agent
DATABASE = "agent/openclaw-agent.sqlite"  # in an agent's folder


class OpenClaw(MirroredSessions):
    """OpenClaw: each agent has a database, whose rows are the records of Pi's sessions.

    A session has a mirror (see sessions/transcripts/mirror.py and mirrors.py),
    `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it. Our plugin
    sends the events. It adds texts for the model only, so transcripts do not show them."""

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
    OWN_ID_VARIABLE = "OPENCLAW_SESSION_ID"  # our plugin sets it
    AGENT_VARIABLE = "OPENCLAW_SHELL"
    HAS_BACKUP = True
    PROMPT_EVENT = SUB_AGENT_EVENT = "before_prompt_build"
    START_EVENT = "session_start"
    TOOL_EVENT = "before_tool_call"
    TOOLS = {
        "edit": ("edit", "path"),
        "write": ("edit", "path"),
        "apply_patch": ("edit", "input"),
        "exec": ("command", "command"),
    }
    SHOWS_WHAT_WAS_TOLD = False
    AUTOMATED_MARKS = (b'"started_by":"cron"', b'"started_by":"hook"')

    def watched_dirs(self, config_dir: str) -> list[str]:
        return [f"{config_dir}/{AGENTS}"]

    def agents(self, config_dir: str) -> list[str]:
        """Return the agents that have a database."""
        names = names_in(f"{config_dir}/{AGENTS}")
        return [name for name in names if is_file(self.database(config_dir, name))]

    def databases(self, config_dir: str) -> dict[str, str]:
        return {agent: self.database(config_dir, agent) for agent in self.agents(config_dir)}

    def database(self, config_dir: str, agent: str) -> str:
        """Return the path of an agent's database."""
        return f"{config_dir}/{AGENTS}/{agent}/{DATABASE}"

    def own_database(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the agent, which our plugin names in events and to commands."""
        agent = event.get("agent") or environ.get(_AGENT_VARIABLE)
        return agent if isinstance(agent, str) and is_name(agent) else ""

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return event.get("runtime") == self.name

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        given = as_object(event.get("tool_input"))
        return tuple([part for use in called(event, self.TOOLS) for part in self.parts(use, given)])

    @staticmethod
    def parts(use: ToolUse, given: Mapping[str, object]) -> tuple[ToolUse, ...]:
        """Return a call with the arguments `given` as the actions that it makes.

        A patch makes an edit per file; a command may have a directory of its own."""
        if use.name == "apply_patch":
            return patch_uses(ToolUse(use.name, as_string(given.get("input")), "edit", use.call_id))
        return (in_directory(use, given.get("workdir")),)

    def tasks(self, event: Event) -> list[str]:
        return [self.prompt(event)]

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return the text that the plugin adds after the prompt, or after a tool's output."""
        return {"text": text}

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        from .rows import WindowRow

        return WindowRow.exported_lines(content)


RUNTIME = OpenClaw()
