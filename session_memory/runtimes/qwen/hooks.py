"""The events of Qwen Code that our hooks read, and how they are answered."""

from __future__ import annotations

from ...system.json import as_string
from .files import config_dir as usual_config_dir
from .files import project_dir

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


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool | None:
    """None: a prompt that another hook blocks leaves no chat."""
    return None


def process(event: Event, environ: Mapping[str, str]) -> str:
    """'': Qwen Code goes on from a prompt that was stopped as well."""
    return ""


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the transcript lies as Qwen Code's chats do."""
    folder = as_string(event.get("transcript_path")).rpartition("/")[0]
    return folder.endswith("/chats") and "/projects/" in folder


def prompt_id(event: Event) -> str:
    """The id that Qwen Code gave it."""
    return as_string(event.get("prompt_id"))


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that the session was started in."""
    return environ.get("QWEN_PROJECT_DIR") or as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The same."""
    return start_dir(event, environ)


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the chat's `projects/`, else `$QWEN_RUNTIME_DIR`, else `~/.qwen`."""
    above, mark, _ = as_string(event.get("transcript_path")).rpartition("/projects/")
    return above if mark else usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The chat that the event names, else the one of a session started in `start`."""
    named = as_string(event.get("transcript_path"))
    return named or f"{project_dir(config_dir, start)}/{as_string(event.get('session_id'))}.jsonl"


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """Always '': an agent home has no sessions of Qwen Code."""
    return ""


def is_from_a_person(prompt: str) -> bool:
    """Whether a prompt was typed: in print mode the event comes again after every tool, without one."""
    return bool(prompt)


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """None: what a hook tells before a tool is run does not reach the agent, and would count as told."""
    return ()


def sub_agent(event: Event) -> str:
    """The id that Qwen Code gave it."""
    return as_string(event.get("agent_id"))


def can_ask(event: Event, environ: Mapping[str, str]) -> bool:
    """False: nothing in an event tells whether somebody is there who could be asked."""
    return False


def held_output(reason: str, text: str) -> dict[str, Any]:
    """What tells the agent `text`: nobody is asked."""
    return context_output(text) if text else {}


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The JSON that adds `text` to the prompt."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def notice_output(text: str) -> dict[str, Any]:
    """The JSON that shows `text` to the user, and not to the agent. It goes with `context_output` in one object."""
    return {"systemMessage": text}
