"""Messages before many screenshots and outputs are reported nevertheless.

Large parts are skipped, and the next prompt reads what one prompt cannot.
"""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import time
from pathlib import Path
from random import Random

import pytest
from hooks_scene import run
from records import append, assistant, line, user
from share import some
from tool_call_scene import Project

from session_memory.awareness.activity._new_entries import Budget, read_changed
from session_memory.awareness.activity.changes import OwnSession, changed_sessions
from session_memory.common.system.deadline import Deadline
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts import lines
from session_memory.sessions.transcripts.entries import Session
from session_memory.sessions.transcripts.read_cursor import ReadCursors

MEGABYTE = 1024 * 1024
MEMORY_BYTES = 256 * MEGABYTE  # of addresses, for an interpreter with all that it loads
CLAUDE = runtime("agent-sdk")


def output(content: object) -> bytes:
    return line(user([{"tool_use_id": "t", "type": "tool_result", "content": content}]))


@functools.cache
def screenshot_and_output(size: int) -> bytes:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR/x0" * (size // 8)},
    }
    return output([image]) + output("12 passed\n" * (size // 11))


def bury(path: Path, megabytes: int, size: int = MEGABYTE) -> None:
    """Appends screenshots and what commands printed, in turn."""
    both = screenshot_and_output(size)
    with path.open("ab") as file:
        for _ in range(0, megabytes * MEGABYTE, len(both)):
            file.write(both)


def in_little_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


class TestBuried:
    """An edit and 64 MB behind it."""

    @pytest.fixture(
        params=[MEGABYTE, 31 * MEGABYTE], ids=["in pieces of 1 MB", "in pieces of 31 MB"]
    )
    def project(self, tmp_path: Path, request: pytest.FixtureRequest) -> Project:
        project = Project(tmp_path)
        then = time.time() - 60
        append(project.other, user("rename the port", at=then, cwd=project.cwd))
        project.edited()
        bury(project.other, 62, request.param)
        return project

    def test_a_prompt_tells_of_it(self, project):
        told = run(
            project.user.event(cwd=project.cwd),
            project.user.root,
            "user_prompt_submit",
            in_little_memory,
        )
        assert b"rename the port" in told
        assert b"edited app" in told
        assert project.user.log() == []

    def test_it_is_told_before_the_file_is_edited(self, project):
        told, until = "", time.monotonic() + 400
        # on a busy machine most calls reach their deadline
        while not told and time.monotonic() < until:
            told = project.told()
        assert told == '! app: edited just now by "discord", before you edited it'

    def test_a_command_that_takes_it_along_is_held_back(self, project):
        project.user.config("collisions: ask\n")
        log = project.directory / ".git" / "logs" / "HEAD"
        # git's times are whole seconds
        log.write_text(re.sub(r"> \d+ ", "> 1700000000 ", log.read_text()))
        command = {"tool_name": "Bash", "tool_input": {"command": "git commit -am done"}}
        reason, calls = "", 0
        while "could not be checked in time" in reason or not calls:  # on a busy machine
            calls += 1
            event = project.user.event(
                hook_event_name="PreToolUse", cwd=project.cwd, tool_use_id=f"t{calls}", **command
            )
            answer = run(event, project.user.root, "pre_tool_use", CLAUDE_CODE_ENTRYPOINT="cli")
            reason = json.loads(answer)["hookSpecificOutput"]["permissionDecisionReason"]
            assert calls < 200, reason
        assert "app, edited " in reason


@pytest.mark.parametrize("seed", range(some(40, 10)))
def test_however_little_is_read_at_once_all_is_read_once(tmp_path, monkeypatch, seed):
    random = Random(seed)
    for name in ("FIRST_WINDOW_BYTES", "LARGEST_WINDOW_BYTES", "BLOCK_BYTES"):
        monkeypatch.setattr(lines, name, random.randrange(600, 3000))
    monkeypatch.setattr(lines, "LONG_LINE_BYTES", random.randrange(5000, 12_000))
    sessions = [Session(name, str(tmp_path / f"{name}.jsonl")) for name in "abc"]
    for session in sessions:
        Path(session.path).write_bytes(line(user("begin")))
    cursors = read_all(sessions, ReadCursors(), Budget())[0]
    written: list[str] = []
    told: list[str] = []
    for _ in range(12):
        for _ in range(random.randrange(9)):
            added = f"{len(written)} " + "y" * random.choice((1, 500, 9000))
            written.append(added)
            with open(random.choice(sessions).path, "ab") as file:
                file.write(output("x" * random.choice((1, 900, 20_000))) + line(assistant(added)))
        cursors, found = read_all(
            sessions, cursors, Budget(random.randrange(1, 9000), random.randrange(1, 30_000))
        )
        told += found
    for _ in range(200):
        cursors, found = read_all(sessions, cursors, Budget(5000, 20_000))
        told += found
    assert sorted(told) == sorted(written)
    assert not any(cursor.unread for _, cursor in cursors.items())


def test_long_sessions_that_are_seen_first_leave_the_last_dialogue_of_each_other_to_be_read(
    tmp_path,
):
    long, other = Path(tmp_path / "long.jsonl"), Path(tmp_path / "other.jsonl")
    append(long, user("begin"))
    bury(long, 2, MEGABYTE // 2)
    other.write_bytes(
        b"".join([line(user(f"{number}")) + line(assistant("x" * 1000)) for number in range(2000)])
    )
    sessions = [Session(path.stem, str(path)) for path in (long, other)]
    os.utime(other, (1e9, 1e9))
    deadline = Deadline()
    changed = changed_sessions(sessions, ReadCursors(), 0.0, reading(deadline))
    read, _ = read_changed(reading(deadline), changed, ReadCursors(), time.time(), 0.0, 6)
    assert [one.session.key for one in read] == ["long", "other"]
    assert read[1].bytes_read <= lines.FIRST_WINDOW_BYTES


def reading(deadline):
    """The session that reads the others."""
    return OwnSession("own", CLAUDE, "", deadline=deadline)


def read_all(sessions, cursors, budget):
    """Return the cursors after new content of the sessions, and its texts, within the budget."""
    cursors, now = ReadCursors.load(json.loads(json.dumps(cursors.dump()))), time.time()
    deadline = Deadline()
    changed = changed_sessions(sessions, cursors, 0.0, reading(deadline))
    read, _ = read_changed(reading(deadline), changed, cursors, now, 0.0, 99, budget)
    assert deadline.notes == []
    texts = [entry.text for unseen in read for entry in unseen.entries]
    behind = ReadCursors({unseen.session.key: unseen.cursor for unseen in read})
    return cursors.merged(behind), texts


def test_a_line_that_does_not_matter_takes_no_memory_however_long(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(line(user("before")) + output("x" * (80 * MEGABYTE)) + line(user("behind")))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    deadline = Deadline()
    changed = changed_sessions([Session("a", str(path))], ReadCursors(), 0.0, reading(deadline))
    (unseen,), _ = read_changed(
        reading(deadline), changed, ReadCursors(), time.time(), 0.0, 9, Budget(read=1 << 30)
    )
    assert [entry.text for entry in unseen.entries] == ["before", "behind"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60 * 1024
    assert os.stat(path).st_size > 80 * MEGABYTE
