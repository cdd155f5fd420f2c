"""The mirrors of OpenClaw's sessions: what is read of the rows of its databases, however they grow,
are replaced and go."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openclaw_scene import OpenClawDatabase, place_rows

from session_memory.common.system import files
from session_memory.extras.conformance.fixture import said
from session_memory.sessions.runtimes.openclaw import RUNTIME as OPENCLAW
from session_memory.sessions.runtimes.openclaw import mirrors
from session_memory.sessions.settings.homes import environment
from session_memory.sessions.transcripts import _mirrored_files
from session_memory.sessions.transcripts.gate import describe
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.mirror import unread
from session_memory.sessions.transcripts.reader import TranscriptReader

FIXTURES = Path(__file__).parent / "fixtures" / "openclaw"
STORIES = ("conversation.jsonl", "fork.jsonl", "subagent.jsonl")
MEGABYTE = 1024 * 1024
SECRET = "ghp_" + "a1B2" * 9


class Agents:
    """A person's directory of OpenClaw, with the database of an agent."""

    def __init__(self, root: Path) -> None:
        self.directory = root / ".openclaw"
        self.database = OpenClawDatabase(self.directory)

    def refresh(self, *, everything: bool = False) -> None:
        OPENCLAW.refresh(str(self.directory), everything)

    def mirror(self, session_id: str) -> Path:
        (path,) = Path(OPENCLAW.transcripts_dir(str(self.directory))).rglob(f"{session_id}.jsonl")
        return path

    def told(self, session_id: str) -> list[str]:
        """What counts in a session's mirror, brought up to date."""
        self.refresh()
        descriptor = os.open(self.mirror(session_id), os.O_RDONLY)
        try:
            reader = TranscriptReader(OPENCLAW, first_line(descriptor))
            return [text for _, text in said(list(reader.conversation(descriptor)))]
        finally:
            os.close(descriptor)

    def exchange(self, question: str = "one", answer: str = "first") -> str:
        session = self.database.session("/srv/app")
        self.database.exchange(session, question, answer)
        return session


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agents:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    return Agents(tmp_path)


def test_the_fixtures_are_the_mirrors_of_the_rows_beside_them(agents: Agents) -> None:
    ids = place_rows(agents.directory, [(FIXTURES / "rows" / name).read_text() for name in STORIES])
    agents.refresh(everything=True)
    for name, session_id in zip(STORIES, ids, strict=True):
        made, kept = (
            path.read_text().splitlines()[:-1]  # without the mark, which has a random generation
            for path in (agents.mirror(session_id), FIXTURES / name)
        )
        assert made == kept
    assert agents.mirror(ids[2]).parent.name == ids[0]


def test_a_session_goes_on_in_its_mirror(agents: Agents) -> None:
    session = agents.exchange()
    assert agents.told(session) == ["one", "first"]
    before = agents.mirror(session).read_bytes()
    agents.database.exchange(session, "two", "second")
    assert agents.told(session) == ["one", "first", "two", "second"]
    assert agents.mirror(session).read_bytes().startswith(before)


def test_each_agent_has_its_sessions(agents: Agents) -> None:
    session = agents.exchange()
    other = OpenClawDatabase(agents.directory, "helper")
    second = other.session("/srv/app")
    other.exchange(second, "two", "second")
    assert (agents.told(session), agents.told(second)) == (["one", "first"], ["two", "second"])


