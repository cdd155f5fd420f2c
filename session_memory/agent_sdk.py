"""The hooks as callbacks for claude-agent-sdk, for a program that serves an agent home.

The SDK is not imported here, because that takes over a second and the program has done it already.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .app.tools.permissions import HOME_COMMAND, SERVERS, lookup_rules
from .awareness.events.callbacks import Handover, answering, offer_collisions, offer_update
from .awareness.events.context import Context, EventError
from .awareness.events.log import HookLog
from .awareness.events.prompt import start_listening
from .awareness.events.session_end import end
from .awareness.events.tool_call import is_answered
from .awareness.events.upkeep_start import start_upkeep as start_upkeep_of
from .common.errors import SessionMemoryError
from .common.text.paths import is_name
from .sessions.runtimes.table import runtime
from .sessions.settings.homes import home_at, named_home
from .sessions.settings.program import program_paths

if TYPE_CHECKING:
    from claude_agent_sdk import HookCallback

_CLAUDE = runtime("agent-sdk")


def lookup_options(home: str | os.PathLike[str]) -> dict[str, Any]:
    """Return options with which the agent of the home `home` looks into its past without asking.

    They are a server with the tools, the rules that allow these tools, and the rules for the
    skills' commands.

        ClaudeAgentOptions(mcp_servers=lookups["mcp_servers"], allowed_tools=["Read",
        *lookups["allowed_tools"]])"""
    paths = program_paths(os.environ)
    conversations_dir = home_at(os.path.abspath(home), os.environ).conversations_dir
    server = {"command": str(paths.launcher), "args": ["mcp", "--home", os.path.abspath(home)]}
    return {
        "mcp_servers": {SERVERS[0]: server},
        "allowed_tools": lookup_rules(_CLAUDE, (HOME_COMMAND, paths.command), conversations_dir),
    }


def start_upkeep(home: str | os.PathLike[str]) -> None:
    """Start the upkeep of the store of the agent home `home`, when a program begins or ends.

    Claude Code's hooks do the same at the start and end of a session. Nothing waits for upkeep, and
    it ends by itself. Errors are logged in the home's hook.log."""
    root = os.path.abspath(home)
    at = named_home(root, os.environ) or home_at(root, os.environ)
    try:
        start_upkeep_of(at, at.settings().upkeep)
    except (SessionMemoryError, OSError) as error:
        HookLog(at).write_fault("upkeep", error)


def session_updates_hook(
    home: str | os.PathLike[str],
    session: str,
    *,
    timeout_seconds: float = 1.0,
    is_fork: bool = False,
) -> HookCallback:
    """Return a callback that tells the session `session` of the agent home `home` about the others.

        ClaudeAgentOptions(hooks={"UserPromptSubmit": [HookMatcher(hooks=[session_updates_hook(home,
        "discord")])]})

    The callback answers `{}` if there is nothing to report, after `timeout_seconds`, and on every
    fault, which is logged in the home's hook.log. It raises only the cancellation of its own task.
    The SDK would drop a prompt whose callback takes too long. Reports that miss the timeout come
    with the next prompt.

    Set `is_fork` with `ClaudeAgentOptions(fork_session=True)`, because no callback can tell a fork
    from a new session. A fork inherits its parent's messages, so nothing before its first prompt is
    reported."""
    root = os.path.abspath(home)

    def offer(event: Any, handover: Handover) -> None:
        if _CLAUDE.is_from_a_person(str(event.get("prompt", ""))):
            context = _context(root, session, event)
            if is_fork:
                start_listening(context)
            offer_update(context, handover)

    return answering(HookLog(home_at(root, os.environ)), "UserPromptSubmit", timeout_seconds, offer)


def file_collisions_hook(
    home: str | os.PathLike[str], session: str, *, timeout_seconds: float = 1.0
) -> HookCallback:
    """Return a callback that warns the agent of `session` about other sessions' changes to a file.

    The warning comes with the result of an edit, and covers changes since the session's last
    prompt.

        ClaudeAgentOptions(
            hooks={"PreToolUse": [HookMatcher("Edit|Write|NotebookEdit", [file_collisions_hook(home,
            "discord")])]}
        )

    The callback answers `{}` if there is nothing to report, after `timeout_seconds`, and on every
    fault, which is logged in the home's hook.log. Reports that miss the timeout come later."""
    root = os.path.abspath(home)

    def offer(event: Any, handover: Handover) -> None:
        if is_answered(event, _CLAUDE):
            offer_collisions(_context(root, session, event), handover)

    return answering(HookLog(home_at(root, os.environ)), "PreToolUse", timeout_seconds, offer)


def conversation_archive_hook(
    home: str | os.PathLike[str], session: str, *, timeout_seconds: float = 60.0
) -> HookCallback:
    """Return a callback that archives the conversation of `session` before compaction (PreCompact).

        ClaudeAgentOptions(hooks={"PreCompact": [HookMatcher(hooks=[conversation_archive_hook(home,
        "discord")])]})

    The callback always answers `{}`. Compaction continues after `timeout_seconds`, and on every
    fault, which is logged in the home's hook.log. The archive is completed in any case."""
    root = os.path.abspath(home)

    def archive(event: Any, handover: Handover) -> None:
        end(_context(root, session, event))

    return answering(HookLog(home_at(root, os.environ)), "PreCompact", timeout_seconds, archive)


def _context(root: str, session: str, event: Any) -> Context:
    """Return the context of a session whose name the host knows. Raises EventError, ConfigError."""
    home = named_home(root, os.environ)
    if home is None:
        raise EventError(f"{root} has no named sessions")
    own_path = event.get("transcript_path")
    if not is_name(session) or not isinstance(own_path, str) or not own_path:
        raise EventError(
            f"{session!r} is not the name of a session, or the event names no transcript"
        )
    session_id, directory = str(event.get("session_id") or session), str(event.get("cwd") or "")
    return Context(
        event, home, session, own_path, _CLAUDE, session_id=session_id, directory=directory
    )
