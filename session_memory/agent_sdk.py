"""The hooks as callbacks for claude-agent-sdk: what they do as processes, inside a host that serves a home.

The SDK is not imported here: that takes over a second, and whoever holds a callback has done it already.
"""

from __future__ import annotations

import os
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from .errors import SessionMemoryError
from .hooks.prompt import Log, Place, UnknownSessionError, tell
from .runtimes import claude
from .settings.homes import Home, agent_home
from .text.names import is_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_agent_sdk import HookCallback, HookContext, HookInput, HookJSONOutput

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.02


def session_updates_hook(
    home: str | os.PathLike[str], session: str, *, timeout_seconds: float = 1.0, is_fork: bool = False
) -> HookCallback:
    """A callback that tells the session named `session` of the agent home `home` what the other sessions did.

        ClaudeAgentOptions(hooks={"UserPromptSubmit": [HookMatcher(hooks=[session_updates_hook(home, "discord")])]})

    It answers `{}` where there is nothing to tell, after `timeout_seconds`, and on every fault, which is a line in the
    home's hook.log; it raises nothing but the cancellation of its own task. The SDK would drop a prompt whose callback
    takes too long. What was not answered in time is told at the next prompt.

    `is_fork` goes with `ClaudeAgentOptions(fork_session=True)`, which no callback can tell from a new session: what was
    there before its first prompt is not told to it, since it knows that from the session that it was forked from.
    """
    root = os.path.abspath(home)

    def find_text(event: Any, handover: Handover, log: Log) -> None:
        if claude.is_from_a_person(str(event.get("prompt", ""))):
            place = _place(root, session, event)
            if is_fork:
                place.start_here()
            tell(place, log, handover.offer)

    return answering(Home(root), "UserPromptSubmit", timeout_seconds, find_text)


def conversation_archive_hook(
    home: str | os.PathLike[str], session: str, *, timeout_seconds: float = 60.0
) -> HookCallback:
    """A callback that archives the conversation of `session` before it is compacted, for the PreCompact event.

        ClaudeAgentOptions(hooks={"PreCompact": [HookMatcher(hooks=[conversation_archive_hook(home, "discord")])]})

    It always answers `{}`: the compaction goes on after `timeout_seconds`, and on every fault, which is a line in the
    home's hook.log. The archive is written to its end all the same.
    """
    root = os.path.abspath(home)

    def archive(event: Any, handover: Handover, log: Log) -> None:
        from .hooks.archive import keep_when_written

        keep_when_written(_place(root, session, event))

    return answering(Home(root), "PreCompact", timeout_seconds, archive)


def answering(
    home: Home, event_name: str, timeout_seconds: float, work: Callable[[Any, Handover, Log], None]
) -> HookCallback:
    """A callback that answers with what `work`, in a thread of its own since files can take their time, offers. Faults
    are logged in `home`."""

    async def answer(event: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        log = Log(home)
        handover = Handover(monotonic() + timeout_seconds)

        def run() -> None:
            try:
                work(event, handover, log)
            except BaseException as error:
                log.write_fault(event_name, error)
            finally:
                handover.end()

        try:
            threading.Thread(target=run, daemon=True).start()
            text = await handover.receive()
        except Exception as error:
            log.write_fault(event_name, error)
            text = None
        finally:
            handover.end()
        return cast("HookJSONOutput", claude.context_output(text) if text else {})

    return answer


class TooLateError(SessionMemoryError):
    """The runtime no longer waits for the answer to a prompt."""


class Handover:
    """A text on its way from the thread that finds it to the callback that answers with it.

    It counts as told from the moment in which it is received. Before that either side may end the handover, and then
    neither does: a look that took too long moves no cursor.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._changed = threading.Condition()
        self._text: str | None = None
        self._is_offered = self._is_received = self._is_over = False

    def offer(self, text: str | None) -> None:
        """Waits until `text` was received. Raises TooLateError if that does not happen before the deadline."""
        with self._changed:
            self._text, self._is_offered = text, True
            self._changed.wait_for(lambda: self._is_over, max(0.0, self._deadline - monotonic()))
            self._is_over = True
            if not self._is_received:
                raise TooLateError("the answer was not ready in time: nothing was told, and no cursor moved")

    async def receive(self) -> str | None:
        """What is offered before the deadline, else None. It polls: the SDK runs on asyncio and on trio, and there is
        no other way to wait for a thread on both that a stuck one cannot keep from ending."""
        import anyio

        pause = _FIRST_PAUSE_SECONDS
        while not self._is_over and monotonic() < self._deadline:
            with self._changed:
                if self._is_offered and not self._is_over:
                    self._is_received = self._is_over = True
                    self._changed.notify()
                    return self._text
            await anyio.sleep(min(pause, max(0.0, self._deadline - monotonic())))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return None

    def end(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()


def _place(root: str, session: str, event: Any) -> Place:
    """The place of a session whose name the host knows. Raises UnknownSessionError."""
    home = agent_home(root, stop=root.rpartition("/")[0])
    if home is None:
        raise UnknownSessionError(f"{root} holds no named sessions")
    own_path = event.get("transcript_path")
    if not is_name(session) or not isinstance(own_path, str) or not own_path:
        raise UnknownSessionError(f"{session!r} is no name of a session, or the event names no transcript")
    return Place(home, session, own_path, "", claude, str(event.get("session_id") or session))
