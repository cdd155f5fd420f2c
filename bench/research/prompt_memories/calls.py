"""`python -m bench.research.prompt_memories.calls`: the memories that real commands get.

A number of commands from real sessions, drawn with a seed, are called in a project with plausible
memories (calls.txt). Each session gets a memory at most once. A memory is wrong if the command does
not match the memory's pattern, which describes the commands at which a colleague would mention it.
`--all` prints each case. The messages of commits are not part of a command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from session_memory.memory.call_memories import about_calls
from session_memory.memory.format import new_memory
from session_memory.memory.memory_index import IndexedMemory, Origin
from session_memory.memory.prompt_index import content
from session_memory.memory.prompt_index_reader import PROMPT_INDEX

from ...command import run
from ...real import TRANSCRIPTS, conversations_of
from ...scratch import scratch_directory

MEMORIES = Path(__file__).parent / "calls.txt"
PROJECT = "/srv/app"
RUNTIMES = ("claude", "codex", "pi", "copilot", "gemini", "opencode")
SEED = 56
MOST_WRONG = 0.01  # of the calls
MARCH = 1_772_323_200_000  # of 2026, in milliseconds since the epoch
_MESSAGE = re.compile(r"""(-\w*m|--message)[ =]?("[^"]*"|'[^']*'|\$\(.*?\)"?)""", re.DOTALL)


class Told(NamedTuple):
    """A memory that a session was told with a command."""

    command: str
    title: str
    is_right: bool


def main(calls: int = 1000, transcripts: Path = TRANSCRIPTS, all: bool = False) -> int:
    """Return the exit code: 1 if too many calls were told something wrong."""
    drawn = list(commands(transcripts))
    if len(drawn) > calls:
        drawn = sorted(Random(SEED).sample(drawn, calls))
    with scratch_directory() as name:
        tellings = told_with(drawn, read(MEMORIES), name)
    wrong = [telling for telling in tellings if not telling.is_right]
    print(f"{len(drawn):,} commands: {len(tellings)} memories told, {len(wrong)} of them wrong")
    for telling in tellings if all else wrong:
        mark = " " if telling.is_right else "-"
        print(f"  {mark} {telling.command[:100]!r}: {telling.title}")
    return 1 if len(wrong) > MOST_WRONG * len(drawn) else 0


def read(path: Path) -> dict[str, tuple[IndexedMemory, str]]:
    """Return the memories of a file by their ids, each with its pattern, or ''."""
    memories: dict[str, tuple[IndexedMemory, str]] = {}
    memory: IndexedMemory | None = None
    for line in path.read_text().splitlines():
        sign, _, text = line.partition(" ")
        if sign == "*":
            kind, _, title = text.partition(": ")
            origin = Origin(MARCH, "person", 0, "person", directory=PROJECT)
            memory = new_memory(kind, title, "", "app", "", origin, is_untrusted=False)
            memories[memory.id] = (memory, "")
        elif sign == "+" and memory is not None:
            memories[memory.id] = (memory, text)
    return memories


def commands(transcripts: Path) -> Iterator[tuple[str, str]]:
    """Yield the shell commands of real sessions, each behind its session."""
    for conversation, entries in conversations_of(transcripts, *RUNTIMES):
        for entry in entries:
            if entry.kind == "command":
                yield conversation.session_id, entry.text


def told_with(
    drawn: list[tuple[str, str]], memories: dict[str, tuple[IndexedMemory, str]], directory: Path
) -> list[Told]:
    """Return the memories that the sessions get with these commands, in their order."""
    index = content([memory for memory, _ in memories.values()], {})
    (directory / PROMPT_INDEX).write_bytes(index)
    known: set[tuple[str, str]] = set()
    tellings = []
    for session, command in drawn:
        for key, _ in about_calls(str(directory), [(PROJECT, command)], ""):
            memory, pattern = memories[key.rpartition("-")[0]]
            if (session, key) not in known:
                known.add((session, key))
                is_right = bool(pattern) and bool(
                    re.search(pattern, _MESSAGE.sub("", command), re.IGNORECASE)
                )
                tellings.append(Told(command, memory.title, is_right))
    return tellings


if __name__ == "__main__":
    run(main)
