"""The events of Codex that our hooks read, and how they are answered."""

from __future__ import annotations

from ...system.json import as_string
from ...transcripts.edits import patch_uses
from ...transcripts.entries import called
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
_TOOLS = {"apply_patch": ("edit", "command"), "Bash": ("command", "command")}


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the event names a rollout: under `--ephemeral` there is none."""
    return bool(event.get("transcript_path"))


def process(event: Event, environ: Mapping[str, str]) -> str:
    """'': Codex goes on from a prompt that was aborted as well."""
    return ""


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the transcript is a rollout; and not in a sub-agent, in which the same events come."""
    path = as_string(event.get("transcript_path"))
    is_its = path.rpartition("/")[2].startswith("rollout-") if path else "transcript_path" in event
    return is_its and not event.get("agent_id")


def prompt_id(event: Event) -> str:
    """'': prompts of Codex have none."""
    return ""


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that the agent works in."""
    return as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The same."""
    return as_string(event.get("cwd"))


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the rollout's `sessions/<year>/<month>/<day>/`, else `$CODEX_HOME`, else `~/.codex`."""
    above, mark, _ = as_string(event.get("transcript_path")).rpartition("/sessions/")
    return above if mark else usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The rollout that the event names; where it names none, a path where none will lie."""
    named = as_string(event.get("transcript_path"))
    return named or f"{project_dir(config_dir, start)}/rollout-{as_string(event.get('session_id'))}.jsonl"


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """Always '': an agent home has no sessions of Codex."""
    return ""


def is_from_a_person(prompt: str) -> bool:
    """True: in a sub-agent the event names that (see is_own)."""
    return True


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """The command that is about to be run; of a patch an edit for each file."""
    found = called(event, _TOOLS)
    return patch_uses(found[0]) if found and found[0].kind == "edit" else found


def sub_agent(event: Event) -> str:
    """The id that Codex gave it."""
    return as_string(event.get("agent_id"))


def can_ask(event: Event, environ: Mapping[str, str]) -> bool:
    """False: nothing in an event tells whether somebody is there who could be asked."""
    return False


def held_output(reason: str, text: str) -> dict[str, Any]:
    """What tells the agent `text`: nobody is asked."""
    return context_output(text, TOOL_EVENT) if text else {}


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The JSON that tells the agent `text`, in a message behind the prompt."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def notice_output(text: str) -> dict[str, Any]:
    """The JSON that shows `text` to the user, and not to the agent. It goes with `context_output` in one object."""
    return {"systemMessage": text}
