"""Finds the entry points of other packages, in this interpreter or in another one.

A scan takes 100 ms, so only `install` and `doctor` scan, and write down the result. Another
interpreter runs this file as a program, so the file imports nothing of ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from importlib.metadata import distributions
from importlib.util import find_spec
from typing import NamedTuple

_SECONDS = 30
_OURS = "session_memory."  # begins the name of each of our groups


class PackagePoint(NamedTuple):
    """An entry point: its name, its "module:attribute", and the folder to import that from."""

    name: str
    place: str
    folder: str


class PackageScan(NamedTuple):
    """The prefix of an interpreter, and the entry points of our groups, by their group."""

    prefix: str
    points: dict[str, list[PackagePoint]]


def scanned(python: str = "", *, but: Collection[str] = ()) -> PackageScan:
    """Return the entry points of the interpreter `python`, by default this one.

    `but` are folders in this process's path that are not its interpreter's.
    Raises OSError; ValueError or SubprocessError if the interpreter cannot tell."""
    if not python:
        return PackageScan(sys.prefix, _points(but))
    done = subprocess.run(
        [python, "-I", __file__],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    prefix, groups = json.loads(done.stdout)
    return PackageScan(
        prefix,
        {group: [PackagePoint(*point) for point in points] for group, points in groups.items()},
    )


def _points(but: Collection[str] = ()) -> dict[str, list[PackagePoint]]:
    paths = [path for path in sys.path if path not in but]
    groups: dict[str, dict[str, PackagePoint]] = {}
    for distribution in distributions(path=paths):
        for point in distribution.entry_points:
            if point.group.startswith(_OURS):
                place = PackagePoint(point.name, point.value, _folder_of(point.module))
                groups.setdefault(point.group, {})[point.name] = place
    return {group: list(points.values()) for group, points in groups.items()}


def _folder_of(module: str) -> str:
    """Return the folder in which the module's package is; '' if it is not there."""
    try:
        spec = find_spec(module.partition(".")[0])  # this loads nothing
    except (ImportError, ValueError):
        return ""
    places = list(spec.submodule_search_locations or [spec.origin or ""]) if spec else []
    return os.path.dirname(places[0]) if places else ""


if __name__ == "__main__":
    print(json.dumps([sys.prefix, _points()]))
