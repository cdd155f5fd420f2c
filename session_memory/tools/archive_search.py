"""Search in archives if there is no store: reads every Markdown file, each time."""

from __future__ import annotations

import heapq
import os
import re
from typing import TYPE_CHECKING, Any

from ..archives.format import ASKING, messages_in, title_in
from ..archives.list import visible_archives
from ..store.search.query import STOP_WORDS
from ..system.files import Opened, read_at
from ..text.format import ELLIPSIS, one_line
from ..text.timestamps import epoch_seconds
from .values import EVERYWHERE, SearchResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..settings.privacy import Privacy
    from .values import SearchLimits

    Score = tuple[int, float, int]

ARCHIVE_BYTES = 32 * 1024 * 1024  # read at most this much of one archive
HITS_OF_ONE_SESSION = 3
MOST_WORDS = 16
SNIPPET_CHARACTERS = 240
_BEFORE_CHARACTERS = 80


def search_archives(
    directories: Mapping[str, tuple[str, Privacy]], query: str, limit: int, limits: SearchLimits = EVERYWHERE
) -> list[SearchResult]:
    """Return the messages within the limits that contain words of `query`, ignoring case, from the archives of some
    directories.

    `directories` maps each path to the agent's name for it and its rules. Excluded messages are not read. Messages with
    the most words come first, then the latest; at most three per session, `limit` in all. A word also matches longer
    words that begin with it. Skips unreadable archives.
    """
    words = _words(query)
    if not words:
        return []
    found = (
        (score, one._replace(conversation=f"{name}/{one.conversation}"))
        for directory, (name, privacy) in directories.items()
        for path, facts in visible_archives(directory, privacy)
        for score, one in _in_archive(path, facts, words, limits)
    )
    return [one for _, one in heapq.nlargest(limit, found, key=lambda scored: scored[0])]


def _words(query: str) -> list[re.Pattern[str]]:
    """Return a pattern for each different word. In scripts without spaces between words, parts of a text count too."""
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    rare = [word for word in words if word not in STOP_WORDS] or words
    begins = [r"(?<!\w)" if word.isascii() else "" for word in rare]
    return [re.compile(begin + re.escape(word), re.IGNORECASE) for begin, word in zip(begins, rare[:MOST_WORDS])]


def _in_archive(
    path: str, facts: dict[str, Any], words: list[re.Pattern[str]], limits: SearchLimits
) -> Iterator[tuple[Score, SearchResult]]:
    """Yield the best messages of an archive, each with its rank: words matched, its conversation's time, position."""
    text = _content(path)
    if not any(word.search(text) for word in words):
        return
    title = title_in(text.partition("\n")[0])
    last = epoch_seconds(facts.get("last"))
    directory = str(facts.get("cwd") or "")
    in_title = {word for word in words if word.search(title)}
    scored = []
    for place, (speaker, said, at) in enumerate(messages_in(text)):
        seconds = at or last
        if not limits.fits(None if seconds is None else seconds * 1000, directory):
            continue
        in_message = {word for word in words if word.search(said)}
        if in_message or (in_title and place == 0):
            scored.append(((len(in_message | in_title), last or 0.0, place), speaker, said, at or last))
    for score, speaker, said, at in heapq.nlargest(HITS_OF_ONE_SESSION, scored, key=lambda one: one[0]):
        role = "user" if speaker in ASKING else "assistant"
        name = os.path.basename(path)
        yield score, SearchResult(facts["session"], title, role, at, _snippet(said, words), name)


def _content(path: str) -> str:
    """Return the archive's text; '' if it has become unreadable."""
    try:
        with Opened(path) as descriptor:
            return read_at(descriptor, 0, ARCHIVE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _snippet(text: str, words: list[re.Pattern[str]]) -> str:
    """Return the part of `text` around the first match, on one line, in whole words if possible."""
    text = one_line(text)
    first = min((found.start() for word in words if (found := word.search(text))), default=0)
    start = max(0, min(first - _BEFORE_CHARACTERS, len(text) - SNIPPET_CHARACTERS))
    if start:
        space = text.find(" ", start, first)
        start = space + 1 if space >= 0 else start
    end = start + SNIPPET_CHARACTERS
    if end < len(text):
        space = text.rfind(" ", max(start, first), end)
        end = space if space > first else end
    return f"{ELLIPSIS if start else ''}{text[start:end]}{ELLIPSIS if end < len(text) else ''}"
