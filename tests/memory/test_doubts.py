"""What is said of memories that may be wrong by now."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from git_scene import git

from session_memory.common.system.git_process import ask_git
from session_memory.memory.doubts import with_doubts
from session_memory.memory.memory_index import IndexedMemory, Origin

DAY = 86400
LONG_AGO = time.time() - 10 * DAY


def memory(
    text: str, directory: Path | str, at: float = LONG_AGO + DAY, kind: str = "solution"
) -> IndexedMemory:
    origin = Origin(int(at * 1000), "session", 1, "extractive", 3, str(directory))
    return IndexedMemory("", "x.md", "aaaaaaaaaa", kind, text, origins=(origin,))


def doubts(one: IndexedMemory) -> tuple[str, ...]:
    [told] = with_doubts([one], "/nobody")
    return told.doubts


def write(path: Path, text: str, at: float) -> None:
    path.write_text(text)
    os.utime(path, (at, at))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with `a.py` and `src/b.py`, committed long ago."""
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    write(root / "a.py", "a = 1\n", LONG_AGO)
    write(root / "src" / "b.py", "b = 1\n", LONG_AGO)
    commit(root, LONG_AGO)
    return root


def commit(root: Path, at: float) -> None:
    date = {"GIT_AUTHOR_DATE": f"{int(at)} +0000", "GIT_COMMITTER_DATE": f"{int(at)} +0000"}
    identity = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    for words in (("add", "-A"), ("commit", "-q", "-m", "x")):
        subprocess.run(
            ["git", *words],
            cwd=root,
            env={"PATH": os.environ["PATH"], **date, **identity},
            check=True,
        )


class TestFiles:
    def test_nothing_is_said_while_they_are_as_they_were(self, repository: Path) -> None:
        assert doubts(memory("passed after editing `a.py` and `src/b.py`", repository)) == ()

    def test_files_that_were_edited_or_committed_since_are_counted(self, repository: Path) -> None:
        write(repository / "a.py", "a = 2\n", time.time() - DAY)
        one = memory("passed after editing `a.py` and `src/b.py`", repository)
        assert doubts(one) == ("1 file it names changed since",)
        write(repository / "src" / "b.py", "b = 2\n", time.time() - DAY)
        commit(repository, time.time() - DAY)
        assert doubts(one) == ("2 files it names changed since",)

    def test_git_is_asked_once_for_all_memories_of_a_repository(
        self, repository: Path, monkeypatch
    ) -> None:
        asked = []
        monkeypatch.setattr(
            "session_memory.memory.doubts.ask_git", lambda *of: asked.append(of) or ask_git(*of)
        )
        for name, days_ago in (("a.py", 5), ("src/b.py", 2)):
            write(repository / name, f"{name} again\n", time.time() - days_ago * DAY)
            commit(repository, time.time() - days_ago * DAY)
        days = (9, 4, 1)
        many = [
            memory("see a.py and src/b.py", repository, time.time() - ago * DAY)
            for ago in days
            for _ in range(10)
        ]
        told = [one.doubts for one in with_doubts(many, "/nobody")]
        assert told[::10] == [
            ("2 files it names changed since",),
            ("1 file it names changed since",),
            (),
        ]
        assert len(asked) == 1

    def test_a_file_that_a_commit_deleted_counts(self, repository: Path) -> None:
        (repository / "a.py").unlink()
        commit(repository, time.time() - DAY)
        assert doubts(memory("see a.py", repository)) == ("1 file it names changed since",)

    def test_what_was_only_checked_out_again_does_not(self, repository: Path) -> None:
        write(repository / "a.py", "a = 1\n", time.time() - DAY)
        git(repository, "add", "a.py")
        assert doubts(memory("see a.py", repository)) == ()

    def test_nor_what_the_same_work_wrote_in_the_hour_after(self, repository: Path) -> None:
        write(repository / "a.py", "a = 2\n", LONG_AGO + DAY + 600)
        assert doubts(memory("see a.py", repository)) == ()

    def test_without_git_their_times_tell(self, tmp_path: Path) -> None:
        write(tmp_path / "a.txt", "", LONG_AGO)
        write(tmp_path / "b.txt", "", time.time() - DAY)
        assert doubts(memory("a.txt, b.txt and gone.txt", tmp_path)) == (
            "1 file it names changed since",
        )

    def test_what_is_no_file_says_nothing(self, repository: Path) -> None:
        for text in [
            "e.g. this",
            "https://example.org/a.py",
            "`*.py`",
            "version 3.11",
            "never.seen",
        ]:
            write(repository / "a.py", "a = 2\n", time.time() - DAY)
            assert doubts(memory(text, repository)) == ()

    def test_nothing_is_said_where_it_cannot_be_told(self, repository: Path) -> None:
        write(repository / "a.py", "a = 2\n", time.time() - DAY)
        assert doubts(memory("see a.py", "")) == ()
        assert doubts(memory("see a.py", repository / "gone")) == ()
        assert doubts(memory("see a.py", repository)._replace(origins=())) == ()

    def test_an_episode_tells_of_its_time(self, repository: Path) -> None:
        write(repository / "a.py", "a = 2\n", time.time() - DAY)
        assert doubts(memory("Changed: `a.py`", repository, kind="episode")) == ()


class TestBranches:
    def test_what_came_from_a_branch_says_so_until_it_is_merged(self, repository: Path) -> None:
        git(repository, "checkout", "-q", "-b", "fix/login")
        (repository / "c.py").write_text("c = 1\n")
        commit(repository, time.time())
        one = memory("We'll use tokens", repository, at=time.time() + 2, kind="decision")
        assert doubts(one) == ("on branch fix/login, not merged",)
        git(repository, "checkout", "-q", "main")
        git(repository, "merge", "-q", "fix/login")
        assert doubts(one._replace(origins=one.origins)) == ()

    def test_the_usual_branch_is_not_named(self, repository: Path) -> None:
        assert doubts(memory("We'll use tokens", repository, at=time.time(), kind="decision")) == ()
