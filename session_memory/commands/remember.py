"""`session-memory remember`: notes what a person wants all later sessions to know."""

from __future__ import annotations

import argparse
import os

from ..errors import WrongCallError
from ..memories.writer import note_by_person
from ..runtimes.detection import is_started_by_agent
from ..settings.homes import user_dir
from ..system.git import find_worktree
from .arguments import OnlyForPeopleError, add_common
from .memories import as_json, line_of
from .opened_store import OpenStore, with_store

SUMMARY = "note what later sessions are to know: a decision, a preference, a fact"
KINDS = ("preference", "decision", "fact")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="TEXT", nargs="+", help="one sentence that can be understood alone")
    parser.add_argument("--kind", choices=KINDS, default=KINDS[0], help=f"what it is ({KINDS[0]})")
    parser.add_argument("--file", metavar="FILE", default="", help="the file that it is about")
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    if is_started_by_agent(os.environ):
        raise OnlyForPeopleError("remember")  # an agent has a tool, which takes a quotation
    text = " ".join(arguments.words).strip()
    if not text:
        raise WrongCallError("nothing was named", 'session-memory remember "We use luxon for dates"')
    return with_store(arguments, lambda opened: _note(opened, arguments, text), writes=True)


def _note(opened: OpenStore, arguments: argparse.Namespace, text: str) -> int:
    here = os.getcwd()
    worktree = find_worktree(here, user_dir(os.environ))
    root = worktree.root if worktree and worktree.root else here
    about = os.path.relpath(os.path.abspath(arguments.file), root) if arguments.file else ""
    kept = note_by_person(opened.location, arguments.kind, text, about, root, opened.note)
    opened.terminal.result({"memory": as_json(kept)})
    opened.terminal.line(line_of(kept))
    return 0
