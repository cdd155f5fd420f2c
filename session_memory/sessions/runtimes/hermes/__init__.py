"""Hermes Agent."""

from __future__ import annotations

from ....common.system.files import is_file, names_in
from ....common.system.json import as_object, as_string
from ...transcripts.edits import patch_uses
from ...transcripts.entries import ToolUse, called
from .._mirrored import MirroredSessions
from ..base import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..base import Event


# how prompts begin that Hermes wrote itself
OF_PROGRAM = ("[IMPORTANT: Background process ", "[ASYNC DELEGATION ")


_PROFILES = "profiles"  # in the directory: one for each profile, with its settings and database
_USUAL = "default"  # the name of the profile without a directory of its own


class Hermes(MirroredSessions):
    """Hermes keeps all sessions in one database, and changes the rows if a person undoes something.

    Each profile (`hermes -p NAME`) has a database of its own.

    A session has a mirror (see sessions/transcripts/mirror.py and mirrors.py),
    `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it. If somebody
    copied a database to another profile, both have the session: the mirror of the second one is
    `<session>-<profile>.jsonl`, and rows that both have are steps with the same id. Hooks run in
    sub-agents too. Output before a tool call reaches the agent only as the reason for a refusal."""

    name = "hermes"
    TITLE = "Hermes"
    USUAL_DIR = ".hermes"
    CONFIG_VARIABLE = "HERMES_HOME"
    SOURCE = "state.db"
    SESSIONS_FOLDER = "hermes-sessions"
    PROGRAM = "hermes"
    SERVERS = ("gateway", "acp", "mcp", "dashboard", "cron")
    OWN_ID_VARIABLE = "HERMES_SESSION_ID"
    AGENT_VARIABLE = "HERMES_SESSION_ID"
    HAS_BACKUP = True
    PROMPT_EVENT = "pre_llm_call"
    START_EVENT = ""  # its output reaches nobody
    START_SOURCE = "startup"
    TOOL_EVENT = "pre_tool_call"
    CONTEXT_KEY = "context"
    REFUSES = True
    TOOLS = {
        "patch": ("edit", "path"),
        "write_file": ("edit", "path"),
        "terminal": ("command", "command"),
    }
    AUTOMATED_MARKS = (b'"started_by": "cron"',)

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return the directory; if the environment names a profile's, the one above it."""
        directory = super().config_dir(environ)
        above = directory.rpartition("/")[0]
        is_profile = above.endswith(f"/{_PROFILES}")
        return above.removesuffix(f"/{_PROFILES}") if is_profile else directory

    def source(self, config_dir: str) -> str:
        """Return the path of the database, or of a profile's if the usual profile has none."""
        usual = super().source(config_dir)
        return usual if is_file(usual) else next(iter(self.databases(config_dir).values()), usual)

    def databases(self, config_dir: str) -> dict[str, str]:
        """Return the paths of the databases, also of profiles, by their names in the directory."""
        profiles = [f"{_PROFILES}/{name}" for name in names_in(f"{config_dir}/{_PROFILES}")]
        names = [self.SOURCE, *[f"{profile}/{self.SOURCE}" for profile in profiles]]
        return {name: f"{config_dir}/{name}" for name in names if is_file(f"{config_dir}/{name}")}

    def database_name(self, key: str) -> str:
        """Return the name of the profile with a database."""
        return _USUAL if key == self.SOURCE else key.split("/")[1]

    def watched_dirs(self, config_dir: str) -> list[str]:
        profiles = f"{config_dir}/{_PROFILES}"
        return [config_dir, profiles, *[f"{profiles}/{name}" for name in names_in(profiles)]]

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        events = ("on_session_start", self.PROMPT_EVENT, self.TOOL_EVENT)
        return event.get("hook_event_name") in events and isinstance(event.get("extra"), dict)

    def own_database(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the key of the database in the directory that Hermes names to what it starts."""
        place = f"{super().config_dir(environ)}/{self.SOURCE}"
        return place.removeprefix(f"{self.config_dir(environ)}/")

    def prompt(self, event: Event) -> str:
        """Return the text of a prompt; '' for the task of a sub-agent."""
        extra = as_object(event.get("extra"))
        is_task = extra.get("platform") == "subagent"
        return "" if is_task else as_string(extra.get("user_message"))

    def process(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the session: after an unanswered prompt, no process sends its context again."""
        return as_string(event.get("session_id"))

    def prompt_id(self, event: Event) -> str:
        return as_string(as_object(event.get("extra")).get("turn_id"))

    def is_from_a_person(self, prompt: str) -> bool:
        return bool(prompt) and not prompt.startswith(OF_PROGRAM)

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the edit or command; for a patch of several files an edit per file."""
        patch = as_object(event.get("tool_input")).get("patch")
        if event.get("tool_name") == "patch" and isinstance(patch, str):
            return patch_uses(ToolUse("patch", patch, "edit"))
        return called(event, self.TOOLS)

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        if event == self.TOOL_EVENT:
            return {"decision": "block", "reason": text + REFUSED}
        return {self.CONTEXT_KEY: text}

    def exported_lines(self, content: bytes) -> Sequence[dict[str, Any] | bytes]:
        from .rows import HermesSession

        return HermesSession.exported_lines(content)


RUNTIME = Hermes()
