"""A prompt writes only the mirrors that it reads, and tells the same as one that writes them all."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hooks_scene import open_locks
from opencode_scene import tool
from records import atif_exchange, gemini_exchange, show_told
from runtimes_scene import Person, text_in

from session_memory.awareness.events import prompt
from session_memory.awareness.events.context import context_of, home_of
from session_memory.common.system import files
from session_memory.common.system.deadline import DeadlineError
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts import mirror
from session_memory.sessions.transcripts.lines import first_line
from session_memory.sessions.transcripts.reader import TranscriptReader

NAMES = ("opencode", "gemini", "atif")
SOURCES = (".local", ".gemini", ".atif")
SECRET = "ghp_" + "a1B2" * 9
LONG = f"the token is {SECRET}, " + "and all is well. " * 40
READERS = {
    "_concerned._opened",
    "_named_edits._opened",
    "_new_entries.may_have_news",
    "changes.take",
}
OWN = "11111111-1111-4111-8111-111111111111"
CHATS = [f"22222222-{number}222-4222-8222-222222222222" for number in range(1, 6)]


class Desk:
    """A person with many sessions, and a second home in which each prompt writes all mirrors."""

    def __init__(self, root: Path) -> None:
        self.person = Person(root / "one")
        self.other = root / "two"
        self.person.ids["claude"] = OWN
        self.now = time.time()
        self.began = self.now - 3600
        self.steps: dict[str, list[dict[str, Any]]] = {"run-1": [], "run-2": []}
        self.readers: set[str] = set()  # of files that are not finished
        self.sessions = [
            self.person.opencode.session(self.person.app, title=f"Task {number}", at=self.began)
            for number in range(8)
        ]
        self.person.read_in_claude()
        shutil.copytree(self.person.root / ".claude", self.other / ".claude")

    def everyone_says(self, words: str, minutes: int) -> None:
        """Add a turn to each session, some minutes after the beginning."""
        at = self.began + 60 * minutes
        for number, session in enumerate(self.sessions):
            listed = tool("bash", {"command": f"cat {number}.txt"}, LONG, at=at + number)
            turn = self.person.opencode.turn
            turn(session, f"{words} {number}", f"{words}: done", listed, at=at + number)
        for number, chat in enumerate(CHATS):
            said = gemini_exchange(f"{words} chat {number}", LONG, at=at + number + 10)
            self.touch(self.person.gemini_chat(self.person.app, chat, *said), at + number + 10)
        for number, (name, steps) in enumerate(self.steps.items()):
            steps += atif_exchange(f"{words} in {name}", LONG, at=at + number + 20)
            path = self.person.trajectory(self.person.app, *steps, name=name)
            self.touch(path, at + number + 20)

    def edits(self, session: str, name: str, minutes: int) -> None:
        """Have a session of OpenCode edit a file."""
        at = self.began + 60 * minutes
        given = {"filePath": str(self.person.app / name), "oldString": "1", "newString": "3"}
        (self.person.app / name).write_text("3\n")
        self.touch(self.person.app / name, at)
        self.person.opencode.turn(session, "edit it", "ok", tool("edit", given, at=at), at=at)

    def touch(self, path: Path, at: float) -> None:
        os.utime(path, (at, at))

    def told(self, words: str, *, part: float = 1.0) -> str:
        """Return what a prompt tells; it is the same in both homes, and no secret is stored.

        Only a `part` of the unwritten copies is written, as if the process was killed then."""
        for name in SOURCES:
            shutil.rmtree(self.other / name, ignore_errors=True)
            shutil.copytree(self.person.root / name, self.other / name)
        lazy, eager = [
            self.prompt(home, words, is_lazy=home == self.person.root, part=part)
            for home in (self.person.root, self.other)
        ]
        assert lazy == eager
        assert SECRET not in lazy
        stored = (self.person.root / ".session-memory").rglob("*")
        assert not [path for path in stored if path.is_file() and SECRET in path.read_text()]
        return lazy

    def all_told(self, words: str) -> list[str]:
        """Prompt until nothing more is told."""
        texts = []
        for _ in range(20):
            texts.append(self.told(words))
            if not texts[-1]:
                return texts
        raise AssertionError(texts[-2:])

    def upkeep(self) -> None:
        for home in (self.person.root, self.other):
            files.os.environ[b"HOME"] = os.fsencode(home)
            for one in map(runtime, NAMES):
                one.refresh(one.config_dir({"HOME": str(home)}), everything=True)

    def left_by_a_prompt(self) -> list[Any]:
        """Return what a prompt leaves unwritten that reads no mirror."""
        files.os.environ[b"HOME"] = os.fsencode(self.person.root)
        for one in map(runtime, NAMES):
            one.look(one.config_dir({"HOME": str(self.person.root)}))
        left = [file for file in files.UNFINISHED.values() if not file.is_finished]
        files.UNFINISHED.clear()
        return left

    def prompt(self, home: Path, words: str, *, is_lazy: bool, part: float = 1.0) -> str:
        files.os.environ[b"HOME"] = os.fsencode(home)
        environ = {"HOME": str(home), "CLAUDE_PROJECT_DIR": str(self.person.app)}
        folder = next((home / ".claude" / "projects").iterdir())
        event = {
            "session_id": OWN,
            "transcript_path": str(folder / f"{OWN}.jsonl"),
            "cwd": str(self.person.app),
            "hook_event_name": "UserPromptSubmit",
            "prompt": words,
        }
        claude = runtime("agent-sdk")
        context = context_of(event, environ, claude, home_of(event, environ, claude))
        context.writes_later = is_lazy
        locks = open_locks()
        printed: list[dict[str, Any]] = []
        with pytest.MonkeyPatch.context() as patch:
            for name in ("open", "stat"):
                patch.setattr(files.os, name, self.watched(getattr(files.os, name)))
            prompt.answer(context, printed.append)
        assert not context.deadline.failed
        assert open_locks() == locks
        if is_lazy:
            self.unwritten = [path for path in files.UNFINISHED if files.unfinished(path)]
        left = [*files.UNFINISHED.values()]
        files.UNFINISHED.clear()
        for file in left[: int(len(left) * part)]:
            file.finish()
        output = json.dumps(printed[0]).encode() if printed else b""
        show_told(Path(event["transcript_path"]), output)
        return text_in(output) if output else ""

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a system call that notes the callers that give it an unfinished file."""

        def watched_call(path: str, *rest: Any, **options: Any) -> Any:
            if files.unfinished(path):
                frame = sys._getframe(1)
                while frame.f_code.co_filename == files.__file__ and frame.f_back:
                    frame = frame.f_back
                self.readers.add(
                    f"{frame.f_globals['__name__'].rpartition('.')[2]}.{frame.f_code.co_name}"
                )
            return call(path, *rest, **options)

        return watched_call

    def said(self, home: Path) -> dict[str, list[str]]:
        """Return the messages and calls in each mirror of a home."""
        found = {}
        for name in NAMES:
            for path in (home / ".session-memory" / "state" / name).rglob("*.jsonl"):
                with files.Opened(str(path)) as descriptor:
                    reader = TranscriptReader(runtime(name), first_line(descriptor))
                    entries = [entry for entry in reader.conversation(descriptor) if entry]
                found[path.name] = [entry.text or entry.tools[0].argument for entry in entries]
        return found


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path / "one"))
    desk = Desk(tmp_path)
    monkeypatch.setattr(prompt, "time", SimpleNamespace(time=lambda: desk.now))
    desk.everyone_says("begin", 1)
    assert len(desk.all_told("hi")) > 1
    return desk


