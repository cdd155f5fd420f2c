"""Upkeep as sessions start it: a separate process ingests new content, and ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hooks_scene import PlainUser
from hooks_scene import run as run_hook
from records import NamedHome, PiSession, append, exchange, write
from store_scene import StoreUser

from session_memory.app.upkeep.runner import do_upkeep

ROOT = Path(__file__).resolve().parents[3]
WAIT_SECONDS = 150
LAST_WEEK = time.time() - 7 * 24 * 3600
TWO_HOURS_AGO = time.time() - 2 * 3600
BROKEN_OFF = "it was ended before it had finished"


class Person(PlainUser):
    """A person whose hooks start upkeep, and the store that it fills."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.store = StoreUser.__new__(StoreUser)
        self.store.home, self.store.projects = root, self.config_dir / "projects"
        self.store.database = self.place / "store" / "memory.db"

    def start(self) -> None:
        assert self.run("session_start", hook_event_name="SessionStart", source="startup") == b""

    def end(self) -> None:
        assert (
            self.run("session_end", hook_event_name="SessionEnd", reason="prompt_input_exit") == b""
        )

    def here(self) -> dict[str, Any]:
        """Run upkeep in this process if it is due; the last run."""
        with patch.dict(os.environ):
            do_upkeep(str(self.place), {"HOME": str(self.root)})
        return self.runs()[-1]

    def runs(self) -> list[dict[str, Any]]:
        """The runs that are over."""
        path = self.state_dir / "upkeep.json"
        return (
            [run for run in json.loads(path.read_text())["runs"] if run["ended"]]
            if path.exists()
            else []
        )

    def wait_for_runs(self, number: int) -> dict[str, Any]:
        """The last of so many runs."""
        wait_until(
            lambda: len(self.runs()) >= number, f"{number} runs of upkeep; the log: {self.log()}"
        )
        assert len(self.runs()) == number
        return self.runs()[-1]

    def let_time_pass(self) -> None:
        """Makes the last run as old as it has to be for another."""
        then = time.time() - 601
        os.utime(self.state_dir / "upkeep.lock", (then, then))

    def upkeep(self, *options: str, **more: Any) -> subprocess.Popen[bytes]:
        """The process that a hook starts, with other options for Python."""
        return subprocess.Popen(
            [sys.executable, *(options or ("-I",)), ROOT / "hooks/upkeep.py", self.place],
            env={"HOME": str(self.root), "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            **more,
        )


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.02)


def talk(topic: str, at: float = TWO_HOURS_AGO, turns: int = 3) -> list[dict[str, Any]]:
    return [
        record
        for turn in range(turns)
        for record in exchange(f"{topic}, question {turn}?", "So.", at=at + turn)
    ]


def test_with_upkeep_minutes_it_also_starts_while_a_session_works(person: Person) -> None:
    person.session(*talk("roses"))
    person.run()
    person.start()
    person.wait_for_runs(1)
    lock = person.state_dir / "upkeep.lock"
    os.utime(lock, (time.time() - 200, time.time() - 200))
    person.config("upkeep_minutes: 3\n")
    person.run()
    person.wait_for_runs(2)
    person.run()
    assert len(person.runs()) == 2


def test_what_was_said_is_in_the_store_after_a_session_has_started(person: Person) -> None:
    person.session(*talk("roses"))
    person.start()
    run = person.wait_for_runs(1)
    assert "roses, question 0?" in person.store.stored()
    assert (run["files"], run["memories"] > 0, run["is_cut_short"], run["problem"]) == (
        1,
        True,
        False,
        "",
    )
    assert person.log() == []


def test_what_was_said_last_is_in_the_store_after_a_session_has_ended(person: Person) -> None:
    path = person.project_dir / f"{person.session_id}.jsonl"
    append(path, *exchange("plant a tree", "Planted.", at=time.time()))
    person.end()
    run = person.wait_for_runs(1)
    assert person.store.stored() == ["plant a tree", "Planted."]
    assert run["archived"] == 0  # the hook has archived it before
    assert len(list((person.place / "conversations").glob("*.md"))) == 1


def test_it_runs_at_most_every_ten_minutes_and_then_takes_in_what_it_left(person: Person) -> None:
    person.session(*talk("roses"))
    person.here()
    person.session(*talk("tulips"))
    person.start()
    person.here()
    assert len(person.runs()) == 1
    assert "tulips, question 0?" not in person.store.stored()
    person.let_time_pass()
    person.start()
    assert person.wait_for_runs(2)["files"] == 1
    assert "tulips, question 0?" in person.store.stored()


def test_of_several_that_start_at_once_one_does_it(person: Person) -> None:
    person.session(*talk("roses", turns=2000))
    processes = [person.upkeep() for _ in range(4)]
    assert [process.wait(WAIT_SECONDS) for process in processes] == [0, 0, 0, 0]
    assert person.wait_for_runs(1)["files"] == 1


