"""Memories that an agent writes or deletes itself: one that a quotation from its own session proves, and one by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..store.refresh import open_store, refresh
from ..store.values import ENTRY_ROLES, Filter
from ..text.format import one_line
from ..text.sanitize import for_storage
from .folders import is_untrusted
from .library import library_of, open_index
from .strategy import Memory, MemoryResult
from .writer import keep

if TYPE_CHECKING:
    from ..store.location import StoreLocation
    from ..store.refresh import Note
    from ..store.sqlite.engine import SqliteStore
    from ..store.sqlite.memory_index import IndexedMemory
    from ..store.values import Conversation, StoredEntry

BY = "agent"  # the strategy in such a memory's origin
_MOST_CONVERSATIONS = 200  # of one session, the latest first


class AgentMemoryError(SessionMemoryError):
    """A memory that an agent may not add or may not forget."""


def remember(location: StoreLocation, session: str, kind: str, text: str, quote: str, note: Note) -> IndexedMemory:
    """Store a memory whose quotation is in the session. Return it, or the existing memory that says the same. Raises
    AgentMemoryError if rules exclude part of the session, the quotation is not in it, or the memory was forgotten;
    DatabaseError, LockedError, OSError."""
    memory = Memory(kind, text, "", quote=quote)
    store = open_store(location, note)
    try:
        refresh(store, location, note)
        with open_index(location, note) as index:
            found = _quoted(store, location, session, memory.quote)
            if found is None or index.excluded_sessions(found[0].home, [session]):
                hint = "quote this session word for word; a session that rules exclude cannot be remembered"
                raise AgentMemoryError("nothing was remembered: the quotation is not in this session", hint)
            conversation, entry = found
            made = memory._replace(message=entry.number, at=entry.timestamp)
            library = library_of(location, index, conversation.home)
            untrusted = is_untrusted(location, conversation)
            ids = keep(library, conversation, BY, MemoryResult((made,)), is_untrusted=untrusted)
            kept = [one for id in ids for one in index.beginning_with(id, (conversation.home,))]
    finally:
        store.close()
    if not kept:
        raise AgentMemoryError("nothing was remembered: it was forgotten before", "only the user can undo that")
    return kept[0]


def forget(location: StoreLocation, id: str, note: Note) -> IndexedMemory:
    """Forget the memory with this exact id and return it; the user can undo that for a day. Raises AgentMemoryError for
    an unknown id; DatabaseError, LockedError, OSError."""
    with open_index(location, note) as index:
        wanted = id.strip().removeprefix("^").lower()
        found = [one for one in index.beginning_with(wanted, location.homes) if one.id == wanted]
        if not found:
            raise AgentMemoryError(f"no memory has the id {id!r}", "search_sessions shows the ids of memories")
        library_of(location, index, found[0].home).forget([wanted], can_undo=True)
        return found[0]


def _quoted(
    store: SqliteStore, location: StoreLocation, session: str, quote: str
) -> tuple[Conversation, StoredEntry] | None:
    """Return the latest entry of a session with the quotation; None if there is none or rules exclude it."""
    (words,) = for_storage([one_line(quote)])
    wanted = Filter(homes=location.homes, session=session, limit=_MOST_CONVERSATIONS)
    for conversation in store.conversations(wanted):
        if conversation.session_id == session:
            for entry in reversed(list(store.entries(conversation.id))):
                if entry.role in ENTRY_ROLES and words in one_line(entry.text):
                    return conversation, entry
    return None
