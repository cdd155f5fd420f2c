"""`session-memory export`: conversations in one of several forms, to a file or to stdout."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from ...common.errors import SessionMemoryError, WrongCallError
from ...common.extensions import load
from ...common.system.files import expanded
from ...common.system.sqlite import CorruptDatabaseError
from ...common.system.terminal import Terminal
from ...common.text.format import counted
from ...common.text.timestamps import now_milliseconds
from ...extension_points import EXPORT_FORMATS
from ...history.export import WITHHELD, Exported, ExportHead, as_filtered, export
from ...history.store.values import Conversation, Filter
from ...history.trajectory import trajectory_of
from ...sessions.settings.sections import Filtering
from ._picker import picked_session
from .arguments import NO_LIMIT, add_home, add_private, add_project, filter_of
from .opened_store import OpenStore, check_names, line_of, refresh, wanted_of, with_store

FILTERED, ATIF = "filtered", "atif"
_ENCODING = "utf-8", "backslashreplace"  # whatever the terminal's is
SUMMARY = "write conversations to a file, as Markdown, JSON, HTML or ATIF"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    named = (
        "its name, its title, a word of its title, its id, the beginning of its id, or a runtime's "
        "name for that runtime's latest session"
    )
    parser.add_argument("session", metavar="SESSION", nargs="?", default="", help=named)
    add_project(parser)
    parser.add_argument("--all", action="store_true", help="everything")
    parser.add_argument(
        "--format",
        choices=[*EXPORT_FORMATS, ATIF],
        default="markdown",
        help="default: markdown; filtered: the text that a model reads to make memories",
    )
    parser.add_argument(
        "--json", action="store_const", dest="format", const="json", help="as --format json"
    )
    parser.add_argument("--full", action="store_true", help="include tool uses and their outcomes")
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="",
        help="the output file (default, or -: stdout); replaces an existing one",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="list the conversations without writing anything"
    )
    parser.set_defaults(json=False, since=None, until=None, limit=NO_LIMIT)
    add_private(parser)
    add_home(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write them. Raises SessionMemoryError, OSError."""
    if not (arguments.session or arguments.project or arguments.all):
        arguments.session = picked_session(arguments, "name a session, --project P or --all")
    if arguments.all and (arguments.session or arguments.project):
        raise WrongCallError("--all takes no limits", "drop --all, or the session and the project")
    arguments.out = "" if arguments.out == "-" else arguments.out
    return with_store(arguments, lambda opened: _export(opened, arguments))


def _export(opened: OpenStore, arguments: argparse.Namespace) -> int:
    refresh(opened)
    wanted = filter_of(arguments, opened.location)
    ids = _ids(opened, wanted, arguments)
    if not ids and not arguments.all:
        check_names(opened, wanted)
        raise SessionMemoryError(
            "no conversation matches", "session-memory sessions --all lists them"
        )
    if arguments.dry_run:
        return _preview(opened, arguments.out, ids)
    if arguments.format == ATIF:
        return _export_trajectories(opened, arguments, ids)
    exported: list[int] = []

    def conversations() -> Iterator[Conversation]:
        for id in ids:
            # otherwise forgotten or excluded meanwhile
            if conversation := opened.store.conversation(id):
                exported.append(id)
                yield conversation

    form = load(EXPORT_FORMATS[arguments.format])
    first = opened.store.conversation(ids[0]) if wanted.session and ids else None
    title = first.title if first else ""
    full = arguments.full or arguments.format == FILTERED
    pieces = export(
        form,
        conversations(),
        opened.store.entries,
        ExportHead(now_milliseconds(), full, title, opened.location),
    )
    if not arguments.out:
        _print(pieces, opened.terminal)
        return 0
    with _replaced(arguments.out) as file:
        for piece in pieces:
            file.write(piece.encode(*_ENCODING))
    opened.terminal.line(
        f"{counted(len(exported), 'conversation')} in {opened.terminal.short(arguments.out)}"
    )
    return 0


