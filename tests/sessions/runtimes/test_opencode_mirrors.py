"""OpenCode's database, which changes its rows, and the mirrors that are made of it, to which lines
are added alone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from opencode_scene import OpenCodeUser, text, tool
from opencode_story import write_story

from session_memory.common.system import files as system
from session_memory.sessions.runtimes import _database
from session_memory.sessions.runtimes.opencode import RUNTIME as OPENCODE
from session_memory.sessions.transcripts.mirror import unread

FIXTURES = Path(__file__).parent / "fixtures" / "opencode"
SHARED = Path(__file__).resolve().parents[4] / "shared"
# made by `opencode export`
EXPORTS = sorted((SHARED / "transcripts" / "opencode").rglob("ses_*.jsonl"))
CAPTURES = SHARED / "captures" / "opencode"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenCodeUser:
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    return OpenCodeUser(tmp_path)


@pytest.mark.skipif(not EXPORTS, reason="no real transcripts beside the repository")
def test_real_sessions_are_told_whole_and_in_order(user):
    exports = [json.loads(export.read_text()) for export in EXPORTS]
    sessions = [user.database.take_export(content) for content in exports]
    user.refresh(everything=True)
    for content, session in zip(exports, sessions):
        expected = [
            (
                one["info"]["role"],
                part["text"].strip().strip('"') if part["type"] == "text" else part["tool"],
            )
            for one in content["messages"]
            for part in one["parts"]
            if part["type"] == "tool"
            or (part["type"] == "text" and part["text"].strip() and not part.get("synthetic"))
        ]
        found = user.entries(session)
        assert [
            (entry.role, entry.text.strip('"') or entry.tools[0].name) for entry in found
        ] == expected
        assert user.unreadable == 0
        assert all(entry.cwd and entry.timestamp for entry in found)


def test_an_export_with_odd_parts_is_read_without_them():
    times = {"created": 1795168800000, "updated": 1795168800000}
    said = {"id": "prt_1", "type": "text", "text": "one"}
    messages = [
        {"info": {"id": f"msg_{at}", "role": "user", "time": times}, "parts": parts}
        for at, parts in enumerate((7, [said, 7]))
    ]
    content = json.dumps({"info": {"id": "ses_1", "time": times}, "messages": messages}).encode()
    assert [one["type"] for one in OPENCODE.exported_lines(content)] == [
        "opencode_session",
        "title",
        "part",
    ]


def test_the_captured_sessions_are_told_whole_and_in_order(user):
    if not CAPTURES.is_dir():
        pytest.skip("there are no captures beside the repository")
    shutil.copyfile(CAPTURES / "opencode.db", user.database.path)
    user.refresh(everything=True)
    with closing(sqlite3.connect(user.database.path)) as connection:
        rows = connection.execute(
            "SELECT message.session_id, json_extract(part.data, '$.text') FROM part"
            " JOIN message ON message.id = message_id JOIN session ON session.id = message.session_id"
            " WHERE json_extract(part.data, '$.type') = 'text' AND json_extract(part.data, '$.text') != ''"
            " AND json_extract(part.data, '$.synthetic') IS NULL AND json_extract(message.data, '$.summary') IS NOT 1"
            " AND parent_id IS NULL ORDER BY message.session_id, message.time_created, part.id"
        ).fetchall()
    expected: dict[str, list[str]] = {}
    for session, said in rows:
        expected.setdefault(session, []).append(said.strip().strip('"'))
    assert len(expected) > 5
    for session, texts in expected.items():
        assert [entry.text.strip('"') for entry in user.entries(session) if entry.text] == texts


def test_a_prompt_loses_the_quotes_that_opencode_run_puts_around_it(user):
    session = user.database.session("/srv/site")
    typed = {
        '"Make the price four times n"': "Make the price four times n",
        '"say \\"hello\\" twice"': 'say "hello" twice',
        '"Save" and "Cancel"': '"Save" and "Cancel"',
        '"': '"',
    }
    for stored in typed:
        user.database.turn(session, stored, '"It is done"')
    user.refresh(everything=True)
    assert [entry.text for entry in user.entries(session)] == [
        text for prompt in typed.values() for text in (prompt, '"It is done"')
    ]


def test_the_fixtures_are_what_the_rows_of_the_story_become(tmp_path, monkeypatch):
    monkeypatch.setitem(system.os.environ, b"HOME", os.fsencode(tmp_path))
    data_dir = tmp_path / ".local" / "share" / "opencode"
    sessions = write_story(data_dir)
    OPENCODE.refresh(str(data_dir), everything=True)
    for name, session_id in sessions.items():
        (path,) = (tmp_path / ".session-memory").rglob(f"{session_id}.jsonl")
        assert path.read_text() == (FIXTURES / name).read_text()
        assert path.stat().st_mode & 0o777 == 0o600


class TestRowsThatChange:
    def test_a_text_is_there_once_it_has_ended_and_a_call_once_it_was_answered(self, user):
        session = user.database.session("/srv/app")
        prompt = user.database.user(session, "fix it")
        message = user.database.begin(session, prompt)
        said = user.database.part(
            session, message, {"type": "text", "text": "", "time": {"start": 1}}
        )
        call = tool("bash", {"command": "make"})
        begun = {
            **call,
            "state": {"status": "running", "input": call["state"]["input"], "time": {"start": 2}},
        }
        ran = user.database.part(session, message, begun)
        assert user.said(session) == ["fix it"]
        user.database.change_part(said, text("I will."))
        assert user.said(session) == ["fix it", "I will."]
        user.database.change_part(ran, call)
        user.database.end(message, "tool-calls")
        assert user.said(session) == ["fix it", "I will.", "make"]
        user.database.assistant(session, prompt, text("Done."))
        assert user.said(session) == ["fix it", "I will.", "make", "Done."]

    def test_lines_are_added_and_none_is_changed(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        before = user.mirror(session).read_bytes()
        user.database.turn(session, "two", "second")
        user.refresh()
        assert user.mirror(session).read_bytes().startswith(before)
        assert user.said(session) == ["one", "first", "two", "second"]

    def test_what_a_killed_run_left_unfinished_is_there_with_the_next_answer(self, user):
        session = user.database.session("/srv/app")
        killed = user.database.begin(session, user.database.user(session, "one"))
        running = {
            "type": "tool",
            "tool": "bash",
            "callID": "c",
            "state": {"status": "running", "input": {"command": "make"}},
        }
        user.database.part(session, killed, running)
        assert user.said(session) == ["one"]
        user.database.turn(session, "two", "second")
        assert user.said(session) == ["one", "make", "two", "second"]

    def test_a_prompt_that_was_typed_while_the_agent_worked_ends_nothing(self, user):
        session = user.database.session("/srv/app")
        prompt = user.database.user(session, "one")
        message = user.database.begin(session, prompt)
        part = user.database.part(
            session, message, {"type": "text", "text": "", "time": {"start": 1}}
        )
        user.database.user(session, "and two")
        assert user.said(session) == ["one", "and two"]
        user.database.change_part(part, text("first"))
        assert sorted(user.said(session)) == ["and two", "first", "one"]

    def test_the_title_that_a_model_made_later_is_its_title(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.refresh()
        user.database.run("UPDATE session SET title = 'Fix the door' WHERE id = ?", session)
        user.refresh()
        assert b'{"type": "title", "title": "Fix the door"}' in user.mirror(session).read_bytes()

    def test_a_row_that_cannot_be_read_costs_itself_and_is_counted(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.database.turn(session, "two", "second")
        user.database.run("UPDATE part SET data = '{\"type\":' WHERE data LIKE '%first%'")
        assert user.said(session) == ["one", "two", "second"]
        assert user.unreadable == 1


class TestUndo:
    def test_what_is_undone_counts_no_more_and_what_is_done_again_counts_again(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        second = user.database.turn(session, "two", "second")
        third = user.database.turn(session, "three", "third")
        assert len(user.said(session)) == 6
        ids = [entry.id for entry in user.entries(session)]
        user.database.revert(session, third)
        assert user.said(session) == ["one", "first", "two", "second"]
        user.database.revert(session, second)
        assert user.said(session) == ["one", "first"]
        user.database.revert(session, third)
        assert user.said(session) == ["one", "first", "two", "second"]
        user.database.revert(session)
        assert [entry.id for entry in user.entries(session)] == ids

    def test_a_prompt_behind_what_was_undone_takes_its_place(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        user.database.revert(session, user.database.turn(session, "two", "second"))
        assert user.said(session) == ["one", "first"]
        user.database.clean_up(session)
        user.database.turn(session, "other", "third")
        assert user.said(session) == ["one", "first", "other", "third"]

    def test_so_it_does_where_nobody_looked_meanwhile(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        second = user.database.turn(session, "two", "second")
        assert len(user.said(session)) == 4
        for prompt, answer in (("other", "third"), ("yet another", "fourth")):
            user.database.revert(session, second)
            user.database.clean_up(session)
            second = user.database.turn(session, prompt, answer)
            assert user.said(session) == ["one", "first", prompt, answer]

    def test_a_part_of_a_message_can_be_undone(self, user):
        session = user.database.session("/srv/app")
        prompt = user.database.user(session, "one")
        message = user.database.begin(session, prompt)
        user.database.part(session, message, text("first"))
        later = user.database.part(session, message, text("second"))
        user.database.end(message)
        assert user.said(session) == ["one", "first", "second"]
        user.database.revert(session, message, later)
        assert user.said(session) == ["one", "first"]
        user.database.revert(session)
        assert user.said(session) == ["one", "first", "second"]


class TestForks:
    def test_what_a_fork_of_a_fork_copied_has_the_ids_that_it_had_at_first(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        fork = user.database.fork(session, "x (fork #1)")
        user.database.turn(fork, "two", "second")
        again = user.database.fork(fork, "x (fork #2)")
        user.database.turn(again, "three", "third")
        ids = [entry.id for entry in user.entries(session)]
        forked, twice = user.entries(fork), user.entries(again)
        assert [entry.id for entry in forked[:2]] == ids
        assert [entry.id for entry in twice[:4]] == [entry.id for entry in forked]
        assert [entry.is_copy for entry in twice] == [True] * 4 + [False] * 2

    def test_of_a_session_that_was_deleted_it_has_copies_all_the_same(self, user):
        session = user.database.exchange("/srv/app", "one", "first")
        fork = user.database.fork(session, "x (fork #1)")
        user.database.delete(session)
        assert [(entry.text, entry.is_copy) for entry in user.entries(fork)] == [
            ("one", True),
            ("first", True),
        ]

    @pytest.mark.parametrize("turns", [30, 120])
    def test_what_copies_of_many_sessions_cost_grows_as_they_do(self, user, monkeypatch, turns):
        steps = []
        connect = _database.connect

        def counted(*words, **options):
            connection = connect(*words, **options)
            connection.set_progress_handler(lambda: steps.append(100), 100)
            return connection

        monkeypatch.setattr(_database, "connect", counted)
        merged = user.database.merge("/srv/app", turns)
        user.refresh(everything=True)
        assert sum(steps) < 500 * turns
        found = user.entries(merged)
        assert [entry.text for entry in found[::2]] == [f"user {number}" for number in range(turns)]
        assert all(entry.is_copy and entry.id.startswith("prt_old") for entry in found)


def test_a_session_that_is_moved_keeps_one_mirror_also_for_its_sub_agents(user):
    """OpenCode and Kilo can move a session, with its changes, to another directory."""
    session = user.database.session("/srv/app")
    prompt = user.database.user(session, "one")
    user.database.assistant(session, prompt, text("first"))
    user.refresh()
    user.database.run("UPDATE session SET directory = '/srv/other'")
    prompt = user.database.user(session, "two")
    user.database.assistant(session, prompt, text("second"))
    helper = user.database.session("/srv/other", parent=session)
    user.database.user(helper, "count")
    for everything in (False, True):
        user.refresh(everything=everything)
        entries = user.entries(session)
        assert [entry.text for entry in entries] == ["one", "first", "two", "second"]
        assert [entry.cwd for entry in entries] == ["/srv/app"] * 2 + ["/srv/other"] * 2
    assert user.mirror(helper).parent == user.mirror(session).with_suffix("")
    path = OPENCODE.transcript_path(str(user.data_dir), "/srv/other", session)
    assert path == str(user.mirror(session))


@pytest.mark.parametrize("hidden", ["/srv/app", "/srv/other"])
def test_a_rule_for_either_directory_hides_a_session_that_was_moved(user, hidden):
    (user.root / ".session-memory").mkdir()
    rules = f"projects:\n  {hidden}: {{ignore: true}}\n"
    (user.root / ".session-memory" / "config.yaml").write_text(rules)
    session = user.database.session("/srv/app")
    user.database.user(session, "count the apples")
    user.refresh()
    user.database.run("UPDATE session SET directory = '/srv/other'")
    helper = user.database.session("/srv/other", parent=session)
    for each in (session, helper):
        user.database.user(each, "eat the apples")
    user.refresh(everything=True)
    for each in (session, helper):
        assert "apples" not in user.mirror(each).read_text()


def test_the_empty_mirror_of_a_deleted_session_stays_while_a_rule_hides_its_later_directory(user):
    config = user.root / ".session-memory" / "config.yaml"
    config.parent.mkdir()
    rule = "projects: {/srv/other: {ignore: true}}\n"
    sessions = [user.database.session("/srv/app") for _ in range(3)]
    moved, seen, kept = sessions
    helper = user.database.session("/srv/app", parent=moved)
    for each in (*sessions, helper):
        user.database.user(each, "count the apples")
    user.refresh(everything=True)
    user.database.run(f"UPDATE session SET directory = '/srv/other' WHERE id = '{moved}'")
    mirrors = {each: user.mirror(each) for each in (*sessions, helper)}
    config.write_text(rule)
    user.refresh(everything=True)
    for each in (moved, seen, helper):
        user.database.delete(each)
    for rules, left in (
        (rule, {moved, helper, kept}),
        (f"{rule}# as before\n", {moved, helper, kept}),
        ("", {kept}),
    ):
        config.write_text(rules)
        user.refresh(everything=True)
        assert {each for each, path in mirrors.items() if path.exists()} == left
        assert all("apples" not in mirrors[each].read_text() for each in left - {kept})


def test_a_session_that_moved_while_hidden_is_hidden_again_by_the_rule_for_its_first_directory(
    user,
):
    config = user.root / ".session-memory" / "config.yaml"
    config.parent.mkdir()
    rule = "projects:\n  /srv/app: {ignore: true}\n"
    config.write_text(rule)
    session = user.database.session("/srv/app")
    helper = user.database.session("/srv/app", parent=session)
    for each in (session, helper):
        user.database.user(each, "count the apples")
    user.refresh(everything=True)
    user.database.run("UPDATE session SET directory = '/srv/other'")
    for rules, is_hidden in (("", False), (rule, True)):
        config.write_text(rules)
        user.refresh(everything=True)
        for each in (session, helper):
            assert ("apples" not in user.mirror(each).read_text()) is is_hidden


def test_of_a_damaged_database_what_can_be_read_is_read_and_the_file_is_named(user):
    asked = ["apple " * 645, *[f"question {number}" for number in range(3)]]
    sessions = []
    for question in asked:
        sessions.append(user.database.session("/srv/app"))
        prompt = user.database.user(sessions[-1], question)
        user.database.assistant(sessions[-1], prompt, text("answer"))
    path = user.database.path
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"apple apple") // 4096 * 4096)
        file.write(bytes(4096))  # the page with the long text
    user.refresh(everything=True)
    for question, session in zip(asked[1:], sessions[1:], strict=True):
        assert [entry.text for entry in user.entries(session)] == [question, "answer"]
    [(name, why)] = unread(OPENCODE.transcripts_dir(str(path.parent)))
    assert (name, why) == (path.name, f"{path}: database disk image is malformed")


def test_a_file_that_is_not_a_database_is_named_once_and_read_when_it_is_one(user):
    session = user.database.session("/srv/app")
    prompt = user.database.user(session, "one")
    user.database.assistant(session, prompt, text("answer"))
    path = user.database.path
    content = path.read_bytes()
    root = OPENCODE.transcripts_dir(str(path.parent))
    path.write_bytes(b"no database, " * 1000)
    for everything in (False, True):
        user.refresh(everything=everything)
        assert unread(root) == [(path.name, f"{path}: file is not a database")]
    path.write_bytes(content)
    user.refresh(everything=True)
    assert unread(root) == []
    assert [entry.text for entry in user.entries(session)] == ["one", "answer"]


def test_without_a_database_nothing_is_made(tmp_path):
    OPENCODE.refresh(str(tmp_path / "nothing"), everything=True)
    assert list(tmp_path.iterdir()) == []
