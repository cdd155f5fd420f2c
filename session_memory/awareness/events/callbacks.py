"""Callbacks for claude-agent-sdk: a hook's work in a thread, whose late answers do not count.

The SDK is not imported here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, cast

from ...common.errors import SessionMemoryError
from ...sessions.runtimes.table import runtime
from .context import Context
from .log import HookLog
from .prompt import additions, joined, observation, open_delivery, write_notes
from .tool_call import deliver

if TYPE_CHECKING:
    from claude_agent_sdk import HookCallback, HookContext, HookInput, HookJSONOutput

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.02


def answering(
    log: HookLog,
    event_name: str,
    timeout_seconds: float,
    work: Callable[[HookInput, Handover], None],
) -> HookCallback:
    """Return a callback that answers with the text that `work` offers in time, else `{}`.

    `work` gets the event and runs in a thread, because files can be slow. Its errors are written to
    `log`."""

    async def answer(
        event: HookInput, tool_use_id: str | None, context: HookContext
    ) -> HookJSONOutput:
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
        return cast(
            "HookJSONOutput", runtime("agent-sdk").context_output(text, event_name) if text else {}
        )

    return answer


def offer_update(context: Context, handover: Handover) -> None:
    """Offer an update, and the memories relevant to the prompt.

    Raises SessionMemoryError, OSError."""
    context.note_active()
    with open_delivery(context, observation(context)) as delivery:
        added, keys = additions(context, delivery)
        delivery.prepare(keys)
        handover.offer(joined(delivery.text, added) or None)
    write_notes(context, context.runtime.PROMPT_EVENT)


def offer_collisions(context: Context, handover: Handover) -> None:
    """Offer collisions over the file that a tool is about to edit, and memories that name it.

    The user is not asked, because a program may have no user. Raises SessionMemoryError, OSError;
    in that case nothing counts as reported."""
    context.note_active()
    deliver(context, lambda delivery: handover.offer(delivery.text or None), can_ask=False)
    write_notes(context, context.runtime.TOOL_EVENT)


class TooLateError(SessionMemoryError):
    """The runtime no longer waits for the answer to a prompt."""


class Handover:
    """A text on its way from the thread that makes it to the callback that answers with it.

    The text counts as reported once it is received. If either side ends the handover earlier, it
    does not count, so a late update moves no cursor."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._changed = threading.Condition()
        self._text: str | None = None
        self._is_offered = self._is_received = self._is_over = False

    def offer(self, text: str | None) -> None:
        """Wait until `text` was received.

        Raises TooLateError if that does not happen before the deadline."""
        with self._changed:
            self._text, self._is_offered = text, True
            self._changed.wait_for(lambda: self._is_over, max(0.0, self._deadline - monotonic()))
            self._is_over = True
            if not self._is_received:
                raise TooLateError(
                    "the answer was not ready in time: nothing was reported, and no cursor moved"
                )

    async def receive(self) -> str | None:
        """Return the text offered before the deadline, else None.

        It polls, because on asyncio and on trio any other way to wait for a thread would also wait
        for a stuck one."""
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
        """End the handover: a text that has not been received by now is never received."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
