"""Histories of sessions that share a clone, with real git.

They record the events, the reports that each session should get, and the reports that it gets.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from random import Random
from typing import NamedTuple

import yaml

from session_memory.awareness.activity.collisions.facts import ACTIVE_SECONDS

from .clones import FILES, Actor, Clone, git, unique

STEPS = 24
ROOM = 2000  # characters: the reports are judged here, not how much of them fits
KINDS = ("edited by a tool", "edited by a command", "taken by git", "HEAD", "with the later edit")
COMMIT = 40  # characters
NAMES = ("main", "discord", "email", "cron")
COMMANDS: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("commands.yaml").read_text()
)


class Change(NamedTuple):
    """A change of a file by a session, or by a person (''). `is_gone` means that it was deleted."""

    who: str
    time: float
    kind: str
    is_gone: bool = False


class Truth:
    """The reports that one session should get, and further ones that are not false."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.touched: dict[str, float] = {}
        self.seemed: dict[str, float] = {}  # when it looks as if it had touched a file
        self.content: dict[str, str | None] = {}  # of each file as this session left or saw it
        self.edited: dict[str, float] = {}
        self.read: dict[str, float] = {}
        self.heard = actor.clone.now
        self.branch = "main"
        # who and what, with the own touch that it was about
        self.told: dict[tuple[str, str], float] = {}
        self.told_with_edits: dict[tuple[str, str], float] = {}  # who and what, and when
        self.taken: dict[tuple[str, str], float] = {}  # path and who, with the own edit
        # the same: first staged, then committed, it is told once
        self.told_taken: dict[tuple[str, str], float] = {}
        self.ever_taken: set[tuple[str, str]] = set()
        self.moved_by: str | None = None


