"""Memories are kept, merged, superseded and forgotten, and not lost if a process is killed."""

from __future__ import annotations

import json
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from memories_scene import DAY, EXPIRY, FEBRUARY, MemoryDirectory, conversation, fact

from session_memory.memory import forgotten, format, library, pages, prompt_index
from session_memory.memory._similarity import contradicts, normalised, says_the_same, wording
from session_memory.memory.memory_index import IndexedMemory, MemoryIndex
from session_memory.memory.strategy import Memory, MemoryResult


class TestLikeness:
    def test_texts_with_nearly_the_same_words_say_the_same(self) -> None:
        for one, other in [
            ("The JWT expiry is 3600 seconds.", "JWT expiry is 3600 seconds"),
            ("The user prefers tabs over spaces", "User prefers tabs over spaces."),
            ("会議は毎週月曜日です", "会議は毎週月曜日です。"),
            ("שלום לכל העולם", "שָׁלוֹם לכל העולם"),
            ("Die Straße ist groß", "Die Strasse ist gross"),
            ("ガラス は あつい", "ｶﾞﾗｽ は あつい"),
        ]:
            assert says_the_same(wording(one), wording(other))

    def test_words_that_differ_in_a_vowel_sign_are_different_words(self) -> None:
        for one, other in [("दिन", "दान"), ("பால்", "பில்"), ("วัน", "วิน"), ("গ্রাম", "গরম")]:
            assert not says_the_same(
                wording(f"{one} {one}{one}"), wording(f"{other} {other}{other}")
            )
            assert normalised(one) != normalised(other), "which would be one memory"
        assert len(wording("हिन्दी में लिखो").words) == 3

    def test_another_number_or_a_no_contradicts(self) -> None:
        for one, other in [
            ("The JWT expiry is 3600 seconds", "The JWT expiry is 7200 seconds"),
            ("The shop uses Redis for sessions", "The shop does not use Redis for sessions"),
            ("Deploys of the shop run in 5s", "Deploys of the shop run in 12s"),
        ]:
            assert contradicts(wording(one), wording(other))
            assert not says_the_same(wording(one), wording(other))

    def test_texts_about_different_things_have_nothing_to_do_with_each_other(self) -> None:
        for one, other in [
            ("The port of alpha is 80", "The port of beta is 81"),
            ("Tests live in tests/", "Docs live in docs/"),
            ("Port 80", "Port 81"),
        ]:
            assert not contradicts(wording(one), wording(other))
            assert not says_the_same(wording(one), wording(other))


