"""Another user's repository is read only where the person's own git would work in it.

Otherwise it is refused with git's words.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from git_scene import git, repository
from repository_scene import LINE, REQUEST, Work

from session_memory.common.system import git as git_files
from session_memory.common.system import git_process
from session_memory.common.system.git import find_worktree, refusal_at
from session_memory.sessions.settings.privacy import Privacy

ANOTHER = 12345
WORDS = "detected dubious ownership in repository at"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give files to another user"
)


def give(root: Path, user: int = ANOTHER) -> None:
    subprocess.run(["chown", "-hR", str(user), str(root)], check=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SUDO_UID", raising=False)
    git_files._refusals.clear()
    return home


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Path:
    root = repository(tmp_path / "app")
    give(root)
    return root


def is_fine_for_git(root: Path, **environ: str) -> bool:
    """Whether the person's own git works there."""
    command = ["git", "status", "--short"]
    return (
        subprocess.run(
            command, cwd=root, env={**os.environ, **environ}, capture_output=True
        ).returncode
        == 0
    )


def test_another_user_s_repository_is_refused_in_the_words_of_git(root: Path) -> None:
    assert not is_fine_for_git(root)
    assert find_worktree(str(root)) is None
    assert WORDS in refusal_at(str(root))


@pytest.mark.parametrize("value", ["{root}", "*"])
def test_it_is_read_if_the_person_calls_it_safe(root: Path, home: Path, value: str) -> None:
    git_config = home / ".gitconfig"
    git_config.write_text(f"[safe]\n\tdirectory = {value.format(root=root)}\n")
    assert is_fine_for_git(root)
    worktree = find_worktree(str(root))
    assert worktree
    assert worktree.root == str(root)


def test_it_is_read_if_the_system_or_the_environment_calls_it_safe(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = tmp_path / "system"
    system.write_text("[safe]\n\tdirectory = *\n")
    for variables in (
        {"GIT_CONFIG_SYSTEM": str(system)},
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": str(root),
        },
    ):
        with monkeypatch.context() as patched:
            patched.delenv("GIT_CONFIG_NOSYSTEM", raising=False)
            for name, value in variables.items():
                patched.setenv(name, value)
            assert is_fine_for_git(root)
            git_files._refusals.clear()
            assert find_worktree(str(root))


def test_what_the_repository_itself_calls_safe_does_not_count(root: Path) -> None:
    with (root / ".git/config").open("a") as config:
        config.write("[safe]\n\tdirectory = *\n")
    assert not is_fine_for_git(root)
    assert find_worktree(str(root)) is None


@pytest.mark.parametrize("part", ["", ".git"])
def test_it_is_enough_that_the_folder_or_its_git_folder_is_another_user_s(
    tmp_path: Path, home: Path, part: str
) -> None:
    root = repository(tmp_path / "app")
    os.chown(root / part, ANOTHER, -1)
    assert not is_fine_for_git(root)
    assert find_worktree(str(root)) is None


def test_with_sudo_the_files_of_the_one_who_called_it_count_as_one_s_own(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(ANOTHER))
    assert is_fine_for_git(root)
    assert find_worktree(str(root))
    monkeypatch.setenv("SUDO_UID", "54321")
    git_files._refusals.clear()
    assert not is_fine_for_git(root)
    assert find_worktree(str(root)) is None


def test_of_a_linked_worktree_the_link_its_folder_and_its_git_folder_count(
    tmp_path: Path, home: Path
) -> None:
    root, linked = repository(tmp_path / "app"), tmp_path / "linked"
    git(root, "worktree", "add", "-q", str(linked))
    for part in (linked / ".git", linked, root / ".git/worktrees/linked"):
        os.chown(part, ANOTHER, -1)
        git_files._refusals.clear()
        assert bool(find_worktree(str(linked))) == is_fine_for_git(linked) == False  # noqa: E712
        os.chown(part, 0, -1)
    git_files._refusals.clear()
    assert find_worktree(str(linked))


def test_git_is_asked_once_for_a_repository_and_never_for_one_s_own(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []
    command = git_process._command
    monkeypatch.setattr(
        git_process, "_command", lambda place, words: started.append(words) or command(place, words)
    )
    (root / "src").mkdir()
    for directory in (root, root / "src", root):
        assert find_worktree(str(directory)) is None
    assert started == [("rev-parse", "--git-dir")]
    assert find_worktree(str(repository(tmp_path / "own")))
    assert len(started) == 1


def test_rules_still_hide_it(root: Path, home: Path) -> None:
    (home / ".session-memory").mkdir()
    (home / ".session-memory/config.yaml").write_text(f"projects: {{{root}: {{ignore: true}}}}\n")
    linked = root.parent / "linked"
    git_config = home / ".gitconfig"
    git_config.write_text(f"[safe]\n\tdirectory = {root}\n")
    subprocess.run(
        ["git", "worktree", "add", "-q", str(linked)], cwd=root, check=True, env=dict(os.environ)
    )
    git_config.unlink()
    give(linked)
    git_files._refusals.clear()
    assert find_worktree(str(linked)) is None
    assert Privacy(dict(os.environ)).of_directory(str(linked)).ignore


def test_commands_say_what_git_says(tmp_path: Path, home: Path) -> None:
    work = Work(tmp_path)
    work.session("a", work.said(REQUEST, "a"), work.edit("a", LINE))
    work.write(f"{LINE}\n")
    commit = work.commit()
    give(work.root)
    for words in (("why", "cart.py:1"), ("why", commit), ("why", "--staged"), ("conflicts",)):
        git_files._refusals.clear()
        done = work.user.run(*words, cwd=work.root)
        assert done.returncode == 1
        assert WORDS in done.stdout + done.stderr, words
    done = work.user.run("search", commit, cwd=work.root)
    assert WORDS in done.stdout + done.stderr
    done = work.user.run("ingest", "--checkpoints", ".", cwd=work.root)
    assert WORDS in done.stdout + done.stderr
    (work.user.home / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
    git_files._refusals.clear()
    assert REQUEST in work.why("cart.py:1")
