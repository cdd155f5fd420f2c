"""What a host is doing, as a value: its groups, their sessions, what waits, which tasks come next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import schedule

if TYPE_CHECKING:
    from ..transcripts.pointers import SessionManager
    from .ledger import Ledger
    from .schedule import Task


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


def states(ledger: Ledger, sessions: SessionManager) -> list[GroupState]:
    """The state of every group, by name."""
    active = sessions.all()
    tasks = [task for task in schedule.tasks(ledger.connection) if task.status == "active" and task.next_run]
    found = []
    for group in ledger.groups():
        waiting, working, last = ledger.counts(group.folder)
        following = next((task for task in tasks if task.group == group.folder), None)
        named = len(sessions.get_history(group.folder))
        session_id = active.get(group.folder, "")
        found.append(GroupState(group.folder, group.jid, session_id, last, named, waiting, working, following))
    return found


def as_json(state: GroupState) -> dict[str, Any]:
    """A state as JSON shows it."""
    task = state.next_task
    return {**state._asdict(), "next_task": task._asdict() if task else None}
