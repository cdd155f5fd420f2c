"""Two sessions in one clone, and what they are told of their collisions."""

from __future__ import annotations

from bench.clones import Clone


class Pair:
    """Two sessions in one clone, which know of each other."""

    def __init__(self, clone: Clone) -> None:
        self.clone = clone
        self.main = clone.session("main")
        self.discord = clone.session("discord")
        self.main.prompt()
        self.later(1)

    def later(self, minutes: float = 5) -> None:
        self.clone.now += minutes * 60


def collisions(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("! ")]


def edited_after_reading(pair: Pair) -> None:
    pair.main.read("src/app.py")
    pair.discord.edit("src/app.py", "x\n")


def branch_switched(pair: Pair) -> None:
    """One session switches the branch under another, which goes on to commit."""
    pair.main.edit("src/app.py", "1\n")
    pair.discord.bash("git switch -c fix/login")
