"""Estimates the size of all sessions' archives from the sizes of their transcripts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from ...sessions.runtimes.base import Runtime

# per byte of transcript: 24 real ones of Claude Code, 9.3 MB, became 0.3 MB of archives
SHARE = 0.032


def archive_bytes(places: Iterable[tuple[Runtime, str]]) -> int:
    """Return roughly how many bytes the archives of all the runtimes' sessions take.

    Sessions without mirrors yet count by the runtime's own files."""
    size = 0
    for runtime, config_dir in places:
        paths = {*runtime.backup.transcripts(config_dir)}
        with suppress(OSError):  # a damaged database
            for session in runtime.backup.sessions(config_dir) if not paths else ():
                paths.add(session.files[0].source)
        for path in paths:
            with suppress(OSError):
                size += os.stat(path).st_size
    return round(size * SHARE)
