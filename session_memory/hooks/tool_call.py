"""A tool call: what others did to the files that it is about to edit, and whether a person is to be asked before."""

from __future__ import annotations

import time

from ..activity.call_collisions import Call, CallDelivery, CallSearch
from ..activity.call_log import CallLog
from ..settings.compiled import ASK, OFF
from ..settings.homes import environment
from ..text.paths import resolved
from ..transcripts.entries import INTRODUCTION
from .prompt import own_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..activity.held_calls import Hold
    from ..runtimes import Runtime
    from ..transcripts.entries import ToolUse
    from .context import Context, Event

_EDIT = "edit"


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Whether the call edits a file, or may be one of git."""
    calls = runtime.tool_calls(event)
    return any([bool(call.argument) and (call.kind == _EDIT or "git" in call.argument) for call in calls])


def answer(context: Context, print_answer: Callable[[dict[str, Any]], None]) -> None:
    """Prints what the agent is to be told with the result of the call, or what a person is asked before it is made, if
    anything. Raises SessionMemoryError, OSError: then it was not told."""
    runtime = context.runtime
    holds = find_holds(context)  # before anything is locked
    delivery = context.deadline.attempt("collisions", delivery_for, context)
    if delivery is None and holds:
        delivery = CallDelivery(CallLog(context.cursor_file, runtime.sub_agent(context.event)))
    if delivery is not None:
        with delivery:
            if holds:
                hold_back(context, delivery, holds, can_ask=runtime.can_ask(context.event, environment()))
            if delivery.reason:
                print_answer(runtime.held_output(delivery.reason, delivery.text))
            elif delivery.text:
                print_answer(runtime.context_output(delivery.text, runtime.TOOL_EVENT))


def delivery_for(context: Context) -> CallDelivery | None:
    """What others did to the files, to be told in a `with` block; None where the settings want nothing told. Raises
    SessionMemoryError, OSError."""
    runtime, event, settings = context.runtime, context.event, context.settings
    tools = runtime.tool_calls(event)
    agent, cwd = runtime.sub_agent(event), _cwd(event)
    calls = [Call(resolved(one.argument, cwd), one.call_id, agent) for one in tools if one.kind == _EDIT]
    if not tools or settings.collisions == OFF or not (calls or settings.collisions == ASK):
        return None
    if not calls:
        return CallDelivery(CallLog(context.cursor_file, agent))
    others = context.other_sessions()
    search = CallSearch(own_session(context, environment()), calls, others, settings, time.time())
    return search.delivery(INTRODUCTION, settings.max_characters)


def find_holds(context: Context) -> list[tuple[ToolUse, Hold]]:
    """Return what speaks against the call, file by file, where the settings want that looked for. A git command that
    could not be judged in time is held as well."""
    tools, settings = context.runtime.tool_calls(context.event), context.settings
    if not tools or settings.collisions != ASK:
        return []
    from ..activity.held_calls import HoldSearch, unjudged

    cwd, deadline = _cwd(context.event), context.deadline
    others = context.other_sessions()
    search = HoldSearch(own_session(context, environment()), others, settings, time.time())
    found = []
    for tool in tools:
        is_edit, before = tool.kind == _EDIT, len(deadline.late)
        if is_edit:
            hold = deadline.attempt("edit", search.of_edit, resolved(tool.argument, cwd))
        else:
            hold = deadline.attempt("git command", search.of_command, tool.argument, cwd)
            if hold is None and len(deadline.late) > before:
                hold = unjudged(tool.argument)
        if hold is not None:
            found.append((tool, hold))
    return found


def hold_back(context: Context, delivery: CallDelivery, holds: list[tuple[ToolUse, Hold]], *, can_ask: bool) -> None:
    """Has a person asked before the call is made; where nobody `can_ask`, the agent is told it. An edit that was
    allowed is not asked about again, unless the other session has edited the file again. Raises LockedError,
    OSError."""
    from ..activity.held_calls import reason_of, was_allowed

    own, has_text, room = own_session(context, environment()), bool(delivery.text), context.settings.max_characters
    reasons: list[str] = []
    for tool, hold in holds:
        key = f"held {hold.session} {hold.path} "
        earlier = delivery.settled(key, hold.time) if tool.kind == _EDIT else []
        was_asked = any([was_allowed(own, call_id) for call_id in earlier if call_id])
        if was_asked if can_ask else earlier or has_text:
            continue
        reasons.append(reason_of(hold, own.directory, time.time()))
        if reasons[1:] and len(INTRODUCTION + "\n! ".join(reasons)) + 2 > room:  # the rest is told with another call
            del reasons[-1]
            break
        if tool.kind == _EDIT:
            delivery.settle(key + (tool.call_id if can_ask else ""), hold.time)
    if reasons and can_ask:
        delivery.reason = "; ".join(reasons)
    elif reasons:
        delivery.text = INTRODUCTION + "".join([f"! {reason}\n" for reason in reasons])[:-1]


def _cwd(event: Event) -> str:
    return str(event.get("cwd", ""))
