"""A host's records without a runtime: its ledger, its tasks, prompts for an agent, and channels."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from host_scene import NOON, Clock, Told
from hypothesis import given
from hypothesis import strategies as st

from session_memory.common.system.sqlite import SharedDatabase
from session_memory.common.text.timestamps import iso_time
from session_memory.extras.host._database import create_host
from session_memory.extras.host._ledger import (
    Ledger,
    UnknownGroupError,
    WrongGroupError,
    messages_text,
)
from session_memory.extras.host._schedule import ScheduleError, UnknownTaskError, next_time
from session_memory.extras.host._values import ChatReply, Message, Prompt, Task, TaskRun
from session_memory.extras.host.channels.channel import ChannelError, Chats, channels_in
from session_memory.extras.host.channels.unix_socket import SocketError, UnixSocket
from session_memory.sessions.transcripts.pointers import MIGRATIONS as POINTERS


def take(ledger: Ledger, text: str, jid: str = "local:main", message_id: str = "") -> str:
    return ledger.receive(jid, text, sender="1", sender_name="", message_id=message_id)


def next_prompt(ledger: Ledger, group: str = "main") -> Prompt:
    prompt = ledger.next_prompt(group)
    assert prompt is not None
    return prompt


class TestLedger:
    def test_messages_that_wait_go_into_one_prompt_in_their_order(self, ledger: Ledger) -> None:
        for text in ("one", "two"):
            take(ledger, text)
        prompt = next_prompt(ledger)
        assert prompt.text.index(">one<") < prompt.text.index(">two<")
        assert ledger.next_prompt("main") is None

    def test_a_message_that_comes_twice_is_one(self, ledger: Ledger) -> None:
        assert take(ledger, "one", message_id="m1") == take(ledger, "one", message_id="m1") == "m1"
        assert next_prompt(ledger).text == "one"
        assert ledger.inbox_counts("main") == (0, 1)

    def test_the_same_id_in_another_chat_is_another_message(self, ledger: Ledger) -> None:
        take(ledger, "one", message_id="m1")
        take(ledger, "@anna two", "chat:7", message_id="m1")
        assert ledger.ready_groups() == {"main", "garden"}

    def test_a_message_from_a_chat_that_no_group_has_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(UnknownGroupError, match="no group has the chat local:nobody"):
            take(ledger, "one", "local:nobody")

    def test_a_reply_answers_every_message_of_its_prompts_once(self, ledger: Ledger) -> None:
        ids = [take(ledger, "one"), take(ledger, "two")]
        first = next_prompt(ledger)
        ids.append(take(ledger, "three"))
        second = next_prompt(ledger)
        assert ledger.answer([first, second], "All three.") is not None
        assert ledger.answer([first, second], "Again.") is None
        (reply,) = ledger.replies()
        assert (reply.kind, reply.text, reply.answers) == ("reply", "All three.", tuple(ids))
        assert ledger.ready_groups() == set()

    def test_an_answer_without_text_closes_the_prompt_and_sends_nothing(
        self, ledger: Ledger
    ) -> None:
        message = take(ledger, "one")
        assert ledger.answer([next_prompt(ledger)], " \n") is None
        assert (ledger.reply_to(message, "local:main"), ledger.replies()) == ((True, None), [])

    def test_what_is_put_off_waits_and_is_then_a_new_prompt_to_the_runtime(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        take(ledger, "one")
        prompt = next_prompt(ledger)
        ledger.put_off(prompt, 60)
        assert (ledger.open_prompts("main"), ledger.ready_groups()) == ([], set())
        clock.now += 61
        (again,) = ledger.open_prompts("main")
        assert (again.id, again.text, again.attempt) == (prompt.id, "one", 2)
        assert again.uuid != prompt.uuid

    def test_messages_wait_until_one_calls_the_agent_and_then_go_along(
        self, ledger: Ledger
    ) -> None:
        take(ledger, "what a day", "chat:7")
        assert (ledger.ready_groups(), ledger.next_prompt("garden")) == (set(), None)
        take(ledger, "is it, @anna?", "chat:7")
        assert ledger.ready_groups() == {"garden"}
        assert "what a day" in next_prompt(ledger, "garden").text

    def test_the_cursors_tell_what_came_last_and_what_was_answered_last(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        take(ledger, "one")
        answered = iso_time(clock.now)
        prompt = next_prompt(ledger)
        clock.now += 5
        take(ledger, "two")
        ledger.answer([prompt], "One.")
        state = dict(ledger.connection.execute("SELECT key, value FROM router_state"))
        assert state["last_timestamp"] == iso_time(clock.now)
        assert json.loads(str(state["last_agent_timestamp"])) == {"local:main": answered}

    def test_replies_are_found_behind_any_of_them_and_per_chat(self, ledger: Ledger) -> None:
        for number in range(3):
            take(ledger, f"{number}")
            ledger.answer([next_prompt(ledger)], f"answer {number}")
        ledger.notify("chat:7", "by the way")
        texts = [
            [r.text for r in ledger.replies(after, jid)]
            for after, jid in ((0, ""), (1, "local:main"), (9, ""))
        ]
        assert texts == [
            ["answer 0", "answer 1", "answer 2", "by the way"],
            ["answer 1", "answer 2"],
            [],
        ]
        assert [reply.text for reply in ledger.latest_replies(["local:main"], 2)] == [
            "answer 1",
            "answer 2",
        ]

    def test_what_was_delivered_is_delivered_no_more(self, ledger: Ledger) -> None:
        first, second = (ledger.notify("chat:7", text) for text in ("one", "two"))
        ledger.mark_delivered(first)
        assert [reply.id for reply in ledger.undelivered()] == [second]

    def test_replies_that_a_chat_cannot_get_keep_none_from_another(self, ledger: Ledger) -> None:
        for number in range(120):
            ledger.notify("chat:7", f"notice {number}")
        other = ledger.notify("local:main", "hello")
        assert other not in [reply.id for reply in ledger.undelivered()]
        assert [reply.id for reply in ledger.undelivered({"chat:7"})] == [other]

    def test_text_that_no_database_takes_is_taken_without_what_is_wrong_with_it(
        self, ledger: Ledger
    ) -> None:
        take(ledger, "a\0b\ud800c")
        assert next_prompt(ledger).text == "ab?c"

    @pytest.mark.parametrize(
        ("folder", "jid"), [("main", "chat:8"), ("Garden", "chat:8"), ("new", "chat:7")]
    )
    def test_a_group_or_chat_is_registered_once(
        self, ledger: Ledger, folder: str, jid: str
    ) -> None:
        with pytest.raises(UnknownGroupError, match="already"):
            ledger.register(folder, jid, folder, "", False)

    def test_a_trigger_that_is_no_pattern_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(WrongGroupError, match=r"the trigger '\['"):
            ledger.register("new", "chat:8", "new", "[", True)


class TestPromptText:
    @given(st.text(), st.text(min_size=1))
    def test_nobody_can_write_in_anothers_name(self, text: str, sender: str) -> None:
        shown = messages_text(
            [
                Message(sender, "2026-02-21T03:39:07Z", text),
                Message("", "2026-02-21T03:39:08Z", "b"),
            ]
        )
        assert shown.count("<message") == shown.count("</message>") == 2
        assert shown.count('from="') <= 1 + text.count('from="')


class TestSchedule:
    def test_a_task_is_due_next(self) -> None:
        for kind, value, before, due in (
            ("cron", "30 12 * * *", None, NOON + 1800),
            ("cron", "0 12 * * *", NOON, NOON + 86400),
            ("interval", "60000", None, NOON + 60),
            ("interval", "60000", NOON, NOON + 60),
            ("interval", "60000", NOON - 150, NOON + 30),
            ("once", "2026-02-21T15:30", None, NOON + 3.5 * 3600),
            ("once", "2026-02-21T15:30", NOON, None),
        ):
            assert next_time(kind, value, NOON, before) == due, (kind, value, before)

    def test_what_says_no_time_is_refused(self) -> None:
        for kind, value in (
            ("cron", "at noon"),
            ("cron", "99 * * * *"),
            ("cron", ""),
            ("interval", "10"),
            ("interval", "-1"),
            ("interval", "soon"),
            ("once", "tomorrow"),
            ("daily", "8"),
        ):
            with pytest.raises(ScheduleError):
                next_time(kind, value, NOON)

    @pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
    def test_the_days_on_which_clocks_are_set_have_all_their_runs(
        self, set_zone: Callable[[str], None], zone: str
    ) -> None:
        set_zone(zone)
        days = [("2026-03-29", "2026-10-25"), ("2026-03-08", "2026-11-01")][
            zone.startswith("America")
        ]
        for expression, *runs_of_days in (
            ("*/15 * * * *", 92, 100),
            ("0 * * * *", 23, 25),
            ("@hourly", 23, 25),
            ("30 2 * * *", 1, 1),
            ("0,30 2,3 * * 0", 2, 4),
            ("0 12 * * *", 1, 1),
            ("@daily", 1, 1),
        ):
            for day, hours, runs in zip(days, (23, 25), runs_of_days):
                begin = datetime.fromisoformat(day).timestamp()
                found, due = [], begin - 1
                while (due := next_time("cron", expression, due) or 0.0) < begin + hours * 3600:
                    found.append(due)
                assert len(found) == runs, (expression, day)
                if expression == "*/15 * * * *":
                    assert {later - earlier for earlier, later in pairwise(found)} == {900}

    @pytest.mark.parametrize(
        ("expression", "days"),
        [
            ("0 0 */2 * 1", [1, 15, 29]),  # both, as cron does it if a field begins with `*`
            # either
            ("0 0 1-31/2 * 1", [1, 3, 5, 7, 8, 9, 11, 13, 15, 17, 19, 21, 22, 23, 25, 27, 29]),
            ("0 0 5 * 1", [1, 5, 8, 15, 22, 29]),
            ("0 0 10-20 * */2", [11, 13, 14, 16, 18, 20]),
            ("0 0 */10 * *", [1, 11, 21]),
            ("0 0 * * 1", [1, 8, 15, 22, 29]),
        ],
    )
    def test_two_fields_for_the_day_mean_what_they_mean_in_cron(
        self, expression: str, days: list[int]
    ) -> None:
        due, found = datetime(2026, 6, 1).timestamp() - 1, []
        while (due := next_time("cron", expression, due) or 0.0) < datetime(2026, 7, 1).timestamp():
            found.append(datetime.fromtimestamp(due).day)
        assert found == days

    @pytest.mark.parametrize(
        ("kind", "value", "due"),
        [
            ("interval", "60000.0", NOON + 60),
            ("interval", " 60000 ", NOON + 60),
            ("once", "2030-01-01T00:00:00Z", 1893456000),
            ("once", "2030-01-01T00:00:00.5Z", 1893456000.5),
            ("once", "2030-01-01T02:00:00+0200", 1893456000),
        ],
    )
    def test_a_number_and_a_time_are_read_in_any_usual_spelling(
        self, kind: str, value: str, due: float
    ) -> None:
        assert next_time(kind, value, NOON) == due

    @given(st.integers(1000, 10**8), st.floats(0, 10**8))
    def test_an_interval_keeps_its_pace_and_is_never_due_in_the_past(
        self, milliseconds: int, late: float
    ) -> None:
        due = next_time("interval", str(milliseconds), NOON + late, NOON)
        assert due is not None
        assert due > NOON + late - 1e-3
        assert due <= NOON + late + milliseconds / 1000 + 1e-3

    def add(self, ledger: Ledger, kind: str, value: str, mode: str = "group") -> Task:
        return ledger.schedule.add("main", "local:main", "water", kind, value, mode)

    def test_a_task_that_is_due_becomes_a_prompt_once(self, ledger: Ledger, clock: Clock) -> None:
        task = self.add(ledger, "interval", "60000", "isolated")
        ledger.schedule.start_due()
        assert ledger.open_prompts("main") == []
        clock.now += 61
        ledger.schedule.start_due()
        ledger.schedule.start_due()
        (prompt,) = ledger.open_prompts("main")
        assert (prompt.task, prompt.is_isolated, prompt.text.endswith("\n\nwater")) == (
            task.id,
            True,
            True,
        )
        assert ledger.schedule.task(task.id).next_run == iso_time(NOON + 120)

    def test_what_was_missed_is_run_once_and_not_while_it_still_runs(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        self.add(ledger, "interval", "60000")
        for _ in range(3):
            clock.now += 3600
            ledger.schedule.start_due()
        assert len(ledger.open_prompts("main")) == 1

    def test_a_run_is_logged_with_its_result(self, ledger: Ledger, clock: Clock) -> None:
        task = self.add(ledger, "interval", "60000")
        clock.now += 61
        ledger.schedule.start_due()
        prompt = ledger.begin(ledger.open_prompts("main")[0], "s1")
        clock.now += 2.5
        ledger.answer([prompt], "Watered.")
        assert ledger.schedule.runs(task.id) == [
            TaskRun(task.id, iso_time(NOON + 61), 2500, "success", "Watered.", None)
        ]
        found = ledger.schedule.task(task.id)
        assert (found.status, found.last_run, found.last_result) == (
            "active",
            iso_time(NOON + 61),
            "Watered.",
        )

    def test_a_run_that_failed_is_logged_as_that(self, ledger: Ledger, clock: Clock) -> None:
        task = self.add(ledger, "once", "2026-02-21T13:00")
        clock.now += 3600
        ledger.schedule.start_due()
        ledger.answer(ledger.open_prompts("main"), "There is no answer.", "no credit")
        (run,) = ledger.schedule.runs(task.id)
        assert (run.status, run.result, run.error) == ("error", None, "no credit")
        assert ledger.schedule.task(task.id).status == "completed"

    def test_a_paused_task_waits_and_goes_on_with_what_comes_next(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        task = self.add(ledger, "interval", "60000")
        ledger.schedule.update(task.id, status="paused")
        clock.now += 600
        ledger.schedule.start_due()
        ledger.schedule.update(task.id, status="active")
        ledger.schedule.start_due()
        assert ledger.open_prompts("main") == []
        assert ledger.schedule.task(task.id).next_run == iso_time(clock.now + 60)

    def test_a_task_that_was_dropped_leaves_nothing_to_do(
        self, ledger: Ledger, clock: Clock
    ) -> None:
        task = self.add(ledger, "once", "2026-02-21T13:00")
        clock.now += 3600
        ledger.schedule.start_due()
        ledger.schedule.remove(task.id)
        assert (ledger.schedule.tasks(), ledger.open_prompts("main")) == ([], [])
        with pytest.raises(UnknownTaskError, match="there is no task"):
            ledger.schedule.remove(task.id)


class TestChannels:
    def test_a_file_without_a_channel_is_named(self, tmp_path: Path, ledger: Ledger) -> None:
        (tmp_path / "pigeon.py").write_text("x = 1\n")
        with pytest.raises(ChannelError, match=r"pigeon\.py: it has no class `Channel`"):
            channels_in(str(tmp_path), Chats(ledger, lambda: None, Told(tmp_path)))

    def test_of_what_nobody_answers_a_channel_leaves_name_and_activity_alone(
        self, tmp_path: Path, ledger: Ledger
    ) -> None:
        told = Told(tmp_path)
        chats = Chats(ledger, lambda: None, told)
        at = "2026-02-21T03:00:00.000Z"
        for text in ("the secret of a stranger", "and another"):
            assert chats.receive("pigeon:9", text, sender="9", sender_name="Eve", at=at) == ""
        chats.describe("pigeon:9", "The street", at)
        assert [chat for chat in ledger.chats() if chat.jid == "pigeon:9"] == [
            ("pigeon:9", "The street", at)
        ]
        assert told.events == [
            "pigeon:9: no group answers here; session-memory host add GROUP --chat pigeon:9 makes one"
        ]
        assert chats.receive("local:main", "", sender="1", sender_name="") == "", "a picture, say"
        assert ledger.connection.execute("SELECT count(*) FROM messages").fetchall() == [(0,)]

    def test_there_need_not_be_any(self, tmp_path: Path, ledger: Ledger) -> None:
        assert (
            channels_in(str(tmp_path / "nothing"), Chats(ledger, lambda: None, Told(tmp_path)))
            == []
        )

    def test_who_follows_a_chat_asks_for_replies_only_when_there_may_be_some(
        self, tmp_path: Path, ledger: Ledger
    ) -> None:
        asked: list[int] = []

        class Counted(Chats):
            def replies(self, jid: str, after: int) -> list[ChatReply]:
                asked.append(after)
                return super().replies(jid, after)

        async def followed() -> tuple[int, dict[str, Any]]:
            chats, path = Counted(ledger, lambda: None, Told(tmp_path)), tmp_path / "host.sock"
            serving = asyncio.create_task(UnixSocket(str(path), chats).serve())
            while not path.exists():
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b'{"follow": {"group": "main", "after": 0}}\n')
            await asyncio.sleep(0.5)
            times = len(asked)
            ledger.add_reply("1", "local:main", "It is open.", "reply", "2026-02-21T03:00:00.000Z")
            chats.tell()
            line = await asyncio.wait_for(reader.readline(), 30)
            writer.close()
            serving.cancel()
            return times, json.loads(line)["reply"]

        times, reply = asyncio.run(followed())
        assert (times, reply["text"]) == (1, "It is open.")

    def test_a_path_that_is_too_long_for_a_socket_is_said(
        self, tmp_path: Path, ledger: Ledger
    ) -> None:
        channel = UnixSocket(
            str(tmp_path / ("x" * 100) / "host.sock"), Chats(ledger, lambda: None, Told(tmp_path))
        )
        with pytest.raises(SocketError, match="too long for a socket"):
            asyncio.run(channel.serve())
        assert socket.AF_UNIX


class TestTwoChatsOfAGroup:
    def test_the_terminals_questions_are_a_prompt_of_their_own_with_a_reply_of_their_own(
        self, ledger: Ledger
    ) -> None:
        ledger.receive("chat:7", "nice weather", sender="7", sender_name="Ben")
        asked = ledger.receive("local:garden", "@anna, beans?", sender="terminal", sender_name="")
        prompt = ledger.next_prompt("garden")
        assert prompt is not None
        assert (prompt.jid, prompt.text) == ("local:garden", "@anna, beans?")
        reply = ledger.answer([prompt], "In May.")
        assert ledger.reply_to(asked, "local:garden") == (True, reply)
        assert [one.text for one in ledger.replies(jid="chat:7")] == []
        assert [one.group for one in ledger.replies_in(ledger.chats_of("garden"), 0)] == ["garden"]
        called = ledger.receive("chat:7", "and peas, @anna?", sender="7", sender_name="Ben")
        prompt = ledger.next_prompt("garden")
        assert prompt is not None
        assert "nice weather" in prompt.text
        ledger.answer([prompt], "In April.")
        assert ledger.reply_to(called, "chat:7")[0]

    def test_one_turn_that_answered_both_chats_is_a_reply_in_each(self, ledger: Ledger) -> None:
        ledger.receive("chat:7", "@anna?", sender="7", sender_name="Ben")
        ledger.receive("local:garden", "@anna?", sender="terminal", sender_name="")
        prompts = [ledger.next_prompt("garden"), ledger.next_prompt("garden")]
        ledger.answer([prompt for prompt in prompts if prompt], "Yes.")
        assert [(one.jid, one.text) for one in ledger.replies()] == [
            ("chat:7", "Yes."),
            ("local:garden", "Yes."),
        ]

    def test_the_terminals_chat_is_never_a_chat_without_a_group(self, ledger: Ledger) -> None:
        ledger.update("main", jid="wa:main")
        ledger.note_chat("wa:street")
        assert [chat.jid for chat in ledger.strangers()] == ["wa:street"]

    def test_a_database_of_an_earlier_version_gets_the_new_columns_and_loses_nothing(
        self, tmp_path: Path
    ) -> None:
        path = str(tmp_path / "earlier.db")

        class Earlier(SharedDatabase):
            IF_CORRUPT = ""

        with closing(Earlier(path, (*POINTERS, create_host))) as earlier, earlier.transaction():
            earlier.connection.execute(
                "INSERT INTO registered_groups VALUES "
                "('wa:1', 'The garden', 'garden', '@anna', '2026', NULL, 1)"
            )
        with closing(Ledger(path)) as ledger:
            assert ledger.group("garden").name == "The garden"
            ledger.receive("wa:1", "@anna?", sender="7", sender_name="Ben")
            assert ledger.next_prompt("garden")
