"""A host that is killed loses nothing and answers nothing twice; the checks would notice if it did."""

from __future__ import annotations

import random
import re
import time

import pytest
from host_scene import Echo, HostMachine, about

from bench import host as bench
from session_memory.extras.host.recovery import _running_pids
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE


class TestCrashes:
    @pytest.mark.slow
    def test_an_answer_that_the_dead_hosts_runtime_still_gave_goes_out_once(
        self, host: HostMachine, group: str
    ) -> None:
        host.api.replies = [{"text": "After all.", "seconds": 5}]
        message = host.say(group, "plan m-bed-1")
        host.wait(lambda: about(host, "m-bed-1"), "request")
        host.kill()
        assert len(_running_pids(CLAUDE, host.group(group).config_dir)) == 1
        host.start()
        assert host.reply_to(group, message).text == "After all."
        assert len(about(host, "m-bed-1")) == 1
        assert host.ask(group, "and m-bed-2") == "m-bed-2"
        assert "After all." in about(host, "m-bed-2")[0].text

    @pytest.mark.slow
    def test_a_host_that_is_told_to_stop_ends_its_turns_first(
        self, host: HostMachine, group: str
    ) -> None:
        host.api.replies = [{"text": "Done.", "seconds": 4}]
        message = host.say(group, "plan m-bed-1")
        host.wait(lambda: about(host, "m-bed-1"), "request")
        later = host.say(group, "and m-bed-2")
        assert host.stop() == 0
        assert host.reply_to(group, message).text == "Done."
        assert not host.ledger.reply_to(later, host.ledger.group(group).jid)[0]
        host.start()
        assert host.reply_to(group, later).text == "m-bed-2"

    def test_what_died_with_its_runtime_is_asked_again_and_answered_once(
        self, host: HostMachine, group: str
    ) -> None:
        host.api.replies = [{"text": "Never seen.", "seconds": 10}]
        message = host.say(group, "plan m-bed-1")
        host.wait(lambda: about(host, "m-bed-1"), "request")
        host.kill(with_runtimes=True)
        host.start()
        assert host.reply_to(group, message).text == "m-bed-1"
        assert len(about(host, "m-bed-1")) == 2
        assert [
            reply.answers for reply in host.ledger.replies(0, host.ledger.group(group).jid)
        ] == [(message,)]

    @pytest.mark.slow
    @pytest.mark.parametrize("with_runtimes", [False, True])
    def test_a_task_that_was_planned_before_the_kill_runs_once(
        self, host: HostMachine, group: str, with_runtimes: bool
    ) -> None:
        due = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 8))
        wanted = {"prompt": "water m-can-1", "schedule_type": "once", "schedule_value": due}
        plan = {"tools": [{"name": "mcp__session-memory__schedule_task", "input": wanted}]}
        host.api.replies = [plan, {"text": "Planned.", "seconds": 6}]
        message = host.say(group, "plan m-bed-1")
        (task,) = host.wait(lambda: host.ledger.schedule.tasks(group), "task")
        host.kill(with_runtimes=with_runtimes)
        if with_runtimes:  # it is asked again, and plans again
            host.api.replies = [plan, {"text": "Planned."}]
        host.start()
        assert host.reply_to(group, message).text == "Planned."
        assert [one.id for one in host.ledger.schedule.tasks(group)] == [task.id]
        host.wait(lambda: host.ledger.schedule.runs(task.id), "run of the task")
        host.kill(with_runtimes=with_runtimes)
        host.start()
        assert host.ask(group, "and m-bed-2") == "m-bed-2"
        assert [run.status for run in host.ledger.schedule.runs(task.id)] == ["success"]
        assert [one.text for one in host.ledger.replies(0, host.ledger.group(group).jid)].count(
            "m-can-1"
        ) == 1

    @pytest.mark.slow
    def test_a_task_that_cancels_itself_while_its_host_is_killed_gives_its_answer_and_is_gone(
        self, host: HostMachine, group: str
    ) -> None:
        task = host.due(group, "water m-can-1")
        cancel = {"tools": [{"name": "mcp__session-memory__cancel_task", "input": {"id": task}}]}
        host.api.replies = [cancel, {"text": "Watered for the last time.", "seconds": 4}]
        host.wait(lambda: not host.ledger.schedule.tasks(group), "cancelling")
        host.kill()
        host.start()
        jid = host.ledger.group(group).jid
        host.wait(lambda: host.ledger.latest_replies([jid], 1), "answer of the task")
        assert [reply.text for reply in host.ledger.replies(0, jid)] == [
            "Watered for the last time."
        ]
        assert host.ledger.status_of(task) == ""

    @pytest.mark.slow
    def test_a_model_that_fails_is_asked_again_and_then_the_chat_is_told(
        self, host: HostMachine, group: str
    ) -> None:
        host.api.replies = [{"error": 400, "text": "made-up failure"}] * 20
        reply = host.reply_to(group, host.say(group, "plan m-bed-1"))
        host.api.replies = []
        assert reply.kind == "error"
        assert re.match(r"There was no answer after 2 attempts: .*made-up failure", reply.text)
        assert host.ask(group, "and m-bed-2").endswith("m-bed-2")
        assert "made-up failure" in host.output()


@pytest.mark.slow
@pytest.mark.usefixtures("bundled_cli")
def test_the_books_agree_after_three_kills() -> None:
    dice = random.Random(5)
    with Echo(lambda: dice.choice(bench.THINKING_SECONDS)) as api:
        machine = HostMachine(api)
        try:
            books = bench.play(machine, 3, 5, 3, dice, lives_seconds=(1.5, 4.0))
        finally:
            machine.close()
    assert {name: found for name, found in books.problems.items() if found} == {}
    assert (books.messages, books.kills) == (15, 3)
    assert books.requests >= books.replies > 0


def test_a_fault_would_show_in_the_books() -> None:
    with Echo() as api:
        machine = HostMachine(api)
        machine.init("main")
        ids = {f"m-main-{number}": machine.say("main", f"m-main-{number}") for number in range(2)}
        prompt = machine.ledger.next_prompt("main")
        assert prompt is not None
        machine.ledger.answer([prompt], "m-main-1")
        lost = {"m-main-2": ("main", "never-taken")}
        books = bench.compare(
            machine, {**{token: ("main", one) for token, one in ids.items()}, **lost}, 0, 0.0
        )
        machine.close()
    assert {name: found for name, found in books.problems.items() if found} == {
        "never seen by the API": ["m-main-0", "m-main-1", "m-main-2"],
        "not answered": ["m-main-2"],
        "answered without regard to it": ["m-main-0"],
        "not delivered": ["1"],
    }
