"""A prompt: what the other sessions did since the last one, and the memories that it is about."""

from __future__ import annotations

import time

from ..activity.changes import OwnSession
from ..activity.delivery import begin_here, open_update
from ..settings.compiled import OFF, PROMPT_CHARACTERS
from ..settings.homes import PROMPT_INDEX, environment
from ..system.files import is_file
from ..transcripts.entries import INTRODUCTION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..activity.delivery import Delivery
    from ..activity.prompt_memories import PromptMemories
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
        told = joined(notice, update.text)
        memories = memories_for(context, told, update.notes)
        text = joined(told, memories.text if memories else "")
        if text and update.is_first_to_answer(_key(context)):
            update.commit_first()
            print_answer(context.runtime.HOOKS.context_output(text))
            count_as_told(memories, update.notes)
    write_notes(context, update.notes)


def joined(*parts: str | None) -> str:
    """What a prompt is told, as paragraphs, '' for nothing."""
    return "\n\n".join([part for part in parts if part])


def update_for(context: Context, environ: Mapping[str, str]) -> Delivery:
    """What the session was not told yet, to be told in a `with` block. `environ` is the environment that the runtime
    gave to the hook, empty for a callback. Raises SessionMemoryError, OSError."""
    settings, others = context.settings, context.other_sessions()
    return open_update(
        own_session(context, environ),
        others,
        settings=settings,
        now=time.time(),
        limit=settings.max_characters,
        introduction=INTRODUCTION,
    )


def memories_for(context: Context, told: str, notes: list[str]) -> PromptMemories | None:
    """The memories that the prompt is about, in what is left of `max_characters` beside what is `told` of the other
    sessions; None where there are none, or the settings do not want them. What went wrong is added to `notes`."""
    home, settings = context.home, context.settings
    wanted = settings.memories.get("prompt_characters", PROMPT_CHARACTERS)
    if not wanted or not is_file(f"{home.memories_dir}/{PROMPT_INDEX}"):
        return None
    from ..activity.prompt_memories import PromptedSession, relevant

    room = settings.max_characters - (len(told) + len("\n\n") if told else 0)
    session = PromptedSession(context.cursor_file, context.directory, home.user_dir)
    try:
        return relevant(home.memories_dir, str(context.event.get("prompt", "")), min(wanted, room), session)
    except (OSError, ValueError) as error:
        notes.append(f"memories: {error}")
        return None


def count_as_told(memories: PromptMemories | None, notes: list[str]) -> None:
    """Has the session not be told these memories again, until it is compacted. What went wrong is added to `notes`."""
    try:
        if memories:
            memories.commit()
    except OSError as error:
        notes.append(f"memories: {error}")


def own_session(context: Context, environ: Mapping[str, str]) -> OwnSession:
    """The session of an event, with what is asked of it to tell it something: its sub-agents too, once the other
    sessions were asked for. Raises EventError."""
    event, hooks = context.event, context.runtime.HOOKS
    return OwnSession(
        context.session,
        context.runtime,
        context.cursor_file,
        context.own_path,
        context.directory if context.settings.collisions != OFF else "",
        context.home,
        keeps_transcript=hooks.keeps_transcript(event, environ),
        prompt_id=hooks.prompt_id(event),
        process=hooks.process(event, environ),
        known_sub_agents=context.sub_agents.get(context.session_id, ()),
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


def _key(context: Context) -> str:
    """What tells a prompt from every other, '' where nothing does: prompts in the middle of a turn have the turn's
    id."""
    from ..transcripts.cursor import id_checksum

    prompt_id = context.runtime.HOOKS.prompt_id(context.event)
    return prompt_id and f"{prompt_id} {id_checksum(str(context.event.get('prompt', '')))}"


def _notice_at_first(context: Context) -> str:
    """What is wrong in the settings, with the first prompt of a session whose runtime has no event for its start."""
    if is_file(context.cursor_file + ".lock"):  # made with the first prompt
        return ""
    from ..settings.notices import untold

    return untold(context.home)