def changed_in_the_middle(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return json.loads(json.dumps(records).replace("second", "2nd"))


def without_the_last_turn(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records[:-2]


def unchanged(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return records


@pytest.mark.parametrize(
    ("replace", "expected"),
    [
        (changed_in_the_middle, ["one", "first", "two", "2nd", "three", "third"]),
        (without_the_last_turn, ["one", "first", "two", "second"]),
        (unchanged, ["one", "first", "two", "second", "three", "third"]),
    ],
)
def test_rows_that_were_replaced_count_as_they_are_now(
    agents: Agents,
    replace: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
    expected: list[str],
) -> None:
    session = agents.exchange()
    agents.database.exchange(session, "two", "second")
    agents.database.exchange(session, "three", "third")
    assert len(agents.told(session)) == 6
    agents.database.replace(session, replace(agents.database.records(session)))
    assert agents.told(session) == expected
    agents.database.run("UPDATE session_windows SET updated_at = updated_at + 1")
    assert agents.told(session) == expected


def test_a_leaf_takes_the_conversation_back_to_an_earlier_message(agents: Agents) -> None:
    session = agents.exchange()
    answer = agents.database.records(session)[-1]
    agents.database.exchange(session, "two", "second")
    last = agents.database.records(session)[-1]
    leaf = {"type": "leaf", "id": "leaf-1", "parentId": last["id"], "targetId": answer["id"]}
    agents.database.add(session, {**leaf, "timestamp": last["timestamp"]})
    assert agents.told(session) == ["one", "first"]


def test_a_window_that_begins_with_new_is_a_break_in_the_conversation(agents: Agents) -> None:
    session = agents.exchange()
    last = agents.database.records(session)[-1]
    reset = {"type": "reset", "id": "reset-1", "parentId": last["id"]}
    agents.database.add(session, {**reset, "timestamp": last["timestamp"]})
    agents.refresh()
    descriptor = os.open(agents.mirror(session), os.O_RDONLY)
    try:
        reader = TranscriptReader(OPENCLAW, first_line(descriptor))
        assert list(reader.conversation(descriptor))[-1] is None
    finally:
        os.close(descriptor)


def test_the_label_of_a_session_is_its_title_also_a_later_one(agents: Agents) -> None:
    session = agents.exchange()
    agents.refresh()
    assert describe(OPENCLAW, str(agents.mirror(session))).title == "one"
    for label in ("Plan the garden", "Plan the gate"):
        agents.database.run("UPDATE session_nodes SET label = ?", label)
        agents.database.run("UPDATE session_windows SET updated_at = updated_at + 1")
        agents.refresh()
        assert describe(OPENCLAW, str(agents.mirror(session))).title == label


def test_no_mirror_has_a_secret_a_picture_or_the_second_copy_of_an_output(agents: Agents) -> None:
    session = agents.exchange(f"use {SECRET}", "Thanks.")
    picture = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    details = {"exitCode": 1, "aggregated": "the whole output"}
    text = [{"type": "text", "text": "the output"}, picture]
    agents.database.message(session, "toolResult", text, toolCallId="c", details=details)
    agents.refresh()
    content = agents.mirror(session).read_text()
    assert '"exitCode":1' in content
    for gone in (SECRET, "aGVsbG8=", "the whole output"):
        assert gone not in content


def test_a_row_that_cannot_be_read_is_counted_and_costs_itself_alone(agents: Agents) -> None:
    session = agents.exchange()
    agents.database.add(session, '{"type":"message","id":"cut')
    agents.database.add(session, "[1]")
    agents.database.exchange(session, "two", "second")
    assert agents.told(session) == ["one", "first", "two", "second"]


def test_the_mirror_of_a_session_that_was_deleted_goes_with_it(agents: Agents) -> None:
    session, other = agents.exchange(), agents.exchange("two", "second")
    agents.refresh(everything=True)
    path = agents.mirror(session)
    agents.database.delete(session)
    agents.refresh(everything=True)
    assert not path.exists()
    assert agents.told(other) == ["two", "second"]


def test_a_prompt_leaves_a_long_session_to_upkeep(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "PROMPT_ROWS", 4)
    session = agents.database.session("/srv/app")
    for number in range(3):
        agents.database.exchange(session, f"question {number}", "answer")
    short = agents.exchange()
    assert agents.told(short) == ["one", "first"]
    assert list(Path(OPENCLAW.transcripts_dir(str(agents.directory))).rglob(f"{session}*")) == []
    agents.refresh(everything=True)
    assert len(agents.told(session)) == 6


def test_sessions_that_a_prompt_leaves_out_because_they_are_old_are_read_by_upkeep(
    agents: Agents,
) -> None:
    then = time.time() - 9 * 86400
    old = agents.database.session("/srv/app", at=then)
    agents.database.exchange(old, "old", "older", at=then)
    agents.exchange()
    agents.refresh()
    assert list(Path(OPENCLAW.transcripts_dir(str(agents.directory))).rglob(f"{old}*")) == []
    agents.refresh(everything=True)
    assert agents.told(old) == ["old", "older"]


def test_upkeep_reads_all_sessions_however_large_the_database_is(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_mirrored_files, "MOST_BYTES", 10)
    sessions = [agents.exchange() for _ in range(3)]
    agents.refresh(everything=True)
    assert [agents.mirror(session).stem for session in sessions] == sessions


def test_a_session_whose_mirror_cannot_be_written_fails_alone(agents: Agents) -> None:
    other, odd = agents.exchange(), agents.exchange("two", "second")
    agents.refresh()
    path = agents.mirror(odd)
    path.unlink()
    path.mkdir()
    agents.database.exchange(other, "three", "third")
    agents.database.exchange(odd, "four", "fourth")
    assert agents.told(other) == ["one", "first", "three", "third"]
    path.rmdir()
    assert agents.told(odd) == ["two", "second", "four", "fourth"]


@pytest.mark.parametrize(
    "more",
    [
        {"provenance": {"kind": "inter_session", "sourceTool": "subagent_announce"}},
        {"provenance": {"kind": "internal_system"}},
        {"display": False},
    ],
)
def test_a_prompt_that_no_person_wrote_is_nobody_s(agents: Agents, more: dict[str, Any]) -> None:
    session = agents.exchange()
    agents.database.message(session, "user", "A task is done.", **more)
    agents.database.message(session, "user", [{"type": "text", "text": "A task is done."}], **more)
    agents.database.exchange(session, "two", "second")
    assert agents.told(session) == ["one", "first", "two", "second"]


def test_two_agents_with_the_same_session_id_have_a_mirror_each(agents: Agents) -> None:
    other = OpenClawDatabase(agents.directory, "work")
    for database, question in ((agents.database, "one"), (other, "two")):
        database.add_session("same", f"agent:{database.agent}:explicit:same")
        database.add("same", {"type": "session", "version": 3, "id": "same", "cwd": "/srv/app"})
        database.exchange("same", question, "answer")
        agents.refresh(everything=True)
    other.exchange("same", "three", "answer")
    for _ in range(2):
        agents.refresh(everything=True)
        assert agents.told("same") == ["one", "answer"]
        assert agents.told("same-work") == ["two", "answer", "three", "answer"]
    for agent, own in (("main", "same"), ("work", "same-work"), ("", "same")):
        event = {"session_id": "same", "cwd": "/srv/app", "agent": agent}
        assert OPENCLAW.own_event(event, environment())["session_id"] == own
        environ = {"OPENCLAW_SESSION_ID": "same", "OPENCLAW_SESSION_AGENT": agent}
        assert OPENCLAW.own_session_id({**environment(), **environ}) == own
    assert agents.mirror("same").read_text().count('"one"') == 1
    kept = OPENCLAW.backup.sessions(str(agents.directory))
    assert {each.session_id for each in kept} == {"same", "same-work"}
    other.run("DELETE FROM transcript_events")
    other.run("DELETE FROM session_windows")
    other.add_session("new", "agent:work:explicit:new")
    agents.refresh(everything=True)
    assert agents.told("same") == ["one", "answer"]
    with pytest.raises(ValueError, match="not enough values"):
        agents.mirror("same-work")


def test_the_prompt_of_a_timer_is_nobody_s_and_a_word_from_a_channel_is(agents: Agents) -> None:
    session = agents.exchange()
    agents.database.exchange(session, "[OpenClaw heartbeat poll]", "HEARTBEAT_OK")
    person = {"provenance": {"kind": "external_user"}}
    agents.database.message(session, "user", "from my phone", **person)
    assert agents.told(session) == ["one", "first", "HEARTBEAT_OK", "from my phone"]


def test_the_mirror_of_a_sub_agent_has_no_text_if_its_session_s_title_is_hidden(
    agents: Agents, tmp_path: Path
) -> None:
    (tmp_path / ".session-memory").mkdir()
    rules = "sessions:\n  Plan the garden: {ignore: true}\n"
    (tmp_path / ".session-memory" / "config.yaml").write_text(rules)
    session = agents.database.session("/srv/app", title="Plan the garden")
    key = f"agent:main:explicit:{session}"
    agents.database.add_session("helper", "agent:main:subagent:1", parent=key)
    head = {"type": "session", "version": 3, "id": "helper", "cwd": "/srv/app"}
    agents.database.add("helper", head)
    agents.database.exchange("helper", "count the apples", "three apples")
    agents.refresh(everything=True)
    path = agents.mirror("helper")
    assert "apples" not in path.read_text()
    agents.exchange()
    for each in ("helper", session):
        agents.database.delete(each)
    agents.refresh(everything=True)
    assert path.exists()  # the store may have texts from before the rule
    (tmp_path / ".session-memory" / "config.yaml").write_text("")
    agents.refresh(everything=True)
    assert not path.exists()


@pytest.mark.parametrize("has_log", [True, False])
def test_a_database_of_another_version_is_named(agents: Agents, *, has_log: bool) -> None:
    agents.exchange()
    with closing(sqlite3.connect(agents.database.path)) as connection:
        connection.execute("ALTER TABLE session_windows RENAME TO session_episodes")
        connection.commit()
        if has_log:
            agents.refresh(everything=True)
    if not has_log:
        agents.refresh(everything=True)
    root = OPENCLAW.transcripts_dir(str(agents.directory))
    ((name, why),) = set(unread(root))
    assert name == "main"
    assert why.endswith("its tables are of another OpenClaw: update session-memory")


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(100)])
def test_a_file_that_is_no_database_has_no_sessions(agents: Agents, content: bytes) -> None:
    agents.database.path.write_bytes(content)
    agents.refresh(everything=True)
    assert list(OPENCLAW.folders_below(str(agents.directory), "/srv/app")) == []
    problems = [why for _, why in unread(OPENCLAW.transcripts_dir(str(agents.directory)))]
    assert problems == ([f"{agents.database.path}: file is not a database"] if content else [])


def test_of_a_damaged_database_what_can_be_read_is_read_and_the_file_is_named(
    agents: Agents,
) -> None:
    agents.exchange("apple " * 3000, "first")
    others = [agents.exchange(f"question {number}", "answer") for number in range(3)]
    path = agents.database.path
    with path.open("r+b") as file:
        file.seek(path.read_bytes().index(b"apple apple") // 4096 * 4096)
        file.write(bytes(4096))  # a page of the long text
    agents.refresh(everything=True)
    for number, session in enumerate(others):
        assert agents.told(session) == [f"question {number}", "answer"]
    [(_, why)] = unread(OPENCLAW.transcripts_dir(str(agents.directory)))
    assert why == f"{path}: database disk image is malformed"


def test_a_locked_database_is_read_once_it_is_free(agents: Agents) -> None:
    session = agents.exchange()
    agents.database.run("PRAGMA journal_mode = delete")
    with closing(sqlite3.connect(agents.database.path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        agents.refresh(everything=True)
        assert unread(OPENCLAW.transcripts_dir(str(agents.directory))) == []
        connection.execute("ROLLBACK")
    assert agents.told(session) == ["one", "first"]


def test_sub_agents_whose_starter_is_gone_or_that_start_each_other_are_no_sessions(
    agents: Agents,
) -> None:
    for number, parent in (("1", "agent:main:gone"), ("2", "agent:main:subagent:2")):
        key = f"agent:main:subagent:{number}"
        agents.database.add_session(f"sub-{number}", key, parent=parent)
        head = {"type": "session", "version": 3, "id": f"sub-{number}", "cwd": "/srv/app"}
        agents.database.add(f"sub-{number}", head)
        agents.database.exchange(f"sub-{number}", "count", "three")
    agents.refresh(everything=True)
    folder = OPENCLAW.project_dir(str(agents.directory), "/srv/app")
    assert OPENCLAW.sessions_in(folder) == []
    assert agents.mirror("sub-1").parent.name == "sub-1"


def test_a_session_that_a_timer_started_is_no_person_s(agents: Agents) -> None:
    agents.database.add_session("timed", "agent:main:cron:daily")
    head = {"type": "session", "version": 3, "id": "timed", "cwd": "/srv/app"}
    agents.database.add("timed", head)
    agents.database.exchange("timed", "report", "All is well.")
    session = agents.exchange()
    agents.refresh()
    assert OPENCLAW.is_automated(str(agents.mirror("timed")))
    assert not OPENCLAW.is_automated(str(agents.mirror(session)))


def test_a_long_session_is_mirrored_row_by_row(agents: Agents) -> None:
    session = agents.exchange()
    size = 30 * MEGABYTE
    for number in range(30):
        agents.database.message(session, "user", f"{number} {'words ' * (MEGABYTE // 6)}")
    agents.refresh()  # loads the modules
    tracemalloc.start()
    try:
        agents.refresh(everything=True)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert agents.mirror(session).stat().st_size > size
    assert most < size / 2


def test_a_row_that_cannot_be_read_leaves_the_mirror_as_it_was(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = agents.exchange()
    agents.refresh()
    before = agents.mirror(session).read_bytes()
    for number in range(3):
        agents.database.message(session, "user", f"{number} {'words ' * (MEGABYTE // 6)}")
    rows = mirrors.AgentDatabase.records

    def failing(database: mirrors.AgentDatabase, *given: Any) -> Iterator[Any]:
        for number, row in enumerate(rows(database, *given)):
            if number == 2:
                raise sqlite3.OperationalError("disk I/O error")
            yield row

    with monkeypatch.context() as patch:
        patch.setattr(mirrors.AgentDatabase, "records", failing)
        agents.refresh(everything=True)
        assert agents.mirror(session).read_bytes() == before
    agents.refresh(everything=True)
    assert agents.mirror(session).stat().st_size > 2 * MEGABYTE
