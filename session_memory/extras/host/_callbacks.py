"""The SDK hooks of a group's runtime: update, archive, and the guard of its shell.

The update comes before a prompt, the archive before a compaction. The agent may create symlinks in
its group's directories, so the hooks keep directories open while they use them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from typing import Any

from claude_agent_sdk import HookCallback

from ...awareness.events.callbacks import Handover, answering, offer_update
from ...awareness.events.context import Context
from ...awareness.events.log import HookLog
from ...common.text.shell_words import Word, simple_commands
from ...history.archives.at_end import wait_until_quiet
from ...history.archives.writer import archive_group_session
from ...sessions.settings.homes import home_at
from ...sessions.settings.host_layout import Group, Layout, held_home

UPDATES_SECONDS = 1.0
ARCHIVE_SECONDS = 60.0


def updates_callback(group: Group, name: str) -> HookCallback:
    """Return a callback for UserPromptSubmit that reports to the session `name` what the group's
    other sessions did."""

    def offer(event: Any, handover: Handover) -> None:
        session_id = str(event["session_id"])
        if not group.runtime.is_from_a_person(str(event.get("prompt", ""))):
            return
        try:
            with held_home(group) as home:
                own_path = f"{home.project_dir}/{os.path.basename(group.transcript(session_id))}"
                offer_update(
                    Context(event, home, name, own_path, group.runtime, session_id=session_id),
                    handover,
                )
        except FileNotFoundError:  # the group's first prompt
            pass

    return answering(_host_log(group), "UserPromptSubmit", UPDATES_SECONDS, offer)


def archive_callback(group: Group) -> HookCallback:
    """Return a callback for PreCompact that archives the conversation about to be compacted."""

    def archive(event: Any, handover: Handover) -> None:
        session_id = str(event["session_id"])
        wait_until_quiet(group.transcript(session_id))
        archive_group_session(group, session_id, time.time())

    return answering(_host_log(group), "PreCompact", ARCHIVE_SECONDS, archive)


def shell_callback(group: Group, allowed_tools: Sequence[str]) -> HookCallback:
    """Return a callback for PreToolUse that refuses shell commands which would reveal other
    groups."""

    async def judge(event: Any, tool_use_id: str | None, context: Any) -> Any:
        given = event.get("tool_input")
        command = given.get("command") if isinstance(given, dict) else None
        reason = refusal(command, group.root, allowed_tools) if isinstance(command, str) else ""
        if not reason:
            return {}
        denied = {
            "permissionDecision": "deny",
            "permissionDecisionReason": f"Not allowed: {reason}.",
        }
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}

    return judge


def _host_log(group: Group) -> HookLog:
    """Return the host's log, because the group's own directory may be the problem."""
    home = home_at(group.host, os.environ, is_host=True)
    home.log_file = Layout(group.host).log_file
    return HookLog(home)


# Commands that show the processes, sockets or mounts of the whole machine.
_REVEALING = {
    "atop",
    "df",
    "findmnt",
    "fuser",
    "htop",
    "journalctl",
    "last",
    "lsns",
    "lsof",
    "mount",
    "netstat",
    "pgrep",
    "pidof",
    "ps",
    "pstree",
    "pwdx",
    "ss",
    "systemctl",
    "top",
    "users",
    "w",
    "who",
}
_WRAPPERS = {
    "builtin",
    "command",
    "doas",
    "env",
    "exec",
    "nice",
    "nohup",
    "setsid",
    "stdbuf",
    "sudo",
    "time",
    "timeout",
    "xargs",
}
# an expansion whose result is unknown in advance
_EXPANSION = re.compile(r"`|\$[A-Za-z0-9_{(\[']|<\(|>\(")
_HIDDEN_GLOB = re.compile(r"\.[^/]*[*?\[]")  # `.*` and `.?` may match `..`
_DOT_IN_BRACES = re.compile(r"\.\{|\}\.|\{[^}]*\.\.?[,}]")
_SEPARATORS = re.compile(r"[\s=:,<>|&;(){}]+")
_QUOTES = re.compile("['\"]")
_BEFORE_COMMAND = re.compile(
    r"[A-Za-z_][A-Za-z0-9_]*=|(!|[{}]|do|done|elif|else|fi|if|then|until|while)$"
)
OUTSIDE = (
    "it reaches beyond your directory; name files by paths below it, without `..`, `~` and "
    "variables"
)
OF_THE_MACHINE = "it shows what runs on the whole machine, which is not yours to see"


def refusal(command: str, root: str, allowed_tools: Sequence[str] = ()) -> str:
    """Return why the agent in `root` may not run a shell command; '' to let the runtime decide.

    The runtime checks the paths of commands that it knows to read files. But it allows `du ../..`,
    `echo ../*` (the shell expands the path) and `ps` (it shows all processes). So anything that may
    be such a path is refused, quoted or not. Commands that `allowed_tools` permits (`Bash`,
    `Bash(npm test:*)`) are the operator's own decision."""
    if any(_allows(tool, command) for tool in allowed_tools):
        return ""
    text = command.replace("\\", "")
    if _EXPANSION.search(command) or _DOT_IN_BRACES.search(text):
        return OUTSIDE
    for reading in (_QUOTES.sub("", text), _QUOTES.sub(" ", text)):
        if any(_is_outside(word, root) for word in _SEPARATORS.split(reading)):
            return OUTSIDE
    if any(_reveals(simple_command.words) for simple_command in simple_commands(command)):
        return OF_THE_MACHINE
    return ""


def _allows(entry: str, command: str) -> bool:
    if entry in ("Bash", "Bash(*)"):
        return True
    if not (entry.startswith("Bash(") and entry.endswith(")")):
        return False
    rule = entry[len("Bash(") : -1]
    prefix = rule.removesuffix(":*").removesuffix("*")
    return command == rule or (prefix != rule and command.startswith(prefix))


def _is_outside(word: str, root: str) -> bool:
    if word.startswith("/"):
        is_below = word in ("/dev/null", root) or word.startswith(root + "/")
        return not is_below or ".." in word.split("/")
    return word.startswith("~") or any(
        part == ".." or _HIDDEN_GLOB.match(part) for part in word.split("/")
    )


def _reveals(words: list[Word]) -> bool:
    """Check if the program shows the whole machine.

    After a wrapper, any word may be the program."""
    names = [word.text.rpartition("/")[2] for word in words if not _BEFORE_COMMAND.match(word.text)]
    return not _REVEALING.isdisjoint(names if names[:1] and names[0] in _WRAPPERS else names[:1])
