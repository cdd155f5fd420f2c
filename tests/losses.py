"""Git commands of one session that lose work of another session, and the remedies.

A cell is a command, the place where it runs, and the state of the victim's work. It loses work if a
line was in the victim's worktree, index, stash or commits, and afterwards is in no worktree, index,
branch, tag, stash or remote. For each such cell the table has three answers: whether the person is
asked before (`collisions: ask`), which line the victim gets, and how `rescue` brings the work back.

    python -m tests.losses    # plays all and writes docs/measured/lost-work.md; about six minutes
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bench.clones import GIT, Clone
from session_memory.awareness.activity._approval import ObjectionSearch
from session_memory.sessions.settings.compiled import Settings

PAGE = Path(__file__).parents[1] / "docs" / "measured" / "lost-work.md"
MARK = "a line that nobody else has"
COMMANDS = (
    "git stash -q",
    "git stash -q -u",
    "git stash -q -a",
    "git stash pop -q",
    "git stash apply -q",
    "git stash drop -q",
    "git stash clear",
    "git stash branch mine",
    "git worktree remove --force {victim}",
    "git worktree move {victim} ../moved",
    "rm -rf {victim} && git worktree prune",
    "rm -rf {victim} && git worktree add -f -q -b fresh {victim}",
    "git branch -q -d work",
    "git branch -q -D work",
    "git branch -f work main",
    "git branch -m work other-name",
    "git branch new main && git branch -M new work",
    "git reset -q",
    "git reset -q --hard",
    "git reset -q --hard HEAD~1",
    "git checkout -q -f",
    "git checkout -q -- .",
    "git checkout -q -B work main",
    "git switch -q -f main",
    "git switch -q -C work main",
    "git switch -q -f -c side main",
    "git restore .",
    "git restore --staged --worktree .",
    "git clean -q -fd",
    "git clean -q -fdx",
    "git rebase -q main",
    "git rebase -q --onto main HEAD",
    "git commit -q -m mine",
    "git commit -q -a -m mine",
    "git commit -q --amend --no-edit",
    "git add -A && git commit -q --amend --no-edit",
    "git merge -q main",
    "git push -q --force . main:work",
    "git push -q --force origin main:work",
    "git push -q . --delete work",
    "git tag mark && git tag -d mark",
    "git update-ref -d refs/heads/work",
    "git update-ref refs/heads/work main",
    "git update-ref -d refs/stash",
    "git read-tree HEAD",
    "git read-tree -u --reset HEAD",
    "git checkout-index -f -a",
    "git diff | git apply -R",
    "git diff HEAD | git apply -R --index",
    "git rm -q -f src/app.py",
    "git rm -q -r -f .",
    "git sparse-checkout set docs",
    "git submodule -q update --force",
    "git submodule -q deinit -f --all",
    "git submodule -q foreach git reset -q --hard",
    "git submodule -q foreach git clean -q -fdx",
    "git rm -q -f sub",
    "git clean -q -ffdx",
    "git reset -q --hard --recurse-submodules",
    "git checkout -q -f --recurse-submodules",
    "git status",
)
PLACES = (
    "same clone",
    "sibling worktree",
    "sibling with -C",
    "common directory",
    "another clone",
    "submodule",
)
STATES = ("uncommitted", "staged", "stashed", "commit", "branch", "untracked", "ignored")
NOTES = {
    "same clone": "both sessions in one worktree",
    "sibling worktree": "the command runs in a linked worktree, the victim is in the clone",
    "sibling with -C": "the same, with `git -C` and the victim's worktree",
    "common directory": "the command runs in the clone, the victim is in a linked worktree",
    "another clone": "the command runs in another clone of the same origin",
    "submodule": "the command runs in the superproject, the victim is in its submodule",
    "uncommitted": "an edited file",
    "staged": "an edited file, added",
    "stashed": "a stash",
    "commit": "a commit on the branch `work`, which is checked out and not pushed",
    "branch": "the same, and the victim has left the branch",
    "untracked": "a new file",
    "ignored": "a new file that `.gitignore` names",
}


class Cell(NamedTuple):
    command: str
    place: str
    state: str


class Loss(NamedTuple):
    """A cell that loses work: if the person is asked, the line that the victim gets ('' for none),
    and the kind of work that `rescue` brings back ('' for none)."""

    cell: Cell
    is_asked: bool
    line: str
    rescued: str

    @property
    def row(self) -> str:
        """The row of the table."""
        command, place, state = self.cell
        escaped = command.replace("|", "\\|")
        fields = (
            f"`{escaped}`",
            place,
            state,
            "yes" if self.is_asked else "-",
            f"`{self.line}`" if self.line else "-",
            f"{self.rescued or '-'}.",
        )
        return f"| {' | '.join(fields)} |"


def cells() -> list[Cell]:
    return [
        Cell(command, place, state)
        for place in PLACES
        for state in STATES
        for command in COMMANDS
        if ("rm -rf" not in command or place == "common directory")
        and (place == "submodule") >= ("submodule" in command or command.endswith(" sub"))
    ]


class Stage:
    """The victim's work in a state, and a culprit at a place, below `root`: built once, and put
    back for each command."""

    def __init__(self, root: Path, place: str, state: str) -> None:
        self._scene, self._copy = root / "scene", root / "copy"
        self.clone = Clone(self._scene)
        self._set_up(
            "git init -q --bare -b main ../origin.git && git remote add origin ../origin.git &&"
            " echo ignored/ >.gitignore && git add -A && git commit -q -m ignore &&"
            " git push -q origin main && git branch spare"
        )
        self.victim_root, self.culprit_root = self._roots(place)
        for root in {self.victim_root, self.culprit_root}:
            # a file that is put back has another inode, and git would take it for changed
            self._set_up(f"git -C {root} config core.checkStat minimal")
        # who works in a submodule has mostly begun in the superproject
        begun_in = self.culprit_root if place == "submodule" else self.victim_root
        self.victim = self.clone.session("victim", begun_in, self.victim_root)
        self.culprit = self.clone.session("culprit", self.culprit_root)
        self.is_by_option = place.endswith("-C")
        self._work(state)
        for session in (self.victim, self.culprit, self.victim):
            session.prompt()
        assert self._is_there(), (place, state)
        shutil.copytree(self._scene, self._copy, symlinks=True)
        self._now, self._last = self.clone.now, [actor._last for actor in self.clone.sessions]

    def _set_up(self, command: str) -> None:
        assert self.clone.shell(command) == 0, command

    def _roots(self, place: str) -> tuple[Path, Path]:
        clone, beside = self.clone.root, self._scene / "wt"
        if place == "same clone":
            return clone, clone
        if place == "another clone":
            self._set_up("git clone -q ../origin.git ../wt")
            return clone, beside
        if place == "submodule":
            self._set_up(
                "git init -q -b main ../super && cd ../super && git -c protocol.file.allow=always"
                f" submodule add -q {self._scene}/origin.git sub && git commit -q -m sub &&"
                " git branch spare"
            )
            return self._scene / "super" / "sub", self._scene / "super"
        self._set_up("git worktree add -q ../wt -b wt")
        return (beside, clone) if place == "common directory" else (clone, beside)

    def _work(self, state: str) -> None:
        line, victim = f"{MARK}\n", self.victim
        if state in ("untracked", "ignored"):
            victim.write("ignored/new.py" if state == "ignored" else "src/new.py", line)
            return
        directory = f"cd {self.victim_root} && "
        if state in ("commit", "branch"):
            victim.bash(f"{directory}git switch -q -c work")
        victim.edit("src/app.py", line)
        for command in {
            "staged": ["git add src/app.py"],
            "stashed": ["git stash -q"],
            "commit": ["git commit -q -a -m work"],
            "branch": ["git commit -q -a -m work", "git switch -q -"],
        }.get(state, []):
            victim.bash(directory + command)

    def play(self, cell: Cell) -> Loss | None:
        """Run the command of a cell; None if it loses nothing."""
        _put_back(self._copy, self._scene)
        self.clone.now = self._now
        for actor, last in zip(self.clone.sessions, self._last):
            actor._last = last
        command = cell.command.replace("{victim}", self._victim_path)
        if self.is_by_option:
            command = re.sub(r"\bgit (?!-C)", f"git -C {self._victim_path} ", command)
        is_asked = self._asks(command)
        self.culprit.bash(command)
        if self._is_there():
            return None
        self.clone.now += 60
        lines = [line for line in self.victim.prompt().split("\n") if line.startswith("! ")]
        return Loss(cell, is_asked, _normal(" ".join(lines)), self._rescued())

    @property
    def _victim_path(self) -> str:
        return os.path.relpath(self.victim_root, self.culprit_root)

    def _asks(self, command: str) -> bool:
        settings = Settings({})
        search = ObjectionSearch(
            self.culprit._own, self.culprit._others, settings, self.clone.now + 1
        )
        return search.of_command(command, str(self.culprit_root)) is not None

    def _is_there(self) -> bool:
        mark = MARK.encode()
        for directory, folders, names in os.walk(self._scene):
            if directory == str(self._scene):
                folders[:] = [name for name in folders if name in ("clone", "wt", "super", "moved")]
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                if mark in Path(directory, name).read_bytes():
                    return True
        places = ("clone/.git", "origin.git", "wt/.git", "super/.git", "super/.git/modules/sub")
        return any(_holds(self._scene / place, mark) for place in places)

    def _rescued(self) -> str:
        """Return the kind of the lost work that `rescue` lists with the line."""
        from tests.own_process import plain_environment, run_here

        environment = {
            **plain_environment(self._scene),
            "SESSION_MEMORY_DIR": str(self._scene / "place"),
        }
        where = self.victim_root if self.victim_root.is_dir() else self.culprit_root
        done = run_here(["rescue", "--json", "--session", "victim"], environment, where)
        if done.returncode:
            return ""
        kinds = [
            each["kind"] for each in json.loads(done.stdout)["rescuable"] if MARK in each["diff"]
        ]
        return (
            {"text": "text of the edit", "file": "staged file"}.get(kinds[0], kinds[0])
            if kinds
            else ""
        )


def play(wanted: Iterable[Cell]) -> list[Loss]:
    """Return the losses among these cells, in the order of `cells`."""
    losses = []
    by_stage: dict[tuple[str, str], list[Cell]] = {}
    for cell in wanted:
        by_stage.setdefault((cell.place, cell.state), []).append(cell)
    for (place, state), group in by_stage.items():
        with tempfile.TemporaryDirectory(prefix="session-memory-losses-") as root:
            stage = Stage(Path(root).resolve(), place, state)
            losses += [loss for cell in group if (loss := stage.play(cell))]
    return losses


def page(losses: list[Loss], count: int) -> str:
    """Return the page with all losses of so many cells."""
    questions = sum(loss.is_asked for loss in losses)
    lines = sum(bool(loss.line) for loss in losses)
    silent = sum(not (loss.is_asked or loss.line or loss.rescued) for loss in losses)
    kinds = Counter(loss.rescued for loss in losses if loss.rescued)
    by_kind = ", ".join(f"{kinds[kind]} {kind}" for kind in sorted(kinds))
    notes = "\n".join(f"- *{name}*: {note}" for name, note in NOTES.items())
    rows = "\n".join(loss.row for loss in losses)
    return f"""# Lost work