def test_what_a_killed_run_left_the_next_one_does(person: Person) -> None:
    for number in range(12):
        person.session(*talk(f"flower {number}", turns=100))
    process = person.upkeep()
    wait_until(lambda: person.store.database.exists(), "store")
    process.kill()
    process.wait()
    person.let_time_pass()
    person.start()
    wait_until(lambda: len(person.runs()) == 1, "second run")
    first, second = json.loads((person.state_dir / "upkeep.json").read_text())["runs"]
    assert (first["problem"], second["problem"]) == (BROKEN_OFF, "")
    assert len(person.store.stored()) == 12 * 200


def test_what_killed_processes_left_beside_a_file_goes_after_an_hour_and_nothing_else_does(
    person: Person,
) -> None:
    memories, archives = person.place / "memories" / "episodes", person.place / "conversations"
    old = [
        memories / "2026-02-21.md.4711.tmp",
        archives / ".0b1c-trip.tmp",
        person.state_dir / "upkeep.json.12.tmp",
    ]
    kept = [
        memories / "2026-02-21.md",
        memories / "mine.tmp",
        memories / "2026-02-22.md.4712.tmp",
        archives / "a.tmp",
    ]
    for path in (*old, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (TWO_HOURS_AGO, TWO_HOURS_AGO))
    kept[2].touch()
    linked = person.root / "elsewhere"
    linked.mkdir()
    (memories / "linked").symlink_to(linked)
    (memories / "linked.md.1.tmp").symlink_to(kept[0])
    (linked / "page.md.1.tmp").write_text("x")
    os.utime(linked / "page.md.1.tmp", (TWO_HOURS_AGO, TWO_HOURS_AGO))
    person.here()
    assert [path.name for path in old if path.exists()] == []
    assert [path.name for path in (*kept, linked / "page.md.1.tmp") if not path.exists()] == []
    assert (memories / "linked.md.1.tmp").is_symlink()


def test_cursors_that_nothing_has_changed_for_90_days_go(person: Person) -> None:
    cursors = person.state_dir / "cursors"
    cursors.mkdir(parents=True, exist_ok=True)
    day = 86_400
    ages = {
        "a.json": 91,
        "a.collisions": 91,
        "a.standstill": 91,
        "a.json.lock": 91,
        "b.json": 89,
        "b.touched": 1,
    }
    for name, days in ages.items():
        (cursors / name).write_text("{}")
        os.utime(cursors / name, (time.time() - days * day,) * 2)
    person.here()
    assert sorted(path.name for path in cursors.iterdir()) == ["b.json", "b.touched"]


