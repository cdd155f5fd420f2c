"""`python -m bench.collisions`: generated histories of sessions that share a clone, each with real git, and what the
sessions are told of their collisions with each prompt, against what really happened.

It prints, by kind, which share of the collisions was told with the next prompt, and which share of what was told is
false.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

from .clones import FILES, Actor, Clone, git, unique

HISTORIES = 1000
STEPS = 24
SEED = 7
LEAST_TOLD = 0.98
MOST_FALSE = 0.01
ROOM = 2000  # characters: what is told is judged here, not how much of it fits
KINDS = ("edited by a tool", "edited by a command", "taken by git", "HEAD")
NAMES = ("main", "discord", "email", "cron")


class Change(NamedTuple):
    """A change of a file by somebody, '' for a person."""

    who: str
    time: float
    kind: str


class Truth:
    """What one session should be told, and what it may be told without that being false."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.touched: dict[str, float] = {}
        self.content: dict[str, str | None] = {}  # of each file as this session left or saw it
        self.edited: dict[str, float] = {}
        self.heard = actor.clone.now
        self.branch = "main"
        self.told: dict[tuple[str, str], float] = {}  # who and what, with the own touch that it was about
        self.taken: dict[tuple[str, str], float] = {}  # path and who, with the own edit
        self.ever_taken: set[tuple[str, str]] = set()
        self.moved_by: str | None = None


