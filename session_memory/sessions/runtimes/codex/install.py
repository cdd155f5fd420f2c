"""The install into Codex: its hooks and skills, and the commands that its user types."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from ....common.system.json import as_object
from ..install import Hook, SettingsHooks, text_of

_CONFIG_FILE = "config.toml"
_END_SECONDS = 3  # the longest time that Codex gives a hook at a session's end
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
# by the matcher for Claude Code's
_TOOLS = {"Bash": "Bash", "Edit|MultiEdit|Write|NotebookEdit": "apply_patch"}
# config.toml's note about a hook after its user was asked, under file, event and position.
_STATE = re.compile(r"""^\[hooks\.state\.("(?:[^"\\]|\\.)*"|'[^']*')\]([^\[]*)""", re.MULTILINE)


class CodexInstall(SettingsHooks):
    """Hooks in hooks.json; hooks for tools use Codex's names for Claude Code's tools."""

    HOME_FOLDER = ".codex"
    MCP_FILES, MCP_KEY = (_CONFIG_FILE,), "mcp_servers"
    SETTINGS_FILE = "hooks.json"
    SWITCH_FILE = _CONFIG_FILE
    COMMAND = "codex"
    AFTER_INSTALL = (
        "Codex runs the hooks once you have trusted them: start `codex` and choose `Trust all and "
        "continue` when it asks."
    )
    CLEAR, RESUME = "/new", "codex resume {id}"
    START = "codex {prompt}"

    def switched_off(self, values: Mapping[str, Any]) -> str:
        return (
            "features.hooks is false"
            if as_object(values.get("features")).get("hooks") is False
            else ""
        )

    def wanted_server(self, command: str) -> dict[str, Any]:
        """Return the entry of our MCP server.

        Codex passes on only a few variables, and none that identifies Codex."""
        passed = ["SESSION_MEMORY_DIR", "SESSION_MEMORY_HOME", self.runtime.CONFIG_VARIABLE]
        return {
            **super().wanted_server(command),
            "env_vars": passed,
            "env": {self.runtime.AGENT_VARIABLE: "mcp"},
        }

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        """Return the plugins of this name, as `plugin@marketplace`, that config.toml has
        enabled."""
        entry = re.compile(
            rf"""^\[plugins\.["'](({re.escape(plugin)})@[^"']+)["']\]([^\[]*)""", re.MULTILINE
        )
        sections = entry.finditer(text_of(f"{settings_dir}/{_CONFIG_FILE}"))
        return [match[1] for match in sections if not _is_off(match[3])]

    def adapted(self, hook: Hook) -> Hook | None:
        if hook.event == "SessionEnd":  # Codex warns of a longer limit at each start
            return Hook(hook.event, hook.matcher, {**hook.entry, "timeout": _END_SECONDS})
        if hook.event != self.runtime.TOOL_EVENT:
            return hook if self.answers(hook.event) else None
        return Hook(hook.event, _TOOLS[hook.matcher or ""], hook.entry)

    def untrusted_hooks(self, settings_dir: str, hooks: list[Hook]) -> list[str]:
        """Return the events of hooks that config.toml does not mark as trusted.

        A hook that changed since then still counts as trusted, because Codex compares its own
        checksum."""
        trusted = {
            place
            for place, body in self._marks(settings_dir)
            if "trusted_hash" in body and not _is_off(body)
        }
        declared = _places(text_of(f"{settings_dir}/{self.SETTINGS_FILE}"))
        events = {hook.event for hook in hooks}
        return [
            event for place, event in declared.items() if place not in trusted and event in events
        ]

    def left_behind(self, settings_dir: str, after: bytes | None) -> list[tuple[str, str]]:
        staying = _places((after or b"").decode("utf-8", "replace"))
        gone = [place for place, _ in self._marks(settings_dir) if place not in staying]
        number = f"{len(gone)} mark{'' if len(gone) == 1 else 's'} of trust for hooks that are gone"
        how = f'delete the tables [hooks.state."{settings_dir}/{self.SETTINGS_FILE}:..."] that Codex wrote'
        return [(f"{number}, in {settings_dir}/{_CONFIG_FILE}", how)] if gone else []

    def _marks(self, settings_dir: str) -> Iterator[tuple[str, str]]:
        """Yield the place of each hook of hooks.json in config.toml, and the hook's text."""
        path = os.path.realpath(f"{settings_dir}/{self.SETTINGS_FILE}")
        for match in _STATE.finditer(text_of(f"{settings_dir}/{_CONFIG_FILE}")):
            quoted, body = match[1], match[2]
            key = json.loads(quoted) if quoted[0] == '"' else quoted[1:-1]
            file, _, place = key.partition(f"{self.SETTINGS_FILE}:")
            if os.path.realpath(f"{file}{self.SETTINGS_FILE}") == path:
                yield place, body

    def adapted_event(self, event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "turn_id": str(uuid4()), "model": "", "permission_mode": "default"}


def _is_off(body: str) -> bool:
    return re.search(r"^enabled\s*=\s*false", body, re.MULTILINE) is not None


def _places(text: str) -> dict[str, str]:
    """Return the events of hooks.json's hooks by their places, such as `user_prompt_submit:0:0`."""
    try:
        declared = json.loads(text)["hooks"].items()
        return {
            f"{_CAPITAL.sub('_', event).lower()}:{matcher_at}:{at}": event
            for event, matchers in declared
            for matcher_at, matcher in enumerate(matchers)
            for at in range(len(matcher["hooks"]))
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
