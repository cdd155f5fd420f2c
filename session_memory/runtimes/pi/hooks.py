"""The events that our extension for Pi sends, and how they are answered."""

from __future__ import annotations

from .files import config_dir as usual_config_dir
from .files import project_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...transcripts.entries import Session

    Event = Mapping[str, Any]

PROMPT_EVENT = "before_agent_start"
CUSTOM_TYPE = "session-update"


def is_own(event: Event) -> bool:
    """Every event is: only our own extension sends them."""
    return True


def start_dir(event: Event, environ: Mapping[str, str]) -> str:
    """Where the session's file lies: a named session's lies in its agent's home, whatever directory it works in."""
    return _session_dir(event) or _string(event.get("cwd"))


def config_dir(event: Event, environ: Mapping[str, str]) -> str:
    """The directory over the session's file where it lies in `sessions/--<cwd>--/`, else `$PI_CODING_AGENT_DIR`, else
    `~/.pi/agent`."""
    above, _, project = _session_dir(event).rpartition("/")
    if project.startswith("--") and project.endswith("--") and above.endswith("/sessions"):
        return above[: -len("/sessions")]
    return usual_config_dir(environ)


def own_path(event: Event, start: str, config_dir: str) -> str:
    """The session's file; a path that there is not where it keeps none (`--no-session`)."""
    path = _string(event.get("transcript_path"))
    if path:
        return path
    directory = _session_dir(event) or project_dir(config_dir, _string(event.get("cwd")))
    return f"{directory}/{_string(event.get('session_id'))}.jsonl"


def own_name(event: Event, sessions_dir: str, sessions: Iterable[Session]) -> str:
    """The folder in `sessions_dir` that the session's file lies in; '' if it lies elsewhere."""
    directory = _session_dir(event)
    if not directory.startswith(sessions_dir + "/"):
        from os.path import realpath  # a host may name its home by another path

        directory, sessions_dir = realpath(directory), realpath(sessions_dir)
    inside = directory.startswith(sessions_dir + "/")
    return directory[len(sessions_dir) + 1 :].partition("/")[0] if inside else ""


def is_from_a_person(prompt: str) -> bool:
    """Every prompt is: what extensions send by themselves does not come as one."""
    return True


def context_output(text: str, event: str = PROMPT_EVENT) -> dict[str, Any]:
    """The message that the extension returns from `before_agent_start`."""
    return {"message": {"customType": CUSTOM_TYPE, "content": text, "display": True}}


def _session_dir(event: Event) -> str:
    path = _string(event.get("transcript_path"))
    return path.rpartition("/")[0] if path else _string(event.get("session_dir")).rstrip("/")


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
