"""The events of Copilot that our hooks read, and how they are answered.

Events with names as Claude Code's (`UserPromptSubmit`) come in its form, but without a transcript. All hooks that an
event starts get the same `timestamp`, one after the other; of what those of a prompt tell, the last one that says
something is heard. Copilot runs the hooks in a repository's `.claude/settings.json` too.
"""

from __future__ import annotations

from ...system.json import as_string
from ...transcripts.edits import patch_uses
from ...transcripts.entries import called
from .files import config_dir as usual_config_dir
from .files import events_path

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
_MARK = "COPILOT_CLI"
# The tools whose calls are answered, by the names that events give them: what they do, and the input that says to what.
_TOOLS = {"Edit": ("edit", "path"), "Write": ("edit", "path"), "Bash": ("command", "command")}
_PATCHES = {"Edit": ("edit", "input"), "Write": ("edit", "input")}


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool | None:
    """None: nothing in an event tells whether the session is kept."""
    return None


def process(event: Event, environ: Mapping[str, str]) -> str:
    """'': Copilot goes on from a prompt that was aborted as well."""
    return ""


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether Copilot started the hook, and not a runtime that was started in it; and not for a sub-agent, in which the
    same events come."""
    path = event.get("transcript_path", "/events.jsonl")
    is_its = bool(environ.get(_MARK)) and as_string(path).endswith("/events.jsonl")
    return is_its and not event.get("agent_id") and not event.get("parent_agent_id")


def prompt_id(event: Event) -> str:
    """When the prompt was sent, which all hooks are told alike."""
    return as_string(event.get("timestamp"))


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that the session was started in, to which a resume goes back."""
    return as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The same."""
    return as_string(event.get("cwd"))


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the events' `session-state/<id>/`, else `$COPILOT_HOME`, else `~/.copilot`."""
    above, mark, _ = as_string(event.get("transcript_path")).rpartition("/session-state/")
    return above if mark else usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The file that the event names, as none does that comes with a prompt; else where the session's lies."""
    named = as_string(event.get("transcript_path"))
    return named or events_path(config_dir, as_string(event.get("session_id")))


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """Always '': an agent home has no sessions of Copilot."""
    return ""


def is_from_a_person(prompt: str) -> bool:
    """True: in a sub-agent the event names that (see is_own)."""
    return True


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """The edit or command that is about to be run; of a patch an edit for each file. Nothing names the call."""
    found = called(event, _TOOLS)
    is_patch = bool(found) and found[0].kind == "edit" and not found[0].argument
    return patch_uses(*called(event, _PATCHES)) if is_patch else found


def sub_agent(event: Event) -> str:
    """The id that Copilot gave it."""
    return as_string(event.get("agent_id"))


def can_ask(event: Event, environ: Mapping[str, str]) -> bool:
    """False: nothing in an event tells whether somebody is there who could be asked."""
    return False


def held_output(reason: str, text: str) -> dict[str, Any]:
    """What tells the agent `text`: nobody is asked."""
    return context_output(text) if text else {}


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The JSON that tells the agent `text`: behind the prompt, behind the result of a call, or, for SessionStart,
    before all that was said. It is the same for every event."""
    return {"additionalContext": text}


def notice_output(text: str) -> dict[str, Any]:
    """The same: Copilot shows its user nothing of what hooks print, so the agent is told."""
    return context_output(text)
