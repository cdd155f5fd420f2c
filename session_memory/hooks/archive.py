"""The hooks around archives: before a compaction and when a conversation is cleared it is kept; then it is pointed to.

PreCompact prints nothing, ever: whatever it says ends up in the summariser's instructions.
"""

from __future__ import annotations

import time

from ..archives import homes as conversations
from ..archives.files import find_archive
from ..system.files import os
from .prompt import Log, Place, place_of, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..runtimes import Runtime
    from .prompt import Event

QUIET_SECONDS = 0.5
MOST_WAIT_SECONDS = 10.0
POLL_SECONDS = 0.05
LEFT_FOR_GOOD = ("clear", "new")  # the reasons for which a session ends that nobody comes back to by itself


def pre_compact() -> None:
    """Claude Code's PreCompact hook as a process: archives the conversation, and only then lets it be compacted."""
    run(_keep, "agent-sdk")


def session_end() -> None:
    """Claude Code's SessionEnd hook as a process. It has 1.5 s, so that the work goes on in a process of its own."""
    run(_keep_what_was_left, "agent-sdk")


def pi_archive() -> None:
    """Pi's `session_before_compact` and `session_shutdown`, whose extension kills what it waits for in vain."""
    run(_keep_from_pi, "pi")


def keep(place: Place) -> str | None:
    """Archives the conversation at `place`; the archive's path, None if there is nothing to keep.

    Raises SessionMemoryError, OSError.
    """
    return conversations.keep(
        place.session_id,
        place.own_path,
        place.runtime,
        place.home.conversations_dir,
        place.home.settings(),
        time.time(),
    )


def context_at_start(source: str, place: Place, cwd: str) -> str | None:
    """What an agent is told when a session starts: after a compaction where all of it lies; else, if the settings ask
    for it, which conversations there were lately."""
    if source == "compact":
        found = find_archive(place.home.conversations_dir, place.session_id)
        return conversations.pointer(found[0]) if found else None
    count = place.home.settings().recent_conversations
    return conversations.recent(place.home.conversations_dir, cwd, count, place.session_id) if count else None


def keep_when_written(place: Place) -> str | None:
    """The same, once all that was said has reached the transcript."""
    wait_until_quiet(place.own_path)
    return keep(place)


def _keep(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> None:
    keep_when_written(place_of(event, environ, runtime, log))


def _keep_what_was_left(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> None:
    if event.get("reason") in LEFT_FOR_GOOD:
        _keep_detached(event, environ, runtime, log)


def _keep_from_pi(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> None:
    if event.get("hook_event_name") == "session_before_compact" or event.get("reason") in LEFT_FOR_GOOD:
        _keep_detached(event, environ, runtime, log)


def _keep_detached(event: Event, environ: Mapping[str, str], runtime: Runtime, log: Log) -> None:
    place = place_of(event, environ, runtime, log)
    if detach():
        keep_when_written(place)


def wait_until_quiet(path: str) -> None:
    """Waits until nothing was written for QUIET_SECONDS: the transcript lags behind the events, and the last answer may
    not be in it yet when the session ends or is compacted."""
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


def detach() -> bool:
    """Lets the runtime go on: True in the process that shall do the work, which nobody waits for or kills."""
    if not hasattr(os, "fork"):  # Windows: the work is done here and now
        return True
    if os.fork():
        return False
    os.setsid()
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):  # whoever reads our output would otherwise wait for its end
        os.dup2(nothing, descriptor)
    return True
