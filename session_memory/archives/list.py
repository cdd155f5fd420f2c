"""The archives in a directory, and the text about them for an agent."""

from __future__ import annotations

import os
import time

from ..system.files import open_regular, read_at
from ..text.format import counted, one_line, shorten
from ..text.sanitize import for_people, for_prompt
from ..text.timestamps import epoch_seconds
from .format import TRAILER_BYTES, facts_in, title_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

RECENT_CHARACTERS = 500
FIRST_LINE_BYTES = 4096


def find_archive(directory: str, session_id: str) -> tuple[str, dict[str, Any]] | None:
    """Return the path and the facts of a session's archive."""
    return next(((path, facts) for path, facts in list_archives(directory) if facts["session"] == session_id), None)


class KnownArchives:
    """The session of each archive, for a run that looks up many sessions: known archives are not read again."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, int], dict[str, str]] = {}  # by folder, independent of the path to it

    def find(self, directory: str, session_id: str) -> tuple[str, dict[str, Any]] | None:
        """Return the path and the facts of a session's archive, as they are."""
        status = os.stat(directory)
        known = self._sessions.setdefault((status.st_dev, status.st_ino), {})
        names = _names(directory)
        for name in names:
            if name not in known:
                known[name] = (_facts(f"{directory}/{name}") or {}).get("session", "")
        for name in names:
            if known[name] == session_id:
                facts = _facts(f"{directory}/{name}")
                if facts is not None and facts["session"] == session_id:
                    return f"{directory}/{name}", facts
        return None


def list_archives(directory: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path and the facts of every archive in `directory`, in no particular order."""
    for name in _names(directory):
        facts = _facts(f"{directory}/{name}")
        if facts is not None:
            yield f"{directory}/{name}", facts


def given_title(path: str) -> str:
    """Return the title that a person gave the archive at this path; '' for none."""
    facts = _facts(path) or {}
    return str(facts["title"]) if facts.get("is_named") else ""


def free_path(stem: str) -> str:
    """Return a path for an archive that begins with `stem`, and that no file has yet."""
    path, number = f"{stem}.md", 2
    while os.path.lexists(path):
        path, number = f"{stem}-{number}.md", number + 1
    return path


def _names(directory: str) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if name.endswith(".md") and not name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _facts(path: str) -> dict[str, Any] | None:
    """Return the facts in the last line of the archive at this path; None if it is not an archive."""
    try:
        descriptor = open_regular(path)
    except OSError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        end = read_at(descriptor, max(0, size - TRAILER_BYTES), size)
        facts = facts_in(end.decode("utf-8", "replace"))
        if facts is not None and not isinstance(facts.get("title"), str):  # as of earlier versions
            first = read_at(descriptor, 0, FIRST_LINE_BYTES).partition(b"\n")[0]
            facts["title"] = title_in(first.decode("utf-8", "replace"))
    finally:
        os.close(descriptor)
    return facts


def compaction_text(archive: str) -> str:
    """Return the text for an agent after a compaction: the path of the whole conversation."""
    return f"This conversation was compacted. All that was said before is kept, searchable, in {for_prompt(archive)}"


def recent_text(
    directory: str, archives: Iterable[tuple[str, dict[str, Any]]], cwd: str, count: int, own_id: str
) -> str | None:
    """Return the text for a new session in `cwd` about the last `count` conversations there except that of session
    `own_id`; None if there are none. `archives` are those in `directory`; a path of '' is not shown."""
    found = [
        (epoch_seconds(facts.get("last")) or 0.0, path, facts)
        for path, facts in archives
        if facts.get("cwd") in (cwd, for_people(cwd)) and facts["session"] != own_id
    ]
    if not found or not count:
        return None
    lines = [f"Last conversations here, kept in {for_prompt(directory)}:"]
    for last, path, facts in sorted(found, key=lambda one: -one[0])[:count]:
        line = _line(last, path, facts)
        if sum(map(len, lines)) + len(lines) + len(line) > RECENT_CHARACTERS:
            break
        lines.append(line)
    return "\n".join(lines) if len(lines) > 1 else None


def _line(last: float, path: str, facts: dict[str, Any]) -> str:
    day = time.strftime("%Y-%m-%d", time.localtime(last))
    messages = facts.get("messages")
    count = f", {counted(messages, 'message')}" if isinstance(messages, int) else ""
    name = f": {for_prompt(os.path.basename(path))}" if path else ""
    return f"- {shorten(one_line(for_prompt(facts['title'])), 80)} ({day}{count}){name}"
