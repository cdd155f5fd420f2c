"""The process of a hook that saw a session stop or ask: it sends a notice once the session waits.

The same functions as in `agents --watch` decide, so each notice is sent once. The process ends when
the notice was shown, at the latest after `SECONDS` and the time that a notice may take."""

from __future__ import annotations

import os
import time

from ...awareness.events.log import HookLog
from ...sessions.settings.homes import person_home
from ...sessions.settings.program import leave_session
from ..notices import Notices
from ..session_reader import SessionReader

EVENT = "notice"  # in the log
SECONDS = 10.0  # until the runtime has written that its session waits
_FIRST_PAUSE, _LAST_PAUSE = 0.1, 1.0


def main(words: list[str]) -> None:
    """Send a notice if the session whose id is the first argument begins to wait.

    Errors go to the log of the person's home."""
    leave_session()
    log = HookLog(person_home(os.environ))
    try:
        notices = Notices(os.environ, lambda text: log.write(EVENT, text))
        if notices.is_on and not notices.has_bell and not notices.is_claimed():
            _send_once_waiting(words[0], notices)
            notices.finish()
    except Exception as error:  # nobody waits for this process
        log.write_fault(EVENT, error)


def _send_once_waiting(session_id: str, notices: Notices) -> None:
    """Look at a session again and again until it waits, or the time is over."""
    reader = SessionReader(None, os.environ, delivery_seconds=0.0, only=session_id)
    until, pause = time.monotonic() + SECONDS, _FIRST_PAUSE
    while not any(map(notices.send_if_waiting, reader.read(time.time()))):
        if time.monotonic() >= until:
            return
        time.sleep(pause)
        pause = min(2 * pause, _LAST_PAUSE)
