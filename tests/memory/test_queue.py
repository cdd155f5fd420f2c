"""The queue: the outcome of conversations for any set of strategies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from memories_scene import MINUTE, QueueScene, Scripted
from stored import HOUR, START, talk

from session_memory.history.store.sqlite._conversations import rebuild_conversations
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.history.store.values import Filter
from session_memory.memory.strategy import MemoryResult, StrategyError, UnavailableError


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[QueueScene]:
    with closing(QueueScene(tmp_path / "store.db")) as machine:
        yield machine


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

    def test_the_next_is_found_without_a_look_at_all_that_wait(self, machine):
        for number in range(30):
            machine.stored.add(*talk(f"topic {number}"))
        looks: list[str] = []

        def note(_: object, sql: str, __: object) -> bool:
            looks.append(sql)
            return True

        machine.work.connection.exec_trace = note
        assert len(machine.run(Scripted())) == 30
        passes = [sql for sql in looks if "LIMIT 100" in sql]
        assert len(passes) == 2  # the second finds that none is left
        assert all("c.id = ?" in sql for sql in looks if "w.attempts" in sql)

    def test_one_that_is_older_than_those_of_an_earlier_run_comes_first(self, machine):
        for number in range(3):
            machine.stored.add(*talk(f"topic {number}"), at=START + (number + 2) * 24 * HOUR)
        machine.run(Scripted(), limit=1)
        older = machine.stored.add(*talk("the tests"))
        assert machine.run(Scripted(), limit=1)[0].conversation.id == older

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
        machine.work.close()
        machine.work = StoredQueue(machine.stored.path, visible=("mine",))
        machine.run(Scripted())
        assert machine.stored.status(mine)[0] == "archived"
        assert machine.stored.status(other)[0] == "ready"


class TestSkipping:
    def test_nothing_but_commands_is_skipped_without_asking_the_strategy(self, machine):
        one = machine.stored.add(
            "/model opus", ("Bash", "command", "ls"), "/clear", "/cost", "/status", "/exit"
        )
        strategy = Scripted()
        machine.run(strategy)
        assert machine.stored.status(one) == ("skipped", "only commands")
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
        assert machine.stored.status(one) == ("skipped", "no text")

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
        assert (
            machine.stored.add("One more thing", "> Yes?", name="a", at=START + 30 * MINUTE) == one
        )
        assert machine.stored.status(one) == ("ready", "")
        machine.run(strategy)
        assert [texts for _, texts in strategy.seen] == [
            [text.removeprefix("> ") for text in talk("the build")],
            ["One more thing", "Yes?"],
        ]
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
    def test_conversations_that_are_cut_otherwise_are_not_processed_again(
        self, machine, gap_minutes
    ):
        first = machine.stored.add(*talk("the build"), name="a")
        machine.stored.add(*talk("the tests"), name="a", at=START + 5 * HOUR)
        failing = Scripted("scripted", StrategyError("529", is_temporary=True))
        machine.run(failing, limit=2)
        assert [machine.stored.status(number)[0] for number in (first, first + 1)] == [
            "ready",
            "archived",
        ]
        rebuild_conversations(machine.stored.store, gap_minutes)
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
        from records import assistant, user, write

        from session_memory.history.store.ingest.ingestion import Ingestion
        from session_memory.history.store.ingest.sources import SourceDirectory

        original = [
            record
            for number in range(3)
            for record in (
                user(f"question {number}", at=1e9 + number),
                assistant(f"answer {number}", at=1e9 + number),
            )
        ]
        root = tmp_path / "projects"
        write(root / "p" / "original.jsonl", *original)
        write(
            root / "p" / "fork.jsonl",
            *original,
            user("only here", at=1e9 + 9),
            assistant("indeed", at=1e9 + 9),
        )
        ingestion = Ingestion(machine.stored.store)
        ingestion.scan(SourceDirectory(str(root)))
        machine.stored.store.mark_ready(machine.now())
        strategy = Scripted()
        machine.run(strategy)
        said = [text for _, texts in strategy.seen for text in texts]
        assert len(strategy.seen) == 2
        assert sorted(said) == sorted(
            [f"{what} {number}" for number in range(3) for what in ("question", "answer")]
            + ["only here", "indeed"]
        )
