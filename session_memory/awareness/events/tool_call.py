"""Tool call: collisions over the files to be edited, additions by features, and objections.

The user is asked about an objection.
"""

from __future__ import annotations

import time

from ...common.system.deadline import DeadlineError
from ...common.system.files import status_at, without_links
from ...common.text.paths import resolved
from ...sessions.runtimes.base import REFUSED
from ...sessions.settings.compiled import ASK, OFF
from ...sessions.transcripts.entries import INTRODUCTION, ToolUse
from ..activity.call_collisions import CallDelivery, CallSearch
from ..activity.call_log import CallLog
from ..activity.changes import inbox_stamp
from .prompt import note_status, observation, own_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from os import stat_result

    from ...sessions.runtimes.base import Runtime
    from ..activity._approval import Objection
    from ..activity.changes import OwnSession
    from .context import Context, Event

_EDIT = "edit"
# in git commands that may take away a stash, a worktree or commits
LOSING = ("stash", "worktree", "branch", "reset", "push", "ref", "checkout", "switch", "rebase")
_LONGEST_PATH = 4096  # no system has longer ones
ASKER = "session-memory"  # the dialog names the program that asks
REFUSED_SECONDS = 900.0  # in which a command is not refused a second time for the same session


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Check if the call edits a file, or may run git or a package manager."""
    calls = [call for call in runtime.tool_calls(event) if call.argument]
    if any([call.kind == _EDIT for call in calls]):
        return True
    from ...common.text.acting_commands import may_act

    return any([may_act(call.argument) for call in calls])


def answer(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    """Print the agent's text with the call's result, or the question to the user before the call.

    At the deadline the user is asked about a call that is not judged yet. Raises
    SessionMemoryError, OSError; in that case nothing counts as reported."""
    printed: list[bool] = []

    def print_once(output: dict[str, object]) -> None:
        print_answer(output)
        printed.append(True)

    try:
        if context.settings.collisions == ASK:
            # This comes first, because a call that cannot be judged in time is judged by these
            # statuses.
            _statuses_of(context)
        _answer(context, print_once)
    except DeadlineError:
        if not printed and context.settings.collisions == ASK:
            _answer_unjudged(context, print_answer)
        raise


def _answer_unjudged(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    """Ask about a git command, or about an edit of a file that may have changed.

    It may differ from the version that the session last saw."""
    from ..activity._approval import reason_of, unjudged

    runtime, event = context.runtime, context.event
    command = next((call.argument for call in runtime.tool_calls(event) if call.kind != _EDIT), "")
    session = own_session(context)
    objection = unjudged(command) if command else None
    for path in () if command else _statuses_of(context):
        objection = objection or _unjudged_edit(context, session, path)
    if objection is None:
        return
    reason = reason_of(objection, session, time.time())
    if runtime.can_ask(event, context.environ):
        print_answer(runtime.held_output(f"{ASKER}: {reason}", ""))
    elif not runtime.REFUSES:  # nothing would keep the next call from the same refusal
        print_answer(runtime.context_output(f"{INTRODUCTION}! {reason}", runtime.TOOL_EVENT))


def _statuses_of(context: Context) -> dict[str, stat_result | None]:
    """Return the first known status of each file that the call is about to edit."""
    if context.statuses is None:
        cwd, calls = _cwd(context.event), context.runtime.tool_calls(context.event)
        paths = [resolved(call.argument, cwd) for call in calls if call.kind == _EDIT]
        there = [without_links(path) for path in paths if len(path) <= _LONGEST_PATH]
        context.statuses = {path: status_at(path) for path in there}
    return context.statuses


def _unjudged_edit(context: Context, session: OwnSession, path: str) -> Objection | None:
    """Return the objection to an edit that could not be judged in time.

    Return None if the file is as the session left it."""
    from ..activity._approval import unjudged
    from ..activity._last_seen import may_differ

    status = _statuses_of(context).get(path)
    return (
        unjudged("", path, status.st_mtime if status else 0.0)
        if may_differ(session, path, status)
        else None
    )


def _answer(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    runtime = context.runtime

    def tell(delivery: CallDelivery) -> None:
        if delivery.reason:
            print_answer(runtime.held_output(delivery.reason, delivery.text))
        elif delivery.text:
            print_answer(runtime.context_output(delivery.text, runtime.TOOL_EVENT))

    delivery = deliver(context, tell, can_ask=runtime.can_ask(context.event, context.environ))
    if delivery is not None and context.settings.statusline:
        note_status(context, observation(context), delivery.edit)


def deliver(
    context: Context, tell: Callable[[CallDelivery], None], *, can_ask: bool
) -> CallDelivery | None:
    """Return the delivery for the call, or None; it counts as reported after `tell`.

    Raises SessionMemoryError, OSError."""
    attempt = context.deadline.attempt
    attempt("git's refs", _note_refs, context)
    objections = _find_objections(context, can_ask=can_ask)  # before anything is locked
    delivery = attempt("collisions", _delivery_for, context)
    # no call is refused for what a feature adds
    features = () if context.runtime.REFUSES else context.features("call")
    answers = [context.ask(feature) for feature in features]
    additions = [add for add in answers if callable(add)]
    if delivery is None and (objections or additions):
        delivery = CallDelivery(
            CallLog(context.cursor_file, context.runtime.sub_agent(context.event))
        )
    if delivery is not None:
        with delivery:
            if objections:
                _object_to(context, delivery, objections, can_ask=can_ask)
            for add in additions:
                add(delivery)
            tell(delivery)
    return delivery


def _note_refs(context: Context) -> None:
    """Note the refs of git before the call may take some of them away. Raises OSError."""
    tools, cwd = context.runtime.tool_calls(context.event), _cwd(context.event)
    commands = [tool.argument for tool in tools if tool.kind != _EDIT]
    losing = [word for word in LOSING for command in commands if word in command]
    if not losing or not cwd or context.settings.collisions == OFF:
        return
    from ...common.system.git import find_worktree
    from ..activity.collisions.ref_notes import note

    worktree = find_worktree(cwd, context.home.user_dir)
    if worktree is not None:
        note(context.home, worktree.git_dir, time.time(), is_forced=True)


def _delivery_for(context: Context) -> CallDelivery | None:
    """Return the delivery of collisions over the files, for a `with` block.

    Return None if the settings want none. Raises SessionMemoryError, OSError."""
    runtime, event, settings = context.runtime, context.event, context.settings
    tools = runtime.tool_calls(event)
    agent, cwd = runtime.sub_agent(event), _cwd(event)
    calls = [(resolved(tool.argument, cwd), tool.call_id) for tool in tools if tool.kind == _EDIT]
    if not tools or settings.collisions == OFF or not (calls or settings.collisions == ASK):
        return None
    if not calls:
        return CallDelivery(CallLog(context.cursor_file, agent))
    others = context.other_sessions()
    search = CallSearch(own_session(context), calls, agent, others, settings, time.time())
    return search.delivery(INTRODUCTION, _room(context))


def _find_objections(context: Context, *, can_ask: bool) -> list[tuple[ToolUse, Objection]]:
    """Return the objections to the call, file by file, if the settings want them.

    If the user can be asked, they include edits of conflicting lines. A git command that could not
    be judged in time is an objection."""
    tools, settings = context.runtime.tool_calls(context.event), context.settings
    if not tools or settings.collisions != ASK:
        return []
    from ..activity._approval import ObjectionSearch, unjudged

    cwd, deadline = _cwd(context.event), context.deadline
    others = context.other_sessions()
    session = own_session(context)
    search = ObjectionSearch(session, others, settings, time.time())
    replaced = (
        context.runtime.replaced_texts(context.event) if can_ask and inbox_stamp(session) else []
    )
    objections = []
    for tool in tools:
        is_edit, before = tool.kind == _EDIT, len(deadline.late)
        if is_edit:
            path = resolved(tool.argument, cwd)
            objection = deadline.attempt("edit", search.of_edit, path)
            if objection is None and len(deadline.late) > before:
                objection = _unjudged_edit(context, session, without_links(path))
            conflict = (
                deadline.attempt("conflicts", search.of_conflict, path, replaced)
                if replaced
                else None
            )
            objections += [(tool, conflict)] if conflict else []
        else:
            objection = deadline.attempt("git command", search.of_command, tool.argument, cwd)
            if objection is None and len(deadline.late) > before:
                objection = unjudged(tool.argument)
        if objection is not None:
            objections.append((tool, objection))
    return objections


def _object_to(
    context: Context,
    delivery: CallDelivery,
    objections: list[tuple[ToolUse, Objection]],
    *,
    can_ask: bool,
) -> None:
    """Ask the user before the call; if the runtime cannot ask, tell the agent.

    After the user permitted an edit, the question is repeated only if the other session has edited
    the file again. Raises LockedError, OSError."""
    from ..activity._approval import reason_of, was_allowed

    session, has_text, room = own_session(context), bool(delivery.text), _room(context)
    refuses, now = context.runtime.REFUSES, time.time()
    reasons: list[str] = []
    for tool, objection in objections:
        key = f"held {objection.session} {objection.path} "
        is_settled = refuses or tool.kind == _EDIT
        earlier = delivery.settled(key, objection.time) if is_settled else []
        was_asked = any([was_allowed(session, call_id) for call_id in earlier if call_id])
        if was_asked if can_ask else earlier or has_text:
            continue
        reasons.append(reason_of(objection, session, now))
        # the rest comes with another call
        if reasons[1:] and len(INTRODUCTION + "\n! ".join(reasons)) + 2 > room:
            del reasons[-1]
            break
        if tool.kind == _EDIT:
            delivery.settle(key + (tool.call_id if can_ask else ""), objection.time)
        elif refuses:
            delivery.settle(key, now + REFUSED_SECONDS)
    if reasons and can_ask:
        delivery.reason = f"{ASKER}: {'; '.join(reasons)}"
    elif reasons:
        delivery.text = INTRODUCTION + "".join([f"! {reason}\n" for reason in reasons])[:-1]


def _room(context: Context) -> int:
    """Return the characters that a text with a call may have."""
    room = context.settings.max_characters
    return room - len(REFUSED) if context.runtime.REFUSES else room


def _cwd(event: Event) -> str:
    return str(event.get("cwd", ""))
