"""The tools for tasks and groups, for the agent of a group and the agent of main."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from host_scene import Box, GroupDir, three_groups

from session_memory.app.tools.call import ToolResult
from session_memory.extras.host.administration import MOST_TASKS
from session_memory.extras.host.request_files import RequestFiles


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GroupDir]:
    with three_groups(tmp_path / "host") as host:
        yield host


def schedule(host: GroupDir, asking: str, /, **changed: str) -> ToolResult:
    wanted = {
        "prompt": "Water the beans",
        "schedule_type": "cron",
        "schedule_value": "0 8 * * *",
        **changed,
    }
    return host.call(asking, "schedule_task", **wanted)


def task_of(host: GroupDir, group: str) -> Any:
    (task,) = host.ledger.schedule.tasks(group)
    return task


class TestTasks:
    def test_a_task_is_scheduled_in_the_agents_own_group_and_chat(self, host: GroupDir) -> None:
        told = schedule(host, "family", context_mode="isolated")
        task = task_of(host, "family")
        assert (task.jid, task.context_mode, task.status) == ("chat:family", "isolated", "active")
        due = time.strftime(
            "%Y-%m-%d 08:00", time.localtime(time.time() + 86400 * (time.localtime().tm_hour >= 8))
        )
        first, clock = told.text.splitlines()
        expected = (
            f'Done: {task.id} (next {due}, cron 0 8 * * *, context isolated): "Water the beans"'
        )
        assert (told.is_error, first) == (False, expected)
        assert clock.startswith(time.strftime("On the host it is %A, %Y-%m-%d"))

    def test_it_goes_on_in_this_conversation_unless_that_is_said(self, host: GroupDir) -> None:
        schedule(host, "family")
        assert task_of(host, "family").context_mode == "group"

    def test_the_same_again_is_one_task(self, host: GroupDir) -> None:
        first = schedule(host, "family").text.splitlines()[0]
        assert schedule(host, "family").text.startswith(first)
        assert len(host.ledger.schedule.tasks("family")) == 1

    def test_tasks_are_listed_changed_paused_resumed_and_cancelled(self, host: GroupDir) -> None:
        schedule(host, "family")
        task = task_of(host, "family")
        assert f"- {task.id} (next " in host.call("family", "list_tasks").text
        changed = host.call(
            "family",
            "update_task",
            id=task.id,
            prompt="Weed",
            schedule_type="interval",
            schedule_value="3600000",
        )
        assert 'interval 3600000, context group): "Weed"' in changed.text
        assert (
            f"{task.id} (paused, "
            in host.call("family", "update_task", id=task.id, status="paused").text
        )
        assert (
            f"{task.id} (next "
            in host.call("family", "update_task", id=f" {task.id} ", status="active").text
        )
        assert host.call("family", "cancel_task", id=task.id).text.startswith(
            f"Done: the task {task.id} is deleted."
        )
        assert host.call("family", "list_tasks").text.startswith(
            "There are no tasks. On the host it is "
        )

    def test_how_it_went_last_is_listed_without_secrets_and_markup(self, host: GroupDir) -> None:
        schedule(
            host, "family", schedule_type="interval", schedule_value="60000", prompt="<b>Water</b>"
        )
        task = task_of(host, "family")
        with host.ledger.transaction():
            host.ledger.schedule.log_run(task.id, "", "DB_PASSWORD=Kf9xZq83Lm7Pw2 is set", "")
        (line,) = [
            one for one in host.call("family", "list_tasks").text.splitlines() if task.id in one
        ]
        assert '"‹b›Water‹/b›"; last run ' in line
        assert "Kf9xZq83Lm7Pw2" not in line

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            (
                {"schedule_value": "0 0 30 2 *"},
                "the cron expression '0 0 30 2 *' never occurs.",
            ),
            (
                {"schedule_type": "once", "schedule_value": "2020-01-01T00:00"},
                "'2020-01-01T00:00' is in the past.",
            ),
            (
                {"schedule_type": "interval", "schedule_value": "1000"},
                "an interval must be at least 60000 milliseconds.",
            ),
            (
                {"schedule_type": "interval", "schedule_value": "nan"},
                "'nan' is not an interval in milliseconds.",
            ),
            (
                {"schedule_type": "daily"},
                "schedule_task: `schedule_type` is cron or interval or once.",
            ),
            ({"context_mode": "main"}, "schedule_task: `context_mode` is group or isolated."),
            ({"prompt": " "}, "a task needs a prompt."),
            ({"group": "work"}, "schedule_task: only main may use the argument `group`"),
        ],
    )
    def test_what_cannot_be_is_said_in_words_to_act_on(
        self, host: GroupDir, changed: dict[str, str], said: str
    ) -> None:
        told = schedule(host, "family", **changed)
        assert told.is_error
        assert told.text.startswith(said)
        assert host.ledger.schedule.tasks() == []

    def test_an_unknown_task_is_said_with_where_to_look(self, host: GroupDir) -> None:
        for tool, more in (("cancel_task", {}), ("update_task", {"status": "paused"})):
            told = host.call("family", tool, id="task-0", **more)
            assert (told.is_error, told.text) == (
                True,
                "there is no task 'task-0'. Use list_tasks to see the ids",
            )
        told = host.call("family", "update_task", id="task-0")
        assert told.text.startswith("update_task: it changes nothing; it takes id, prompt, ")

    def test_a_group_has_so_many_tasks_and_no_more(self, host: GroupDir) -> None:
        for number in range(MOST_TASKS):
            assert not schedule(host, "family", prompt=f"Water bed {number}").is_error
        assert "the maximum. Cancel some" in schedule(host, "family", prompt="One more").text
        assert not schedule(host, "work").is_error
        assert "more are not shown." in host.call("family", "list_tasks").text


class TestMain:
    def test_schedules_lists_and_changes_for_other_groups(self, host: GroupDir) -> None:
        told = schedule(host, "main", group="work")
        task = task_of(host, "work")
        assert task.jid == "chat:work"
        assert ", group work)" in told.text
        assert f"- {task.id} " in host.call("main", "list_tasks").text
        assert "(paused" in host.call("main", "update_task", id=task.id, status="paused").text
        assert not host.call("main", "cancel_task", id=task.id).is_error
        assert host.ledger.schedule.tasks() == []

    def test_a_group_that_is_none_is_said(self, host: GroupDir) -> None:
        for name in ("nobody", "../work", "Work"):
            told = schedule(host, "main", group=name)
            assert told.is_error
            assert told.text.startswith(f"there is no group {name!r}. There are family, main, work")

    def test_sees_chats_without_a_group_and_registers_one(self, host: GroupDir) -> None:
        host.ledger.note_chat("telegram:9", "The <street>")
        listed = host.call("main", "list_groups").text
        assert listed.startswith(
            '3 groups, and 1 chat without one.\n- family ("family", chat chat:family, '
        )
        assert listed.endswith(
            '\n- no group ("The ‹street›", chat telegram:9, last active just now)'
        )
        told = host.call(
            "main", "register_group", group="street", chat="telegram:9", trigger="@anna"
        )
        assert told.text.startswith(
            'Done: street ("street", chat telegram:9, last active just now, answers messages that match `@a'
        )
        assert host.ledger.group("street") == ("telegram:9", "street", "street", "@anna", True)
        assert Path(host.layout.group("street").instructions).is_file()
        again = host.call(
            "main", "register_group", group="street", chat="telegram:9", trigger="@anna"
        )
        assert again.text == told.text

    def test_changes_name_trigger_and_chat(self, host: GroupDir) -> None:
        told = host.call(
            "main", "update_group", group="work", name="Office", trigger="@bert", chat="telegram:3"
        )
        assert (
            told.text
            == 'Done: work ("Office", chat telegram:3, no messages yet, answers messages that match `@bert`)'
        )
        assert host.ledger.group("work") == ("telegram:3", "Office", "work", "@bert", True)
        assert (
            "answers everything" in host.call("main", "update_group", group="work", trigger="").text
        )

    @pytest.mark.parametrize(
        ("tool", "arguments", "said"),
        [
            ("register_group", {"group": "../x"}, "'../x' is not a valid name for a group."),
            ("register_group", {"group": "global"}, "'global' is not a valid name for a group."),
            (
                "register_group",
                {"group": "work", "chat": "telegram:1"},
                "group work already has the chat chat:work",
            ),
            (
                "register_group",
                {"group": "new", "chat": "chat:work"},
                "group work already has the chat chat:work",
            ),
            ("update_group", {"group": "nobody", "trigger": ""}, "there is no group 'nobody'."),
            ("update_group", {"group": "work"}, "update_group: it changes nothing;"),
            ("update_group", {"group": "work", "trigger": "["}, "the trigger '['"),
            (
                "update_group",
                {"group": "work", "chat": "chat:family"},
                "group family already has the chat chat:family",
            ),
        ],
    )
    def test_what_cannot_be_is_said_and_changes_nothing(
        self, host: GroupDir, tool: str, arguments: dict[str, str], said: str
    ) -> None:
        before = host.ledger.groups()
        told = host.call("main", tool, **arguments)
        assert told.is_error
        assert told.text.startswith(said)
        assert host.ledger.groups() == before


class TestRequestFiles:
    def test_a_task_is_scheduled_by_a_file(self, host: GroupDir) -> None:
        box = Box(host, "family")
        box.ask(
            "r1",
            "schedule_task",
            prompt="Water",
            schedule_type="interval",
            schedule_value="3600000",
        )
        assert box.answer() == 1
        assert box.response("r1")["text"].startswith(f"Done: {task_of(host, 'family').id} (next ")

    @pytest.mark.parametrize(("group", "is_main"), [("main", True), ("family", False)])
    def test_a_server_in_a_sandbox_offers_what_the_group_has(
        self, host: GroupDir, group: str, is_main: bool
    ) -> None:
        path = host.layout.group(group).ipc_dir
        names = {tool.name for tool in RequestFiles(path).served().tools}
        assert ("schedule_task" in names, "list_groups" in names) == (True, False), (
            "before the host has told it"
        )
        rows = [{"folder": name} for name in (["main", "family", ""] if is_main else ["family"])]
        Path(path, "available_groups.json").write_text(json.dumps({"groups": rows}))
        names = {tool.name for tool in RequestFiles(path).served().tools}
        assert ("schedule_task" in names, "list_groups" in names) == (True, is_main)
