"""The undo log of forgotten memories, kept for a day: `.undo.jsonl` among the pages."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable
from typing import NamedTuple

from ..system.files import read_whole, write_atomically
from ..system.json import decode

FILE = ".undo.jsonl"
SECONDS = 24 * 3600


class Forgotten(NamedTuple):
    """A forgotten memory: its id, the time in seconds since the epoch (the same for all forgotten at once), its page,
    its part of the page, and the ids of the memories that it had superseded."""

    id: str
    time: float
    path: str
    part: str
    superseded: tuple[str, ...]


def read(directory: str) -> list[Forgotten]:
    """Read the undo log, latest last, and delete entries older than a day. Raises OSError."""
    try:
        lines = read_whole(f"{directory}/{FILE}").decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    found = [one for line in lines if (one := _parsed(line)) is not None]
    fresh = [one for one in found if time.time() - one.time < SECONDS]
    if len(fresh) < len(lines):
        write(directory, fresh)
    return fresh


def write(directory: str, forgotten: Collection[Forgotten]) -> None:
    """Replace the undo log. Raises OSError."""
    if not forgotten:
        discard(directory)
        return
    lines = [json.dumps(one._asdict()) for one in forgotten]
    write_atomically(f"{directory}/{FILE}", ("\n".join(lines) + "\n").encode())


def discard(directory: str) -> None:
    """Delete the undo log. Raises OSError."""
    try:
        os.unlink(f"{directory}/{FILE}")
    except FileNotFoundError:
        return


def chosen(forgotten: Iterable[Forgotten], ids: Collection[str]) -> list[Forgotten]:
    """Return the entries whose ids begin with one of `ids`; without ids, the entries of the last deletion."""
    every = list(forgotten)
    if ids:
        return [one for one in every if one.id.startswith(tuple(ids))]
    return [one for one in every if one.time == every[-1].time]


def _parsed(line: str) -> Forgotten | None:
    try:
        value = decode(line)
        found = Forgotten(
            str(value["id"]), float(value["time"]), str(value["path"]), str(value["part"]),
            tuple(map(str, value["superseded"])),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        return None
    return found if not os.path.isabs(found.path) and ".." not in found.path.split("/") else None
