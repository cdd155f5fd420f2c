"""Labelled prompts: reads them, and asks for the memories that each would get.

    @ /srv/shop
    * decision: let's go with luxon for dates :: since we need the time zones
    ? which library do we use for dates?
    ~ show the dated invoice
    - fix the failing test

`@` begins what belongs to a directory; `*` is a memory: its kind and title, with further text
behind ` :: `; `?` is a prompt about the memory above it, `~` one in other forms of its words, `-`
one about nothing that is remembered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from session_memory.memory.format import new_memory
from session_memory.memory.memory_index import IndexedMemory, Origin
from session_memory.memory.prompt_index import content
from session_memory.memory.prompt_index_reader import PROMPT_INDEX
from session_memory.memory.prompt_memories import (
    PromptedSession,
    PromptMemories,
    relevant,
)

from ...real import conversations_of

HERE = Path(__file__).parent
SETS = (HERE / "developed.txt", HERE / "unseen.txt")
ABOUT, OTHER_FORMS, UNRELATED = "?", "~", "-"
MARCH = 1_772_323_200_000  # of 2026, in milliseconds since the epoch
CHARACTERS = 200
BY_RULES = ("episode", "solution")  # the kinds of memories that are made without a model


class Prompt(NamedTuple):
    """A prompt of a session in a directory.

    It has its sign, and the id of the memory that it is about, or ''."""

    sign: str
    directory: str
    text: str
    memory: str = ""


class Answer(NamedTuple):
    """What a prompt got."""

    prompt: Prompt
    told: PromptMemories

    @property
    def ids(self) -> list[str]:
        """Return the ids of the memories, whose keys end with a version."""
        return [key.rpartition("-")[0] for key in self.told.ids]

    @property
    def is_right(self) -> bool:
        """Return whether the prompt got the memory it is about, or nothing if there is none."""
        return self.prompt.memory in self.ids if self.prompt.memory else not self.told.text


def read(path: Path) -> tuple[list[IndexedMemory], list[Prompt]]:
    """Read the memories and prompts of a file. Raises ValueError for a line without a sign."""
    memories: list[IndexedMemory] = []
    prompts: list[Prompt] = []
    directory = ""
    for line in path.read_text().splitlines():
        sign, _, text = line.partition(" ")
        if sign == "@":
            directory = text
        elif sign == "*":
            memories.append(_memory(text, directory, len(memories)))
        elif sign in (ABOUT, OTHER_FORMS):
            prompts.append(Prompt(sign, directory, text, memories[-1].id))
        elif sign == UNRELATED:
            prompts.append(Prompt(sign, directory, text))
        elif sign not in ("", "#"):
            raise ValueError(f"{path.name}: no sign that is known: {line!r}")
    return memories, prompts


def ask(
    memories: Sequence[IndexedMemory], prompts: Iterable[Prompt], directory: Path
) -> list[Answer]:
    """Return the result for each prompt if these memories are stored in `directory`."""
    (directory / PROMPT_INDEX).write_bytes(content(memories, {}))
    return [
        Answer(
            prompt,
            relevant(
                str(directory), prompt.text, CHARACTERS, PromptedSession(None, prompt.directory)
            ),
        )
        for prompt in prompts
    ]


def real_prompts(transcripts: Path, directories: Iterable[str]) -> list[Prompt]:
    """Return each user message in real transcripts as a prompt in each of `directories`.

    It is about none of the memories there."""
    conversations = conversations_of(transcripts, "claude", "codex", "pi")
    texts = dict.fromkeys(
        entry.text
        for _, entries in conversations
        for entry in entries
        if entry.role == "user" and entry.text
    )
    return [Prompt(UNRELATED, place, text) for text in texts for place in sorted(directories)]


def _memory(line: str, directory: str, number: int) -> IndexedMemory:
    kind, _, said = line.partition(": ")
    title, _, text = said.partition(" :: ")
    strategy = "extractive" if kind in BY_RULES else "summary"
    origin = Origin(MARCH, f"session-{number}", number + 1, strategy, 1, directory)
    subject = directory.rpartition("/")[2]
    return new_memory(kind, title, text, subject, title, origin, is_untrusted=False)
