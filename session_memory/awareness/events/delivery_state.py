"""State of deliveries: a session's last update, whether it arrived, and the next one.

Reading this moves no cursor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...common.system.files import status_at
from ...sessions.settings.homes import Home
from ...sessions.settings.host_layout import Group, held_home
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.entries import INTRODUCTION
from ...sessions.transcripts.gate import describe
from ...sessions.transcripts.sessions import FoundSession
from ..activity.changes import Observation
from ..activity.delivery import Delivered, delivered
from ..activity.session_state import KnownState
from ..activity.updates import waiting_text
from .context import Context
from .prompt import observation


class DeliveryState(NamedTuple):
    """The update that was `delivered` last (None if unknown), and the `waiting` text, or ''.

    `is_withheld` means that the delivered text may contain something that is hidden by now.
    Sessions with the keys `left_out` were last active so long ago that they count as reported."""

    delivered: Delivered | None
    waiting: str
    is_withheld: bool = False
    left_out: tuple[str, ...] = ()


def delivery_state(session: FoundSession, environ: Mapping[str, str]) -> DeliveryState:
    """Return the state of `session`. Raises ConfigError, OSError."""
    return _state_of(_context_of(session, environ))


def text_at(session: FoundSession, now: float, environ: Mapping[str, str]) -> str:
    """Return the text that a prompt of `session` would have got at a time, or ''.

    The time is in seconds since 1970. The prompt counts as the first one since the hooks were
    installed. Only sessions that wrote nothing after the time count. Raises ConfigError, OSError.
    """
    context = _context_of(session, environ)
    context.lists_all = True
    observed = observation(context)
    observed.own.cursor_file += ".none"
    observed.statuses = [pair for pair in observed.statuses if pair[1].st_mtime <= now]
    observed.sessions = [session for session, _ in observed.statuses]
    return _waiting(observed, now)


def _context_of(session: FoundSession, environ: Mapping[str, str]) -> Context:
    runtime, path = session.runtime, session.session.path
    return Context(
        {"session_id": session.id, "transcript_path": path},
        session.home,
        session.session.key,
        path,
        runtime,
        session_id=session.id,
        config_dir=runtime.config_dir(environ) if session.home.sessions_dir else session.home.root,
        directory=describe(runtime, path).start,
    )


def state_in_group(group: Group, session_id: str) -> DeliveryState | None:
    """Return the state of a session of a host's group.

    Return None if it has no name there and so gets no updates. Raises ConfigError,
    OutsideGroupError, OSError."""
    if not os.path.isdir(group.memory_home.sessions_dir):
        return None
    file = os.path.basename(group.transcript(session_id))
    with held_home(group) as home:
        named = group.runtime.named_sessions(home.sessions_dir, group.config_dir, group.root)
        name = next(
            (
                session_of_group.name
                for session_of_group in named
                if os.path.basename(session_of_group.path) == file
            ),
            "",
        )
        path = f"{home.project_dir}/{file}"
        event: dict[str, object] = {"session_id": session_id, "transcript_path": path}
        context = Context(event, home, name, path, group.runtime, session_id=session_id)
        return _state_of(context) if name else None


def _state_of(context: Context) -> DeliveryState:
    observed = observation(context)
    session = observed.own
    state = KnownState(session.cursor_file).of(session.key)
    last = delivered(state, session)
    starts = {context.directory, *[cursor.start or "" for _, cursor in state.cursors.items()]}
    is_withheld = last is not None and hidden_at(context.home, starts) > last.at
    if last is not None and is_withheld:
        last.text = None
    waiting = _waiting(observed, time.time())
    reported = state.as_reported().own
    return DeliveryState(last, waiting, is_withheld, tuple(reported.left_out if reported else ()))


def _waiting(observed: Observation, now: float) -> str:
    limit = observed.settings.max_characters
    return waiting_text(observed, now=now, limit=limit, introduction=INTRODUCTION)


def hidden_at(home: Home, starts: Iterable[str]) -> float:
    """Return when the rules for these start directories last changed; 0.0 if they hide nothing.

    Forgetting a session counts as a change. A text from an earlier time passed the gate under other
    rules."""
    privacy = Privacy(os.environ, home)
    return max(
        [
            max(status.st_mtime, status.st_ctime)
            for start in starts
            if not privacy.is_open(start)
            for path in privacy.files(start)
            if (status := status_at(path))
        ],
        default=0.0,
    )
