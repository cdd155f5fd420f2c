"""Prompt: the other sessions' activity since the last one, and additions by features."""

from __future__ import annotations

import time

from ...common.system.files import is_file
from ...sessions.settings.compiled import OFF
from ...sessions.transcripts.entries import INTRODUCTION
from ..activity.changes import Observation, OwnSession, is_standstill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...sessions.runtimes.base import Runtime
    from ..activity.delivery import Delivery
    from ..activity.status_line import Edit
    from .context import Context, Event


def is_typed(event: Event, runtime: Runtime) -> bool:
    """Check that a person typed the prompt; other prompts are not answered."""
    return runtime.is_from_a_person(runtime.prompt(event))


def answer(
    context: Context,
    print_answer: Callable[[dict[str, object]], None],
    event: str = "",
    notice: str = "",
) -> None:
    """Print an update, if there is news, then move the cursors.

    The `event` is a prompt by default; a `notice` comes before the update. Raises
    SessionMemoryError, OSError; in that case no cursor has moved."""
    if not context.runtime.START_EVENT:
        notice = _notice_at_first(context)
    observed = observation(context)
    is_quiet = not notice and not context.features("prompt")
    if is_quiet and not observed.own.may_name_file() and is_standstill(observed):
        note_status(context, observed, None, is_new=False)
        return
    with open_delivery(context, observed) as delivery:
        added, keys = additions(context, delivery, notice)
        text = joined(notice, delivery.text, added)
        if text and delivery.is_first_to_answer(_key(context)):
            delivery.prepare(keys)
            delivery.commit_first()
            print_answer(context.runtime.context_output(text, event))
    note_status(context, observed, delivery.edit)
    if observed.own.may_conflict:
        from .upkeep_start import start_judgement

        start_judgement(context.home, context.settings.upkeep)


def note_status(
    context: Context, observed: Observation, edit: Edit | None, *, is_new: bool = True
) -> None:
    """Store the person's status line, if wanted, with the newest reported `edit`.

    Unless something `is_new`, the stored line stays."""
    if context.settings.statusline:
        from ..activity.status_line import is_noted, note

        if is_new or not is_noted(observed.own.cursor_file):
            context.deadline.attempt("status line", note, observed, edit)


def joined(*parts: str | None) -> str:
    """Join the parts as paragraphs, '' for nothing."""
    return "\n\n".join([part for part in parts if part])


def observation(context: Context) -> Observation:
    """Return the other sessions as seen by the session of an event. Raises EventError."""
    others = context.other_sessions()  # first: its own sub-agents are known with them
    return Observation(own_session(context), others, context.settings)


def open_delivery(context: Context, observed: Observation) -> Delivery:
    """Return the delivery of the next update, for a `with` block.

    Raises SessionMemoryError, OSError."""
    from ..activity.updates import open_update

    limit = context.settings.max_characters
    return open_update(observed, now=time.time(), limit=limit, introduction=INTRODUCTION)


def additions(context: Context, delivery: Delivery, notice: str = "") -> tuple[str, list[str]]:
    """Return features' additions to a prompt, such as relevant memories, and the keys to store.

    They fit into the characters that the update and a `notice` leave of `max_characters`."""
    text = ""
    keys: list[str] = []
    for feature in context.features("prompt"):
        before = joined(notice, delivery.text, text)
        room = context.settings.max_characters - (len(before) + len("\n\n") if before else 0)
        added = context.ask(feature, delivery.state, room)
        if isinstance(added, tuple):
            text = joined(text, added[0])
            keys += added[1]
    return text, keys


def own_session(context: Context) -> OwnSession:
    """Return the session of an event.

    Its sub-agents are known after the other sessions were listed. Raises EventError."""
    event, runtime, environ = context.event, context.runtime, context.environ
    directory = context.directory if context.settings.collisions != OFF else ""
    file, home = context.cursor_file, context.home
    session = OwnSession(
        context.session, runtime, file, context.own_path, directory, home, context.deadline
    )
    session.start = context.directory
    session.keeps_transcript = runtime.keeps_transcript(event, environ)
    session.prompt, session.prompt_id = runtime.prompt(event), runtime.prompt_id(event)
    session.process = runtime.process(event, environ)
    session.known_sub_agents = context.sub_agents.get(context.session_id, ())
    session.old_sessions = context.old_sessions
    return session


def start_listening(context: Context, original: str = "") -> None:
    """Count the other sessions' activity as reported, unless the session has had an update.

    If it is a fork that has the updates of its `original`, only what that session got counts.
    Raises SessionMemoryError, OSError."""
    from ..activity.session_state import KnownState
    from ..activity.updates import begin_here

    others = context.other_sessions()
    session = OwnSession(
        context.session, context.runtime, context.cursor_file, deadline=context.deadline
    )
    session.old_sessions = context.old_sessions
    state = KnownState(context.home.cursor_file(original)) if original else None
    observed = Observation(session, others, context.settings)
    begin_here(observed, now=time.time(), original=original, state=state)


def write_notes(context: Context, event_name: str) -> None:
    """Log the parts of an event that could not be read or were late."""
    if context.deadline.notes:
        from .log import MOST_LINES, HookLog

        for note in context.deadline.notes[:MOST_LINES]:
            HookLog(context.home).write(event_name, note)


def _key(context: Context) -> str:
    """Return a key of the prompt, '' without an id.

    Prompts in the middle of a turn have the turn's id."""
    from ...sessions.transcripts.lines import id_checksum

    runtime, event = context.runtime, context.event
    prompt_id = runtime.prompt_id(event)
    return prompt_id and f"{prompt_id} {id_checksum(runtime.prompt(event))}"


def _notice_at_first(context: Context) -> str:
    """Return the settings' faults at the first prompt, for a runtime without a start event."""
    if is_file(context.cursor_file + ".lock"):  # made with the first prompt
        return ""
    from .log import notice_of

    return notice_of(context)
