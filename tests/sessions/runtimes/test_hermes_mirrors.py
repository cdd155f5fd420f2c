"""The mirrors of Hermes's sessions: what is read of the rows of its database, however they grow,
are undone, compacted and replaced."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hermes_scene import SUMMARY, HermesDatabase, place_rows
from store_scene import StoreUser

from session_memory.common.system import files
from session_memory.common.text.paths import LONGEST_NAME, is_name
from session_memory.extras.conformance.fixture import said
from session_memory.sessions.runtimes.detection import running_session
from session_memory.sessions.runtimes.hermes import RUNTIME as HERMES
from session_memory.sessions.runtimes.hermes import mirrors
from session_memory.sessions.runtimes.hermes.rows import HermesMessage, HermesSession
from session_memory.sessions.runtimes.records import RESULTS, CallResult
from session_memory.sessions.transcripts.gate import describe
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.mirror import Mirror, hidden_by, unread
from session_memory.sessions.transcripts.reader import TranscriptReader

FIXTURES = Path(__file__).parent / "fixtures" / "hermes"
STORIES = ("conversation.jsonl", "fork.jsonl", "subagent.jsonl")
CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures" / "hermes"
SECRET = "ghp_" + "a1B2" * 9


class Person:
    """A person's directory of Hermes."""

    def __init__(self, root: Path) -> None:
        self.home = root
        self.directory = root / ".hermes"
        self.database = HermesDatabase(self.directory)

    @property
    def root(self) -> Path:
        return Path(HERMES.transcripts_dir(str(self.directory)))

    def refresh(self, *, everything: bool = False) -> None:
        HERMES.refresh(str(self.directory), everything)

    def mirror(self, session_id: str) -> Path:
        (path,) = self.root.rglob(f"{session_id}.jsonl")
        return path

    def told(self, session_id: str) -> list[str]:
        """What counts in a session's mirror, brought up to date."""
        self.refresh()
        descriptor = os.open(self.mirror(session_id), os.O_RDONLY)
        try:
            reader = TranscriptReader(HERMES, first_line(descriptor))
            entries = list(reader.conversation(descriptor))
        finally:
            os.close(descriptor)
        parts = [[("", "---")] if entry is None else said([entry]) for entry in entries]
        return [text for part in parts for _, text in part]

    def exchange(self, question: str = "one", answer: str = "first") -> str:
        session = self.database.session("/srv/app")
        self.database.exchange(session, question, answer)
        return session

    def config(self, text: str) -> None:
        (self.home / ".session-memory").mkdir(exist_ok=True)
        (self.home / ".session-memory" / "config.yaml").write_text(text)


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    return Person(tmp_path)


def test_the_fixtures_are_the_mirrors_of_the_rows_beside_them(person: Person) -> None:
    ids = place_rows(person.directory, [(FIXTURES / "rows" / name).read_text() for name in STORIES])
    person.refresh(everything=True)
    for name, session_id in zip(STORIES, ids, strict=True):
        assert person.mirror(session_id).read_text() == (FIXTURES / name).read_text()
    assert person.mirror(ids[2]).parent.name == ids[0]


def test_what_the_real_program_wrote_is_read(person: Person) -> None:
    """Rows of Hermes 0.19.0: an edit, a failed command, answers that were stopped, a sub-agent."""
    folder = CAPTURES / "7-two"
    if not folder.exists():
        pytest.skip("there are no captures beside the repository")
    place_captured(person, folder)
    person.refresh(everything=True)
    assert person.told("20261128_174948_7f2ae5") == [
        "Please change alpha to gamma in notes.txt",
        "Reading.",
        *["read", "edit", "command"],
        "All done.",
        "Second question about timing",
        "command",
        "Second answer.",
        "Third question to be stopped",
        "Fourth question that fails",
        "Fifth question, big",
        "big answer",
        "Sixth question, after",
        "after one",
    ]
    assert person.mirror("20261128_180225_db5274").parent.name == "20261128_180136_6a2f87"
    lines = person.mirror("20261128_174948_7f2ae5").read_bytes().splitlines()
    events = [HERMES.records.events(json.loads(line), 0, RESULTS) for line in lines]
    results = [each for found in events for each in found if isinstance(each, CallResult)]
    assert [result.has_failed for result in results] == [False, False, True, False]


def place_captured(person: Person, folder: Path) -> None:
    """Put the rows of a capture into the database, those columns that it has."""
    with closing(sqlite3.connect(person.database.path)) as connection:
        for table in ("sessions", "messages"):
            names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            for row in json.loads((folder / f"{table}.json").read_text()):
                kept = {name: value for name, value in row.items() if name in names}
                person.database.insert(table, kept)


def test_a_session_goes_on_in_its_mirror(person: Person) -> None:
    session = person.exchange()
    assert person.told(session) == ["one", "first"]
    before = person.mirror(session).read_bytes()
    person.database.exchange(session, "two", "second")
    assert person.told(session) == ["one", "first", "two", "second"]
    assert person.mirror(session).read_bytes().startswith(before)


def test_what_a_person_undid_counts_no_more(person: Person) -> None:
    session = person.exchange()
    person.database.exchange(session, "two", "second")
    assert len(person.told(session)) == 4
    person.database.undo(session, "two")
    assert person.told(session) == ["one", "first"]
    person.database.exchange(session, "three", "third")
    assert person.told(session) == ["one", "first", "three", "third"]
    person.database.undo(session, "three")
    person.database.exchange(session, "four", "fourth")
    assert person.told(session) == ["one", "first", "four", "fourth"]


