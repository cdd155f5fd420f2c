"""A prompt in a folder with many transcripts checks those that may have changed, and misses none.

Most of the scene's sessions are days old: five slices of old ones. So few count as many here,
because a scene with thousands would take ten times as long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from hooks_scene import ROOT, PlainUser, run, told
from records import append, assistant, exchange, new_id, user, write

from session_memory.common.system.files import Closing, lock
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts import old_sessions as lists_of_transcripts
from session_memory.sessions.transcripts.old_sessions import (
    REBUILT_SECONDS,
    FolderList,
    ListFile,
)
from session_memory.sessions.transcripts.projects import FolderLists

DAY = 86_400.0
MANY, SLICE = 100, 40
OLD = 170
ROUND = -(-OLD // SLICE)  # prompts that check every old transcript once
RUNTIME = runtime("agent-sdk")


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FolderLists, "MANY", MANY)
    monkeypatch.setattr(lists_of_transcripts, "SLICE", SLICE)


class Crowd:
    """A user with a session at hand in a project with many old and ten recent sessions."""

    def __init__(self, root: Path) -> None:
        self.user = PlainUser(root)
        self.user.config("upkeep: off\n")
        self.folder = self.user.project_dir
        records = exchange("an old question", "an old answer", at=time.time() - 9 * DAY)
        self.old = [write(self.folder / f"{new_id()}.jsonl", *records) for _ in range(OLD)]
        for number, path in enumerate(self.old):
            age(path, (4 + number / 10) * DAY)
        self.recent = [self.user.session(*exchange("lately", "yes")) for _ in range(10)]
        for path in self.recent:
            age(path, DAY)
        self.own = write(self.folder / f"{self.user.session_id}.jsonl", user("go on"))
        age(self.folder, 60)
        while self.user.run():
            pass
        age(self.folder, 60)
        assert self.user.run() == b""

    @property
    def list_file(self) -> Path:
        (path,) = (self.user.state_dir / "folders").glob("*.list")
        return path

    def checked(self) -> FolderList:
        return FolderList(str(self.folder), str(self.list_file), time.time())

    def skip_to(self, turn: int) -> None:
        """Let this slice of the old transcripts be the next one to be checked."""
        with self.list_file.open("r+b") as file:
            file.write(b"%08d" % turn)

    def hook(self, path: Path, script: str = "user_prompt_submit", **fields: object) -> bytes:
        """A hook of another session runs."""
        event = {"session_id": path.stem, "transcript_path": str(path), **fields}
        return bytes(run(self.user.event(**event), self.user.root, script))

    def told_within(self, prompts: int, text: str) -> int:
        """Prompt until an update has the text; return how many prompts that took."""
        for number in range(1, prompts + 1):
            printed = self.user.run()
            if printed and text in told(printed):
                return number
        raise AssertionError(f"{prompts} prompts were not told {text!r}")


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return Crowd(tmp_path)


def test_a_prompt_checks_the_recent_transcripts_and_a_slice_of_the_old_ones(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    from session_memory.common.system import files

    checked: list[str] = []
    real = files.os.stat

    def stat(path, *arguments, **options):  # type: ignore[no-untyped-def]
        checked.append(str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(files.os, "stat", stat)
    assert crowd.user.run() == b""
    transcripts = {path for path in checked if path.endswith(".jsonl")}
    assert transcripts >= {str(path) for path in crowd.recent}
    assert len(transcripts) <= SLICE + 12 < len(crowd.old)


def test_an_old_session_whose_hook_ran_is_told_at_the_next_prompt(crowd: Crowd) -> None:
    path = crowd.old[0]  # in the first slice
    crowd.hook(path, prompt="resumed")
    append(path, *exchange("mend the fence", "Mended."))
    crowd.skip_to(2)
    assert crowd.told_within(1, "mend the fence") == 1


def test_an_old_session_whose_hook_names_its_folder_by_another_path_is_told(crowd: Crowd) -> None:
    """The directory of the runtime is a link, for example, and a variable names its target."""
    path, place = crowd.old[0], crowd.user.root / ".claude"
    link = crowd.user.root / "link"
    link.symlink_to(place)
    crowd.hook(link / path.relative_to(place), prompt="resumed")
    append(path, *exchange("mend the fence", "Mended."))
    crowd.skip_to(2)
    assert crowd.told_within(1, "mend the fence") == 1


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        ("session_start", {"hook_event_name": "SessionStart", "source": "resume"}),
        ("user_prompt_submit", {"prompt": "<task-notification>\n</task-notification>"}),
        (
            "pre_tool_use",
            {
                "hook_event_name": "PreToolUse",
                "tool_name": "Edit",
                "tool_use_id": "toolu_1",
                "tool_input": {"file_path": "/srv/agent/a", "old_string": "1", "new_string": "2"},
            },
        ),
    ],
)
def test_every_hook_of_an_old_session_makes_it_known(
    crowd: Crowd, script: str, fields: dict[str, object]
) -> None:
    path = crowd.old[0]
    assert path.name not in crowd.checked().names
    crowd.hook(path, script, **fields)
    assert path.name in crowd.checked().names
    append(path, *exchange("mend the fence", "Mended."))
    crowd.skip_to(2)
    assert crowd.told_within(1, "mend the fence") == 1


def test_an_old_session_without_hooks_is_told_within_a_round_of_prompts(crowd: Crowd) -> None:
    append(crowd.old[0], *exchange("mend the fence", "Mended."))
    crowd.skip_to(1)
    assert crowd.told_within(ROUND, "mend the fence") == ROUND
    other = crowd.user.session_id
    crowd.user.session_id = new_id()  # known to all sessions from then on
    assert "mend the fence" in told(crowd.user.run())
    assert crowd.user.session_id != other


def test_a_new_session_is_told_at_once(crowd: Crowd) -> None:
    crowd.user.session(*exchange("paint the door", "Painted."))
    assert crowd.told_within(1, "paint the door") == 1
    age(crowd.folder, 30)
    assert crowd.user.run() == b""
    assert b"\n= " in Path(f"{crowd.list_file}.added").read_bytes()


@pytest.mark.parametrize("is_call", [False, True])
def test_an_old_session_that_edits_a_file_at_hand_collides(
    crowd: Crowd, tmp_path: Path, is_call: bool
) -> None:
    file = tmp_path / "app.py"
    file.write_text("1\n")
    mine = {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": str(file)}}
    done = {"tool_use_id": "toolu_1", "type": "tool_result"}
    before = time.time() - 1  # a file's time may be a tick of the clock too early
    append(crowd.own, assistant(mine, at=before), user([done], at=before))
    assert crowd.user.run() == b""
    path = crowd.old[0]
    crowd.hook(path, prompt="resumed")
    theirs = {**mine, "id": "toolu_2"}
    result = {"tool_use_id": "toolu_2", "type": "tool_result", "content": "Done."}
    append(path, user("change it"), assistant(theirs))
    file.write_text("2\n")
    append(path, user([result]))
    crowd.skip_to(2)
    edit = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_use_id": "toolu_3",
        "tool_input": {"file_path": str(file), "old_string": "1", "new_string": "2"},
    }
    if is_call:
        assert b"edited" in crowd.user.run("pre_tool_use", **edit)
    else:
        assert "! " in told(crowd.user.run())


def test_a_session_that_became_old_keeps_its_cursor(crowd: Crowd) -> None:
    path = crowd.recent[0]
    append(path, *exchange("mend the fence", "Mended."))
    assert crowd.told_within(1, "mend the fence") == 1
    age(path, 5 * DAY)
    crowd.list_file.unlink()
    assert crowd.user.run() == b""
    assert path.name not in crowd.checked().names
    crowd.hook(path, prompt="resumed")
    append(path, *exchange("and the gate", "Mended, too."))
    text = told(crowd.user.run())
    assert "and the gate" in text
    assert "mend the fence" not in text.replace('"mend the fence"', "", 1)  # which is its title
    assert crowd.user.run() == b""


def test_older_sessions_are_told_where_more_hours_are_wanted(crowd: Crowd) -> None:
    at = time.time() - 4 * DAY
    write(crowd.old[0], *exchange("mend the fence", "Mended.", at=at))
    age(crowd.old[0], 4 * DAY)
    crowd.list_file.unlink()
    crowd.user.run()
    assert crowd.old[0].name not in crowd.checked().names
    for path in crowd.recent:
        path.unlink()
    crowd.user.config(f"upkeep: off\nfirst_sight_hours: {5 * 24}\n")
    crowd.user.session_id = new_id()
    assert "mend the fence" in told(crowd.user.run())


@pytest.mark.parametrize("content", [b"", b"00000000\n{}\n", b"x" * 200_000, None])
def test_a_list_that_cannot_be_read_is_made_again(crowd: Crowd, content: bytes | None) -> None:
    whole = crowd.list_file.read_bytes()
    crowd.list_file.write_bytes(whole[:-1] if content is None else content)
    append(crowd.old[0], *exchange("mend the fence", "Mended."))
    assert crowd.told_within(1, "mend the fence") == 1
    assert crowd.old[0].name in crowd.checked().names
    assert crowd.user.log() == []


def test_what_is_forgotten_is_in_no_list(crowd: Crowd) -> None:
    session = crowd.old[0].stem
    assert session.encode() in crowd.list_file.read_bytes()
    code = "import sys; from session_memory.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["forget", session, "--yes"]
    environment = {"HOME": str(crowd.user.root), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code, *words]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdin=subprocess.DEVNULL)
    assert not list((crowd.user.state_dir / "folders").iterdir())


def test_a_small_folder_has_no_list(tmp_path: Path) -> None:
    plain = PlainUser(tmp_path)
    plain.session(*exchange("hello", "hi"))
    plain.run()
    assert not (plain.state_dir / "folders").exists()


class Lists:
    """The list of one folder, without hooks."""

    def __init__(self, root: Path, count: int) -> None:
        self.folder = root / "transcripts"
        self.folder.mkdir()
        self.now = time.time()
        for _ in range(count):
            self.add(20 * DAY)
        age(self.folder, 60)
        self.path = root / "state" / "list"
        assert self.file.make()

    @property
    def file(self) -> ListFile:
        lists = FolderLists(lambda folder: str(self.path), DAY, self.now)
        return ListFile(lists, str(self.folder))

    def add(self, seconds: float) -> Path:
        path = self.folder / f"{new_id()}.jsonl"
        path.write_bytes(b"x\n")
        age(path, seconds)
        return path

    def recent(self) -> set[str]:
        """What a prompt checks."""
        old = self.file.old_sessions(RUNTIME, "", is_own=True)
        assert old is not None
        return {session.path for session in old.recent()}


@pytest.mark.parametrize("seed", range(6))
def test_no_change_is_missed_for_longer_than_a_round(tmp_path: Path, seed: int) -> None:
    """Sessions begin, go on with or without hooks, and are deleted, in any order; the list is also
    made again in between."""
    random = Random(seed)
    kept = Lists(tmp_path, MANY + random.randrange(2 * SLICE))
    most_prompts = -(-(MANY + 2 * SLICE) // SLICE)
    waiting: dict[str, int] = {}  # the prompts in which a change may still be missed
    known: set[str] = set()
    for _ in range(60):
        kind = random.randrange(6)
        path = random.choice(sorted(kept.folder.glob("*.jsonl")))
        if kind == 0:
            known.add(str(kept.add(0)))
        elif kind in (1, 2):
            if kind == 1:
                kept.file.note_active(path.name)
                known.add(str(path))
            elif str(path) not in known:
                waiting.setdefault(str(path), most_prompts)
            with path.open("ab") as file:
                file.write(b"y\n")
        elif kind == 3:
            path.unlink()
            known.discard(str(path))
            waiting.pop(str(path), None)
        elif kind == 4 and random.random() < 0.3:
            age(kept.folder, 60)
            kept.now += REBUILT_SECONDS + 1
        checked = kept.recent()
        assert known <= checked
        waiting = {path: left - 1 for path, left in waiting.items() if path not in checked}
        assert all(left > 0 for left in waiting.values())


def test_a_name_that_a_hook_notes_survives_a_new_list(tmp_path: Path) -> None:
    kept = Lists(tmp_path, MANY)
    path = kept.add(20 * DAY)
    kept.file.note_active(path.name)
    kept.now += REBUILT_SECONDS + 1
    assert str(path) in kept.recent()
    assert not Path(f"{kept.path}.added").exists()
    kept.now += REBUILT_SECONDS + 1
    assert str(path) in kept.recent()
    kept.now += 3 * DAY
    assert str(path) not in kept.recent()


def test_a_hook_notes_its_session_while_another_process_makes_the_list(tmp_path: Path) -> None:
    kept = Lists(tmp_path, MANY)
    path = next(kept.folder.glob("*.jsonl"))
    with Closing(lock(f"{kept.path}.lock", 1.0)):
        assert not kept.file.make()
        kept.file.note_active(path.name)
    assert str(path) in kept.recent()


def test_an_addition_that_a_full_disk_cut_off_spoils_no_other(tmp_path: Path) -> None:
    kept = Lists(tmp_path, MANY)
    Path(f"{kept.path}.added").write_bytes(b"\n17000")
    path = next(kept.folder.glob("*.jsonl"))
    kept.file.note_active(path.name)
    assert str(path) in kept.recent()


def test_a_list_that_another_prompt_makes_meanwhile_hides_no_session(tmp_path: Path) -> None:
    kept = Lists(tmp_path, MANY)
    path = next(kept.folder.glob("*.jsonl"))
    listed, before = kept.file.load(), kept.file.old_sessions(RUNTIME, "", is_own=True)
    for _ in range(3):
        kept.add(0)
    with path.open("ab") as file:
        file.write(b"y\n")
    assert kept.file.make()
    with pytest.raises(ValueError, match="made the list again"):
        listed.check()
    assert before is not None
    sessions = before.relevant([path.stem], kept.now - DAY)
    assert str(path) in {session.path for session in sessions}


@pytest.mark.parametrize(
    ("part", "other"),
    [(b'"old": 100', b'"old": "x"'), (b'"at": ', b'"at": [], "x": '), (b"0\n", b"0 ")],
)
def test_a_list_with_other_parts_hides_no_session(
    tmp_path: Path, part: bytes, other: bytes
) -> None:
    kept = Lists(tmp_path, MANY)
    content = kept.path.read_bytes()
    head, found, tail = content.rpartition(part)
    assert found
    kept.path.write_bytes(head + other + tail)
    for _ in range(ROUND):
        if kept.file.old_sessions(RUNTIME, "", is_own=True) is None:
            return
    raise AssertionError("the list counts as readable")
