"""A host with groups, transcripts of theirs, and what its database says of them."""

from __future__ import annotations

import json
from pathlib import Path

from session_memory.sessions.settings.host_layout import Group
from session_memory.sessions.transcripts.pointers import SessionManager

BEGAN = "2026-02-21T03:39:07.123Z"


def write_transcript(group: Group, session_id: str, text: str = "plan the garden") -> Path:
    """A transcript with one exchange."""
    path = Path(group.transcript(session_id))
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [
        {"type": "user", "uuid": f"{session_id}-u", "message": {"role": "user", "content": text}},
        {
            "type": "assistant",
            "uuid": f"{session_id}-a",
            "message": {
                "id": "m1",
                "role": "assistant",
                "content": [{"type": "text", "text": "Beans."}],
            },
        },
    ]
    lines = [
        {**record, "timestamp": BEGAN, "sessionId": session_id, "cwd": group.root}
        for record in records
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def state(
    sessions: SessionManager, group: str = "main"
) -> tuple[str | None, list[tuple[str, str]]]:
    """The group's pointer, and session and name of each entry of its history."""
    return sessions.get(group), [
        (entry.session_id, entry.name) for entry in sessions.get_history(group)
    ]
