"""Tasks that are changed, never due, or deleted while they run; and deleted groups."""

from __future__ import annotations

import re

import pytest
from host_scene import NOON, Clock

from session_memory.common.text.timestamps import iso_time
from session_memory.extras.host._ledger import (
    EmptyMessageError,
    Ledger,
    UnknownGroupError,
    WrongGroupError,
)
from session_memory.extras.host._schedule import ScheduleError, UnknownTaskError
from session_memory.extras.host._values import Prompt, Task


def add(
    ledger: Ledger, kind: str = "interval", value: str = "60000", prompt: str = "water"
) -> Task:
    return ledger.schedule.add("main", "local:main", prompt, kind, value, "group")


def given(ledger: Ledger, clock: Clock) -> Prompt:
    """The prompt of the task that is due in a minute, as it is given to the agent."""
    clock.now += 61
    ledger.schedule.start_due()
    return ledger.begin(ledger.open_prompts("main")[0], "s1")


def test_a_time_that_will_not_come_is_refused_when_it_is_given(ledger: Ledger) -> None:
    for kind, value, said in (
        ("cron", "0 0 30 2 *", "the cron expression '0 0 30 2 *' never occurs"),
        ("cron", "* * * * * *", "does not have the five fields"),
        ("cron", "x" * 5000, "does not have the five fields"),
        ("interval", "999", "is not an interval in milliseconds"),
        ("interval", "\N{SUPERSCRIPT TWO}000", "is not an interval"),
        ("interval", "9" * 400, "is not an interval"),
        ("once", "2026-02-21T11:59", "'2026-02-21T11:59' is in the past"),
        ("once", "2026-02-21T15:30 Europe/Nowhere", "is not a time"),
        ("once", "2026-02-21T15:30+99:00", "is not a time"),
        ("once", "0001-01-01T00:00", "is not a time|is in the past"),
        ("once", "9999-12-31T23:59:59-23:59", "is not a time"),
    ):
        with pytest.raises(ScheduleError, match=said.replace("*", r"\*")) as refused:
            add(ledger, kind, value)
        assert len(str(refused.value)) < 300
        assert ledger.schedule.tasks() == []
        task = add(ledger)
        with pytest.raises(ScheduleError):
            ledger.schedule.update(task.id, schedule_type=kind, schedule_value=value)
        assert ledger.schedule.tasks() == [task]
        ledger.schedule.remove(task.id)


@pytest.mark.parametrize("value", ["0 0 30 2 *", "nonsense", ""])
def test_a_task_in_the_table_that_is_never_due_again_ends_and_the_others_go_on(
    ledger: Ledger, clock: Clock, value: str
) -> None:
    broken, whole = add(ledger, "cron", "1 12 * * *"), add(ledger)
    ledger.connection.execute(
        "UPDATE scheduled_tasks SET schedule_value = ? WHERE id = ?", (value, broken.id)
    )
    clock.now += 61
    (line,) = ledger.schedule.start_due()
    assert line.startswith(f"main: {broken.id} has ended: the cron expression")
    assert [prompt.task for prompt in ledger.open_prompts("main")] == [whole.id]
    (run,) = ledger.schedule.runs(broken.id)
    assert (run.status, str(run.error) in line) == ("error", True)
    assert (ledger.schedule.task(broken.id).status, ledger.schedule.task(broken.id).next_run) == (
        "completed",
        None,
    )
    assert ledger.schedule.start_due() == []


def test_a_clock_that_is_set_back_stops_no_task(ledger: Ledger, clock: Clock) -> None:
    task = add(ledger, "cron", "1 12 * * *")
    ledger.answer([given(ledger, clock)], "Watered.")
    clock.now = NOON
    ledger.schedule.update(task.id, schedule_value="1 12 * * 0-6")
    add(ledger, prompt="weed")
    clock.now += 61
    ledger.schedule.start_due()
    assert [prompt.text.splitlines()[-1] for prompt in ledger.open_prompts("main")] == ["weed"]


def test_the_same_task_asked_for_again_is_the_same_task(ledger: Ledger) -> None:
    assert add(ledger) == add(ledger)
    assert add(ledger, prompt="weed") not in (add(ledger), add(ledger, value="120000"))
    assert len(ledger.schedule.tasks()) == 3


