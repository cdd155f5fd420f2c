"""Invented pairs of sessions on one file: one reads it, the other edits it, the first continues.

The first one is told about the edit or not.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from records import assistant, record, user
from store_scene import MONDAY, StoreUser

from session_memory.sessions.transcripts.entries import INTRODUCTION

HOUR = 3600.0
INSTALLED = MONDAY + 100 * HOUR
Behaviour = Callable[[bool, Random], str]  # by "was it told": read, diff, edit or nothing
CWD = "/srv/agent"


def ignores(is_told: bool, chance: Random) -> str:
    """Looks now and then, whatever it is told."""
    return "read" if chance.random() < 0.3 else "edit"


def looks_always(is_told: bool, chance: Random) -> str:
    return "read"


def heeds(is_told: bool, chance: Random) -> str:
    return "diff" if is_told else "edit"


class Scene:
    """Writes pairs for `machine`; `number` tells their names and calls apart."""

    def __init__(self, machine: StoreUser, behaviour: Behaviour, seed: int = 0) -> None:
        self.machine, self.behaviour, self.chance = machine, behaviour, Random(seed)
        self.number = 0

    def call(
        self, tool: str, at: float, *, fails: bool = False, result: str = "ok", **given: str
    ) -> list[dict[str, Any]]:
        self.number += 1
        id = f"toolu_{self.number:024}"
        done = {"tool_use_id": id, "type": "tool_result", "content": result, "is_error": fails}
        use = {"type": "tool_use", "id": id, "name": tool, "input": given}
        return [assistant(use, at=at), user([done], at=at + 1)]

    def told(self, path: str, at: float, by: str = "discord") -> dict[str, Any]:
        """The record of an update with a line about a file."""
        name = path.removeprefix(f"{CWD}/")
        text = f'{INTRODUCTION}[Session Activity]\n! {name}: edited 5m ago by "{by}", after you read it\n- "{by}" (5m ago)'
        return record(
            "attachment", attachment={"type": "hook_additional_context", "content": [text]}, at=at
        )

    def pair(self, begin: float, *, is_told: bool, moments: int = 1) -> tuple[str, str]:
        """Two sessions, and so many moments of the first; their names."""
        self.number += 1
        own, other = f"own-{self.number:05}", f"other-{self.number:05}"
        mine, theirs = [user("Mend the shop", at=begin)], [user("Bake the bread", at=begin)]
        for number in range(moments):
            path, at = f"{CWD}/src/{self.number}-{number}.py", begin + number * 600
            mine += self.call("Read", at + 10, file_path=path, result=f"1\tfirst of {path}")
            theirs += self.call("Edit", at + 100, file_path=path, old_string="a", new_string="b")
            mine.append(user("Go on", at=at + 400))
            mine += [self.told(path, at + 400.1)] if is_told else []
            mine.append(assistant("Gladly.", at=at + 405))
            action = self.behaviour(is_told, self.chance)
            if action == "read":
                mine += self.call("Read", at + 410, file_path=path, result=f"1\tsecond of {path}")
            elif action == "diff":
                mine += self.call(
                    "Bash", at + 410, command=f"git diff -- {path.removeprefix(f'{CWD}/')}"
                )
            if action != "nothing":
                mine += self.call("Edit", at + 420, file_path=path, old_string="b", new_string="c")
        self.machine.session(own, *mine)
        self.machine.session(other, *theirs)
        return own, other

    def pairs(self, count: int, begin: float, *, is_told: bool, moments: int = 1) -> None:
        for number in range(count):
            self.pair(begin + number * HOUR, is_told=is_told, moments=moments)