def test_rows_that_were_replaced_by_the_same_ones_are_not_news(person: Person) -> None:
    session = person.exchange()
    person.refresh()
    for question in ("two", "three"):
        before = person.mirror(session).read_text().splitlines()[:-1]
        person.database.replace(session)
        person.database.exchange(session, question, "yes")
        person.refresh()
        lines = person.mirror(session).read_text().splitlines()
        added = [json.loads(line) for line in lines if line not in before]
        assert [line.get("message") for line in added if line["type"] == "step"] == [
            question,
            "yes",
        ]
    assert person.told(session) == ["one", "first", "two", "yes", "three", "yes"]


def test_all_rows_gone_take_everything_back(person: Person) -> None:
    session = person.exchange()
    person.refresh()
    person.database.run("DELETE FROM messages")
    person.database.exchange(session, "two", "second")
    assert person.told(session) == ["two", "second"]


def test_a_branch_begins_with_its_own_messages(person: Person) -> None:
    session = person.exchange("go on", "first")
    person.database.exchange(session, "go on", "second")
    branch = person.database.branch(session)
    assert person.told(branch) == []
    person.database.exchange(branch, "go on", "third")
    assert person.told(branch) == ["go on", "third"]
    assert person.mirror(branch).parent == person.mirror(session).parent


def test_a_branch_that_was_copied_without_calls_begins_with_its_own_messages(
    person: Person,
) -> None:
    """So does Hermes's terminal page: it copies roles and contents only."""
    session = person.exchange()
    person.database.call(session, "terminal", {"command": "make"}, time.time(), time.time())
    person.database.exchange(session, "count the apples", "three apples")
    branch = person.database.branch(session)
    person.database.run(
        "UPDATE messages SET tool_calls = NULL, tool_call_id = NULL WHERE session_id = ?", branch
    )
    person.database.exchange(branch, "go on", "third")
    assert person.told(branch) == ["go on", "third"]


def test_a_branch_keeps_a_prompt_that_its_original_got_later_too(person: Person) -> None:
    session = person.exchange()
    branch = person.database.branch(session)
    for each, answer in ((session, "passed"), (branch, "failed")):
        person.database.exchange(each, "run the tests", answer)
    assert person.told(branch) == ["run the tests", "failed"]


def test_a_branch_repeats_nothing_if_the_rows_of_its_original_are_replaced(person: Person) -> None:
    session = person.exchange()
    branch = person.database.branch(session)
    person.database.replace(session)
    person.database.exchange(branch, "two", "second")
    assert person.told(branch) == ["two", "second"]


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_a_branch_repeats_nothing_that_was_undone_in_its_original_later(
    person: Person, is_rebuilt: bool
) -> None:
    session = person.exchange()
    person.database.exchange(session, "two", "second")
    branch = person.database.branch(session)
    person.database.exchange(branch, "three", "third")
    if is_rebuilt:
        assert person.told(branch) == ["three", "third"]
        person.mirror(branch).unlink()
    person.database.undo(session, "two")
    person.database.exchange(session, "four", "fourth")
    assert person.told(branch) == ["three", "third"]


def test_a_branch_repeats_nothing_of_an_original_that_was_undone_whole(person: Person) -> None:
    session = person.exchange()
    branch = person.database.branch(session)
    person.database.undo(session, "one")
    assert person.told(branch) == []
    person.database.exchange(branch, "three", "third")
    assert person.told(branch) == ["three", "third"]


def test_a_branch_does_not_repeat_an_undone_prompt_without_an_answer(person: Person) -> None:
    session = person.exchange()
    person.database.message(session, "user", "two")
    branch = person.database.branch(session)
    person.database.undo(session, "two")
    person.database.exchange(branch, "three", "third")
    assert person.told(branch) == ["three", "third"]


def test_a_prompt_that_was_undone_before_a_branch_may_be_asked_there_again(person: Person) -> None:
    session = person.exchange()
    person.database.exchange(session, "two", "second")
    person.database.undo(session, "two")
    branch = person.database.branch(session)
    person.database.message(branch, "user", "two")
    assert person.told(branch) == []
    person.database.message(branch, "assistant", "another answer")
    assert person.told(branch) == ["two", "another answer"]
    person.database.exchange(branch, "one", "first")
    assert person.told(branch)[2:] == ["one", "first"]


def test_a_compaction_that_goes_on_in_another_session_repeats_nothing(person: Person) -> None:
    session = person.exchange()
    person.database.exchange(session, "two", "second")
    person.database.run("UPDATE sessions SET end_reason = 'compression'")
    further = person.database.session(None, parent_session_id=session)
    person.database.message(further, "user", SUMMARY)
    person.database.exchange(further, "two", "second")
    person.database.exchange(further, "three", "third")
    assert person.told(further) == ["---", "three", "third"]


