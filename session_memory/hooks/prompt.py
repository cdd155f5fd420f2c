"""A prompt: what the other sessions did since the last one, and the memories that it is about."""

from __future__ import annotations

import time

from ..activity.changes import Observation, OwnSession
from ..activity.standstill import Standstill
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
    from ..settings.compiled import Settings
    from .context import Context, Event


def is_typed(event: Event, runtime: Runtime) -> bool:
    """Whether a person typed the prompt, which alone is answered."""
    return runtime.is_from_a_person(str(event.get("prompt", "")))


def answer(context: Context, print_answer: Callable[[dict[str, Any]], None]) -> None:
    """Prints what the session is to be told, if anything, and then moves its cursors. Raises SessionMemoryError,
    OSError: then no cursor moved."""
    notice = "" if context.runtime.START_EVENT else _notice_at_first(context)
    own, observed = _observation(context, environment())
    standstill = Standstill(own, observed, context.settings.first_sight_seconds)
    if not notice and not _may_have_memories(context) and standstill.holds():
        return
    with _open_update(context, own, observed) as update:
        told = joined(notice, update.text)
        memories = memories_for(context, told)
        text = joined(told, memories.text if memories else "")
        if text and update.is_first_to_answer(_key(context)):
            update.commit_first()
            print_answer(context.runtime.context_output(text))
            count_as_told(context, memories)
    if update.unmoved is not None:
        standstill.keep(update.unmoved)


def joined(*parts: str | None) -> str:
    """What a prompt is told, as paragraphs, '' for nothing."""
    return "\n\n".join([part for part in parts if part])


def update_for(context: Context, environ: Mapping[str, str]) -> Delivery:
    """What the session was not told yet, to be told in a `with` block. `environ` is the environment that the runtime
    gave to the hook, empty for a callback. Raises SessionMemoryError, OSError."""
    return _open_update(context, *_observation(context, environ))


def memories_for(context: Context, told: str) -> PromptMemories | None:
    """Return the memories that the prompt is about, in what is left of `max_characters` beside what is `told` of the
    other sessions; None where there are none, or the settings do not want them."""
    if not _may_have_memories(context):
        return None
    home, settings = context.home, context.settings
    wanted = _memory_characters(settings)
    from ..activity.prompt_memories import PromptedSession, relevant

    room = settings.max_characters - (len(told) + len("\n\n") if told else 0)
    session = PromptedSession(context.cursor_file, context.directory, home.user_dir)
    prompt = str(context.event.get("prompt", ""))
    return context.deadline.attempt("memories", relevant, home.memories_dir, prompt, min(wanted, room), session)


def count_as_told(context: Context, memories: PromptMemories | None) -> None:
    """Note that these memories are not told again to the session, until it is compacted."""
    if memories:
        context.deadline.attempt("memories", memories.commit)


def own_session(context: Context, environ: Mapping[str, str]) -> OwnSession:
    """The session of an event, with what is asked of it to tell it something: its sub-agents too, once the other
    sessions were asked for. Raises EventError."""
    event, runtime = context.event, context.runtime
    return OwnSession(
        context.session,
        context.runtime,
        context.cursor_file,
        context.own_path,
        context.directory if context.settings.collisions != OFF else "",
        context.home,
        keeps_transcript=runtime.keeps_transcript(event, environ),
        prompt_id=runtime.prompt_id(event),
        process=runtime.process(event, environ),
        known_sub_agents=context.sub_agents.get(context.session_id, ()),
        deadline=context.deadline,
    )


def start_listening(context: Context) -> None:
    """Counts what the other sessions did until now as told, unless the session was told something before. Raises
    SessionMemoryError, OSError."""
    from ..activity.delivery import begin_here

    own = OwnSession(context.session, context.runtime, context.cursor_file, deadline=context.deadline)
    settings = context.settings
    begin_here(own, Observation(own, context.other_sessions(), settings), settings=settings, now=time.time())


def write_notes(context: Context, event_name: str) -> None:
    """Log what an event met that could not be read, or not in time."""
    if context.deadline.notes:
        from .log import HookLog

        HookLog(context.home).write_each(event_name, context.deadline.notes)


def _observation(context: Context, environ: Mapping[str, str]) -> tuple[OwnSession, Observation]:
    others = context.other_sessions()  # first: its own sub-agents are known with them
    own = own_session(context, environ)
    return own, Observation(own, others, context.settings)


def _open_update(context: Context, own: OwnSession, observed: Observation) -> Delivery:
    from ..activity.delivery import open_update

    settings = context.settings
    return open_update(
        own,
        observed,
        settings=settings,
        now=time.time(),
        limit=settings.max_characters,
        introduction=INTRODUCTION,
    )


def _may_have_memories(context: Context) -> bool:
    """Whether there are memories that a prompt may be about, and the settings want them told."""
    return bool(_memory_characters(context.settings)) and is_file(f"{context.home.memories_dir}/{PROMPT_INDEX}")


def _memory_characters(settings: Settings) -> int:
    return int(settings.memories.get("prompt_characters", PROMPT_CHARACTERS))


def _key(context: Context) -> str:
    """What tells a prompt from every other, '' where nothing does: prompts in the middle of a turn have the turn's
    id."""
    from ..transcripts.cursor import id_checksum

    prompt_id = context.runtime.prompt_id(context.event)
    return prompt_id and f"{prompt_id} {id_checksum(str(context.event.get('prompt', '')))}"


def _notice_at_first(context: Context) -> str:
    """What is wrong in the settings, with the first prompt of a session whose runtime has no event for its start."""
    if is_file(context.cursor_file + ".lock"):  # made with the first prompt
        return ""
    from .missed_deadlines import notice_of

    return notice_of(context)
