"""Cline."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, objects_in
from ...transcripts.edits import part_id, patch_uses
from ...transcripts.entries import ToolUse, called
from ..atif import Atif
from ..base import REFUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..base import Event

_COMMANDS, _PATCHES = "run_commands", "apply_patch"
_MANIFEST_BYTES = 1024 * 1024  # it has the first prompt, and is read once for each start


class Cline(Atif):
    """Cline's command line: each session is a JSON document that is rewritten as it grows.

    It is `sessions/<session>/<session>.messages.json`, with a sub-agent's document beside it. Its
    messages are mirrored as steps of a trajectory (see atif/ and mirrors.py). Our plugin file sends
    the events, because the output of Cline's hook files at a prompt reaches nobody, and the only
    refusal that they have ends the turn."""

    name = "cline"
    TITLE = "Cline"
    USUAL_DIR = ".cline/data"
    CONFIG_VARIABLE = "CLINE_DATA_DIR"
    SOURCE = "sessions"
    SESSIONS_FOLDER = "cline-sessions"
    PROGRAM = "cline"
    PACKAGE = "cline"
    SERVERS = ("--cline-hub-daemon",)
    CONTINUES = ()
    # Cline does not set it. If a person does, the commands of an agent know their session.
    OWN_ID_VARIABLE = "CLINE_SESSION_ID"
    AGENT_VARIABLE = "CLINE_CONNECTOR_CLI_LAUNCH"
    PROMPT_EVENT = SUB_AGENT_EVENT = "beforeRun"
    START_EVENT = "setup"
    TOOL_EVENT = "beforeTool"
    REFUSES = True
    SHOWS_WHAT_WAS_TOLD = True
    TOOLS = {
        "editor": ("edit", "path"),
        _PATCHES: ("edit", "input"),
        _COMMANDS: ("command", "commands"),
    }

    def config_dir(self, environ: Mapping[str, str]) -> str:
        """Return `$CLINE_DATA_DIR`, else the folder `data` of `$CLINE_DIR` or of `~/.cline`."""
        above = environ.get("CLINE_DIR", "").rstrip("/")
        if above and not environ.get(self.CONFIG_VARIABLE):
            return f"{above}/data"
        return super().config_dir(environ)

    def is_own(self, event: Event, environ: Mapping[str, str]) -> bool:
        return event.get("runtime") == self.name

    def is_from_a_person(self, prompt: str) -> bool:
        return bool(prompt)

    def forked_from(self, event: Event, path: str) -> str:
        """Return the original of a fork, which its manifest names."""
        from ....common.system.files import read_end
        from ...settings.homes import environment

        id = as_string(event.get("session_id"))
        manifest = f"{self.source(self.config_dir(environment()))}/{id}/{id}.json"
        noted = next(iter(objects_in(read_end(manifest, _MANIFEST_BYTES))), {})
        fork = as_object(as_object(noted.get("metadata")).get("fork"))
        return as_string(fork.get("forkedFromSessionId"))

    def tool_calls(self, event: Event) -> tuple[ToolUse, ...]:
        """Return the edits or commands of a call: one for each file of a patch, and each command."""
        calls = called(event, self.TOOLS)
        if not calls or calls[0].name != _COMMANDS:
            return patch_uses(calls[0]) if calls and calls[0].name == _PATCHES else calls
        id, given = calls[0].call_id, as_object(event.get("tool_input")).get("commands")
        return tuple(
            [
                ToolUse(_COMMANDS, as_string(command), "command", part_id(id, number))
                for number, command in enumerate(as_list(given))
            ]
        )

    def tasks(self, event: Event) -> list[str]:
        return [self.prompt(event)]

    def context_output(self, text: str, event: str = "") -> dict[str, Any]:
        """Return the text that the plugin file adds after the prompt, or the reason of a refusal."""
        return {"text": text + REFUSED if event == self.TOOL_EVENT else text}


RUNTIME = Cline()
