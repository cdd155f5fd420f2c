"""Administration of a host by a group's agent: its tasks; for main all tasks, groups and chats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from ...app.tools.values import RefusedError
from ...sessions.settings.host_layout import Layout
from ._group_files import add_group
from ._ledger import Ledger
from ._schedule import UnknownTaskError
from ._values import LOCAL, ListedChat, RegisteredGroup, Task

MOST_TASKS = 100  # of a group: a misled model could add tasks without end
SHORTEST_SECONDS = 60  # between two runs that an agent asks for; each costs tokens


class HostAdministration:
    """A host's administration, see `_values.Administration`. Raises GroupNameError.

    Each call opens the database itself, because agents call from their own threads."""

    def __init__(self, layout: Layout, group: str) -> None:
        own_group = layout.group(group)
        self.group = own_group.name
        self.is_main = own_group.is_main
        self._layout = layout

    def tasks(self) -> list[Task]:
        with self._ledger() as ledger:
            return ledger.schedule.tasks(self._reach)

    def schedule(
        self, group: str, prompt: str, schedule_type: str, schedule_value: str, context_mode: str
    ) -> Task:
        with self._ledger() as ledger:
            self._check_pace(schedule_type, schedule_value)
            if group and group != self.group:
                self._check_main()
            target = ledger.group(group or self.group)
            planned = [
                task for task in ledger.schedule.tasks(target.folder) if task.status != "completed"
            ]
            if len(planned) >= MOST_TASKS:
                raise RefusedError(
                    f"{target.folder} has {len(planned)} tasks, the maximum", "cancel some first"
                )
            value = schedule_value.strip()
            return ledger.schedule.add(
                target.folder, target.jid, prompt, schedule_type, value, context_mode
            )

    def update_task(self, task_id: str, changes: dict[str, str]) -> Task:
        with self._ledger() as ledger:
            before = ledger.schedule.task(task_id, self._reach)
            after = {
                "schedule_type": before.schedule_type,
                "schedule_value": before.schedule_value,
                **changes,
            }
            if changes.keys() & {"schedule_type", "schedule_value"}:
                self._check_pace(after["schedule_type"], after["schedule_value"])
            return ledger.schedule.update(task_id, self._reach, **changes)

    def cancel_task(self, task_id: str) -> None:
        with self._ledger() as ledger:
            ledger.schedule.remove(task_id, self._reach)

    def chats(self) -> list[ListedChat]:
        self._check_main()
        with self._ledger() as ledger:
            return _listed_chats(ledger)

    def register_group(self, group: str, chat: str, name: str, trigger: str) -> ListedChat:
        self._check_main()
        with self._ledger() as ledger:
            known = {listed_group.folder: listed_group for listed_group in ledger.groups()}.get(
                group
            )
            # otherwise it is a repeated request, as after a crash
            if known is None or (chat and known.jid != chat):
                add_group(self._layout, ledger, group, chat, name, trigger)
            return _listed_chat(ledger, group)

    def update_group(self, group: str, changes: dict[str, str]) -> ListedChat:
        self._check_main()
        with self._ledger() as ledger:
            ledger.update(
                group,
                name=changes.get("name"),
                trigger=changes.get("trigger"),
                jid=changes.get("chat"),
            )
            return _listed_chat(ledger, group)

    @property
    def _reach(self) -> str:
        """The group whose tasks the agent may see and change; '' for all."""
        return "" if self.is_main else self.group

    def _check_main(self) -> None:
        if not self.is_main:
            raise RefusedError(
                "only the agent of main may do that", "ask your user to speak with it"
            )

    @staticmethod
    def _check_pace(schedule_type: str, value: str) -> None:
        if (
            schedule_type == "interval"
            and value.strip().isdecimal()
            and int(value) < SHORTEST_SECONDS * 1000
        ):
            raise RefusedError(
                f"an interval must be at least {SHORTEST_SECONDS * 1000} milliseconds",
                "choose a longer one",
            )

    @contextmanager
    def _ledger(self) -> Iterator[Ledger]:
        with closing(Ledger(self._layout.database)) as ledger:
            try:
                yield ledger
            except UnknownTaskError as error:
                raise RefusedError(str(error), "use list_tasks to see the ids") from None


def _listed_chats(ledger: Ledger) -> list[ListedChat]:
    groups = {group.jid: group for group in ledger.groups()}
    chats = []
    at_the_terminal = {f"{LOCAL}{group.folder}" for group in groups.values()} - groups.keys()
    for chat in ledger.chats():
        if chat.jid in at_the_terminal:
            continue
        group = groups.get(chat.jid) or RegisteredGroup(
            chat.jid, chat.name, "", "", requires_trigger=False
        )
        chats.append(
            ListedChat(chat.jid, group.name, group.folder, group.trigger, chat.last_activity)
        )
    return sorted(chats, key=lambda listed_chat: (not listed_chat.group, listed_chat.group))


def _listed_chat(ledger: Ledger, group: str) -> ListedChat:
    return next(listed_chat for listed_chat in _listed_chats(ledger) if listed_chat.group == group)
