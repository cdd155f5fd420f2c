"""The state of a host as a value: groups, sessions, waiting messages, next tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..transcripts.pointers import SessionManager
from .ledger import Ledger
from .values import Chat, Task

MOST_CHATS = 500  # without a group, the last active ones


class GroupState(NamedTuple):
    """A group: its chat, the chat's name, the trigger ('' for none), the active session ('' if none), the time of the
    last message (ISO 8601, '' if none), the number of earlier named sessions, the numbers of waiting and of processed
    messages, the next task."""

    group: str
    chat: str
    name: str
    trigger: str
    session_id: str
    last_activity: str
    named_sessions: int
    waiting: int
    working: int
    next_task: Task | None

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "next_task": self.next_task._asdict() if self.next_task else None}


def chat_rows(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the groups, and the chats without a group (their `folder` is ''), with the names of the columns."""
    last = {chat.jid: chat.last_activity for chat in ledger.chats()}
    groups = [{**group._asdict(), "last_activity": last.get(group.jid, "")} for group in ledger.groups()]
    return groups + [{**chat._asdict(), "folder": ""} for chat in strangers(ledger)]


def strangers(ledger: Ledger) -> list[Chat]:
    """Return the chats without a group, the last active ones first, at most MOST_CHATS."""
    taken = {group.jid for group in ledger.groups()}
    return [chat for chat in ledger.chats() if chat.jid not in taken][:MOST_CHATS]


def group_states(ledger: Ledger, sessions: SessionManager) -> list[GroupState]:
    """Return the state of every group, by name."""
    active = sessions.all()
    tasks = [task for task in ledger.schedule.tasks() if task.status == "active" and task.next_run]
    found = []
    for group in ledger.groups():
        name = group.folder
        waiting, working = ledger.inbox_counts(name)
        next_task = next((task for task in tasks if task.group == name), None)
        found.append(
            GroupState(
                name, group.jid, group.name, group.trigger, active.get(name, ""),
                ledger.last_message_time(name), len(sessions.get_history(name)), waiting, working, next_task,
            )
        )  # fmt: skip
    return found
