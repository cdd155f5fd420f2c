"""Opens the caller's store for a command, and resolves ids and names in it.

A command may get a conversation's number, a memory's or session's id, or words of a title. For an
unknown name, it suggests the closest session or project."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...common.errors import SessionMemoryError
from ...common.system.sqlite import Patience
from ...common.system.terminal import Terminal, print_note
from ...common.text.format import has_words, one_line, shorten
from ...common.text.sanitize import name_for_people
from ...history.store import refresh as store_refresh
from ...history.store.location import StoreLocation, find_location
from ...history.store.refresh import Note
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.sqlite.exclusions import VisibilityOverrides
from ...history.store.values import Conversation, Filter, Progress
from ...sessions.runtimes.detection import is_started_by_agent
from .arguments import NO_LIMIT, OnlyForPeopleError, filter_of
from .output import brief, moment

if TYPE_CHECKING:
    from ...memory.shared_store import SharedStore

Done = TypeVar("Done")


NAMES = 5  # suggested at most
SHORT_TITLE_CHARACTERS = 40
CANDIDATES = 12
TITLE_CHARACTERS = 60
_LIKENESS = 0.4


class OpenStore(NamedTuple):
    """The context of a command: the store, its location, and the terminal.

    `is_rebuilt` means that the store was just rebuilt. `note` prints a notice once. `patience`
    limits how long a question waits; None for a command that writes. `shared` is the store if it is
    the team's, which is read like your own."""

    store: SqliteStore
    location: StoreLocation
    terminal: Terminal
    is_rebuilt: bool
    note: Note
    patience: Patience | None
    shared: SharedStore | None = None


def with_store(
    arguments: argparse.Namespace, work: Callable[[OpenStore], Done], *, writes: bool = False
) -> Done:
    """Return the result of `work` with the open store.

    If the store proves corrupt, it is rebuilt and the work is repeated. A command that does not
    write is a question, which is answered quickly from the current content. Raises
    SessionMemoryError."""
    terminal = Terminal(os.environ, is_json=arguments.json)
    with_private = getattr(arguments, "include_private", False)
    if with_private and is_started_by_agent(os.environ):
        raise OnlyForPeopleError("--include-private")
    location = find_location(arguments.home, os.environ)
    if getattr(arguments, "shared", False):
        return _with_shared(location, terminal, work)
    patience = None if writes else Patience(store_refresh.PATIENCE_SECONDS)
    said: set[str] = set()

    def note_once(text: str) -> None:
        # report only once that something failed to ingest, not each reason
        about = text.partition(":")[0]
        if about not in said:
            said.add(about)
            print_note(terminal.short(text))

    return store_refresh.use_store(
        location,
        lambda store, is_rebuilt: work(
            OpenStore(store, location, terminal, is_rebuilt, note_once, patience)
        ),
        note_once,
        partial(_shown, terminal, location),
        workers=os.cpu_count() or 1,
        patience=patience,
        overrides=VisibilityOverrides(location.own_sessions, with_private),
    )


def _with_shared(
    location: StoreLocation, terminal: Terminal, work: Callable[[OpenStore], Done]
) -> Done:
    """Return the result of `work` with the store of the team that the home has joined."""
    from contextlib import closing
    from typing import cast

    from ...memory.shared_store import shared_engine

    engine = shared_engine()
    url = engine.joined_url(location.home)
    with closing(engine.open_store(url, location.visible)) as store:
        return work(
            OpenStore(
                cast("SqliteStore", store),
                location,
                terminal,
                False,
                print_note,
                None,
                shared=store,
            )
        )


def refresh(opened: OpenStore, *, with_sub_agents: bool = False) -> None:
    """Ingest new content before a question is answered: see store.refresh.

    A team's store already has everything that was pushed to it."""
    if opened.shared:
        return
    shown = partial(_shown, opened.terminal, opened.location)
    store_refresh.refresh(
        opened.store, opened.location, opened.note, shown, workers=os.cpu_count() or 1
    )
    if with_sub_agents:
        store_refresh.read_sub_agents(opened.store)


def options_of(arguments: argparse.Namespace) -> str:
    """Return the options with which another command uses the same store and may show as much."""
    options = [""]
    if getattr(arguments, "shared", False):
        options.append("--team")
    if arguments.home:
        options.append(f"--home {shlex.quote(arguments.home)}")
    if getattr(arguments, "include_private", False):
        options.append("--include-private")
    return " ".join(options)


def on_store(
    work: Callable[[OpenStore, argparse.Namespace], int],
) -> Callable[[argparse.Namespace], int]:
    """Return a command's `run` function that calls `work` with the open store."""
    return lambda arguments: with_store(arguments, lambda opened: work(opened, arguments))


def _shown(
    terminal: Terminal, location: StoreLocation, store: SqliteStore
) -> AbstractContextManager[Progress]:
    from ...history.store.ingest.intake import pending
    from .progress import shown  # only for the first import

    return shown(terminal, lambda: pending(store, location.watched)[:2])