@pytest.mark.parametrize("part", [1.0, 0.5, 0.0])
def test_news_and_a_collision_are_told_as_if_all_mirrors_were_written(
    desk: Desk, part: float
) -> None:
    desk.edits(desk.sessions[0], "src/app.py", 53)
    desk.everyone_says("go further", 54)
    first = desk.told("go on", part=part)
    assert len(desk.unwritten) > 3
    assert "! src/app.py: edited" in first
    desk.edits(desk.sessions[3], "src/new.py", 56)
    texts = [desk.told("go on", part=part) for _ in range(3)]
    desk.upkeep()
    texts += desk.all_told("go on")
    assert "new.py" in "".join([first, *texts])
    assert desk.said(desk.person.root) == desk.said(desk.other)
    assert len([lines for lines in desk.said(desk.other).values() if lines]) == 15


@pytest.mark.parametrize("part", [1.0, 0.5, 0.0])
def test_what_is_taken_back_or_rewritten_is_told_as_if_all_mirrors_were_written(
    desk: Desk, part: float
) -> None:
    desk.everyone_says("go further", 40)
    desk.told("go on", part=part)
    opencode, (last, *_) = desk.person.opencode, desk.sessions
    taken_back = opencode.turn(last, "this is undone", "ok", at=desk.began + 2460)
    desk.told("go on", part=part)
    opencode.revert(last, taken_back)
    opencode.clean_up(last)
    chat = desk.person.gemini_chat(desk.person.app, CHATS[0])
    chat.write_bytes(b"".join(chat.read_bytes().splitlines(keepends=True)[:3]))
    desk.touch(chat, desk.began + 2500)
    del desk.steps["run-1"][2:]
    desk.everyone_says("once more", 45)
    texts = desk.all_told("go on")
    desk.upkeep()
    desk.everyone_says("the end", 50)
    texts += [desk.told("go on", part=part), *desk.all_told("go on")]
    assert "once more" in "".join(texts)
    assert "this is undone" not in "".join(desk.said(desk.person.root)[f"{last}.jsonl"])
    assert desk.said(desk.person.root) == desk.said(desk.other)


