"""OpenCode."""

from __future__ import annotations

from ....common.system.files import user_dir
from ...transcripts.edits import patch_uses
from ...transcripts.entries import called
from .._mirrored import MirroredSessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ....common.system.process_table import ProcessTable
    from ...transcripts.entries import ToolUse
    from .._evidence import ProcessEvidence, SessionPlace
    from ..base import Event


class OpenCode(MirroredSessions):
    """OpenCode keeps all sessions in one database and changes its rows, so they have mirrors.

    The mirror of a session (see sessions/transcripts/mirror.py and mirrors.py) is
    `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it. Our plugin
    file sends the events, once for each prompt."""

    name = "opencode"
    TITLE = "OpenCode"
    USUAL_DIR = ".local/share/opencode"
    CONFIG_VARIABLE = "XDG_DATA_HOME"
    SOURCE = "opencode.db"
    NO_DIRECTORY = ""
    SESSIONS_FOLDER = "opencode-sessions"
    PROGRAM = "opencode"
    PACKAGE = "opencode-ai"
    SERVERS: tuple[str, ...] = ("serve", "web", "acp")
    OWN_ID_VARIABLE = "OPENCODE_SESSION_ID"
    AGENT_VARIABLE = "OPENCODE"
    HAS_BACKUP = True
    PROMPT_EVENT = "chat.message"
    START_EVENT = "session.created"
    TOOL_EVENT = "tool.execute.before"
    TOOLS = {
        "edit": ("edit", "filePath"),
        "write": ("edit", "filePath"),
        "apply_patch": ("edit", "patchText"),
        "bash": ("command", "command"),
    }

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$XDG_DATA_HOME/opencode`, else `~/.local/share/opencode`."""
        data_dir = environ.get(self.CONFIG_VARIABLE)
        return (
            f"{data_dir.rstrip('/')}/{self.USUAL_DIR.rpartition('/')[2]}"
            if data_dir
            else f"{user_dir(environ)}/{self.USUAL_DIR}"
        )

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return event.get("runtime") == self.name

    def is_from_a_person(self, prompt: str) -> bool:
        """Return whether a person typed the prompt.

        The plugin file leaves out prompts for sub-agents."""
        return bool(prompt)

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        calls = called(event, self.TOOLS)
        return patch_uses(calls[0]) if calls and calls[0].name == "apply_patch" else calls

    def sub_agent(self, event: Event) -> str:
        return ""  # its calls are not asked about

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return the text that the plugin file adds after the prompt, or after a tool's output."""
        return {"text": text}

    def evidence(
        self, config_dir: str, candidates: Sequence[SessionPlace], table: ProcessTable
    ) -> Mapping[str, ProcessEvidence]:
        """Return the evidence of processes, with open calls, which only the database has."""
        evidence = dict(super().evidence(config_dir, candidates, table))
        at_work = [each for each in candidates if evidence[each.path].is_alive]
        if at_work:
            from .open_calls import OpenCalls

            evidence.update(OpenCalls(self, self.source(config_dir)).added_to(evidence, at_work))
        return evidence

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        from .rows import exported_lines

        return exported_lines(content, self.records.HEADER)


RUNTIME = OpenCode()
