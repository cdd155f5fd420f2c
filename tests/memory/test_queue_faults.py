"""The queue where strategies fail and processes die: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from memories_scene import MINUTE, QueueScene, Scripted
from stored import HOUR, START, talk

from session_memory.memory.queue import _decoded, _encoded
from session_memory.memory.strategy import (
    BudgetError,
    Memory,
    MemoryResult,
    StrategyError,
    UnavailableError,
    Usage,
)

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[QueueScene]:
    with closing(QueueScene(tmp_path / "store.db")) as machine:
        yield machine


class TestFailures:
    def test_what_may_pass_is_tried_again_later_and_ever_later(self, machine):
        one = machine.stored.add(*talk("the build"))
        busy = StrategyError("529 overloaded", is_temporary=True)
        strategy = Scripted("scripted", busy, busy)
        [done] = machine.run(strategy)
        assert done[2:4] == ("waiting", "529 overloaded")
        assert machine.stored.status(one) == ("ready", "")
        for pause in (1, 4):
            machine.later += pause * MINUTE - 1
            assert machine.run(strategy) == []
            machine.later += 1
            assert len(machine.run(strategy)) == 1
        assert machine.stored.status(one) == ("archived", "")

    def test_what_was_tried_often_enough_is_skipped_with_its_reason(self, machine):
        one = machine.stored.add(*talk("the build"))
        strategy = Scripted("scripted", *[StrategyError("timed out", is_temporary=True)] * 3)
        for _ in range(3):
            machine.run(strategy, attempts=3)
            machine.later += 24 * HOUR
        assert machine.stored.status(one) == ("skipped", "failed 3 times: timed out")

    def test_what_can_never_be_done_is_skipped_at_once(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.run(Scripted("scripted", StrategyError("the answer was cut off twice")))
        assert machine.stored.status(one) == ("skipped", "the answer was cut off twice")

    def test_a_strategy_with_a_bug_gets_as_many_tries_and_takes_nothing_down(self, machine):
        one = machine.stored.add(*talk("the build"))
        other = machine.stored.add(*talk("the tests"), at=START + HOUR)
        machine.run(Scripted("scripted", KeyError("title")))
        assert machine.stored.status(one) == ("ready", "")
        assert machine.stored.status(other) == ("archived", "")

    def test_a_strategy_that_cannot_work_at_all_stops_and_nothing_is_held_against_conversations(
        self, machine
    ):
        ids = [machine.stored.add(*talk(f"topic {number}")) for number in range(3)]
        strategy = Scripted("scripted", *[UnavailableError("no key")] * 9)
        for _ in range(9):
            [done] = machine.run(strategy, attempts=2)
            assert done[2:4] == ("stopped", "no key")
        machine.run(strategy, attempts=2)
        assert {machine.stored.status(one)[0] for one in ids} == {"archived"}

    def test_three_failures_in_a_row_end_a_run(self, machine):
        for number in range(9):
            machine.stored.add(*talk(f"topic {number}"))
        strategy = Scripted("scripted", *[StrategyError("529", is_temporary=True)] * 9)
        *_, last = machine.run(strategy)
        assert last[2:4] == ("stopped", "3 in a row failed: 529")
        assert len(strategy.seen) == 3

    def test_what_cannot_be_kept_is_kept_later_without_asking_again(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.keep_fails = [OSError(28, "No space left on device")] * 7
        strategy = Scripted()
        for _ in range(8):
            machine.run(strategy, attempts=2)
            machine.later += 48 * HOUR
        assert len(strategy.seen) == 1
        assert [kept[0] for kept in machine.kept] == [one]
        assert machine.stored.status(one) == ("archived", "")

    def test_control_characters_and_secrets_of_an_error_are_not_stored(self, machine):
        one = machine.stored.add(*talk("the build"))
        key = "sk-ant-" + "api03-" + "abcdefghij" * 9 + "AA"
        machine.run(Scripted("scripted", StrategyError(f"401 \x1b[31mfor {key}\n" + "x" * 999)))
        reason = machine.stored.status(one)[1]
        assert reason.startswith("401 for [redacted")
        assert len(reason) == 200


class TestCrashes:
    def test_what_a_process_was_at_work_on_when_it_died_is_taken_up_at_once(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.work.take("scripted", machine.now())
        assert machine.stored.status(one) == ("processing", "")
        machine.run(Scripted())
        assert machine.stored.status(one) == ("archived", "")

    def test_while_a_strategy_is_at_work_no_other_process_is_for_it(self, machine):
        machine.stored.add(*talk("the build"))
        machine.stored.add(*talk("the tests"), at=START + HOUR)
        other = Scripted()
        seen = []
        machine.run(Scripted("scripted", lambda: seen.extend(machine.run(other))), limit=1)
        assert [done[2:4] for done in seen] == [("stopped", "another process is running it")]
        assert other.seen == []

    def test_a_result_that_was_recorded_is_kept_and_not_asked_for_again(self, machine):
        one = machine.stored.add(*talk("the build"))
        piece = machine.work.take("scripted", machine.now())
        result = MemoryResult((Memory("episode", "made before the crash", "text"),))
        account = machine.work.accounts.open("scripted", one, Usage(), machine.now(), 1000)
        machine.work.keep_result(piece, _encoded(result), account, Usage())
        machine.stored.add("Something new", name="other")
        strategy = Scripted()
        machine.run(strategy)
        assert strategy.seen == []
        assert machine.kept == [(one, "scripted", START + 4 * MINUTE, ("made before the crash",))]

    def test_a_conversation_that_takes_every_process_down_is_skipped_in_the_end(self, machine):
        one = machine.stored.add(*talk("the build"))
        for _ in range(11):
            machine.work.take("scripted", machine.now())
        machine.run(Scripted())
        assert machine.stored.status(one) == (
            "skipped",
            "the process ended 11 times while processing it",
        )

    def test_stopping_it_by_hand_gives_back_what_it_was_at(self, machine):
        one = machine.stored.add(*talk("the build"))
        with pytest.raises(KeyboardInterrupt):
            machine.run(Scripted("scripted", KeyboardInterrupt()))
        assert machine.stored.status(one) == ("ready", "")
        assert len(machine.run(Scripted())) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_kill_at_any_moment_loses_nothing_and_does_nothing_twice(self):
        command = [
            sys.executable,
            "-m",
            "bench.queue",
            "--kills",
            "40",
            "--seed",
            str(time.time_ns()),
        ]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_result_survives_being_written_down():
    memory = Memory("fact", "ü \u2028", "text", "subject", "quote", ("a", "b"))
    result = MemoryResult((memory,), "", Usage(1, 2, 3, "model"))
    assert _decoded(_encoded(result)) == result


def test_a_result_that_another_version_wrote_down_is_read_without_what_is_not_known():
    result = MemoryResult((Memory("fact", "title", "text", "subject", "quote", ("a",)),))
    written = json.loads(_encoded(result))
    written["memories"][0]["quoted_item"] = 7
    assert _decoded(json.dumps(written)) == result


def test_a_budget_error_of_the_day_leaves_the_conversation_for_tomorrow(machine):
    one = machine.stored.add(*talk("the build"))
    [done] = machine.run(Scripted("scripted", BudgetError("nothing left today")))
    assert done[2:4] == ("stopped", "nothing left today")
    assert machine.stored.status(one) == ("ready", "")
