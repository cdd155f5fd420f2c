"""A tool call: what others did to the file that it is about to edit."""

from __future__ import annotations

import time

from ..activity.call_collisions import Call, CallSearch
from ..settings.compiled import OFF
from ..text.paths import resolved
from .prompt import INTRODUCTION, own_session, write_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..activity.call_collisions import CallDelivery
    from ..runtimes import Runtime
    from .context import Context, Event

_EDIT = "edit"


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Whether the call edits a file. It ends here for a command."""
    call = runtime.HOOKS.tool_call(event)
    return call is not None and call.kind == _EDIT and bool(call.argument)


def answer(context: Context, print_answer: Callable[[dict[str, Any]], None]) -> None:
    """Prints what the agent is to be told with the result of the call, if anything. Raises SessionMemoryError,
    OSError: then it was not told."""
    hooks = context.runtime.HOOKS
    if context.settings.collisions == OFF:
        return
    with delivery_for(context) as delivery:
        if delivery.text:
            print_answer(hooks.context_output(delivery.text, hooks.TOOL_EVENT))


def delivery_for(context: Context) -> CallDelivery:
    """What others did to the file, to be told in a `with` block. Raises SessionMemoryError, OSError."""
    hooks, event, settings = context.runtime.HOOKS, context.event, context.settings
    tool = hooks.tool_call(event)
    path = resolved(tool.argument, str(event.get("cwd", ""))) if tool else ""
    call = Call(path, tool.call_id if tool else "", hooks.sub_agent(event))
    search = CallSearch(own_session(context), call, context.other_sessions(), settings, time.time())
    delivery = search.delivery(INTRODUCTION, settings.max_characters)
    write_notes(context, search.notes, hooks.TOOL_EVENT)
    return delivery
