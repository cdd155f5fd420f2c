"""Strategies that other packages bring, by entry points of the group `session_memory.strategies`.

A scan of all packages takes 100 ms. So `install` and `doctor` scan, and note what there is for the
interpreter that runs this; all others read the note."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from ..common.system.files import make_private_dir, read_whole, write_atomically
from ..common.system.json import as_object
from ..sessions.settings.homes import person_home

KIND = "session_memory.strategies"
# Another interpreter prints with it the result of its `_scanned`.
_SCAN = (
    "import json, sys; from importlib.metadata import entry_points; "
    f"points = entry_points(group={KIND!r}); "
    "print(json.dumps([sys.prefix, {point.name: point.value for point in points}]))"
)
_SECONDS = 30


def noted_strategies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the noted strategies of this interpreter's packages: their places, by their ids."""
    noted = as_object(_read(_file(environ)).get(sys.prefix))
    return {name: value for name, value in noted.items() if isinstance(value, str)}


def note_strategies(environ: Mapping[str, str], python: str = "") -> tuple[list[str], list[str]]:
    """Note the strategies of the packages of the interpreter `python`, by default this one.

    Return the ids that are new, and those that are gone. Raises OSError; ValueError or
    SubprocessError if the interpreter cannot tell."""
    prefix, strategies = _scanned_by(python) if python else _scanned()
    path = _file(environ)
    noted = _read(path)
    before = as_object(noted.get(prefix))
    if strategies != before:
        make_private_dir(os.path.dirname(path))
        write_atomically(path, json.dumps({**noted, prefix: strategies}).encode())
    return sorted({*strategies} - {*before}), sorted({*before} - {*strategies})


def _scanned() -> tuple[str, dict[str, str]]:
    """Return where the packages of this interpreter are, and their strategies."""
    from importlib.metadata import entry_points

    return sys.prefix, {point.name: point.value for point in entry_points(group=KIND)}


def _scanned_by(python: str) -> tuple[str, dict[str, str]]:
    done = subprocess.run(
        [python, "-I", "-c", _SCAN],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    prefix, strategies = json.loads(done.stdout)
    return prefix, strategies


def _file(environ: Mapping[str, str]) -> str:
    return person_home(environ).state_dir + "/packages.json"


def _read(path: str) -> dict[str, object]:
    try:
        return as_object(json.loads(read_whole(path)))
    except (OSError, ValueError):
        return {}