def _ids(opened: OpenStore, wanted: Filter, arguments: argparse.Namespace) -> Sequence[int]:
    """Return the ids of a session's conversations, found by its id, else by its name."""
    ids: Sequence[int] = opened.store.conversation_ids(wanted)
    if not ids and wanted.session:
        ids = [
            id
            for session in _sessions_called(opened, wanted.session)
            for id in opened.store.conversation_ids(wanted._replace(session=session))
        ]
    if not ids and wanted.session:
        ids = opened.store.conversation_ids(wanted_of(opened, arguments))
    return ids


def _preview(opened: OpenStore, out: str, ids: Sequence[int]) -> int:
    """Show which conversations would be written, and write nothing."""
    count = 0
    for id in ids:
        if conversation := opened.store.conversation(id):
            opened.terminal.line(line_of(conversation))
            count += 1
    where = opened.terminal.short(out) if out else "stdout"
    opened.terminal.line(f"{counted(count, 'conversation')} would be written to {where}.")
    return 0


def as_filtered_here(exported: Iterable[Exported], head: ExportHead) -> Iterator[str]:
    """Return the conversations, filtered as for the strategies of the store at `head.location`."""
    filtering = head.location.memory_settings.filtering if head.location else Filtering()
    return as_filtered(exported, filtering, head.location)


def _export_trajectories(
    opened: OpenStore, arguments: argparse.Namespace, ids: Sequence[int]
) -> int:
    """Write a file for each session, several into a directory.

    Raises SessionMemoryError, OSError."""
    sessions: dict[tuple[str, str], list[Conversation]] = {}
    for id in ids:
        if conversation := opened.store.conversation(id):
            sessions.setdefault((conversation.home, conversation.session_id), []).append(
                conversation
            )
    out = expanded(arguments.out, os.environ)
    if len(sessions) > 1 and not os.path.isdir(out):
        raise WrongCallError(
            f"one ATIF file cannot contain {len(sessions):,} sessions",
            "name a directory: --out DIR",
        )
    written = 0
    for conversations in sessions.values():
        document = trajectory_of(
            opened.location, opened.store, conversations, arguments.include_private
        )
        if document is None:
            opened.terminal.note(f"{WITHHELD}: {conversations[-1].session_id}")
            continue
        text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
        written += 1
        if not out:
            _print(iter([text]), opened.terminal)
            continue
        path = f"{out}/{conversations[-1].session_id}.json" if os.path.isdir(out) else out
        with _replaced(path) as file:
            file.write(text.encode(*_ENCODING))
    if out:
        opened.terminal.line(
            f"{counted(written, 'session')} in {opened.terminal.short(arguments.out)}"
        )
    return 0 if written else 1


def _sessions_called(opened: OpenStore, name: str) -> list[str]:
    """Return the ids of the sessions with this title or name, else of the one whose id begins so.

    Only titles that may be shown count."""
    location = opened.location
    called = [
        (conversation.title, conversation.session_id)
        for conversation in opened.store.conversations(Filter(limit=NO_LIMIT))
    ]
    rules = location.rules()
    for file in location.known_files(opened.store):
        called += [(known, file.session_id) for known in rules.names(file.subject)]
    ids = list(dict.fromkeys(id for known, id in called if known == name))
    begun = {id for known, id in called if known.casefold().startswith(name.casefold())}
    return ids or (list(begun) if len(begun) == 1 else [])


def _print(pieces: Iterator[str], terminal: Terminal) -> None:
    """Print the pieces of an export.

    Raises SessionMemoryError if the store proves damaged. It is rebuilt then, but the part already
    printed cannot be taken back."""
    has_begun = False
    try:
        for piece in pieces:
            terminal.verbatim(piece)
            has_begun = has_begun or bool(piece)
    except CorruptDatabaseError as error:
        if not has_begun:
            raise
        raise SessionMemoryError(
            f"this is not all: {error}",
            "session-memory ingest repairs the store; then run the command again",
        ) from error


@contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    """Open a private file that replaces `path` once it is complete.

    A path that is not a regular file, such as a pipe, is written to directly. Raises OSError."""
    path = os.path.realpath(expanded(path, os.environ))
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        error.filename = path
        raise
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
