"""Paths in an update are as git prints them in the directory where its reader started."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from collision_scene import Pair
from git_scene import repository
from hooks_scene import told
from teammate_scene import TeamProject

from bench.clones import Actor, Clone
from session_memory.awareness.activity.conflicts import KeptConflict
from session_memory.awareness.activity.viewpoint import Viewpoint
from session_memory.common.text.paths import relative

FILES = ("a.py", "packages/x/a.py", "packages/y/a.py")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path, FILES)


def package(clone: Clone, name: str, session: str = "") -> Actor:
    """Return a session that starts in a package."""
    return clone.session(session or name, worktree=clone.root / "packages" / name, root=clone.root)


@pytest.mark.parametrize(
    ("begins", "x", "y"),
    [
        (".", "packages/x/a.py", "packages/y/a.py"),
        ("packages", "x/a.py", "y/a.py"),
        ("packages/x", "a.py", "../y/a.py"),
        ("packages/y", "../x/a.py", "a.py"),
    ],
)
def test_files_of_packages_are_named_from_where_the_reader_started(
    clone: Clone, begins: str, x: str, y: str
) -> None:
    reader = clone.session("reader", worktree=clone.root / begins)
    for name in "xy":
        actor = clone.session(name, worktree=clone.root / "packages" / name)
        clone.now += 60
        actor.edit("a.py", "x\n")
    text = reader.prompt()
    assert f"edited {x}\n" in text + "\n"
    assert f"edited {y}\n" in text + "\n"


def test_a_file_that_was_read_is_named_from_where_the_reader_started(clone: Clone) -> None:
    reader = clone.session("reader", worktree=clone.root / "packages" / "y")
    actor = clone.session("x", worktree=clone.root / "packages" / "x")
    actor.read("a.py")
    assert "read ../x/a.py" in reader.prompt()


def test_a_file_of_another_worktree_is_named_like_the_readers_copy(clone: Clone) -> None:
    reader = package(clone, "y", "reader")
    place = clone.root / ".claude" / "worktrees" / "fix"
    clone.shell(f"git worktree add -q -b fix {place}")
    clone.session("x", worktree=place / "packages" / "x").edit("a.py", "x\n")
    assert "edited ../x/a.py" in reader.prompt()


def test_files_outside_the_worktree_keep_their_path(clone: Clone, tmp_path: Path) -> None:
    reader = package(clone, "y", "reader")
    clone.session("x").edit(str(tmp_path / "notes.txt"), "x\n")
    text = reader.prompt()
    assert "/notes.txt" in text
    assert "../" not in text


def test_a_link_to_a_package_is_seen_from_the_package(clone: Clone) -> None:
    (clone.root / "link").symlink_to("packages/y")
    reader = clone.session("reader", worktree=clone.root / "link", root=clone.root)
    clone.session("x").edit("packages/x/a.py", "x\n")
    assert "edited ../x/a.py" in reader.prompt()


def test_a_link_to_a_package_from_elsewhere_is_seen_from_the_package(
    clone: Clone, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(clone.root / "packages" / "y")
    reader = clone.session("reader", worktree=tmp_path / "link", root=clone.root)
    clone.session("x").edit("packages/x/a.py", "x\n")
    assert "edited ../x/a.py" in reader.prompt()


def test_a_session_behind_a_link_to_the_repository_is_named_like_others(
    clone: Clone, tmp_path: Path
) -> None:
    reader = package(clone, "y", "reader")
    (tmp_path / "link").symlink_to(clone.root)
    clone.session("x", worktree=tmp_path / "link" / "packages" / "x").edit("a.py", "x\n")
    assert "edited ../x/a.py" in reader.prompt()


def test_where_a_link_leads_out_of_the_repository_the_reader_is_in_none(
    clone: Clone, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (clone.root / "link").symlink_to(tmp_path / "elsewhere" / "deep")
    reader = clone.session("reader", worktree=clone.root / "link", root=clone.root)
    clone.session("x").edit("packages/x/a.py", "x\n")
    assert "edited packages/x/a.py" in reader.prompt()
    viewpoint = Viewpoint(str(clone.root / "link"), str(tmp_path))
    assert viewpoint.inside == ""
    assert viewpoint.shown(f"{clone.root}/a.py") == f"{clone.root}/a.py"


def test_a_file_of_a_removed_worktree_is_not_named_from_where_the_reader_started(
    clone: Clone, tmp_path: Path
) -> None:
    reader, place = package(clone, "y", "reader"), tmp_path / "fix"
    clone.shell(f"git worktree add -q -b fix {place}")
    clone.session("x", worktree=place).edit("packages/x/a.py", "x\n")
    shutil.rmtree(place)
    assert "edited packages/x/a.py" in reader.prompt()


def test_a_file_of_another_repository_is_named_from_its_root(clone: Clone, tmp_path: Path) -> None:
    reader, other = package(clone, "y", "reader"), repository(tmp_path / "other", app="1\n")
    clone.session("x", worktree=other).edit("src/f.py", "x\n")
    assert "edited src/f.py" in reader.prompt()


def test_a_teammate_s_file_is_named_from_where_the_reader_started(tmp_path: Path) -> None:
    project = TeamProject(tmp_path)
    web = project.directory / "packages" / "web"
    web.mkdir(parents=True)
    project.cwd = str(web)
    project.elsewhere("packages/api/x.ts", "app", "/home/ann/notes.md")
    text = told(project.user.run(cwd=project.cwd))
    assert "edited ../../app, ../api/x.ts" in text


def test_a_viewpoint_is_found_once(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Viewpoint(str(clone.root / "packages" / "x"), str(clone.root.parent))
    assert place.shown(f"{clone.root}/packages/y/a.py") == "../y/a.py"
    monkeypatch.setattr("session_memory.common.system.files.os.readlink", None)
    assert place.shown(f"{clone.root}/packages/x/a.py") == "a.py"
    assert place.inside == "packages/x"


def test_collisions_are_named_from_where_the_reader_started(clone: Clone) -> None:
    reader = package(clone, "y", "reader")
    reader.read("packages/x/a.py")
    reader.prompt()
    clone.now += 60
    clone.session("x").edit("packages/x/a.py", "x\n")
    assert "! ../x/a.py: edited" in reader.prompt()


def test_conflicts_are_named_from_where_the_reader_started() -> None:
    conflict = KeptConflict("packages/x/a.py", 0.0, branch="fix", commits=1)
    assert conflict.line(0.0, "packages/y").startswith("! ../x/a.py: fix has")
    assert conflict.line(0.0).startswith("! packages/x/a.py: fix has")


def test_a_file_that_the_prompt_names_from_there_comes_first(clone: Clone) -> None:
    reader = package(clone, "y", "reader")
    actor = clone.session("x")
    for name in ("packages/x/a.py", "a.py", "packages/x/b.py", "packages/x/c.py"):
        actor.edit(name, "x\n")
    text = reader.prompt("Why does ../x/a.py print an x?")
    assert "edited ../x/a.py" in text


@pytest.mark.parametrize(
    ("path", "inside", "shown"),
    [
        ("/srv/app/src/a.py", "", "src/a.py"),
        ("/srv/app/src/a.py", "src", "a.py"),
        ("/srv/app/srcs/a.py", "src", "../srcs/a.py"),
        ("/srv/app/a.py", "src/db", "../../a.py"),
        ("/srv/application/a.py", "src", "/srv/application/a.py"),
        ("a.py", "src", "a.py"),
    ],
)
def test_paths_are_relative_as_git_prints_them(path: str, inside: str, shown: str) -> None:
    assert relative(path, "/srv/app", inside) == shown


def test_a_worktree_is_a_root_while_it_is_one(clone: Clone) -> None:
    reader = clone.session("reader")
    place = clone.root / ".claude" / "worktrees" / "fix"
    clone.shell(f"git worktree add -q -b fix {place}")
    actor = clone.session("x", worktree=place)
    actor.edit("a.py", "x\n")
    assert "edited a.py" in reader.prompt()
    (place / ".git").unlink()
    actor.edit("a.py", "x\n")
    assert "edited .claude/worktrees/fix/a.py" in reader.prompt()


def test_without_a_repository_files_are_named_from_where_the_session_began(tmp_path: Path) -> None:
    clone = Clone(tmp_path, FILES)
    clone.shell("rm -rf .git")
    pair = Pair(clone)
    pair.discord.edit("packages/x/a.py", "x\n")
    assert "edited packages/x/a.py" in pair.main.prompt()