def test_a_compaction_in_place_repeats_nothing(person: Person) -> None:
    session = person.exchange()
    person.database.exchange(session, "two", "second")
    person.refresh()
    person.database.run("UPDATE messages SET active = 0, compacted = 1")
    person.database.exchange(session, "one", "first")  # the beginning is kept too
    person.database.message(session, "user", SUMMARY)
    person.database.exchange(session, "two", "second")
    assert person.told(session) == ["one", "first", "two", "second", "---"]
    person.database.exchange(session, "two", "second again")
    assert person.told(session)[4:] == ["---", "two", "second again"]


def test_a_rule_hides_the_sub_agents_and_the_rest_after_a_compaction_too(person: Person) -> None:
    person.config("sessions:\n  Plan the garden: {ignore: true}\n")
    session = person.database.session("/srv/app", title="Plan the garden", end_reason="compression")
    person.database.exchange(session, "count the apples", "three apples")
    helper = person.database.sub_agent(session)
    further = person.database.session(None, parent_session_id=session, title="Plan the garden #2")
    for other in (helper, further):
        person.database.exchange(other, "eat the apples", "they are eaten")
    person.refresh(everything=True)
    for each in (session, helper, further):
        assert "apples" not in person.mirror(each).read_text()


def test_a_rule_for_a_directory_hides_its_sub_agents(person: Person) -> None:
    person.config("projects:\n  /srv/app: {ignore: true}\n")
    helper = person.database.sub_agent(person.exchange())
    person.database.exchange(helper, "count the apples", "three apples")
    person.refresh(everything=True)
    assert "apples" not in person.mirror(helper).read_text()


def test_the_title_of_a_session_is_the_one_that_hermes_has_also_a_later_one(
    person: Person,
) -> None:
    session = person.exchange()
    person.refresh()
    assert describe(HERMES, str(person.mirror(session))).title == "one"
    for title in ("Plan the garden", "Plan the gate"):
        person.database.run("UPDATE sessions SET title = ?", title)
        person.refresh()
        assert describe(HERMES, str(person.mirror(session))).title == title


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("[IMPORTANT: Background process p1 exited (exit code 1).]", ""),
        ("[ASYNC DELEGATION COMPLETE - d1]\nA background subagent has finished.", ""),
        (f"{SUMMARY} into the summary below.", ""),
        ("[Note: model was just switched from a to b via c.]\n\nmend it", "mend it"),
        ('[IMPORTANT: The user has invoked the "garden" skill, indicating]\n\nDig.', ""),
        (
            '[IMPORTANT: The user has invoked the "garden" skill, indicating]\n\nDig.\n\nThe user has'
            " provided the following instruction alongside the skill invocation: mend it\n\n"
            "[Runtime note: x]",
            "mend it",
        ),
        (
            '[IMPORTANT: The user has invoked the "g" skill bundle, x]\nUser instruction: mend it\n\n'
            "[Loaded as part of the g bundle]",
            "mend it",
        ),
        ("[x] mend it", "[x] mend it"),
    ],
)
def test_of_a_prompt_only_the_words_of_the_person_count(prompt: str, words: str) -> None:
    row = {"id": 1, "role": "user", "content": prompt, "timestamp": 1.0}
    line = HermesMessage(row).line(HermesSession({"id": "s"}), "")
    assert (line["message"] if line else "") == words


def test_pictures_are_left_out_and_what_others_said_in_a_group_is_no_prompt(person: Person) -> None:
    session = person.exchange()
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    parts = [{"type": "text", "text": "look"}, picture]
    person.database.message(session, "user", f"\0json:{json.dumps(parts)}")
    person.database.message(session, "user", "nice weather", observed=1)
    assert person.told(session) == ["one", "first", "look"]
    assert "aGVsbG8=" not in person.mirror(session).read_text()


@pytest.mark.parametrize(
    ("content", "has_failed", "has_run"),
    [
        ('{"output": "", "exit_code": 1, "error": null}', True, True),
        ('{"output": "x", "exit_code": 0, "error": null}', False, True),
        ('{"success": false, "error": "no match"}', True, True),
        ('{"error": "no such file"}', True, True),
        ('{"success": true, "error": null}', False, True),
        ('{"error": "A record of your other sessions, not instructions:\\nx"}', True, False),
        ("plain text", False, True),
    ],
)
def test_the_text_of_a_result_says_whether_the_call_failed(
    content: str, *, has_failed: bool, has_run: bool
) -> None:
    row = {"id": 1, "role": "tool", "content": content, "tool_call_id": "c", "timestamp": 1.0}
    line = HermesMessage(row).line(HermesSession({}), "")
    assert line is not None
    (result,) = HERMES.records.results(line)
    assert isinstance(result, CallResult)
    assert (result.has_failed, result.has_run) == (has_failed, has_run)


def test_no_mirror_has_a_secret(person: Person) -> None:
    session = person.exchange(f"use {SECRET}", "Thanks.")
    person.refresh()
    assert SECRET not in person.mirror(session).read_text()


@pytest.mark.parametrize("calls", ['[{"id": "cut', "[1]", '{"a": 1}', '[{"function": 3}]'])
def test_calls_that_cannot_be_read_leave_the_message(person: Person, calls: str) -> None:
    session = person.exchange()
    person.database.message(session, "assistant", "I look.", tool_calls=calls)
    person.database.exchange(session, "two", "second")
    told = person.told(session)
    assert [text for text in told if text != "other"] == [
        "one",
        "first",
        "I look.",
        "two",
        "second",
    ]


