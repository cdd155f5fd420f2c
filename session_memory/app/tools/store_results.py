"""Results of the tools from the content of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.text.format import one_line
from ...history.store.values import Hit
from ...memory.format import EPISODE, LOG, is_by_agent
from ..projects import is_in_project
from .values import SearchResult

if TYPE_CHECKING:
    from ...history.store.values import Conversation, Filter
    from ...memory.memory_index import IndexedMemory


def found_message(hit: Hit) -> SearchResult:
    """Convert a hit to the tools' form."""
    entry, conversation = hit.entry, hit.conversation
    seconds = None if entry.timestamp is None else entry.timestamp / 1000
    name = f"{conversation.home}: {conversation.title}" if conversation.home else conversation.title
    where = ", ".join(
        filter(None, (f"conversation {conversation.id}", one_line(conversation.origin)))
    )
    return SearchResult(
        conversation.session_id, name, entry.tool or entry.role, seconds, hit.snippet, where
    )


def worked_on(conversation: Conversation, line: str) -> SearchResult:
    """Convert a conversation with the line that sums it up."""
    seconds = None if conversation.last_message_at is None else conversation.last_message_at / 1000
    where = f"conversation {conversation.id}"
    return SearchResult(
        conversation.session_id, conversation.title, "session", seconds, line, where
    )


def is_within(memory: IndexedMemory, wanted: Filter) -> bool:
    """Check if a memory's time and its source's project are within a filter."""
    if wanted.since is not None and (memory.at is None or memory.at < wanted.since):
        return False
    if wanted.until is not None and (memory.at is None or memory.at > wanted.until):
        return False
    is_limited = wanted.directories or wanted.project
    return not is_limited or any(
        is_in_project(origin.directory, wanted) for origin in memory.origins
    )


def found_memory(memory: IndexedMemory) -> SearchResult:
    """Convert a memory."""
    seconds = None if memory.at is None else memory.at / 1000
    notes = [
        *(["noted by an agent, not by the user"] if is_by_agent(memory) else []),
        *memory.doubts,
    ]
    said = memory.text or (memory.quote and f'"{memory.quote}"')
    text = "\n".join(filter(None, (said, f"({'; '.join(notes)})" if notes else "")))
    _, session, conversation, *_ = memory.origins[-1] if memory.origins else (None, "", "")
    role = LOG if memory.kind == EPISODE else "memory"
    known = ", ".join([f"{role} {memory.id}", *([memory.path] if memory.path else [])])
    where = f"conversation {conversation}, {known}" if conversation else known
    return SearchResult(str(session), memory.title, role, seconds, text, where)
