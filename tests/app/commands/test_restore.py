"""`session-memory restore` gives back a whole session, without overwriting, safe from the next cleanup."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from shlex import quote

import pytest
from cline_scene import ClineSession
from hermes_scene import HermesDatabase
from kept_scene import DAY, KeptUser, age, delete
from openclaw_scene import OpenClawDatabase
from own_process import ROOT
from records import OmpSession, PiSession, append, atif_exchange, exchange, lines, new_id
from runtimes_scene import Person
from terminal_scene import on_terminal

from session_memory.history.copies.restore import _spared_time
from session_memory.sessions.runtimes.pi import encode_cwd
from session_memory.sessions.runtimes.table import all_runtimes, runtime

SECRET = "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
NOT_RESTORED = {"openclaw": "OpenClaw", "hermes": "Hermes"}
# A program in place of `opencode` or `kilo`: it takes an export as OpenCode does.
OPENCODE = """#!/bin/sh
exec {python} - "$@" <<'END'
import json, os, sys
sys.path[:0] = [{tests!r}, {root!r}]
from pathlib import Path
from shlex import quote
from opencode_scene import OpenCodeDatabase
assert sys.argv[1] == "import" and os.environ["SESSION_MEMORY_GUARD"]
database = OpenCodeDatabase.__new__(OpenCodeDatabase)
database.path = Path(os.environ["XDG_DATA_HOME"]) / {name!r} / "{name}.db"
database.take_export(json.loads(Path(sys.argv[2]).read_text()))
END
"""


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptUser:
    return KeptUser(tmp_path, monkeypatch)


def days_old(path: Path) -> float:
    return (time.time() - path.stat().st_mtime) / DAY


def test_what_the_runtime_has_deleted_is_back_byte_for_byte_and_with_what_resumes_it(
    person: KeptUser,
) -> None:
    path = person.talk("a", *exchange("one?", "Two.", cwd=str(person.home)), days=29)
    result = path.with_suffix("") / "tool-results" / "b.txt"
    result.parent.mkdir(parents=True)
    result.write_bytes(b"\xff\x00long")
    whole = path.read_bytes()
    person.keep()
    stored = person.stored()
    delete(path)
    person.keep()
    done = person.result("restore", "a")
    assert done["written"] == [str(result), str(path)]
    assert done["resume"] == f"cd {person.home} && claude --resume a"
    assert (path.read_bytes(), result.read_bytes()) == (whole, b"\xff\x00long")
    assert path.stat().st_mode & 0o777 == 0o600
    person.keep()
    assert person.stored() == stored
    assert person.statuses() == ["idle"]
    (session,) = person.sessions()
    assert session.gone_at is None


def test_the_next_cleanup_spares_it_and_continue_takes_another(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."), days=29.9)
    person.talk("b", *exchange("three?", "Four."), days=2)
    person.keep()
    delete(path)
    person.result("restore", "a")
    assert 9.9 < days_old(path) < 10.1


def test_where_a_project_makes_the_cleanup_delete_sooner_it_is_spared_too(person: KeptUser) -> None:
    project = person.home / "app"
    (project / ".claude").mkdir(parents=True)
    (project / ".claude" / "settings.json").write_text('{"cleanupPeriodDays": 3}')
    path = person.talk("a", *exchange("one?", "Two."), days=29)
    person.talk("b", *exchange("three?", "Four.", cwd=str(project)), project="-srv-app")
    person.keep()
    delete(path)
    person.result("restore", "a")
    assert 0.9 < days_old(path) < 1.1


@pytest.mark.parametrize(
    ("last", "days", "newest", "spared"),
    [
        (400, None, 1, 400),
        (2, 30, 1, 2),
        (40, 30, None, 10),
        (40, 30, 1, 10),
        (40, 30, 15, 15),
        (40, 30, 29, 27),
        (3, 1, 0, 1 / 3),
    ],
)
def test_the_time_of_a_restored_session_is_young_enough_and_before_that_of_the_others(
    last: float, days: float | None, newest: float | None, spared: float
) -> None:
    now = 1_790_000_000.0
    found = _spared_time(
        now - last * DAY, days, None if newest is None else now - newest * DAY, now
    )
    assert found == pytest.approx(now - spared * DAY, abs=2)


def test_nothing_is_overwritten(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    result = path.with_suffix("") / "tool-results" / "b.txt"
    result.parent.mkdir(parents=True)
    result.write_text("long")
    person.keep()
    done = person.run("restore", "a")
    assert done.returncode == 1
    assert "Claude Code still has it" in done.stderr
    assert "claude --resume a" in done.stderr
    path.unlink()
    result.write_text("another")
    done = person.run("restore", "a")
    assert done.returncode == 0
    assert "was left alone" in " ".join(done.stdout.split())
    assert result.read_text() == "another"
    assert path.exists()


def test_what_a_killed_restore_has_left_the_next_one_completes(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    result = path.with_suffix("") / "tool-results" / "b.txt"
    result.parent.mkdir(parents=True)
    result.write_text("long")
    whole = path.read_bytes()
    person.keep()
    path.unlink()
    path.with_name(".a.jsonl.restoring").write_bytes(whole[:9])
    person.result("restore", "a")
    assert path.read_bytes() == whole
    assert sorted(os.listdir(path.parent)) == ["a", "a.jsonl"]


def test_into_another_directory(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two.", cwd=str(person.home)))
    person.keep()
    place = person.home / "elsewhere"
    done = person.result("restore", "a", "--to", str(place))
    assert done["resume"] == f"cd {person.home} && CLAUDE_CONFIG_DIR={place} claude --resume a"
    assert (place / "projects/-srv-agent/a.jsonl").read_bytes() == path.read_bytes()


def test_one_that_was_kept_redacted_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = KeptUser(tmp_path, monkeypatch, "redacted")
    path = person.talk("a", *exchange(f"my token is {SECRET}", "Thanks."))
    person.keep()
    delete(path)
    done = person.run("restore", "a")
    assert "it was kept redacted" in done.stdout
    assert SECRET not in path.read_text()


def test_one_that_became_shorter_has_an_earlier_one(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."), *exchange("three?", "Four."))
    whole = path.read_bytes()
    person.keep()
    path.write_bytes(whole[: len(whole) // 2])
    person.keep()
    person.result("restore", "a", "--earlier", "--to", str(person.home / "there"))
    assert (person.home / "there/projects/-srv-agent/a.jsonl").read_bytes() == whole


def test_without_a_name_it_lists_and_names_that_fit_several_are_offered(person: KeptUser) -> None:
    paths = [person.talk(name, *exchange("plan the trip", "Gladly.")) for name in ("aa", "ab")]
    assert "no transcripts are kept" in person.run("restore", "a").stderr
    person.keep()
    for path in paths:
        delete(path)
    person.keep()
    assert {one["session"] for one in person.result("restore")["gone"]} == {"aa", "ab"}
    done = person.run("restore", "a")
    assert "2 kept sessions match 'a'" in done.stderr
    assert "no kept session is called 'x'" in person.run("restore", "x").stderr


def test_a_person_at_a_terminal_chooses_one_of_the_deleted_or_none(person: KeptUser) -> None:
    path = person.talk("aa", *exchange("plan the trip", "Gladly."))
    person.keep()
    delete(path)
    person.keep()
    seen = on_terminal(person, "restore", typed=[""], PATH="/nowhere")
    assert (seen.code, path.exists()) == (0, False)
    assert "1 session kept, 1 of them deleted by the runtime." in seen.text
    [row] = [line for line in seen.lines if " aa " in line]
    seen = on_terminal(person, "restore", typed=[row.split()[0]], PATH="/nowhere")
    assert (seen.code, path.exists()) == (0, True), seen.text


def test_an_agent_may_not(person: KeptUser) -> None:
    assert "only for people" in person.run("restore", "a", CLAUDECODE="1").stderr


def test_a_damaged_copy_is_reported_and_nothing_is_written(person: KeptUser) -> None:
    path = person.talk("a", *exchange("one?", "Two."))
    person.keep()
    delete(path)
    with closing(sqlite3.connect(person.pack_file)) as database, database:
        database.execute("UPDATE kept_chunks SET content = x'00'")
    done = person.run("restore", "a")
    assert (done.returncode, path.exists()) == (1, False)
    assert "damaged" in done.stderr


class Runtimes:
    """A person who keeps sessions of every runtime."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.person = Person(root)
        self.user = KeptUser(root, monkeypatch)
        app = self.person.app
        self.opencode = self.person.opencode
        self.opencode.turn(self.person.opencode_id, "one in OpenCode?", "Two.")
        self.kilo = self.person.database_of(runtime("kilo"))
        self.kilo_id = self.kilo.exchange(app, "one in Kilo?", "Two.")
        self.cline = ClineSession(root / ".cline" / "data", app)
        self.cline.exchange("one in Cline?", "Two.")
        self.openclaw = OpenClawDatabase(root / ".openclaw")
        self.openclaw_id = self.openclaw.session(app)
        self.openclaw.exchange(self.openclaw_id, "one in OpenClaw?", "Two.")
        self.hermes = HermesDatabase(root / ".hermes")
        self.hermes_id = self.hermes.session(app)
        self.hermes.exchange(self.hermes_id, "one in Hermes?", "Two.")
        pi = root / ".pi/agent/sessions" / encode_cwd(str(app)) / f"2026-11-20_{new_id()}.jsonl"
        omp = root / ".omp/agent/sessions/-src-app" / f"2026-11-20_{new_id()}.jsonl"
        self.files = {
            "claude-code": [self.person.claude_session(app, "one in Claude?")],
            "codex": [self.person.codex_session(app, "one in Codex?")],
            "qwen-code": [self.person.qwen_session(app, "one in Qwen?")],
            "droid": [self.person.droid_session(app, "one in Droid?")],
            "kimi": [self.person.kimi_session(app, "one in Kimi?")],
            "gemini": [self.person.gemini_session(app, "one in Gemini?")],
            "copilot": [self.person.copilot_session(app, "one in Copilot?")],
            "pi": [pi],
            "omp": [omp],
            "cline": [self.cline.path],
            "atif": [self.person.trajectory(app, *atif_exchange("one in ATIF?", "Two."))],
        }
        talk = PiSession(cwd=str(app))
        talk.exchange("one in Pi?", "Two.")
        pi.parent.mkdir(parents=True)
        pi.write_bytes(lines(*talk.records))
        other = OmpSession(cwd=str(app))
        other.exchange("one in omp?", "Two.")
        omp.parent.mkdir(parents=True)
        omp.write_bytes(b"".join(other.lines))