def test_the_mirror_of_a_session_that_was_deleted_goes_with_it(person: Person) -> None:
    session, other = person.exchange(), person.exchange("two", "second")
    person.refresh(everything=True)
    path = person.mirror(session)
    person.database.delete(session)
    person.refresh(everything=True)
    assert not path.exists()
    assert person.told(other) == ["two", "second"]


def test_the_sessions_of_a_profile_are_read_and_kept_beside_the_others(person: Person) -> None:
    session = person.exchange()
    assert person.told(session) == ["one", "first"]
    profile = HermesDatabase(person.directory / "profiles" / "coder")  # made later
    other = profile.session("/srv/app")
    profile.exchange(other, "two", "second")
    assert person.told(other) == ["two", "second"]
    assert person.mirror(other).parent == person.mirror(session).parent
    kept = HERMES.backup.sessions(str(person.directory))
    assert [file.path for each in kept for file in each.files] == [
        f"state.db/{session}.jsonl",
        f"profiles/coder/state.db/{other}.jsonl",
    ]
    profile.exchange(profile.session("/srv/app"), "three", "third")
    profile.delete(other)
    person.refresh(everything=True)
    assert not [*person.root.rglob(f"{other}.jsonl")]
    assert person.told(session) == ["one", "first"]


@pytest.fixture
def copied(person: Person) -> tuple[str, HermesDatabase]:
    """A session that goes on in the usual profile, and in the copy of its database in another."""
    session = person.exchange()
    person.refresh(everything=True)
    coder = person.database.copy(person.directory / "profiles" / "coder")
    person.database.exchange(session, "two", "second")
    coder.exchange(session, "three", "third")
    return session, coder


def ids_in(person: Person, session_id: str) -> list[str]:
    """The ids of the steps in a session's mirror."""
    lines = [json.loads(line) for line in person.mirror(session_id).read_bytes().splitlines()]
    return [line["id"] for line in lines if line.get("type") == "step"]


@pytest.mark.parametrize("everything", [True, False])
def test_a_session_in_a_copied_database_goes_on_in_each_and_begins_with_the_same_ids(
    person: Person, copied: tuple[str, HermesDatabase], everything: bool
) -> None:
    session, coder = copied
    for _ in range(2):
        person.refresh(everything=everything)
        assert person.told(session) == ["one", "first", "two", "second"]
        assert person.told(f"{session}-coder") == ["one", "first", "three", "third"]
    now = time.time()
    coder.exchange(session, "four", "fourth", at=now)
    person.database.exchange(session, "four", "fourth", at=now + 0.1)
    assert person.told(session)[4:] == person.told(f"{session}-coder")[4:] == ["four", "fourth"]
    usual, other = ids_in(person, session), ids_in(person, f"{session}-coder")
    assert usual[:2] == other[:2]
    assert {*usual[2:]}.isdisjoint(other[2:])


def test_what_is_undone_or_replaced_in_one_database_stays_in_the_other(
    person: Person, copied: tuple[str, HermesDatabase]
) -> None:
    session, coder = copied
    person.refresh(everything=True)
    coder.undo(session, "one")
    coder.exchange(session, "four", "fourth")
    person.database.replace(session)
    assert person.told(session) == ["one", "first", "two", "second"]
    assert person.told(f"{session}-coder") == ["four", "fourth"]
    person.database.undo(session, "two")
    assert person.told(session) == ["one", "first"]
    assert person.told(f"{session}-coder") == ["four", "fourth"]


@pytest.mark.parametrize("is_usual", [True, False])
def test_a_session_that_is_deleted_in_one_database_stays_in_the_other(
    person: Person, copied: tuple[str, HermesDatabase], is_usual: bool
) -> None:
    session, coder = copied
    person.refresh(everything=True)
    kept, gone = (f"{session}-coder", session) if is_usual else (session, f"{session}-coder")
    deleting, going_on = (person.database, coder) if is_usual else (coder, person.database)
    deleting.delete(session)
    deleting.exchange(deleting.session("/srv/app"), "other", "others")
    person.refresh(everything=True)
    assert not [*person.root.rglob(f"{gone}.jsonl")]
    before = person.told(kept)
    going_on.exchange(session, "four", "fourth")
    assert person.told(kept) == [*before, "four", "fourth"]


def test_the_session_of_a_database_that_was_moved_keeps_its_mirror(person: Person) -> None:
    profiles = person.directory / "profiles"
    coder = HermesDatabase(profiles / "coder")
    session = coder.session("/srv/app")
    coder.exchange(session, "one", "first")
    assert person.told(session) == ["one", "first"]
    (profiles / "coder").rename(profiles / "tester")
    HermesDatabase(profiles / "tester").exchange(session, "two", "second")
    assert person.told(session) == ["one", "first", "two", "second"]


def test_an_older_copy_goes_on_in_the_mirror_of_a_database_that_was_deleted(
    person: Person,
) -> None:
    coder = HermesDatabase(person.directory / "profiles" / "coder")
    session = coder.session("/srv/app")
    coder.exchange(session, "one", "first")
    copy = coder.copy(person.directory / "profiles" / "tester")
    coder.exchange(session, "two", "second")
    assert person.told(session)[:4] == ["one", "first", "two", "second"]
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (coder.path.parent / name).unlink(missing_ok=True)
    for path in person.root.rglob("*-tester.jsonl"):
        path.unlink()
    copy.exchange(session, "three", "third")
    copy.exchange(session, "four", "fourth")
    assert person.told(session) == ["one", "first", "three", "third", "four", "fourth"]


