"""Answers a question about the last sessions that names nothing to look for."""

import os
from collections.abc import Iterable

from ..common.system.files import user_dir
from ..common.system.git import find_worktree
from ..history.store.sqlite.engine import SqliteStore
from ..history.store.values import Conversation, Filter
from .strategies.extractive.strategy import is_worth_telling, log_line

MOST = 3  # sessions
MOST_CONVERSATIONS = 50  # that are looked through for them


def last_work(
    store: SqliteStore, wanted: Filter, own_session: str
) -> list[tuple[Conversation, str]]:
    """Return the latest matching conversations, each with its line of the log.

    They are the current project's, if it has any. There is one of each session, except the asking
    one: the very latest, and before it those that did or said something of substance."""
    current = os.path.realpath(".")
    worktree = find_worktree(current, user_dir(os.environ))
    here = (worktree.root if worktree and worktree.root else current,)
    for directories in dict.fromkeys([wanted.directories or here, wanted.directories]):
        filter = wanted._replace(directories=directories, limit=MOST_CONVERSATIONS)
        lines = _lines(store, store.conversations(filter), own_session, min(MOST, wanted.limit))
        if lines:
            return lines
    return []


def _lines(
    store: SqliteStore, conversations: Iterable[Conversation], own_session: str, most: int
) -> list[tuple[Conversation, str]]:
    lines: dict[str, tuple[Conversation, str]] = {}
    for conversation in conversations:
        session = conversation.session_id
        if session == own_session or session in lines or len(lines) == most:
            continue
        entries = list(store.entries(conversation.id))
        line = log_line(conversation, entries)
        if line and (not lines or is_worth_telling(entries)):
            lines[session] = conversation, line
    return list(lines.values())
