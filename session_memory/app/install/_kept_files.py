"""Recognises our files in a directory of ours or beside it, so a purge can delete each of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...awareness.events.upkeep_start import IGNORE_ALL
from ...common.errors import SessionMemoryError
from ...common.system.file_changes import remove_if_empty
from ...history.archives.format import facts_in
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.check import FileCheck
from ...sessions.settings.homes import ENV_DIR

IGNORE_FILE = ".gitignore"
_END_BYTES = 16 * 1024
_MIRRORS = "|".join(re.escape(runtime.name) for runtime in all_runtimes())
# Paths below a place. A runtime with a separate directory has the same paths in homes/<name>/ as
# the person has in the place.
_NAMED = re.compile(
    r"(?:homes/[^/]+/)?(?:"
    r"state/(?:hook\.log(?:\.1)?|(?:upkeep|conflicts|inbox|config|settings|team|team-changes|team-handoffs|registered|named_homes|hosts|repositories|"
    r"missed|marks|told-faults|told-homes|notices|packages|runtimes|environment|waiting)\.(?:json|lock))"
    rf"|state/(?:cursors|projects|folders|git|team|homes|groups|{_MIRRORS})/.*"
    r"|(?:store/)?lines\.key|store/(?:(?:memory|kept)\.db.*|watch\.(?:lock|pid)|strategies/.*)"
    r"|(?:plugin/)?env(?:-[^/]*|\.new)?/.*|plugin/[^/]*\.(?:json|lock|log)"
    r"|(?:\.private-)?(?:conversations|memories)/(?:[^/]+/)*\.[a-z-]+"
    r")(?:\.corrupt[^/]*|\.\d+(?:-\d+)?\.tmp)?"
)
_FOLDERS = re.compile(
    rf"(?:homes/[^/]+/)?(?:state(?:/(?:cursors|projects|folders|git|homes|groups|(?:team|{_MIRRORS})(?:/.*)?))?"
    r"|store(?:/strategies(?:/.*)?)?|plugin|(?:plugin/)?env(?:/.*)?"
    r"|(?:\.private-)?(?:conversations|memories)(?:/.*)?)|homes(?:/[^/]+)?|\."
)
_ARCHIVE = re.compile(r"(?:homes/[^/]+/)?(?:\.private-)?conversations/[^/]+\.md")
_PAGE = re.compile(r"(?:homes/[^/]+/)?(?:\.private-)?memories/.+\.md")
_MEMORY = re.compile(rb"^## .* \^[a-z2-7]{10}[ \t]*$", re.MULTILINE)


class ForeignPlaceError(SessionMemoryError):
    """A directory for our data that contains something else."""


def check_place(place: str) -> None:
    """Raise ForeignPlaceError if `place` has files but none of ours."""
    our_paths, others = sort_out(place, place) if os.path.isdir(place) else ([], [])
    if others and not our_paths:
        hint = f"set {ENV_DIR} to a directory that is used for nothing else, or unset it"
        raise ForeignPlaceError(
            f"{place}: it contains {os.path.basename(others[0])}, which session-memory did not make",
            hint,
        )


def sort_out(path: str, place: str) -> tuple[list[str], list[str]]:
    """Return the files at `path` that are ours, and the others.

    `path` is `place` or below it. If all files of a directory are of one kind, only the directory
    is returned. Symlinks are not followed and not ours."""
    if (os.path.islink(path) and path != place) or not os.path.isdir(path):
        return ([path], []) if _is_ours(path, place) else ([], [path])
    parts = [sort_out(f"{path}/{name}", place) for name in sorted(os.listdir(path))]
    our_paths, others = (
        [path_of_part for part in parts for path_of_part in part[0]],
        [path_of_part for part in parts for path_of_part in part[1]],
    )
    if not parts:
        return ([path], []) if _FOLDERS.fullmatch(os.path.relpath(path, place)) else ([], [path])
    return (
        ([path], [])
        if not others
        else (our_paths, others)
        if our_paths or path == place
        else ([], [path])
    )


def delete(path: str, place: str) -> None:
    """Delete the files at `path` that are ours now, and directories that become empty.

    Raises OSError."""
    if os.path.islink(path) or not os.path.isdir(path):
        if _is_ours(path, place):
            os.unlink(path)
        return
    for name in os.listdir(path):
        delete(f"{path}/{name}", place)
    remove_if_empty(Path(path))


def _is_ours(path: str, place: str) -> bool:
    """Return True for a regular file that we made.

    Its path decides; where people may have a file of the same path, its content decides too."""
    inner = os.path.relpath(path, place).replace(os.sep, "/")
    if os.path.islink(path):  # an environment has some
        return bool(re.match(r"(?:homes/[^/]+/)?(?:plugin/)?env[^/]*/", inner))
    if _ARCHIVE.fullmatch(inner):
        return facts_in(_read(path)[-_END_BYTES:].decode("utf-8", "replace")) is not None
    if _PAGE.fullmatch(inner):
        return bool(_MEMORY.search(_read(path)))
    if inner.rpartition("/")[2] == "config.yaml" and re.fullmatch(
        r"(?:homes/[^/]+/)?config\.yaml", inner
    ):
        return not any(
            "unknown key" in fault.text or not fault.key for fault in FileCheck(path).faults
        )
    if inner == IGNORE_FILE:
        return _read(path) == IGNORE_ALL
    return bool(_NAMED.fullmatch(inner))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes() if os.path.isfile(path) else b""
    except OSError:
        return b""