def test_it_ends_when_its_minute_is_over_and_the_next_one_goes_on(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.session(*talk("roses"))
    monkeypatch.setattr("session_memory.app.upkeep.runner.CPU_SECONDS", 0.0)
    assert (person.here()["is_cut_short"], person.store.stored()) == (True, [])
    monkeypatch.setattr("session_memory.app.upkeep.runner.CPU_SECONDS", 1e9)
    person.let_time_pass()
    assert person.here()["is_cut_short"] is False
    assert "roses, question 0?" in person.store.stored()


@pytest.mark.parametrize("mode", ["watch", "off"])
def test_where_the_settings_say_so_no_session_starts_it(person: Person, mode: str) -> None:
    person.config(f"upkeep: {mode}\n")
    person.session(*talk("roses"))
    person.start()
    person.end()
    assert sorted(path.name for path in person.state_dir.iterdir()) == ["settings.json"]


def test_it_is_never_started_from_what_it_starts_itself(person: Person) -> None:
    event = person.event(hook_event_name="SessionStart", source="startup")
    assert run_hook(event, person.root, "session_start", SESSION_MEMORY_GUARD="1") == b""
    assert not person.state_dir.exists()


def test_without_apsw_it_says_so_once_and_begins_as_soon_as_it_is_there(person: Person) -> None:
    person.session(*talk("roses"))
    for _ in range(2):
        assert person.upkeep("-I", "-S").wait(WAIT_SECONDS) == 0
    assert [line.partition(" ")[2] for line in person.log()] == [
        "upkeep: apsw is not installed, so there is no store yet"
    ]
    person.start()
    assert person.wait_for_runs(2)["problem"] == ""


def test_on_a_full_disk_it_ends_quietly_and_harms_nothing(person: Person) -> None:
    person.session(*talk("roses"))
    process = person.upkeep(preexec_fn=no_room, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.communicate(timeout=WAIT_SECONDS) == (b"", b"")
    assert process.returncode == 0
    (person.state_dir / "upkeep.lock").unlink()
    person.start()
    assert person.wait_for_runs(1)["problem"] == ""
    assert "roses, question 0?" in person.store.stored()


def no_room() -> None:
    from resource import RLIMIT_FSIZE, setrlimit

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    setrlimit(RLIMIT_FSIZE, (0, 0))


@pytest.mark.skipif(
    subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0,
    reason="no mounts of its own may be made here",
)
def test_in_a_home_that_is_read_only_it_ends_quietly(person: Person) -> None:
    person.session(*talk("roses"))
    command = f'mount --bind -o ro {person.root} {person.root} && exec "$@"'
    event = person.event(hook_event_name="SessionStart", source="startup")
    done = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            command,
            "sh",
            sys.executable,
            "-I",
            ROOT / "hooks/upkeep.py",
            person.place,
        ],
        input=json.dumps(event).encode(),
        env={"HOME": str(person.root), "PATH": os.environ["PATH"]},
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (person.place / "store").exists()


class TestArchives:
    """Of sessions that ended without a hook."""

    def archives(self, person: Person) -> list[str]:
        return sorted(path.name for path in (person.place / "conversations").glob("*.md"))

    def test_a_session_that_was_killed_is_archived_once_it_is_over(self, person: Person) -> None:
        person.session(*talk("roses"))
        person.session(*talk("tulips", at=time.time()))
        assert person.here()["archived"] == 1
        [name] = self.archives(person)
        assert name.endswith("-roses-question-0.md")

    def test_what_is_archived_is_not_archived_again_unless_it_went_on(self, person: Person) -> None:
        path = person.session(*talk("roses"))
        person.here()
        person.let_time_pass()
        assert person.here()["archived"] == 0
        append(path, *talk("more roses", at=TWO_HOURS_AGO + 60))
        person.let_time_pass()
        assert person.here()["archived"] == 1
        [name] = self.archives(person)
        assert "more roses" in (person.place / "conversations" / name).read_text()

    def test_what_was_over_long_before_it_was_installed_is_archived_too(
        self, person: Person
    ) -> None:
        person.session(*talk("roses", at=LAST_WEEK))
        assert person.here()["archived"] == 1
        assert "roses, question 0?" in person.store.stored()

    def test_what_was_forgotten_or_is_an_agents_is_none_of_a_persons_archives(
        self, person: Person
    ) -> None:
        home = NamedHome(person.root / "agent", person=person.root)
        person.session(*[{**record, "cwd": str(home.root)} for record in talk("roses")])
        assert person.here()["archived"] == 0


def test_an_agent_home_has_its_own(tmp_path: Path) -> None:
    person = Person(tmp_path)
    home = NamedHome(tmp_path / "agent", person=tmp_path)
    home.session("main", *talk("roses"))
    event = person.event(hook_event_name="SessionStart", source="startup", cwd=str(home.root))
    assert run_hook(event, person.root, "session_start", CLAUDE_PROJECT_DIR=str(home.root)) == b""
    wait_until((home.root / ".session-memory/state/upkeep.json").exists, "run of the agent's")
    wait_until((home.root / ".session-memory/store/memory.db").exists, "store of the agent's")
    assert not (person.place / "store").exists()


@pytest.mark.parametrize("elsewhere", ["CLAUDE_CONFIG_DIR", "SESSION_MEMORY_DIR"])
def test_it_fills_the_store_of_whoever_has_their_directories_elsewhere(
    tmp_path: Path, elsewhere: str
) -> None:
    person = Person(tmp_path)
    config_dir = tmp_path / "conf" if elsewhere == "CLAUDE_CONFIG_DIR" else person.config_dir
    path = config_dir / "projects/-srv-agent" / f"{person.session_id}.jsonl"
    write(path, *talk("roses"))
    event = person.event(
        hook_event_name="SessionStart", source="startup", transcript_path=str(path)
    )
    assert (
        run_hook(event, person.root, "session_start", **{elsewhere: str(tmp_path / "conf")}) == b""
    )
    place = person.place / "homes" if elsewhere == "CLAUDE_CONFIG_DIR" else tmp_path / "conf"
    wait_until(
        lambda: any("roses" in path.read_text() for path in place.rglob("conversations/*.md")),
        "archive",
    )
    assert len(list(place.rglob("store/memory.db"))) == 1


def test_pi_starts_it_too(person: Person) -> None:
    # so that no other is made
    (person.root / ".local/share/session-memory/env").mkdir(parents=True)
    session = PiSession(at=TWO_HOURS_AGO)
    session.exchange("plant a tree", "Planted.", at=TWO_HOURS_AGO)
    folder = person.root / ".pi/agent/sessions/--srv-agent--"
    folder.mkdir(parents=True)
    path = folder / f"2026-02-01T09-30-00-000Z_{session.id}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in session.records))
    event = {
        "hook_event_name": "session_start",
        "runtime": "pi",
        "session_id": session.id,
        "transcript_path": str(path),
        "session_dir": str(folder),
        "cwd": "/srv/agent",
        "reason": "startup",
    }
    assert run_hook(event, person.root, "pi_session_start") == b""
    person.wait_for_runs(1)
    assert person.store.stored() == ["plant a tree", "Planted."]
