"""Memories about the file or the git command of a tool call, from the index that prompts read (`prompt_memories`).

A decision, a preference or a rejection that names files, directories or git commands has three more columns there:

    [..., places, said, sessions]

`places` are what it names: `$git push`, `^src/db.py` for a file of the repository, `^src/db/` for a directory of it,
`/db.py` for any file with a path that ends so. The index lists the memory by the last part of each. `said` is the
quotation, with who said it when, and `sessions` those that it comes from: they know it."""

from __future__ import annotations

from ..settings.homes import PROMPT_INDEX
from ..system.files import Opened, read_at
from .memory_index import INTRODUCTION, MAGIC, TEXTS_AT, is_current, listed_in, value_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

CHARACTERS = 300  # with a call, the introduction included
COMMAND, ROOTED = "$", "^"
_COLUMNS = 11  # of a memory that names something
_SHORTEST = 60


class CalledMemory:
    """A memory that names what a call is about: its `key`, the line that tells of it, and its `sessions`."""

    def __init__(self, key: str, line: str, sessions: list[str]) -> None:
        self.key = key
        self.line = line
        self.sessions = sessions


def key_of(place: str) -> str:
    """Return the key by which the index lists a place."""
    return place if place.startswith(COMMAND) else f"/{place.rstrip('/').rpartition('/')[2].lstrip(ROOTED)}"


def git_commands(command: str) -> list[str]:
    """Return the places of the git commands in a shell command: `$git push`."""
    found, before = [], ""
    for word in command.split():
        if before == "git":
            found.append(f"{COMMAND}git {word}")
        before = word
    return found


def about_calls(directory: str, calls: Sequence[tuple[str, str]], user_dir: str) -> list[CalledMemory]:
    """Return the memories in `directory` about calls, each the path of a file with '', or a directory with the command
    that is run there; those about a single file first. Raises OSError, ValueError for an index that cannot be read."""
    try:
        with Opened(f"{directory}/{PROMPT_INDEX}") as descriptor:
            head = read_at(descriptor, 0, TEXTS_AT)
            if not head.startswith(MAGIC):
                return []
            found: dict[int, list[tuple[str, str]]] = {}
            for call in calls:
                for key in _keys(*call):
                    for at in listed_in(descriptor, head, key)[1:]:
                        found.setdefault(at, []).append(call)
            if not found or not is_current(descriptor):
                return []
            memories = [(value_at(descriptor, at), of) for at, of in found.items()]
    except FileNotFoundError:
        return []
    ranked = [(_rank(memory, of, user_dir), memory) for memory, of in memories if len(memory) == _COLUMNS]
    best = sorted([one for one in ranked if one[0]], key=lambda one: one[0])
    return [CalledMemory(memory[1], memory[9], memory[10]) for _, memory in best]


def composed(memories: Iterable[CalledMemory], limit: int) -> tuple[str, list[str]]:
    """Return the text about the first memories, in at most `limit` characters, and their keys; '' for none."""
    text = INTRODUCTION
    keys: list[str] = []
    for memory in memories:
        room = limit - len(text) - len("- ")
        line = memory.line if keys else _shortened(memory.line, room)
        if len(line) <= room and room >= _SHORTEST:
            text += f"- {line}\n"
            keys.append(memory.key)
    return (text[:-1] if keys else ""), keys


def _shortened(line: str, room: int) -> str:
    """Shorten the quotation, and keep its mark at the end."""
    from ..text.format import shorten

    return line if len(line) <= room else shorten(line[:-1], room - 1) + line[-1]


def _keys(path: str, command: str) -> Iterator[str]:
    if command:
        yield from git_commands(command)
        return
    for part in path.split("/"):
        if part:
            yield f"/{part}"


def _rank(memory: list[Any], calls: list[tuple[str, str]], user_dir: str) -> int:
    """Return how closely a memory is about the calls: 1 for a file or command, more for a directory; 0 for not."""
    from ..system.git import find_worktree, head_of

    projects, branch, places = memory[4], memory[7], memory[8]
    ranks = []
    for path, command in calls:
        at = path if command else path.rpartition("/")[0]
        worktree = find_worktree(at, user_dir)
        project, root = (worktree.common_dir, worktree.root) if worktree else ("", "")
        if not worktree:
            project = root = next((one for one in projects if f"{path}/".startswith(f"{one}/")), "")
        if project not in projects or (branch and not (worktree and branch == head_of(worktree.git_dir))):
            continue
        inside = path.removeprefix(root)
        named = git_commands(command)
        for place in places:
            is_named = place in named if place.startswith(COMMAND) else not command and _is_at(place, inside)
            if is_named:
                ranks.append(2 if place.endswith("/") else 1)
    return min(ranks, default=0)


def _is_at(place: str, path: str) -> bool:
    """Check if a file, at a path that begins with `/` below its root, is what a place names."""
    if place.startswith(ROOTED):
        place = f"/{place[1:]}"
        return path.startswith(place) if place.endswith("/") else path == place
    return path.endswith(place)
