"""Move memories that rules exclude to private pages, and others back to the open pages.

The target page is written before the source page. After a crash in between they are on both pages; the next run removes
them from the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import pages
from .pages import EditedMeanwhileError

if TYPE_CHECKING:
    from ..store.sqlite.memory_index import PlacedMemory
    from .pages import Page


def settle(directory: str, misplaced: Iterable[PlacedMemory]) -> None:
    """Move memories to the pages where they belong. If a page is being edited, its memories wait for the next run. The
    caller holds the directory's lock. Raises OSError."""
    by_page: dict[str, set[str]] = {}
    for one in misplaced:
        by_page.setdefault(one.path, set()).add(one.id)
    for path, ids in by_page.items():
        try:
            _move(directory, path, ids)
        except EditedMeanwhileError:
            continue


def _move(directory: str, path: str, ids: set[str]) -> None:
    source = pages.read(directory, path)
    moved = [(part, memory.id) for part, memory in zip(source.parts[1:], source.memories) if memory.id in ids]
    if not moved:
        return
    target = pages.read(directory, pages.moved_path(path))
    for part, id in moved:
        _put(target, part, id, replaces=pages.is_private_path(target.path))
    pages.write(directory, target)
    gone = {part for part, _ in moved}
    pages.write(directory, source._replace(parts=[part for part in source.parts if part not in gone]))


def _put(page: Page, part: str, id: str, *, replaces: bool) -> None:
    """Add a memory to a page. If a crash left it on both pages, the open page's version wins, since people edit that
    one."""
    at = pages.position_of(page, id)
    if at is None:
        page.parts.append(part)
    elif replaces:
        page.parts[at] = part
