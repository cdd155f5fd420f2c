"""`session-memory watch` as a process: new content is soon in the store."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
import time

import pytest
from records import append, exchange, user, write
from store_scene import MONDAY, WAIT_SECONDS, StoreUser

from session_memory.app.upkeep.watch import Watcher
from session_memory.history.store.ingest.sources import SourceDirectory
from session_memory.history.store.location import StoreLocation
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.settings.sections import StoreSettings

NEVER = "memory: {pollIntervalMs: 3600000}\n"  # so that nothing but the watcher can have seen it
OFTEN = "memory: {pollIntervalMs: 200}\n"


@pytest.fixture
def machine(tmp_path):
    machine = StoreUser(tmp_path)
    machine.config(NEVER)
    machine.session("one", *exchange("hello", "hi", at=MONDAY))
    return machine


def begun(machine, watcher):
    """Waits until it has taken in what was there before."""
    watcher.wait_for(
        lambda: "watching " in watcher.said and machine.stored() != [], "to have begun"
    )


class TestWhileItRuns:
    def test_what_is_appended_new_replaced_or_deleted_is_taken_in_as_it_happens(self, machine):
        machine.config(
            f"memory: {{watchPath: [{machine.projects}, {machine.home}/later], pollIntervalMs: 3600000}}\n"
        )
        path = machine.projects / "-srv-agent" / "one.jsonl"
        with machine.watching() as watcher:
            begun(machine, watcher)
            assert [
                talk["status"] for talk in machine.result("conversations")["conversations"]
            ] == ["skipped"]
            append(path, *exchange("more", "and more", at=MONDAY + 9))
            watcher.wait_for(
                lambda: machine.stored() == ["hello", "hi", "more", "and more"],
                "the appended entries",
            )
            machine.session("two", user("elsewhere"), project="-srv-new")
            watcher.wait_for(
                lambda: "elsewhere" in machine.stored(), "the new file in a new folder"
            )
            write(machine.home / "later" / "-srv-agent" / "three.jsonl", user("in time"))
            watcher.wait_for(
                lambda: "in time" in machine.stored(), "the file in a directory that appeared later"
            )
            temporary = write(
                path.with_suffix(".tmp"), *exchange("replaced", "yes", at=MONDAY + 19)
            )
            os.replace(temporary, path)
            watcher.wait_for(lambda: "replaced" in machine.stored(), "the replaced file")
            every = ["and more", "elsewhere", "hello", "hi", "in time", "more", "replaced", "yes"]
            assert sorted(machine.stored()) == every
            path.unlink()
            watcher.wait_for(lambda: "gone" in machine.statuses(), "the file to be marked")
            assert sorted(machine.stored()) == every

    def test_a_directory_that_takes_the_place_of_a_watched_one_is_watched(self, machine):
        with machine.watching() as watcher:
            begun(machine, watcher)
            machine.projects.rename(machine.projects.with_name("before"))
            machine.session("two", user("in the new directory"))
            watcher.wait_for(
                lambda: "in the new directory" in machine.stored(),
                "the first file of the new directory",
            )
            machine.session("three", user("in the new directory later"))
            watcher.wait_for(
                lambda: "in the new directory later" in machine.stored(), "the second file"
            )

    def test_a_poll_finds_what_no_event_tells_of_and_the_settings_of_now(self, machine):
        elsewhere = machine.home / "elsewhere"
        elsewhere.mkdir()
        # of what lies behind a link no event comes
        (machine.projects / "-linked").symlink_to(elsewhere)
        machine.config(OFTEN)
        with machine.watching() as watcher:
            begun(machine, watcher)
            write(elsewhere / "two.jsonl", user("unseen"))
            watcher.wait_for(lambda: "unseen" in machine.stored(), "the poll to find it")
            for path in machine.database.parent.glob("memory.db*"):
                path.unlink()
            watcher.wait_for(
                lambda: sorted(machine.stored()) == ["hello", "hi", "unseen"],
                "the store to be made again",
            )
            machine.config("memory: {watchPath: 7}\n")
            watcher.wait_for(lambda: "watch_path is 7" in watcher.said, "the problem")
            append(
                machine.projects / "-srv-agent" / "one.jsonl", user("still watched", at=MONDAY + 9)
            )
            watcher.wait_for(lambda: "still watched" in machine.stored(), "the entry")
            assert watcher.said.count("watch_path is 7") == 1
            machine.config("memory: {pollIntervalMs: 200, watchPath: ~/other}\n")
            write(machine.home / "other" / "-srv-agent" / "two.jsonl", user("in the other one"))
            watcher.wait_for(
                lambda: "in the other one" in machine.stored(), "the other directory's file"
            )


class TestItsEnd:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_ends_it_cleanly(self, machine, number):
        with machine.watching() as watcher:
            begun(machine, watcher)
            assert watcher.stop(number) == 0
            assert watcher.said.endswith("stopped\n")
            assert "Traceback" not in watcher.said

    def test_killed_again_and_again_while_a_file_grows_it_loses_and_doubles_nothing(self, machine):
        path = machine.projects / "-srv-agent" / "one.jsonl"
        said = ["hello", "hi"]
        for number in range(4):
            with machine.watching() as watcher:
                for part in range(20):
                    append(path, user(f"{number}.{part}", at=MONDAY + 10 * number))
                    said.append(f"{number}.{part}")
                if number < 3:
                    # not a wait for anything: a kill at another moment each time
                    time.sleep(0.3 * number)
                    watcher.stop(signal.SIGKILL)
                else:
                    watcher.wait_for(lambda: machine.stored() == said, "everything, once")

    def test_a_second_one_says_that_there_is_one_and_once_leaves_the_work_to_that(self, machine):
        with machine.watching() as watcher:
            begun(machine, watcher)
            second = machine.run("watch")
            assert second.returncode == 1
            assert f"process {watcher.process.pid} is already watching it" in second.stderr
            once = machine.run("watch", "--once")
            assert (once.returncode, "is already watching it" in once.stdout) == (0, True)
            assert machine.result("health-check")["watcher"] == watcher.process.pid
            watcher.stop()
        assert machine.result("health-check")["watcher"] is None


class TestOnce:
    def test_it_does_what_is_to_be_done_and_ends_and_is_silent_where_nothing_is_new(self, machine):
        done = machine.run("watch", "--once")
        assert (done.returncode, done.stderr) == (0, "")
        assert "1 file: 2 entries" in done.stdout
        assert machine.stored() == ["hello", "hi"]
        assert machine.run("watch", "--once").stdout == ""


def test_without_events_it_looks_now_and_then(machine, monkeypatch):
    machine.run("ingest")
    said: list[str] = []
    stop = threading.Event()

    def no_events(*_, **__):
        raise OSError(28, "no inotify watches left")

    monkeypatch.setattr("watchfiles.watch", no_events)
    watched = [SourceDirectory(str(machine.projects))]
    location = StoreLocation(
        str(machine.database),
        watched,
        [],
        None,
        StoreSettings(watch_path=[], poll_interval_ms=100),
        person_home(os.environ),
        os.environ,
    )
    watching = Watcher(lambda: location, stop, said.append, lambda report: None)

    def go_on_until_it_is_seen():
        append(machine.projects / "-srv-agent" / "one.jsonl", user("unseen", at=MONDAY + 9))
        deadline = time.monotonic() + WAIT_SECONDS
        while "unseen" not in machine.stored() and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()

    thread = threading.Thread(target=go_on_until_it_is_seen)
    thread.start()
    watching.run()
    thread.join()
    assert "unseen" in machine.stored()
    assert list(dict.fromkeys(said)) == [
        "changes cannot be watched ([Errno 28] no inotify watches left): looking every 0.1 s"
    ]


def test_a_locked_database_is_waited_out(machine):
    machine.config(OFTEN)
    machine.run("ingest")
    with machine.watching() as watcher:
        begun(machine, watcher)
        other = sqlite3.connect(machine.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        append(machine.projects / "-srv-agent" / "one.jsonl", user("waits", at=MONDAY + 9))
        time.sleep(0.5)  # not a wait for anything: so long it meets the lock
        other.execute("ROLLBACK")
        other.close()
        watcher.wait_for(lambda: "waits" in machine.stored(), "the entry")


def test_where_the_settings_leave_all_to_it_it_makes_memories_and_archives_too(machine):
    machine.config("upkeep: watch\n")
    now = time.time() - 2 * 3600
    machine.session(
        "two",
        *[record for turn in range(3) for record in exchange(f"Roses {turn}?", "Yes.", at=now)],
    )
    done = machine.run("watch", "--once")
    assert (done.returncode, "  2 archives, 1 memory\n" in done.stdout) == (0, True)
    place = machine.home / ".session-memory"
    archived = sorted(path.name[10:] for path in (place / "conversations").glob("*.md"))
    assert archived == ["-hello.md", "-roses-0.md"]
    assert "Roses 0?" in "".join(
        path.read_text() for path in (place / "memories/episodes").iterdir()
    )


def test_where_the_settings_leave_all_to_it_it_shares_with_the_team_too(machine):
    """All that upkeep does: a team that cannot be reached is noted as by upkeep."""
    machine.config(
        "upkeep: watch\nteam: {url: 'postgresql://ann@127.0.0.1:1/team', machine: laptop}\n"
    )
    assert machine.run("watch", "--once").returncode == 0
    assert "127.0.0.1" in (machine.home / ".session-memory/state/team.json").read_text()
    assert machine.result("doctor", "status")["runs"][-1]["problem"] == ""
