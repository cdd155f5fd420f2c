"""Nothing grows without limit, apart from store, archives and memories, with many short sessions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from fork_server import Started
from hooks_scene import PlainUser
from own_process import plain_environment
from records import assistant, exchange, gemini_exchange, lines, new_id, user, write
from share import some
from store_scene import Scene, put, said, state

from session_memory.app.upkeep._runs import KEPT_RUNS, RunLog, UpkeepRun
from session_memory.app.upkeep.run import Run
from session_memory.app.upkeep.state_files import CURSOR_SECONDS, remove_leftovers
from session_memory.common.system.files import lock
from session_memory.history.store.location import find_location
from session_memory.sessions.settings.homes import person_home

CONTENT = ("store", "conversations", "memories")
FILES, KILOBYTES = 20, 300  # in the end, however many sessions there were
FEW = 4
OF_A_SESSION = 4, 12  # files and KiB, while it may continue
WAL_KILOBYTES = 8 * 1024


def left(home: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(home / ".session-memory"):
        folders[:] = [name for name in folders if name not in CONTENT]
        yield from (Path(folder, name) for name in names)


def test_short_sessions_leave_nothing_for_good(tmp_path: Path) -> None:
    person = PlainUser(tmp_path)
    person.config("upkeep: false\n")
    count = some(80, 12)
    for number in range(count):
        work = tmp_path / "work" / f"task-{number}"
        work.mkdir(parents=True)
        person.session_id = new_id()
        project = "-" + str(work)[1:].replace("/", "-")
        path = person.config_dir / "projects" / project / f"{person.session_id}.jsonl"
        write(path, user(f"task {number}", cwd=str(work)), assistant("Done."))
        event = {"cwd": str(work), "transcript_path": str(path)}
        person.run("session_start", hook_event_name="SessionStart", source="startup", **event)
        person.run(**event)
        person.run(hook_event_name=f"Odd{number}" * 100_000, **event)
        person.run("session_end", hook_event_name="SessionEnd", **event)
    files = list(left(tmp_path))
    each, kilobytes = OF_A_SESSION
    assert len(files) <= count * each + FILES
    assert sum(path.stat().st_size for path in files) <= 1024 * (count * kilobytes + KILOBYTES)
    then = time.time() - CURSOR_SECONDS - 3600
    for path in files:
        os.utime(path, (then, then))
    environ = plain_environment(tmp_path)
    remove_leftovers(Run(find_location(None, environ), print))
    files = list(left(tmp_path))
    assert len(files) <= FILES, sorted(str(path) for path in files)[:50]
    assert sum(path.stat().st_size for path in files) <= 1024 * KILOBYTES
    assert person.run(**event) is not None


def test_a_lock_file_goes_unless_it_is_held_or_its_state_is_there(tmp_path: Path) -> None:
    cursors = tmp_path / ".session-memory" / "state" / "cursors"
    cursors.mkdir(parents=True)
    held = lock(str(cursors / "held.json.lock"), 0)
    for name in ("old.json.lock", "here.json.lock", "new.json.lock", "here.json"):
        (cursors / name).write_text("")
    then = time.time() - CURSOR_SECONDS - 3600
    for name in ("held.json.lock", "old.json.lock", "here.json.lock"):
        os.utime(cursors / name, (then, then))
    environ = plain_environment(tmp_path)
    remove_leftovers(Run(find_location(None, environ), print))
    assert sorted(path.name for path in cursors.iterdir()) == [
        "held.json.lock",
        "here.json",
        "here.json.lock",
        "new.json.lock",
    ]
    os.close(held)


def test_the_log_of_many_small_pushes_stays_small(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    known = None
    with closing(scene.store):
        for push in range(some(400, 150)):
            entries = [
                said(f"entry {push} {number} " + "word " * 50, push * 30 + number)
                for number in range(20)
            ]
            known = put(scene, known, known or state(), *entries)
            sizes = [
                path.stat().st_size
                for path in scene.database.parent.iterdir()
                if path.name.endswith("-wal")
            ]
            assert max(sizes) <= 1024 * WAL_KILOBYTES, (push, sizes)


def test_missed_deadlines_of_many_sessions_are_counted_for_the_latest(tmp_path: Path) -> None:
    from session_memory.awareness.events.log import MOST_SESSIONS, _missed_file, note_deadline

    home = person_home(plain_environment(tmp_path))
    for number in range(200):
        note_deadline(home, f"s{number}", "UserPromptSubmit", ["all of it"])
    missed = json.loads(Path(_missed_file(home)).read_text())
    assert list(missed) == [f"s{number}" for number in range(200 - MOST_SESSIONS, 200)]


def test_the_log_of_runs_has_the_last_ones(tmp_path: Path) -> None:
    log = RunLog(person_home(plain_environment(tmp_path)))
    log.runs = [UpkeepRun(float(began)) for began in range(3 * KEPT_RUNS)]
    log.save()
    again = RunLog(person_home(plain_environment(tmp_path)))
    assert [run.began for run in again.runs] == [*map(float, range(2 * KEPT_RUNS, 3 * KEPT_RUNS))]


def test_two_years_of_use_leave_what_a_quarter_leaves(tmp_path: Path) -> None:
    """Each fortnight there are two sessions, Claude Code's and Gemini's; both runtimes delete
    theirs after a month."""
    person = PlainUser(tmp_path)
    chats = tmp_path / ".gemini" / "tmp" / "site" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/srv/agent")
    environ, place = plain_environment(tmp_path), tmp_path / ".session-memory"
    person.config("upkeep: false\n")
    found: list[dict[str, int]] = []
    for number in range(fortnights := some(52, 11)):
        person.session_id = new_id()
        path = person.project_dir / f"{person.session_id}.jsonl"
        write(path, *exchange(f"Roses {number}?", "Yes."))
        chat = new_id()
        header = {"sessionId": chat, "projectHash": "0" * 64, "kind": "main"}
        (chats / f"session-2026-11-20T10-00-{number:08}.jsonl").write_bytes(
            lines(header, *gemini_exchange(f"Tulips {number}?", "No."))
        )
        person.run()
        (place / "state" / "upkeep.lock").unlink(missing_ok=True)
        assert Started([str(place)], environ, tmp_path, module="app.upkeep.runner").wait(60) == 0
        _pass_a_fortnight(tmp_path, [person.project_dir, chats])
        found.append(
            {path.relative_to(place).as_posix(): path.stat().st_size for path in left(tmp_path)}
        )
    a_quarter, last = found[8], found[-1]
    assert len(last) <= len(a_quarter) + FEW
    assert sum(last.values()) <= sum(a_quarter.values()) * 1.25
    runs = json.loads((place / "state" / "upkeep.json").read_text())["runs"]
    assert (len(runs), {run["problem"] for run in runs}) == (min(KEPT_RUNS, fortnights), {""})
    assert person.log() == []


def _pass_a_fortnight(root: Path, of_runtimes: list[Path]) -> None:
    """Make all files a fortnight older, and delete those of the runtimes that are older than a month."""
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            modified = path.stat().st_mtime - 14 * 86_400
            os.utime(path, (modified, modified))
            if path.parent in of_runtimes and modified < time.time() - 30 * 86_400:
                path.unlink()
