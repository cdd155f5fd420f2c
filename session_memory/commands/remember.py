"""`session-memory remember`: notes what later sessions are to know; an agent has to quote its session."""

from __future__ import annotations

import argparse
import os

from ..errors import WrongCallError
from ..memories.writer import note_by_person
from ..runtimes.detection import is_started_by_agent
from ..settings.homes import user_dir
from ..store.sqlite.memory_index import IndexedMemory
from ..system.git import find_worktree
from ..tools import HomeBackend
from .arguments import add_common
from .memories import as_json, line_of
from .opened_store import OpenStore, with_store

SUMMARY = "note what later sessions are to know: a decision, a preference, a fact"
KINDS = ("preference", "decision", "fact")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="TEXT", nargs="+", help="one sentence that can be understood alone")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0], help=f"what it is ({KINDS[0]})")
    parser.add_argument("--file", metavar="FILE", default="", help="the file that it is about")
    parser.add_argument(
        "--quote", metavar="WORDS", default="", help="what an agent needs: words of its session as proof"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    text = " ".join(arguments.words).strip()
    if not text:
        raise WrongCallError("nothing was named", 'session-memory remember "We use luxon for dates"')
    is_agent = is_started_by_agent(os.environ)
    if is_agent and not arguments.quote.strip():
        hint = 'session-memory remember "We use luxon for dates" --quote "luxon, not dayjs"'
        raise WrongCallError("an agent proves what it notes by the words of its session", hint)
    note = _note_of_agent if is_agent or arguments.quote else _note
    return with_store(arguments, lambda opened: note(opened, arguments, text), writes=True)


def _note_of_agent(opened: OpenStore, arguments: argparse.Namespace, text: str) -> int:
    about = f" In `{_within_project(arguments.file)[0]}`." if arguments.file else ""
    backend = HomeBackend(arguments.home, os.environ)
    return _show(opened, backend.remember(arguments.kind, f"{text}{about}", arguments.quote))


def _note(opened: OpenStore, arguments: argparse.Namespace, text: str) -> int:
    about, root = _within_project(arguments.file)
    return _show(opened, note_by_person(opened.location, arguments.kind, text, about, root, opened.note))


def _within_project(file: str) -> tuple[str, str]:
    """Return the path of a file ('' for none) from the root of the project at hand, and that root."""
    here = os.getcwd()
    worktree = find_worktree(here, user_dir(os.environ))
    root = worktree.root if worktree and worktree.root else here
    return os.path.relpath(os.path.abspath(file), root) if file else "", root


def _show(opened: OpenStore, kept: IndexedMemory) -> int:
    opened.terminal.result({"memory": as_json(kept)})
    opened.terminal.line(line_of(kept))
    return 0
