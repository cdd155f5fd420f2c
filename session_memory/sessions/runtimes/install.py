"""The base classes for installs: where settings, hooks and skills are, and what users type."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ...common.system.json import as_object

if TYPE_CHECKING:
    from .base import Runtime

_PLUGIN_ROOT = "${CLAUDE_PLUGIN_ROOT}"
# prepares in a plugin's data directory what an install puts into its environment
_PLUGIN_ONLY = "/hooks/plugin_start.py"
_PLUGIN_PATH = re.compile(rf'"?{re.escape(_PLUGIN_ROOT)}([^"\s]*)"?')
_FAIL_OPEN = " || exit 0"
# events of hooks.json that some runtimes do not answer
_NOT_EVERYWHERE = ("SubagentStart", "PostToolUseFailure", "Stop", "PermissionRequest")


@dataclass(frozen=True)
class Hook:
    """One hook of a settings file: event, matcher (None for all), and the object in `hooks`."""

    event: str
    matcher: str | None
    entry: dict[str, Any]

    @property
    def command(self) -> str:
        """Return the shell command; '' if the hook is not a command."""
        command = self.entry.get("command")
        return command if isinstance(command, str) else ""


class Install:
    """The install into `runtime`. By default it puts nothing anywhere."""

    # the folder with the runtime's settings in an agent's or a project's directory
    HOME_FOLDER: str
    # The file for hooks in the runtime's directory or in HOME_FOLDER; '' if the runtime reads none
    # there
    SETTINGS_FILE = ""
    HAS_COMMENTS = False  # if the runtime reads comments in the JSON of its settings
    HAS_LAST_COMMAS = False  # if it also reads a comma after the last item of an array or object
    HAS_BOM = False  # if it reads JSON after a byte order mark, which editors on Windows add
    # the file beside SETTINGS_FILE with one user's settings for a project
    LOCAL_SETTINGS_FILE = ""
    # The command that starts it; an install finds the runtime by it before its first use. '' if
    # other programs have the same name
    COMMAND = ""
    # The folder for skills beside the settings file; '' if it also reads the `.agents/skills` that
    # several runtimes share, and needs no folder of its own
    SKILLS_FOLDER = ""
    # further steps for the user after an install, besides starting new sessions; '' if none
    AFTER_INSTALL = ""
    # the paths of an administrator's settings, by `sys.platform`
    MANAGED_SETTINGS: Mapping[str, str] = {}
    # The files in the runtime's directory that name MCP servers; a person may have added ours there
    MCP_FILES: tuple[str, ...] = ()
    # The key in the first of MCP_FILES for servers, or keys with `.` between them; '' if an install
    # adds none
    MCP_KEY = ""
    # values that our extension needs in the first of MCP_FILES, by the keys that lead to each
    EXTENSION_VALUES: Mapping[tuple[str, ...], Mapping[str, Any]] = {}
    # values of our server's first entry that its user may take away again
    SERVER_DEFAULTS: Mapping[str, Any] = {}
    # The keys in STATUS_LINE_FILE that lead to the status line's command; () if the runtime runs
    # none
    STATUS_LINE: tuple[str, ...] = ()
    # The file in the runtime's directory, or in HOME_FOLDER, that names that command
    STATUS_LINE_FILE = "settings.json"
    # The values beside that command. The line shows ages, so the runtime runs it again each minute,
    # if it can.
    STATUS_LINE_ENTRY: Mapping[str, Any] = {"type": "command", "refreshInterval": 60}
    # if our extension itself shows the status line, so no settings name a command for it
    SHOWS_STATUS = False
    SWITCH_FILE = ""  # the file beside SETTINGS_FILE that can switch hooks off in its place
    # the files of a repository that can switch hooks off, if not those in HOME_FOLDER
    PROJECT_SWITCH_FILES: tuple[str, ...] = ()
    HOOKS_ARE_OFF = ""  # the key of settings that, if true, keeps every hook from running
    # the key of an administrator's settings that, if true, keeps all other hooks from running
    ONLY_MANAGED_HOOKS = ""
    # the placeholder for a plugin's directory in commands of hooks and skills; '' if there is none
    PLUGIN_ROOT = ""
    # The end of hook commands that lets a prompt continue if they fail; '' if nothing is needed
    FAIL_OPEN = ""
    # The permission rule that lets a shell command run without asking, whatever follows it: a
    # format with `command`; '' if the runtime asks nothing
    COMMAND_RULE = ""
    # the permission rule that lets all in a directory be read: a format with `directory`
    READ_RULE = ""
    # the permission rule that lets a tool of an MCP server be called: a format with `server` and
    # `tool`
    TOOL_RULE = ""
    RENAME = "/rename {name}"  # what a user types to name the session: a format with `name`
    CLEAR = "/clear"  # what a user types to start a new session
    # what a user types in a terminal to resume an earlier session: a format with `id`
    RESUME: str
    # what a user types in a terminal to start a session with a prompt: a format with `prompt`
    START = ""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def switched_off(self, values: Mapping[str, Any]) -> str:
        """Return the setting that disables our hooks, such as `disableAllHooks is true`, or ''."""
        return f"{self.HOOKS_ARE_OFF} is true" if values.get(self.HOOKS_ARE_OFF) is True else ""

    def mcp_files(self, settings_dir: str) -> list[str]:
        return [f"{settings_dir}/{name}" for name in self.MCP_FILES]

    def after_install(self, settings_dir: str) -> str:
        """Return AFTER_INSTALL for a settings directory."""
        return self.AFTER_INSTALL

    def switch_files(self, settings_dir: str) -> list[str]:
        """Return the paths of settings that could switch hooks off. They need not exist."""
        names = (self.SWITCH_FILE or self.SETTINGS_FILE, self.LOCAL_SETTINGS_FILE)
        return [f"{settings_dir}/{name}" for name in names if name]

    def wanted_server(self, command: str) -> dict[str, Any]:
        """Return the entry of our MCP server; `command` starts it."""
        return {"command": command, "args": ["mcp"]}

    def plugin_data_dirs(self, environ: Mapping[str, str], plugin: str) -> list[str]:
        """Return the runtime's data directories for a plugin of this name."""
        return []

    def settings_dir(self, environ: Mapping[str, str]) -> str:
        """Return the directory of a user's settings for the runtime, where an install goes."""
        return self.runtime.config_dir(environ)

    def is_settings_dir(self, path: str, environ: Mapping[str, str]) -> bool:
        """Check if a user of the runtime has settings in this directory."""
        return path == self.settings_dir(environ)

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        """Return the enabled plugins of this name in a settings directory.

        The result has the names that their user uses."""
        return []

    def wanted_hooks(self, declared: str, python: str, app: str) -> list[Hook]:
        """Return the hooks that `declared` (hooks.json) lists, run by `python` from the directory
        `app`."""
        return []

    def wanted_files(self, declared: str, python: str, app: str) -> dict[str, str]:
        """Return the files to install below the runtime's settings directory.

        The result maps their paths in that directory to their texts. An extension is an example.
        The arguments are as in `wanted_hooks`."""
        return {}

    def extension(self, python: str, path: str, exported: str = "default") -> str:
        """Return a JavaScript file that loads the program's own one at `path`.

        It also names the interpreter for the program's entries. Node reads a path as a part of a
        URL, in which some characters have a meaning."""
        module = PurePath(path).as_uri() if set(path) & set("%#?") else path
        interpreter = f"process.env.SESSION_MEMORY_PYTHON ||= {json.dumps(python)};\n"
        return f"{interpreter}export {{ {exported} }} from {json.dumps(module)};\n"

    def answers(self, event: str) -> bool:
        """Tell whether an event of hooks.json is answered in the runtime."""
        return event not in _NOT_EVERYWHERE or event in (
            self.runtime.SUB_AGENT_EVENT,
            self.runtime.FAILED_EVENT,
            *self.runtime.WAITING_EVENTS,
        )

    def untrusted_hooks(self, settings_dir: str, hooks: list[Hook]) -> list[str]:
        """Return the events of `hooks` in SETTINGS_FILE that do not run until the user trusts
        them."""
        return []

    def left_behind(self, settings_dir: str, after: bytes | None) -> list[tuple[str, str]]:
        """Return the runtime's leftovers of removed hooks, each with how to remove it.

        Removed hooks are those that SETTINGS_FILE, with the content `after`, no longer has."""
        return []

    def prompt_event(
        self, session_id: str, transcript_path: str, cwd: str, prompt: str
    ) -> dict[str, Any]:
        """Return the event that a prompt hook reads from its stdin."""
        event = {
            "session_id": session_id,
            "transcript_path": transcript_path,
            "cwd": cwd,
            "hook_event_name": self.runtime.PROMPT_EVENT,
            "prompt": prompt,
        }
        return self.adapted_event(event)

    def adapted_event(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return a prompt's event of Claude Code's in this runtime's form."""
        return event

    def hook_variables(self, session_id: str, start: str) -> dict[str, str]:
        """Return the runtime's additions to a hook's environment in a session started in
        `start`."""
        return {}


class SettingsHooks(Install):
    """A runtime whose settings file names hooks in Claude Code's form."""

    SETTINGS_FILE = "settings.json"
    FAIL_OPEN = _FAIL_OPEN

    def wanted_hooks(self, declared: str, python: str, app: str) -> list[Hook]:
        adapted = [
            self.adapted(hook)
            for hook in hooks_declared(declared, python, app, self.runtime.PROGRAM)
        ]
        return [hook for hook in adapted if hook is not None]

    def adapted(self, hook: Hook) -> Hook | None:
        """Return a hook of Claude Code's in this runtime's form; None if it has none."""
        return hook if self.answers(hook.event) else None


def hooks_declared(declared: str, python: str, app: str, argument: str) -> list[Hook]:
    """Return the hooks that `declared` lists (see Install.wanted_hooks).

    `argument` names the runtime for the scripts; it is left out for `claude`. If Python cannot open
    a script, it exits with 2, and for a hook 2 means that the prompt is dropped. So any failure
    becomes 0: if the program directory or the interpreter is gone, prompts still work without a
    notice. `session-memory doctor` reports it."""
    hooks = []
    behind = "" if argument == "claude" else f" {argument}"
    for event, matchers in json.loads(declared)["hooks"].items():
        for matcher in matchers:
            for entry in matcher["hooks"]:
                if _PLUGIN_ONLY in entry["command"]:
                    continue
                command = _PLUGIN_PATH.sub(
                    lambda match: shlex.quote(app + match[1]) + behind, entry["command"]
                )
                command = re.sub(r"^python3 ", lambda _: shlex.quote(python) + " ", command)
                if "||" not in entry["command"]:
                    command += _FAIL_OPEN
                hooks.append(Hook(event, matcher.get("matcher"), {**entry, "command": command}))
    return hooks


def text_of(path: str) -> str:
    """Return the text of a settings file, or ''.

    A pipe is ignored, because a repository could have one of that name."""
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def values_in(path: str, *, has_comments: bool = False) -> dict[str, Any]:
    """Return the values of a JSON settings file; {} if it is missing or unreadable.

    The JSON may have comments, and commas after last items, if the runtime reads them."""
    text = text_of(path).removeprefix("\ufeff")
    if has_comments:
        from ...common.text.json_comments import without_comments, without_last_commas

        text = without_last_commas(without_comments(text))
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def enabled_plugins(settings_file: str, plugin: str, *, has_comments: bool = False) -> list[str]:
    """Return the plugins of this name that a settings file in Claude Code's form enables.

    The names have the form `plugin@marketplace`."""
    enabled = as_object(values_in(settings_file, has_comments=has_comments).get("enabledPlugins"))
    return [name for name, is_on in enabled.items() if is_on and name.partition("@")[0] == plugin]
