"""Writes memories: strategies' results, and an agent's own, proved by a quotation.

The quotation is from the agent's own session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from ..common.errors import SessionMemoryError
from ..common.text.format import one_line
from ..common.text.sanitize import for_storage
from ..common.text.timestamps import now_milliseconds
from ..history.recorded import RecordedDetails
from ..history.store.location import StoreLocation
from ..history.store.refresh import Note, open_store, refresh
from ..history.store.rules import StoreRules
from ..history.store.sqlite.engine import SqliteStore
from ..history.store.values import ENTRY_ROLES, Conversation, Filter, StoredEntry
from .folders import folder_of, is_untrusted
from .format import BY_AGENT, BY_PERSON, new_memory
from .library import Library, library_of, open_index
from .memory_index import IndexedMemory, MemoryIndex, Origin
from .strategy import KnownMemory, Memory, MemoryResult, Strategy, StrategyContext

if TYPE_CHECKING:
    from .strategy import Details

MOST_CONVERSATIONS = 200  # of one session, the latest first, searched for a quotation


class AgentMemoryError(SessionMemoryError):
    """A memory that an agent may not add or may not forget."""


class MemoryWriter:
    """The queue's sink, for one run: a context that updates the memories once at its end.

    `directory` returns the memories directory of a group, `is_untrusted` whether a conversation's
    memories are kept apart. `rules` decide which conversations are excluded, `details` returns what
    only the transcript has of a conversation."""

    def __init__(
        self,
        database: str,
        directory: Callable[[str], str],
        is_untrusted: Callable[[Conversation], bool] = lambda conversation: False,
        rules: StoreRules | None = None,
        details: Details = lambda conversation, entries: None,
    ) -> None:
        self._details = details
        self._open_index = partial(MemoryIndex, database, rules)
        self._directory = directory
        self._is_untrusted = is_untrusted
        self._index: MemoryIndex | None = None
        self._libraries: dict[str, Library] = {}

    def __enter__(self) -> MemoryWriter:
        return self

    def __exit__(self, problem: type[BaseException] | None, *_: object) -> None:
        if self._index is None:
            return
        try:
            # otherwise the next access does it
            for library in self._libraries.values() if problem is None else ():
                library.refresh()
        finally:
            self._index.close()

    def __call__(
        self,
        conversation: Conversation,
        entries: Sequence[StoredEntry],
        strategy: str,
        result: MemoryResult,
    ) -> list[str]:
        """Write the memories of a result and return their ids. Idempotent.

        Raises SessionMemoryError, OSError."""
        library = self._library(conversation.home)
        return _keep(
            library, conversation, strategy, result, is_untrusted=self._is_untrusted(conversation)
        )

    def known(self, conversation: Conversation, text: str, limit: int) -> list[KnownMemory]:
        """Return the memories that match `text`: see `StrategyContext`."""
        memories = self._library(conversation.home).known(
            text, limit, is_untrusted=self._is_untrusted(conversation)
        )
        return [
            KnownMemory(memory.id, memory.kind, memory.subject, memory.whole_text)
            for memory in memories
        ]

    def attach(self, strategies: Sequence[Strategy], directory: str) -> None:
        """Call `attach` on the strategies that have it; `directory` is for their own files."""
        for strategy in strategies:
            attach = getattr(strategy, "attach", None)
            if attach is not None:
                attach(StrategyContext(directory, self.known, self._is_untrusted, self._details))

    def _library(self, home_name: str) -> Library:
        if self._index is None:
            self._index = self._open_index()
        if home_name not in self._libraries:
            self._libraries[home_name] = Library(self._directory(home_name), self._index, home_name)
        return self._libraries[home_name]


def memory_writer(location: StoreLocation) -> MemoryWriter:
    """Return the writer for memories made of a store's conversations."""
    settings = location.memory_settings
    return MemoryWriter(
        location.database,
        partial(folder_of, location),
        partial(is_untrusted, location),
        location.rules,
        partial(RecordedDetails.read, location, settings.filtering),
    )


