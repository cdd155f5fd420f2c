"""End of a conversation, which is compacted or left for good: the work of features then."""

from __future__ import annotations

from ...common.extensions import load_present
from ...common.system.files import os
from ...sessions.settings.homes import host_of
from ..activity.session_state import forget_memories
from .upkeep_start import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...sessions.runtimes import Runtime
    from .context import Context, Event

# The reasons for which a session ends and its program with it, or another one begins in its place.
LEFT = (
    "clear",
    "new",
    "prompt_input_exit",
    "logout",
    "other",
    "quit",
    "complete",
    "user_exit",
    "exit",
)


def is_left(event: Event, runtime: Runtime) -> bool:
    """Check if the conversation was left, for now or for good."""
    return event.get("reason") in LEFT


def is_left_or_compacted(event: Event, runtime: Runtime) -> bool:
    """Check if it was left, or is about to be compacted by Pi."""
    return event.get("hook_event_name") == "session_before_compact" or is_left(event, runtime)


def end_in_background(context: Context) -> None:
    """Do the work of features, in a process of its own, so that the runtime can go on and does not kill
    it: this one ends at once."""
    if not detach():
        os._exit(0)
    end(context)


def end(context: Context) -> None:
    """Do the work of features at the end of a conversation, such as its archive. The host of a group does
    that itself, by its own settings. Raises SessionMemoryError, OSError."""
    if host_of(context.home.root) not in ("", context.home.root):
        return
    if context.session:
        context.deadline.attempt("memories", forget_memories, context.cursor_file, context.session)
    context.runtime.refresh(context.config_dir)  # at once: Gemini's next start may delete a chat
    for act in load_present([place for _, place in context.features("end")]):
        act(context)
