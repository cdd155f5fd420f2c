"""Ids that commands and tools print and accept instead of a session's id.

They are a conversation's number and a memory's id."""

from ..common.system.sqlite import Patience
from ..history.store.location import StoreLocation
from ..history.store.refresh import Note
from ..history.store.sqlite.engine import SqliteStore
from .library import open_index
from .memory_index import IndexedMemory

LARGEST_NUMBER = 10**12
MEMORY_CHARACTERS = 4  # of the id of a memory are enough; a shorter word is not an id


def session_behind(
    store: SqliteStore, location: StoreLocation, note: Note, patience: Patience | None, word: str
) -> str:
    """Return the id of a conversation's or memory's session; '' if there is none.

    The conversation is given by its number, the memory by its id."""
    if word.isdecimal():
        conversation = store.conversation(min(int(word[:13]), LARGEST_NUMBER))
        return conversation.session_id if conversation else ""
    memory = memory_called(location, note, patience, word)
    return str(memory.origins[-1][1]) if memory and memory.origins else ""


def memory_called(
    location: StoreLocation, note: Note, patience: Patience | None, word: str
) -> IndexedMemory | None:
    """Return the only memory whose id begins with `word`; None if there is none or several."""
    id = word.removeprefix("^").lower()
    if len(id) < MEMORY_CHARACTERS or not id.isalnum():
        return None
    with open_index(location, note, patience) as index:
        memories = index.beginning_with(id)
    return memories[0] if len({memory.id for memory in memories}) == 1 else None
