"""Search: messages in any session, ranked like the command; and the palette.

The palette also finds sessions by title.
"""

from __future__ import annotations

import re
from typing import Any

from ....common.text.format import shorten
from ....common.text.sanitize import beginning, for_people
from ....history.store.sqlite.engine import SqliteStore
from ....history.store.values import (
    ENTRY_ROLES,
    KINDS,
    TOOL_ROLE,
    Conversation,
    Filter,
    Hit,
    Hits,
    StoredEntry,
)
from ....history.titles import Titles
from ....memory.shared_store import SharedStore, SharedStoreError
from .. import _choices as choices
from .._page_request import PageRequest
from .._view import View
from .sessions import latest_sessions, text_of

LIMIT = 20
MOST = 100
PALETTE_SESSIONS, PALETTE_LINES, PALETTE_HITS = 480, 12, 6
AROUND = 3  # entries on each side of a hit
AROUND_CHARACTERS = 600
_ROLES = (
    ("", "Anybody"),
    ("user", "You"),
    ("assistant", "Agents"),
    (TOOL_ROLE, "Tools"),
    ("command", "Commands"),
    ("edit", "Edits"),
    ("read", "Files read"),
    ("other", "Other tools"),
)
# of Markdown, which mean nothing on one line
_MARKS = re.compile(r"\*\*|```\w*|(?:(?<=\s)|^)#{1,6} ")


def _values(request: PageRequest) -> dict[str, Any]:
    """Return `hits`, the best first, the `notice` about the search's reach, and the filters.

    There are at most LIMIT hits unless more are requested. `problem` is about an unreachable team.
    """
    query = request.one("q").strip()
    who = request.one("who")
    places_offered, times, wanted = _filters(request, request.number("limit", LIMIT, MOST) or LIMIT)
    problem = ""
    try:
        hits = _found(request, query, wanted) if query else Hits()
    except SharedStoreError as error:
        hits, problem = Hits(), choices.problem_with(error)
    requested = {
        name: request.one(name)
        for name in ("q", "whose", "project", "runtime", "who", "since", "session")
    }
    return {
        "query": query,
        "hits": _shown(request, hits),
        "notice": hits.notice,
        "problem": problem,
        "more": {**requested, "limit": MOST} if len(hits) == wanted.limit < MOST else None,
        "session": wanted.session,
        "whose": choices.whose(request),
        "times": times,
        "projects": places_offered.projects,
        "runtimes": places_offered.runtimes,
        "roles": choices.chosen_of(_ROLES, who),
        "is_limited": bool(
            places_offered.directories or wanted.session or wanted.since or who or wanted.runtime
        ),
    }


def _palette(request: PageRequest) -> dict[str, Any]:
    """Return the `sessions` and the `hits` for the query `q`, both within the filters.

    The title, project or id of a session must contain every word; hits are in messages."""
    query = request.one("q").strip()
    _, _, wanted = _filters(request, PALETTE_HITS)
    words = query.casefold().split()
    conversations = request.store.conversations(wanted._replace(limit=PALETTE_SESSIONS))
    latest = latest_sessions(request, conversations)
    titles = Titles(request.store, latest)
    fitting = [
        session for session in latest if all(word in text_of(session, titles) for word in words)
    ]
    hits = _shown(request, request.store.search(query, wanted)) if query else []
    return {
        "titles": titles,
        "sessions": fitting[: PALETTE_HITS if query else PALETTE_LINES],
        "hits": hits,
        "q": query,
    }


def _palette_filters(request: PageRequest) -> dict[str, Any]:
    places_offered = choices.places(request)
    return {
        "projects": places_offered.projects,
        "runtimes": places_offered.runtimes,
        "times": choices.period(request, "all")[0],
    }


def _filters(
    request: PageRequest, limit: int
) -> tuple[choices.Places, list[choices.Choice], Filter]:
    """Return the possible filters, and the chosen one."""
    times, since = choices.period(request, "all")
    places_offered = choices.places(request)
    who = request.one("who")
    role, kind = who if who in (*ENTRY_ROLES, TOOL_ROLE) else "", who if who in KINDS else ""
    wanted = Filter(
        directories=places_offered.directories,
        session=request.one("session"),
        since=since,
        role=role,
        kind=kind,
        runtime=request.one("runtime"),
        limit=limit,
    )
    return places_offered, times, wanted


def _found(request: PageRequest, query: str, wanted: Filter) -> Hits:
    if not choices.is_for_shared(request):
        return request.store.search(query, wanted)
    with choices.opened(request) as shared:
        return shared.search(
            query, wanted._replace(directories=choices.directories_of(request, wanted.directories))
        )


def _around(request: PageRequest) -> dict[str, Any]:
    """Return `lines`, the messages around an entry of a conversation.

    Each has its speaker, its text, and whether it is that entry."""
    number = request.number("number", 0, 1 << 32)
    is_shared = choices.is_for_shared(request)
    if is_shared:
        with choices.opened(request) as shared:
            entries = _entries(request, shared)
    else:
        entries = _entries(request, request.store)
    at = next((index for index, entry in enumerate(entries) if entry.number == number), None)
    near = [] if at is None else entries[max(0, at - AROUND) : at + AROUND + 1]
    begun = [for_people(beginning(entry.text, AROUND_CHARACTERS)) for entry in near]
    shown = zip(near, [shorten(text, AROUND_CHARACTERS) for text in begun])
    return {
        "lines": [(_who(entry, is_shared), text, entry.number == number) for entry, text in shown]
    }


def _entries(request: PageRequest, store: SqliteStore | SharedStore) -> list[StoredEntry]:
    conversation = request.number("conversation", 0, 1 << 62)
    known = store.conversation(conversation)
    return list(store.entries(conversation)) if known else []


def _shown(
    request: PageRequest, hits: list[Hit]
) -> list[tuple[Conversation, StoredEntry, str, list[tuple[str, bool]]]]:
    """Return the hits, redacted.

    Each has the speaker, and the snippet as pairs of a text and whether it matched."""
    shown = []
    titles = Titles(request.store, [hit.conversation for hit in hits if not hit.conversation.who])
    for hit in hits:
        of = hit.conversation
        title, cwd, who = titles.of(of) or "Untitled", for_people(of.cwd), for_people(of.who)
        conversation = of._replace(title=title, cwd=cwd, who=who)
        is_prose = hit.entry.role == "assistant"
        pieces = [(for_people(piece), number % 2 == 1) for number, piece in enumerate(hit.pieces)]
        pieces = [
            (_MARKS.sub("", text) if is_prose else text, is_marked)
            for text, is_marked in pieces
            if text
        ]
        shown.append((conversation, hit.entry, _who(hit.entry, bool(conversation.who)), pieces))
    return shown


def _who(entry: StoredEntry, is_shared: bool) -> str:
    """Return the speaker; for a tool call the tool's name."""
    if entry.role == TOOL_ROLE:
        return entry.tool
    return "Agent" if entry.role == "assistant" else "User" if is_shared else "You"


VIEWS = (
    View("search", "/search", _values, "Search", "s"),
    View("around", "/search/around", _around),
    View("palette", "/palette", _palette),
    View("palette_filters", "/palette/filters", _palette_filters),
)
