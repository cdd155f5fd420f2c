"""One run of a group's agent: a claude-agent-sdk session that receives prompts while it runs."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    HookMatcher,
    ResultMessage,
    SystemMessage,
    UserMessage,
)

from ...app.tools.sdk_server import sdk_server
from ...common.errors import SessionMemoryError
from ...sessions.settings.homes import ENV_HOME, ENV_SESSION
from ...sessions.settings.host_layout import Group, Layout
from ._callbacks import archive_callback, shell_callback, updates_callback
from ._group_files import instructions_for_all
from ._launch import Launch, launch
from ._prompt_files import PromptFiles
from ._values import Prompt
from .group_backend import GroupBackend
from .settings import HostSettings

TOOLS = "session-memory"
# Disabled: the runtime's timers (it ends when idle, and the host has its own schedule), access to
# other groups' sessions, and worktrees of the repository around the host, which has all groups.
WITHOUT = (
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
    "ListAgents",
    "EnterWorktree",
    "ExitWorktree",
)
SHELLS = "Bash|Monitor"
NO_GIT = "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS"
LAST_LINES = 5
STOP_SECONDS = 20.0
# A runtime sets these for the programs it starts, and the host may be such a program.
OF_ANOTHER_SESSION = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA")


class SessionStarted(NamedTuple):
    """The session runs under this id."""

    session_id: str


class PromptTaken(NamedTuple):
    """The agent has begun to work on the prompt with this id."""

    uuid: str


class TurnEnded(NamedTuple):
    """The end of a turn: the ids of its prompts, the agent's text, and the error ('' for none)."""

    uuids: tuple[str, ...]
    text: str
    error: str


class RuntimeStopped(NamedTuple):
    """The runtime ended; `error` is the reason, '' after a normal stop."""

    error: str


Event = SessionStarted | PromptTaken | TurnEnded | RuntimeStopped


class Agent:
    """A started runtime.

    `session_id` is known from the start, also for a new session. `heard` is the monotonic time of
    its last message. Its events are passed to `tell` in order; the last one is RuntimeStopped."""

    def __init__(
        self,
        options: ClaudeAgentOptions,
        session_id: str,
        tell: Callable[[Event], None],
        prepare: Callable[[], Launch],
        files: PromptFiles | None = None,
    ) -> None:
        self.session_id = session_id
        self._options = options
        self._client = ClaudeSDKClient(options)
        self._prepare = prepare
        self._files = files
        self._tell = tell
        self._stderr: list[str] = []
        options.stderr = self._stderr.append
        self.heard = time.monotonic()
        self._run = asyncio.create_task(self._receive())
        self._is_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_over = asyncio.Event()

    async def give(self, prompt: Prompt) -> None:
        """Send a prompt to the agent. If the runtime has ended, RuntimeStopped follows."""
        await self._is_ready
        if self._files:
            return await asyncio.to_thread(self._files.give, prompt)
        try:
            await self._client.query(_stream(prompt))
        except ClaudeSDKError:
            self._is_over.set()

    async def stop(self) -> None:
        """End the runtime and wait up to STOP_SECONDS. No event follows."""
        self._tell = lambda event: None
        if self._files:
            with suppress(OSError, SessionMemoryError):  # the end of stdin ends it, too
                await asyncio.to_thread(self._files.close)
        self._is_over.set()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._run, STOP_SECONDS)

    async def _receive(self) -> None:
        error = ""
        try:
            if program := await asyncio.to_thread(self._program):
                self._options.cli_path = program
            async with self._client:
                self._is_ready.set_result(None)
                reading = asyncio.create_task(self._read())
                over = asyncio.create_task(self._is_over.wait())
                try:
                    await asyncio.wait((reading, over), return_when=asyncio.FIRST_COMPLETED)
                    if reading.done():
                        reading.result()
                finally:
                    for task in (reading, over):
                        task.cancel()
                    await asyncio.gather(reading, over, return_exceptions=True)
        except (ClaudeSDKError, OSError, asyncio.TimeoutError) as failure:
            error = " ".join([*self._stderr[-LAST_LINES:], str(failure)])
        except SessionMemoryError as failure:
            error = f"{failure}; {failure.hint}" if failure.hint else str(failure)
        # the SDK raises bare exceptions for errors that the runtime reports
        except Exception as failure:
            error = f"{type(failure).__name__}: {failure}"
        finally:
            if not self._is_ready.done():
                self._is_ready.set_result(None)
            self._tell(RuntimeStopped(error))

    def _program(self) -> str:
        """Return the program to start, '' to let the SDK choose. Raises SandboxError, OSError."""
        launch = self._prepare()
        if self._files:
            self._files.clear()
        launch.check()
        return launch.program

    async def _read(self) -> None:
        async for message in self._client.receive_messages():
            self.heard = time.monotonic()
            if isinstance(message, SystemMessage) and message.subtype == "init":
                self._tell(SessionStarted(str(message.data["session_id"])))
            elif (
                isinstance(message, UserMessage)
                and message.uuid
                and message.parent_tool_use_id is None
            ):
                self._tell(PromptTaken(message.uuid))
            elif isinstance(message, ResultMessage):
                self._tell(turn_end(message))


