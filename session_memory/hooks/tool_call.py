"""A tool call: what others did to the file that it is about to edit, and whether a person is to be asked before."""

from __future__ import annotations

import time

from ..activity.call_collisions import Call, CallDelivery, CallSearch
from ..activity.call_log import CallLog
from ..settings.compiled import ASK, OFF
from ..settings.homes import environment
from ..text.paths import resolved
from ..transcripts.entries import INTRODUCTION
from .prompt import own_session, write_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..activity.held_calls import Hold
    from ..runtimes import Runtime
    from .context import Context, Event

_EDIT = "edit"


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Whether the call edits a file, or may be one of git."""
    call = runtime.HOOKS.tool_call(event)
    return call is not None and bool(call.argument) and (call.kind == _EDIT or "git" in call.argument)


def answer(context: Context, print_answer: Callable[[dict[str, Any]], None]) -> None:
    """Prints what the agent is to be told with the result of the call, or what a person is asked before it is made, if
    anything. Raises SessionMemoryError, OSError: then it was not told."""
    hooks = context.runtime.HOOKS
    hold = find_hold(context)  # before anything is locked
    delivery = delivery_for(context)
    if delivery is not None:
        with delivery:
            if hold is not None:
                hold_back(context, delivery, hold, can_ask=hooks.can_ask(context.event, environment()))
            if delivery.reason:
                print_answer(hooks.held_output(delivery.reason, delivery.text))
            elif delivery.text:
                print_answer(hooks.context_output(delivery.text, hooks.TOOL_EVENT))


def delivery_for(context: Context) -> CallDelivery | None:
    """What others did to the file, to be told in a `with` block; None where the settings want nothing told. Raises
    SessionMemoryError, OSError."""
    hooks, event, settings = context.runtime.HOOKS, context.event, context.settings
    tool = hooks.tool_call(event)
    if tool is None or settings.collisions == OFF or (tool.kind != _EDIT and settings.collisions != ASK):
        return None
    agent = hooks.sub_agent(event)
    if tool.kind != _EDIT:
        return CallDelivery(CallLog(context.cursor_file, agent))
    call = Call(resolved(tool.argument, _cwd(event)), tool.call_id, agent)
    search = CallSearch(own_session(context, environment()), call, context.other_sessions(), settings, time.time())
    delivery = search.delivery(INTRODUCTION, settings.max_characters)
    write_notes(context, search.notes, hooks.TOOL_EVENT)
    return delivery


def find_hold(context: Context) -> Hold | None:
    """What speaks against the call, where the settings want that looked for. Raises SessionMemoryError, OSError."""
    tool, settings = context.runtime.HOOKS.tool_call(context.event), context.settings
    if tool is None or settings.collisions != ASK:
        return None
    from ..activity.held_calls import HoldSearch

    cwd = _cwd(context.event)
    search = HoldSearch(own_session(context, environment()), context.other_sessions(), settings, time.time())
    is_edit = tool.kind == _EDIT
    hold = search.of_edit(resolved(tool.argument, cwd)) if is_edit else search.of_command(tool.argument, cwd)
    write_notes(context, search.notes, context.runtime.HOOKS.TOOL_EVENT)
    return hold


def hold_back(context: Context, delivery: CallDelivery, hold: Hold, *, can_ask: bool) -> None:
    """Has a person asked before the call is made; where nobody `can_ask`, the agent is told it. An edit that was
    allowed is not asked about again, unless the other session has edited the file again. Raises LockedError,
    OSError."""
    from ..activity.held_calls import reason_of, was_allowed

    own, tool = own_session(context, environment()), context.runtime.HOOKS.tool_call(context.event)
    key = f"held {hold.session} {hold.path} "
    is_edit = tool is not None and tool.kind == _EDIT
    earlier = delivery.settled(key, hold.time) if is_edit else []
    reason = reason_of(hold, own.directory, time.time())
    if can_ask and not any([was_allowed(own, call_id) for call_id in earlier if call_id]):
        delivery.reason = reason
    elif not can_ask and not earlier and not delivery.text:
        delivery.text = f"{INTRODUCTION}! {reason}"
    else:
        return
    if tool is not None and is_edit:
        delivery.settle(key + (tool.call_id if can_ask else ""), hold.time)


def _cwd(event: Event) -> str:
    return str(event.get("cwd", ""))