class History:
    """One history: steps of sessions and of a person, and the counts of what was due, was told, and was false."""

    def __init__(self, root: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.clone = Clone(root)
        self.changes: dict[str, list[Change]] = {name: [] for name in FILES}
        self.due: Counter[str] = Counter()
        self.hits: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.false: Counter[str] = Counter()
        self.log: list[str] = []
        actors = [self.clone.session(name) for name in NAMES[: self.chance.randrange(2, 5)]]
        self.truths = {actor.name: Truth(actor) for actor in actors}

    def run(self) -> None:
        """Plays the history to its end, at which every session has a prompt."""
        for _ in range(STEPS):
            self.clone.now += self.chance.randrange(3, 240)
            self._step(self.chance.choice(list(self.truths.values())))
        for truth in self.truths.values():
            self.clone.now += 60
            self._prompt(truth)

    def _step(self, truth: Truth) -> None:
        actor, chance = truth.actor, self.chance
        name = chance.choice(FILES)
        kind = chance.random()
        self.log.append(f"{self.clone.now:.0f} {actor.name} {kind:.2f} {name}")
        if kind < 0.20:
            self._prompt(truth)
        elif kind < 0.40:
            actor.read(name)
            self._touch(truth, name)
        elif kind < 0.60:
            if (actor.worktree / name).exists():
                actor.edit(name, unique(chance))
                self._changed(truth, name, KINDS[0])
        elif kind < 0.63:
            actor.edit(name, unique(chance), fails=True)
        elif kind < 0.67:
            actor.write(name, unique(chance))
            self._changed(truth, name, KINDS[0])
        elif kind < 0.77:
            self._shell_edit(truth, name)
        elif kind < 0.80:
            self._switch("", f"b{chance.randrange(3)}", None)
        elif kind < 0.87:
            self._switch(actor.name, f"b{chance.randrange(3)}", truth)
        else:
            commands = (
                "git commit -qam all", "git add -A && git commit -qm all", "git stash -q", "git stash -q -u",
                "git reset -q --hard", f"git checkout -q -- {name}", "git add -A", "git status",
                f"git add {name} && git commit -qm one", "git clean -fdq", "git log -1",
            )  # fmt: skip
            self._git(truth, chance.choice(commands))

    def _touch(self, truth: Truth, name: str) -> None:
        """A session has seen a file."""
        truth.touched[name] = self.clone.now
        truth.content[name] = self._text(name)

    def _changed(self, truth: Truth, name: str, kind: str) -> None:
        self.changes[name].append(Change(truth.actor.name, self.clone.now, kind))
        self._touch(truth, name)
        truth.edited[name] = self.clone.now
        for key in [key for key in truth.taken if key[0] == name]:
            del truth.taken[key]  # it edited the file again, having seen it

    def _shell_edit(self, truth: Truth, name: str) -> None:
        text = unique(self.chance).strip()
        directory, _, base = name.rpartition("/")
        commands = (
            f"sed -i '$ a {text}' {name}", f"echo '{text}' >> {name}", f"cd {directory or '.'} && echo {text} >{base}",
            f"cat > {name} <<'END'\n{text}\nEND", f"echo {text} | tee -a {name} >/dev/null",
            f"echo {text} > new.tmp && mv new.tmp {name}", f"perl -pi -e 's/^/{text[:9]}/' {name}",
        )  # fmt: skip
        before = self._text(name)
        truth.actor.bash(self.chance.choice(commands))
        if self._text(name) != before:
            self._changed(truth, name, KINDS[1])
        elif before is not None:
            truth.touched[name] = self.clone.now  # it ran, and is taken for an edit

    def _switch(self, who: str, branch: str, truth: Truth | None) -> None:
        is_new = git(self.clone.root, "rev-parse", "-q", "--verify", branch) is None
        command = f"git {self.chance.choice(('switch', 'checkout'))} -q {'-c ' if is_new else ''}{branch}"
        command = command.replace("checkout -q -c", "checkout -q -b")
        before = self._branch()
        if truth is None:
            self.clone.shell(command)
            self.clone.now += 1
        else:
            self._git(truth, command)
            if branch == before:  # it asked for it, and so knows
                truth.branch, truth.moved_by = before, None
        if self._branch() != before:
            for other in self.truths.values():
                other.moved_by = who if other is not truth else None
            if truth is not None:
                truth.branch = self._branch()

    def _git(self, truth: Truth, command: str) -> None:
        """A git command, with what it took of the others: found by what git and the disk say before and after."""
        before = {name: (self._text(name), self._in_head(name), self._in_index(name)) for name in FILES}
        self.log.append(command)
        truth.actor.bash(command)
        for name in FILES:
            text, head, staged = self._text(name), self._in_head(name), self._in_index(name)
            was_text, was_head, was_staged = before[name]
            for other in self.truths.values():
                if other is truth or name not in other.edited:
                    continue
                is_away = text != was_text and was_text != was_head
                is_in = text == was_text and was_text != was_head and (
                    (head == text) or (staged == text and was_staged != text)
                )  # fmt: skip
                if is_away or is_in:
                    other.ever_taken.add((name, truth.actor.name))
                    if other.content.get(name) == was_text:
                        other.taken[name, truth.actor.name] = other.edited[name]

    def _prompt(self, truth: Truth) -> None:
        text = truth.actor.prompt(limit=ROOM)
        lines = [line for line in text.split("\n") if line.startswith("! ")]
        self._judge_head(truth, [line for line in lines if line.startswith(("! branch", "! HEAD"))])
        self._judge_taken(truth, [line for line in lines if "had not committed" in line])
        self._judge_edits(truth, [line for line in lines if " edited " in line or " removed " in line])
        truth.heard = self.clone.now
        truth.branch, truth.moved_by = self._branch(), None
        self.log.append(f"{self.clone.now:.0f} {truth.actor.name} is told {lines}")

    def _judge_edits(self, truth: Truth, lines: list[str]) -> None:
        said = {(who, name): line for line in lines for who, name in _pairs(line)}
        for name, touched in truth.touched.items():
            for other in self.truths:
                later = [
                    one for one in self.changes[name] if one.who == other != truth.actor.name and one.time > truth.heard
                ]
                after = [one for one in later if one.time > touched]
                both = [
                    one for one in later if one.time < truth.edited.get(name, 0) and truth.edited[name] > truth.heard
                ]
                is_as_left = self._text(name) == truth.content.get(name)
                found = (after if not is_as_left else []) or both
                if not found or truth.told.get((other, name), -1) >= touched:
                    continue
                is_taken = any(key == name for key, _ in truth.taken)
                if after and is_taken and self._text(name) is None:
                    continue
                self.due[found[-1].kind] += 1
                is_said = (other, name) in said or _tells_of_more(lines, other)
                self.hits[found[-1].kind] += is_said
                if not is_said:
                    self.log.append(f"MISSED {truth.actor.name}: {other} {name} {found[-1]}")
        for (who, name), line in said.items():
            done = [one for one in self.changes[name] if one.who == who]
            kind = done[-1].kind if done else KINDS[0]
            self.told[kind] += 1
            is_later = bool(done) and done[-1].time > truth.touched.get(name, 0)
            is_true = bool(done) and (is_later if "after you" in line else truth.edited.get(name, 0) > done[0].time)
            self.false[kind] += not is_true
            if not is_true:
                self.log.append(f"FALSE {truth.actor.name}: {line}")
            truth.told[who, name] = truth.touched.get(name, 0)

    def _judge_taken(self, truth: Truth, lines: list[str]) -> None:
        said = {(name, who) for line in lines for who, name in _pairs(line)}
        for name, who in truth.taken:
            if self._text(name) == truth.content.get(name) and not self._is_committed_as_left(truth, name):
                continue  # it is there again
            last = [one for one in self.changes[name] if one.time > truth.taken[name, who]]
            if last:
                continue  # edited since: that is told
            self.due[KINDS[2]] += 1
            is_said = any(one == name for one, _ in said) or _tells_of_more(lines, who)
            self.hits[KINDS[2]] += is_said
            if not is_said:
                self.log.append(f"MISSED {truth.actor.name}: taken {name} {who}")
        for pair in said:
            self.told[KINDS[2]] += 1
            if pair not in truth.ever_taken:
                self.false[KINDS[2]] += 1
                self.log.append(f"FALSE {truth.actor.name}: taken {pair}")
        truth.taken.clear()

    def _judge_head(self, truth: Truth, lines: list[str]) -> None:
        branch = self._branch()
        is_due = branch != truth.branch and truth.moved_by is not None
        by = f": {truth.moved_by} ran" if truth.moved_by else ": switched"
        wanted = f"! branch is {branch} now, it was "
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
        return truth.content.get(name) in (self._in_head(name), self._in_index(name))

    def _text(self, name: str) -> str | None:
        path = self.clone.root / name
        return path.read_text() if path.exists() else None

    def _in_head(self, name: str) -> str | None:
        return git(self.clone.root, "cat-file", "blob", f"HEAD:{name}")

    def _in_index(self, name: str) -> str | None:
        return git(self.clone.root, "cat-file", "blob", f":{name}")

    def _branch(self) -> str:
        return (self.clone.root / ".git" / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")


class Counts(NamedTuple):
    """The counts of some histories, by kind."""

    due: Counter[str]
    hits: Counter[str]
    told: Counter[str]
    false: Counter[str]


def play(seed: int, show: bool = False) -> Counts:
    """The counts of one history."""
    root = Path(tempfile.mkdtemp(prefix="session-memory-bench-"))
    try:
        history = History(root, seed)
        history.run()
    finally:
        shutil.rmtree(root)
    if show and any(line.startswith(("MISSED", "FALSE")) for line in history.log):
        print(f"-- history {seed}", *history.log, sep="\n")
    return Counts(history.due, history.hits, history.told, history.false)


def total(counts: list[Counts]) -> Counts:
    """The sum of the counts of several histories."""
    return Counts(*[sum(column, Counter[str]()) for column in zip(*counts)])


def table(counts: Counts) -> str:
    """A Markdown table of the shares."""
    lines = ["| collision | due | told | told, of what is due | false, of what is told |", "|---|---|---|---|---|"]
    for kind in (*KINDS, "all"):
        due, hits, told, false = (column.total() if kind == "all" else column[kind] for column in counts)
        shares = (f"{hits / due:.1%}" if due else "-", f"{false / told:.1%}" if told else "-")
        lines.append(f"| {kind} | {due} | {hits} | {shares[0]} | {shares[1]} |")
    return "\n".join(lines)


def is_good(counts: Counts) -> bool:
    """Whether enough is told, and little of it false: of the edits, and of HEAD."""
    for kinds in (KINDS[:2], KINDS[3:]):
        due, hits, told, false = (sum(column[kind] for kind in kinds) for column in counts)
        if hits < LEAST_TOLD * due or false > MOST_FALSE * told:
            return False
    return True


def _pairs(line: str) -> list[tuple[str, str]]:
    """Who and what in a line: `! src/app.py and src/db.py: discord edited them 3m ago, after you read them`."""
    files, _, rest = line.removeprefix("! ").partition(": ")
    who = rest.removeprefix("by ").partition(" ")[0]
    return [(who, name) for name in FILES if name in files.replace(",", " ").split()]


def _tells_of_more(lines: list[str], who: str) -> bool:
    """Whether a line about `who` counts files that it does not name."""
    return any(" more" in line and f": {who} " in line.replace(": by ", ": ") for line in lines)


def main() -> int:
    """Returns the exit code: 1 where too little was told, or too much of it is false, and that was to be checked."""
    parser = argparse.ArgumentParser("python -m bench.collisions", description=__doc__)
    parser.add_argument("--histories", type=int, default=HISTORIES, metavar="N", help=f"how many ({HISTORIES})")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="the first one")
    parser.add_argument("--show", action="store_true", help="print each history in which something is missed or false")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a share is not as it should be")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.histories)
    with ProcessPoolExecutor(max_workers=2) as pool:
        counts = total(list(pool.map(play, seeds, [options.show] * len(seeds), chunksize=8)))
    print(f"{options.histories} histories of two to four sessions in one clone\n")
    print(table(counts))
    return 1 if options.check and not is_good(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
