"""Choose a session by a name or an id, only among those that the agent may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text.format import ELLIPSIS
from . import results
from .backend import RefusedError

if TYPE_CHECKING:
    from .backend import Backend, ListedSession


def chosen(listed: list[ListedSession], wanted: str) -> ListedSession:
    """Return the session called `wanted`: by id, else by name, else the only one whose name or id begins so.

    Considers only the listed ones. Raises RefusedError.
    """
    plain = wanted.strip().removesuffix(ELLIPSIS).casefold()
    for fits in (
        lambda one: plain in (one.id.casefold(), one.session_id.casefold()),
        lambda one: plain == results.name_of(one).casefold(),
        lambda one: results.name_of(one).casefold().startswith(plain) or one.session_id.startswith(plain),
    ):
        found = [one for one in listed if fits(one)] if plain else []
        if len(found) == 1:
            return found[0]
        if found:
            problem = f"several sessions are called {wanted!r}"
            raise RefusedError(problem, f"ask again with the id of one of these: {results.candidates(found)}")
    hint = f"there are: {results.candidates(listed)}" if listed else "there are no sessions yet"
    raise RefusedError(f"no session is called {wanted!r}", hint)


def chosen_here(backend: Backend, name: str) -> ListedSession:
    """Return the local session of that name; updates name those of a team as `ann@laptop`. Raises RefusedError."""
    try:
        return chosen(backend.sessions(), name)
    except RefusedError as error:
        if not backend.has_team or "@" not in name:
            raise
        hint = "it may be on another machine: search_team finds what was said there, with an id for read_session"
        raise RefusedError(str(error), hint) from None
