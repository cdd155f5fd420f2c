"""End of a conversation: the features' work when it is compacted or left for good."""

from __future__ import annotations

from ...common.extensions import load_present
from ...common.system.files import os
from ..activity.session_state import forget_memories
from .upkeep_start import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...sessions.runtimes.base import Runtime
    from .context import Context, Event

# Reasons for which a session ends because its program ends, or because another session replaces it.
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


def is_left_or_compacted(event: Event, runtime: Runtime) -> bool:
    """Check if a conversation was left, for now or for good, or if Pi is about to compact it."""
    return event.get("hook_event_name") == "session_before_compact" or event.get("reason") in LEFT


def end_in_background(context: Context) -> None:
    """Do the features' work in a separate process, and end this one at once.

    The runtime can then continue, and does not kill the work."""
    if not detach():
        os._exit(0)
    end(context)


def end(context: Context) -> None:
    """Do the features' work at the end of a conversation, such as its archive.

    For a group, its host does that by its own settings. Raises SessionMemoryError, OSError."""
    if context.home.is_isolated:
        return
    if context.session:
        context.deadline.attempt("memories", forget_memories, context.cursor_file, context.session)
    context.runtime.refresh(context.config_dir)  # at once: Gemini's next start may delete a chat
    for act in load_present([place for _, place in context.features("end")]):
        act(context)