def check_names(opened: OpenStore, wanted: Filter) -> None:
    """Raise SessionMemoryError, with similar names, for a filter's unknown project or session."""
    store = opened.store
    if wanted.session and not store.conversations(Filter(session=wanted.session, limit=1)):
        talks = store.conversations(Filter(limit=NO_LIMIT))
        by_name = {
            name: f"{conversation.session_id} {shorten(one_line(conversation.title), SHORT_TITLE_CHARACTERS)}"
            for conversation in talks[::-1]
            for name in (conversation.title, conversation.session_id)
        }
        hint = _hint(wanted.session, by_name, "session-memory sessions --all lists them")
        raise SessionMemoryError(f"no session is called {wanted.session!r}", hint)
    of_project = Filter(limit=1)._replace(
        project=wanted.project, directories=wanted.directories, folders=wanted.folders
    )
    if of_project != Filter(limit=1) and not store.conversations(of_project):
        talks = store.conversations(Filter(limit=NO_LIMIT))
        directories = [
            opened.terminal.short(conversation.cwd)
            for conversation in talks[::-1]
            if conversation.cwd
        ]
        by_name = {os.path.basename(path): path for path in directories}
        named = wanted.project or wanted.directories[0]
        hint = _hint(
            os.path.basename(named.rstrip("/")),
            by_name,
            "no project has messages yet",
        )
        if wanted.project:
            raise SessionMemoryError(f"no project has {named!r} in its directory", hint)
        raise SessionMemoryError(f"no session was started in {named!r} or below", hint)


def _hint(name: str, by_name: dict[str, str], otherwise: str) -> str:
    """Return a hint with the names most similar to `name`, or else the latest ones.

    `by_name` maps each name to its shown form, the latest last."""
    from difflib import get_close_matches

    by_lower = {known.lower(): shown for known, shown in by_name.items()}
    near = _different(
        by_lower[match]
        for match in get_close_matches(name.lower(), list(by_lower), 2 * NAMES, _LIKENESS)
    )
    suggestions = near or _different(list(by_name.values())[::-1])
    if not suggestions:
        return otherwise
    return "\n  ".join(["the nearest:" if near else "the latest:", *suggestions])


def _different(names: Iterable[str]) -> list[str]:
    return [name_for_people(name) for name in dict.fromkeys(names)][:NAMES]


def session_behind(word: str, arguments: argparse.Namespace) -> str:
    """Return the session id for a conversation's number or a memory's id.

    Return '' if there is none, or no store."""
    store_arguments = argparse.Namespace(home=arguments.home, json=False)
    return unless_absent(store_arguments, lambda opened: _session_behind(opened, word)) or ""


def unless_absent(
    arguments: argparse.Namespace, work: Callable[[OpenStore], Done | None]
) -> Done | None:
    """Return the result of `work` with the open store; None if there is none or it fails."""
    try:
        if os.path.exists(find_location(arguments.home, os.environ).database):
            return with_store(arguments, work)
    except (SessionMemoryError, ImportError, OSError):  # then what it would find is unknown
        pass
    return None


def _session_behind(opened: OpenStore, word: str) -> str:
    from ...memory.session_ids import session_behind

    return session_behind(opened.store, opened.location, opened.note, opened.patience, word)


def wanted_of(opened: OpenStore, arguments: argparse.Namespace) -> Filter:
    """Return the filter of the arguments, with the session id for `--session`.

    Raises AmbiguousSessionError."""
    wanted = filter_of(arguments, opened.location)
    if not wanted.session or opened.store.conversations(Filter(session=wanted.session, limit=1)):
        return wanted
    conversations = sessions_called(opened, wanted.session)
    session = (
        conversations[0].session_id if conversations else _session_behind(opened, wanted.session)
    )
    return wanted._replace(session=session or wanted.session)


def last_conversation(opened: OpenStore, word: str) -> Conversation | None:
    """Return the last conversation of the session for `word`.

    `word` may also be the number of a conversation or the id of a memory. Raises
    AmbiguousSessionError."""
    conversations = sessions_called(opened, word)
    if not conversations and (session := _session_behind(opened, word)):
        conversations = sessions_called(opened, session)
    return conversations[0] if conversations else None


def _latest_of_runtime(every: list[Conversation], word: str) -> list[Conversation]:
    """Return the conversations of the latest session of the runtime that `word` names."""
    from ...sessions.runtimes.table import all_runtimes

    names = [each.name for each in all_runtimes() if word.casefold() in each.called]
    sessions = (conversation.session_id for conversation in every if conversation.runtime in names)
    latest = next(sessions, None)
    return [conversation for conversation in every if conversation.session_id == latest]


def sessions_called(opened: OpenStore, word: str) -> list[Conversation]:
    """Return the conversations of the only session for `word`, the latest first.

    Raises AmbiguousSessionError."""
    every = opened.store.conversations(Filter(limit=NO_LIMIT))
    conversations = (
        [conversation for conversation in every if conversation.session_id == word]
        or [
            conversation
            for conversation in every
            if word and conversation.session_id.startswith(word)
        ]
        or [
            conversation
            for conversation in every
            if conversation.title.casefold() == word.casefold()
        ]
        or [conversation for conversation in every if has_words(conversation.title, word)]
        or _latest_of_runtime(every, word)
    )
    sessions = {conversation.session_id: conversation for conversation in reversed(conversations)}
    if len(sessions) > 1:
        # only then, because it loads all code that reads transcripts
        from ...sessions.transcripts.sessions import AmbiguousSessionError

        lines = [
            f"  {line_of(conversation)}"
            for conversation in list(sessions.values())[::-1][:CANDIDATES]
        ]
        raise AmbiguousSessionError(
            f"{word!r} fits {len(sessions)} sessions; give the id of one:", "\n".join(lines)
        )
    return conversations


def line_of(conversation: Conversation) -> str:
    """Return a line that identifies a session, by one of its conversations."""
    id, project = map(
        name_for_people, (conversation.session_id, os.path.basename(conversation.cwd) or "-")
    )
    return f"{id}  {moment(conversation.last_message_at)}  {project}  {brief(conversation.title, TITLE_CHARACTERS)}"
