"""The events that our extension for Pi sends, and how they are answered."""

from __future__ import annotations

from ...system.json import as_string
from ...transcripts.entries import called
from .files import config_dir as usual_config_dir
from .files import project_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...transcripts.entries import Session, ToolUse

    Event = Mapping[str, Any]

PROMPT_EVENT = "before_agent_start"
TOOL_EVENT = "tool_call"
START_EVENT = ""  # the extension answers no start of a session
SHOWS_WHAT_WAS_TOLD = True
_TOOLS = {"edit": ("edit", "path"), "write": ("edit", "path"), "bash": ("command", "command")}
CUSTOM_TYPE = "session-update"


def keeps_transcript(event: Event, environ: Mapping[str, str]) -> bool:
    """False under `--no-session`: then the event names no file."""
    return bool(event.get("transcript_path"))


def process(event: Event, environ: Mapping[str, str]) -> str:
    """'': pi goes on from a prompt that was aborted as well."""
    return ""


def is_own(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the event may come from our own extension: Pi's have names in small letters."""
    return event.get("runtime", "pi") == "pi" and not as_string(event.get("hook_event_name"))[:1].isupper()


def prompt_id(event: Event) -> str:
    """'': our extension asks once for each prompt."""
    return ""


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory of the session's file: that of a named session lies in its agent's home, wherever it works."""
    return _session_dir(event) or as_string(event.get("cwd"))


def project_start(event: Event, environ: Mapping[str, str]) -> str:
    """The directory that the agent works in, which stays the same."""
    return as_string(event.get("cwd"))


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the session's file where it lies in `sessions/--<cwd>--/`, else `$PI_CODING_AGENT_DIR`, else
    `~/.pi/agent`."""
    above, _, project = _session_dir(event).rpartition("/")
    if project.startswith("--") and project.endswith("--") and above.endswith("/sessions"):
        return above[: -len("/sessions")]
    return usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The session's file. Under `--no-session` there is none: then a path in its project where no file will lie."""
    path = as_string(event.get("transcript_path"))
    if path:
        return path
    directory = _session_dir(event) or project_dir(config_dir, as_string(event.get("cwd")))
    return f"{directory}/{as_string(event.get('session_id'))}.jsonl"


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """The folder in `sessions_dir` that the session's file lies in; '' if it lies elsewhere."""
    directory = _session_dir(event)
    if not directory.startswith(sessions_dir + "/"):
        from os.path import realpath  # a host may name its home by another path

        directory, sessions_dir = realpath(directory), realpath(sessions_dir)
    inside = directory.startswith(sessions_dir + "/")
    return directory[len(sessions_dir) + 1 :].partition("/")[0] if inside else ""


def is_from_a_person(prompt: str) -> bool:
    """True: what extensions send by themselves comes as no prompt."""
    return True


def tool_calls(event: Event) -> tuple[ToolUse, ...]:
    """The edit or command that is about to be run."""
    return called(event, _TOOLS)


def sub_agent(event: Event) -> str:
    """'': Pi has none."""
    return ""


def can_ask(event: Event, environ: Mapping[str, str]) -> bool:
    """Whether the extension can show a dialogue."""
    return event.get("can_ask") is True


def held_output(reason: str, text: str) -> dict[str, Any]:
    """What has the extension ask whether the tool may run."""
    return {"held": reason, **(context_output(text) if text else {})}


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The message that the extension returns from `before_agent_start`."""
    return {"message": {"customType": CUSTOM_TYPE, "content": text, "display": True}}


def notice_output(text: str) -> dict[str, Any]:
    """A message that the user sees, and the agent too: Pi has no other."""
    return context_output(text)


def _session_dir(event: Event) -> str:
    path = as_string(event.get("transcript_path"))
    return path.rpartition("/")[0] if path else as_string(event.get("session_dir")).rstrip("/")
