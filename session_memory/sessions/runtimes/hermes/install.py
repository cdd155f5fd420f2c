"""The install into Hermes: its hooks, and the commands that its user types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....common.system.json import as_object, objects_of
from ....common.text.format import counted
from ....common.text.json_edit import StrictJsonError
from ....common.text.yaml_edit import parse_yaml
from ..install import Hook, SettingsHooks, text_of, values_in

_CONSENT = "shell-hooks-allowlist.json"  # which commands its user allows, for which events
_ALL_ALLOWED = "hooks_auto_accept"  # in config.yaml: Hermes asks nothing
# by the matchers for Claude Code's tools; Hermes compares a matcher with the whole name of a tool
_TOOLS = {"Bash": "terminal", "Edit|MultiEdit|Write|NotebookEdit": "patch|write_file"}
_EVENTS = {
    "SessionStart": "on_session_start",
    "UserPromptSubmit": "pre_llm_call",
    "PreToolUse": "pre_tool_call",
}


class HermesInstall(SettingsHooks):
    """Hooks are lists in config.yaml, which Hermes starts without a shell, once they are allowed."""

    HOME_FOLDER = ".hermes"
    SETTINGS_FILE = "config.yaml"
    SKILLS_FOLDER = "skills"
    COMMAND = ""  # React Native's engine has the same
    FAIL_OPEN = ""  # whatever a hook's exit code, Hermes goes on
    AFTER_INSTALL = (
        "Hermes runs the hooks once you have allowed them: start `hermes` in a terminal and answer "
        "`y` to its questions, or start it once with `--accept-hooks`."
    )
    CLEAR = "/new"
    RENAME = "/title {name}"
    RESUME = "hermes --resume {id}"

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """Return the directory of the settings; a profile that the environment names has its own."""
        named = environ.get(self.runtime.CONFIG_VARIABLE, "").rstrip("/")
        return named or super().settings_dir(environ)

    def is_settings_dir(self, path: str, environ: Mapping[str, str]) -> bool:
        """Check that for the usual profile and all others."""
        named = {**environ, self.runtime.CONFIG_VARIABLE: path}
        return self.runtime.config_dir(named) == self.runtime.config_dir(environ)

    def after_install(self, settings_dir: str) -> str:
        """Return what allows the hooks. Each profile needs it."""
        above, _, profile = settings_dir.rpartition("/")
        if not above.endswith("/profiles"):
            return self.AFTER_INSTALL
        return self.AFTER_INSTALL.replace("`hermes`", f"`hermes -p {profile}`")

    def adapted(self, hook: Hook) -> Hook | None:
        if hook.event not in _EVENTS:
            return None
        command = hook.command.removesuffix(SettingsHooks.FAIL_OPEN)
        entry = {"command": command, "timeout": hook.entry["timeout"]}
        matcher = _TOOLS.get(hook.matcher or "")
        return Hook(_EVENTS[hook.event], matcher, entry)

    def untrusted_hooks(self, settings_dir: str, hooks: list[Hook]) -> list[str]:
        if _settings(text_of(f"{settings_dir}/{self.SETTINGS_FILE}")).get(_ALL_ALLOWED) is True:
            return []
        allowed = self._allowed(settings_dir)
        return [hook.event for hook in hooks if (hook.event, hook.command) not in allowed]

    def left_behind(self, settings_dir: str, after: bytes | None) -> list[tuple[str, str]]:
        lists = as_object(_settings((after or b"").decode("utf-8", "replace")).get("hooks"))
        staying = [hook.get("command") for hooks in lists.values() for hook in objects_of(hooks)]
        ending = f".py {self.runtime.PROGRAM}"
        gone = {
            command
            for _, command in self._allowed(settings_dir)
            if command.endswith(ending) and command not in staying
        }
        what = f"{counted(len(gone), 'command')} that Hermes may still run, in {settings_dir}/{_CONSENT}"
        how = f"delete the `approvals` there whose command ends with `{ending}`"
        return [(what, how)] if gone else []

    def _allowed(self, settings_dir: str) -> list[tuple[str, str]]:
        """Return the events and commands of the hooks that the user has allowed."""
        approvals = objects_of(values_in(f"{settings_dir}/{_CONSENT}").get("approvals"))
        return [(str(each.get("event")), str(each.get("command"))) for each in approvals]

    def adapted_event(self, event: dict[str, Any]) -> dict[str, Any]:
        named = {key: event[key] for key in ("hook_event_name", "session_id", "cwd")}
        extra = {"user_message": event["prompt"], "turn_id": event["session_id"]}
        return {**named, "tool_name": None, "tool_input": None, "extra": extra}


def _settings(text: str) -> dict[str, Any]:
    """Return the values of config.yaml; {} if it cannot be read."""
    try:
        return parse_yaml(text)
    except (StrictJsonError, ImportError):
        return {}
