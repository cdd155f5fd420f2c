"""Memories about the file or the git or package command of a tool call, from the index that prompts
read (`prompt_memories`).

A decision, a preference, a rejection or a fact has four more columns there:

    [..., places, said, sessions, cues]

`places` are what it names, unless it is a fact: `$git push`, `^src/db.py` for a file of the
repository, `^src/db/` for a directory of it, `/db.py` for any file with a path that ends so. The
index lists the memory by the last part of each. `said` is the quotation, with who said it when, and
`sessions` those that it comes from: they know it. `cues` (`_cues`) are terms that a command may
have."""

from __future__ import annotations

import time

from ..awareness.activity.actions import EDIT
from ..awareness.activity.call_log import MEMORY
from ..awareness.events.prompt import joined
from ..common.system.files import without_links
from ..common.text.acting_commands import acts_in
from ..common.text.paths import resolved
from .prompt_index_reader import AT_CALLS, COLUMNS, CUE, composed, found_in, listed_in, value_at
from .prompt_memories import terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

    from ..awareness.activity.call_collisions import CallDelivery
    from ..awareness.events.context import Context

CHARACTERS = 300  # with a call, the introduction included
COMMAND, ROOTED = "$", "^"


def at_call(context: Context) -> Callable[[CallDelivery], None] | None:
    """Return the function that adds memories about a call's files or command, None if none.

    Memories of the session itself are left out. Raises as `found_in`."""
    cwd, home = str(context.event.get("cwd", "")), context.home
    calls = [
        (without_links(resolved(call.argument, cwd)), "")
        if call.kind == EDIT
        else (without_links(cwd), call.argument)
        for call in context.runtime.tool_calls(context.event)
    ]
    own_ids = (context.session, context.session_id)
    memories = about_calls(home.memories_dir, calls, home.user_dir, own_ids)
    return (lambda delivery: _add(context, delivery, memories)) if memories else None


def _add(context: Context, delivery: CallDelivery, memories: list[tuple[str, str]]) -> None:
    """Add the memories that the agent does not know. Raises LockedError, OSError."""
    from ..awareness.activity.session_state import KnownState

    known_keys: set[str] = set()
    if not context.runtime.sub_agent(context.event):
        injected = KnownState(context.cursor_file).of(context.session).memories
        known_keys.update(injected.keys if injected else ())
    known_keys.update(delivery.settled(MEMORY, 0.0))
    if known_keys.issuperset([key for key, _ in memories]):
        return
    room = context.settings.max_characters - len(joined(delivery.text, " "))
    delivery.acquire()
    known_keys.update(
        delivery.settled(MEMORY, 0.0)
    )  # another call may have reported the same meanwhile
    text, keys = composed(
        [(key, line) for key, line in memories if key not in known_keys], min(CHARACTERS, room)
    )
    _tell(delivery, text, keys)


def at_sub_agent(
    context: Context, delivery: CallDelivery, paths: list[str], task: str, most: int
) -> None:
    """Add memories to a sub-agent's first text, at most `most` characters.

    They are about the files that its task names, else about the task's words. Raises as
    `found_in`."""
    home, room = context.home, most - len(joined(delivery.text, " "))
    about = about_calls(home.memories_dir, [(path, "") for path in paths], home.user_dir)
    text, keys = composed(about, room)
    if not keys:
        from .prompt_memories import PromptedSession, relevant

        session = PromptedSession(None, context.directory, home.user_dir)
        memories = relevant(home.memories_dir, task, room, session)
        text, keys = memories.text, list(memories.ids)
    _tell(delivery, text, keys)


def _tell(delivery: CallDelivery, text: str, keys: list[str]) -> None:
    for key in keys:
        delivery.settle(MEMORY + key, time.time(), is_reported=True)
    delivery.text = joined(delivery.text, text)


def key_of(place: str) -> str:
    """Return the key by which the index lists a place."""
    return (
        place
        if place.startswith(COMMAND)
        else f"/{place.rstrip('/').rpartition('/')[2].lstrip(ROOTED)}"
    )


