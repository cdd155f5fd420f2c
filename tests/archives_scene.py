"""A conversation, and the archive that is written of it."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from records import assistant, tool_result, user

from session_memory.history.archives.format import ArchiveStyle, messages_in
from session_memory.history.archives.writer import ArchiveSource, write_archive
from session_memory.sessions.runtimes.table import runtime

MONDAY = datetime(2026, 9, 21, 14, 13, tzinfo=timezone.utc).timestamp()
ARCHIVED = datetime(2026, 9, 22, 3, 39, tzinfo=timezone.utc).timestamp()
SESSION = "d58a79a7-451e-4af5-86d1-3e839200d98d"


def archive(path, folder, style=None, session=SESSION, now=ARCHIVED, title=""):
    source = ArchiveSource(session, str(path), runtime("agent-sdk"), title=title)
    written = write_archive(source, str(folder), style or ArchiveStyle("G2"), now)
    return Path(written) if written else None


def messages(path):
    return [(speaker, text) for speaker, text, _ in messages_in(path.read_text())]


def titled(title):
    return {"type": "custom-title", "customTitle": title}


def travel():
    return [
        user("I want to plan a trip to Japan...", at=MONDAY),
        assistant("Let me think.", message_id="m1", at=MONDAY + 5),
        assistant(("WebSearch", {"query": "Japan in spring"}), message_id="m1", at=MONDAY + 6),
        tool_result("ten results"),
        assistant("Here are some suggestions:\n\n- Kyoto\n- Nara", message_id="m2", at=MONDAY + 9),
        titled("Travel Planning"),
    ]
