"""Upkeep also archives conversations from before the install, which a runtime may delete."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from hermes_scene import HermesDatabase
from records import exchange, write
from store_scene import StoreUser

from session_memory.app.upkeep.runner import do_upkeep
from session_memory.history.archives import upkeep as archives_upkeep

DAY = 86_400.0


class Veteran(StoreUser):
    """A user of Claude Code for months who has just installed session-memory."""

    def talk(self, number: int, days: float, cwd: str = "/srv/agent") -> Path:
        """A session that ended so many days ago."""
        then = time.time() - days * DAY
        records = [
            record
            for turn in range(3)
            for record in exchange(
                f"question{number} {turn}", f"answer{number} {turn}", at=then + turn, cwd=cwd
            )
        ]
        path = write(
            self.projects / "-srv-agent" / f"{number:08x}-0000-4000-8000-000000000000.jsonl",
            *records,
        )
        os.utime(path, (then, then))
        return path

    def upkeep(self) -> int:
        """Run upkeep; return how many sessions it archived."""
        lock = self.home / ".session-memory" / "state" / "upkeep.lock"
        if lock.exists():
            os.utime(lock, (0, 0))
        run = do_upkeep(str(self.home), {"HOME": str(self.home)})
        assert run is not None
        assert run.problem == ""
        return run.archived

    def archived(self) -> str:
        folder = self.home / ".session-memory" / "conversations"
        return "".join(path.read_text() for path in folder.glob("*.md")) if folder.exists() else ""

    def private(self) -> list[Path]:
        """Return the archives of hidden sessions."""
        return [*(self.home / ".session-memory" / ".private-conversations").glob("*.md")]


class HermesVeteran(Veteran):
    """A user of Hermes, with sessions of three days ago in /srv/app that move to /srv/other."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.database = HermesDatabase(home / ".hermes")

    def ask(self, question: str, answer: str, **more: str) -> str:
        """Add a session; return its id."""
        then = time.time() - 3 * DAY
        session = self.database.session("/srv/app", at=then, **more)
        self.database.exchange(session, question, answer, at=then)
        return session

    def hide(self) -> None:
        """Move all sessions to a directory, and exclude it."""
        self.database.run("UPDATE sessions SET cwd = '/srv/other'")
        self.config("projects: {/srv/other: {ignore: true}}\n")


@pytest.fixture
def veteran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HermesVeteran:
    monkeypatch.setenv("HOME", str(tmp_path))
    return HermesVeteran(tmp_path)


def test_sessions_from_before_the_install_are_archived_once(tmp_path):
    user = Veteran(tmp_path)
    for number, days in enumerate((25, 12, 3)):
        user.talk(number, days)
    assert user.upkeep() == 3
    assert all(f"question{number} 2" in user.archived() for number in range(3))
    assert user.upkeep() == 0


def test_what_will_be_deleted_first_is_archived_first(tmp_path, monkeypatch):
    user = Veteran(tmp_path)
    for number, days in enumerate((3, 25, 12, 28)):
        user.talk(number, days)
    monkeypatch.setattr(archives_upkeep, "HISTORY_CPU_SECONDS", 0.0)  # one a run
    assert user.upkeep() == 1
    assert "question3 0" in user.archived()
    assert user.upkeep() == 1
    assert "question1 0" in user.archived()
    assert "question2 0" not in user.archived()


def test_upkeep_lists_the_archives_as_often_however_many_it_writes(tmp_path, monkeypatch):
    listed: Counter[str] = Counter()
    list_directory = os.listdir

    def recorded(path: str) -> list[str]:
        listed[os.path.basename(os.path.realpath(path))] += 1
        return list_directory(path)

    monkeypatch.setattr(os, "listdir", recorded)
    counts = []
    for sessions in (3, 12):
        user = Veteran(tmp_path / str(sessions))
        for number in range(sessions):
            user.talk(number, 20)
        listed.clear()
        assert user.upkeep() == sessions
        counts.append(listed["conversations"])
    assert counts[0] == counts[1]


