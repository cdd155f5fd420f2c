"""Which archives others may see: those of what is excluded, or told of without text, lie in a private folder.

It lies beside the archives, hidden, for this user alone; nothing lists or searches it. Whoever looks at archives, or
writes some, first moves there what a rule has excluded since, and back what none excludes any more.
"""

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
_WAIT_SECONDS = 0.2  # for whoever writes: what is not moved is not shown either


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
    """Whether an archive with these facts lies in the private folder."""
    return rule_of(facts, privacy).is_private


@contextmanager
def private_folder(directory: str, *, make: bool = False) -> Iterator[str]:
    """A path to the private folder beside the archives in `directory`. Raises FileNotFoundError, OutsideGroupError."""
    beside = f"{directory}/.."
    with pinned(beside, f"{beside}/{PRIVATE_FOLDER}", make=make) as folder:
        yield folder


@contextmanager
def private_folder_if_there(directory: str) -> Iterator[str]:
    """A path to the private folder beside `directory`, '' where there is none."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(private_folder(directory))
        except (FileNotFoundError, OutsideGroupError):
            folder = ""
        yield folder


def private_path(directory: str, name: str) -> str:
    """Where the private archive `name` lies that would else be in `directory`."""
    return f"{private_beside(directory)}/{name}"


def is_private_path(path: str) -> bool:
    """Whether an archive with this path lies in a private folder."""
    return os.path.basename(os.path.dirname(path)) == PRIVATE_FOLDER


def settle(directory: str, privacy: Privacy) -> None:
    """Moves each archive where it belongs by the rules as they are."""
    visible_archives(directory, privacy)


def visible_archives(directory: str, privacy: Privacy) -> list[tuple[str, dict[str, Any]]]:
    """The path and the facts of every archive in `directory` that may be seen, in no particular order, after each has
    been moved where it belongs. What cannot be moved stays: it is not shown."""
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
    except (OSError, SessionMemoryError):  # there is no private folder, or somebody writes
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
    """The facts of the archives of which may be told who, when and how much: the title only if somebody gave it."""
    found = [facts for _, facts in list_archives(directory)]
    try:
        with private_folder(directory) as folder:
            found += [facts for _, facts in list_archives(folder)]
    except (OSError, OutsideGroupError):
        pass
    return [
        {**facts, "title": (facts["title"] if facts.get("is_named") else "") or facts.get("name") or facts["session"]}
        for facts in found
        if not (rule := rule_of(facts, privacy)).ignore and not rule.text
    ]


def _move(path: str, folder: str) -> str:
    """Moves an archive into a folder, under a name that no file has there; its path there."""
    target = free_path(f"{folder}/{os.path.basename(path).removesuffix('.md')}")
    os.rename(path, target)
    return target
