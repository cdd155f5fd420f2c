"""Upkeep keeps transcripts whole or redacted, if the person wants that, and nothing that is
excluded or forgotten."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hermes_scene import HermesDatabase
from kept_scene import KeptUser, age, delete
from openclaw_scene import OpenClawDatabase
from own_process import ROOT
from records import OmpSession, append, exchange, lines, new_id, user

from session_memory.history.copies import pack as pack_module
from session_memory.history.disk import Sizes
from session_memory.sessions.confined_files import OutsideGroupError
from session_memory.sessions.runtimes.backup import SessionFile, files_below
from session_memory.sessions.runtimes.claude import encode_cwd

SECRET = "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
LONG = 1_500_000


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path, monkeypatch)


def long_talk(size: int = LONG) -> list[dict[str, object]]:
    """Exchanges of so many bytes, none of which repeats another."""
    chance = random.Random(7)
    return [
        one
        for _ in range(size // 4000)
        for one in exchange(f"{chance.randbytes(1500).hex()}?", "So it is.")
    ]


@pytest.mark.parametrize("keep", ["text", "none"])
def test_nothing_is_kept_until_the_person_turns_it_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    person = KeptUser(tmp_path, monkeypatch, keep)
    person.talk("a", *exchange("one?", "Two."))
    assert person.keep() == (0, [])
    assert not person.pack_file.exists()


def test_a_session_is_kept_byte_for_byte_with_its_sub_agents_and_the_results_of_its_tools(
    person: KeptUser,
) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    inside = {"subagents/agent-1.jsonl": lines(user("count")), "subagents/agent-1.meta.json": b"{}"}
    inside["tool-results/b.txt"] = b"\xff\x00 as it is\r\n"
    for name, content in inside.items():
        (path.with_suffix("") / name).parent.mkdir(parents=True, exist_ok=True)
        (path.with_suffix("") / name).write_bytes(content)
    assert person.keep() == (1, [])
    folder = "projects/-srv-agent/a"
    whole = {
        f"{folder}.jsonl": path.read_bytes(),
        **{f"{folder}/{name}": text for name, text in inside.items()},
    }
    assert person.kept() == {"a": whole}
    assert person.pack_file.stat().st_mode & 0o777 == 0o600
    assert person.keep() == (0, [])


def test_of_a_session_that_has_grown_only_the_end_is_stored_again(person: KeptUser) -> None:
    path = person.talk("a", *long_talk())
    person.keep()
    before, _ = person.amounts()
    for number in range(3):
        append(path, *exchange(f"and {number}?", "Yes."))
        assert person.keep() == (1, [])
        assert person.kept()["a"]["projects/-srv-agent/a.jsonl"] == path.read_bytes()
    chunks, parts = person.amounts()
    assert chunks == parts  # nothing that was stored before is there twice
    # one line of 64 ends a chunk, perhaps one of the six new ones
    assert before <= chunks <= before + 6


def test_a_fork_and_the_session_that_it_was_made_of_share_what_they_have_in_common(
    person: KeptUser,
) -> None:
    one, other = new_id(), new_id()
    talk = long_talk()
    for session in (one, other):
        person.talk(session, *[{**record, "sessionId": session} for record in talk])
    append(person.projects / "-srv-agent" / f"{other}.jsonl", *exchange("only here?", "Yes."))
    person.keep()
    chunks, parts = person.amounts()
    assert parts > 6
    # each has a last chunk of its own, and the longer one perhaps one more
    assert chunks <= parts / 2 + 1.5
    for session, files in person.kept().items():
        assert list(files.values()) == [
            (person.projects / "-srv-agent" / f"{session}.jsonl").read_bytes()
        ]


def test_a_title_that_is_rewritten_in_place_is_kept_anew_and_no_earlier_copy(
    person: KeptUser, tmp_path: Path
) -> None:
    session = OmpSession(cwd="/srv/agent")
    for record in long_talk(600_000)[::2]:
        session.exchange(str(record["message"]), "So it is.")
    path = session.write(tmp_path / ".omp" / "agent" / "sessions" / "--srv-agent--")
    file = f"sessions/--srv-agent--/{path.name}"
    person.keep()
    before, parts = person.amounts()
    assert parts > 2
    session.rename(path, "Tidy the garden")
    assert person.keep() == (1, [])
    assert person.kept() == {session.id: {file: path.read_bytes()}}
    assert person.amounts() == (before, parts)
    assert [kept.is_earlier for kept in person.sessions()] == [False]
    path.write_bytes(path.read_bytes()[:256] + b"\n".join([b"{}"] * 9))
    assert person.keep() == (1, [])
    assert sorted(kept.is_earlier for kept in person.sessions()) == [False, True]


@pytest.mark.parametrize("title", [f"use {SECRET}", f"{'x' * 100} {SECRET}"])
def test_a_title_without_its_secret_has_the_length_that_is_rewritten_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str
) -> None:
    """omp (18.2) writes 256 bytes there, and would write over the header behind a shorter line."""
    person = KeptUser(tmp_path, monkeypatch, "redacted")
    session = OmpSession(cwd="/srv/agent")
    session.exchange("one?", "Two.")
    session.title = title, "user"
    path = session.write(tmp_path / ".omp" / "agent" / "sessions" / "--srv-agent--")
    assert person.keep() == (1, [])
    [(kept,)] = [files.values() for files in person.kept().values()]
    line, _, rest = kept.partition(b"\n")
    assert len(line) + 1 == OmpSession.LENGTH
    assert SECRET.encode() not in line
    assert "[redacted" in json.loads(line)["title"]
    assert rest == path.read_bytes()[OmpSession.LENGTH :]


def test_what_the_runtime_has_deleted_stays_kept(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    person.keep()
    whole = path.read_bytes()
    delete(path)
    person.keep()
    assert person.kept() == {"a": {"projects/-srv-agent/a.jsonl": whole}}
    assert person.sessions()[0].gone_at


def test_a_result_of_a_tool_that_the_runtime_deletes_before_the_session_stays_kept(
    person: KeptUser,
) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    result = path.with_suffix("") / "tool-results" / "b.txt"
    result.parent.mkdir(parents=True)
    result.write_text("long")
    person.keep()
    result.unlink()
    append(path, *exchange("three?", "Four."))
    person.keep()
    assert person.kept()["a"]["projects/-srv-agent/a/tool-results/b.txt"] == b"long"


def test_a_transcript_that_has_become_shorter_does_not_replace_the_longer_one(
    person: KeptUser,
) -> None:
    path = person.talk("a", *exchange("one?", "Two."), *exchange("three?", "Four."))
    whole = path.read_bytes()
    person.keep()
    path.write_bytes(whole[: len(whole) // 2])
    assert person.keep() == (1, [])
    assert [one.is_earlier for one in person.sessions()] in ([0, 1], [1, 0])
    assert person.kept()["a"]["projects/-srv-agent/a.jsonl"] == path.read_bytes()


def test_with_redacted_no_secret_is_kept_and_every_line_still_is_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = KeptUser(tmp_path, monkeypatch, "redacted")
    path = person.talk(
        "a", *exchange(f"my token is {SECRET}", "Thanks."), *exchange("one?", "Two.")
    )
    (path.with_suffix("") / "tool-results").mkdir(parents=True)
    (path.with_suffix("") / "tool-results" / "b.txt").write_text(f"TOKEN={SECRET}\n")
    assert person.keep() == (1, [])
    files = person.kept()["a"]
    assert SECRET.encode() not in b"".join(files.values())
    kept = files["projects/-srv-agent/a.jsonl"].splitlines()
    records = path.read_bytes().splitlines()
    assert [json.loads(line)["uuid"] for line in kept] == [
        json.loads(line)["uuid"] for line in records
    ]
    assert kept[2:] == records[2:]
    person.config("keep: whole\n")
    assert person.keep() == (1, [])
    assert person.kept()["a"]["projects/-srv-agent/a.jsonl"] == path.read_bytes()


def test_an_excluded_session_is_not_kept_nor_one_with_an_excluded_part(person: KeptUser) -> None:
    person.config(
        f"keep: whole\nsessions: {{a: {{ignore: true}}}}\nprojects: {{{person.home}/private: {{ignore: true}}}}\n"
    )
    person.talk("a", *exchange("one?", "Two."))
    person.talk(
        "b", *exchange("one?", "Two."), *exchange("there?", "Yes.", cwd=f"{person.home}/private")
    )
    person.talk("c", *exchange("one?", "Two."))
    person.keep()
    assert list(person.kept()) == ["c"]


def test_a_session_is_not_kept_if_a_rule_hides_its_later_directory_or_the_session_before_it(
    person: KeptUser,
) -> None:
    """Only the mirror shows it: the rows of the store name neither."""
    database = HermesDatabase(person.home / ".hermes")
    moved, seen = database.session("/srv/app"), database.session("/srv/app")
    first = database.session("/srv/app", end_reason="compression", ended_at=1.0)
    for each in (moved, seen, first):
        database.exchange(each, "count the apples", "three apples")
    further = database.session("/srv/app", parent_session_id=first)
    database.exchange(further, "eat the apples", "they are eaten")
    person.keep()
    assert {*person.kept()} == {moved, seen, first, further}
    database.run("UPDATE sessions SET cwd = '/srv/other' WHERE id = ?", moved)
    database.exchange(moved, "eat the apples", "they are eaten")
    person.config(
        f"keep: whole\nsessions: {{{first}: {{ignore: true}}}}\nprojects: {{/srv/other: {{ignore: true}}}}\n"
    )
    person.keep()
    assert [*person.kept()] == [seen]


def test_a_rule_drops_what_the_runtime_still_has_and_no_sole_copy(person: KeptUser) -> None:
    gone = person.talk("a", *exchange("one?", "Two."))
    person.talk("b", *exchange("one?", "Two."))
    person.keep()
    delete(gone)
    person.config("keep: whole\nsessions: {a: {ignore: true}, b: {ignore: true}}\n")
    person.keep()
    assert list(person.kept()) == ["a"]


def test_what_is_forgotten_is_deleted_from_what_is_kept_and_does_not_come_back(
    person: KeptUser,
) -> None:
    person.talk("a", *exchange(f"one {SECRET}?", "Two."))
    person.talk("b", *exchange("three?", "Four."))
    person.keep()
    done = person.run("forget", "a", "--yes")
    assert "1 kept transcript" in done.stdout
    assert list(person.kept()) == ["b"]
    person.keep()
    assert list(person.kept()) == ["b"]


def test_a_project_that_is_forgotten_takes_along_what_only_is_kept_of_it(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two.", cwd="/srv/secret"))
    person.talk("b", *exchange("three?", "Four."))
    person.keep()
    delete(path)
    person.database.unlink()
    person.keep()
    assert set(person.kept()) == {"a", "b"}
    person.run("forget", "--project", "/srv/secret", "--yes")
    assert list(person.kept()) == ["b"]


def test_a_full_pack_drops_what_is_deleted_last_and_then_says_that_it_is_full(
    person: KeptUser,
) -> None:
    talks = [
        person.talk(name, *long_talk(400_000 + 8000 * days), days=days)
        for name, days in (("new", 1), ("old", 9))
    ]
    person.keep()
    person.talk("oldest", *long_talk(420_000 + 8000), days=20)
    location, store = person.ingested()
    person.config(f"keep: whole\ndisk_bytes: {sum(Sizes().usage(location).values()) + 50_000}\n")
    report = person.keep_in(location, store)
    assert set(person.kept()) == {"old", "oldest"}
    assert "disk_bytes is reached, so 1 session could not be kept" in report.problems[0]
    for path in (*talks[1:], person.projects / "-srv-agent" / "oldest.jsonl"):
        delete(path)
    assert "disk_bytes is reached, so 1 session could not be kept" in person.keep().problems[0]
    assert set(person.kept()) == {"old", "oldest"}


def test_a_run_that_has_to_end_goes_on_where_it_ended(
    person: KeptUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_module, "STEP_BYTES", 1_200_000)
    path = person.talk("a", *long_talk(5_000_000))
    sizes: list[int] = []
    while not sizes or sizes[-1] < path.stat().st_size:
        assert len(sizes) < 20
        person.keep(is_over=True)
        sizes.append(len(person.kept()["a"]["projects/-srv-agent/a.jsonl"]))
        assert path.read_bytes()[: sizes[-1]] == person.kept()["a"]["projects/-srv-agent/a.jsonl"]
    assert len(sizes) > 2


def test_a_damaged_pack_is_moved_away_and_what_the_runtime_has_is_kept_again(
    person: KeptUser,
) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    person.keep()
    content = bytearray(person.pack_file.read_bytes())
    content[:100] = b"x" * 100
    person.pack_file.write_bytes(content)
    (problem,) = person.keep().problems
    assert "kept.db was damaged and is now" in problem
    assert person.kept()["a"]["projects/-srv-agent/a.jsonl"] == path.read_bytes()
    assert list(person.pack_file.parent.glob("kept.db.corrupt-*"))


def test_a_damaged_chunk_costs_only_the_sessions_that_have_it(person: KeptUser) -> None:
    paths = {name: person.talk(name, *exchange(name, "So.")) for name in ("a", "b", "c")}
    person.keep()
    delete(paths["c"])
    person.keep()
    with closing(sqlite3.connect(person.pack_file)) as database, database:
        parts = "SELECT chunk FROM kept_parts JOIN kept_files ON kept_files.id = file WHERE path LIKE '%/b.jsonl'"
        database.execute(f"UPDATE kept_chunks SET content = x'00' WHERE id IN ({parts})")
    pack = pack_module.Pack(str(person.pack_file))
    assert [one.session_id for one in pack.damaged(60)] == ["b"]
    pack.close()
    assert person.keep() == (1, [])
    assert set(person.kept()) == {"a", "b", "c"}


def test_with_none_the_store_forgets_what_the_runtime_has_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = KeptUser(tmp_path, monkeypatch, "none")
    path = person.talk("a", *exchange("one?", "Two."))
    person.talk("b", *exchange("three?", "Four."))
    person.keep()
    delete(path)
    person.keep()
    assert person.stored() == ["three?", "Four."]


def test_an_agents_own_settings_do_not_turn_it_on(person: KeptUser) -> None:
    home = person.home / "agents" / "anna"
    (home / ".session-memory" / "sessions").mkdir(parents=True)
    (home / ".session-memory" / "config.yaml").write_text("keep: whole\n")
    person.config(f"keep: text\nhomes: [{home}]\n")
    done = person.run("config", "keep", "--home", home)
    assert "whole" not in done.stdout.splitlines()[0], done.stdout


def test_names_of_folders_are_those_of_claude_code(person: KeptUser) -> None:
    project = encode_cwd(str(person.home))
    path = person.talk("a", *exchange("one?", "Two."), project=project)
    age(path, 40)
    person.keep()
    assert list(person.kept()["a"]) == [f"projects/{project}/a.jsonl"]
    assert os.listdir(person.projects) == [project]


def test_a_run_of_upkeep_keeps_what_is_new_and_says_what_it_could_not(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    command = [
        sys.executable,
        "-I",
        str(ROOT / "hooks/upkeep.py"),
        str(person.home / ".session-memory"),
    ]
    assert person.run_command(*command).stdout == ""
    assert list(person.kept()["a"].values()) == [path.read_bytes()]
    (run,) = person.result("doctor", "status")["runs"]
    assert (run["kept"], run["problem"]) == (1, "")
    person.config("keep: whole\ndisk_bytes: 1\n")
    person.talk("b", *exchange("three?", "Four."))
    os.utime(person.home / ".session-memory/state/upkeep.lock", (1, 1))
    person.run_command(*command)
    assert (
        "disk_bytes is reached" in person.result("doctor", "status", code=1)["runs"][-1]["problem"]
    )


def test_a_database_that_cannot_be_read_leaves_the_other_agents_sessions(person: KeptUser) -> None:
    config_dir = person.home / ".openclaw"
    for agent in ("broken", "main", "other"):
        database = OpenClawDatabase(config_dir, agent)
        session = database.session("/srv/app")
        database.exchange(session, "one", "first")
    location, store = person.ingested()
    broken = OpenClawDatabase(config_dir, "broken").path
    broken.write_bytes(b"no database")
    report = person.keep_in(location, store)
    assert len(person.kept()) == 2
    [problem] = report.problems
    assert f"{broken}: file is not a database" in problem


def test_a_group_cannot_make_a_host_keep_what_a_symlink_leads_to(tmp_path: Path) -> None:
    group, secret = tmp_path / "host" / "groups" / "a", tmp_path / "secret"
    (group / "there").mkdir(parents=True)
    secret.mkdir()
    (secret / "key.jsonl").write_text("secret")
    (group / "s").symlink_to(secret)
    (group / "there" / "s.jsonl").symlink_to(secret / "key.jsonl")
    assert files_below(str(group / "s")) == []
    assert files_below(str(group)) == []
    with pytest.raises(OutsideGroupError):
        SessionFile("key.jsonl", str(group / "s" / "key.jsonl")).open(str(tmp_path / "host"))
