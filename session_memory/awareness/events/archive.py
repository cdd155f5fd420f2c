"""Archive of a conversation at its end: it is compacted or left for good."""

from __future__ import annotations

import time

from ...common.system.files import os
from ...history.archives.list import settle
from ...history.archives.writer import ArchiveSource, archive_session
from ...sessions.settings.homes import environment, host_of
from ...sessions.settings.privacy import Privacy
from ..activity.session_state import forget_memories
from .upkeep_start import detach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...sessions.runtimes import Runtime
    from .context import Context, Event

QUIET_SECONDS = 0.5
MOST_WAIT_SECONDS = 10.0
POLL_SECONDS = 0.05
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


def archive_in_background(context: Context) -> None:
    """Archive in a process of its own, so that the runtime can go on and does not kill it: this one
    ends at once."""
    if not detach():
        os._exit(0)
    archive_when_written(context)


def archive_when_written(context: Context) -> None:
    """Archive the conversation once its transcript is complete. The host of a group does that
    itself, by its own settings. Raises SessionMemoryError, OSError."""
    if host_of(context.home.root) not in ("", context.home.root):
        return
    if context.session:
        context.deadline.attempt("memories", forget_memories, context.cursor_file, context.session)
    runtime = context.runtime
    runtime.refresh(context.config_dir)  # at once: Gemini's next start may delete a chat
    wait_until_quiet(context.own_path)
    runtime.refresh(context.config_dir, everything=True)
    privacy = Privacy(environment(), context.home)
    settle(context.home.conversations_dir, privacy)
    name = context.session if context.home.sessions_dir else ""
    archive_session(
        ArchiveSource(context.session_id, context.own_path, context.runtime, name=name),
        context.home.conversations_dir,
        context.settings,
        time.time(),
        privacy=privacy,
    )


def wait_until_quiet(path: str) -> None:
    """Wait until nothing was written for QUIET_SECONDS: the transcript lags behind the events, and
    the last answer may not be in it yet when the session ends or is compacted."""
    deadline = time.monotonic() + MOST_WAIT_SECONDS
    size, since = -1, time.monotonic()
    while time.monotonic() < min(deadline, since + QUIET_SECONDS):
        try:
            now = os.stat(path).st_size
        except FileNotFoundError:
            now = -1
        if now != size:
            size, since = now, time.monotonic()
        time.sleep(POLL_SECONDS)
