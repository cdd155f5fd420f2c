"""The queue: what becomes of conversations, whatever strategies and processes do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from stored import HOUR, START, Stored, talk

from session_memory.memories.budget import TokenBudget
from session_memory.memories.queue import Done, Queue, decoded, encoded
from session_memory.memories.strategy import (
    BudgetError,
    Memory,
    MemoryResult,
    StrategyError,
    UnavailableError,
    Usage,
)
from session_memory.store.mending import recut
from session_memory.store.values import Conversation, Filter, StoredEntry
from session_memory.store.work import Work

ROOT = Path(__file__).resolve().parents[1]
MINUTE = 60_000


class Scripted:
    """A strategy that does what it is told, one after the other, and then makes an episode of everything."""

    def __init__(self, id: str = "scripted", *script: object) -> None:
        self.id = id
        self.script = list(script)
        self.seen: list[tuple[int, list[str]]] = []
        self.is_willing = True

    def should_process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> bool:
        return self.is_willing

    def process(self, conversation: Conversation, entries: Sequence[StoredEntry]) -> MemoryResult:
        self.seen.append((conversation.id, [entry.text for entry in entries]))
        step: Any = self.script.pop(0) if self.script else None
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            step()
        elif step is not None:
            return step
        return MemoryResult((Memory("episode", f"about {conversation.id}", entries[0].text),))


class Machine:
    """A store, a clock that stands still, and what was kept."""

    def __init__(self, path: Path) -> None:
        self.stored = Stored(path)
        self.kept: list[tuple[int, str, int | None, tuple[str, ...]]] = []
        self.keep_fails: list[Exception] = []
        self.work = Work(self.stored.path)
        self.later = 0

    def now(self) -> int:
        return self.stored.now + self.later

    def keep(
        self, conversation: Conversation, entries: Sequence[StoredEntry], strategy: str, result: MemoryResult
    ) -> list[str]:
        if self.keep_fails:
            raise self.keep_fails.pop(0)
        titles = tuple(memory.title for memory in result.memories)
        self.kept.append((conversation.id, strategy, conversation.last_message_at, titles))
        return [f"memory-{len(self.kept)}"]

    def queue(self, **options: Any) -> Queue:
        budget = options.pop("budget", None) or TokenBudget(self.work.spending, 1000, 1000, self.now)
        return Queue(self.stored.path, self.keep, budget, self.work, self.now, **options)

    def run(self, *strategies: Scripted, ids: tuple[str, ...] = (), **options: Any) -> list[Done]:
        chosen = {key: options.pop(key) for key in ("limit", "statuses", "stop") if key in options}
        all_ids = ids or tuple(strategy.id for strategy in strategies)
        return list(self.queue(**options).work_off(strategies, all_ids, **chosen))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path / "store.db")
    yield machine
    machine.work.close()
    machine.stored.close()


class TestWorkingOff:
    def test_a_finished_conversation_is_archived_with_what_was_made_of_it(self, machine):
        one = machine.stored.add(*talk("the build"))
        [done] = machine.run(Scripted())
        assert done[2:] == ("archived", "", ("memory-1",))
        assert machine.stored.status(one) == ("archived", "")
        assert machine.kept == [(one, "scripted", START + 4 * MINUTE, (f"about {one}",))]

    def test_a_conversation_that_still_goes_on_is_left_alone(self, machine):
        one = machine.stored.add(*talk("the build"), ready=False)
        assert machine.run(Scripted()) == []
        assert machine.stored.status(one) == ("active", "")

    def test_it_is_done_once(self, machine):
        machine.stored.add(*talk("the build"))
        strategy = Scripted()
        machine.run(strategy)
        assert machine.run(strategy) == []
        assert len(strategy.seen) == 1

    def test_the_oldest_comes_first_so_that_the_newer_may_correct_it(self, machine):
        newer = machine.stored.add(*talk("the build"), at=START + 24 * HOUR)
        older = machine.stored.add(*talk("the tests"))
        assert [done.conversation.id for done in machine.run(Scripted())] == [older, newer]

    def test_a_limit_ends_it_early(self, machine):
        for number in range(3):
            machine.stored.add(*talk(f"topic {number}"))
        assert len(machine.run(Scripted(), limit=2)) == 2

    def test_it_stops_when_it_is_told_to(self, machine):
        for number in range(3):
            machine.stored.add(*talk(f"topic {number}"))
        assert len(machine.run(Scripted(), stop=lambda: True)) == 1

    def test_other_groups_are_left_alone(self, machine):
        mine = machine.stored.add(*talk("the build"), home="mine")
        other = machine.stored.add(*talk("the build"), home="other")
        machine.run(Scripted(), homes=("mine",))
        assert machine.stored.status(mine)[0] == "archived"
        assert machine.stored.status(other)[0] == "ready"


class TestSkipping:
    def test_nothing_but_commands_is_skipped_without_asking_the_strategy(self, machine):
        one = machine.stored.add("/model opus", ("Bash", "command", "ls"), "/clear", "/cost", "/status", "/exit")
        strategy = Scripted()
        machine.run(strategy)
        assert machine.stored.status(one) == ("skipped", "nothing but commands")
        assert strategy.seen == []

    def test_a_path_is_no_command(self, machine):
        one = machine.stored.add("/etc/hosts is empty, why?", "/a", "/b", "/c", "/d")
        machine.run(Scripted())
        assert machine.stored.status(one)[0] == "archived"

    def test_what_the_strategy_has_no_use_for_is_skipped(self, machine):
        one = machine.stored.add(*talk("the build"))
        strategy = Scripted()
        strategy.is_willing = False
        machine.run(strategy)
        assert machine.stored.status(one) == ("skipped", "nothing in it")

    def test_the_strategys_own_reason_is_told(self, machine):
        one = machine.stored.add(*talk("the build"))
        [done] = machine.run(Scripted("scripted", MemoryResult(skipped="only\nsmall talk <b>")))
        assert machine.stored.status(one) == ("skipped", "only small talk <b>")
        assert done.memories == ()

    def test_one_of_several_strategies_is_enough_to_archive(self, machine):
        one = machine.stored.add(*talk("the build"))
        unwilling = Scripted("unwilling")
        unwilling.is_willing = False
        machine.run(unwilling, Scripted("willing"))
        assert machine.stored.status(one) == ("archived", "")


class TestSeveralStrategies:
    def test_a_conversation_is_archived_when_all_of_them_are_done(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.run(Scripted("first"), ids=("first", "second"))
        assert machine.stored.status(one) == ("ready", "")
        machine.run(Scripted("second"), ids=("first", "second"))
        assert machine.stored.status(one) == ("archived", "")

    def test_one_that_is_no_longer_configured_is_not_waited_for(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.run(Scripted("first"), ids=("first", "second"))
        machine.run(Scripted("first"))
        assert machine.stored.status(one) == ("archived", "")

    def test_a_new_one_gets_what_was_archived_before_only_if_asked(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.run(Scripted("first"))
        new = Scripted("new")
        assert machine.run(new, ids=("first", "new")) == []
        machine.run(new, ids=("first", "new"), statuses=("archived",))
        assert [seen for seen, _ in new.seen] == [one]
        assert machine.stored.status(one) == ("archived", "")

    def test_a_failure_of_one_does_not_keep_the_other_from_its_work(self, machine):
        machine.stored.add(*talk("the build"))
        other = Scripted("other")
        machine.run(Scripted("failing", UnavailableError("no key")), other)
        assert len(other.seen) == 1


class TestWatermark:
    def test_what_comes_later_is_a_piece_of_its_own(self, machine):
        one = machine.stored.add(*talk("the build"), name="a")
        strategy = Scripted()
        machine.run(strategy)
        assert machine.stored.add("One more thing", "> Yes?", name="a", at=START + 30 * MINUTE) == one
        assert machine.stored.status(one) == ("ready", "")
        machine.run(strategy)
        assert [texts for _, texts in strategy.seen] == [
            [text.removeprefix("> ") for text in talk("the build")], ["One more thing", "Yes?"],
        ]  # fmt: skip
        assert [kept[2] for kept in machine.kept] == [START + 4 * MINUTE, START + 31 * MINUTE]
        assert machine.stored.status(one) == ("archived", "")

    def test_a_later_entry_with_the_time_of_the_last_one_is_not_missed(self, machine):
        machine.stored.add(*talk("the build"), name="a")
        strategy = Scripted()
        machine.run(strategy)
        machine.stored.add("At the same time", name="a", at=START + 4 * MINUTE)
        machine.run(strategy)
        assert strategy.seen[-1][1] == ["At the same time"]

    def test_what_comes_while_a_strategy_is_at_work_is_not_lost(self, machine):
        one = machine.stored.add(*talk("the build"), name="a")

        def grow():
            machine.stored.add("Wait, also this", name="a", at=START + 9 * MINUTE, ready=False)

        strategy = Scripted("scripted", grow)
        machine.run(strategy)
        assert machine.stored.status(one)[0] == "active"
        machine.stored.store.mark_ready(machine.now() + 9 * HOUR)
        machine.run(strategy)
        assert strategy.seen[-1][1] == ["Wait, also this"]
        assert machine.stored.status(one)[0] == "archived"

    def test_a_file_that_is_read_anew_is_not_processed_again(self, machine):
        machine.stored.add(*talk("the build"), name="a")
        strategy = Scripted()
        machine.run(strategy)
        machine.stored.store.forget("", "a.jsonl")
        again = machine.stored.add(*talk("the build"), "And this is new", name="a")
        machine.run(strategy)
        assert [texts for _, texts in strategy.seen[1:]] == [["And this is new"]]
        assert machine.stored.status(again)[0] == "archived"

    def test_another_file_that_gets_the_ids_of_a_forgotten_one_is_processed(self, machine):
        machine.stored.add(*talk("the build"), name="a")
        strategy = Scripted()
        machine.run(strategy)
        machine.stored.store.forget("", "a.jsonl")
        machine.stored.add(*talk("the tests"), name="b")
        machine.run(strategy)
        assert strategy.seen[-1][1][0] == "Please look into the tests for me"

    @pytest.mark.parametrize("gap_minutes", [600, 1])
    def test_conversations_that_are_cut_otherwise_are_not_processed_again(self, machine, gap_minutes):
        first = machine.stored.add(*talk("the build"), name="a")
        machine.stored.add(*talk("the tests"), name="a", at=START + 5 * HOUR)
        failing = Scripted("scripted", StrategyError("529", is_temporary=True))
        machine.run(failing, limit=2)
        assert [machine.stored.status(number)[0] for number in (first, first + 1)] == ["ready", "archived"]
        recut(machine.stored.store, gap_minutes)
        machine.later += 24 * HOUR
        machine.stored.store.mark_ready(machine.now() + 24 * HOUR)
        strategy = Scripted()
        machine.run(strategy)
        said = [text for _, texts in strategy.seen for text in texts]
        assert said == [text.removeprefix("> ") for text in talk("the build")]
        statuses = {one.status for one in machine.stored.store.conversations(Filter(limit=99))}
        assert statuses <= {"archived", "skipped"}

    def test_nothing_new_in_a_file_that_is_read_anew_costs_nothing(self, machine):
        machine.stored.add(*talk("the build"), name="a")
        strategy = Scripted()
        machine.run(strategy)
        machine.stored.store.forget("", "a.jsonl")
        again = machine.stored.add(*talk("the build"), name="a")
        machine.run(strategy)
        assert len(strategy.seen) == 1
        assert machine.stored.status(again) == ("archived", "")


class TestForks:
    def test_what_was_seen_in_the_original_is_not_seen_again_in_its_fork(self, machine, tmp_path):
        from builders import assistant, user, write

        from session_memory.store.ingest import Ingestion
        from session_memory.store.sources import Source

        original = [
            record
            for number in range(3)
            for record in (user(f"question {number}", at=1e9 + number), assistant(f"answer {number}", at=1e9 + number))
        ]
        root = tmp_path / "projects"
        write(root / "p" / "original.jsonl", *original)
        write(root / "p" / "fork.jsonl", *original, user("only here", at=1e9 + 9), assistant("indeed", at=1e9 + 9))
        ingestion = Ingestion(machine.stored.store)
        ingestion.scan(Source(str(root)))
        machine.stored.store.mark_ready(machine.now())
        strategy = Scripted()
        machine.run(strategy)
        said = [text for _, texts in strategy.seen for text in texts]
        assert len(strategy.seen) == 2
        assert sorted(said) == sorted(
            [f"{what} {number}" for number in range(3) for what in ("question", "answer")] + ["only here", "indeed"]
        )


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

    def test_a_strategy_that_cannot_work_at_all_stops_and_nothing_is_held_against_conversations(self, machine):
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
    def test_what_a_process_was_at_work_on_is_taken_up_when_its_lease_is_over(self, machine):
        one = machine.stored.add(*talk("the build"))
        machine.work.take("scripted", "dead", machine.now(), lease=MINUTE, longest=HOUR)
        assert machine.stored.status(one) == ("processing", "")
        [done] = machine.run(Scripted())
        assert done[2:4] == ("stopped", "another process is at work for it")
        machine.later += MINUTE
        machine.run(Scripted())
        assert machine.stored.status(one) == ("archived", "")

    def test_one_conversation_at_a_time_for_each_strategy(self, machine):
        for number in range(2):
            machine.stored.add(*talk(f"topic {number}"))
        assert machine.work.take("scripted", "one", machine.now(), lease=MINUTE, longest=HOUR)
        assert machine.work.take("scripted", "two", machine.now(), lease=MINUTE, longest=HOUR) is None
        assert machine.work.take("other", "two", machine.now(), lease=MINUTE, longest=HOUR)

    def test_a_renewed_lease_holds_but_not_for_ever(self, machine):
        machine.stored.add(*talk("the build"))
        begin = machine.now()
        machine.work.take("scripted", "slow", begin, lease=MINUTE, longest=HOUR)
        machine.work.renew("slow", begin + 50 * MINUTE, 20 * MINUTE)
        assert machine.work.busy_until("scripted", "other", begin) == begin + HOUR

    def test_while_a_strategy_is_at_work_no_other_process_is_for_it(self, machine):
        machine.stored.add(*talk("the build"))
        machine.stored.add(*talk("the tests"), at=START + HOUR)
        other = Scripted()
        seen = []
        machine.run(Scripted("scripted", lambda: seen.extend(machine.run(other))), limit=1)
        assert [done[2:4] for done in seen] == [("stopped", "another process is at work for it")]
        assert other.seen == []

    def test_the_lease_of_a_slow_strategy_is_renewed_while_it_works(self, tmp_path):
        stored = Stored(tmp_path / "slow.db")
        stored.add(*talk("the build"))
        work = Work(stored.path)

        def lease() -> int:
            return stored.store.connection.execute("SELECT max(lease_until) FROM memory_work").get

        def wait() -> None:
            first, deadline = lease(), time.monotonic() + 60
            while lease() == first and time.monotonic() < deadline:
                time.sleep(0.01)
            assert lease() > first

        def clock() -> int:
            return time.time_ns() // 1_000_000

        budget = TokenBudget(work.spending, 1, 1, clock)
        queue = Queue(stored.path, lambda *_: [], budget, work, clock, lease_seconds=1.0)
        [done] = queue.work_off([Scripted("scripted", wait)], ("scripted",))
        assert done.status == "archived"
        work.close()
        stored.close()

    def test_a_result_that_was_recorded_is_kept_and_not_asked_for_again(self, machine):
        one = machine.stored.add(*talk("the build"))
        piece = machine.work.take("scripted", "dead", machine.now(), lease=MINUTE, longest=HOUR)
        result = MemoryResult((Memory("episode", "made before the crash", "text"),))
        account = machine.work.spending.open("scripted", one, Usage(), machine.now(), 1000)
        assert machine.work.keep_result(piece, "dead", encoded(result), account, Usage())
        machine.stored.add("Something new", name="other")
        machine.later += HOUR
        strategy = Scripted()
        machine.run(strategy)
        assert strategy.seen == []
        assert machine.kept == [(one, "scripted", START + 4 * MINUTE, ("made before the crash",))]

    def test_one_that_lost_its_lease_cannot_record_what_another_has_done(self, machine):
        one = machine.stored.add(*talk("the build"))
        piece = machine.work.take("scripted", "slow", machine.now(), lease=MINUTE, longest=HOUR)
        machine.later += 2 * MINUTE
        machine.run(Scripted())
        assert not machine.work.finish(piece, "slow", "skipped", "too late", ("scripted",))
        assert not machine.work.put_back(piece, "slow")
        assert machine.stored.status(one) == ("archived", "")

    def test_a_conversation_that_takes_every_process_down_is_skipped_in_the_end(self, machine):
        one = machine.stored.add(*talk("the build"))
        for _ in range(11):
            machine.work.take("scripted", "dead", machine.now(), lease=MINUTE, longest=HOUR)
            machine.later += MINUTE
        machine.run(Scripted())
        assert machine.stored.status(one) == (
            "skipped", "the process ended 11 times while it was at work on it",
        )  # fmt: skip

    def test_stopping_it_by_hand_gives_back_what_it_was_at(self, machine):
        one = machine.stored.add(*talk("the build"))
        with pytest.raises(KeyboardInterrupt):
            machine.run(Scripted("scripted", KeyboardInterrupt()))
        assert machine.stored.status(one) == ("ready", "")
        assert len(machine.run(Scripted())) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_kill_at_any_moment_loses_nothing_and_does_nothing_twice(self):
        command = [sys.executable, "-m", "bench.queue", "--kills", "40", "--seed", str(time.time_ns())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_result_survives_being_written_down():
    memory = Memory("fact", "ü \u2028", "text", "subject", "quote", 7, ("a", "b"))
    result = MemoryResult((memory,), "", Usage(1, 2, 3, "model"))
    assert decoded(encoded(result)) == result


def test_a_budget_error_of_the_day_leaves_the_conversation_for_tomorrow(machine):
    one = machine.stored.add(*talk("the build"))
    [done] = machine.run(Scripted("scripted", BudgetError("nothing left today")))
    assert done[2:4] == ("stopped", "nothing left today")
    assert machine.stored.status(one) == ("ready", "")
