"""Callbacks for claude-agent-sdk: the work of a hook in a thread, whose answer counts only if it comes in time.

The SDK is not imported here.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from ..errors import SessionMemoryError
from ..runtimes import runtime
from .prompt import count_as_told, joined, memories_for, update_for, write_notes
from .tool_call import delivery_for, find_holds, hold_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from claude_agent_sdk import HookCallback, HookContext, HookInput, HookJSONOutput

    from .context import Context
    from .log import HookLog

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.02


def answering(
    log: HookLog, event_name: str, timeout_seconds: float, work: Callable[[Any, Handover], None]
) -> HookCallback:
    """A callback that answers with what `work`, given the event, offers in time, and with `{}` otherwise.

    `work` runs in a thread, since files can take their time. What it raises is written to `log`.
    """

    async def answer(event: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        handover = Handover(monotonic() + timeout_seconds)

        def run() -> None:
            try:
                work(event, handover)
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
        return cast("HookJSONOutput", runtime("agent-sdk").context_output(text, event_name) if text else {})

    return answer


def offer_update(context: Context, handover: Handover) -> None:
    """Offers what the session was not told yet, and the memories that its prompt is about. Raises SessionMemoryError,
    OSError: then no cursor moved."""
    with update_for(context, {}) as update:
        memories = memories_for(context, update.text or "")
        handover.offer(joined(update.text, memories.text if memories else "") or None)
        count_as_told(context, memories)
    write_notes(context, context.runtime.PROMPT_EVENT)


def offer_collisions(context: Context, handover: Handover) -> None:
    """Offers what others did to the file that a tool is about to edit. Nobody is asked: a program may have nobody to
    ask. Raises SessionMemoryError, OSError: then it was not told."""
    holds = find_holds(context)
    delivery = delivery_for(context)
    if delivery is not None:
        with delivery:
            if holds:
                hold_back(context, delivery, holds, can_ask=False)
            handover.offer(delivery.text or None)
    write_notes(context, context.runtime.TOOL_EVENT)


class TooLateError(SessionMemoryError):
    """The runtime no longer waits for the answer to a prompt."""


class Handover:
    """A text on its way from the thread that makes it to the callback that answers with it.

    The text counts as told once it is received. If either side ends the handover before, it is not: an update that took
    too long moves no cursor.
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
        """What is offered before the deadline, else None.

        It polls: the SDK runs on asyncio and on trio, and on both any other way to wait for a thread would wait for one
        that is stuck.
        """
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
        """Ends the handover: what was not received by now will not be."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
