"""Memories, with the evidence for and against each; they can be forgotten and restored here."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from ....app.labels import project_of
from ....common.system.files import user_dir
from ....common.system.sqlite import Patience
from ....common.text.format import counted, one_line, shorten
from ....common.text.sanitize import for_people
from ....memory.doubts import with_doubts
from ....memory.folders import folder_of, folders_of
from ....memory.forgotten import read_undo
from ....memory.format import EPISODE, KINDS, shown_kind
from ....memory.library import forget_memories, open_index, take_back
from ....memory.memory_index import IndexedMemory, MemoryFilter
from ....memory.pages import file_of
from ....memory.shared_store import SharedStoreError, shared_engine
from .._choices import Choice, chosen_of, is_for_shared, opened, problem_with, whose
from .._page_request import NotFoundError, PageRequest
from .._view import Action, FormFields, View

LIMIT = 50
MOST = 2000
PATIENCE_SECONDS = 1.0
TITLE_CHARACTERS = 120


def values(request: PageRequest) -> dict[str, Any]:
    """Return the memories for the template: all of them, or the best matches for `q`.

    `memories` has episodes last. There are also their number by kind, `notes` on problems with
    updating the index, the `problem` with an unreachable team, and `forgotten`, which can be
    restored. Evidence against the memories is only included with `doubts`, because finding it
    starts git."""
    query, kind, project = request.one("q").strip(), request.one("kind"), request.one("project")
    notes: list[str] = []
    wanted = MemoryFilter(with_superseded=bool(request.one("superseded")), limit=MOST)
    problem = ""
    try:
        memories = _found(request, query, wanted, notes)
    except SharedStoreError as error:
        memories, problem = [], problem_with(error)
    projects = dict.fromkeys(filter(None, map(_project, memories)))
    memories = [memory for memory in memories if not project or _project(memory) == project]
    kinds = Counter(memory.kind for memory in memories)
    memories = [memory for memory in memories if not kind or memory.kind == kind]
    shown = memories[: request.number("limit", LIMIT, MOST) or LIMIT]
    is_shared = is_for_shared(request)
    if request.one("doubts") and not is_shared:
        shown = with_doubts(shown, user_dir(os.environ))
    requested = {
        name: request.one(name) for name in ("q", "whose", "kind", "project", "superseded", "limit")
    }
    return {
        "query": query,
        "whose": whose(request),
        "memories": _shown(request, shown),
        "count": len(memories),
        "kinds": _choices_of_kinds(kinds, kind),
        "all_kinds": sum(kinds.values()),
        "counts": _counts(kinds, kind),
        "projects": chosen_of(
            [("", "All projects"), *((name, name) for name in projects)], project
        ),
        "asked": requested,
        "is_limited": bool(query or kind or project),
        "notes": [for_people(note) for note in notes],
        "problem": problem,
        "forgotten": [] if is_shared else _forgotten(request),
        "has_doubts": is_shared or bool(request.one("doubts")),
    }


def _choices_of_kinds(numbers: Counter[str], chosen: str) -> list[tuple[Choice, int]]:
    """Return the existing kinds and the chosen one, each with its number."""
    return [
        (Choice(kind, shown_kind(kind), kind == chosen), numbers[kind])
        for kind in (*KINDS, EPISODE)
        if numbers[kind] or kind == chosen
    ]


def _counts(numbers: Counter[str], chosen: str) -> str:
    """Return the number of memories and of the log's entries, or of the chosen kind."""
    log = numbers[EPISODE] if chosen in ("", EPISODE) else 0
    noted = numbers[chosen] if chosen else sum(numbers.values()) - numbers[EPISODE]
    counts = [] if chosen == EPISODE else [counted(noted, "memory", "memories")]
    if log or not counts:
        counts.append(f"{counted(log, 'entry', 'entries')} of the log")
    return ", ".join(counts)


def _found(
    request: PageRequest, query: str, wanted: MemoryFilter, notes: list[str]
) -> list[IndexedMemory]:
    """Return the memories that match `query` best, or the latest without a query.

    They are the team's if it is chosen."""
    if is_for_shared(request):
        with opened(request) as shared:
            memories = shared_engine().memories(shared)
            return memories.search(query, wanted) if query else memories.memories(wanted)
    with open_index(request.location, notes.append, Patience(PATIENCE_SECONDS)) as index:
        return index.search(query, wanted) if query else index.memories(wanted)


def _forget(request: PageRequest, fields: FormFields) -> str:
    """Forget the memory `id`, which can be undone for a day. Raises NotFoundError."""
    wanted = fields.one("id")
    with open_index(request.location, lambda _: None) as index:
        memories = [memory for memory in index.beginning_with(wanted) if memory.id == wanted]
    if not memories:
        raise NotFoundError("there is no such memory", "it may already be forgotten")
    forget_memories(request.location, memories, lambda _: None)
    return "/memories"


def _unforget(request: PageRequest, fields: FormFields) -> str:
    """Restore the memory `id`. Raises NotFoundError."""
    wanted = fields.one("id")
    if not wanted or not take_back(request.location, [wanted], lambda _: None):
        raise NotFoundError("this memory was not forgotten within the last day")
    return "/memories"


def _project(memory: IndexedMemory) -> str:
    """Return the project of a memory's latest source session."""
    return next(
        (project_of(for_people(origin[5])) for origin in reversed(memory.origins) if origin[5]), ""
    )


def _forgotten(request: PageRequest) -> list[tuple[str, str]]:
    """Return ids and titles of the memories that can be restored, the latest first."""
    undone = [undo for folder in folders_of(request.location) for undo in read_undo(folder)]
    return [(undo.id, _title(undo.part)) for undo in sorted(undone, key=lambda undo: -undo.time)]


def _title(part: str) -> str:
    first = one_line(for_people(part.strip().partition("\n")[0].lstrip("# ")))
    return shorten(first.rpartition(" ^")[0] or first, TITLE_CHARACTERS)


def _shown(
    request: PageRequest, memories: list[IndexedMemory]
) -> list[tuple[IndexedMemory, str, str]]:
    """Return the memories, redacted, each with its project and its page for editing."""
    return [
        (
            memory._replace(
                kind=shown_kind(memory.kind),
                title=for_people(memory.title),
                text=for_people(memory.text),
                subject=for_people(memory.subject),
                quote=for_people(memory.quote),
                who=for_people(memory.who),
            ),
            _project(memory),
            file_of(folder_of(request.location, memory.home), memory.path),
        )
        for memory in memories
    ]


VIEWS = (View("memories", "/memories", values, "Memories", "m", "Look back"),)
ACTIONS = (Action("/memories/forget", _forget), Action("/memories/take-back", _unforget))
