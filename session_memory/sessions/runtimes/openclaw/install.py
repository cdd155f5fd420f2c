"""The install into OpenClaw: its plugin, skills and servers, and the commands that its user types."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .... import NAME
from ....common.system.files import expanded
from ....common.system.json import as_list, as_object
from ...settings.homes import environment
from ..install import Install, values_in

_PLUGIN = {
    "id": NAME,
    "name": NAME,
    "description": "Tells an agent what the other sessions did.",
    "activation": {"onStartup": True},
    "contracts": {"agentToolResultMiddleware": ["openclaw"]},
    "configSchema": {"type": "object", "additionalProperties": False, "properties": {}},
}
_PACKAGE = {"name": NAME, "type": "module", "openclaw": {"extensions": ["./index.js"]}}


class OpenClawInstall(Install):
    """Our hooks come as a plugin, which OpenClaw finds by its folder.

    With prompts it is run only if its user allows it by name. OpenClaw refuses to start if its
    settings name a plugin's path that is gone, so they do not name ours."""

    HOME_FOLDER = ".openclaw"
    MCP_FILES, MCP_KEY = ("openclaw.json",), "mcp.servers"
    EXTENSION_VALUES: Mapping[tuple[str, ...], Mapping[str, Any]] = {
        ("plugins", "entries", NAME): {
            "enabled": True,
            "hooks": {"allowConversationAccess": True},
        }
    }
    HAS_COMMENTS = True
    HAS_LAST_COMMAS = True
    COMMAND = "openclaw"
    AFTER_INSTALL = "OpenClaw loads the plugin when it starts: restart a running gateway."
    CLEAR = "/new"
    RENAME = "/name {name}"
    RESUME = "openclaw agent --local --message 'Go on.' --session-id {id}"

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """Return the directory with OpenClaw's plugins.

        If only its settings file is named, it is that file's directory."""
        named = _named_settings(environ)
        has_own = environ.get(self.runtime.CONFIG_VARIABLE)
        return named.rpartition("/")[0] if named and not has_own else super().settings_dir(environ)

    def mcp_files(self, settings_dir: str) -> list[str]:
        """Return the settings file. A variable moves it, for the usual settings only."""
        environ = environment()
        named = _named_settings(environ) if self.is_settings_dir(settings_dir, environ) else ""
        return [named] if named else super().mcp_files(settings_dir)

    def switch_files(self, settings_dir: str) -> list[str]:
        return self.mcp_files(settings_dir)

    def switched_off(self, values: Mapping[str, Any]) -> str:
        plugins = as_object(values.get("plugins"))
        entry = as_object(as_object(plugins.get("entries")).get(NAME))
        allowed, is_off = plugins.get("allow"), "is false"
        if plugins.get("enabled") is False:
            return f"plugins.enabled {is_off}"
        if NAME in as_list(plugins.get("deny")):
            return f"plugins.deny contains {NAME}"
        if isinstance(allowed, list) and allowed and NAME not in allowed:
            return f"plugins.allow lacks {NAME}"
        if entry.get("enabled") is not True:
            return f"plugins.entries.{NAME}.enabled is not true"
        hooks = as_object(entry.get("hooks"))
        if hooks.get("allowConversationAccess") is not True:
            return f"plugins.entries.{NAME}.hooks.allowConversationAccess is not true"
        if hooks.get("allowPromptInjection") is False:
            return f"plugins.entries.{NAME}.hooks.allowPromptInjection {is_off}"
        return ""

    def left_behind(self, settings_dir: str, after: bytes | None) -> list[tuple[str, str]]:
        path = self.mcp_files(settings_dir)[0]
        plugins = as_object(values_in(path, has_comments=True).get("plugins"))
        is_named = NAME in as_list(plugins.get("allow"))
        return [(f"{NAME} in plugins.allow of {path}", "delete it there")] if is_named else []

    def wanted_server(self, command: str) -> dict[str, Any]:
        """Return the entry of our MCP server.

        OpenClaw sets its variables only for commands of agents, not for servers."""
        return {**super().wanted_server(command), "env": {self.runtime.AGENT_VARIABLE: "mcp"}}

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        plugin = self.extension(python, f"{app}/hooks/openclaw/index.mjs")
        return {
            f"extensions/{NAME}/openclaw.plugin.json": json.dumps(_PLUGIN, indent=2) + "\n",
            f"extensions/{NAME}/package.json": json.dumps(_PACKAGE, indent=2) + "\n",
            f"extensions/{NAME}/index.js": plugin,
        }

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        event = super().prompt_event(session_id, transcript_path, cwd, prompt)
        del event["transcript_path"]
        return {**event, "runtime": self.runtime.name}


def _named_settings(environ: Mapping[str, str]) -> str:
    """Return the path of the settings file that the environment names, or ''."""
    named = expanded(environ.get("OPENCLAW_CONFIG_PATH", "").strip(), environ)
    return os.path.abspath(named) if named else ""
