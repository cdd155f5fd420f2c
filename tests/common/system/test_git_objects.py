"""Objects of commits at paths, compared with git's own answers."""

from __future__ import annotations

import os
import posix
import shutil
from pathlib import Path
from random import Random

import pytest
from git_scene import git, repository

from session_memory.common.system import files
from session_memory.common.system.git_objects import GitObjects

NAMES = ("readme", "src/app.py", "src/ui/main.ts", "docs/a b/größe.md", "bin/run")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a dozen commits, among them large directories that hardly change, which git
    packs as deltas."""
    chance = Random(7)
    root = repository(tmp_path / "app")
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    for number in range(300):
        (root / "src" / f"module-{number}").write_text(str(number))
    for number in range(12):
        (root / chance.choice(NAMES)).write_text(f"{number}")
        (root / "src" / f"module-{number}").write_text("changed")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", f"{number}")
    return root


def assert_as_git_says(root: Path, common_dir: Path) -> None:
    objects = GitObjects(str(common_dir))
    commits = git(root, "rev-list", "--all").split()
    assert len(commits) == 13
    for commit in commits:
        said = git(
            root,
            "-c",
            "core.quotePath=false",
            "ls-tree",
            "-r",
            "-t",
            "--format=%(objectname) %(path)",
            commit,
        )
        by_path = {
            path: name for name, _, path in [line.partition(" ") for line in said.splitlines()]
        }
        assert {path: objects.at(commit, path) for path in by_path} == by_path
        assert [
            objects.at(commit, path) for path in ("gone", "src/gone", "readme/x", "gone/x")
        ] == [""] * 4


def test_of_loose_objects_it_is_what_git_says(root: Path) -> None:
    assert_as_git_says(root, root / ".git")


def test_of_a_pack_with_deltas_it_is_what_git_says(root: Path) -> None:
    git(root, "repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=50")
    (index,) = (root / ".git/objects/pack").glob("*.idx")
    is_delta_to_a_delta = "chain length = 2"  # how long the longest chain gets varies
    assert is_delta_to_a_delta in git(root, "verify-pack", "-v", str(index))
    assert_as_git_says(root, root / ".git")


def test_of_a_pack_with_deltas_by_name_it_is_what_git_says(root: Path) -> None:
    git(root, "-c", "repack.useDeltaBaseOffset=false", "repack", "-q", "-a", "-d", "-f")
    assert_as_git_says(root, root / ".git")


def test_of_a_clone_that_shares_the_objects_it_is_what_git_says(root: Path) -> None:
    git(root, "clone", "-q", "--shared", "--no-checkout", ".", "../other")
    assert_as_git_says(root.parent / "other", root.parent / "other/.git")


def test_of_a_repository_with_longer_names_it_is_what_git_says(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    git(other, "init", "-q", "--object-format=sha256")
    (other / "app").write_text("1\n")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "begin")
    for _ in ("loose", "packed"):
        commit = git(other, "rev-parse", "HEAD")
        assert GitObjects(f"{other}/.git").at(commit, "app") == git(other, "rev-parse", "HEAD:app")
        git(other, "repack", "-q", "-a", "-d")


@pytest.mark.parametrize("packs", [3, 300])
def test_the_work_done_does_not_grow_with_the_number_of_packs(
    root: Path, monkeypatch: pytest.MonkeyPatch, packs: int
) -> None:
    """Not a pack or an object is opened here, and one process answers every question (issue 28, C8)."""
    git(root, "repack", "-q", "-a", "-d")
    folder = root / ".git/objects/pack"
    (index,) = folder.glob("*.idx")
    for number in range(packs):
        for ending in (".idx", ".pack"):
            shutil.copyfile(index.with_suffix(ending), folder / f"pack-{number:040x}{ending}")
    opened: list[str] = []
    started: list[object] = []
    spawn = posix.posix_spawn
    monkeypatch.setattr(
        files.os, "open", lambda path, *more: opened.append(path) or os.open(path, *more)
    )
    monkeypatch.setattr(
        files.os, "posix_spawn", lambda *of, **more: started.append(of) or spawn(*of, **more)
    )
    objects = GitObjects(str(root / ".git"))
    commits = git(root, "rev-list", "--max-count=12", "HEAD").split()
    assert all(objects.at(commit, name) for commit in commits for name in ("readme", "src/app.py"))
    assert ([path for path in opened if "/objects" in path], len(started)) == ([], 1)


def test_no_process_is_left_behind(root: Path) -> None:
    objects = GitObjects(str(root / ".git"))
    assert objects.at(git(root, "rev-parse", "HEAD"), "readme") == git_blob(root)
    process = objects._process
    del objects
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_without_git_nothing_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(root, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", "/nowhere")
    assert GitObjects(str(root / ".git")).at(commit, "readme") is None


def test_what_is_damaged_or_not_there_cannot_be_told(root: Path) -> None:
    commit = git(root, "rev-parse", "HEAD")
    objects = root / ".git/objects"
    assert GitObjects(str(root / ".git")).at("0" * 40, "readme") is None
    assert GitObjects(str(root / "gone")).at(commit, "readme") is None
    assert (
        GitObjects(str(root / ".git")).at(git(root, "rev-parse", "HEAD:readme"), "readme") is None
    )
    loose = objects / commit[:2] / commit[2:]
    loose.chmod(0o600)
    whole = loose.read_bytes()
    for content in (b"", b"no", whole[: len(whole) // 2], whole[:-1] + b"\0"):
        loose.write_bytes(content)
        assert GitObjects(str(root / ".git")).at(commit, "readme") in (None, git_blob(root))
    loose.write_bytes(whole)
    git(root, "repack", "-q", "-a", "-d")
    (pack,) = (objects / "pack").glob("*.pack")
    pack.chmod(0o600)
    content = bytearray(pack.read_bytes())
    chance = Random(7)
    for _ in range(200):
        for _ in range(200):
            content[chance.randrange(12, len(content))] = chance.randrange(256)
        pack.write_bytes(content)
        found = GitObjects(str(root / ".git")).at(commit, "readme")
        assert found is None or isinstance(found, str)
    os.truncate(pack, 40)
    assert GitObjects(str(root / ".git")).at(commit, "readme") is None


def git_blob(root: Path) -> str:
    return git(root, "hash-object", "readme")
