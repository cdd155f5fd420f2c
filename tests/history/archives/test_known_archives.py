"""A run that archives many sessions lists the archives once, and sees what others change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from archives_scene import ARCHIVED, MONDAY, titled
from hooks_scene import PlainUser
from records import append, exchange
from test_house import ROOT

from session_memory.history.archives import writer
from session_memory.history.archives.list import KnownArchives, list_archives, settle
from session_memory.history.archives.writer import ArchiveSource, archive_transcript
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.settings.privacy import Privacy

HIDE = "projects: {/srv/secret: {ignore: true}}\n"
ANOTHER_PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from session_memory.session_monitor import archive_session
archive_session(jsonl_path=sys.argv[2], conversations_dir=sys.argv[3], format="agent-sdk")
"""


class Run:
    """A run that archives sessions of a person, one after the other."""

    def __init__(self, plain: PlainUser) -> None:
        self._plain = plain
        self._home = person_home({"HOME": str(plain.root)})
        self._known = KnownArchives()
        self.folder = Path(self._home.conversations_dir)
        self.private = self.folder.parent / ".private-conversations"

    def talk(self, number: int, *, is_secret: bool = False) -> Path:
        cwd = "/srv/secret" if is_secret else "/srv/agent"
        title = titled(f"Talk {number}")
        return self._plain.session(*exchange(f"words {number}", "yes", at=MONDAY, cwd=cwd), title)

    def privacy(self) -> Privacy:
        return Privacy({"HOME": str(self._plain.root)}, self._home)

    def archive(self, path: Path, title: str = "") -> Path:
        written = archive_transcript(
            ArchiveSource(path.stem, str(path), runtime("agent-sdk"), title=title),
            str(self.folder),
            self._home.settings(),
            ARCHIVED,
            privacy=self.privacy(),
            known=self._known,
        )
        assert written is not None
        return Path(written)

    def sessions(self) -> Counter[str]:
        """Return how many archives each session has."""
        folders = filter(Path.is_dir, (self.folder, self.private))
        return Counter(
            facts["session"] for folder in folders for _, facts in list_archives(str(folder))
        )

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Let the folders have the same times after a change as before it."""
        folders = list(filter(Path.is_dir, (self.folder, self.private)))
        times = [folder.stat().st_mtime_ns for folder in folders]
        yield
        for folder, time in zip(folders, times):
            os.utime(folder, ns=(time, time))


@pytest.fixture
def run(plain: PlainUser) -> Run:
    plain.config(HIDE)
    return Run(plain)


@contextmanager
def listed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Collect the folders of archives that are listed."""
    folders: list[str] = []
    list_directory = os.listdir

    def recorded(path: str) -> list[str]:
        if os.path.realpath(path).endswith("conversations"):
            folders.append(path)
        return list_directory(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", recorded)
        yield folders


@pytest.mark.parametrize("count", [4, 40])
def test_a_run_lists_the_archives_as_often_however_many_it_writes(
    run: Run, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [run.talk(number, is_secret=number % 4 == 1) for number in range(count)]
    with listed(monkeypatch) as folders:
        for path in paths:
            run.archive(path)
    assert len(folders) <= 3
    with listed(monkeypatch) as folders:
        for path in paths:
            append(path, *exchange("go on", "gone", at=MONDAY + 60))
            run.archive(path, title=f"New {path.stem[:8]}")
    assert folders == []
    assert run.sessions() == {path.stem: 1 for path in paths}


def test_an_archive_of_another_process_is_found_even_at_the_same_time(
    run: Run, plain: PlainUser
) -> None:
    first, other, third = map(run.talk, range(3))
    run.archive(first)
    with run.unseen():
        subprocess.run(
            [sys.executable, "-c", ANOTHER_PROCESS, str(ROOT), str(other), str(run.folder)],
            env={"HOME": str(plain.root), "PATH": os.environ["PATH"]},
            check=True,
        )
    run.archive(other)
    run.archive(third)
    assert run.sessions() == {first.stem: 1, other.stem: 1, third.stem: 1}


def test_an_archive_that_a_rule_moved_is_found_even_at_the_same_time(
    run: Run, plain: PlainUser
) -> None:
    first, secret, third = run.talk(1), run.talk(2, is_secret=True), run.talk(3)
    for path in (first, secret):
        run.archive(path)
    with run.unseen():
        plain.config("")
        settle(str(run.folder), run.privacy())
    assert run.archive(secret).parent == run.folder
    run.archive(third)
    assert run.sessions() == {first.stem: 1, secret.stem: 1, third.stem: 1}


def test_an_archive_with_the_former_name_of_another_is_found(run: Run, plain: PlainUser) -> None:
    first, other = map(run.talk, range(2))
    name = run.archive(first)
    another_process = Run(plain)
    another_process.archive(first, title="A better title")
    assert another_process.archive(other, title="Talk 0") == name
    run.archive(other, title="Talk 0")
    assert run.sessions() == {first.stem: 1, other.stem: 1}


def test_archives_that_a_person_renames_adds_or_deletes_are_seen(run: Run) -> None:
    paths = [run.talk(number) for number in range(5)]
    archives = [run.archive(path) for path in paths]
    with run.unseen():
        archives[0].rename(run.folder / "renamed.md")
    assert run.archive(paths[0]) == run.folder / "renamed.md"
    shutil.move(archives[1], run.folder.parent / "away.md")
    run.archive(paths[2])
    shutil.move(run.folder.parent / "away.md", run.folder / "back.md")
    assert run.archive(paths[1]) == run.folder / "back.md"
    archives[3].unlink()
    assert run.archive(paths[3]) == archives[3]
    run.archive(paths[4])
    assert run.sessions() == {path.stem: 1 for path in paths}


@pytest.mark.parametrize("is_secret", [False, True])
def test_an_archive_that_a_person_adds_while_another_is_written_is_seen(
    run: Run, is_secret: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, added, third = [run.talk(number, is_secret=is_secret) for number in range(3)]
    run.archive(first)
    archive = run.archive(added)
    away = Path(shutil.move(archive, run.folder.parent / "away.md"))
    write_messages = writer._write_messages

    def slow(*given: object) -> object:
        if away.exists():
            shutil.move(away, archive.with_name("added.md"))
        return write_messages(*given)

    monkeypatch.setattr(writer, "_write_messages", slow)
    run.archive(third)
    assert run.archive(added).name == "added.md"
    assert run.sessions() == {first.stem: 1, added.stem: 1, third.stem: 1}
