"""The events that our plugin file for OpenCode sends, and how they are answered."""

from __future__ import annotations

from ...system.json import as_string
from ...transcripts.entries import called
from . import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...transcripts.entries import Session, ToolUse

    Event = Mapping[str, Any]

PROMPT_EVENT = "chat.message"
TOOL_EVENT = "tool.execute.before"
START_EVENT = "session.created"
SHOWS_WHAT_WAS_TOLD = True
_TOOLS = {"edit": ("edit", "filePath"), "write": ("edit", "filePath"), "bash": ("command", "command")}


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool | None:
    """None: a mirror is there once the database could be read."""
    return None


def process(event: Event, environ: Mapping[str, str]) -> str:
    """'': OpenCode goes on from a prompt that was aborted as well."""
    return ""


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the event comes from our own plugin file."""
    return event.get("runtime") == "opencode"


def prompt_id(event: Event) -> str:
    """'': our plugin file asks once for each prompt."""
    return ""


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that OpenCode was started in."""
    return as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The same."""
    return as_string(event.get("cwd"))


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory with the database, by the environment, which is that of OpenCode."""
    return files.config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The mirror of the session, or where it will lie: a session stays in the folder for the directory that it was
    started in, and may go on in another."""
    session_id = as_string(event.get("session_id"))
    return files.mirror_of(config_dir, session_id) or f"{files.project_dir(config_dir, start)}/{session_id}.jsonl"


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """Always '': an agent home has no sessions of OpenCode."""
    return ""


def is_from_a_person(prompt: str) -> bool:
    """Whether something was typed. What goes to a sub-agent the plugin file leaves out."""
    return bool(prompt)


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """The edit or command that is about to be run."""
    return called(event, _TOOLS)


def sub_agent(event: Event) -> str:
    """'': a sub-agent's calls are not asked about."""
    return ""


def can_ask(event: Event, environ: Mapping[str, str]) -> bool:
    """False: a plugin cannot ask anybody."""
    return False


def held_output(reason: str, text: str) -> dict[str, Any]:
    """What tells the agent `text`: nobody is asked."""
    return context_output(text) if text else {}


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """What the plugin file puts behind the prompt, or behind what a tool printed."""
    return {"text": text}


def notice_output(text: str) -> dict[str, Any]:
    """The same: the agent passes it on."""
    return context_output(text)