class TestChanges:
    def test_what_is_not_named_stays(self, ledger: Ledger, clock: Clock) -> None:
        task = add(ledger)
        clock.now += 30
        assert ledger.schedule.update(task.id, prompt="weed") == task._replace(prompt="weed")
        assert ledger.schedule.tasks() == [task._replace(prompt="weed")]

    def test_a_new_time_counts_from_now(self, ledger: Ledger, clock: Clock) -> None:
        task = add(ledger)
        clock.now += 30
        changed = ledger.schedule.update(
            task.id, schedule_type="once", schedule_value="2026-02-21T13:00"
        )
        assert changed.next_run == iso_time(NOON + 3600)

    def test_a_task_that_is_over_begins_again_with_a_new_time_and_not_without(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        task = add(ledger, "once", "2026-02-21T12:01")
        ledger.answer([given(ledger, clock)], "Watered.")
        with pytest.raises(ScheduleError, match="is in the past"):
            ledger.schedule.update(task.id, status="active")
        changed = ledger.schedule.update(task.id, schedule_value="2026-02-21T13:00")
        assert (changed.status, changed.next_run) == ("active", iso_time(NOON + 3600))

    def test_a_task_of_another_group_is_not_there(self, ledger: Ledger) -> None:
        task = add(ledger)
        for change in (
            lambda: ledger.schedule.update(task.id, "garden", prompt="weed"),
            lambda: ledger.schedule.remove(task.id, "garden"),
        ):
            with pytest.raises(UnknownTaskError, match="there is no task"):
                change()
        assert ledger.schedule.tasks() == [task]

    def test_one_that_is_taken_away_while_it_runs_still_gives_its_answer(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        task = add(ledger)
        prompt = given(ledger, clock)
        ledger.schedule.remove(task.id)
        assert ledger.schedule.tasks() == []
        clock.now += 600
        ledger.schedule.start_due()
        assert ledger.open_prompts("main") == [prompt]
        ledger.answer([prompt], "Watered for the last time.")
        assert [reply.text for reply in ledger.replies()] == ["Watered for the last time."]
        for table in ("scheduled_tasks", "task_run_logs", "prompts"):
            assert ledger.connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]


class TestGroups:
    def test_a_group_is_changed_with_its_tasks_and_what_is_not_given_stays(
        self, ledger: Ledger
    ) -> None:
        add(ledger)
        assert ledger.update("main", jid="chat:8", trigger="@bert", name="Office").requires_trigger
        assert ledger.group("main") == ("chat:8", "Office", "main", "@bert", True)
        assert [task.jid for task in ledger.schedule.tasks()] == ["chat:8"]
        assert ledger.update("main", trigger="") == ("chat:8", "Office", "main", "", False)

    @pytest.mark.parametrize(
        "changes",
        [
            {"jid": "chat:7"},
            {"trigger": "["},
            {"jid": " "},
            {"jid": "chat:\n8"},
            {"jid": "x" * 300},
        ],
    )
    def test_what_no_group_can_be_is_refused_and_nothing_changes(
        self, ledger: Ledger, changes: dict[str, str]
    ) -> None:
        before = ledger.groups()
        with pytest.raises((UnknownGroupError, WrongGroupError)):
            ledger.update("main", **changes)
        assert ledger.groups() == before

    def test_one_that_is_removed_answers_nothing_and_its_tasks_wait(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        task = add(ledger)
        ledger.receive("local:main", "hello", sender="1", sender_name="")
        assert ledger.remove("main") == [task.id]
        clock.now += 61
        ledger.schedule.start_due()
        assert (ledger.ready_groups(), ledger.next_prompt("main")) == (set(), None)
        with pytest.raises(UnknownGroupError):
            ledger.receive("local:main", "are you there?", sender="1", sender_name="")
        ledger.register("main", "local:main", "main", "", False)
        assert ledger.ready_groups() == {"main"}
        assert ledger.schedule.task(task.id).status == "paused"

    def test_triggers_ignore_case(self, ledger: Ledger) -> None:
        assert ledger.answers("garden", "Hello, @ANNA")
        assert not ledger.answers("garden", "Hello, Anna")
        ledger.receive("chat:7", "Hello, @Anna", sender="1", sender_name="")
        assert ledger.ready_groups() == {"garden"}
        assert ledger.answers("garden", "and this goes along")

    def test_a_call_after_many_messages_is_in_the_next_prompt_with_the_last_of_them(
        self, ledger: Ledger
    ) -> None:
        for number in range(130):
            said = f"@anna {number}" if number in (120, 125) else f"chatter {number}"
            ledger.receive("chat:7", said, sender="1", sender_name="")
        prompt = ledger.next_prompt("garden")
        assert prompt is not None
        assert re.findall(r">\D+(\d+)<", prompt.text) == [str(number) for number in range(71, 121)]
        again = ledger.next_prompt("garden")
        assert again is not None
        assert re.findall(r">\D+(\d+)<", again.text) == [str(number) for number in range(121, 130)]
        assert ledger.next_prompt("garden") is None

    def test_each_message_is_compared_with_the_trigger_once(
        self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compared = []
        monkeypatch.setattr(
            "session_memory.extras.host._ledger._calls", lambda group, text: compared.append(text)
        )
        for text in ("one", "two"):
            ledger.receive("chat:7", text, sender="1", sender_name="")
            for _ in range(3):
                assert ledger.ready_groups() == set()
        assert compared == ["one", "two"]
        ledger.update("garden", trigger="@bert")
        assert (ledger.ready_groups(), compared) == (set(), ["one", "two"] * 2)

    @pytest.mark.parametrize("text", ["", " \n", "\0"])
    def test_a_message_without_text_is_refused(self, ledger: Ledger, text: str) -> None:
        with pytest.raises(EmptyMessageError):
            ledger.receive("local:main", text, sender="1", sender_name="")

    def test_of_a_chat_without_a_group_its_name_and_activity_are_known(
        self, ledger: Ledger
    ) -> None:
        ledger.note_chat("chat:9", "The\x1b[31m street", "2026-02-21T03:00:00.000Z")
        ledger.note_chat("chat:9", at="2026-02-21T02:00:00.000Z")
        (chat,) = [chat for chat in ledger.chats() if chat.jid == "chat:9"]
        assert chat == ("chat:9", "The street", "2026-02-21T03:00:00.000Z")
        ledger.register("street", "chat:9", "street", "", False)
        assert chat in ledger.chats(), "registering is no activity, and no other name"