def test_a_session_that_gets_its_directory_in_one_database_only_goes_on_in_each(
    person: Person,
) -> None:
    session = person.database.session(None)
    person.database.exchange(session, "one", "first")
    person.refresh(everything=True)
    coder = person.database.copy(person.directory / "profiles" / "coder")
    coder.run("UPDATE sessions SET cwd = '/srv/app'")
    coder.exchange(session, "two", "second")
    for _ in range(2):
        person.refresh(everything=True)
        assert person.told(session) == ["one", "first"]
        assert person.told(f"{session}-coder") == ["one", "first", "two", "second"]
    person.database.delete(session)
    person.exchange()
    coder.run("UPDATE sessions SET cwd = '/srv/other'")
    coder.exchange(session, "three", "third")
    person.refresh(everything=True)
    assert not [*person.root.rglob(f"{session}.jsonl")]
    assert person.told(f"{session}-coder")[4:] == ["three", "third"]


def test_the_sub_agents_of_a_copied_session_are_beside_the_mirror_of_their_database(
    person: Person, copied: tuple[str, HermesDatabase]
) -> None:
    session, coder = copied
    helper = coder.sub_agent(session)
    coder.exchange(helper, "count", "three")
    person.refresh(everything=True)
    assert person.mirror(helper).parent == person.mirror(f"{session}-coder").with_suffix("")


def test_a_command_in_a_profile_finds_the_mirror_of_its_database(
    person: Person, copied: tuple[str, HermesDatabase]
) -> None:
    session, coder = copied
    person.refresh(everything=True)
    user = StoreUser(person.home)
    for directory, own in ((person.directory, session), (coder.path.parent, f"{session}-coder")):
        environ = {"HERMES_SESSION_ID": session, "HERMES_HOME": str(directory)}
        listed = user.result("sessions", "--all", **environ)["sessions"]
        assert [each["id"] for each in listed if each["is_this_one"]] == [own]
        assert running_session({**user.environment, **environ}, 0) == (HERMES, own)


def test_the_id_of_a_mirror_is_a_name_however_long_its_profile_s_is(person: Person) -> None:
    session, longest = person.exchange(), "c" * LONGEST_NAME
    person.refresh(everything=True)
    coder = person.database.copy(person.directory / "profiles" / longest)
    coder.exchange(session, "two", "second")
    own = HERMES.own_session_id(
        {"HERMES_SESSION_ID": session, "HERMES_HOME": str(coder.path.parent)}
    )
    assert is_name(own)
    for _ in range(2):
        person.refresh(everything=True)
        assert person.told(session) == ["one", "first"]
        assert person.told(own) == ["one", "first", "two", "second"]
    person.mirror(own)
    assert "second" in StoreUser(person.home).run("read", own).stdout


def costs(person: Person) -> dict[str, list[int]]:
    """The tokens that each model took."""
    rows = StoreUser(person.home).result("costs", "--by", "model")["rows"]
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_written_tokens")
    return {row["model"]: [row[name] for name in names] for row in rows}


def test_the_tokens_since_the_last_totals_are_counted_once(person: Person) -> None:
    session, database = person.exchange(), person.database
    database.uses(session, "fake-1", 100, 20, 30, 4)
    assert costs(person) == {"fake-1": [100, 20, 30, 4]}
    database.exchange(session, "two", "second")
    database.uses(session, "fake-1", 10, 2, 3, 0)
    database.uses(session, "small-1", 7, 1, 0, 0, task="title_generation")
    for _ in range(2):
        assert costs(person) == {"fake-1": [110, 22, 33, 4], "small-1": [7, 1, 0, 0]}
    helper = database.sub_agent(session)
    database.exchange(helper, "count", "three")
    database.uses(helper, "fake-1", 5, 5, 0, 0)
    database.undo(session, "two")
    database.replace(session)
    assert costs(person)["fake-1"] == [115, 27, 33, 4]
    assert person.told(session) == ["one", "first"]


def test_tokens_from_before_a_database_was_copied_count_once(person: Person) -> None:
    session = person.exchange()
    person.database.uses(session, "fake-1", 100, 20, 0, 0)
    person.refresh(everything=True)
    coder = person.database.copy(person.directory / "profiles" / "coder")
    coder.exchange(session, "two", "second")
    coder.uses(session, "fake-1", 10, 2, 0, 0)
    for _ in range(2):
        assert costs(person)["fake-1"] == [110, 22, 0, 0]


def test_tokens_from_before_a_session_was_forgotten_are_not_counted_again(person: Person) -> None:
    session, database = person.exchange(), person.database
    database.uses(session, "fake-1", 100, 20, 0, 0)
    user = StoreUser(person.home)
    assert user.run("ingest").returncode == 0
    assert user.run("forget", session, "--yes").returncode == 0
    database.exchange(session, "two", "second")
    database.uses(session, "fake-1", 10, 2, 0, 0)
    person.refresh(everything=True)
    database.exchange(session, "three", "third")
    database.uses(session, "fake-1", 1, 1, 0, 0)
    assert costs(person)["fake-1"] == [1, 1, 0, 0]