def test_every_runtime_gets_its_session_back_which_is_the_same_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Runtimes(tmp_path, monkeypatch)
    user = every.user
    programs = tmp_path / "bin"
    programs.mkdir()
    place = {"python": quote(sys.executable), "tests": str(ROOT / "tests"), "root": str(ROOT)}
    for name in ("opencode", "kilo"):
        (programs / name).write_text(OPENCODE.format(name=name, **place))
        (programs / name).chmod(0o755)
    assert user.keep().problems == []
    kept = {one.runtime: one for one in user.sessions()}
    assert set(kept) == {one.name for one in all_runtimes()}
    before = {name: [path.read_bytes() for path in paths] for name, paths in every.files.items()}
    stored = sorted(user.stored())
    for (path,) in every.files.values():
        path.unlink()
    every.opencode.delete(every.person.opencode_id)
    every.kilo.delete(every.kilo_id)
    every.openclaw.delete(every.openclaw_id)
    every.hermes.delete(every.hermes_id)
    user.keep()
    user.keep()  # mirrors go once the store has them
    assert all(one.gone_at for one in user.sessions())
    for session in kept.values():
        done = user.run("restore", session.session_id, PATH=f"{programs}:{os.environ['PATH']}")
        if session.runtime in NOT_RESTORED:
            assert (done.returncode, done.stdout) == (1, "")
            title = NOT_RESTORED[session.runtime]
            assert f"{title} has no command that imports a session" in done.stderr
            assert f"session-memory handoff {session.session_id}" in done.stderr
        else:
            assert done.returncode == 0, (session.runtime, done.stderr)
    for name, contents in before.items():
        found = [path.read_bytes() for path in every.files[name]]
        if name == "gemini":
            last = found[0].splitlines()[-1]
            assert list(json.loads(last)["$set"]) == ["lastUpdated"]
            found[0] = found[0].removesuffix(last + b"\n")
        assert found == contents, name
    user.keep()
    assert sorted(user.stored()) == stored
    gone = [one.runtime for one in user.sessions() if one.gone_at]
    assert sorted(gone) == sorted(NOT_RESTORED)


def test_a_sub_agent_of_codex_comes_back_with_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Runtimes(tmp_path, monkeypatch)
    (parent,) = every.files["codex"]
    child = every.person.codex_session(every.person.app, "count")
    mark = b'"payload":{"parent_thread_id":"%b",' % parent.stem[-36:].encode()
    content = child.read_bytes().replace(b'"payload":{', mark, 1)
    child.write_bytes(content)
    every.user.keep()
    parent.unlink()
    child.unlink()
    every.user.keep()
    every.user.result("restore", parent.stem[-36:])
    assert child.read_bytes() == content
    assert parent.exists()


def test_a_gemini_chat_counts_as_used_within_the_time_after_which_gemini_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Runtimes(tmp_path, monkeypatch)
    (path,) = every.files["gemini"]
    append(path, {"$set": {"lastUpdated": "2020-01-01T00:00:00.000Z"}})
    age(path, 400)
    every.user.keep()
    session = next(one for one in every.user.sessions() if one.runtime == "gemini")
    path.unlink()
    every.user.result("restore", session.session_id)
    backup = next(one for one in all_runtimes() if one.name == "gemini").backup
    assert 9.9 < (time.time() - backup.last_used(str(path))) / DAY < 10.1
