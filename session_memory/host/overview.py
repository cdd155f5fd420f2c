"""What a host is doing, as a value: its groups, their sessions, what waits, which tasks come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..transcripts.pointers import SessionManager
    from .ledger import Ledger
    from .values import Task


class GroupState(NamedTuple):
    """A group: its chat, its active session ('' if none), when something was last said there (ISO 8601, '' if never),
    how many earlier sessions have a name, how many messages wait or are being worked on, the next of its tasks."""

    group: str
    chat: str
    session_id: str
    last_activity: str
    named_sessions: int
    waiting: int
    working: int
    next_task: Task | None

    def as_json(self) -> dict[str, Any]:
        """The state as JSON shows it."""
        return {**self._asdict(), "next_task": self.next_task._asdict() if self.next_task else None}


def group_states(ledger: Ledger, sessions: SessionManager) -> list[GroupState]:
    """The state of every group, by name."""
    active = sessions.all()
    tasks = [task for task in ledger.schedule.tasks() if task.status == "active" and task.next_run]
    found = []
    for group in ledger.groups():
        name = group.folder
        waiting, working = ledger.database.inbox_counts(name)
        next_task = next((task for task in tasks if task.group == name), None)
        last, named = ledger.database.last_message_time(name), len(sessions.get_history(name))
        found.append(GroupState(name, group.jid, active.get(name, ""), last, named, waiting, working, next_task))
    return found