def test_a_rule_for_a_session_applies_in_each_database(
    person: Person, copied: tuple[str, HermesDatabase]
) -> None:
    session, _ = copied
    person.config(f"sessions:\n  {session}: {{ignore: true}}\n")
    person.refresh(everything=True)
    for each in (session, f"{session}-coder"):
        assert "first" not in person.mirror(each).read_text()


def test_the_rows_of_both_databases_are_kept(
    person: Person, copied: tuple[str, HermesDatabase]
) -> None:
    session, _ = copied
    person.refresh(everything=True)
    kept = {each.session_id: each.files for each in HERMES.backup.sessions(str(person.directory))}
    for own_id, text in ((session, "second"), (f"{session}-coder", "third")):
        [file] = kept[own_id]
        with open(file.open(), "rb") as content:
            content.seek(0)
            assert text.encode() in content.read()


def test_the_sessions_of_a_profile_are_read_if_the_usual_profile_was_never_used(
    person: Person,
) -> None:
    person.database.path.unlink()
    profile = HermesDatabase(person.directory / "profiles" / "coder")
    session = profile.session("/srv/app")
    profile.exchange(session, "one", "first")
    assert person.told(session) == ["one", "first"]
    assert len([*HERMES.backup.sessions(str(person.directory))]) == 1


def test_the_directory_of_a_profile_counts_as_the_one_above_it(person: Person) -> None:
    profile = {"HERMES_HOME": f"{person.directory}/profiles/coder/"}
    assert HERMES.config_dir(profile) == str(person.directory)
    assert HERMES.install.settings_dir(profile) == f"{person.directory}/profiles/coder"
    usual = {"HOME": str(person.home)}
    assert HERMES.config_dir(usual) == HERMES.install.settings_dir(usual) == str(person.directory)


@pytest.fixture
def long_session(person: Person, monkeypatch: pytest.MonkeyPatch) -> str:
    """A session with more rows than a prompt reads."""
    monkeypatch.setattr(mirrors, "PROMPT_ROWS", 4)
    session = person.database.session("/srv/app")
    for number in range(5):
        person.database.exchange(session, f"question {number}", "answer")
    return session


def test_a_prompt_leaves_a_long_session_to_upkeep(person: Person, long_session: str) -> None:
    short = person.exchange()
    assert person.told(short) == ["one", "first"]
    assert list(person.root.rglob(f"{long_session}*")) == []
    person.refresh(everything=True)
    assert len(person.told(long_session)) == 10
    person.database.undo(long_session, "question 3")
    person.refresh(everything=True)
    assert len(person.told(long_session)) == 6


def test_an_old_session_is_read_by_upkeep_and_again_once_it_goes_on(person: Person) -> None:
    then = time.time() - 9 * 86400
    old = person.database.session("/srv/app", at=then)
    person.database.exchange(old, "old", "older", at=then)
    person.refresh()
    assert list(person.root.rglob(f"{old}*")) == []
    person.refresh(everything=True)
    person.database.exchange(old, "new", "newer")
    assert person.told(old) == ["old", "older", "new", "newer"]


def test_a_session_whose_directory_changes_keeps_one_mirror_also_for_its_sub_agents(
    person: Person,
) -> None:
    session = person.exchange()
    person.refresh()
    person.database.run("UPDATE sessions SET cwd = '/srv/other'")
    person.database.exchange(session, "two", "second")
    helper = person.database.sub_agent(session)
    person.database.exchange(helper, "count", "three")
    assert person.told(session) == ["one", "first", "two", "second"]
    assert person.mirror(helper).parent == person.mirror(session).with_suffix("")


def test_a_session_that_gets_its_directory_later_has_its_mirror_there(person: Person) -> None:
    session = person.database.session(None)
    person.database.exchange(session, "one", "first")
    helper = person.database.sub_agent(session)
    person.database.exchange(helper, "count", "three")
    person.refresh()
    assert person.mirror(helper).parent.parent.name == "unknown"
    person.database.run("UPDATE sessions SET cwd = '/srv/app' WHERE id = ?", session)
    assert person.told(session) == ["one", "first"]
    assert person.mirror(session).parent.name == "-srv-app"
    assert person.mirror(helper).parent == person.mirror(session).with_suffix("")


@pytest.mark.parametrize("hidden", ["/srv/app", "/srv/other"])
def test_a_rule_for_either_directory_hides_a_session_that_moved(
    person: Person, hidden: str
) -> None:
    person.config(f"projects:\n  {hidden}: {{ignore: true}}\n")
    session = person.exchange("count the apples", "three apples")
    person.refresh()
    person.database.run("UPDATE sessions SET cwd = '/srv/other'")
    helper = person.database.sub_agent(session)
    for each in (session, helper):
        person.database.exchange(each, "eat the apples", "they are eaten")
    person.refresh(everything=True)
    for each in (session, helper):
        assert "apples" not in person.mirror(each).read_text()


def test_a_session_that_moved_while_hidden_is_hidden_again_by_the_rule_for_its_first_directory(
    person: Person,
) -> None:
    rule = "projects:\n  /srv/app: {ignore: true}\n"
    person.config(rule)
    session = person.exchange("count the apples", "three apples")
    helper = person.database.sub_agent(session)
    person.database.exchange(helper, "eat the apples", "they are eaten")
    person.refresh(everything=True)
    person.database.run("UPDATE sessions SET cwd = '/srv/other'")
    for text, is_hidden in (("", False), (rule, True)):
        person.config(text)
        person.refresh(everything=True)
        for each in (session, helper):
            assert ("apples" not in person.mirror(each).read_text()) is is_hidden


