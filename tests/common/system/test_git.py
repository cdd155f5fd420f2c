"""Reading git's files gives the same results as git itself."""

from __future__ import annotations

import os
import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from git_scene import git, repository

from session_memory.awareness.activity.changes import head_stamp
from session_memory.common.system import files, git_objects
from session_memory.common.system.git import (
    find_worktree,
    head_moves,
    head_of,
    is_commit,
    worktrees_of,
)
from session_memory.common.system.git_objects import GitIndex
from session_memory.history.git.commits import _places_before


def said_by_git(directory: Path) -> tuple[str, str, str]:
    asked = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    root, git_dir, common = (git(directory, "rev-parse", question) for question in asked)
    return root, git_dir, os.path.realpath(directory / common)


def test_where_lines_were_before_is_known_at_once_of_a_long_file_with_many_equal_lines() -> None:
    then = [line for number in range(30_000) for line in (f"line {number}", "}")]
    began = time.process_time()
    places = _places_before(then, ["first", *then[:100], "new", *then[100:], "last"])
    assert time.process_time() - began < 5
    assert places == {
        number: number - 1 - (number > 102) for number in range(2, 60_003) if number != 102
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "app", src__app="1\n")


def test_a_path_without_links_is_what_the_system_says(tmp_path):
    (tmp_path / "a/b/c").mkdir(parents=True)
    links = {
        "up": "..",
        "a/abs": f"{tmp_path}/a/b",
        "a/b/chain": "../abs/./c",
        "gone": "nowhere/x",
        "loop": "loop",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    for name in (
        "a/b/c",
        "a/b/../b//c/",
        "a/abs/c",
        "a/b/chain",
        "a/b/chain/..",
        "up/" + tmp_path.name,
        "gone",
        "loop",
    ):
        assert files.real_path(f"{tmp_path}/{name}") == os.path.realpath(f"{tmp_path}/{name}"), name
    assert files.real_path("/") == "/"


class TestWorktrees:
    def test_a_directory_is_in_the_worktree_that_git_says(self, root):
        git(root, "worktree", "add", "-q", "../fix", "-b", "fix/login")
        for directory in (root, root / "src", root.parent / "fix", root.parent / "fix" / "src"):
            found = find_worktree(str(directory))
            assert (found.root, found.git_dir, found.common_dir) == said_by_git(directory)

    def test_a_worktree_within_the_other_is_one_of_its_own(self, root):
        git(root, "worktree", "add", "-q", ".claude/worktrees/fix")
        found = find_worktree(str(root / ".claude/worktrees/fix/src"))
        assert (found.name, found.root) == ("fix", str(root / ".claude/worktrees/fix"))
        assert found.common_dir == find_worktree(str(root)).common_dir

    def test_links_between_a_repository_and_its_worktree_may_be_relative(self, root):
        git(root, "worktree", "add", "-q", "../fix")
        (root.parent / "fix" / ".git").write_text("gitdir: ../app/.git/worktrees/fix\n")
        (root / ".git/worktrees/fix/gitdir").write_text("../../../../fix/.git\n")
        found = find_worktree(str(root.parent / "fix"))
        assert found.common_dir == f"{root}/.git"
        assert [one.root for one in worktrees_of(found.common_dir)] == [
            str(root),
            f"{root.parent}/fix",
        ]

    def test_a_submodule_is_a_repository_of_its_own(self, root, tmp_path):
        part = repository(tmp_path / "part")
        git(root, "submodule", "--quiet", "add", str(part), "vendor/part")
        found = find_worktree(str(root / "vendor/part"))
        assert (found.root, found.git_dir, found.common_dir) == said_by_git(root / "vendor/part")
        assert found.common_dir != find_worktree(str(root)).common_dir

    def test_the_worktrees_of_a_bare_repository_are_one_repository_with_it(self, root, tmp_path):
        (tmp_path / "all").mkdir()
        git(tmp_path, "clone", "-q", "--bare", str(root), "all/.bare")
        (tmp_path / "all" / ".git").write_text("gitdir: ./.bare\n")
        git(tmp_path / "all", "worktree", "add", "-q", "main")
        common = {
            find_worktree(str(tmp_path / "all" / below)).common_dir
            for below in (".bare", "main", "main/src")
        }
        assert common == {str(tmp_path / "all" / ".bare")}
        assert find_worktree(str(tmp_path / "all" / ".bare" / "refs")).root == ""

    def test_git_variables_count_for_nothing(self, root, tmp_path, monkeypatch):
        other = repository(tmp_path / "other")
        monkeypatch.setenv("GIT_DIR", str(other / ".git"))
        monkeypatch.setenv("GIT_COMMON_DIR", str(other / ".git"))
        assert find_worktree(str(root)).common_dir == f"{root}/.git"

    @pytest.mark.parametrize("above", ["", "/.."])
    def test_a_repository_at_the_persons_home_or_above_does_not_count(self, root, above):
        home = root / "home" if above else root
        (home / "work").mkdir(parents=True)
        assert find_worktree(str(home / "work"), str(home)) is None
        assert find_worktree(str(home / "work"), "/nobody").root == str(root)

    def test_without_a_repository_there_is_none(self, tmp_path):
        (tmp_path / "plain" / ".git").mkdir(parents=True)
        assert find_worktree(str(tmp_path / "plain")) is None
        (tmp_path / "broken").mkdir()
        (tmp_path / "broken" / ".git").write_text("gitdir: /nowhere\n")
        assert find_worktree(str(tmp_path / "broken")) is None

    def test_worktrees_that_are_gone_are_not_listed(self, root):
        git(root, "worktree", "add", "-q", "../fix")
        git(root, "worktree", "add", "-q", "../old")
        (root.parent / "old").rename(root.parent / "moved")
        assert [one.name for one in worktrees_of(f"{root}/.git")] == ["app", "fix"]

    def test_it_takes_two_calls_a_directory_and_five_more(self, root, monkeypatch):
        (root / "a/b/c").mkdir(parents=True)
        calls = counted_calls(monkeypatch)
        find_worktree(str(root / "a/b/c"))
        assert len(calls) == 2 * 3 + 5  # two of them for the owner


class TestHead:
    def test_head_is_a_branch_or_a_commit(self, root):
        git_dir = f"{root}/.git"
        assert head_of(git_dir) == "main"
        git(root, "switch", "-q", "-c", "fix/login")
        assert head_of(git_dir) == "fix/login"
        git(root, "checkout", "-q", "--detach")
        assert head_of(git_dir) == git(root, "rev-parse", "HEAD")
        assert is_commit(head_of(git_dir))

    def test_each_worktree_has_its_own(self, root):
        git(root, "worktree", "add", "-q", "../fix", "-b", "fix/login")
        assert head_of(find_worktree(str(root.parent / "fix")).git_dir) == "fix/login"
        assert head_of(find_worktree(str(root)).git_dir) == "main"

    def test_the_log_tells_how_it_moved(self, root):
        begun = time.time()
        git(root, "switch", "-q", "-c", "fix/login")
        (root / "src/app").write_text("2\n")
        git(root, "commit", "-q", "-a", "-m", "change: moving from a to b")
        git(root, "switch", "-q", "main")
        moves = head_moves(f"{root}/.git", begun)[-3:]
        assert [move.branches for move in moves] == [
            ("main", "fix/login"),
            None,
            ("fix/login", "main"),
        ]
        assert moves[1].after == git(root, "rev-parse", "fix/login")
        assert abs(moves[1].time - time.time()) < 60
        assert head_moves(f"{root}/.git", time.time() + 10) == []

    def test_its_stamp_changes_when_it_moves_and_only_then(self, root):
        before = head_stamp(f"{root}/.git")
        (root / "src/app").write_text("2\n")
        git(root, "add", "-A")
        git(root, "status")
        assert head_stamp(f"{root}/.git") == before
        git(root, "commit", "-q", "-m", "two")
        committed = head_stamp(f"{root}/.git")
        git(root, "switch", "-q", "-c", "other")
        assert len({tuple(stamp) for stamp in (before, committed, head_stamp(f"{root}/.git"))}) == 3

    def test_where_there_is_no_head_nothing_is_told(self, tmp_path):
        assert (head_of(str(tmp_path)), head_moves(str(tmp_path), 0)) == ("", [])
        assert not any(head_stamp(str(tmp_path)))


FORMATS = {
    "sha-256": (["--object-format=sha256"], []),
    "version 4": ([], [("index.version", "4")]),
    "split": ([], [("core.splitIndex", "true"), ("splitIndex.maxPercentChange", "100")]),
    "all": (
        ["--object-format=sha256"],
        [
            ("index.version", "4"),
            ("core.splitIndex", "true"),
            ("splitIndex.maxPercentChange", "100"),
        ],
    ),
}


class TestIndex:
    @pytest.mark.parametrize(("options", "settings"), FORMATS.values(), ids=FORMATS)
    def test_every_format_says_what_git_says(
        self, tmp_path: Path, options: list[str], settings: list[tuple[str, str]]
    ) -> None:
        root = tmp_path / "app"
        root.mkdir()
        git(root, "init", "-q", "-b", "main", *options)
        for setting in settings:
            git(root, "config", *setting)
        paths = [
            root / f"{folder}/{number}" for folder in ("src", "src/app") for number in range(150)
        ]
        for number, path in enumerate(paths):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n")
        check_staged(root, paths)
        git(root, "add", "-A")
        check_staged(root, paths)
        git(root, "commit", "-q", "-m", "begin")
        changed, added, deleted, reset = paths[3], root / "src/new", paths[140], paths[77]
        changed.write_text("changed\n")
        added.write_text("new\n")
        check_staged(root, [*paths, added])
        git(root, "add", "-A")
        git(root, "rm", "-q", "--cached", str(deleted))
        git(
            root,
            "update-index",
            "--cacheinfo",
            f"100644,{git(root, 'rev-parse', ':src/5')},{reset.relative_to(root)}",
        )
        check_staged(root, [*paths, added])

    def test_a_file_is_staged_as_it_is_from_add_to_its_next_change(self, root):
        worktree = find_worktree(str(root))
        path = root / "src/app"
        path.write_text("22\n")
        assert not GitIndex(worktree).as_they_are([str(path)])
        git(root, "add", "-A")
        assert GitIndex(worktree).as_they_are([str(path)])
        git(root, "commit", "-q", "-m", "two")
        assert GitIndex(worktree).as_they_are([str(path)])
        path.write_text("3\n")
        assert not GitIndex(worktree).as_they_are([str(path)])

    def test_what_git_does_not_know_is_not_staged(self, root):
        (root / "pp").write_text("1\n")  # the end of a path that it knows
        assert not GitIndex(find_worktree(str(root))).as_they_are([str(root / "pp")])
        assert not GitIndex(find_worktree(str(root))).as_they_are([str(root / "gone")])

    def test_it_is_read_once_for_all_questions(self, root, monkeypatch):
        git(root, "config", "index.version", "4")
        (root / "src/app").write_text("22\n")
        git(root, "add", "-A")
        index = GitIndex(find_worktree(str(root)))
        assert index.as_they_are([str(root / "src/app")])
        monkeypatch.setattr(git_objects, "read_whole", None)
        assert index.as_they_are([str(root / "src/app")])
        assert not index.as_they_are([str(root / "gone")])

    def test_a_damaged_one_takes_no_memory(self, root):
        entry = bytes(40 + 20) + b"\0\1"
        longer = (
            b"DIRC" + struct.pack(">II", 4, 20_000) + (entry + b"\0" + b"a" * 50 + b"\0") * 20_000
        )
        run = struct.pack(">Q", 1 | 0xFFFFFFFF << 1)
        link = (
            bytes(20)
            + struct.pack(">II", 64, 1)
            + run
            + bytes(4)
            + struct.pack(">II", 64, 1)
            + run
            + bytes(4)
        )
        split = (
            b"DIRC"
            + struct.pack(">II", 2, 0)
            + b"link"
            + struct.pack(">I", len(link))
            + link
            + bytes(20)
        )
        for number, content in enumerate((longer, split)):
            (root / ".git/index").write_bytes(content)
            (root / ".git" / f"sharedindex.{'00' * 20}").write_bytes(b"DIRC" if number else b"")
            tracemalloc.start()
            assert GitIndex(find_worktree(str(root))).as_they_are([str(root / "src/app")]) == {}
            assert tracemalloc.get_traced_memory()[1] < 100_000_000
            tracemalloc.stop()


def check_staged(root: Path, paths: list[Path]) -> None:
    """Those files are found that git calls unchanged, with the objects that it has of them."""
    changed = {root / name for name in git(root, "diff-files", "--name-only").split("\n")}
    staged = [line.split() for line in git(root, "ls-files", "--stage").split("\n") if line]
    expected = {
        str(root / name): object for _, object, _, name in staged if root / name not in changed
    }
    worktree = find_worktree(str(root))
    assert worktree
    assert GitIndex(worktree).as_they_are([str(path) for path in paths]) == expected


def counted_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are asked for from here on."""
    calls: list[str] = []

    real = files.os

    class Counting:
        def __getattr__(self, name: str) -> object:
            call = getattr(real, name)
            if name not in ("stat", "lstat", "open", "listdir"):
                return call

            def counted(path: str, *arguments: object, **named: object) -> object:
                calls.append(str(path))
                return call(path, *arguments, **named)

            return counted

    monkeypatch.setattr(files, "os", Counting())
    return calls


def test_a_home_directory_by_a_symlink_is_still_the_persons(tmp_path):
    repository(tmp_path / "real", dotfile="x\n")
    (tmp_path / "real" / "work").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    for directory in ("real/work", "home/work"):
        for home in ("real", "home"):
            assert find_worktree(str(tmp_path / directory), str(tmp_path / home)) is None
