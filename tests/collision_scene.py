"""Two sessions in one clone, and what they are told of their collisions."""

from __future__ import annotations

from functools import cached_property

from bench.clones import Actor, Clone


class Pair:
    """Two sessions in one clone, which know of each other."""

    def __init__(self, clone: Clone) -> None:
        self.clone = clone
        self.main = clone.session("main")
        self.discord = clone.session("discord")
        self.main.prompt()
        self.later(1)

    @cached_property
    def telegram(self) -> Actor:
        """A third session, which begins when a scene first names it."""
        return self.clone.session("telegram")

    def later(self, minutes: float = 5) -> None:
        self.clone.now += minutes * 60


def beside(pair: Pair, name: str = "wt") -> Actor:
    """A session in a worktree of its own, on the branch of its name."""
    pair.clone.shell(f"git worktree add -q ../{name} -b {name}")
    place = pair.clone.root.parent / name
    return pair.clone.session("other", place, place)


def collisions(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("! ")]


def play(pair: Pair, steps: list[str]) -> None:
    """Run the steps, such as `later 5` (minutes), `shell touch x` (by a person), or a session's.

    A session's step has its name and action: `main $ git stash`, `main read src/db.py`, or edit,
    write, refused (an edit), prompt. Without a name the file is src/app.py. main writes 1, any
    other session x."""
    for step in steps:
        who, _, what = step.partition(" ")
        if who == "later":
            pair.later(float(what))
        elif who == "shell":
            pair.clone.shell(what)
        else:
            verb, _, about = what.partition(" ")
            session: Actor = getattr(pair, who)
            path, text = about or "src/app.py", "1\n" if who == "main" else "x\n"
            if verb == "$":
                session.bash(about)
            elif verb == "prompt":
                session.prompt()
            elif verb == "read":
                session.read(path)
            elif verb == "write":
                session.write(path, text)
            else:
                session.edit(path, text, fails=verb == "refused")


def edited_after_reading(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")


def branch_switched(pair: Pair) -> None:
    """One session switches the branch under another, which goes on to commit."""
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("git switch -c fix/login")
