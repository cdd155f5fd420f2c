"""A trial merge says the same as `git merge`, both ways: random histories with renames, folders,
symlinks, attributes, line ends, binary and long files, submodules, and several common ancestors."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import share
from git_scene import GIT_ENVIRONMENT, git, repository

from session_memory.history.git.merges import Merges

LINES = 12
ATTRIBUTES = (
    "*.lock merge=union",
    "*.lock -merge",
    "*.txt merge=binary",
    "*.txt text",
    "* merge=union",
    "*.lock merge",
    "* text=auto",
    "*.txt eol=crlf",
    "*.lock eol=lf",
    "*.lock binary",
    "*.txt conflict-marker-size=3",
)
SETTINGS = (
    "merge.renormalize=true",
    "core.autocrlf=input",
    "core.autocrlf=true",
    "merge.directoryRenames=true",
    "merge.directoryRenames=false",
    "merge.renames=false",
    "diff.renames=copies",
    "diff.renameLimit=1",
    "merge.ff=false",
    "merge.conflictStyle=diff3",
    "diff.algorithm=histogram",
    "core.fileMode=false",
)


def text(chance: Random, lines: list[str]) -> str:
    """The lines with one or two changed, added or removed."""
    lines = list(lines)
    for _ in range(chance.randrange(1, 3)):
        at = chance.randrange(len(lines) + 1)
        lines[at : at + chance.randrange(2)] = [
            f"{chance.randrange(3)} at {at}"
        ] * chance.randrange(3)
    return "".join(f"{line}\n" for line in lines)


class Side:
    """One side of a history, which changes its worktree."""

    def __init__(self, root: Path, chance: Random) -> None:
        self.root = root
        self.chance = chance

    def paths(self) -> list[Path]:
        found = [path for path in sorted(self.root.rglob("*")) if ".git" not in path.parts]
        return [path for path in found if path.is_symlink() or path.is_file()]

    def folders(self) -> list[Path]:
        return [
            path for path in sorted(self.root.iterdir()) if path.is_dir() and path.name != ".git"
        ]

    def edit(self) -> None:
        files = [
            path for path in self.paths() if not path.is_symlink() and path.name != ".gitattributes"
        ]
        if files:
            path = self.chance.choice(files)
            path.write_text(text(self.chance, path.read_text().splitlines()))

    def rename(self) -> None:
        path = self.chance.choice(self.paths())
        new = (
            self.chance.choice([self.root, *self.folders()])
            / f"renamed-{self.chance.randrange(2)}.txt"
        )
        if not new.exists() and not new.is_symlink():
            path.rename(new)

    def rename_folder(self) -> None:
        if folders := self.folders():
            folder = self.chance.choice(folders)
            new = self.root / f"moved-{self.chance.randrange(2)}"
            if not new.exists():
                folder.rename(new)

    def add(self) -> None:
        path = (
            self.chance.choice([self.root, *self.folders()])
            / f"new-{self.chance.randrange(2)}.lock"
        )
        path.write_text(text(self.chance, []))

    def delete(self) -> None:
        self.chance.choice(self.paths()).unlink()

    def link(self) -> None:
        path = self.root / self.chance.choice(("link", "link", "a.txt"))
        if path.is_dir() and not path.is_symlink():
            return
        path.unlink(missing_ok=True)
        path.symlink_to(f"target-{self.chance.randrange(3)}")

    def exchange_folder_and_file(self) -> None:
        if self.folders() and self.chance.random() < 0.5:
            folder = self.chance.choice(self.folders())
            shutil.rmtree(folder)
            folder.write_text("a file now\n")
        else:
            path = self.chance.choice(self.paths())
            path.unlink()
            path.mkdir()
            (path / "inside").write_text(text(self.chance, []))

    def set_attributes(self) -> None:
        folder = self.chance.choice([self.root, *self.folders()])
        (folder / ".gitattributes").write_text(self.chance.choice(ATTRIBUTES) + "\n")

    def change_line_ends(self) -> None:
        files = [
            path for path in self.paths() if not path.is_symlink() and path.name != ".gitattributes"
        ]
        if files:
            path = self.chance.choice(files)
            content = path.read_bytes().replace(b"\r\n", b"\n")
            path.write_bytes(
                content.replace(b"\n", b"\r\n") if self.chance.random() < 0.7 else content
            )

    def write_binary(self) -> None:
        path = self.chance.choice([self.root, *self.folders()]) / "binary.txt"
        if not path.is_dir():
            path.write_bytes(b"\0" + bytes([self.chance.randrange(3)]) * 100)

    def write_long(self) -> None:
        path = self.root / "long.txt"
        if not path.is_dir():
            lines = [f"line {number}" for number in range(20_000)]
            lines[self.chance.randrange(3) * 9_000] = f"changed {self.chance.randrange(2)}"
            path.write_text("\n".join(lines) + "\n")

    def change_mode(self) -> None:
        files = [path for path in self.paths() if not path.is_symlink()]
        if files:
            self.chance.choice(files).chmod(0o755)

    def go_on(self) -> None:
        ways: list[Callable[[], None]] = [
            self.edit,
            self.edit,
            self.edit,
            self.rename,
            self.rename_folder,
            self.add,
            self.delete,
            self.link,
            self.exchange_folder_and_file,
            self.set_attributes,
            self.change_mode,
            self.change_line_ends,
            self.write_binary,
            self.write_long,
        ]
        for _ in range(self.chance.randrange(1, 5)):
            if self.paths():
                self.chance.choice(ways)()
        git(self.root, "add", "-A")
        if self.chance.random() < 0.2 and not (self.root / "module").exists():
            commit = f"{self.chance.randrange(1, 4)}" * 40
            git(self.root, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
            (self.root / "module").mkdir()
        git(self.root, "commit", "-q", "--allow-empty", "-m", "change")


def merged_by_git(root: Path, other: str) -> tuple[int, set[str], str]:
    """Return what `git merge` exits with, the files that it leaves in conflict, and its words."""
    done = subprocess.run(
        ["git", "merge", "--no-edit", other],
        cwd=root,
        env=GIT_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode < 0:
        return done.returncode, set(), done.stderr
    unmerged = git(root, "ls-files", "-u", "-z").split("\0")
    paths = {
        re.sub(r"~(HEAD|side|main)(_\d+)?$", "", line.partition("\t")[2])
        for line in unmerged
        if line
    }
    git(root, "reset", "-q", "--hard")
    git(root, "clean", "-q", "-f", "-d", "-x")
    return done.returncode, paths, done.stdout + done.stderr


def folders_in(words: str) -> set[str]:
    """Return the folders, and files in renamed ones, for which git refused a merge though it left
    no file unmerged."""
    return set(
        re.findall(
            r"^CONFLICT .*: (?:Unclear where to rename|Cannot map more than one path to|Existing file/dir at) ([^ ;]+)",
            words,
            re.M,
        )
    )


def cross(root: Path, side: Path) -> None:
    """Merge the first change of each side into the other: the sides have two common ancestors
    then."""
    tips = [git(place, "rev-parse", "HEAD") for place in (side, root)]
    for place, tip in zip((root, side), tips):
        merge = ["git", "merge", "-q", "--no-edit", "-X", "ours", tip]
        done = subprocess.run(
            merge, cwd=place, env=GIT_ENVIRONMENT, capture_output=True, check=False
        )
        if done.returncode:
            # if git crashed
            (place / git(place, "rev-parse", "--git-path", "index.lock")).unlink(missing_ok=True)
            git(place, "reset", "-q", "--hard")
            git(place, "clean", "-q", "-f", "-d", "-x")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with which each history begins."""
    whole = "".join(f"line {number}\n" for number in range(LINES))
    names = [f"{folder}{name}" for folder in ("", "x__", "y__") for name in ("a.txt", "b.lock")]
    files = {name: whole + name.rpartition("__")[2] for name in names}
    root = repository(tmp_path_factory.mktemp("begun") / "main", **files)
    (root / "link").symlink_to("target")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "link")
    return root


