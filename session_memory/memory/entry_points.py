"""Strategies that other packages bring, by entry points of the group `session_memory.strategies`.

`install` and `doctor` scan the packages, and note the strategies for the interpreter that runs this;
all others read the note."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

from ..common.system.entry_points import PackageScan, scanned
from ..common.system.files import make_private_dir, read_whole, write_atomically
from ..common.system.json import as_object
from ..sessions.settings.homes import person_home

KIND = "session_memory.strategies"


def noted_strategies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the noted strategies of this interpreter's packages: their places, by their ids."""
    noted = as_object(_read(_file(environ)).get(sys.prefix))
    return {name: value for name, value in noted.items() if isinstance(value, str)}


def note_strategies(
    environ: Mapping[str, str], scan: PackageScan | None = None
) -> tuple[list[str], list[str]]:
    """Note the strategies that a scan found, by default one of this interpreter.

    Return the ids that are new, and those that are gone. Raises OSError, ValueError."""
    prefix, points = scan or scanned()
    strategies = {point.name: point.place for point in points.get(KIND, ())}
    path = _file(environ)
    noted = _read(path)
    before = as_object(noted.get(prefix))
    if strategies != before:
        make_private_dir(os.path.dirname(path))
        write_atomically(path, json.dumps({**noted, prefix: strategies}).encode())
    return sorted({*strategies} - {*before}), sorted({*before} - {*strategies})


def _file(environ: Mapping[str, str]) -> str:
    return person_home(environ).state_dir + "/packages.json"


def _read(path: str) -> dict[str, object]:
    try:
        return as_object(json.loads(read_whole(path)))
    except (OSError, ValueError):
        return {}
