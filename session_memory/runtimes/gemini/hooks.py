"""The events of Gemini CLI that our hooks read, and how they are answered."""

from __future__ import annotations

from ...system.json import as_string
from .files import CONFIG_VARIABLE, mirror_path
from .files import config_dir as usual_config_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...transcripts.entries import Session, ToolUse

    Event = Mapping[str, Any]

PROMPT_EVENT = "BeforeAgent"
START_EVENT = ""  # what is told at the start of a session makes Gemini lose the prompt when it resumes that
TOOL_EVENT = "BeforeTool"
SHOWS_WHAT_WAS_TOLD = True


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool | None:
    """None: a prompt that another hook blocks leaves no chat."""
    return None


def process(event: Event, environ: Mapping[str, str]) -> str:
    """'': Gemini goes on from a prompt that was stopped as well."""
    return ""


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the transcript lies as Gemini's chats do."""
    folder, _, file = as_string(event.get("transcript_path")).rpartition("/")
    return folder.endswith("/chats") and file.startswith("session-") and "/tmp/" in folder


def prompt_id(event: Event) -> str:
    """When the prompt was sent."""
    return as_string(event.get("timestamp"))


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that the session was started in."""
    return environ.get("GEMINI_PROJECT_DIR") or as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The same."""
    return start_dir(event, environ)


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """`$GEMINI_CLI_HOME/.gemini`, else the directory over the chat's `tmp/<project>/chats/`, else `~/.gemini`."""
    above, mark, _ = as_string(event.get("transcript_path")).rpartition("/tmp/")
    return above if mark and not environ.get(CONFIG_VARIABLE) else usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The mirror of the session."""
    return mirror_path(config_dir, start, as_string(event.get("session_id")))


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """Always '': an agent home has no sessions of Gemini."""
    return ""


def is_from_a_person(prompt: str) -> bool:
    """True: in a sub-agent there is no such event."""
    return True


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """None: what a hook tells before a tool is run does not reach the agent, and would count as told."""
    return ()


def sub_agent(event: Event) -> str:
    """'': no event tells."""
    return ""


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
    """The same: the agent is told."""
    return context_output(text)
