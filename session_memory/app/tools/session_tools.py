"""The tools for the sessions and memories of an agent, each a function that bears its name."""

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
    found = _called(listed, wanted)
    if found is None:
        hint = (
            f"the sessions are: {results.candidates(listed)}"
            if listed
            else "there are no sessions yet"
        )
        raise RefusedError(f"no session is called {wanted!r}", hint)
    return found


def _called(listed: list[ListedSession], wanted: str) -> ListedSession | None:
    """Return the session called `wanted`: by id, else by name, else the only one whose name or id
    begins so, else the only one with these words in its name. None if no listed one is; raises
    RefusedError if several are."""
    plain = wanted.strip().removesuffix(ELLIPSIS).casefold()
    for fits in (
        lambda one: plain in (one.id.casefold(), one.session_id.casefold()),
        lambda one: plain == results.name_of(one).casefold(),
        lambda one: (
            results.name_of(one).casefold().startswith(plain) or one.session_id.startswith(plain)
        ),
        lambda one: has_words(results.name_of(one), plain),
    ):
        found = [one for one in listed if fits(one)] if plain else []
        if len(found) == 1:
            return found[0]
        if found:
            problem = f"several sessions are called {wanted!r}"
            raise RefusedError(
                problem,
                f"ask again with the id of one of these: "
                f"{results.candidates(found, with_age=True)}",
            )
    return None


def _chosen_here(backend: Backend, name: str) -> ListedSession:
    """Return the local session of that name, or else of a conversation's or memory's id.

    Raises RefusedError."""
    listed = backend.sessions()
    found = _called(listed, name) or backend.session_behind(name.strip())
    if found:
        return found
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
    found = backend.search(arguments["query"], limit, limits)
    return results.search_results(found, limit, is_limited=limits != EVERYWHERE)


def seen_error(backend: Backend, arguments: Arguments) -> str:
    return results.seen_errors(backend.errors(arguments["error"]), arguments.get("limit", 3))


def why(backend: Backend, arguments: Arguments) -> str:
    return backend.why(arguments["what"])


def remember(backend: Backend, arguments: Arguments) -> str:
    kept = backend.remember(arguments.get("kind", "fact"), arguments["text"], arguments["quote"])
    found = "other sessions find it with search_sessions"
    if kept.is_untrusted:
        found = "only a person finds it, because this session is untrusted"
    return f"Remembered as {results.memory(kept)}; {found}."


def forget(backend: Backend, arguments: Arguments) -> str:
    gone, undo = backend.forget(arguments["id"])
    return f"Forgotten: {results.memory(gone)}. The user can undo that for a day with `{undo}`."


def clear_session(backend: Backend, arguments: Arguments) -> str:
    return for_prompt(backend.clear(arguments["name"]))


def resume_session(backend: Backend, arguments: Arguments) -> str:
    session = _chosen(backend.sessions(), arguments["id"])
    return for_prompt(backend.resume(session, arguments.get("save_as")))