def turn_end(message: ResultMessage) -> TurnEnded:
    """Return the event for a turn's result."""
    text = message.result or ""
    uuids = tuple(
        message.user_message_uuids
        or ([message.user_message_uuid] if message.user_message_uuid else [])
    )
    if message.is_error or message.subtype != "success":
        return TurnEnded(uuids, "", text or "; ".join(message.errors or []) or message.subtype)
    return TurnEnded(uuids, text, "")


def start(
    layout: Layout,
    group: Group,
    config: HostSettings,
    backend: GroupBackend,
    name: str,
    resume: str | None,
    tell: Callable[[Event], None],
) -> Agent:
    """Start the agent of a group in the session `resume`, or in a new one.

    Other sessions see it as `name`."""
    session_id = resume or str(uuid.uuid4())
    agent_options = options(layout, group, config, backend, name)
    if resume:
        agent_options.resume = resume
    else:
        agent_options.session_id = session_id
    return Agent(
        agent_options,
        session_id,
        tell,
        lambda: launch(layout, group, config, agent_options.env.keys()),
        PromptFiles(group) if config.prompts == "files" else None,
    )


def options(
    layout: Layout, group: Group, config: HostSettings, backend: GroupBackend, name: str
) -> ClaudeAgentOptions:
    """Return the runtime's options for a group.

    An agent works only in its group's directory: for anything else the runtime would ask for
    permission, and nobody would answer. The agent of main may read the whole host."""
    shared = "" if group.is_main else instructions_for_all(layout)
    guard = shell_callback(group, config.allowed_tools)
    prompt: Any = {
        "type": "preset",
        "preset": "claude_code",
        **({"append": shared} if shared else {}),
    }
    return ClaudeAgentOptions(
        cwd=group.root,
        model=config.model,
        system_prompt=prompt,
        setting_sources=["user", "project"],
        permission_mode="acceptEdits",
        allowed_tools=["Skill", f"mcp__{TOOLS}", *config.allowed_tools],
        disallowed_tools=list(WITHOUT),
        add_dirs=[layout.root] if group.is_main else [],
        mcp_servers={TOOLS: sdk_server(backend)},
        strict_mcp_config=True,
        hooks={
            "UserPromptSubmit": [HookMatcher(hooks=[updates_callback(group, name)])],
            "PreCompact": [HookMatcher(hooks=[archive_callback(group)])],
            **({} if group.is_main else {"PreToolUse": [HookMatcher(SHELLS, hooks=[guard])]}),
        },
        env=_environment(group, name),
        extra_args={"replay-user-messages": None},
        verbatim_prompts=True,
    )


def _environment(group: Group, name: str) -> dict[str, str]:
    """Return the variables to set beside the host's own environment."""
    return {
        "HOME": group.home,
        group.runtime.CONFIG_VARIABLE: group.config_dir,
        "CLAUDE_PROJECT_DIR": group.root,
        "ENABLE_TOOL_SEARCH": "false",
        # A repository around the host contains all groups, and its log would appear in the system
        # prompt.
        **(
            {}
            if group.is_main
            else {"GIT_CEILING_DIRECTORIES": os.path.dirname(group.root), NO_GIT: "1"}
        ),
        ENV_HOME: group.root,
        ENV_SESSION: name,
        **{key: "" for key in OF_ANOTHER_SESSION if key in os.environ},
    }


async def _stream(prompt: Prompt) -> AsyncIterator[dict[str, Any]]:
    """Yield the prompt in the SDK's form.

    The runtime records it under `uuid`, and refuses an id that it has seen before."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": prompt.text},
        "parent_tool_use_id": None,
        "uuid": prompt.uuid,
    }
