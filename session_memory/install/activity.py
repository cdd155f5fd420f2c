"""What went on in a home's sessions since a time, and whether the hook was there: by what both left behind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..runtimes.claude import files as claude
from ..runtimes.claude import records
from ..settings.homes import agent_home
from ..system.json import decode_line
from .homes import Target
from .scene import named_transcripts, project_dirs

_TAIL_BYTES = 256 * 1024
_LOOKED_AT = 20  # transcripts, the last written first


@dataclass
class Activity:
    """`transcripts` by session, `place` where they were looked for, `expected` how many there should be (named ones).

    `prompted` are the sessions in which somebody prompted since, `served` those among them in which the hook ran.
    """

    place: str
    expected: int = 0
    transcripts: dict[str, str] = field(default_factory=dict)
    prompted: list[str] = field(default_factory=list)
    served: list[str] = field(default_factory=list)


def activity(target: Target) -> Activity:
    """The transcripts of a home."""
    if target.kind == "agent":
        named = named_transcripts(target)
        there = {name: path for name, path in named.items() if os.path.isfile(path)}
        place = os.path.dirname(next(iter(named.values()), f"{target.config_dir}/projects/"))
        return Activity(place, len(named), there)
    if target.project:
        directories = [claude.project_dir(target.config_dir, target.project)]
    else:
        directories = list(project_dirs(target.config_dir))
    sessions = [session for directory in directories for session in claude.sessions_in(directory)]
    place = directories[0] if target.project else f"{target.config_dir}/projects"
    return Activity(place, 0, {session.key: session.path for session in sessions})


def activity_since(target: Target, since: float, environ: Mapping[str, str]) -> Activity:
    """The same, with who prompted after `since` (seconds since the epoch), and where the hook took notice."""
    found = activity(target)
    latest = sorted(found.transcripts, key=lambda name: -os.stat(found.transcripts[name]).st_mtime)[:_LOOKED_AT]
    for name in latest:
        path = found.transcripts[name]
        prompted_in = _prompted_in(path, since) if os.stat(path).st_mtime > since else None
        if prompted_in is None:
            continue
        if target.kind != "agent" and agent_home(prompted_in, environ, stop=environ.get("HOME", "")):
            continue  # what the hook noted lies in that agent's home
        found.prompted.append(name)
        if os.path.exists(target.home.cursor_file(name) + ".lock"):
            found.served.append(name)
    return found


def _prompted_in(path: str, since: float) -> str | None:
    """Where the session was when somebody last prompted, if that was after `since`; else None."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - _TAIL_BYTES))
        lines = file.read().split(b"\n")
    for line in reversed(lines):
        for record in decode_line(line)[0]:
            entry = records.entry(record, 0) if isinstance(record, dict) else None
            if entry and entry.role == "user":
                return entry.cwd if (entry.timestamp or 0) > since else None
    return None
