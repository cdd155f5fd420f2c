"""The SDK hooks of a group's runtime: the update before a prompt, the archive before a compaction, the shell's guard.

The agent may create symlinks in its group's directories, so the hooks keep directories open while they use them.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..archives.groups import archive_group_session
from ..hooks.archive import wait_until_quiet
from ..hooks.callbacks import Handover, answering, offer_update
from ..hooks.context import Context
from ..hooks.log import HookLog
from ..settings.confined_group import held_home
from ..settings.homes import home_at
from ..settings.host_layout import Layout
from .shell_guard import refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from claude_agent_sdk import HookCallback

    from ..settings.host_layout import Group

UPDATES_SECONDS = 1.0
ARCHIVE_SECONDS = 60.0


def updates_callback(group: Group, name: str) -> HookCallback:
    """Return a callback for UserPromptSubmit that reports to the session `name` what the group's other sessions did."""

    def offer(event: Any, handover: Handover) -> None:
        session_id = str(event["session_id"])
        if not group.runtime.is_from_a_person(str(event.get("prompt", ""))):
            return
        try:
            with held_home(group) as home:
                own_path = f"{home.project_dir}/{os.path.basename(group.transcript(session_id))}"
                offer_update(Context(event, home, name, own_path, group.runtime, session_id=session_id), handover)
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
    """Return a callback for PreToolUse that refuses shell commands which would reveal other groups."""

    async def judge(event: Any, tool_use_id: str | None, context: Any) -> Any:
        given = event.get("tool_input")
        command = given.get("command") if isinstance(given, dict) else None
        reason = refusal(command, group.root, allowed_tools) if isinstance(command, str) else ""
        if not reason:
            return {}
        denied = {"permissionDecision": "deny", "permissionDecisionReason": f"Not allowed: {reason}."}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}}

    return judge


def _host_log(group: Group) -> HookLog:
    """Return the host's log: the group's own directory may be the problem."""
    home = home_at(group.host, os.environ, is_host=True)
    home.log_file = Layout(group.host).log_file
    return HookLog(home)
