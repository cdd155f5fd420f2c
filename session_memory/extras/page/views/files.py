"""Files: recent edits of sessions with the diffs, and the sessions that have each file in hand."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, NamedTuple

from ....app.active_sessions import ActiveSession
from ....app.labels import project_of
from ....common.system.files import user_dir
from ....common.system.git import Worktree, find_worktree
from ....common.text.paths import relative
from ....common.text.sanitize import for_people
from ....history.store.sqlite.tool_uses import conversation_steps
from ....history.store.values import Conversation, Filter, StoredEntry, edits_in
from ....history.titles import Titles
from .._choices import period, places
from .._labels import ShownRuntime, shown_runtime
from .._page_request import PageRequest
from .._view import View

DEFAULT_PERIOD = "7d"
CONVERSATIONS = 100  # the latest ones
SHOWN = 60  # files
EDITS = 4  # of one session, each with its diff


class EditedBy(NamedTuple):
    """A session that edited a file.

    It has its conversation, title and runtime, the `numbers` of its edits, the latest first, the
    time of the latest, and whether the file is in its working set."""

    conversation: Conversation
    title: str
    runtime: ShownRuntime
    numbers: list[int]
    at: float
    is_in_hand: bool = False


class EditedFile(NamedTuple):
    """A file with the sessions that edited it, and the active sessions that only read it.

    The latest come first, each with the time. `is_shared` means that it is in several working sets.
    `worktree` names the linked worktree with the file."""

    path: str
    shown: str
    project: str
    at: float
    by: list[EditedBy]
    readers: list[tuple[ActiveSession, float]]
    is_shared: bool
    worktree: str = ""


def values(request: PageRequest) -> dict[str, Any]:
    """Return the `files` that were edited in the period, the latest first."""
    times, since = period(request, DEFAULT_PERIOD)
    chosen = places(request)
    runtime, typed = request.one("runtime"), request.one("q").strip().casefold()
    wanted = Filter(
        directories=chosen.directories, runtime=runtime, since=since, limit=CONVERSATIONS
    )
    edits: dict[str, dict[tuple[str, str], EditedBy]] = {}
    for conversation, steps in request.while_wanted(conversation_steps(request.store, wanted)):
        for step, path in edits_in(
            [*steps, *request.store.sub_agent_calls(conversation.id)], conversation.cwd
        ):
            if (step.timestamp or 0) >= (since or 0) and typed in for_people(path).casefold():
                _add(edits.setdefault(path, {}), conversation, step)
    latest = sorted(edits, key=lambda path: -max(edit.at for edit in edits[path].values()))
    worktrees: dict[str, Worktree | None] = {}
    held = Counter(
        path for session in request.active for path in {path for path, _, _ in session.hands}
    )
    shown = {path: list(edits[path].values()) for path in latest[:SHOWN]}
    titles = Titles(request.store, {edit.conversation for by in shown.values() for edit in by})
    return {
        "files": [
            _shown(path, by, titles, request.active)._replace(
                worktree=_linked_worktree(path, worktrees)
            )
            for path, by in shown.items()
        ],
        "count": len(edits),
        "shared": sum(held[path] > 1 for path in edits),
        "times": times,
        "projects": chosen.projects,
        "runtimes": chosen.runtimes,
        "asked": {name: request.one(name) for name in ("q", "since", "project", "runtime")},
        "edits": EDITS,
    }


def _add(
    by: dict[tuple[str, str], EditedBy], conversation: Conversation, step: StoredEntry
) -> None:
    """Add an edit of a file to the other edits of its session.

    The latest conversation of a session comes first."""
    key = conversation.home, conversation.session_id
    at = (step.timestamp or 0) / 1000
    if key not in by:
        by[key] = EditedBy(conversation, "", shown_runtime(conversation.runtime), [step.number], at)
    elif by[key].conversation.id == conversation.id:
        by[key] = by[key]._replace(numbers=[step.number, *by[key].numbers], at=at)
    else:
        by[key].numbers.append(step.number)


def _linked_worktree(path: str, known: dict[str, Worktree | None]) -> str:
    """Return the name of the linked worktree that a file is in; '' for a main worktree or none."""
    worktree = find_worktree(path.rpartition("/")[0], user_dir(os.environ), known)
    return for_people(worktree.name) if worktree and worktree.git_dir != worktree.common_dir else ""


def _shown(
    path: str, by: list[EditedBy], titles: Titles, active: list[ActiveSession]
) -> EditedFile:
    by.sort(key=lambda edit: -edit.at)
    cwd = by[0].conversation.cwd
    holders = {
        session.id: (session, at)
        for session in active
        for held, _, at in session.hands
        if held == path
    }
    named = [
        edit._replace(
            title=titles.of(edit.conversation) or "Untitled",
            is_in_hand=edit.conversation.session_id in holders,
        )
        for edit in by
    ]
    edited = {edit.conversation.session_id for edit in by}
    readers = sorted(
        (pair for id, pair in holders.items() if id not in edited), key=lambda pair: -pair[1]
    )
    return EditedFile(
        path,
        for_people(relative(path, cwd)),
        project_of(cwd),
        by[0].at,
        named,
        readers,
        len(holders) > 1,
    )


VIEWS = (View("files", "/files", values, "Files", "f"),)
