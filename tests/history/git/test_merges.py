"""Trial merges in real repositories: what conflicts, and that nothing in the repository is touched
or run."""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from share import some

from session_memory.common.system.git import find_worktree
from session_memory.common.system.git_process import GitUnavailableError
from session_memory.history.git.merges import MOST_HUNKS, Conflict, Merges

from ...git_scene import GIT_ENVIRONMENT, git, repository

CART = "".join(f"line {number}\n" for number in range(1, 41))


def with_line(number: int, words: str, text: str = CART) -> str:
    lines = text.splitlines(keepends=True)
    lines[number - 1] = words + "\n"
    return "".join(lines)


class Pair:
    """A repository on main with a second worktree on the branch `fix`."""

    def __init__(self, root: Path, *options: str, **files: str) -> None:
        self.main, self.fix, self.trial = root / "main", root / "fix", root / "trial"
        if options:
            self.main.mkdir(parents=True)
            git(self.main, "init", "-q", "-b", "main", *options)
            (self.main / "cart").write_text(CART)
            git(self.main, "add", "-A")
            git(self.main, "commit", "-q", "-m", "begin")
        else:
            repository(self.main, **(files or {"cart": CART, "other": "1\n"}))
        git(self.main, "worktree", "add", "-q", "-b", "fix", str(self.fix))

    def commit(self, root: Path, name: str, text: str | None) -> None:
        if text is None:
            (root / name).unlink()
        else:
            (root / name).write_text(text)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "change")

    def conflicts(self) -> list[Conflict]:
        trees = [find_worktree(str(root)) for root in (self.main, self.fix)]
        assert trees[0]
        assert trees[1]
        self.trial.mkdir()
        merges = Merges(trees[0].common_dir, self.trial, 20)
        before = listing(self.main)
        found = merges.conflicts(*[merges.state_of(tree) for tree in trees if tree])
        assert listing(self.main) == before
        self.left_out = merges.left_out
        return found

    def places(self) -> list[tuple[str, tuple[tuple[int, int], tuple[int, int]], int | None]]:
        return [(one.path, one.lines, one.deleted_by) for one in self.conflicts()]


class OlderGit(Merges):
    """As before git 2.38, whose `merge-tree` takes only three trees."""

    def _run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        if arguments[0] == "merge-tree":
            return subprocess.CompletedProcess(arguments, 129, b"", b"usage: git merge-tree")
        return super()._run(*arguments, **options)


