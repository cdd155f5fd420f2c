"""Start of a sub-agent: it gets, once, the facts that concern its task.

These are collisions over the files that the task names, and additions by features. The updates of
its session wait for the next prompt as usual.
"""

from __future__ import annotations

import time

from ...common.system.files import is_file, read_end, without_links
from ...common.text.paths import resolved
from ...sessions.settings.compiled import OFF
from ...sessions.transcripts.entries import INTRODUCTION
from ..activity.actions import is_of_agent
from ..activity.call_collisions import CallDelivery, CallSearch
from ..activity.call_log import CallLog
from .prompt import own_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...sessions.runtimes.base import Runtime
    from .context import Context, Event

CHARACTERS = 300
MOST_FILES = 20  # named in one task
_SHOWN_BYTES = 4 * 1024 * 1024  # of a sub-agent's transcript, searched for an earlier report
_AROUND = "`'\"()[]<>{}*,;:!?@"


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Check if the event is the start of a sub-agent."""
    return (
        bool(runtime.sub_agent(event)) and event.get("hook_event_name") == runtime.SUB_AGENT_EVENT
    )


def answer(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    """Print the facts that concern the task, if there are any.

    Raises SessionMemoryError, OSError: then nothing counts as reported."""
    runtime = context.runtime
    agent = runtime.sub_agent(context.event)
    task = "" if _was_told(context, agent) else "\n".join(runtime.tasks(context.event))
    if not task:
        return
    paths = _files_in(task, str(context.event.get("cwd", "")))
    delivery = context.deadline.attempt("collisions", _collisions, context, agent, paths)
    delivery = delivery or CallDelivery(CallLog(context.cursor_file, agent))
    delivery.is_start = True
    with delivery:
        delivery.text = delivery.text.replace(", before you edited it", "")  # it has not
        for feature in context.features("sub-agent"):
            context.ask(feature, delivery, paths, task, CHARACTERS)
        if delivery.text:
            print_answer(runtime.context_output(delivery.text, runtime.SUB_AGENT_EVENT))


def _was_told(context: Context, agent: str) -> bool:
    """Check if the sub-agent's own transcript shows a report from an earlier start."""
    context.other_sessions()  # the sub-agents are known with them
    session = own_session(context)
    paths = [path for path in (session.path, *session.sub_agents()) if is_of_agent(path, agent)]
    begins = INTRODUCTION.strip().encode()
    return any([begins in read_end(path, _SHOWN_BYTES) for path in paths if is_file(path)])


def _files_in(task: str, cwd: str) -> list[str]:
    """Return the files that a task names and that exist."""
    words = [word.strip(_AROUND).rstrip(".") for word in task.split()]
    named = dict.fromkeys([word for word in words if "/" in word or "." in word])
    paths = [
        path for path in [without_links(resolved(word, cwd)) for word in named] if is_file(path)
    ]
    return paths[:MOST_FILES]


def _collisions(context: Context, agent: str, paths: list[str]) -> CallDelivery | None:
    if not paths or context.settings.collisions == OFF:
        return None
    others = context.other_sessions()
    calls = [(path, "") for path in paths]
    session = own_session(context)
    search = CallSearch(session, calls, agent, others, context.settings, time.time(), is_start=True)
    return search.delivery(INTRODUCTION, CHARACTERS)