def _keep(
    library: Library,
    conversation: Conversation,
    strategy: str,
    result: MemoryResult,
    *,
    is_untrusted: bool,
) -> list[str]:
    """Write the memories of a result and return their ids. Raises as the methods of Library do."""
    directory = for_storage(conversation.cwd)
    origin = Origin(
        conversation.last_message_at,
        conversation.session_id,
        conversation.id,
        strategy,
        directory=directory,
    )
    made = []
    for statement in result.memories:
        source = (
            origin
            if statement.at is None
            else origin._replace(at=statement.at, message=statement.message)
        )
        memory = new_memory(
            statement.kind,
            statement.title,
            statement.text,
            statement.subject,
            statement.quote,
            source,
            is_untrusted=is_untrusted,
        )
        made += [(memory, statement.replaces)] if memory.title else []
    return library.keep(made)


def remember(
    location: StoreLocation, session: str, kind: str, text: str, quote: str, note: Note
) -> IndexedMemory:
    """Store a memory whose quotation is in the session; return it, or the one that says the same.

    Raises AgentMemoryError if rules exclude part of the session, the quotation is not in it, or the
    memory was forgotten; DatabaseError, LockedError, OSError."""
    with closing(open_store(location, note)) as store:
        refresh(store, location, note)
        with open_index(location, note) as index:
            quoted = _quoted(store, location, session, quote)
            if quoted is None or index.excluded_sessions(quoted[0].home, [session]):
                hint = (
                    "quote this session word for word; a session that rules exclude cannot become "
                    "a memory"
                )
                raise AgentMemoryError(
                    "nothing was remembered: the quotation is not in this session", hint
                )
            conversation, entry = quoted
            project = conversation.cwd.rstrip("/").rpartition("/")[2]
            made = Memory(kind, text, "", project, quote, (), entry.number, entry.timestamp)
            library = library_of(location, index, conversation.home)
            untrusted = is_untrusted(location, conversation)
            ids = _keep(
                library, conversation, BY_AGENT, MemoryResult((made,)), is_untrusted=untrusted
            )
            return _settled(library, index, ids, "only the user can undo that")


def note_by_person(
    location: StoreLocation, kind: str, text: str, file: str, directory: str, note: Note
) -> IndexedMemory:
    """Store a person's explicit statement; return it, or the memory that says the same.

    It is about a `file` of the project at `directory` ('' if none). Raises AgentMemoryError if it
    was forgotten; DatabaseError, LockedError, OSError."""
    origin = Origin(now_milliseconds(), BY_PERSON, 0, BY_PERSON, directory=directory)
    project = directory.rstrip("/").rpartition("/")[2]
    made = new_memory(
        kind, text, f"In `{file}`." if file else "", project, "", origin, is_untrusted=False
    )
    with open_index(location, note) as index:
        library = library_of(location, index, "")
        return _settled(
            library, index, library.keep([(made, ())]), "session-memory memories forget --undo"
        )


def _settled(
    library: Library, index: MemoryIndex, ids: Sequence[str], how_to_undo: str
) -> IndexedMemory:
    """Update the library, and return the stored memory.

    Raises AgentMemoryError if it was forgotten, or rules exclude its directory."""
    library.refresh()
    if not ids:
        raise AgentMemoryError(
            "nothing was remembered: this memory was forgotten earlier", how_to_undo
        )
    kept = [memory for memory in index.beginning_with(ids[0]) if memory.home == library.home]
    if not kept:
        problem = (
            "rules exclude this directory, so your memory is on a private page that nothing shows"
        )
        raise AgentMemoryError(problem, "session-memory config projects")
    return kept[0]


def forget(location: StoreLocation, id: str, note: Note) -> IndexedMemory:
    """Forget the memory with this exact id and return it; the user can undo that for a day.

    Raises AgentMemoryError for an unknown id; DatabaseError, LockedError, OSError."""
    with open_index(location, note) as index:
        wanted = id.strip().removeprefix("^").lower()
        memories = [memory for memory in index.beginning_with(wanted) if memory.id == wanted]
        if not memories:
            raise AgentMemoryError(f"no memory has the id {id!r}", "find it with search_sessions")
        library_of(location, index, memories[0].home).forget([wanted], can_undo=True)
        return memories[0]


def _quoted(
    store: SqliteStore, location: StoreLocation, session: str, quote: str
) -> tuple[Conversation, StoredEntry] | None:
    """Return a session's latest entry with the quotation; None if missing or excluded."""
    words = for_storage(one_line(quote))
    wanted = Filter(session=session, limit=MOST_CONVERSATIONS)
    for conversation in store.conversations(wanted):
        if conversation.session_id == session:
            for entry in reversed(list(store.entries(conversation.id))):
                if entry.role in ENTRY_ROLES and words in one_line(entry.text):
                    return conversation, entry
    return None
