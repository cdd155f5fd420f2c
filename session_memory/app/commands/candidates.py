"""The words that a shell offers for an argument.

Its completion script asks for them with each Tab, as `session-memory __complete KIND WORD
LINE...`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from ...common.system.files import expanded
from ...common.system.terminal import Terminal
from ...common.text.sanitize import name_for_people
from ...common.text.timestamps import age
from ...history.archives.list import former_names
from ...sessions.transcripts.sessions import FoundSession, find_sessions

Candidate = tuple[str, str]  # the word, and a description


MOST = 50  # sessions are read, the latest ones
MEMORY_SECONDS = 0.2  # to wait for a lock


def run(words: Sequence[str]) -> int:
    """Print the candidates of a kind that begin with a word. Return 0.

    Each line has a candidate, a tab and a description. If anything goes wrong, print nothing,
    because the person is in the middle of typing a line."""
    with suppress(Exception):
        kind, word, *line = words
        terminal = Terminal(os.environ)
        for text, about in _KINDS[kind](word, _home_in(line)):
            if _can_be_typed(text):
                terminal.verbatim(f"{text}\t{name_for_people(about)}\n")
    return 0


def _can_be_typed(text: str) -> bool:
    """Check that a text is printed unchanged and that a command would not take it for an option."""
    return (
        text == name_for_people(text)
        and text.isprintable()
        and text == text.strip()
        and text[:1] not in ("", "-")
    )


def _home_in(line: Sequence[str]) -> str | None:
    """Return the directory that `--home` names in a command line, or None."""
    for number, word in enumerate(line):
        if word == "--home" and number + 1 < len(line):
            return expanded(line[number + 1], os.environ) or None
        if word.startswith("--home="):
            return expanded(word.partition("=")[2], os.environ) or None
    return None


def _latest(home: str | None, *, everywhere: bool) -> list[FoundSession]:
    return find_sessions(home, everywhere, os.environ, most=MOST, former_names=former_names)


def _sessions(word: str, home: str | None) -> list[Candidate]:
    """Return the titles and ids of this project's sessions, or of all if none of these match."""
    return _here_or_anywhere(word, home, _titles_and_ids)


def _ids(word: str, home: str | None) -> list[Candidate]:
    """Return the same without titles, for a command that deletes."""
    return _here_or_anywhere(
        word, home, lambda sessions: [(each.id, _about(each)) for each in sessions]
    )


def _here_or_anywhere(
    word: str, home: str | None, offer: Callable[[list[FoundSession]], Iterable[Candidate]]
) -> list[Candidate]:
    for everywhere in (False, True):
        fitting = list(_beginning(word, offer(_latest(home, everywhere=everywhere))))
        if fitting:
            return fitting
    return []


def _titles_and_ids(sessions: list[FoundSession]) -> Iterator[Candidate]:
    """Yield each session's title, unless several sessions share it, and its id."""
    shared = Counter(session.name.casefold() for session in sessions)
    for session in sessions:
        if shared[session.name.casefold()] == 1 and session.name != session.id:
            yield session.name, f"{session.runtime.TITLE}, {age(time.time() - session.last_at)}"
        yield session.id, _about(session)


def _about(session: FoundSession) -> str:
    return f"{session.name} ({session.runtime.TITLE}, {age(time.time() - session.last_at)})"


def _projects(word: str, home: str | None) -> Iterable[Candidate]:
    """Return the names of directories with sessions, or paths if the word begins with a slash."""
    if word.startswith("/"):
        return _directories(word, home)
    named = {os.path.basename(path): path for path in _starts(home)}
    return _beginning(word, named.items())


def _directories(word: str, home: str | None) -> Iterable[Candidate]:
    return _beginning(word, [(path, "") for path in _starts(home)])


def _starts(home: str | None) -> list[str]:
    """Return the sessions' start directories, except those that may not be shown."""
    starts = [
        session.start.rstrip("/") for session in _latest(home, everywhere=True) if session.has_text
    ]
    return [start for start in dict.fromkeys(starts) if start]


def _memories(word: str, home: str | None) -> Iterable[Candidate]:
    """Return the ids of memories, if there is a store."""
    from ...common.system.sqlite import Patience
    from ...history.store.location import find_location
    from ...memory.library import latest_memories

    location = find_location(home, os.environ)
    if not os.path.exists(location.database):
        return []
    memories = latest_memories(location, MOST, Patience(MEMORY_SECONDS))
    return _beginning(word, [(memory.id, f"{memory.kind}: {memory.title}") for memory in memories])


def _beginning(word: str, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    wanted = word.casefold()
    return (candidate for candidate in candidates if candidate[0].casefold().startswith(wanted))


_KINDS: dict[str, Callable[[str, str | None], Iterable[Candidate]]] = {
    "sessions": _sessions,
    "ids": _ids,
    "projects": _projects,
    "directories": _directories,
    "memories": _memories,
}
