"""The tools for an agent's sessions and memories, each a function with the name of the tool."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ...common.extensions import load_present
from ...common.text.format import ELLIPSIS, has_words
from ...common.text.sanitize import for_prompt
from ...extension_points import TOOL_SOURCES
from . import results
from .values import EVERYWHERE, RefusedError, limits_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .backend import Backend
    from .values import ListedSession

    Arguments = Mapping[str, Any]


def _chosen(listed: list[ListedSession], wanted: str) -> ListedSession:
    """Return the session called `wanted`, as `_called` finds it. Raises RefusedError."""
    session = _called(listed, wanted)
    if session is None:
        hint = (
            f"the sessions are: {results.candidates(listed)}"
            if listed
            else "there are no sessions yet"
        )
        raise RefusedError(f"no session is called {wanted!r}", hint)
    return session


def _called(listed: list[ListedSession], wanted: str) -> ListedSession | None:
    """Return the session called `wanted`, or None.

    The first rule with a match decides: its id; its name; the beginning of an id or name; words of
    a name. Raises RefusedError if several sessions match that rule."""
    plain = wanted.strip().removesuffix(ELLIPSIS).casefold()
    for fits in (
        lambda session: plain in (session.id.casefold(), session.session_id.casefold()),
        lambda session: plain == results.name_of(session).casefold(),
        lambda session: (
            results.name_of(session).casefold().startswith(plain)
            or session.session_id.startswith(plain)
        ),
        lambda session: has_words(results.name_of(session), plain),
    ):
        sessions = [session for session in listed if fits(session)] if plain else []
        if len(sessions) == 1:
            return sessions[0]
        if sessions:
            problem = f"several sessions are called {wanted!r}"
            raise RefusedError(
                problem,
                f"ask again with the id of one of these: "
                f"{results.candidates(sessions, with_age=True)}",
            )
    return None


def _chosen_here(backend: Backend, name: str) -> ListedSession:
    """Return the local session of that name, else of a conversation's number or a memory's id.

    Raises RefusedError."""
    listed = backend.sessions()
    session = _called(listed, name) or backend.session_behind(name.strip())
    if session:
        return session
    for source in _sources(backend):
        if hint := source.hint_for(name):
            raise RefusedError(f"no session is called {name!r}", hint)
    return _chosen(listed, name)


def _sources(backend: Backend) -> list[Any]:
    """Return the other sources of sessions that this agent may read."""
    return load_present(
        [place for audience, place in TOOL_SOURCES.items() if audience in backend.audiences]
    )


def list_sessions(backend: Backend, arguments: Arguments) -> str:
    return results.listing(backend.sessions(), arguments.get("skip", 0), time.time())


def read_session(backend: Backend, arguments: Arguments) -> str:
    lines, skip = arguments.get("lines", 20), arguments.get("skip", 0)
    name, unreadable = arguments["name"], 0
    elsewhere = (source.read(backend, name, lines + skip) for source in _sources(backend))
    read = next(filter(None, elsewhere), None)
    if read:
        session, entries = read
    else:
        session = _chosen_here(backend, name)
        entries, unreadable = backend.entries(session, lines + skip)
    is_all = len(entries) < lines + skip
    return results.log(
        session, entries[: max(0, len(entries) - skip)], unreadable, skip, is_all=is_all
    )


def search_sessions(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 10)
    limits = limits_in(arguments)
    hits = backend.search(arguments["query"], limit, limits)
    return results.search_results(hits, limit, is_limited=limits != EVERYWHERE)


def seen_error(backend: Backend, arguments: Arguments) -> str:
    limit = arguments.get("limit", 3)
    return results.seen_errors(backend.errors(arguments["error"], limit), limit)


def why(backend: Backend, arguments: Arguments) -> str:
    return backend.why(arguments["what"])


def remember(backend: Backend, arguments: Arguments) -> str:
    kept = backend.remember(arguments.get("kind", "fact"), arguments["text"], arguments["quote"])
    audience = "other sessions find it with search_sessions"
    if kept.is_untrusted:
        audience = "only a person finds it, because this session is untrusted"
    return f"Remembered as {results.memory(kept)}; {audience}."


def forget(backend: Backend, arguments: Arguments) -> str:
    gone, undo = backend.forget(arguments["id"])
    return f"Forgotten: {results.memory(gone)}. The user can undo that for a day with `{undo}`."


def clear_session(backend: Backend, arguments: Arguments) -> str:
    return for_prompt(backend.clear(arguments["name"]))


def resume_session(backend: Backend, arguments: Arguments) -> str:
    session = _chosen(backend.sessions(), arguments["id"])
    return for_prompt(backend.resume(session, arguments.get("save_as")))