Which git commands of one session lose another session's work, and does session-memory bring it back?
Two sessions share a repository. One runs a git command; the other, the victim, has work there.
`python -m tests.losses` plays {count:,} cells with real git: {len(COMMANDS)} commands, {len(PLACES)} places,
{len(STATES)} states of the work. It writes this page.

Each cell is one command in one place, with the victim's work in one state. It loses work if a line was in
the victim's worktree, index, stash or commits before, and is in no worktree, index, branch, stash or remote
afterwards.

- cells that lose work: {len(losses)}
- asked before, with `collisions: ask`: {questions}
- told with the victim's next prompt: {lines}
- brought back by `rescue`: {kinds.total()} ({by_kind})
- neither asked, told nor brought back: {silent}

A *text of the edit* comes from the session's transcript, because the text was never in git. It is not the whole file.

Places and states:

{notes}

## Cells that lose work

| Command | Place | State | Asked | Told | `rescue` brings back |
|---|---|---|---|---|---|
{rows}
"""


def _put_back(copy: Path, place: Path) -> None:
    """Make a directory equal to its copy. Only what differs by size, time or kind is removed and
    copied again: a git command changes little of a repository."""
    there = {entry.name: entry for entry in os.scandir(place)}
    wanted = {entry.name: entry for entry in os.scandir(copy)}
    for name, entry in there.items():
        if name not in wanted or _kind_of(entry) != _kind_of(wanted[name]):
            path = place / name
            shutil.rmtree(path) if entry.is_dir(follow_symlinks=False) else path.unlink()
            continue
        if entry.is_dir(follow_symlinks=False):
            _put_back(copy / name, place / name)
        del wanted[name]
    for name, entry in wanted.items():
        if entry.is_dir(follow_symlinks=False):
            shutil.copytree(copy / name, place / name, symlinks=True)
        else:
            shutil.copy2(copy / name, place / name, follow_symlinks=False)


def _kind_of(entry: os.DirEntry[str]) -> tuple[int, ...]:
    """Return what tells if a file was changed; of a directory only that it is one."""
    found = entry.stat(follow_symlinks=False)
    if entry.is_dir(follow_symlinks=False):
        return (found.st_mode,)
    return found.st_mode, found.st_size, found.st_mtime_ns


def _holds(git_dir: Path, mark: bytes) -> bool:
    """Check if the refs, stashes, indexes and HEADs of a repository lead to a file with the mark."""
    if not git_dir.is_dir():
        return False
    log = git_dir / "logs/refs/stash"
    stashes = [line.split()[1] for line in log.read_text().splitlines()] if log.is_file() else []
    options = ("--objects", "--no-object-names", "--all", "--indexed-objects")
    # a submodule's may name a worktree that is gone
    git = ["git", f"--git-dir={git_dir}", f"--work-tree={git_dir}"]
    listed = subprocess.run(
        [*git, "rev-list", *options, *stashes], env=GIT, capture_output=True, check=False
    )
    objects = subprocess.run(
        [*git, "cat-file", "--batch"],
        env=GIT,
        input=listed.stdout,
        capture_output=True,
        check=False,
    )
    return mark in objects.stdout


def _normal(text: str) -> str:
    """Return the lines with the same ids in each run."""
    return re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b", "ID", text).replace("`", "'")


if __name__ == "__main__":
    every = cells()
    PAGE.write_text(page(play(every), len(every)))