@pytest.mark.parametrize("part", [1.0, 0.5, 0.0])
def test_edits_of_a_file_that_a_prompt_names_are_found_in_unwritten_ends(
    desk: Desk, part: float
) -> None:
    desk.edits(desk.sessions[1], "src/settings.py", 20)
    desk.everyone_says("go further", 21)
    desk.told("go on", part=part)
    texts = [desk.told("is settings.py right?", part=part) for _ in range(2)]
    assert "settings.py" in "".join(texts)
    desk.edits(desk.sessions[2], "src/settings.py", 30)
    desk.everyone_says("once more", 31)
    assert "settings.py" in desk.told("is settings.py right?", part=part)


def test_a_session_that_another_process_writes_is_told_with_the_next_prompt(desk: Desk) -> None:
    desk.edits(desk.sessions[0], "src/app.py", 53)
    roots = [f"{desk.person.root}/.session-memory/state/{name}" for name in NAMES]
    with ExitStack() as locks:
        for root in roots:
            locks.enter_context(files.Closing(files.lock(f"{root}/.lock", 0)))
        assert desk.prompt(desk.person.root, "go on", is_lazy=True) == ""
    assert "! src/app.py: edited" in desk.prompt(desk.person.root, "go on", is_lazy=True)


def test_the_hook_leaves_no_mirror_unwritten(desk: Desk) -> None:
    desk.everyone_says("go further", 54)
    assert "go further" in desk.person.prompt_in_claude(desk.person.app)
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        said = desk.said(desk.person.root)
        if all(any("go further" in words for words in lines) for lines in said.values() if lines):
            return
        time.sleep(0.05)
    raise AssertionError(said)


def test_only_readers_that_know_about_unwritten_ends_read_unfinished_mirrors(desk: Desk) -> None:
    desk.edits(desk.sessions[1], "src/settings.py", 20)
    desk.everyone_says("go further", 54)
    desk.told("is settings.py right?", part=0.0)
    desk.edits(desk.sessions[3], "src/app.py", 56)
    desk.all_told("go on")
    assert desk.readers == READERS


def test_two_prompts_at_once_add_each_text_once(desk: Desk) -> None:
    desk.everyone_says("go further", 40)
    first = desk.left_by_a_prompt()
    desk.everyone_says("once more", 45)
    second = desk.left_by_a_prompt()
    desk.everyone_says("the end", 50)
    third = desk.left_by_a_prompt()
    assert min(map(len, (first, second, third))) > 10
    for file in [*second, *third, *first]:
        file.finish()
    desk.all_told("go on")
    desk.upkeep()
    assert desk.said(desk.person.root) == desk.said(desk.other)


def test_a_session_that_cannot_be_written_fails_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.everyone_says("go further", 40)
    odd, *others = desk.left_by_a_prompt()

    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(odd, "_write", fail)
    for file in [odd, *others]:
        file.finish()
    monkeypatch.undo()
    assert "go further" in str(desk.said(desk.person.root))
    desk.told("go on")
    desk.upkeep()
    assert desk.said(desk.person.root) == desk.said(desk.other)


def test_a_deadline_leaves_no_half_of_an_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.everyone_says("go further", 40)

    def late(*_: object) -> None:
        raise DeadlineError

    with monkeypatch.context() as patch, suppress(DeadlineError):
        patch.setattr(mirror.Mirror, "encoded", late)
        desk.left_by_a_prompt()
    assert not files.UNFINISHED
    assert desk.left_by_a_prompt()


def test_a_prompt_that_finds_no_text_leaves_nothing_unwritten(desk: Desk) -> None:
    assert not desk.left_by_a_prompt()
    for name in SOURCES:
        for path in [desk.person.root / name, *(desk.person.root / name).rglob("*")]:
            desk.touch(path, desk.now - 60)
    assert not desk.left_by_a_prompt()
    roots = [f"{desk.person.root}/.session-memory/state/{name}" for name in NAMES]
    assert [root for root in roots if mirror.has_changed(root)] == []
