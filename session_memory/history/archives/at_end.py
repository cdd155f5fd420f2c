"""Archives a conversation at its end: before it is compacted, or when it is left for good."""

from __future__ import annotations

import time

from ...common.system.files import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...awareness.events.context import Context

QUIET_SECONDS = 0.5
MOST_WAIT_SECONDS = 10.0
POLL_SECONDS = 0.05


def archive(context: Context) -> None:
    """Archive the conversation once its transcript is complete.

    Raises SessionMemoryError, OSError."""
    from ...sessions.settings.homes import environment
    from ...sessions.settings.privacy import Privacy
    from .list import settle
    from .writer import ArchiveSource, archive_transcript

    wait_until_quiet(context.own_path)
    context.runtime.refresh(context.config_dir, everything=True)
    privacy = Privacy(environment(), context.home)
    settle(context.home.conversations_dir, privacy)
    name = context.session if context.home.sessions_dir else ""
    archive_transcript(
        ArchiveSource(context.session_id, context.own_path, context.runtime, name=name),
        context.home.conversations_dir,
        context.settings,
        time.time(),
        privacy=privacy,
    )


def wait_until_quiet(path: str) -> None:
    """Wait until nothing was written for QUIET_SECONDS.

    The transcript lags behind the events, so it may lack the last answer when the session ends or
    is compacted."""
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
