"""The sample home: what a newcomer without any agent home sees the hook at work in."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ..runtimes.claude import encode_cwd
from ..settings.homes import MEMORY_DIR
from ..system.files import make_private_dir
from ..text.timestamps import epoch_seconds, iso_time
from .file_changes import write_in_place

# The sessions, who is at the other end, and how many minutes ago each was active.
SESSIONS = {
    "main": ("you, at the terminal", 45),
    "discord": ("the team's chat", 3),
    "email": ("the mailbox", 20),
}
PROMPT = "Morning! Anything I should know before we cut the release?"
_HOME_MARK = "@HOME@"


def compose(home: Path, templates: Path) -> None:
    """Writes the sample's named sessions and their transcripts, as if they had happened just now. Raises OSError."""
    projects = home / ".claude" / "projects" / encode_cwd(str(home))
    names = home / MEMORY_DIR / "sessions"
    make_private_dir(str(projects))
    make_private_dir(str(names))
    for name, (_, minutes_ago) in SESSIONS.items():
        records = [json.loads(line) for line in (templates / f"{name}.jsonl").read_text().splitlines()]
        end = time.time() - minutes_ago * 60 - 1
        records = [_filled_in(record, str(home)) for record in _moved(records, end)]
        session_id = records[0]["sessionId"]
        content = "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)
        transcript = projects / f"{session_id}.jsonl"
        write_in_place(transcript, content.encode())
        os.utime(transcript, (end, end))
        write_in_place(names / f"{name}.json", (json.dumps({"sessionId": session_id}) + "\n").encode())


def _moved(records: list[dict[str, Any]], end: float) -> list[dict[str, Any]]:
    """The records with their times shifted so that the last is at `end` (seconds since the epoch)."""
    times = [epoch_seconds(record["timestamp"]) or 0.0 for record in records]
    shift = end - max(times)
    return [{**record, "timestamp": iso_time(then + shift)} for record, then in zip(records, times)]


def _filled_in(value: Any, home: str) -> Any:
    """`value` with the home's path in the place of its mark, however deep."""
    if isinstance(value, dict):
        return {key: _filled_in(inner, home) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled_in(inner, home) for inner in value]
    return value.replace(_HOME_MARK, home) if isinstance(value, str) else value
