"""Files, directories and git commands that a memory names, and its quotation: what a tool call is told of it."""

from __future__ import annotations

import os
import re

from ..activity.call_memories import COMMAND, ROOTED
from ..store.sqlite.memory_index import IndexedMemory
from ..system.git import Worktree
from ..text.format import one_line
from .doubts import files_named
from .format import BY_AGENT, BY_PERSON, REJECTED, time_text

_NOUNS = {"decision": "decision", "preference": "preference", REJECTED: "rejection"}
_BY_RULES = "extractive"  # up to 0.3, by rules that were too often wrong (bench/extraction)
_GIT = re.compile(r"\bgit ([a-z][a-z-]+)")
_HAS_ENDING = re.compile(r"\.[a-z]\w*$")
_UNSAFE = re.compile(r'["\\\x00-\x1f]')  # JSON escapes these


def places_of(memory: IndexedMemory, directory: str, worktree: Worktree | None) -> list[str]:
    """Return the places that a memory from a session in `directory` names, if it is a decision, a preference or a
    rejection that more than rules made (see call_memories)."""
    if memory.kind not in _NOUNS or not directory or all(one.strategy == _BY_RULES for one in memory.origins):
        return []
    root = worktree.root if worktree and worktree.root else directory
    names, _ = files_named(memory)
    found = [_place(name, directory, root) for name in names]
    found += [f"{COMMAND}git {word}" for word in _GIT.findall(memory.whole_text)]
    return list(dict.fromkeys([place for place in found if place and not _UNSAFE.search(place)]))


def said(memory: IndexedMemory) -> str:
    """Return who said when what a memory holds, word for word."""
    origin = max(memory.origins, key=lambda one: one.at or 0)
    what = f"{_NOUNS[memory.kind]} of {time_text(origin.at)[:10]}"
    if origin.strategy == BY_PERSON:
        what = f"the user's {what}"
    elif origin.strategy == BY_AGENT:
        what = f"an agent's {what}"
    else:
        what = f"a {what}, kept by {origin.strategy}"
    return f'{what}: "{one_line(memory.quote or memory.title)}"'


def _place(name: str, directory: str, root: str) -> str:
    """Return the place of a name: from the root if it is there, else by the end of its path, if it may be a file's."""
    for above in dict.fromkeys((directory, root)):
        path = os.path.normpath(os.path.join(above, name))
        inside = path.removeprefix(root.rstrip("/") + "/")
        if inside != path and os.path.isfile(path):
            return ROOTED + inside
        if inside != path and "/" in name and os.path.isdir(path):
            return f"{ROOTED}{inside}/"
    is_path = _HAS_ENDING.search(name) and not name.startswith(("/", ".."))
    return f"/{name.removeprefix('./')}" if is_path else ""