def _git_commands(command: str) -> list[str]:
    """Return the places of the git commands in a shell command: `$git push`."""
    places, before = [], ""
    for word in command.split():
        if before == "git":
            places.append(f"{COMMAND}git {word}")
        before = word
    return places


def _keys(command: str) -> list[str]:
    """Return the keys by which the index lists memories about a command."""
    words = [word for act in acts_in(command) for word in (*act.words, *act.names)]
    keys = [*_git_commands(command), *[CUE + term for word in words for term in terms(word)]]
    return list(dict.fromkeys(keys))


def _has_cue(memory: list[Any], command: str) -> bool:
    """Check if an act of the command has a cue of the memory.

    A name counts if the memory has each of its words: `react-dom` is not `react`."""
    known = {*terms(memory[9])}
    for act in acts_in(command):
        names = [{*terms(name)} for name in act.names]
        act_terms = {AT_CALLS, *[term for word in act.words for term in terms(word)]}
        act_terms.update(*[words for words in names if words <= known])
        if any([act_terms.issuperset(cue) for cue in memory[COLUMNS - 1]]):
            return True
    return False


def about_calls(
    directory: str, calls: Iterable[tuple[str, str]], user_dir: str, own_ids: Collection[str] = ()
) -> list[tuple[str, str]]:
    """Return the memories in `directory` about calls, each with its key and line.

    A call is a file's path with '', or a directory with the command that runs there. Memories about
    a single file come first. Memories from a session known as one of `own_ids` are left out. Raises as
    `found_in`."""

    def find(descriptor: int, head: bytes) -> list[tuple[list[Any], list[tuple[str, str]]]]:
        calls_by_place: dict[int, list[tuple[str, str]]] = {}
        for path, command in calls:
            parts = [f"/{part}" for part in path.split("/") if part]
            for key in _keys(command) if command else parts:
                for at in listed_in(descriptor, head, key)[1:]:
                    calls_by_place.setdefault(at, []).append((path, command))
        return [(value_at(descriptor, at), of) for at, of in calls_by_place.items()]

    named = [(memory, of) for memory, of in found_in(directory, find) if len(memory) == COLUMNS]
    ranked = [
        (_rank(memory, of, user_dir), memory)
        for memory, of in named
        if not {*own_ids}.intersection(memory[10])
    ]
    best = sorted([one for one in ranked if one[0]], key=lambda one: one[0])
    return [(memory[1], memory[9]) for _, memory in best]


def _rank(memory: list[Any], calls: list[tuple[str, str]], user_dir: str) -> int:
    """Return how closely a memory is about the calls.

    It is 1 for a file or command, more for a directory, 0 if it is unrelated."""
    from ..common.system.git import find_worktree, head_of

    projects, branch, places = memory[4], memory[7], memory[8]
    ranks = []
    for path, command in calls:
        at = path if command else path.rpartition("/")[0]
        worktree = find_worktree(at, user_dir)
        project, root = (worktree.common_dir, worktree.root) if worktree else ("", "")
        if not worktree:
            project = root = next(
                (
                    directory_above
                    for directory_above in projects
                    if f"{path}/".startswith(f"{directory_above}/")
                ),
                "",
            )
        if project not in projects or (
            branch and not (worktree and branch == head_of(worktree.git_dir))
        ):
            continue
        inside = path.removeprefix(root)
        named = _git_commands(command)
        for place in places:
            is_named = (
                place in named
                if place.startswith(COMMAND)
                else not command and _is_at(place, inside)
            )
            if is_named:
                ranks.append(2 if place.endswith("/") else 1)
        if command and _has_cue(memory, command):
            ranks.append(2)
    return min(ranks, default=0)


def _is_at(place: str, path: str) -> bool:
    """Check if a place names a file, whose path begins with `/` below its root."""
    if place.startswith(ROOTED):
        place = f"/{place[1:]}"
        return path.startswith(place) if place.endswith("/") else path == place
    return path.endswith(place)