def test_a_setting_refuses_it(tmp_path):
    user = Veteran(tmp_path)
    user.talk(1, 20)
    user.config("archive_history: false\n")
    assert user.upkeep() == 0
    assert user.archived() == ""


def test_sessions_that_rules_exclude_are_not_archived(tmp_path):
    user = Veteran(tmp_path)
    user.talk(1, 20, cwd="/srv/secret")
    user.talk(2, 20)
    user.config("projects:\n  /srv/secret: {ignore: true}\n")
    assert user.upkeep() == 1
    assert "question1" not in user.archived()
    assert user.private() == []


def test_doctor_says_how_many_sessions_are_in_the_store_alone(tmp_path):
    user = Veteran(tmp_path)
    paths = [user.talk(number, 20) for number in range(3)]
    assert user.run("ingest").returncode == 0
    assert user.run("archive", "00000001").returncode == 0
    for path in paths:
        path.unlink()
    assert user.run("ingest").returncode == 0
    found = user.run("doctor", "store").stdout
    assert "2 sessions: no transcript or archive has them" in found


def test_an_archive_is_hidden_at_once_if_only_the_mirror_shows_that_a_rule_hides_its_session(
    veteran: HermesVeteran,
) -> None:
    """A session of Hermes moved to an excluded directory after it was archived."""
    veteran.ask("count the apples", "three apples")
    assert veteran.upkeep() == 1
    before = veteran.archived()
    assert "three apples" in before
    veteran.hide()
    assert veteran.upkeep() == 1
    [archive] = veteran.private()
    assert veteran.archived() == ""
    assert archive.read_text().partition(', "is_excluded"')[0] == before.removesuffix("} -->\n")
    for _ in range(2):  # nothing moves it back, and it is written once
        assert veteran.upkeep() == 0
        assert veteran.run("archive", "--all").stdout == "0 conversations kept.\n"
        assert veteran.archived() == ""
        assert "three apples" in archive.read_text()
    veteran.config("")
    veteran.upkeep()
    veteran.run("archive", "--all")
    assert "three apples" in veteran.archived()
    assert veteran.private() == []


def test_the_archive_of_a_hidden_session_that_its_program_deletes_is_private_until_its_rule_is_removed(
    veteran: HermesVeteran,
) -> None:
    early = veteran.ask("count the apples", "three apples")
    late = veteran.ask("count the pears", "four pears")
    assert veteran.upkeep() == 2
    veteran.hide()
    assert veteran.run("ingest").returncode == 0  # before the archives are moved
    veteran.database.delete(late)
    assert veteran.upkeep() == 2
    veteran.database.delete(early)
    for _ in range(2):
        assert veteran.upkeep() == 0
        veteran.run("archive", "--all")
        assert veteran.archived() == ""
    veteran.config("")
    veteran.run("archive", "--all")
    assert "three apples" in veteran.archived()
    assert "four pears" in veteran.archived()


def test_the_archive_of_a_copied_session_is_private_while_a_rule_hides_the_original(
    veteran: HermesVeteran,
) -> None:
    """Only the original's mirror names the directory by which the rule hides it."""
    session = veteran.ask("count the apples", "three apples", title="Counting apples")
    coder = veteran.database.copy(veteran.home / ".hermes" / "profiles" / "coder")
    coder.exchange(session, "paint the fence", "done", at=time.time() - 3 * DAY)
    assert veteran.upkeep() == 2
    assert "three apples" in veteran.archived()
    veteran.hide()
    assert veteran.upkeep() == 2
    for _ in range(2):
        assert veteran.archived() == ""
        assert veteran.upkeep() == 0
    veteran.config("")
    veteran.run("archive", "--all")
    assert "paint the fence" in veteran.archived()
    assert "three apples" in veteran.archived()