class TestKeeping:
    def test_the_same_again_changes_nothing(self, memory_dir: MemoryDirectory) -> None:
        memories = (
            EXPIRY,
            Memory("episode", "Login", "Fixed."),
            Memory("question", "Which port?", ""),
        )
        first = memory_dir.keep(*memories)
        before = memory_dir.content()
        assert memory_dir.keep(*memories) == first
        assert memory_dir.content() == before

    def test_a_fact_that_is_said_again_is_one_item_with_both_sources_and_the_later_date(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        later = conversation(20, FEBRUARY + DAY, session_id="other")
        again = fact("JWT expiry of the login service is 3600 seconds.")
        assert memory_dir.keep(again, of=later) == [id]
        (kept,) = memory_dir.all()
        assert [origin[1] for origin in kept.origins] == [
            "d58a79a7-1111-4222-8333-abcdefabcdef",
            "other",
        ]
        assert kept.at == FEBRUARY + DAY

    def test_a_newer_value_supersedes_the_older_one_which_stays_struck(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (old,) = memory_dir.keep(EXPIRY)
        newer = fact("The JWT expiry of the login service is 7200 seconds")
        (new,) = memory_dir.keep(newer, of=conversation(13, FEBRUARY + DAY))
        text = memory_dir.page("facts.md").read_text()
        assert f"## ~~The JWT expiry of the login service is 3600 seconds~~ ^{old}\n" in text
        assert f"*Superseded 2026-02-22 14:32:05 UTC by ^{new}*" in text
        assert memory_dir.found("JWT expiry") == [
            "The JWT expiry of the login service is 7200 seconds"
        ]
        assert len(memory_dir.found("JWT expiry", with_superseded=True)) == 2

    def test_an_older_value_that_comes_late_supersedes_nothing(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (new,) = memory_dir.keep(EXPIRY)
        (old,) = memory_dir.keep(
            fact("The JWT expiry of the login service is 60 seconds"),
            of=conversation(2, FEBRUARY - DAY),
        )
        assert {memory.id: memory.superseded for memory in memory_dir.all()} == {new: "", old: new}

    def test_what_a_strategy_names_is_superseded(self, memory_dir: MemoryDirectory) -> None:
        (question,) = memory_dir.keep(Memory("question", "Which port does it use?", ""))
        (answer,) = memory_dir.keep(
            fact("It listens on 8080", replaces=(question, "nonsense", "")), of=conversation(13)
        )
        assert {memory.id: memory.superseded for memory in memory_dir.all()} == {
            question: answer,
            answer: "",
        }

    @pytest.mark.parametrize("order", [("extractive", "summary"), ("summary", "extractive")])
    def test_what_a_model_tells_of_a_conversation_takes_the_place_of_what_heuristics_tell(
        self, memory_dir: MemoryDirectory, order: tuple[str, str]
    ) -> None:
        for strategy in order:
            memory_dir.keep(Memory("episode", f"By {strategy}", "Fixed."), strategy=strategy)
        memory_dir.keep(
            Memory("episode", "Later", ""),
            of=conversation(12, FEBRUARY + DAY),
            strategy="extractive",
        )
        assert sorted(memory.title for memory in memory_dir.all(with_superseded=False)) == [
            "By summary",
            "Later",
        ]
        before = memory_dir.content()
        for strategy in order:
            memory_dir.keep(Memory("episode", f"By {strategy}", "Fixed."), strategy=strategy)
        assert memory_dir.content() == before

    def test_an_episode_without_a_model_is_not_told_again_in_other_words(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (first,) = memory_dir.keep(
            Memory("episode", "Can you fix it", "Asked: fix"), strategy="extractive"
        )
        again = Memory("episode", "Fixing it", "Asked: fix it")
        assert memory_dir.keep(again, of=conversation(99), strategy="extractive") == [first]
        assert [memory.title for memory in memory_dir.all()] == ["Can you fix it"]

    def test_values_of_different_things_stand_side_by_side(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(
            fact("Its port is by default 80", "alpha"), fact("Its port is by default 81", "beta")
        )
        assert [memory.superseded for memory in memory_dir.all()] == ["", ""]

    def test_two_processes_at_once_lose_nothing(self, memory_dir: MemoryDirectory) -> None:
        def work(number: int) -> None:
            for index in range(5):
                memory_dir.keep(fact(f"Subject {number} owns thing {index}", f"s{number}-{index}"))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(memory_dir.all()) == 20
        assert memory_dir.page("facts.md").read_text().count("\n## ") == 20

    def test_a_keeping_that_broke_off_between_pages_is_completed_by_the_next(
        self, memory_dir: MemoryDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (question,) = memory_dir.keep(Memory("question", "Which port does it use?", ""))
        answer = (
            fact("It listens on 8080", replaces=(question,)),
            Memory("episode", "Ports", "Found."),
        )
        written: list[str] = []
        write = pages.write

        def write_one(directory: str, page: pages.Page) -> None:
            if written:
                raise OSError("made-up crash")
            written.append(page.path)
            write(directory, page)

        with monkeypatch.context() as patch:
            patch.setattr(pages, "write", write_one)
            with pytest.raises(OSError, match="made-up"):
                memory_dir.keep(*answer)
        memory_dir.keep(*answer)
        assert sorted(memory_dir.content()) == [
            "episodes/2026-02-21.md",
            "facts.md",
            "questions.md",
        ]
        assert len(memory_dir.all()) == 3
        assert [memory.id for memory in memory_dir.all() if memory.superseded] == [question]


class TestWork:
    """Work grows with what is kept, not with what is there (issue 28, D2)."""

    RUN = 20

    @staticmethod
    def counted(patch: pytest.MonkeyPatch, *functions: tuple[object, str]) -> Counter[str]:
        calls: Counter[str] = Counter()

        def counting(owner: object, name: str) -> None:
            original = getattr(owner, name)

            def run(*arguments: Any, **options: Any) -> Any:
                calls[name] += 1
                return original(*arguments, **options)

            patch.setattr(owner, name, run)

        for owner, name in functions:
            counting(owner, name)
        return calls

    def test_a_run_reads_the_index_once_and_writes_that_of_prompts_once(
        self, memory_dir: MemoryDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory_dir.keep(
            *[fact(f"Thing {number} owns port {number}", f"s{number}") for number in range(50)]
        )
        memory_dir.refresh()
        with monkeypatch.context() as patch:
            calls = self.counted(
                patch,
                (prompt_index, "write_atomically"),
                (pages, "read"),
                (library, "_without_secrets"),
                (MemoryIndex, "memories"),
                (MemoryIndex, "placed"),
            )
            with memory_dir.writer() as writer:
                for number in range(self.RUN):
                    one = conversation(
                        100 + number, FEBRUARY + number * DAY, session_id=f"session-{number}"
                    )
                    writer(
                        one,
                        (),
                        "summary",
                        MemoryResult((fact(f"Service {number} is slow", f"new {number}"),)),
                    )
                assert dict(calls) == {
                    "memories": 1,
                    "read": self.RUN,
                    "_without_secrets": self.RUN,
                }
            assert (
                calls["memories"],
                calls["read"],
                calls["placed"],
                calls["write_atomically"],
            ) == (2, self.RUN, 1, 1)
        assert len(memory_dir.all()) == 50 + self.RUN

    def test_a_page_that_is_read_again_is_redacted_where_it_changed(
        self, memory_dir: MemoryDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory_dir.keep(
            *[fact(f"Thing {number} owns port {number}", f"s{number}") for number in range(50)]
        )
        memory_dir.edit("facts.md", "Thing 7 owns", "Thing 7 has")
        memory_dir.settle()
        calls = self.counted(monkeypatch, (library, "_without_secrets"))
        memory_dir.library().refresh()
        assert calls["_without_secrets"] == 1
        assert memory_dir.found("thing 7 has port")[0] == "Thing 7 has port 7"

    def test_a_page_that_someone_edits_during_a_run_is_read(
        self, memory_dir: MemoryDirectory
    ) -> None:
        with memory_dir.writer() as writer:
            (id,) = writer(conversation(), (), "summary", MemoryResult((EXPIRY,)))
            memory_dir.edit("facts.md", "3600 seconds", "60 minutes")
            again = conversation(13, FEBRUARY + DAY, session_id="other")
            said = MemoryResult((fact("The JWT expiry of the login service is 60 minutes"),))
            assert writer(again, (), "summary", said) == [id]
        assert memory_dir.page("facts.md").read_text().count("\n*From ") == 2


class Killed(BaseException):
    """The process ended here."""


class TestCrashes:
    """Whatever step a process dies at, before it or right after it: the next one completes what it began."""

    MEMORIES = (
        Memory("episode", "Ports", "Found it."),
        fact("The JWT expiry of the login service is 7200 seconds"),
        Memory("solution", "The timeout went away with a larger pool", "", "db"),
    )

    @staticmethod
    def kill_at(patch: pytest.MonkeyPatch, step: int, *, after: bool) -> None:
        """Lets `step` writes happen, then dies: before the next one or right after it."""
        begun: list[str] = []

        def dying(owner: Any, name: str) -> None:
            original = getattr(owner, name)

            def run(*arguments: Any, **options: Any) -> Any:
                begun.append(name)
                if len(begun) > step and not after:
                    raise Killed
                result = original(*arguments, **options)
                if len(begun) > step:
                    raise Killed
                return result

            patch.setattr(owner, name, run)

        for module in (pages, forgotten, prompt_index):
            dying(module, "write_atomically")
        dying(MemoryIndex, "replace")
        dying(MemoryIndex, "remove")

    def outcome(
        self, memory_dir: MemoryDirectory
    ) -> tuple[dict[str, str], list[IndexedMemory], list[forgotten.Tombstone]]:
        memory_dir.refresh()
        memories = sorted(memory_dir.all(), key=lambda memory: memory.id)
        return memory_dir.content(), memories, forgotten.read(str(memory_dir.directory))

    def prepared(self, root: Path) -> tuple[MemoryDirectory, str]:
        memory_dir = MemoryDirectory(root)
        memory_dir.keep(EXPIRY)
        (question,) = memory_dir.keep(Memory("question", "Which port does the thing use?", ""))
        return memory_dir, question

    def keep(self, memory_dir: MemoryDirectory, question: str) -> None:
        memory_dir.keep(
            *self.MEMORIES,
            fact("It listens on 8080", replaces=(question,)),
            of=conversation(20, FEBRUARY + DAY),
        )

    @pytest.mark.parametrize("after", [False, True])
    def test_a_keeping_that_is_killed_is_completed_by_the_next_and_nothing_is_there_twice(
        self, tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, question = self.prepared(tmp_path / "whole")
        self.keep(whole, question)
        expected = self.outcome(whole)
        whole.index.close()
        for step in range(100):
            memory_dir, question = self.prepared(tmp_path / f"{step}")
            with monkeypatch.context() as patch:
                self.kill_at(patch, step, after=after)
                try:
                    self.keep(memory_dir, question)
                    was_killed = False
                except Killed:
                    was_killed = True
            self.keep(memory_dir, question)
            assert self.outcome(memory_dir) == expected, f"killed at step {step}"
            memory_dir.index.close()
            if not was_killed:
                break
        assert step >= 5

    @pytest.mark.parametrize("after", [False, True])
    def test_what_was_to_be_forgotten_when_the_process_was_killed_does_not_come_back(
        self, tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for step in range(100):
            memory_dir, _ = self.prepared(tmp_path / f"{step}")
            ids = [memory.id for memory in memory_dir.all()]
            (expiry,) = [memory.id for memory in memory_dir.all() if memory.kind == "fact"]
            with monkeypatch.context() as patch:
                self.kill_at(patch, step, after=after)
                try:
                    memory_dir.library().forget(ids)
                    was_killed = False
                except Killed:
                    was_killed = True
            assert memory_dir.keep(EXPIRY) == (
                [] if forgotten.read(str(memory_dir.directory)) else [expiry]
            )
            memory_dir.library().forget(ids)
            _, memories, tombstones = self.outcome(memory_dir)
            assert (memories, sorted(one.id for one in tombstones)) == ([], sorted(ids)), (
                f"killed at step {step}"
            )
            memory_dir.index.close()
            if not was_killed:
                break
        assert step > 3


class TestForgetting:
    def test_what_is_forgotten_goes_from_page_and_index_and_does_not_come_back(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id, _) = memory_dir.keep(EXPIRY, fact("Something else"))
        memory_dir.library().forget([id])
        assert "3600" not in memory_dir.page("facts.md").read_text()
        assert memory_dir.found("JWT") == []
        assert memory_dir.keep(EXPIRY) == []
        assert memory_dir.keep(fact("JWT expiry of that login service: 3600 seconds!")) == []
        assert b"JWT" not in b"".join(
            path.read_bytes() for path in memory_dir.directory.rglob("*") if path.is_file()
        )

    def test_an_episode_does_not_come_back_in_other_words(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(Memory("episode", "Login", "Fixed it."))
        memory_dir.library().forget([id])
        assert (
            memory_dir.keep(
                Memory("episode", "The sign-in", "It was mended."), strategy="extractive"
            )
            == []
        )
        assert (
            memory_dir.keep(
                Memory("episode", "Login", "Fixed it."), of=conversation(13, FEBRUARY + DAY)
            )
            != []
        )

    def test_an_episode_takes_with_it_what_it_had_taken_the_place_of(
        self, memory_dir: MemoryDirectory
    ) -> None:
        memory_dir.keep(Memory("episode", "By heuristics", "Asked."), strategy="extractive")
        (id,) = memory_dir.keep(Memory("episode", "By a model", "Understood."))
        memory_dir.library().forget([id])
        assert memory_dir.all() == []

    def test_it_does_not_come_back_where_the_store_was_lost(
        self, memory_dir: MemoryDirectory, tmp_path: Path
    ) -> None:
        (id, other) = memory_dir.keep(EXPIRY, fact("Something else"))
        memory_dir.library().forget([id])
        memory_dir.index.close()
        for path in (tmp_path / "store").iterdir():
            path.unlink()
        memory_dir.index = MemoryIndex(memory_dir.database)
        assert memory_dir.keep(EXPIRY) == []
        assert [memory.id for memory in memory_dir.all()] == [other]

    def test_what_it_had_superseded_holds_again(self, memory_dir: MemoryDirectory) -> None:
        (old,) = memory_dir.keep(EXPIRY)
        before = memory_dir.page("facts.md").read_text()
        (new,) = memory_dir.keep(
            fact("The JWT expiry of the login service is 7 seconds"),
            of=conversation(13, FEBRUARY + DAY),
        )
        memory_dir.library().forget([new])
        assert [(memory.id, memory.superseded) for memory in memory_dir.all()] == [(old, "")]
        assert memory_dir.page("facts.md").read_text().rstrip() == before.rstrip()

    def test_a_newer_value_of_what_was_forgotten_may_be_kept(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(fact("The port is 80"))
        memory_dir.library().forget([id])
        assert memory_dir.keep(fact("The port is 81")) != []

    def test_a_dictionary_recovers_no_word_from_what_lies_among_the_pages(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        memory_dir.library().forget([id])
        kept = (memory_dir.directory / forgotten.TOMBSTONES).read_text()
        said = wording(EXPIRY.title)
        assert not [word for word in said.words | said.values if format.short_hash(word) in kept]
        key = memory_dir.directory.parent / ".private-memories" / forgotten.KEY
        assert (len(key.read_bytes()), stat.S_IMODE(key.stat().st_mode)) == (32, 0o600)

    def test_a_tombstone_of_before_that_has_no_key_still_holds_and_gets_one(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id, other) = memory_dir.keep(EXPIRY, fact("Something else"))
        said = wording(EXPIRY.title)
        old = [format.short_hash(word) for word in said.words | said.values]
        memory_dir.library().forget([id])
        path = memory_dir.directory / forgotten.TOMBSTONES
        path.write_text(
            json.dumps({"id": "x", "kind": "fact", "words": old, "conversations": []}) + "\n"
        )
        assert memory_dir.keep(fact("JWT expiry of that login service: 3600 seconds!")) == []
        memory_dir.library().forget([other])
        assert not [word for word in old if word in path.read_text()]
        assert memory_dir.keep(fact("JWT expiry of that login service: 3600 seconds!")) == []

    def test_a_tombstone_file_that_somebody_broke_breaks_nothing(
        self, memory_dir: MemoryDirectory
    ) -> None:
        (id,) = memory_dir.keep(EXPIRY)
        memory_dir.library().forget([id])
        with (memory_dir.directory / forgotten.TOMBSTONES).open("a") as file:
            file.write('{"id": 7\nnonsense\n[]\n')
        assert memory_dir.keep(EXPIRY) == []
