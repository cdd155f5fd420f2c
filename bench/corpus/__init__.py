"""Realistic transcripts of Claude Code and other runtimes, of any size.

They are the same for the same seed and arguments. As in real ones, 60 to 80% of a Claude Code
transcript's bytes are tool results.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from .author import Author
from .claude import Claude
from .formats import Codex, Copilot, Format, Gemini, Pi, Qwen
from .texts import Texts, texts_of

__all__ = ["FORMATS", "Author", "Texts", "append_turns", "texts_of", "write_chat", "write_session"]

MEGABYTE = 1 << 20
TAIL_BYTES = 2 * MEGABYTE  # a transcript's last records surely are among these

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


FORMATS: dict[str, Format] = {
    "agent-sdk": Claude(),
    "pi": Pi(),
    "codex": Codex(),
    "qwen": Qwen(),
    "copilot": Copilot(),
}


def write_session(path: Path, author: Author, format: str = "agent-sdk") -> Counter[str]:
    """Write a transcript of at least `author.size` bytes, and return its bytes by kind.

    Its mtime is the session's end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return _write(path, "wb", author, FORMATS[format])


def append_turns(path: Path, author: Author, format: str = "agent-sdk") -> Counter[str]:
    """Add at least `author.size` bytes to the session in `path`; return the bytes by kind."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        lines = file.read().split(b"\n")[1:-1]
    any(FORMATS[format].take_up(author, json.loads(line)) for line in reversed(lines))
    return _write(path, "ab", author, FORMATS[format])


def write_chat(config_dir: Path, author: Author) -> Path:
    """Write a chat of Gemini CLI, and the file beside it that names its directory.

    It is in none of FORMATS, because its transcripts are read only through a mirror."""
    project = config_dir / "tmp" / Path(author.cwd).name
    (project / "chats").mkdir(parents=True, exist_ok=True)
    (project / ".project_root").write_text(author.cwd)
    path = project / "chats" / f"session-2026-11-22T02-15-{author.session_id[:8]}.jsonl"
    _write(path, "wb", author, Gemini())
    return path


def _write(path: Path, mode: str, author: Author, format: Format) -> Counter[str]:
    bytes_by_kind: Counter[str] = Counter()
    with open(path, mode, buffering=MEGABYTE) as file:
        for record in format.records(author):
            line = (_encode(record) + "\n").encode()
            file.write(line)
            author.written += len(line)
            bytes_by_kind[format.kind(record)] += len(line)
            if author.written >= author.size:
                break
    os.utime(path, (author.now(), author.now()))
    return bytes_by_kind
