"""`session-memory rescue`: lists lost work of sessions; restores it as new branches and files."""

from __future__ import annotations

import argparse
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ... import NAME
from ...common.errors import SessionMemoryError, WrongCallError
from ...common.system.git import Worktree, find_worktree, refusal_at
from ...common.system.git_process import GitUnavailableError
from ...common.system.terminal import Result, Terminal, called_as
from ...common.text.format import counted
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age, iso_time
from ...history.archives.list import former_names
from ...sessions.settings.homes import user_dir
from ...sessions.transcripts.sessions import FoundSession, UnknownSessionError, find_sessions
from ._lost_objects import DAYS
from ._lost_work import FILE, RECENT_SECONDS, TEXT, Rescuable, Rescue, restore
from .arguments import add_home
from .output import brief
from .sessions import SessionChoice

SUMMARY = "bring back work that another session's git commands removed"
SHOWN_LINES = 40  # of a diff
TITLE_CHARACTERS = 60
KINDS = {FILE: "staged file", TEXT: "edits"}
NOT_THE_FILE = (
    "These are texts of edits from the transcript. They are not the whole file, because it was "
    "never in git: the lines around the edits, and changes by commands, are missing."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Show lost work of this repository's sessions: stashes, branches, commits and staged files "
        f"of the last {DAYS} days, and texts of edits that were never in git. With IDs, restore "
        "it. A commit gets a new branch rescue/ID. A file is written beside an existing one, "
        "never over it."
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="restore this; the list has the ids")
    parser.add_argument(
        "--session",
        metavar="S",
        default="",
        help="only work of this session: its id, the beginning of it, or its title",
    )
    parser.add_argument("--list", action="store_true", help="one line each, without the diffs")
    parser.add_argument(
        "--full",
        action="store_true",
        help=f"show whole diffs, not only their first {SHOWN_LINES} lines",
    )
    parser.add_argument(
        "--unknown", action="store_true", help="also show work of unknown sessions and people"
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(arguments: argparse.Namespace) -> int:
    """List or restore lost work. Raises SessionMemoryError, OSError."""
    if arguments.ids and arguments.list:
        raise WrongCallError(
            "--list restores nothing, and an ID was given", "leave one of the two out"
        )
    terminal, worktree = Terminal(os.environ, is_json=arguments.json), _worktree_here()
    arguments.all = False
    chosen = (
        SessionChoice(arguments.session, arguments, os.environ).session()
        if arguments.session
        else None
    )
    visible, hidden = _sessions(arguments.home)
    if chosen:
        visible = [chosen, *[each for each in visible if each.id != chosen.id]]
    try:
        rescue = Rescue(worktree, visible, hidden, chosen)
        work = rescue.find()
        if chosen:
            work = [each for each in work if each.session and each.session.id == chosen.id]
        if arguments.ids:
            return _restore(arguments.ids, work, rescue, terminal)
        terminal.show(_rescuable(work, rescue, arguments))
    except GitUnavailableError as error:
        raise SessionMemoryError(
            f"git found no lost work: {error}", "try `git fsck` in this directory"
        ) from error
    return 0


def _worktree_here() -> Worktree:
    """Return the worktree of the current directory. Raises SessionMemoryError."""
    home = user_dir(os.environ)
    hint = "change to a worktree of the repository whose work is lost: cd PATH"
    try:
        directory = os.getcwd()
    except FileNotFoundError:
        raise SessionMemoryError("the current directory was removed", hint) from None
    if refused := refusal_at(directory, home):
        raise SessionMemoryError(f"git cannot tell: {refused}")
    worktree = find_worktree(directory, home)
    if worktree is None or not worktree.root:
        raise SessionMemoryError(
            f"rescue needs a git worktree, and {directory} is not in one", hint
        )
    return worktree


def _sessions(home: str | None) -> tuple[list[FoundSession], list[FoundSession]]:
    """Return the sessions whose work may be shown, and those that rules hide."""
    since = time.time() - RECENT_SECONDS
    listings: list[dict[str, FoundSession]] = []
    for is_private in (False, True):
        by_path: dict[str, FoundSession] = {}
        for is_everywhere in (False, True):
            with suppress(UnknownSessionError):
                sessions = find_sessions(
                    home,
                    is_everywhere,
                    os.environ,
                    with_private=is_private,
                    since=since,
                    former_names=former_names,
                )
                by_path = {**{each.session.path: each for each in sessions}, **by_path}
        listings.append(by_path)
    visible, every = listings
    return list(visible.values()), [every[path] for path in every if path not in visible]


def _rescuable(
    work: list[Rescuable], rescue: Rescue, arguments: argparse.Namespace
) -> RescuableWork:
    shown = [each for each in work if each.session or arguments.unknown]
    diffs = {} if arguments.list else {each.id: each.diff(rescue.objects) for each in shown}
    return RescuableWork(shown, diffs, len(work) - len(shown), is_full=arguments.full)


@dataclass(frozen=True)
class RescuableWork(Result):
    """Lost work with its diffs by id; a list has no diffs.

    `unknown` counts further work of unknown sessions. If it `is_full`, diffs are printed whole."""

    shown: list[Rescuable]
    diffs: dict[str, str]
    unknown: int
    is_full: bool

    def show(self, terminal: Terminal) -> None:
        if not self.shown:
            terminal.line("git and the transcripts show no lost work of these sessions.")
        with terminal.paged():
            if self.shown and not self.diffs:
                terminal.table(
                    [("ID", "KIND", "AGE", "SESSION", "ABOUT"), *map(_row, self.shown)], []
                )
            for each in self.shown if self.diffs else ():
                self._show_one(each, terminal)
        if self.shown:
            terminal.line(f"To restore: {called_as()} rescue {self.shown[0].id}")
        if self.unknown:
            more = counted(
                self.unknown, "more commit or staged file", "more commits or staged files"
            )
            terminal.line(f"{more} by an unknown session or person: --unknown shows them.")

    def _show_one(self, each: Rescuable, terminal: Terminal) -> None:
        id, kind, when, session, about = _row(each)
        terminal.line(terminal.paint("bold", f"{id}  {kind}  {about}") + f"  ({when}, {session})")
        if each.kind == TEXT:
            terminal.line(f"  {NOT_THE_FILE}")
        _show_diff(self.diffs[each.id], terminal, is_whole=self.is_full)
        terminal.line()

    def as_json(self) -> dict[str, Any]:
        return {
            "rescuable": [_as_json(each, self.diffs.get(each.id)) for each in self.shown],
            "unknown": self.unknown,
        }


def _row(each: Rescuable) -> tuple[str, str, str, str, str]:
    session = brief(each.session.name, TITLE_CHARACTERS) if each.session else "-"
    kind, when = KINDS.get(each.kind, each.kind), age(time.time() - each.at) if each.at else "-"
    return each.id, kind, when, session, brief(each.about, TITLE_CHARACTERS) or "-"


def _show_diff(diff: str, terminal: Terminal, *, is_whole: bool) -> None:
    lines = [for_people(line).replace("\n", " ") for line in diff.rstrip("\n").split("\n")]
    terminal.diff("\n".join(lines if is_whole else lines[:SHOWN_LINES]), "  ")
    if not is_whole and len(lines) > SHOWN_LINES:
        terminal.line(f"  [{len(lines) - SHOWN_LINES:,} more lines: --full]")


def _as_json(each: Rescuable, diff: str | None) -> dict[str, Any]:
    fields = {
        "id": each.id,
        "kind": each.kind,
        "about": each.about,
        "at": iso_time(each.at) if each.at else None,
        "session": each.session.id if each.session else None,
        "title": each.session.name if each.session else None,
        "commit": each.commit or None,
        "is_whole": each.kind != TEXT,
    }
    return fields if diff is None else {**fields, "diff": diff}


def _restore(ids: list[str], work: list[Rescuable], rescue: Rescue, terminal: Terminal) -> int:
    """Restore all work with these ids, or none if an id is unknown.

    Raises SessionMemoryError, OSError."""
    restored: list[tuple[Rescuable, str]] = []
    try:
        for each in [_with_id(id, work) for id in dict.fromkeys(ids)]:
            restored.append((each, restore(each, rescue.objects)))
    except BaseException:  # earlier ones stay restored
        RestoredWork(restored).show(terminal)
        raise
    terminal.show(RestoredWork(restored))
    return 0


@dataclass(frozen=True)
class RestoredWork(Result):
    """The restored work, each with its branch or file."""

    restored: list[tuple[Rescuable, str]]

    def show(self, terminal: Terminal) -> None:
        for each, place in self.restored:
            if each.commit:
                terminal.line(f"{each.id} is branch {place} now: git diff HEAD...{place}")
                continue
            terminal.line(f"{each.id} is {for_people(terminal.short(place))} now.")
            if each.kind == TEXT:
                terminal.note(NOT_THE_FILE)

    def as_json(self) -> dict[str, Any]:
        places = [
            {"id": each.id, "kind": each.kind, "place": place} for each, place in self.restored
        ]
        return {"restored": places}


def _with_id(id: str, work: list[Rescuable]) -> Rescuable:
    """Return the lost work with an id or the beginning of one. Raises SessionMemoryError."""
    fitting = [each for each in work if each.id == id] or [
        each for each in work if each.id.startswith(id) or (each.commit and each.commit == id)
    ]
    if len(fitting) == 1:
        return fitting[0]
    hint = f"{NAME} rescue --list --unknown lists the ids"
    if not fitting:
        raise SessionMemoryError(f"no lost work has the id {id!r}", hint)
    raise SessionMemoryError(f"{id!r} is the beginning of {len(fitting)} ids", hint)
