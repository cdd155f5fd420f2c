"""The conversations of a home as archives: when one is written, and what an agent is told of them."""

from __future__ import annotations

import os
import time

from ..text.format import counted, one_line, shorten
from ..text.sanitize import for_prompt
from ..text.timestamps import epoch_seconds
from . import format as archive_text
from .files import list_archives, write_archive
from .writer import Source, Style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runtimes import Runtime
    from ..settings.compiled import Settings

RECENT_CHARACTERS = 500


def keep(
    session_id: str, transcript: str, runtime: Runtime, directory: str, settings: Settings, now: float,
    *, group: str = "", title: str = "",
) -> str | None:  # fmt: skip
    """Archives a conversation in `directory`; the archive's path, None if nothing was said or there is no transcript.

    Raises OSError, LockedError.
    """
    if not os.path.lexists(transcript):  # sessions that are not kept, or have no message yet
        return None
    style = Style(settings.assistant_name, settings.archive_message_characters, settings.archive_tools)
    return write_archive(Source(session_id, transcript, runtime, group, title), directory, style, now)


def pointer(archive: str) -> str:
    """What an agent is told after a compaction: where all that was said lies."""
    return f"This conversation was compacted. All that was said before is kept, searchable, in {for_prompt(archive)}"


def recent(directory: str, cwd: str, count: int, own_id: str) -> str | None:
    """What a new session in `cwd` is told of the last `count` conversations there; None if there are none."""
    found = [
        (epoch_seconds(facts.get("last")) or 0.0, path, facts)
        for path, facts in list_archives(directory)
        if facts.get("cwd") == cwd and facts["session"] != own_id
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
    with open(path, encoding="utf-8", errors="replace") as file:
        title = archive_text.title_in(file.readline())
    name = for_prompt(os.path.basename(path))
    return f"- {shorten(one_line(for_prompt(title)), 80)} ({day}{count}): {name}"
