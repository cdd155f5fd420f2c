#!/usr/bin/env python3
"""An agent with named sessions that know of each other.

    ./agent.py "message"                      says it in the session `main`
    ./agent.py --session discord "message"    in another; each goes on where it was
    ./agent.py --session discord              a conversation, until the input ends or Ctrl-C

Who the agent is stands in AGENTS.md, what it can do in .claude/skills, which tools it may use
without asking below and in .claude/settings.json. `session-memory new` on this directory renews
this file, and keeps what you made of it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent
SESSIONS = HOME / ".session-memory" / "sessions"
SWITCHING = ("mcp__sessions__clear_session", "mcp__sessions__resume_session")
DATA = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_DATA_HOME")
PROGRAM = Path(DATA or Path.home() / ".local" / "share", "session-memory")
PYTHON = PROGRAM / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

sys.path.append(str(PROGRAM / "app"))
try:
    from claude_agent_sdk import (
        AssistantMessage,
        ClaudeAgentOptions,
        ClaudeSDKClient,
        ClaudeSDKError,
        HookMatcher,
        ResultMessage,
        StreamEvent,
        SystemMessage,
        ToolUseBlock,
        get_session_info,
    )

    from session_memory.agent_sdk import (
        conversation_archive_hook,
        file_collisions_hook,
        lookup_options,
        session_updates_hook,
        start_upkeep,
    )
except ImportError as error:
    # The environment of session-memory has both, if it was asked for the SDK.
    if PYTHON.exists() and Path(sys.prefix).resolve() != PYTHON.parent.parent.resolve():
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    sys.exit(
        f"agent: {error.name} is not installed; this installs it: session-memory install --with sdk"
    )


class AgentError(Exception):
    """What went wrong, in one line."""


def options(session: str, stderr: list[str]) -> ClaudeAgentOptions:
    """How the runtime is started for a session."""
    lookups = lookup_options(HOME)
    return ClaudeAgentOptions(
        cwd=HOME,
        env={"SESSION_MEMORY_HOME": str(HOME)},  # for what the skills run
        resume=remembered(session),
        system_prompt={"type": "preset", "preset": "claude_code"},
        setting_sources=["project"],
        permission_mode="acceptEdits",
        mcp_servers=lookups["mcp_servers"],
        allowed_tools=["Skill", "Read", "Glob", "Grep", *SWITCHING, *lookups["allowed_tools"]],
        hooks={
            "UserPromptSubmit": [HookMatcher(hooks=[session_updates_hook(HOME, session)])],
            "PreToolUse": [
                HookMatcher(
                    matcher="Edit|Write|NotebookEdit", hooks=[file_collisions_hook(HOME, session)]
                )
            ],
            "PreCompact": [HookMatcher(hooks=[conversation_archive_hook(HOME, session)])],
        },
        include_partial_messages=True,
        stderr=stderr.append,
    )


def pointer(session: str) -> str | None:
    """The id that the session's name points to; None without one. The agent's tools may clear or
    change it."""
    try:
        return str(json.loads((SESSIONS / f"{session}.json").read_bytes())["sessionId"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remembered(session: str) -> str | None:
    """The id under which the session goes on; None for a new one, or one whose transcript is
    gone."""
    session_id = pointer(session)
    if session_id and get_session_info(session_id, directory=str(HOME)) is None:
        print(f"agent: the transcript of {session} is gone; it begins anew", file=sys.stderr)
        return None
    return session_id


def remember(session: str, session_id: str) -> None:
    """Writes the id down in one step, so that nobody ever reads half of it."""
    SESSIONS.mkdir(parents=True, exist_ok=True)
    temporary = SESSIONS / f".{session}.{os.getpid()}.tmp"
    temporary.write_text(json.dumps({"sessionId": session_id}) + "\n")
    temporary.replace(SESSIONS / f"{session}.json")


async def say(client: ClaudeSDKClient, session: str, message: str) -> str:
    """Sends a message, and prints the reply as it comes; on a terminal also which tools are used.
    Returns the id of the conversation. Raises AgentError."""
    await client.query(message)
    is_line_open, session_id = False, ""
    async for event in client.receive_response():
        if isinstance(event, SystemMessage) and event.subtype == "init":
            session_id = event.data["session_id"]
            remember(session, session_id)
        elif isinstance(event, StreamEvent) and not event.parent_tool_use_id:
            text = event.event.get("delta", {}).get("text", "")
            print(text, end="", flush=True)
            is_line_open = bool(text) or is_line_open
            if event.event["type"] == "content_block_stop" and is_line_open:
                print(flush=True)
                is_line_open = False
        elif isinstance(event, AssistantMessage) and sys.stdout.isatty():
            for block in event.content:
                if isinstance(block, ToolUseBlock):
                    print(f"\x1b[2m[{block.name}]\x1b[0m", flush=True)
        elif isinstance(event, ResultMessage) and event.is_error:
            raise AgentError(event.result or event.subtype)
    return session_id


async def converse(session: str, message: str) -> None:
    """Says one message, or without one every line that is typed. Raises AgentError."""
    stderr: list[str] = []
    line = message or read_line(session)
    try:
        while line:
            async with ClaudeSDKClient(options(session, stderr)) as client:
                session_id = pointer(session)
                while line and pointer(session) == session_id:
                    if line.strip():
                        session_id = await say(client, session, line.strip())
                    line = "" if message else read_line(session)
    except ClaudeSDKError as error:
        raise AgentError(
            (stderr or str(error).splitlines() or ["the runtime failed"])[-1]
        ) from error


def read_line(session: str) -> str:
    """The next line; '' at the end of the input. While somebody types there is nothing else to do,
    so it may block."""
    try:
        return input(f"{session}> " if sys.stdin.isatty() else "") + "\n"
    except EOFError:
        return ""


def stop(number: int, frame: object) -> None:
    """Ctrl-C. asyncio's own handler, which steps in where there is no other, would wait for the end
    of `input`."""
    raise KeyboardInterrupt


def main() -> None:
    parser = argparse.ArgumentParser(
        description="An agent with named sessions that know of each other."
    )
    parser.add_argument("--session", default="main", metavar="NAME", help="which session (main)")
    parser.add_argument("message", nargs="*", help="what to say; without it, a conversation")
    arguments = parser.parse_args()
    if not re.fullmatch(r"(?!new-)[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", arguments.session):
        parser.error("a session's name is letters, digits, - and _, and does not begin with new-")
    signal.signal(signal.SIGINT, stop)
    try:
        asyncio.run(converse(arguments.session, " ".join(arguments.message)))
    except AgentError as error:
        sys.exit(f"agent: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        start_upkeep(HOME)


if __name__ == "__main__":
    main()