@pytest.mark.parametrize("number", range(share.some(300, 12)))
def test_random_histories_merge_as_in_git(begun: Path, tmp_path: Path, number: int) -> None:
    seed = f"{share.seed}-{number}"
    print(f"seed {seed}")
    chance = Random(seed)
    root, side = tmp_path / "main", tmp_path / "side"
    shutil.copytree(begun, root, symlinks=True)
    git(root, "worktree", "add", "-q", "-b", "side", str(side))
    if chance.random() < 0.4:
        for setting in chance.sample(SETTINGS, chance.randrange(1, 4)):
            git(root, "config", *setting.split("="))
    for place in (root, side):
        Side(place, chance).go_on()
    if chance.random() < 0.3:
        cross(root, side)
        for place in (root, side):
            Side(place, chance).go_on()
    for place, ours, theirs in ((root, "main", "side"), (side, "side", "main")):
        trial = tmp_path / f"trial-{ours}"
        trial.mkdir()
        commits = git(root, "rev-parse", ours, theirs).split()
        conflicts = Merges(f"{root}/.git", trial, 60).conflicts(*commits)
        paths = {conflict.path for conflict in conflicts}
        code, unmerged, words = merged_by_git(place, theirs)
        if code < 0:
            return  # git itself crashed, as git 2.39 may for a renamed folder that became a file
        git(place, "reset", "-q", "--hard", commits[0])
        if unmerged == {"module"} and not folders_in(words):
            # if submodules merge depends on what is checked out in them: they are not judged
            continue
        assert bool(paths) == (code != 0), (paths, words)
        assert folders_in(words) <= paths <= unmerged | folders_in(words), (paths, words)
