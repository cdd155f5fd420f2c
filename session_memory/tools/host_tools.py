"""The tools that a host adds for the agents of its groups: tasks, and for main the groups and chats of the host."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import results
from .backend import RefusedError
from .definitions import SEARCH_GRAPH, SEARCH_TEAM, TOOLS, Tool, arguments_schema, choice_argument, text_argument

if TYPE_CHECKING:
    from .backend import Administration, Backend
    from .definitions import Arguments, Schema

PROMPT_CHARACTERS = 10_000
_TIMES = (
    "cron: five fields in the host's local time, such as `0 8 * * 1-5`; interval: milliseconds between two runs, such "
    "as `3600000`; once: a local time such as `2026-02-21T15:30:00`"
)


def tools_for(backend: Backend) -> tuple[Tool, ...]:
    """Return the tools of an agent with this backend."""
    administration = backend.administration
    if administration is None:
        return _tools_of_sessions(has_graph=backend.has_graph, has_team=backend.has_team)
    return tools_of_group(
        is_main=administration.is_main, has_graph=backend.has_graph, has_team=backend.has_team
    )  # fmt: skip


def tools_of_group(*, is_main: bool, has_graph: bool = False, has_team: bool = False) -> tuple[Tool, ...]:
    """Return the tools of the agent of a host's group."""
    return (
        *_tools_of_sessions(has_graph=has_graph, has_team=has_team),
        *_task_tools(is_main=is_main),
        *(_GROUP_TOOLS if is_main else ()),
    )


def _tools_of_sessions(*, has_graph: bool, has_team: bool) -> tuple[Tool, ...]:
    return (*TOOLS, *((SEARCH_GRAPH,) if has_graph else ()), *((SEARCH_TEAM,) if has_team else ()))


def _of(backend: Backend) -> Administration:
    if backend.administration is None:
        raise RefusedError("there is no host here", "go on without it")
    return backend.administration


def _schedule(backend: Backend, arguments: Arguments) -> str:
    task = _of(backend).schedule(
        arguments.get("group", ""), arguments["prompt"], arguments["schedule_type"], arguments["schedule_value"],
        arguments.get("context_mode", "group"),
    )  # fmt: skip
    return f"Done: {results.task(task, _of(backend).group)}\n{results.clock(time.time())}"


def _list_tasks(backend: Backend, arguments: Arguments) -> str:
    return results.tasks(_of(backend).tasks(), _of(backend).group, time.time())


def _update_task(backend: Backend, arguments: Arguments) -> str:
    changes = {name: value for name, value in arguments.items() if name != "id"}
    task = _of(backend).update_task(arguments["id"].strip(), changes)
    return f"Done: {results.task(task, _of(backend).group)}\n{results.clock(time.time())}"


def _cancel_task(backend: Backend, arguments: Arguments) -> str:
    _of(backend).cancel_task(arguments["id"].strip())
    return f"Done: the task {arguments['id'].strip()} is deleted. A run that has started still finishes."


def _list_groups(backend: Backend, arguments: Arguments) -> str:
    return results.chats(_of(backend).chats(), time.time())


def _register_group(backend: Backend, arguments: Arguments) -> str:
    made = _of(backend).register_group(
        arguments["group"], arguments.get("chat", ""), arguments.get("name", ""), arguments.get("trigger", "")
    )
    return (
        f"Done: {results.chat(made, time.time())}\ngroups/{made.group}/CLAUDE.md describes its agent; you may write it."
    )


def _update_group(backend: Backend, arguments: Arguments) -> str:
    changes = {name: value for name, value in arguments.items() if name != "group"}
    return f"Done: {results.chat(_of(backend).update_group(arguments['group'], changes), time.time())}"


def _task_tools(*, is_main: bool) -> tuple[Tool, ...]:
    of_all = " As the agent of main you see and change those of all groups." if is_main else ""
    target: dict[str, Schema] = (
        {"group": text_argument("The group whose agent gets the task, as list_groups shows it; without it your own.")}
        if is_main
        else {}
    )
    prompt = text_argument(
        "The prompt that the agent gets then, with everything that it needs to know.", PROMPT_CHARACTERS
    )
    kind = choice_argument("What schedule_value is.", "cron", "interval", "once")
    value = text_argument(f"When. {_TIMES}.")
    context = choice_argument(
        "`group` (the default): in this conversation, with everything said in it; `isolated`: in a new session each "
        "time, so the prompt must say everything.",
        "group", "isolated",
    )  # fmt: skip
    task_id = text_argument("The id of the task as list_tasks shows it.")
    status = choice_argument("`paused` suspends the task, `active` resumes it at its next time.", "active", "paused")
    return (
        Tool(
            "schedule_task",
            "Schedule a task",
            "Schedules work for an agent, once or regularly, that starts without a message: reminders, reports, "
            f"checks. Its answer goes to the chat.{of_all}",
            arguments_schema(
                {"prompt": prompt, "schedule_type": kind, "schedule_value": value},
                {"context_mode": context, **target},
            ),
            _schedule,
            False,
            True,
        ),
        Tool(
            "list_tasks",
            "List tasks",
            "Lists the scheduled tasks: id, next run, last result."
            f"{of_all} Use it before update_task and cancel_task, and when the user asks what is planned.",
            arguments_schema({}, {}),
            _list_tasks,
            True,
        ),
        Tool(
            "update_task",
            "Change, pause or resume a task",
            f"Changes the prompt or schedule of a task, pauses or resumes it.{of_all} Properties that you omit stay.",
            arguments_schema(
                {"id": task_id},
                {"prompt": prompt, "schedule_type": kind, "schedule_value": value, "context_mode": context,
                 "status": status},
                least=2,
            ),
            _update_task,
            False,
            True,
        ),
        Tool(
            "cancel_task",
            "Cancel a task",
            f"Deletes a scheduled task.{of_all} To suspend it, use update_task with the status `paused`.",
            arguments_schema({"id": task_id}, {}),
            _cancel_task,
            False,
            True,
        ),
    )  # fmt: skip


_GROUP = text_argument("The group, as list_groups shows it.")
_NAME = text_argument("What people call the chat.")
_TRIGGER = text_argument(
    "A regular expression, ignoring case, that a message must match for the agent to answer, such as `@anna`; empty: "
    "it answers everything.",
    least=0,
)
_GROUP_TOOLS = (
    Tool(
        "list_groups",
        "List groups and chats",
        "Lists the groups of this host with their chats, triggers and last activity, and the chats that no group "
        "answers in yet, with their names. Use it before register_group and update_group, and to schedule for a group.",
        arguments_schema({}, {}),
        _list_groups,
        True,
    ),
    Tool(
        "register_group",
        "Register a group",
        "Creates a group that answers in a chat, with its own agent, directory and sessions. Use it only when "
        "your user asks for that: everyone in that chat can talk to the agent from then on.",
        arguments_schema(
            {"group": text_argument("Its name: 1 to 64 of the characters A-Z a-z 0-9 . _ -, such as `family`.")},
            {
                "chat": text_argument("The id of the chat as list_groups shows it; without it the terminal's."),
                "name": _NAME,
                "trigger": _TRIGGER,
            },
        ),
        _register_group,
        False,
        True,
    ),
    Tool(
        "update_group",
        "Change a group",
        "Changes the name, the trigger or the chat of a group. Properties that you omit stay.",
        arguments_schema(
            {"group": _GROUP},
            {"name": _NAME, "trigger": _TRIGGER, "chat": text_argument("The id of the chat that it answers in.")},
            least=2,
        ),
        _update_group,
        False,
        True,
    ),
)
