"""The events of Claude Code that our hooks read, and how they are answered."""

from __future__ import annotations

from ...system.json import as_string
from ...transcripts.entries import called
from .files import config_dir as usual_config_dir
from .files import transcript_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...transcripts.entries import Session, ToolUse

    Event = Mapping[str, Any]

PROMPT_EVENT = "UserPromptSubmit"
START_EVENT = "SessionStart"
TOOL_EVENT = "PreToolUse"
SHOWS_WHAT_WAS_TOLD = True
# The tools whose calls are answered: what they do, and the input that says to what.
_TOOLS = {
    "Edit": ("edit", "file_path"), "MultiEdit": ("edit", "file_path"), "Write": ("edit", "file_path"),
    "NotebookEdit": ("edit", "notebook_path"), "Bash": ("command", "command"),
}  # fmt: skip


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool | None:
    """True for an interactive session: `--no-session-persistence` works in print mode and under the SDK only."""
    return None if environ.get("CLAUDE_CODE_ENTRYPOINT", "sdk").startswith("sdk") else True


def process(event: Event, environ: Mapping[str, str]) -> str:
    """The id of the process, which Claude Code gives to its hooks."""
    return environ.get("CLAUDE_PID", "")


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the transcript lies as Claude Code's do. Codex and Qwen Code run the hooks of its plugins too, Copilot
    (whose events name no transcript) those in its settings. Events of our extensions for others name their runtime."""
    path = as_string(event.get("transcript_path"))
    if not path:
        return not environ.get("COPILOT_CLI") and "runtime" not in event
    return path.rpartition("/")[0].rpartition("/")[0].endswith("/projects")


def prompt_id(event: Event) -> str:
    """The id that Claude Code gave it: the same for all prompts of a turn."""
    return as_string(event.get("prompt_id"))


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that the session was started in; `cwd` follows the agent's `cd`."""
    return environ.get("CLAUDE_PROJECT_DIR") or as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The same."""
    return start_dir(event, environ)


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the transcript's `projects/`, else `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    above = as_string(event.get("transcript_path")).rpartition("/")[0].rpartition("/")[0]
    if above.endswith("/projects"):
        return above[: -len("/projects")]
    return usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The transcript that the event names, else the one of a session started in `start`."""
    named = as_string(event.get("transcript_path"))
    return named or transcript_path(config_dir, start, as_string(event.get("session_id")))


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """The name that points to the session; '' if none does."""
    file = f"/{as_string(event.get('session_id'))}.jsonl"
    return next((session.name for session in sessions if session.path.endswith(file)), "")


def is_from_a_person(prompt: str) -> bool:
    """Whether a submitted prompt was typed: background tasks report through the same event."""
    return not prompt.lstrip().startswith(("<task-notification>", "<system-reminder>"))


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """The edit or command that is about to be run."""
    return called(event, _TOOLS)


def sub_agent(event: Event) -> str:
    """The id that Claude Code gave it."""
    return as_string(event.get("agent_id"))


def can_ask(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the session is interactive, and in a mode that asks: elsewhere what would be asked is refused."""
    is_interactive = not environ.get("CLAUDE_CODE_ENTRYPOINT", "sdk").startswith("sdk")
    return is_interactive and event.get("permission_mode") != "dontAsk"


def held_output(reason: str, text: str) -> dict[str, Any]:
    """The JSON that has Claude Code ask whether the tool may run."""
    asks = {"hookEventName": TOOL_EVENT, "permissionDecision": "ask", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {**asks, "additionalContext": text} if text else asks}


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The JSON that adds `text` to the prompt, or, for SessionStart, to what the agent knows from the start."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def notice_output(text: str) -> dict[str, Any]:
    """The JSON that shows `text` to the user, and not to the agent. It goes with `context_output` in one object."""
    return {"systemMessage": text}
