"""Recognises the entries of a transcript that an archive already has.

An archive has the ids of only its first and last entry, and later entries are new. Earlier ones may
be missing too, because records can share a millisecond, a last line can be torn, and a clock can go
back. So the text of an entry decides.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from ...common.text.sanitize import for_storage
from ...sessions.transcripts.entries import Entry
from .format import ASKING, TOOL, ArchivedMessage, asked

_COMPARED_CHARACTERS = 60
_MESSAGE_SECONDS = 600  # from the first record of a message to its last
_CUT = re.compile(r"\W*\n\n\[[\d,]+ more characters\]$")


class ArchivedEntries:
    """The entries of an archive with these messages.

    The last one was written at `last`, in seconds since 1970."""

    def __init__(self, messages: Iterable[ArchivedMessage], last: float) -> None:
        self._last = last
        self._untimed: dict[bool, list[_Text]] = {True: [], False: []}
        self._messages: dict[bool, list[tuple[int, _Text]]] = {True: [], False: []}
        for message in messages:
            if message.speaker and message.speaker != TOOL:
                is_asking = message.speaker in ASKING
                if message.at is None:
                    self._untimed[is_asking].append(_Text(message.text))
                else:
                    self._messages[is_asking].append((int(message.at), _Text(message.text)))
        for texts in self._messages.values():
            texts.sort(key=lambda timed: timed[0])

    def has(self, entry: Entry) -> bool:
        """Return whether the archive has this entry, or a message that includes it."""
        at = int(entry.timestamp or 0)
        if entry.timestamp is not None and entry.timestamp > self._last:
            return False
        if not entry.text.strip():
            return True
        is_asking = entry.role == "user"
        text = for_storage(entry.text)
        text = _compared(asked(text)[1] if is_asking else text)
        messages = self._messages[is_asking]
        first = bisect_left(messages, at - _MESSAGE_SECONDS, key=lambda timed: timed[0])
        for begun, archived in messages[
            first : bisect_right(messages, at, key=lambda timed: timed[0])
        ]:
            if archived.has(text, is_first=begun == at):
                return True
        return any(archived.has(text, is_first=True) for archived in self._untimed[is_asking])


class _Text:
    """The text of a message without white space, with the positions of its paragraphs.

    A record of the message consists of some of its paragraphs."""

    def __init__(self, text: str) -> None:
        whole = _CUT.sub("", text)
        self._is_cut = whole != text
        self._ends = {0}
        self._text = ""
        for paragraph in whole.split("\n\n"):
            self._text += _compared(paragraph)
            self._ends.add(len(self._text))

    def has(self, text: str, *, is_first: bool) -> bool:
        """Return whether a record with this text is a part of the message.

        The message's beginning is accepted only from a record that `is_first`."""
        size = len(text)
        for start in self._ends:
            is_there = (start or is_first) and self._text.startswith(
                text[:_COMPARED_CHARACTERS], start
            )
            if is_there and (size >= _COMPARED_CHARACTERS or start + size in self._ends):
                return True
        return self._is_cut and is_first and text.startswith(self._text)


def _compared(text: str) -> str:
    return "".join(text.split())
