"""Steps that forget sessions in the store, and record the messages that must not come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...common.errors import SessionMemoryError
from ...sessions.settings import forgotten
from ..copies.pack import pack_path
from ..forgotten_marks import marks_in
from .sqlite import queue_file
from .sqlite.corruption import delete_set_aside, set_aside
from .sqlite.engine import SqliteStore
from .values import Conversation

if TYPE_CHECKING:
    from ...app.upkeep.run import Run


def note_messages(run: Run, given: dict[str, list[list[Any]]]) -> None:
    """Record the marks of messages in `conversations` and `transcripts`.

    Copies and forks are recognised by them. A conversation is (id, group, session id), a transcript
    is (path, group, the time up to which it is forgotten)."""
    marks = set(run.store.marks(_stored(run.store, given["conversations"])))
    for path, home, until in given["transcripts"]:
        marks.update(marks_in(path, home, until))
    forgotten.add_messages(run.location.database, marks)


def note_tombstones(run: Run, given: list[list[Any]]) -> None:
    """Add tombstones, so nothing comes back."""
    forgotten.add(run.location.database, [(home, id, path, at) for home, id, path, at in given])


def delete_conversations(run: Run, chosen: list[list[Any]]) -> None:
    """Delete conversations from the store, including copies in forks.

    Each is (id, group, session id)."""
    stored = _stored(run.store, chosen)
    run.store.forget_copies(stored)
    run.store.forget_conversations(stored)


def delete_stores_set_aside(run: Run, _: object) -> None:
    """Delete the corrupt stores that were set aside.

    Raises SessionMemoryError with the names of files that may not be deleted."""
    left = delete_set_aside(run.store)
    for path in (queue_file.path_of(run.location.database), pack_path(run.location.database)):
        left += set_aside(path)
    if left:
        raise SessionMemoryError(f"delete them by hand: {', '.join(left)}")


def drop_free_pages(run: Run, _: object) -> None:
    """Rewrite the database without deleted content."""
    run.store.drop_free_pages()


def _stored(store: SqliteStore, chosen: list[list[Any]]) -> list[Conversation]:
    """Return the conversations, given as (id, group, session id), that are still in the store."""
    wanted = {tuple(conversation) for conversation in chosen}
    every = store.all_conversations([id for id, *_ in chosen])
    return [
        conversation
        for conversation in every
        if (conversation.id, conversation.home, conversation.session_id) in wanted
    ]
