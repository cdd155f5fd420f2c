"""Histories like those in `shared_clones`, made harder.

They have odd names and links, sessions in subdirectories and in a worktree of their own,
sub-agents, long command lines that partly fail, and rarer git commands.
"""

from __future__ import annotations

from os.path import relpath
from pathlib import Path
from shlex import quote

from .clones import Actor, unique
from .shared_clones import COMMANDS, KINDS, Change, History, Truth

FILES = (
    "src/app.py",
    "src/größe 1.py",
    "docs/a guide.md",
    "Makefile",
    "src/ui/main.ts",
    "notebooks/Übung.ipynb",
)
LINK = "lib"  # a link to src
HIDDEN = "edited where it does not show"


class HardHistory(History):
    """A history with rare events."""

    files = FILES

    def begin(self, names: tuple[str, ...]) -> list[Actor]:
        """Begin the sessions; one may work in a subdirectory, another in a worktree of its own."""
        root, clone = self.clone.root, self.clone
        (root / LINK).symlink_to("src")
        clone.shell("git add -A && git commit -qm link && git commit -q --allow-empty -m more")
        actors = [clone.session(names[0])]
        actors.append(
            clone.session(names[1], root / "src" if self.chance.random() < 0.5 else root, root)
        )
        for name in names[2:]:
            place = root
            if name == names[-1] and self.chance.random() < 0.5:
                place = root.parent / "other"
                clone.shell("git worktree add -q ../other -b other")
            actors.append(clone.session(name, place))
        return actors

    def step(self, truth: Truth) -> None:
        """Something that a session or a person does."""
        chance, kind = self.chance, self.chance.random()
        name = chance.choice(self.files)
        self.log.append(f"{self.clone.now:.0f} {truth.actor.name} {kind:.2f} {name}")
        if kind < 0.35:
            super().step(truth)
        elif kind < 0.42:
            self.read(truth, name, self._spelt(name))
        elif kind < 0.52:
            self._edit(truth, name)
        elif kind < 0.55:
            self.clone.write(self.clone.root / name, unique(chance))
            self.changes.setdefault((self.clone.root, name), []).append(
                Change("", self.clone.now, HIDDEN)
            )
        elif kind < 0.70:
            self.shell_edit(truth, name)
        elif kind < 0.74:
            self._command(truth, name, chance.choice(COMMANDS["unseen"]), HIDDEN)
        elif kind < 0.77:
            self._command(truth, name, chance.choice(COMMANDS["none"]), HIDDEN)
        else:
            self.git(truth, self._line(truth, name, chance.choice(COMMANDS["hard git"])))

    def shell_edit(self, truth: Truth, name: str) -> None:
        """An edit by a command that shows."""
        self._command(truth, name, self.chance.choice(COMMANDS["shown"]), KINDS[1])

    def canonical(self, truth: Truth, name: str) -> str:
        name = super().canonical(truth, name)
        return f"src/{name[len(LINK) + 1 :]}" if name.startswith(f"{LINK}/") else name

    def _spelt(self, name: str) -> str:
        """A name as an agent may give it: through the link."""
        by_link = f"{LINK}/{name[4:]}"
        return by_link if name.startswith("src/") and self.chance.random() < 0.3 else name

    def _edit(self, truth: Truth, name: str) -> None:
        """An edit by a tool, perhaps of a sub-agent."""
        actor, text = truth.actor, unique(self.chance)
        agent = actor.sub_agent() if self.chance.random() < 0.3 else actor
        tool = (
            "NotebookEdit" if name.endswith(".ipynb") else self.chance.choice(("Edit", "MultiEdit"))
        )
        agent.edit(self._spelt(name), text, tool=tool)
        self.changed(truth, name, KINDS[0])
        if agent is not actor:
            actor.say("Well?")

    def _command(self, truth: Truth, name: str, form: str, kind: str) -> None:
        """Run a command line that edits a file, or seems to, and record all changes by others."""
        before = {file: (self.text(truth, file), self._stamp(truth, file)) for file in self.files}
        line = self._line(truth, name, form)
        self.log.append(line)
        truth.actor.bash(line)
        for file in self.files:
            if self.text(truth, file) != before[file][0]:
                self.changed(truth, file, kind)
            elif self._stamp(truth, file) != before[file][1]:
                self.changed(truth, file, HIDDEN)
        truth.seemed[name] = self.clone.now
        if self.text(truth, name) is None:
            for kept in (truth.touched, truth.edited, truth.content):
                kept.pop(name, None)

    def _line(self, truth: Truth, name: str, form: str) -> str:
        place = truth.actor.worktree
        plain = relpath(truth.actor.root / self._spelt(name), place)
        directory, _, base = plain.rpartition("/")
        return form.format(
            name=quote(plain),
            plain=plain,
            directory=quote(directory or "."),
            base=quote(base),
            up=quote(relpath(truth.actor.root, place)),
            text=unique(self.chance).strip(),
            number=self.chance.randrange(9999),
        )

    def _stamp(self, truth: Truth, name: str) -> tuple[int, int] | None:
        path = Path(truth.actor.root / name)
        status = path.stat() if path.exists() else None
        return (status.st_mtime_ns, status.st_ctime_ns) if status else None
