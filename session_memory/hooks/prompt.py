"""A prompt: what the other sessions did since the last one, and the memories that it is about."""

from __future__ import annotations

import time

from ..activity.changes import OwnSession
from ..activity.delivery import begin_here, open_update
from ..settings.compiled import OFF
from ..settings.homes import environment
from ..system.files import is_file
from ..transcripts.entries import INTRODUCTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..activity.delivery import Delivery
    from ..runtimes import Runtime
    from .context import Context, Event


def is_typed(event: Event, runtime: Runtime) -> bool:
    """Whether a person typed the prompt, which alone is answered."""
    return runtime.HOOKS.is_from_a_person(str(event.get("prompt", "")))


def answer(context: Context, print_answer: Callable[[dict[str, Any]], None]) -> None:
    """Prints what the session is to be told, if anything, and then moves its cursors. Raises SessionMemoryError,
    OSError: then no cursor moved."""
    notice = "" if context.runtime.HOOKS.START_EVENT else _notice_at_first(context)
    with update_for(context, environment()) as update:
        memories, problem = _memories(context)
        text = "\n\n".join([part for part in (notice, update.text, memories) if part])
        if text and update.is_first_to_answer(_key(context.event)):
            update.commit_first()
            print_answer(context.runtime.HOOKS.context_output(text))
    write_notes(context, [*update.notes, *([problem] if problem else [])])


def update_for(context: Context, environ: Mapping[str, str]) -> Delivery:
    """What the session was not told yet, to be told in a `with` block. `environ` is the environment that the runtime
    gave to the hook, empty for a callback. Raises SessionMemoryError, OSError."""
    settings = context.settings
    return open_update(
        own_session(context, environ),
        context.other_sessions(),
        settings=settings,
        now=time.time(),
        limit=settings.max_characters,
        introduction=INTRODUCTION,
    )


def own_session(context: Context, environ: Mapping[str, str]) -> OwnSession:
    """The session of an event, with what is asked of it to tell it something. Raises EventError."""
    event, hooks = context.event, context.runtime.HOOKS
    return OwnSession(
        context.session,
        context.runtime,
        context.cursor_file,
        context.own_path,
        context.directory if context.settings.collisions != OFF else "",
        context.home,
        keeps_transcript=hooks.keeps_transcript(event, environ),
        prompt_id=str(event.get("prompt_id", "")),
        process=hooks.process(event, environ),
    )


def start_listening(context: Context) -> None:
    """Counts what the other sessions did until now as told, unless the session was told something before. Raises
    SessionMemoryError, OSError."""
    own = OwnSession(context.session, context.runtime, context.cursor_file)
    begin_here(own, context.other_sessions(), settings=context.settings, now=time.time())


def write_notes(context: Context, notes: list[str], event_name: str = "") -> None:
    """Logs what an event, by default a prompt, met that could not be read."""
    if notes:
        from .log import HookLog

        log = HookLog(context.home)
        for note in notes:
            log.write(event_name or context.runtime.HOOKS.PROMPT_EVENT, note)


def _key(event: Event) -> str:
    """What tells a prompt from every other, '' where nothing does: prompts in the middle of a turn have the turn's
    id."""
    from ..transcripts.cursor import id_checksum

    prompt_id = str(event.get("prompt_id", ""))
    return prompt_id and f"{prompt_id} {id_checksum(str(event.get('prompt', '')))}"


def _notice_at_first(context: Context) -> str:
    """What is wrong in the settings, with the first prompt of a session whose runtime has no event for its start."""
    if is_file(context.cursor_file + ".lock"):  # made with the first prompt
        return ""
    from ..settings.notices import untold

    return untold(context.home)


def _memories(context: Context) -> tuple[str, str]:
    """The memories that the prompt is about, if the settings want them told, and what went wrong with them."""
    characters = context.settings.memories.get("prompt_characters", 0)
    if not characters:
        return "", ""
    from ..activity.prompt_memories import relevant

    try:
        return relevant(context.home.memories_dir, str(context.event.get("prompt", "")), characters), ""
    except (OSError, ValueError) as error:
        return "", f"memories: {error}"
