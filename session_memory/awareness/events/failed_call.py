"""Failed tool call: if its path does not exist and one other file is meant, names that file."""

from __future__ import annotations

import time

from ...common.system.files import is_file, real_path, status_at, without_links
from ...common.text.paths import resolved
from ...sessions.transcripts.entries import INTRODUCTION
from ..activity.call_collisions import CallDelivery
from ..activity.call_log import CallLog
from ..activity.viewpoint import Viewpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...sessions.runtimes.base import Runtime
    from .context import Context, Event

CHARACTERS = 300
_SHARED = 3  # parts at the end of two paths, the name among them
_KEY = "path "  # begins the key of a wrong path in the log of calls


def is_answered(event: Event, runtime: Runtime) -> bool:
    """Check if the call failed to read or edit a file."""
    return event.get("hook_event_name") == runtime.FAILED_EVENT and bool(runtime.missed_file(event))


def answer(context: Context, print_answer: Callable[[dict[str, object]], None]) -> None:
    """Print the intended path, once. Raises SessionMemoryError, OSError."""
    runtime, event = context.runtime, context.event
    cwd = real_path(str(event.get("cwd", "")))
    path = without_links(resolved(runtime.missed_file(event), cwd))
    if not path or status_at(path) is not None:
        return
    meant = plausible(path, _known(context, cwd))
    if not meant or not is_file(meant):
        return
    from ...common.text.sanitize import for_prompt

    viewpoint = Viewpoint(context.directory, context.home.user_dir)
    missing, there = viewpoint.shown(path), viewpoint.shown(meant)
    text = INTRODUCTION + for_prompt(
        f"- there is no {missing}; the one known file of that name is {there}"
    )
    with CallDelivery(CallLog(context.cursor_file, runtime.sub_agent(event))) as delivery:
        delivery.acquire()
        if len(text) <= CHARACTERS and not delivery.settled(_KEY + path, 0.0):
            delivery.settle(_KEY + path, time.time(), is_reported=True)
            print_answer(runtime.context_output(text, runtime.FAILED_EVENT))


def _known(context: Context, directory: str) -> set[str]:
    """Return the files that git tracks in a directory's worktree, and the session's own files."""
    from ...common.system.git import find_worktree
    from ...common.system.git_objects import tracked
    from ..activity.collisions._working_set import CollisionState
    from ..activity.session_state import KnownState

    state = KnownState(context.cursor_file).of(context.session)
    known = set(CollisionState.load(state.collisions or "", 0.0).working_set.actions)
    worktree = find_worktree(directory, context.home.user_dir)
    if worktree is not None and worktree.root:
        known.update(context.deadline.attempt("git", tracked, worktree) or ())
    return known


def plausible(path: str, known: Iterable[str]) -> str:
    """Return the `known` path that a missing `path` means; '' if none or several fit.

    It has the same name. It also has either all directories of `path`, in the same order with
    others between them, or the same last two directories."""
    parts = path.split("/")
    matching = {
        candidate
        for candidate in known
        if candidate.endswith(f"/{parts[-1]}")
        and candidate != path
        and _is_meant(parts, candidate.split("/"))
    }
    return matching.pop() if len(matching) == 1 else ""


def _is_meant(parts: list[str], others: list[str]) -> bool:
    if parts[-_SHARED:] == others[-_SHARED:] and len(parts) >= _SHARED:
        return True
    remaining = iter(others)
    return all([part in remaining for part in parts])