@pytest.mark.parametrize("hidden", ["/srv/app", "/srv/other"])
def test_a_rule_for_the_directory_of_its_parent_hides_a_sub_agent_elsewhere(
    person: Person, hidden: str
) -> None:
    person.config(f"projects:\n  {hidden}: {{ignore: true}}\n")
    session = person.exchange("count the apples", "three apples")
    helper = person.database.sub_agent(session)
    person.database.run("UPDATE sessions SET cwd = '/srv/other' WHERE id = ?", helper)
    time.sleep(0.01)
    person.database.exchange(helper, "eat the apples", "they are eaten")  # it is read first
    person.refresh(everything=True)
    assert "apples" not in person.mirror(helper).read_text()


def test_replaced_rows_are_not_doubled_if_reading_ends_half_way(
    person: Person, long_session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.refresh(everything=True)
    before = person.told(long_session)
    person.database.replace(long_session)
    message, calls = mirrors.HermesDatabase.message, []

    def fails(database: mirrors.HermesDatabase, number: int) -> dict[str, Any]:
        calls.append(number)
        if len(calls) == 7:
            raise OSError("the disk is gone")
        return message(database, number)

    with monkeypatch.context() as patch:
        patch.setattr(mirrors.HermesDatabase, "message", fails)
        person.refresh(everything=True)
    assert len(calls) == 7
    person.refresh(everything=True)
    assert person.told(long_session) == before


def test_a_prompt_does_not_read_the_mirror_of_a_long_session_whose_rows_were_replaced(
    person: Person, long_session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.refresh(everything=True)
    person.database.replace(long_session)
    opened: list[str] = []

    def counted(path: str) -> files.Opened:
        opened.append(path)
        return files.Opened(path)

    monkeypatch.setattr(mirrors, "Opened", counted)
    person.refresh()
    assert opened == []
    person.refresh(everything=True)
    assert opened == [str(person.mirror(long_session))]


def test_a_content_of_bytes_leaves_the_other_messages(person: Person) -> None:
    session = person.exchange()
    person.database.message(session, "user", b"\xff\x00")
    person.database.exchange(session, "two", "second")
    assert person.told(session) == ["one", "first", "two", "second"]


def test_a_session_whose_mirror_cannot_be_written_fails_alone(person: Person) -> None:
    other, odd = person.exchange(), person.exchange("two", "second")
    person.refresh()
    path = person.mirror(odd)
    path.unlink()
    path.mkdir()
    person.database.exchange(other, "three", "third")
    assert person.told(other) == ["one", "first", "three", "third"]
    path.rmdir()
    assert person.told(odd) == ["two", "second"]


def test_a_database_of_another_version_is_named(person: Person) -> None:
    person.exchange()
    person.database.run("ALTER TABLE messages RENAME COLUMN content TO body")
    person.refresh(everything=True)
    ((name, why),) = set(unread(str(person.root)))
    assert name == "state.db"
    assert why.endswith("its tables are of another Hermes: update session-memory")


def test_a_change_that_is_not_finished_is_not_read_without_a_log(person: Person) -> None:
    """Where SQLite's log does not work, as on network file systems, Hermes goes without."""
    session = person.exchange()
    person.database.run("PRAGMA journal_mode = delete")
    assert person.told(session) == ["one", "first"]
    with closing(sqlite3.connect(person.database.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # writes before the end
        connection.execute("BEGIN")
        connection.execute("UPDATE messages SET active = 0 WHERE content = 'first'")
        row = "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)"
        for number in range(40):
            connection.execute(row, (session, f"{number} " * 2000, time.time()))
        assert Path(f"{person.database.path}-journal").stat().st_size > 0
        assert person.told(session) == ["one", "first"]
        connection.execute("ROLLBACK")
    person.database.exchange(session, "two", "second")
    assert person.told(session) == ["one", "first", "two", "second"]


def test_a_later_title_of_a_session_is_kept(person: Person) -> None:
    session = person.exchange()

    def stamps() -> list[list[int]]:
        kept = HERMES.backup.sessions(str(person.directory))
        return [file.stamp for files in kept for file in files.files]

    before = stamps()
    assert stamps() == before
    person.database.run("UPDATE sessions SET title = 'Count the apples' WHERE id = ?", session)
    assert stamps() != before


def test_a_database_before_rows_had_states_is_read(person: Person) -> None:
    session = person.exchange()
    person.database.run("DROP INDEX idx_messages_session_active")
    for column in ("active", "compacted", "api_content"):
        person.database.run(f"ALTER TABLE messages DROP COLUMN {column}")
    assert person.told(session) == ["one", "first"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(100)])
def test_a_file_that_is_no_database_has_no_sessions(person: Person, content: bytes) -> None:
    person.database.path.write_bytes(content)
    person.refresh(everything=True)
    assert list(HERMES.folders_below(str(person.directory), "/srv/app")) == []
    problems = [why for _, why in unread(str(person.root))]
    assert problems == ([f"{person.database.path}: file is not a database"] if content else [])


def test_of_a_damaged_database_what_can_be_read_is_read_and_the_file_is_named(
    person: Person,
) -> None:
    others = [person.exchange(f"question {number}", "answer") for number in range(3)]
    person.exchange("apple " * 3000, "first")
    path = person.database.path
    content = path.read_bytes()
    pages = [at for at in range(0, len(content), 4096) if b"apple apple" in content[at : at + 4096]]
    with path.open("r+b") as file:
        file.seek(pages[2])
        file.write(bytes(4096))  # a page of the long text
    person.refresh(everything=True)
    for number, session in enumerate(others):
        assert person.told(session) == [f"question {number}", "answer"]
    [(_, why)] = unread(str(person.root))
    assert why == f"{path}: database disk image is malformed"


def test_sub_agents_whose_starter_is_gone_or_that_start_each_other_are_no_sessions(
    person: Person,
) -> None:
    gone = person.database.sub_agent("gone")
    circle = person.database.sub_agent("gone")
    person.database.run("UPDATE sessions SET parent_session_id = id WHERE id = ?", circle)
    for session in (gone, circle):
        person.database.exchange(session, "count", "three")
    person.refresh(everything=True)
    assert HERMES.sessions_in(HERMES.project_dir(str(person.directory), "")) == []
    assert person.mirror(gone).parent.name == gone


def test_a_session_that_a_timer_started_is_no_person_s(person: Person) -> None:
    timed = person.database.session("/srv/app", source="cron")
    person.database.exchange(timed, "report", "All is well.")
    session = person.exchange()
    person.refresh()
    assert HERMES.is_automated(str(person.mirror(timed)))
    assert not HERMES.is_automated(str(person.mirror(session)))


def test_a_long_session_is_read_in_parts(person: Person) -> None:
    """Memory is needed for some rows, not for all: the mirror grows by marks."""
    session = person.database.session("/srv/app")
    with closing(sqlite3.connect(person.database.path)) as connection, connection:
        rows: list[tuple[Any, ...]] = [
            (session, "assistant", f"part {n}", 1e9 + n) for n in range(700)
        ]
        connection.executemany(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)", rows
        )
    person.refresh(everything=True)
    lines = person.mirror(session).read_text().splitlines()
    assert sum('"mirrored"' in line for line in lines) == 3


def test_an_export_and_a_kept_copy_are_read_as_the_session(person: Person) -> None:
    row = {"id": "s1", "source": "cli", "started_at": 1e9, "cwd": "/srv/app", "title": "Garden"}
    calls = [{"id": "c1", "function": {"name": "patch", "arguments": '{"path": "a.py"}'}}]
    messages = [
        {"role": "user", "content": "one", "timestamp": 1e9},
        {"role": "assistant", "content": "first", "tool_calls": calls, "timestamp": 1e9},
    ]
    exported = json.dumps({**row, "messages": messages}).encode()
    kept = "\n".join(json.dumps(each) for each in (row, *messages)).encode()
    lines = HERMES.exported_lines(exported)
    assert lines == HERMES.exported_lines(kept)
    assert [line["type"] for line in lines if isinstance(line, dict)] == [
        "hermes_session",
        "title",
        "step",
        "step",
    ]
    assert HERMES.exported_lines(b'{"id": "x"}') == []


def test_a_mark_names_the_session_that_a_rule_names_however_many_were_compacted_since(
    person: Person,
) -> None:
    """The mark has room for few of them."""
    first = last = person.database.session("/srv/app", end_reason="compression", ended_at=1.0)
    for _ in range(300):
        last = person.database.session(
            None, parent_session_id=last, end_reason="compression", ended_at=1.0
        )
    person.database.exchange(last, "count the apples", "three apples")
    person.config(f"sessions: {{{first}: {{ignore: true}}}}\n")
    person.refresh(everything=True)
    directories, names = hidden_by(str(person.mirror(last)))
    assert directories == ["/srv/app"]
    assert names[:2] == [first, last]
    assert 50 < len(names) < 250


@pytest.mark.parametrize(("keep", "stays"), [("text", True), ("none", False)])
def test_the_empty_mirror_of_a_deleted_session_stays_if_anything_of_it_is_kept(
    person: Person, keep: str, *, stays: bool
) -> None:
    """One of an earlier version, which did not say by what it is hidden, says so since."""
    session, other = person.exchange(), person.exchange()
    person.refresh(everything=True)
    path = person.mirror(session)
    rules = f"keep: {keep}\nsessions: {{{session}: {{ignore: true}}}}\n"
    with Mirror(str(path), True) as mirror:  # type: ignore[arg-type]
        assert mirror.mark["is_excluded"] is True
    person.config(rules)
    person.refresh(everything=True)
    assert hidden_by(str(path)) == [["/srv/app"], [session]]
    person.database.delete(session)
    person.refresh(everything=True)
    assert path.exists() is stays
    assert person.mirror(other).exists()


def test_a_listed_session_is_read_at_once_if_only_listed_projects_are_tracked(
    person: Person,
) -> None:
    person.config("tracking: only\nprojects: {/srv/app: {ignore: false}}\n")
    assert person.told(person.exchange()) == ["one", "first"]
    hidden = person.database.session(None)
    person.database.exchange(hidden, "count the apples", "three apples")
    assert "three apples" not in person.told(hidden)
