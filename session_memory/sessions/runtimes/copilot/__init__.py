"""Copilot CLI."""

from __future__ import annotations

from ....common.system.files import names_in, path_stamp, path_text, read_end
from ....common.system.json import as_string
from ...transcripts.edits import patch_uses
from ...transcripts.entries import Session, called
from .._base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...transcripts.entries import ToolUse
    from .._base import Event

MOST_SESSIONS = 400  # the youngest, of which a prompt may be told
_EVENTS = "events.jsonl"
_NAME_FILE = "workspace.yaml"
_NAME_BYTES = 64 * 1024  # more than it ever has
_SEARCHED_BYTES = 2 * 1024 * 1024  # in which a prompt looks for what a sub-agent did
_SUB_AGENTS = (b'"agentId":"', b'"parentToolCallId":"')
_PATCHES = {"Edit": ("edit", "input"), "Write": ("edit", "input")}


class Copilot(Runtime):
    """A session's events are `session-state/<id>/events.jsonl`, whatever its project. Events of
    hooks with names as Claude Code's (`UserPromptSubmit`) come in its form, but without a
    transcript. All hooks that an event starts get the same `timestamp`, one after the other; of
    what those of a prompt say, only the last that says something is heard. Copilot runs the hooks
    in a repository's `.claude/settings.json` too."""

    name = "copilot"
    TITLE = "Copilot CLI"
    USUAL_DIR = ".copilot"
    CONFIG_VARIABLE = "COPILOT_HOME"
    TRANSCRIPTS = "session-state"
    SESSIONS_FOLDER = "copilot-sessions"
    PROGRAM = "copilot"
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
        """Return the events of the sessions that were written to last: ids tell nothing of when
        they began."""
        found = [session.path for session in self.sessions_in(self.transcripts_dir(config_dir))]
        # one that was begun, and nothing said in it, has no events yet
        if len(found) > MOST_SESSIONS:
            found = sorted(found, key=lambda path: -path_stamp(path)[2])[:MOST_SESSIONS]
        return found

    def sessions_in(
        self, folder: str, is_elsewhere: bool = False, worktree: str = ""
    ) -> list[Session]:
        """Return the session whose events are named, or lie in `folder`; or all those in the folder
        of all sessions."""
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
        """Return the name of the events' folder, or, if they were put elsewhere, their own."""
        folder, _, file = path.rpartition("/")
        return path_text(
            folder.rpartition("/")[2] if file == _EVENTS else file.removesuffix(".jsonl")
        )

    def sub_agents(self, path: str) -> list[str]:
        """Return the session's own events, if a sub-agent's stand in the end of those."""
        end = read_end(path, _SEARCHED_BYTES)
        return [path] if any([mark in end for mark in _SUB_AGENTS]) else []

    def given_name(self, path: str) -> str:
        """Return what the user called the session with `/rename`, by the file beside its events; ''
        for the name that Copilot gave it, which is the first prompt."""
        content = read_end(f"{path.rpartition('/')[0]}/{_NAME_FILE}", _NAME_BYTES)
        lines = content.decode("utf-8", "replace").split("\n")
        values = {
            key: value.strip()
            for key, mark, value in [line.partition(": ") for line in lines]
            if mark
        }
        return _scalar(values.get("name", "")) if values.get("user_named") == "true" else ""

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        """Tell whether Copilot started the hook, not a runtime in it, nor a sub-agent."""
        path = event.get("transcript_path", f"/{_EVENTS}")
        is_its = bool(environ.get(self.AGENT_VARIABLE)) and as_string(path).endswith(f"/{_EVENTS}")
        return is_its and not event.get("agent_id") and not event.get("parent_agent_id")

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the edit or command; of a patch an edit for each file. Nothing names the call."""
        found = called(event, self.TOOLS)
        is_patch = bool(found) and found[0].kind == "edit" and not found[0].argument
        return patch_uses(*called(event, _PATCHES)) if is_patch else found

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return what tells the agent `text`: behind the prompt or result, at SessionStart before
        all."""
        return {"additionalContext": text}


def _scalar(text: str) -> str:
    """Return a value of one line of YAML, without its quotes."""
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