class History:
    """One history: steps of sessions and of a person; counts of due, made and false reports."""

    files: tuple[str, ...] = FILES

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.clone = Clone(root, self.files)
        self.changes: dict[tuple[Path, str], list[Change]] = {}
        self.committed: dict[tuple[Path, str], float] = {}  # when a commit took the file in last
        self.active: dict[str, float] = {}  # when a session did something last
        self.due: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.false: Counter[str] = Counter()
        self.log: list[str] = []
        actors = self.begin(NAMES[: self.chance.randrange(2, 5)])
        self.truths = {actor.name: Truth(actor) for actor in actors}

    def begin(self, names: tuple[str, ...]) -> list[Actor]:
        """The sessions with these names."""
        return [self.clone.session(name) for name in names]

    def run(self) -> None:
        """Plays the history to its end, at which every session has a prompt."""
        for _ in range(STEPS):
            self.clone.now += self.chance.randrange(3, 240)
            self.step(self.chance.choice(list(self.truths.values())))
        for truth in self.truths.values():
            self.clone.now += 60
            self._prompt(truth)

    def step(self, truth: Truth) -> None:
        """Something that a session or a person does."""
        actor, chance = truth.actor, self.chance
        self.active[actor.name] = self.clone.now
        name = chance.choice(self.files)
        kind = chance.random()
        self.log.append(f"{self.clone.now:.0f} {actor.name} {kind:.2f} {name}")
        if kind < 0.20:
            self._prompt(truth)
        elif kind < 0.40:
            self.read(truth, name, name)
        elif kind < 0.60:
            if (actor.root / name).exists():
                self._edit_begins(truth, name)
                actor.edit(name, unique(chance))
                self.changed(truth, name, KINDS[0])
        elif kind < 0.63:
            actor.edit(name, unique(chance), fails=True)
        elif kind < 0.67:
            self._edit_begins(truth, name)
            actor.write(name, unique(chance))
            self.changed(truth, name, KINDS[0])
        elif kind < 0.77:
            self.shell_edit(truth, name)
        elif kind < 0.80:
            self._switch(f"b{chance.randrange(3)}", None)
        elif kind < 0.87:
            self._switch(f"b{chance.randrange(3)}", truth)
        else:
            self.git(truth, chance.choice(COMMANDS["git"]).format(name=name))

    def read(self, truth: Truth, name: str, spelt: str) -> None:
        """A session reads a file, by any of its names."""
        truth.read[name] = self.clone.now
        truth.actor.read(spelt)
        self.touched(truth, name)

    def touched(self, truth: Truth, name: str) -> None:
        """A session has seen a file."""
        truth.touched[name] = self.clone.now
        truth.content[name] = self.text(truth, name)

    def changed(self, truth: Truth, name: str, kind: str) -> None:
        self.changes_of(truth, name).append(
            Change(truth.actor.name, self.clone.now, kind, self.text(truth, name) is None)
        )
        if kind not in KINDS:  # nobody can see it
            return
        self.touched(truth, name)
        truth.edited[name] = self.clone.now
        for key in [key for key in truth.taken if key[0] == name]:
            del truth.taken[key]  # it edited the file again, having seen it

    def shell_edit(self, truth: Truth, name: str) -> None:
        """An edit by a command that shows."""
        text = unique(self.chance).strip()
        directory, _, base = name.rpartition("/")
        form = self.chance.choice(COMMANDS["edits"])
        command = form.format(
            text=text, start=text[:9], name=name, directory=directory or ".", base=base
        )
        before = self.text(truth, name)
        truth.actor.bash(command)
        if self.text(truth, name) != before:
            self.changed(truth, name, KINDS[1])
        elif before is not None:
            truth.touched[name] = self.clone.now  # it ran, and is taken for an edit

    def _switch(self, branch: str, truth: Truth | None) -> None:
        is_new = git(self.clone.root, "rev-parse", "-q", "--verify", branch) is None
        command = (
            f"git {self.chance.choice(('switch', 'checkout'))} -q {'-c ' if is_new else ''}{branch}"
        )
        command = command.replace("checkout -q -c", "checkout -q -b")
        before = self.branch(self.clone.root)
        if truth is None:
            self.clone.shell(command)
            self.clone.now += 1
            self.moved(self.clone.root, before, None)
        else:
            self.git(truth, command)
            if branch == before:  # it asked for it, and so knows
                truth.branch, truth.moved_by = before, None

    def moved(self, root: Path, before: str, truth: Truth | None) -> None:
        """Notes who moved HEAD, if it was moved; None for a person."""
        branch = self.branch(root)
        if len(branch) == len(before) == COMMIT and truth is not None:  # it committed
            if truth.branch == before:
                truth.branch = branch
        elif branch != before:
            for other in self.truths.values():
                if other.actor.root == root:
                    other.moved_by = None if other is truth else truth.actor.name if truth else ""
            if truth is not None and truth.actor.root == root:
                truth.branch = branch

    def git(self, truth: Truth, command: str) -> None:
        """Run a git command and record the work of others that it took.

        This is found by comparing git and the disk before and after."""
        root = truth.actor.root
        head_before = self.branch(root)
        before = {
            name: (self.text(truth, name), self._in_head(truth, name), self._in_index(truth, name))
            for name in self.files
        }
        self.log.append(command)
        truth.actor.bash(command)
        self.moved(root, head_before, truth)
        for name in self.files:
            text, head, staged = (
                self.text(truth, name),
                self._in_head(truth, name),
                self._in_index(truth, name),
            )
            was_text, was_head, was_staged = before[name]
            if "commit" in command and head != was_head:
                self.committed[root, name] = self.clone.now
            if text != was_text:  # its own doing
                truth.content.pop(name, None)
                truth.taken = {key: time for key, time in truth.taken.items() if key[0] != name}
            for other in self.truths.values():
                if other is truth or name not in other.edited or other.actor.root != root:
                    continue
                is_away = text != was_text and was_text != was_head
                is_in = (
                    text == was_text
                    and was_text != was_head
                    and ((head == text) or (staged == text and was_staged != text))
                )
                if is_away or is_in:
                    other.ever_taken.add((name, truth.actor.name))
                    if other.content.get(name) == was_text:
                        other.taken[name, truth.actor.name] = other.edited[name]

    def _prompt(self, truth: Truth) -> None:
        text = truth.actor.prompt(limit=ROOM)
        lines = [line for line in text.split("\n") if line.startswith("! ")]
        self._judge_head(truth, [line for line in lines if line.startswith(("! branch", "! HEAD"))])
        self._judge_taken(truth, [line for line in lines if "not committed" in line])
        # the truth knows no copies in other worktrees
        here = [line for line in lines if " in worktree " not in line]
        self._judge_edits(
            truth, [line for line in here if ": edited " in line or ": removed " in line]
        )
        truth.heard = self.clone.now
        truth.branch, truth.moved_by = self.branch(truth.actor.root), None
        self.log.append(f"{self.clone.now:.0f} {truth.actor.name} is told {lines}")

    def _edit_begins(self, truth: Truth, name: str) -> None:
        """Return the report with the result of an edit that a session is about to make."""
        text = truth.actor.before_edit(name)
        lines = [line for line in text.split("\n") if ": edited " in line]
        said = {pair for line in lines for pair in self.pairs(truth, line)}
        is_several = name in self._of_several(truth, lines)
        is_as_left = self.text(truth, name) == truth.content.get(name)
        for other in self.truths:
            done = [
                change
                for change in self.changes_of(truth, name)
                if change.who == other != truth.actor.name
            ]
            later = [
                change for change in done if change.time > truth.heard and change.kind in KINDS
            ]
            touched = truth.touched.get(name, self.clone.now)
            later = [
                change
                for change in later
                if change.time > touched or self.is_in_hand(truth, name, change)
            ]
            known = max(
                truth.told.get((other, name), -1), truth.told_with_edits.get((other, name), -1)
            )
            if later and not is_as_left and known < later[-1].time:
                self.due[KINDS[4]] += 1
                is_said = is_several or (other, name) in said
                self.hits[KINDS[4]] += is_said
                if not is_said:
                    self.log.append(
                        f"MISSED {truth.actor.name}: with the edit {other} {name} {later[-1]}"
                    )
            if (other, name) in said:
                self.told[KINDS[4]] += 1
                self.false[KINDS[4]] += not done
            if is_several or (other, name) in said:
                truth.told_with_edits[other, name] = self.clone.now
        self.log.append(
            f"{self.clone.now:.0f} {truth.actor.name} is told with an edit of {name}: {text!r}"
        )

    def _judge_edits(self, truth: Truth, lines: list[str]) -> None:
        said = {(who, name): line for line in lines for who, name in self.pairs(truth, line)}
        several = self._of_several(truth, lines)
        for name, touched in truth.touched.items():
            for other in self.truths:
                later = [
                    change
                    for change in self.changes_of(truth, name)
                    if change.who == other != truth.actor.name and change.time > truth.heard
                ]
                later = [
                    change
                    for change in later
                    if change.time > truth.told_with_edits.get((other, name), -1)
                ]
                after = [
                    change
                    for change in later
                    if change.time > max(touched, truth.seemed.get(name, 0))
                ]
                both = [
                    change
                    for change in later
                    if change.time < truth.edited.get(name, 0)
                    and truth.edited[name] > truth.heard
                    and not change.is_gone
                    and self.is_in_hand(truth, name, change)
                ]
                is_as_left = self.text(truth, name) == truth.content.get(name)
                changes = (after if not is_as_left else []) or both
                if not changes or truth.told.get((other, name), -1) >= touched:
                    continue
                is_taken = any(key == name for key, _ in truth.taken)
                if after and is_taken and self.text(truth, name) is None:
                    continue
                if changes[-1].kind not in KINDS:
                    continue  # it does not show
                self.due[changes[-1].kind] += 1
                is_said = (other, name) in said or name in several or _tells_of_more(lines, other)
                self.hits[changes[-1].kind] += is_said
                if not is_said:
                    self.log.append(f"MISSED {truth.actor.name}: {other} {name} {changes[-1]}")
        for (who, name), line in said.items():
            done = [change for change in self.changes_of(truth, name) if change.who == who]
            kind = done[-1].kind if done and done[-1].kind in KINDS else KINDS[0]
            self.told[kind] += 1
            is_later = bool(done) and done[-1].time > truth.touched.get(name, 0)
            seen_until = max(truth.edited.get(name, 0), truth.seemed.get(name, 0))
            unread = [
                change for change in done if truth.read.get(name, 0) <= change.time < seen_until
            ]
            is_true = is_later if "after you" in line else bool(unread)
            self.false[kind] += not is_true
            if not is_true:
                self.log.append(f"FALSE {truth.actor.name}: {line}")
            truth.told[who, name] = truth.touched.get(name, 0)
        for name in several:  # that line is about every session that edited it
            for other in self.truths:
                truth.told[other, name] = truth.touched.get(name, 0)

    def _judge_taken(self, truth: Truth, lines: list[str]) -> None:
        said = {(name, who) for line in lines for who, name in self.pairs(truth, line)}
        for name, who in truth.taken:
            if self.text(truth, name) == truth.content.get(name) and not self._is_committed_as_left(
                truth, name
            ):
                continue  # it is there again
            last = [
                change
                for change in self.changes_of(truth, name)
                if change.time > truth.taken[name, who]
            ]
            if last:
                continue  # edited since: that is told
            if truth.told_taken.get((name, who)) == truth.taken[name, who]:
                continue
            self.due[KINDS[2]] += 1
            is_said = any(file == name for file, _ in said) or _tells_of_more(lines, who)
            self.hits[KINDS[2]] += is_said
            if not is_said:
                self.log.append(f"MISSED {truth.actor.name}: taken {name} {who}")
        for pair in said:
            truth.told_taken[pair] = truth.edited.get(pair[0], 0)
            self.told[KINDS[2]] += 1
            if pair not in truth.ever_taken:
                self.false[KINDS[2]] += 1
                self.log.append(f"FALSE {truth.actor.name}: taken {pair}")
        truth.taken.clear()

    def _judge_head(self, truth: Truth, lines: list[str]) -> None:
        branch = self.branch(truth.actor.root)
        is_due = branch != truth.branch and truth.moved_by is not None
        by = _by(truth.moved_by) if truth.moved_by else ": switched"
        is_commit = len(branch) == COMMIT
        wanted = (
            f"! HEAD is now at {branch[:7]} (was "
            if is_commit
            else f"! branch is now {branch} (was "
        )
        is_told = any(line.startswith(wanted) and by in line for line in lines)
        self.due[KINDS[3]] += is_due
        self.hits[KINDS[3]] += is_due and is_told
        if is_due and not is_told:
            self.log.append(f"MISSED {truth.actor.name}: {wanted} {by}")
        for line in lines:
            self.told[KINDS[3]] += 1
            if "still" not in line and not (is_due and is_told):
                self.false[KINDS[3]] += 1
                self.log.append(f"FALSE {truth.actor.name}: {line}")

    def _is_committed_as_left(self, truth: Truth, name: str) -> bool:
        return truth.content.get(name) in (self._in_head(truth, name), self._in_index(truth, name))

    def is_in_hand(self, truth: Truth, name: str, change: Change) -> bool:
        """Return whether a change is uncommitted and recent, and unknown to the other session."""
        is_committed = change.time <= self.committed.get((truth.actor.root, name), 0)
        is_read = change.time <= truth.read.get(name, 0)
        return (
            not is_committed
            and not is_read
            and self.clone.now - self.active.get(change.who, 0) < ACTIVE_SECONDS
        )

    def changes_of(self, truth: Truth, name: str) -> list[Change]:
        """The changes of a file in the worktree of a session."""
        return self.changes.setdefault((truth.actor.root, name), [])

    def text(self, truth: Truth, name: str) -> str | None:
        """Return the text of a file in the worktree of a session."""
        path = truth.actor.root / name
        return path.read_text() if path.exists() else None

    def _in_head(self, truth: Truth, name: str) -> str | None:
        return git(truth.actor.root, "cat-file", "blob", f"HEAD:{name}")

    def _in_index(self, truth: Truth, name: str) -> str | None:
        return git(truth.actor.root, "cat-file", "blob", f":{name}")

    def branch(self, root: Path) -> str:
        """What is checked out in a worktree."""
        git_dir = root / ".git"
        if git_dir.is_file():
            git_dir = Path(git_dir.read_text().removeprefix("gitdir: ").strip())
        return (git_dir / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")

    def pairs(self, truth: Truth, line: str) -> list[tuple[str, str]]:
        """Return pairs of session and file in a line that a session is told.

        A line is `! src/app.py and src/db.py: edited 3m ago by discord, after you read them`."""
        named, _, actors = line.removeprefix("! ").partition(": ")
        who = re.split(",| and ", actors.rpartition(" by ")[2])[0].strip('"')
        names = [name for part in named.split(" and ") for name in part.split(", ")]
        shown = {self.canonical(truth, name) for name in names if not name.endswith(" more")}
        return [(who, name) for name in sorted(shown)]

    def _of_several(self, truth: Truth, lines: list[str]) -> set[str]:
        """Return the files of `and 2 more sessions`, which a line counts and does not name."""
        return {
            name for line in lines if " more session" in line for _, name in self.pairs(truth, line)
        }

    def canonical(self, truth: Truth, name: str) -> str:
        """Return the name that a file has in `files`. Lines name it from where the session began."""
        return os.path.relpath(truth.actor.worktree / name, truth.actor.root)


def _tells_of_more(lines: list[str], who: str) -> bool:
    """Whether a line about `who` counts files that it does not name."""
    return any(" more" in line and _by(who) in line for line in lines)


def _by(who: str) -> str:
    """How a line ends, or goes on, that names `who`."""
    return f' by "{who}"'
