"""Shares memories with a team: current memories whose sources are all shared sessions."""

import os
from collections.abc import Callable
from typing import NamedTuple

from ...common.system.files import user_dir
from ...common.text.sanitize import for_storage
from ...history.store.location import StoreLocation
from ...history.store.refresh import Note
from ...memory import forgotten
from ...memory.doubts import with_doubts
from ...memory.folders import folder_of
from ...memory.format import BY_PERSON
from ...memory.library import open_index
from ...memory.memory_index import IndexedMemory, MemoryFilter, Origin
from ...sessions.settings.rules import SHARES
from .postgres import memories as team_memories
from .postgres.memories import MemoryPush
from .postgres.push import TeamPush
from .push import SharedAs

AsWhat = Callable[[str, str, str], SharedAs | None]  # by group, session and directory

BATCH = 200  # in one transaction


class MemoryPushReport(NamedTuple):
    """The number of memories pushed and withdrawn, and whether everything is pushed."""

    pushed: int = 0
    withdrawn: int = 0
    is_complete: bool = True


def push_memories(
    location: StoreLocation,
    team: TeamPush,
    shared_as: AsWhat,
    note: Note,
    is_spent: Callable[[], bool],
) -> MemoryPushReport:
    """Push new and changed memories until `is_spent`, and withdraw memories no longer shared.

    Raises SessionMemoryError, OSError."""
    pushed = team_memories.pushed_memories(team)
    shared, known = _shared(location, shared_as, note)
    keys = {(memory.home, memory.id) for memory, _ in shared}
    # If a group has no memories at all, its folder was lost or moved, so only forgotten memories
    # are withdrawn.
    lost = {
        home_name: forgotten.read(folder_of(location, home_name))
        for home_name in {home_name for home_name, _ in pushed} - known
    }
    ended = {
        (home_name, tombstone.id)
        for home_name, tombstones in lost.items()
        for tombstone in tombstones
    }
    gone = [
        memory.number
        for key, memory in pushed.items()
        if key not in keys and (key[0] in known or key in ended)
    ]
    team_memories.withdraw_memories(team, gone)
    count = 0
    for at in range(0, len(shared), BATCH):
        if is_spent():
            return MemoryPushReport(count, len(gone), is_complete=False)
        batch = shared[at : at + BATCH]
        doubted = with_doubts([memory for memory, _ in batch], user_dir(os.environ))
        made = [_made(memory, as_what) for memory, (_, as_what) in zip(doubted, batch)]
        changed = [
            memory
            for memory in made
            if memory.key not in pushed or pushed[memory.key].mark != memory.mark
        ]
        before = [pushed[memory.key].number for memory in changed if memory.key in pushed]
        count += team_memories.push_memories(team, changed, before) if changed else 0
    return MemoryPushReport(count, len(gone))


def _shared(
    location: StoreLocation, shared_as: AsWhat, note: Note
) -> tuple[list[tuple[IndexedMemory, SharedAs]], set[str]]:
    """Return the shared memories, each with its form, and the groups that have memories."""
    with open_index(location, note) as index:
        memories = index.memories(MemoryFilter(is_untrusted=False))
        known = {home_name for home_name in location.home_names if index.pages(home_name)}
    memories_shared = [(memory, _shared_as(memory, shared_as)) for memory in memories]
    return [(memory, shared) for memory, shared in memories_shared if shared], known


def _shared_as(memory: IndexedMemory, shared_as: AsWhat) -> SharedAs | None:
    """Return the form in which a memory is shared, or None.

    It is shared in the project of its latest source session, as strictly as the strictest of its
    sources. A person's own memory has no source and is not shared."""
    if any(origin.strategy == BY_PERSON for origin in memory.origins):
        return None
    sources = [
        shared_as(memory.home, origin.session, origin.directory)
        for origin in sorted(memory.origins, key=_time)
    ]
    shared = [source for source in sources if source]
    if not sources or len(shared) < len(sources):
        return None
    return shared[-1]._replace(share=min([source.share for source in shared], key=SHARES.index))


def _time(origin: Origin) -> int:
    return origin.at or 0


def _made(memory: IndexedMemory, shared: SharedAs) -> MemoryPush:
    """Return a memory in the team's form, redacted by the current rules."""
    at, session, _, strategy, message, directory = max(memory.origins, key=_time)
    return MemoryPush(
        memory.home,
        memory.id,
        shared.project,
        shared.share,
        memory.kind,
        for_storage(memory.title),
        for_storage(memory.text),
        for_storage(memory.subject),
        for_storage(memory.quote),
        at,
        session,
        message,
        strategy,
        shared.directory(directory),
        memory.doubts,
    )
