"""Copilot CLI."""

from __future__ import annotations

from ....common.system.files import names_in, path_stamp, path_text, read_end
from ....common.system.json import as_string
from ...transcripts.edits import patch_uses
from ...transcripts.entries import Session, called
from ..base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...transcripts.entries import ToolUse
    from ..base import Event

MOST_SESSIONS = 400  # the newest ones; a prompt may report only these
_EVENTS = "events.jsonl"
_NAME_FILE = "workspace.yaml"
_NAME_BYTES = 64 * 1024  # more than its size ever is
_SEARCHED_BYTES = 2 * 1024 * 1024  # in which a prompt looks for a sub-agent's events
_SUB_AGENTS = (b'"agentId":"', b'"parentToolCallId":"')
_PATCHES = {"Edit": ("edit", "input"), "Write": ("edit", "input")}


class Copilot(Runtime):
    """Copilot CLI: a session's events are in `session-state/<id>/events.jsonl`.

    The path does not depend on the project. If hooks have Claude Code's names (`UserPromptSubmit`),
    their events come in its form, but without a transcript. All hooks of an event get the same
    `timestamp` and run one after the other. If several hooks of a prompt print something, the agent
    gets only the last output. Copilot also runs the hooks in a repository's
    `.claude/settings.json`."""

    name = "copilot"
    TITLE = "Copilot CLI"
    USUAL_DIR = ".copilot"
    CONFIG_VARIABLE = "COPILOT_HOME"
    TRANSCRIPTS = "session-state"
    SESSIONS_FOLDER = "copilot-sessions"
    PROGRAM = "copilot"
    PACKAGE = "@github/copilot"
    OWN_ID_VARIABLE = "COPILOT_AGENT_SESSION_ID"
    AGENT_VARIABLE = "COPILOT_CLI"
    HAS_BACKUP = True
    FAILED_EVENT = "PostToolUseFailure"
    PROMPT_ID_KEY = "timestamp"
    TOOLS = {"Edit": ("edit", "path"), "Write": ("edit", "path"), "Bash": ("command", "command")}
    FAILING_TOOLS = {"Read": ("read", "path")}

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        return f"{self.transcripts_dir(config_dir)}/{session_id}/{_EVENTS}"

    def all_folders(self, config_dir: str) -> list[str]:
        """Return the event files of the most recently written sessions.

        Ids do not tell when a session began."""
        event_files = [
            session.path for session in self.sessions_in(self.transcripts_dir(config_dir))
        ]
        # a session that has started but has no messages has no events either
        if len(event_files) > MOST_SESSIONS:
            event_files = sorted(event_files, key=lambda path: -path_stamp(path)[2])[:MOST_SESSIONS]
        return event_files

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the session of an events file, of a session's `folder`, or all sessions.

        All sessions are returned for the folder of all sessions."""
        if folder.endswith(".jsonl"):
            paths = [folder]
        elif folder.endswith(f"/{self.TRANSCRIPTS}"):
            # older versions: a file for each
            names = [name for name in names_in(folder) if not name.startswith(".")]
            paths = [
                f"{folder}/{name}" if name.endswith(".jsonl") else f"{folder}/{name}/{_EVENTS}"
                for name in names
            ]
        else:
            paths = [f"{folder}/{_EVENTS}" for name in names_in(folder) if name == _EVENTS]
        return [
            Session(self.session_id_of(path), path, "", is_elsewhere, worktree) for path in paths
        ]

    def session_id_of(self, path: str) -> str:
        """Return the name of the events' folder, or of their file if it was moved elsewhere."""
        folder, _, file = path.rpartition("/")
        return path_text(
            folder.rpartition("/")[2] if file == _EVENTS else file.removesuffix(".jsonl")
        )

    def sub_agents(self, path: str) -> list[str]:
        """Return the session's own events, if they end with events of a sub-agent."""
        end = read_end(path, _SEARCHED_BYTES)
        return [path] if any([mark in end for mark in _SUB_AGENTS]) else []

    def given_name(self, path: str) -> str:
        """Return the user's name for the session (`/rename`), from the file beside its events.

        Return '' for the name that Copilot chose, which is the first prompt."""
        content = read_end(f"{path.rpartition('/')[0]}/{_NAME_FILE}", _NAME_BYTES)
        lines = content.decode("utf-8", "replace").split("\n")
        values = {
            key: value.strip()
            for key, mark, value in [line.partition(": ") for line in lines]
            if mark
        }
        return _scalar(values.get("name", "")) if values.get("user_named") == "true" else ""

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Return whether Copilot started the hook, and not a runtime inside it or a sub-agent."""
        path = event.get("transcript_path", f"/{_EVENTS}")
        is_its = bool(environ.get(self.AGENT_VARIABLE)) and as_string(path).endswith(f"/{_EVENTS}")
        return is_its and not event.get("agent_id") and not event.get("parent_agent_id")

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the edit or command; for a patch an edit per file.

        The event has no id of the call."""
        calls = called(event, self.TOOLS)
        is_patch = bool(calls) and calls[0].kind == "edit" and not calls[0].argument
        return patch_uses(*called(event, _PATCHES)) if is_patch else calls

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return the output that gives the agent `text`.

        The agent sees it after the prompt or result; at SessionStart, before everything."""
        return {"additionalContext": text}


def _scalar(text: str) -> str:
    """Return the value of a one-line YAML scalar, without quotes."""
    if text[:1] == "'" == text[-1:] and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text[:1] == '"' == text[-1:] and len(text) > 1:
        from ....common.system.json import decode

        try:
            return as_string(decode(text))  # JSON is YAML
        except ValueError:
            return text[1:-1]
    return text


RUNTIME = Copilot()
