"""Qwen Code."""

from __future__ import annotations

from ....common.system.files import real_path
from ....common.system.json import as_string
from ..base import ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..base import Event


class QwenCode(ProjectFolders):
    """Qwen Code: chats are at `projects/<directory>/chats/<id>.jsonl`.

    Qwen Code deletes none; its `cleanupPeriodDays` applies to `file-history/` and logs. Output of a
    hook before a tool call does not reach the agent, so only failed calls are answered."""

    name = "qwen-code"
    TITLE = "Qwen Code"
    USUAL_DIR = ".qwen"
    CONFIG_VARIABLE = "QWEN_RUNTIME_DIR"
    LISTS_RECENT = True
    TRANSCRIPTS = "projects"
    DEEPEST = 3
    INNER = "/chats"
    SESSIONS_FOLDER = "qwen-sessions"
    PROGRAM = "qwen"
    PACKAGE = "@qwen-code/qwen-code"
    SERVERS = ("mcp", "extensions", "serve")
    OWN_ID_VARIABLE = "QWEN_CODE_SESSION_ID"
    AGENT_VARIABLE = "QWEN_CODE"
    PROJECT_VARIABLE = "QWEN_PROJECT_DIR"
    FAILED_EVENT = "PostToolUseFailure"
    WAITING_EVENTS = ("Stop", "PermissionRequest")
    PROMPT_ID_KEY = "prompt_id"
    SHOWS_NOTICES = True
    FAILING_TOOLS = {
        "read_file": ("read", "file_path"),
        "edit": ("edit", "file_path"),
        "write_file": ("edit", "file_path"),
    }

    def folder_name(self, directory: str) -> str:
        from ....common.text.paths import dashed

        return dashed(real_path(directory))

    def folder_beside(self, path: str) -> str:
        """Return `subagents/<id>/`, beside the chats of the project."""
        above = path.rpartition("/")[0].rpartition("/")[0]
        return f"{above}/subagents/{self.session_id_of(path)}"

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        folder = as_string(event.get("transcript_path")).rpartition("/")[0]
        return folder.endswith("/chats") and "/projects/" in folder

    def is_from_a_person(self, prompt: str) -> bool:
        """Return whether a person typed the prompt.

        In print mode the event is repeated after every tool, without a prompt."""
        return bool(prompt)


RUNTIME = QwenCode()
