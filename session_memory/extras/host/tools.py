"""The tools of a group's agent: its tasks; for main all tasks, chats and groups too."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...app.tools.results import bounded_list, short
from ...app.tools.values import RefusedError
from ...common.text.format import counted
from ...common.text.timestamps import age, epoch_seconds

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from ...app.tools.backend import Backend
    from ...app.tools.definitions import Tool
    from ._values import Administration, ListedChat, Task

    Arguments = Mapping[str, Any]

_OF_MAIN = " As the agent of main, you see and change the tasks of all groups."
_FOR_MAIN = "group"  # an argument of a task's tool that only the agent of main has


def adapted(tool: Tool, audiences: Container[str]) -> Tool:
    """Return the form of a tool for the agent of main, or of any other group."""
    is_main = "main" in audiences
    described = tool._replace(
        description=tool.description.replace("{of_main}", _OF_MAIN if is_main else "")
    )
    if is_main or tool.audience != "group":
        return described
    properties = {
        name: schema for name, schema in tool.schema["properties"].items() if name != _FOR_MAIN
    }
    return described._replace(schema={**tool.schema, "properties": properties})


def schedule_task(backend: Backend, arguments: Arguments) -> str:
    task = _of(backend).schedule(
        arguments.get("group", ""),
        arguments["prompt"],
        arguments["schedule_type"],
        arguments["schedule_value"],
        arguments.get("context_mode", "group"),
    )
    return f"Done: {_task_line(task, _of(backend).group)}\n{_clock(time.time())}"


def list_tasks(backend: Backend, arguments: Arguments) -> str:
    return _tasks_text(_of(backend).tasks(), _of(backend).group, time.time())


def update_task(backend: Backend, arguments: Arguments) -> str:
    changes = {name: value for name, value in arguments.items() if name != "id"}
    task = _of(backend).update_task(arguments["id"].strip(), changes)
    return f"Done: {_task_line(task, _of(backend).group)}\n{_clock(time.time())}"


def cancel_task(backend: Backend, arguments: Arguments) -> str:
    _of(backend).cancel_task(arguments["id"].strip())
    return (
        f"Done: the task {arguments['id'].strip()} is deleted. A run that has started still "
        f"finishes."
    )


def list_groups(backend: Backend, arguments: Arguments) -> str:
    return _chats_text(_of(backend).chats(), time.time())


def register_group(backend: Backend, arguments: Arguments) -> str:
    made = _of(backend).register_group(
        arguments["group"],
        arguments.get("chat", ""),
        arguments.get("name", ""),
        arguments.get("trigger", ""),
    )
    return (
        f"Done: {_chat_line(made, time.time())}\ngroups/{made.group}/CLAUDE.md describes "
        f"its agent; you may write it."
    )


def update_group(backend: Backend, arguments: Arguments) -> str:
    changes = {name: value for name, value in arguments.items() if name != "group"}
    return (
        f"Done: {_chat_line(_of(backend).update_group(arguments['group'], changes), time.time())}"
    )


def _of(backend: Backend) -> Administration:
    """Return the host's services for the agent's group. Raises RefusedError without a host."""
    administration: Administration | None = getattr(backend, "administration", None)
    if administration is None:
        raise RefusedError("there is no host here", "continue without it")
    return administration


def _tasks_text(listed: list[Task], own_home: str, now: float) -> str:
    """Return the tasks, a line each; `own_home` is the agent's group."""
    if not listed:
        return f"There are no tasks. {_clock(now)}"
    return bounded_list(
        f"{counted(len(listed), 'task')}. {_clock(now)}",
        [f"- {_task_line(task, own_home)}" for task in listed],
    )


def _task_line(task: Task, own_home: str) -> str:
    """Return a task on one line: id, state, schedule, prompt, last result."""
    state = (
        f"next {_local(task.next_run)}"
        if task.status == "active" and task.next_run
        else task.status
    )
    group = f", group {task.group}" if task.group != own_home else ""
    when = f"{task.schedule_type} {short(task.schedule_value)}"
    last = (
        f"; last run {_local(task.last_run)}: {short(task.last_result or '')}"
        if task.last_run
        else ""
    )
    return (
        f"{task.id} ({state}, {when}, context {task.context_mode}{group}): "
        f'"{short(task.prompt)}"{last}'
    )


def _chats_text(listed: list[ListedChat], now: float) -> str:
    """Return the groups with their chats, and the chats without a group, a line each."""
    groups = [f"- {_chat_line(chat, now)}" for chat in listed if chat.group]
    others = [f"- {_chat_line(chat, now)}" for chat in listed if not chat.group]
    heading = f"{counted(len(groups), 'group')}, and {counted(len(others), 'chat')} without one."
    return bounded_list(heading, groups + others)


def _chat_line(chat: ListedChat, now: float) -> str:
    """Return a chat on one line, with its group."""
    last = epoch_seconds(chat.last_activity)
    active = f"last active {age(now - last)}" if last else "no messages yet"
    known = f'"{short(chat.name)}", chat {short(chat.chat)}, {active}'
    if not chat.group:
        return f"no group ({known})"
    trigger = (
        f"answers messages that match `{short(chat.trigger)}`"
        if chat.trigger
        else "answers everything"
    )
    return f"{chat.group} ({known}, {trigger})"


def _clock(now: float) -> str:
    """Return the local time of the host, in which tasks are scheduled."""
    return time.strftime("On the host it is %A, %Y-%m-%d %H:%M (UTC%z).", time.localtime(now))


def _local(text: str | None) -> str:
    seconds = epoch_seconds(text)
    return "never" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