def listing(root: Path) -> dict[str, tuple[int, int]]:
    """What is there, with times and sizes; git renews the times of objects that it has."""
    paths = [Path(top, name) for top, _, names in os.walk(root) for name in names]
    return {
        str(path): ("/objects/" not in str(path) and path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in paths
    }


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_committed_changes_of_the_same_lines_conflict(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    pair.commit(pair.fix, "cart", with_line(20, "theirs\nand more"))
    assert pair.places() == [("cart", ((20, 20), (20, 21)), None)]


def test_changes_of_far_lines_merge(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(3, "ours"))
    (pair.fix / "cart").write_text(with_line(30, "theirs"))
    assert pair.places() == []


def test_uncommitted_changes_conflict_with_committed_and_uncommitted_ones(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    (pair.main / "other").write_text("2\n")
    (pair.fix / "cart").write_text(with_line(20, "theirs"))
    (pair.fix / "other").write_text("3\n")
    git(pair.fix, "add", "other")
    assert pair.places() == [
        ("cart", ((20, 20), (20, 20)), None),
        ("other", ((1, 1), (1, 1)), None),
    ]


def test_a_deleted_file_conflicts_with_an_edit(pair: Pair) -> None:
    pair.commit(pair.main, "cart", None)
    (pair.fix / "cart").write_text(with_line(20, "theirs"))
    assert pair.places() == [("cart", ((0, 0), (0, 0)), 0)]


def test_the_same_change_on_both_sides_merges(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(20, "same"))
    (pair.fix / "cart").write_text(with_line(20, "same"))
    assert pair.places() == []


def test_an_edit_conflicts_in_a_file_that_the_other_side_renamed(pair: Pair) -> None:
    git(pair.main, "mv", "cart", "basket")
    pair.commit(pair.main, "basket", with_line(20, "ours"))
    (pair.fix / "cart").write_text(with_line(20, "theirs"))
    assert pair.places() == [("basket", ((20, 20), (20, 20)), None)]


def test_line_ends_that_git_changed_at_checkout_do_not_conflict(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(3, "ours"))
    (pair.fix / "cart").write_bytes(with_line(30, "theirs").replace("\n", "\r\n").encode())
    assert pair.places() == []


def test_a_binary_file_conflicts_without_lines(tmp_path: Path) -> None:
    pair = Pair(tmp_path, image="\0one\n")
    pair.commit(pair.main, "image", "\0two\n")
    (pair.fix / "image").write_text("\0three\n")
    assert [one.path for one in pair.conflicts()] == ["image"]


@pytest.mark.parametrize("options", [("--object-format=sha256",)])
def test_a_repository_with_long_names_is_judged(tmp_path: Path, options: tuple[str, ...]) -> None:
    pair = Pair(tmp_path, *options)
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    (pair.fix / "cart").write_text(with_line(20, "theirs"))
    assert pair.places() == [("cart", ((20, 20), (20, 20)), None)]


def test_a_file_that_the_repository_s_attributes_merge_otherwise_is_left_out(
    tmp_path: Path,
) -> None:
    pair = Pair(
        tmp_path, cart=CART, log="1\n", **{".gitattributes": "cart merge=mine\nlog merge=union\n"}
    )
    for name, text in (("cart", with_line(20, "ours")), ("log", "1\n2\n")):
        pair.commit(pair.main, name, text)
    (pair.fix / "cart").write_text(with_line(20, "theirs"))
    (pair.fix / "log").write_text("1\n3\n")
    assert pair.places() == []


def test_nothing_that_the_repository_names_is_run(pair: Pair, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    trap = f"touch {mark};"
    (pair.main / ".gitattributes").write_text("* merge=trap diff=trap filter=trap\n")
    git(pair.main, "add", "-A")
    git(pair.main, "commit", "-q", "-m", "trap")
    git(pair.fix, "merge", "-q", "main")
    for key in (
        "merge.trap.driver",
        "diff.trap.textconv",
        "diff.trap.command",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "core.editor",
    ):
        git(pair.main, "config", key, trap)
    hook = pair.main / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{trap}\n")
    hook.chmod(0o755)
    for root, words in ((pair.main, "ours"), (pair.fix, "theirs")):
        (root / "cart").write_text(with_line(20, words))
        (root / "other").write_text(words)
    assert pair.places() == []  # what the driver would make of them is unknown
    assert not mark.exists()


def test_histories_without_a_common_ancestor_have_no_conflict(pair: Pair) -> None:
    git(pair.fix, "checkout", "-q", "--orphan", "new")
    pair.commit(pair.fix, "cart", with_line(20, "theirs"))
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    assert pair.places() == []


def test_a_shallow_clone_is_judged_by_what_it_has(pair: Pair, tmp_path: Path) -> None:
    pair.commit(pair.main, "cart", with_line(1, "second"))
    shallow = Pair.__new__(Pair)
    shallow.main, shallow.fix, shallow.trial = (
        tmp_path / "shallow",
        tmp_path / "shallow-fix",
        tmp_path / "trial2",
    )
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{pair.main}", str(shallow.main))
    git(shallow.main, "worktree", "add", "-q", "-b", "fix", str(shallow.fix))
    shallow.commit(shallow.main, "cart", with_line(20, "ours"))
    (shallow.fix / "cart").write_text(with_line(20, "theirs"))
    assert [one.path for one in shallow.conflicts()] == ["cart"]


def test_a_submodule_that_moved_on_both_sides_is_left_out(pair: Pair, tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", code="1\n")
    git(pair.main, "submodule", "add", "-q", str(inner), "lib")
    git(pair.main, "commit", "-q", "-m", "lib")
    git(pair.fix, "merge", "-q", "main")
    for root, words in ((pair.main, "2"), (pair.fix, "3")):
        name = git(inner, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", words)
        git(root, "update-index", "--cacheinfo", f"160000,{name},lib")
        git(root, "commit", "-q", "-m", words)
    assert pair.places() == []


@pytest.mark.parametrize(
    "harm",
    [
        lambda pair: (pair.main / ".git/refs/heads/main").write_text("broken\n"),
        lambda pair: (pair.main / ".git/packed-refs").write_text("nonsense\n"),
        lambda pair: (pair.main / ".git/index").write_bytes(b"DIRC" + b"\xff" * 40),
        lambda pair: [
            path.unlink() for path in (pair.main / ".git/objects").rglob("*") if path.is_file()
        ],
    ],
    ids=["ref", "packed refs", "index", "objects"],
)
def test_a_broken_repository_gives_an_error_and_no_answer(
    pair: Pair, harm: Callable[[Pair], object]
) -> None:
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    harm(pair)
    with pytest.raises(GitUnavailableError):
        pair.conflicts()


def test_commits_of_main_that_touch_the_files_of_a_branch_are_counted(pair: Pair) -> None:
    pair.commit(pair.fix, "cart", with_line(30, "theirs"))
    for words in ("a", "b"):
        pair.commit(pair.main, "cart", with_line(3, words))
    pair.commit(pair.main, "other", "2\n")
    pair.trial.mkdir()
    tree = find_worktree(str(pair.fix))
    assert tree
    merges = Merges(tree.common_dir, pair.trial, 20)
    fix, main = merges.state_of(tree), merges.commit_of(tree.common_dir, "main")
    assert merges.changed(fix, main) == ["cart"]
    assert merges.commits_since(fix, main, ["cart"]) == 2


def pair_at(main: Path, fix: Path, trial: Path) -> Pair:
    """The pair of a repository that is there."""
    pair = Pair.__new__(Pair)
    pair.main, pair.fix, pair.trial = main, fix, trial
    return pair


def test_a_partial_clone_names_the_file_that_it_lacks_and_fetches_nothing(
    pair: Pair, tmp_path: Path
) -> None:
    pair.commit(pair.fix, "cart", with_line(20, "theirs"))
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    git(pair.main, "config", "uploadpack.allowFilter", "true")
    part = pair_at(tmp_path / "part", tmp_path / "part-fix", tmp_path / "trial2")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{pair.main}", str(part.main))
    git(part.main, "worktree", "add", "-q", "-b", "fix", str(part.fix), "origin/fix")
    mark = tmp_path / "fetched"
    git(part.main, "config", "remote.origin.uploadpack", f"touch {mark}; git-upload-pack")
    before = listing(part.main)
    assert part.conflicts() == []
    assert part.left_out == ["cart"]  # the common ancestor's file was never fetched
    assert listing(part.main) == before
    assert not mark.exists()
    git(part.main, "cat-file", "-p", "HEAD~1:cart")
    assert mark.exists()  # this is how a fetch would have shown
    part.trial = tmp_path / "trial3"
    assert part.places() == [("cart", ((20, 20), (20, 20)), None)]


def test_a_clone_that_borrows_its_objects_is_judged(pair: Pair, tmp_path: Path) -> None:
    shared = pair_at(tmp_path / "shared", tmp_path / "shared-fix", tmp_path / "trial2")
    git(tmp_path, "clone", "-q", "--shared", str(pair.main), str(shared.main))
    git(shared.main, "worktree", "add", "-q", "-b", "fix", str(shared.fix))
    shared.commit(shared.main, "cart", with_line(20, "ours"))
    (shared.fix / "cart").write_text(with_line(20, "theirs"))
    assert shared.places() == [("cart", ((20, 20), (20, 20)), None)]


@pytest.mark.parametrize("index", ["--sparse-index", "--no-sparse-index"])
def test_files_that_a_sparse_checkout_leaves_out_are_not_deleted(
    tmp_path: Path, index: str
) -> None:
    pair = Pair(tmp_path, src__app=CART, docs__a=CART, docs__b__c=CART)
    git(pair.fix, "sparse-checkout", "set", "--cone", index, "src")
    assert not (pair.fix / "docs").exists()
    pair.commit(pair.main, "docs/a", with_line(20, "ours"))
    pair.commit(pair.main, "src/app", with_line(20, "ours"))
    (pair.fix / "src/app").write_text(with_line(20, "theirs"))
    assert pair.places() == [("src/app", ((20, 20), (20, 20)), None)]


def test_pointers_of_large_files_are_left_out(tmp_path: Path) -> None:
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"
    pair = Pair(
        tmp_path,
        **{".gitattributes": attributes, "a.bin": pointer.format("0" * 64, 1), "cart": CART},
    )
    pair.commit(pair.main, "a.bin", pointer.format("1" * 64, 2))
    pair.commit(pair.fix, "a.bin", pointer.format("2" * 64, 3))
    # as the filter would have checked it out
    (pair.fix / "a.bin").write_bytes(bytes(range(256)) * 100)
    assert pair.places() == []


def test_a_file_that_both_sides_renamed_conflicts_as_do_others(pair: Pair) -> None:
    for root, name in ((pair.main, "basket"), (pair.fix, "trolley")):
        git(root, "mv", "cart", name)
        pair.commit(root, "other", f"{name}\n")
    assert pair.places() == [("cart", ((0, 0), (0, 0)), None), ("other", ((1, 1), (1, 1)), None)]


def committed(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "change")


def test_a_new_file_in_a_folder_that_the_other_side_renamed_conflicts(tmp_path: Path) -> None:
    pair = Pair(tmp_path, dir__a=CART, dir__b=CART + "b\n")
    git(pair.main, "mv", "dir", "moved")
    committed(pair.main)
    (pair.fix / "dir/new").write_text("new\n")
    committed(pair.fix)
    assert [one.path for one in pair.conflicts()] == ["moved/new"]


def with_a_new_file_in_a_folder_that_was_split(root: Path) -> Pair:
    pair = Pair(root, dir__a=CART, dir__b=CART.upper(), other="1\n")
    for name, folder in (("a", "one"), ("b", "two")):
        (pair.main / folder).mkdir()
        git(pair.main, "mv", f"dir/{name}", f"{folder}/{name}")
    (pair.fix / "dir/new").write_text("new\n")
    return pair


def paths_that_git_does_not_merge(pair: Pair) -> list[str]:
    """Return the paths of the conflicts, for which git itself refuses to merge both sides."""
    for root in (pair.main, pair.fix):
        committed(root)
    with pytest.raises(AssertionError):
        git(pair.main, "merge", "--no-commit", "fix")
    git(pair.main, "reset", "-q", "--hard")
    return sorted([one.path for one in pair.conflicts()])


def test_a_new_file_in_a_folder_whose_files_went_to_several_others_conflicts(
    tmp_path: Path,
) -> None:
    pair = with_a_new_file_in_a_folder_that_was_split(tmp_path)
    assert paths_that_git_does_not_merge(pair) == ["dir"]


def test_a_split_folder_is_named_beside_a_file_that_does_not_merge_either(tmp_path: Path) -> None:
    pair = with_a_new_file_in_a_folder_that_was_split(tmp_path)
    for root in (pair.main, pair.fix):
        (root / "other").write_text(f"{root.name}\n")
    assert paths_that_git_does_not_merge(pair) == ["dir", "other"]


def test_a_split_folder_conflicts_beside_a_submodule_which_is_not_judged(tmp_path: Path) -> None:
    pair = with_a_new_file_in_a_folder_that_was_split(tmp_path)
    for root, digit in ((pair.main, "1"), (pair.fix, "2")):
        (root / "module").mkdir()
        committed(root)
        git(root, "update-index", "--add", "--cacheinfo", f"160000,{digit * 40},module")
    assert paths_that_git_does_not_merge(pair) == ["dir"]


def test_new_files_that_renamed_folders_bring_to_the_same_place_conflict(tmp_path: Path) -> None:
    folders = {
        f"{folder}__{name}": folder + name + CART
        for folder in ("dir", "other")
        for name in ("a", "b")
    }
    pair = Pair(tmp_path, **folders)
    (pair.main / "moved").mkdir()
    for folder in ("dir", "other"):
        for name in ("a", "b"):
            git(pair.main, "mv", f"{folder}/{name}", f"moved/{folder}-{name}")
        (pair.fix / folder / "new").write_text(f"{folder}\n")
    assert paths_that_git_does_not_merge(pair) == ["moved/new"]


@pytest.mark.parametrize("line_ends", ["false", "input", "true"])
def test_line_ends_are_renormalized_by_the_person_s_settings(
    tmp_path: Path, line_ends: str
) -> None:
    pair = Pair(tmp_path)
    git(pair.main, "config", "merge.renormalize", "true")
    (pair.main / "cart").write_bytes(CART.replace("\n", "\r\n").encode())
    committed(pair.main)
    pair.commit(pair.fix, "cart", with_line(20, "theirs"))
    git(pair.main, "config", "core.autocrlf", line_ends)
    merges, commits = Merges(f"{pair.main}/.git", pair.trial, 20), []
    for root in (pair.main, pair.fix):
        commits.append(git(root, "rev-parse", "HEAD"))
    pair.trial.mkdir()
    assert [one.path for one in merges.conflicts(*commits)] == (
        ["cart"] if line_ends == "false" else []
    )


def test_a_symlink_that_both_sides_changed_conflicts_without_lines(pair: Pair) -> None:
    for root, target in ((pair.main, "other"), (pair.fix, "cart")):
        (root / "link").symlink_to(target)
        committed(root)
    assert pair.places() == [("link", ((0, 0), (0, 0)), None)]


def test_a_file_that_the_other_side_made_a_folder_has_its_own_name(pair: Pair) -> None:
    (pair.main / "other").unlink()
    (pair.main / "other").mkdir()
    (pair.main / "other/inside").write_text(CART.upper())
    committed(pair.main)
    pair.commit(pair.fix, "other", "2\n")
    assert [one.path for one in pair.conflicts()] == ["other"]


def test_attributes_in_a_folder_count_for_its_files(tmp_path: Path) -> None:
    files = {
        ".gitattributes": "*.lock merge=binary\n",
        "sub__.gitattributes": "*.lock merge=union\n",
        "bin__.gitattributes": "*.txt -merge\n",
        "y.lock": "1\n",
        "sub__y.lock": "1\n",
        "bin__x.txt": CART,
    }
    pair = Pair(tmp_path, **files)
    for root, words in ((pair.main, "ours"), (pair.fix, "theirs")):
        for name in ("y.lock", "sub/y.lock"):
            (root / name).write_text(f"1\n{words}\n")
        (root / "bin/x.txt").write_text(with_line(3 if words == "ours" else 30, words))
        committed(root)
    assert sorted(one.path for one in pair.conflicts()) == ["bin/x.txt", "y.lock"]


def test_the_person_s_settings_decide_how_renamed_folders_merge(tmp_path: Path) -> None:
    pair = Pair(tmp_path, dir__a=CART, dir__b=CART + "b\n")
    git(pair.main, "mv", "dir", "moved")
    committed(pair.main)
    (pair.fix / "dir/new").write_text("new\n")
    committed(pair.fix)
    git(pair.main, "config", "merge.directoryRenames", "false")
    assert pair.conflicts() == []


def test_in_a_shallow_clone_without_the_ancestor_the_reason_is_told(
    pair: Pair, tmp_path: Path
) -> None:
    pair.commit(pair.main, "cart", with_line(1, "ours"))
    pair.commit(pair.fix, "cart", with_line(1, "theirs"))
    shallow = pair_at(tmp_path / "shallow", tmp_path / "shallow-fix", tmp_path / "trial2")
    git(
        tmp_path,
        "clone",
        "-q",
        "--depth",
        "1",
        "--no-single-branch",
        f"file://{pair.main}",
        str(shallow.main),
    )
    git(shallow.main, "worktree", "add", "-q", "-b", "fix", str(shallow.fix), "origin/fix")
    with pytest.raises(GitUnavailableError, match="shallow"):
        shallow.conflicts()


def objects_in(trial: Path) -> list[bytes]:
    """The contents of the objects that a trial merge made."""
    return [
        zlib.decompress(path.read_bytes())
        for path in (trial / "objects").rglob("*")
        if len(path.name) > 30
    ]


def test_of_uncommitted_files_only_those_that_the_other_side_changed_are_copied(
    tmp_path: Path,
) -> None:
    pair = Pair(tmp_path, **{f"file{number}": f"{number}\n" for number in range(20)})
    for number in range(15):
        (pair.main / f"file{number}").write_text(f"secret {number}\n")
    pair.commit(pair.fix, "file3", "theirs\n")
    (pair.fix / "file4").write_text("theirs too\n")
    pair.trial.mkdir()
    trees = [find_worktree(str(root)) for root in (pair.main, pair.fix)]
    assert trees[0]
    assert trees[1]
    merges = Merges(trees[0].common_dir, pair.trial, 20)
    heads = [
        (git(tree.root, "rev-parse", "HEAD"), {one.path for one in merges.changes_of(tree)})
        for tree in trees
    ]
    states = [
        merges.state_of(trees[at], merges.wanted(trees[at], [heads[1 - at]])) for at in (0, 1)
    ]
    assert sorted(one.path for one in merges.conflicts(*states)) == ["file3", "file4"]
    copied = {
        name for content in objects_in(pair.trial) for name in re.findall(rb"secret \d+", content)
    }
    assert copied == {b"secret 3", b"secret 4"}
    assert len(merges.changed(states[0], states[1])) == 15  # all count as changed


def test_a_file_renamed_without_a_commit_is_copied_if_the_other_side_changed_it(pair: Pair) -> None:
    git(pair.main, "mv", "cart", "basket")
    (pair.main / "basket").write_text(with_line(20, "ours"))
    pair.commit(pair.fix, "cart", with_line(20, "theirs"))
    pair.trial.mkdir()
    trees = [find_worktree(str(root)) for root in (pair.main, pair.fix)]
    assert trees[0]
    assert trees[1]
    merges = Merges(trees[0].common_dir, pair.trial, 20)
    fix = git(pair.fix, "rev-parse", "HEAD")
    state = merges.state_of(trees[0], merges.wanted(trees[0], [(fix, set())]))
    assert [(one.path, one.lines) for one in merges.conflicts(state, fix)] == [
        ("basket", ((20, 20), (20, 20)))
    ]


@pytest.mark.parametrize("is_changed", [False, True])
def test_files_that_pass_a_filter_do_not_conflict_by_what_is_in_the_worktree(
    tmp_path: Path, is_changed: bool
) -> None:
    pair = Pair(
        tmp_path, **{".gitattributes": "secret filter=rot13\n", "secret": "grkg\n", "cart": CART}
    )
    rot13 = "tr a-z n-za-m"
    git(pair.main, "config", "filter.rot13.clean", rot13)
    git(pair.main, "config", "filter.rot13.smudge", rot13)
    for root in (pair.main, pair.fix):
        (root / "secret").unlink()
        git(root, "checkout", "-q", "--", "secret")
        assert (root / "secret").read_text() == "text\n"
        os.utime(root / "secret", (1, 1))
    if is_changed:
        (pair.fix / "secret").write_text("texts\n")
    assert pair.places() == []


def test_copying_ends_with_the_time(tmp_path: Path) -> None:
    pair = Pair(tmp_path, cart=CART)
    (pair.main / "cart").write_text(with_line(20, "ours"))
    pair.trial.mkdir()
    tree = find_worktree(str(pair.main))
    assert tree
    merges = Merges(tree.common_dir, pair.trial, 20)
    merges.changes_of(tree)
    merges._end = 0.0
    with pytest.raises(GitUnavailableError, match="not done within"):
        merges.state_of(tree)


def test_a_file_with_crlf_in_the_repository_conflicts_at_its_lines(tmp_path: Path) -> None:
    windows = CART.replace("\n", "\r\n")
    pair = Pair(tmp_path, **{".gitattributes": "cart -text\n", "other": "1\n"})
    (pair.main / "cart").write_bytes(windows.encode())
    git(pair.main, "add", "-A")
    git(pair.main, "commit", "-q", "-m", "cart")
    git(pair.fix, "merge", "-q", "main")
    for root, words in ((pair.main, "ours"), (pair.fix, "theirs")):
        (root / "cart").write_bytes(windows.replace("line 20\r", f"{words}\r").encode())
    assert pair.places() == [("cart", ((20, 20), (20, 20)), None)]


def test_a_worktree_amid_a_merge_is_judged_by_its_files_as_they_are(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    pair.commit(pair.fix, "cart", with_line(20, "theirs"))
    with pytest.raises(AssertionError):
        git(pair.fix, "merge", "-q", "main")
    assert "<<<<<<<" in (pair.fix / "cart").read_text()
    assert pair.places() == [("cart", ((20, 20), (20, 24)), None)]


def test_what_is_no_file_any_more_is_not_read(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(20, "ours"))
    (pair.main / "other").unlink()
    os.mkfifo(pair.main / "other")  # opening it would wait for ever
    (pair.fix / "cart").unlink()
    (pair.fix / "cart").symlink_to("other")
    (pair.fix / "other").write_text("2\n")
    assert [one.path for one in pair.conflicts()] == ["cart"]


def test_a_broken_ref_elsewhere_does_no_harm(pair: Pair) -> None:
    (pair.main / ".git/refs/heads/bad").write_text("broken\n")
    (pair.main / "cart").write_text(with_line(20, "ours"))
    (pair.fix / "cart").write_text(with_line(20, "theirs"))
    assert pair.places() == [("cart", ((20, 20), (20, 20)), None)]


def test_a_repository_of_tens_of_thousands_of_files_is_judged(tmp_path: Path) -> None:
    main, fix = tmp_path / "main", tmp_path / "fix"
    main.mkdir()
    git(main, "init", "-q", "-b", "main")
    one = git(main, "hash-object", "-w", str(repository(tmp_path / "r", cart=CART) / "cart"))
    (tmp_path / "names").write_text(
        "".join(f"100644 {one}\td{n % 250}/f{n}\n" for n in range(some(50_000)))
    )
    command = ["sh", "-c", f"git update-index --index-info < {tmp_path}/names"]
    subprocess.run(command, cwd=main, env=GIT_ENVIRONMENT, check=True)
    git(main, "commit", "-q", "-m", "begin")
    git(main, "worktree", "add", "-q", "-b", "fix", str(fix))
    git(main, "reset", "-q", "--hard")
    (main / "d7/f7").write_text(with_line(20, "ours"))
    (fix / "d7/f7").write_text(with_line(20, "theirs"))
    (fix / "d9/f9").unlink()
    assert pair_at(main, fix, tmp_path / "trial").places() == [
        ("d7/f7", ((20, 20), (20, 20)), None)
    ]


def test_all_hunks_that_clash_are_found_and_no_others(pair: Pair) -> None:
    pair.commit(pair.main, "cart", with_line(5, "a", with_line(15, "b", with_line(25, "c"))))
    pair.commit(pair.fix, "cart", with_line(5, "x", with_line(25, "z\nmore", with_line(35, "w"))))
    assert [one.hunks for one in pair.conflicts()] == [(((5, 5), (5, 5)), ((25, 25), (25, 26)))]


def test_of_very_many_hunks_the_first_are_kept(pair: Pair, tmp_path: Path) -> None:
    long = "".join(f"line {number}\n" for number in range(1, 400))
    many = Pair(tmp_path / "many", cart=long)
    for root, words in ((many.main, "ours"), (many.fix, "theirs")):
        text = long
        for number in range(3, 390, 5):
            text = text.replace(f"line {number}\n", f"{words} {number}\n")
        (root / "cart").write_text(text)
    [found] = many.conflicts()
    assert len(found.hunks) == MOST_HUNKS
    assert found.hunks[1] == ((8, 8), (8, 8))


@pytest.mark.parametrize("seed", range(8))
def test_git_before_2_38_finds_the_same_conflicts_but_for_renames(
    tmp_path: Path, seed: int
) -> None:
    chance = Random(seed)
    pair = Pair(tmp_path, **{f"file{number}": CART for number in range(6)})
    for root in (pair.main, pair.fix):
        for path in sorted(root.glob("file*")):
            lines = CART.splitlines(keepends=True)
            for _ in range(chance.randrange(4)):
                at = chance.randrange(40)
                lines[at : at + chance.randrange(3)] = [
                    f"{chance.randrange(3)} {at}\n"
                ] * chance.randrange(3)
            path.write_text("".join(lines)) if chance.random() < 0.9 else path.unlink()
        (root / "new").write_text(f"{chance.randrange(2)}\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "change")
    commits = [git(root, "rev-parse", "HEAD") for root in (pair.main, pair.fix)]
    found = []
    for number, kind in enumerate((Merges, OlderGit)):
        (trial := tmp_path / f"trial{number}").mkdir()
        found.append(kind(str(pair.main / ".git"), trial, 20).conflicts(*commits))
    assert found[0] == found[1]
    assert found[0]
