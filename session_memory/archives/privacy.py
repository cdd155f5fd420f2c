"""Keeps archives of sessions that rules exclude, or whose text they hide, in a private folder.

The folder is beside the archives, hidden, for this user alone; nothing lists or searches it. Before archives are read
or written, those that a rule excludes now are moved there, and those that none excludes any more are moved back."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ..errors import SessionMemoryError
from ..settings.homes import private_beside
from ..settings.rules import stricter
from ..system.confined_files import OutsideGroupError, pinned
from ..system.files import lock
from ..system.json import as_string
from .list import free_path, list_archives

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..settings.privacy import Privacy
    from ..settings.rules import Rule

PRIVATE_FOLDER = ".private-conversations"
_WAIT_SECONDS = 0.2  # for a writer: archives that cannot be moved are not shown either


def rule_of(facts: dict[str, Any], privacy: Privacy) -> Rule:
    """Return the rule for the session that an archive with these facts is of: the strictest of those for it, for each
    directory that something was said in, and for the sessions that it may be a copy of."""
    start = as_string(facts.get("cwd"))
    known = [as_string(facts.get(key)) for key in ("session", "name", "title")]
    rule = privacy.rule(start, *filter(None, known))
    for directory in _list(facts.get("directories")):
        rule = stricter(rule, privacy.of_directory(as_string(directory), start))
    for names in _list(facts.get("copied")):
        rule = stricter(rule, privacy.rule("", *filter(None, map(as_string, _list(names)))))
    return rule


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def is_private(facts: dict[str, Any], privacy: Privacy) -> bool:
    """Check if an archive with these facts belongs in the private folder."""
    return rule_of(facts, privacy).is_private


@contextmanager
def private_folder(directory: str, *, make: bool = False) -> Iterator[str]:
    """Yield a path to the private folder beside `directory`. Raises FileNotFoundError, OutsideGroupError."""
    beside = f"{directory}/.."
    with pinned(beside, f"{beside}/{PRIVATE_FOLDER}", make=make) as folder:
        yield folder


@contextmanager
def private_folder_if_there(directory: str) -> Iterator[str]:
    """Yield a path to the private folder beside `directory`, '' if there is none."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(private_folder(directory))
        except (FileNotFoundError, OutsideGroupError):
            folder = ""
        yield folder


def private_path(directory: str, name: str) -> str:
    """Return the path of the archive `name` of `directory` in the private folder."""
    return f"{private_beside(directory)}/{name}"


def is_private_path(path: str) -> bool:
    """Check if an archive with this path is in a private folder."""
    return os.path.basename(os.path.dirname(path)) == PRIVATE_FOLDER


def settle(directory: str, privacy: Privacy) -> None:
    """Move each archive to the folder that the current rules demand."""
    visible_archives(directory, privacy)


def visible_archives(directory: str, privacy: Privacy) -> list[tuple[str, dict[str, Any]]]:
    """Return the path and the facts of every visible archive in `directory`, in no particular order, after moving each
    to the right folder. One that cannot be moved stays hidden."""
    visible: list[tuple[str, dict[str, Any]]] = []
    hidden: list[str] = []
    for path, facts in list_archives(directory):
        if is_private(facts, privacy):
            hidden.append(path)
        else:
            visible.append((path, facts))
    try:
        if not hidden:
            with private_folder(directory) as folder:
                if not os.listdir(folder):
                    return visible
        held = lock(f"{directory}/.lock", _WAIT_SECONDS)
    except (OSError, SessionMemoryError):  # there is no private folder, or another process writes
        return visible
    try:
        with private_folder(directory, make=True) as folder:
            for path in hidden:
                _move(path, folder)
            for path, facts in list_archives(folder):
                if not is_private(facts, privacy):
                    visible.append((_move(path, directory), facts))
    except (OSError, OutsideGroupError):
        pass
    finally:
        os.close(held)
    return visible


def facts_without_text(directory: str, privacy: Privacy) -> list[dict[str, Any]]:
    """Return the facts of archives that may be shown without text; with the title only if a person gave it."""
    found = [facts for _, facts in list_archives(directory)]
    try:
        with private_folder(directory) as folder:
            found += [facts for _, facts in list_archives(folder)]
    except (OSError, OutsideGroupError):
        pass
    return [
        {**facts, "title": (facts["title"] if facts.get("is_named") else "") or facts.get("name") or facts["session"]}
        for facts in found
        if not (rule := rule_of(facts, privacy)).ignore and not rule.quote
    ]


def _move(path: str, folder: str) -> str:
    """Move an archive into a folder, under a name that no file has there; its path there."""
    target = free_path(f"{folder}/{os.path.basename(path).removesuffix('.md')}")
    os.rename(path, target)
    return target
