"""`session-memory remember`: notes something for later sessions; an agent must quote its
session."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Any

from ...common.errors import WrongCallError
from ...common.system.git import find_worktree
from ...common.system.terminal import Result, Terminal
from ...common.text.sanitize import name_for_people
from ...memory.memory_index import IndexedMemory
from ...memory.writer import note_by_person
from ...sessions.runtimes.detection import is_started_by_agent
from ...sessions.settings.homes import user_dir
from ..tools.home_backend import HomeBackend
from .arguments import add_common
from .memories import as_json, line_of
from .opened_store import OpenStore, with_store

SUMMARY = "note a decision, a preference or a fact for later sessions"
KINDS = ("preference", "decision", "fact")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", metavar="TEXT", nargs="+", help="one sentence that can be understood on its own"
    )
    parser.add_argument(
        "--kind", choices=KINDS, default=KINDS[0], help=f"the kind of memory ({KINDS[0]})"
    )
    parser.add_argument(
        "--file", metavar="FILE", default="", help="the file that the memory is about"
    )
    parser.add_argument(
        "--quote",
        metavar="WORDS",
        default="",
        help="for agents: words from its session as proof",
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    text = " ".join(arguments.words).strip()
    if not text:
        raise WrongCallError(
            "nothing was named", 'session-memory remember "We use luxon for dates"'
        )
    if is_started_by_agent(os.environ) and not arguments.quote.strip():
        hint = 'session-memory remember "We use luxon for dates" --quote "luxon, not dayjs"'
        raise WrongCallError("an agent must prove a memory with words from its session", hint)
    return with_store(arguments, lambda opened: _remember(opened, arguments, text), writes=True)


def _remember(opened: OpenStore, arguments: argparse.Namespace, text: str) -> int:
    here = os.getcwd()
    worktree = find_worktree(here, user_dir(os.environ))
    root = worktree.root if worktree and worktree.root else here
    file = (
        name_for_people(os.path.relpath(os.path.abspath(arguments.file), root))
        if arguments.file
        else ""
    )
    if arguments.quote:
        about = f" In `{file}`." if file else ""
        backend = HomeBackend(arguments.home, os.environ)
        kept = backend.remember(arguments.kind, f"{text}{about}", arguments.quote)
    else:
        kept = note_by_person(opened.location, arguments.kind, text, file, root, opened.note)
    opened.terminal.show(Remembered(kept))
    return 0


@dataclass(frozen=True)
class Remembered(Result):
    """The memory that was noted."""

    memory: IndexedMemory

    def show(self, terminal: Terminal) -> None:
        terminal.line(line_of(self.memory))

    def as_json(self) -> dict[str, Any]:
        return {"memory": as_json(self.memory)}
