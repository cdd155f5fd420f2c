"""Ids as commands print and take them: a conversation's number, a memory's or session's id, words of a title."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..store.location import find_location
from ..store.values import Filter
from ..text.format import has_words
from .arguments import NO_LIMIT, filter_of
from .opened_store import OpenStore, with_store
from .output import brief, moment

if TYPE_CHECKING:
    from ..store.sqlite.memory_index import IndexedMemory
    from ..store.values import Conversation

CANDIDATES = 12
TITLE_CHARACTERS = 60


def session_behind(word: str, arguments: argparse.Namespace) -> str:
    """Return the id of the session of which `word` is the number of a conversation, or from which a memory with this id
    was made; '' if there is none, or no store."""
    asked = argparse.Namespace(home=arguments.home, json=False)
    try:
        if os.path.exists(find_location(arguments.home, os.environ).database):
            return with_store(asked, lambda opened: _session_behind(opened, word))
    except (SessionMemoryError, ImportError, OSError):  # then it is unknown
        pass
    return ""


def _session_behind(opened: OpenStore, word: str) -> str:
    from ..memories.session_ids import session_behind

    return session_behind(opened.store, opened.location, opened.note, opened.patience, word)


def wanted_of(opened: OpenStore, arguments: argparse.Namespace) -> Filter:
    """Return the filter of the arguments, with the id that `--session` means. Raises AmbiguousSessionError."""
    wanted = filter_of(arguments, opened.location)
    if not wanted.session or opened.store.conversations(Filter(wanted.homes, session=wanted.session, limit=1)):
        return wanted
    found = sessions_called(opened, wanted.session, wanted.homes)
    session = found[0].session_id if found else _session_behind(opened, wanted.session)
    return wanted._replace(session=session or wanted.session)


def memory_called(opened: OpenStore, word: str) -> IndexedMemory | None:
    """Return the only memory whose id begins with `word`; None if there is none, or another than one."""
    from ..memories.session_ids import memory_called

    return None if opened.is_team else memory_called(opened.location, opened.note, opened.patience, word)


def last_conversation(opened: OpenStore, word: str) -> Conversation | None:
    """Return the last conversation of the session that `word` means, which may also be the number of a conversation or
    the id of a memory. Raises AmbiguousSessionError."""
    homes = opened.location.homes
    found = sessions_called(opened, word, homes)
    if not found and (session := _session_behind(opened, word)):
        found = sessions_called(opened, session, homes)
    return found[0] if found else None


def sessions_called(opened: OpenStore, word: str, homes: tuple[str, ...] | None) -> list[Conversation]:
    """Return the conversations of the only session that `word` means, the latest first. Raises
    AmbiguousSessionError."""
    every = opened.store.conversations(Filter(homes, limit=NO_LIMIT))
    found = (
        [one for one in every if one.session_id == word]
        or [one for one in every if word and one.session_id.startswith(word)]
        or [one for one in every if one.title.casefold() == word.casefold()]
        or [one for one in every if has_words(one.title, word)]
    )
    sessions = {one.session_id: one for one in reversed(found)}
    if len(sessions) > 1:
        from ..transcripts.sessions import AmbiguousSessionError  # only then: it loads all that reads transcripts

        lines = [f"  {line_of(one)}" for one in list(sessions.values())[::-1][:CANDIDATES]]
        raise AmbiguousSessionError(f"{word!r} could be any of {len(sessions)}; give the id of one:", "\n".join(lines))
    return found


def line_of(one: Conversation) -> str:
    """Return a line that tells a session from others, by one of its conversations."""
    project = os.path.basename(one.cwd) or "-"
    return f"{one.session_id}  {moment(one.last_message_at)}  {project}  {brief(one.title, TITLE_CHARACTERS)}"
