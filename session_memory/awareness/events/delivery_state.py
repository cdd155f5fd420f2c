"""State of deliveries: the last update of a session, if it arrived, and the next one. Reading it
moves no cursor."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ...common.system.files import is_file, names_in, read_whole, status_at
from ...common.text.paths import relative
from ...common.text.sanitize import for_people
from ...common.text.timestamps import age
from ...sessions.settings.homes import Home
from ...sessions.settings.host_layout import Group, held_home
from ...sessions.settings.privacy import Privacy
from ...sessions.transcripts.entries import INTRODUCTION
from ...sessions.transcripts.gate import describe
from ...sessions.transcripts.sessions import FoundSession, UnknownSessionError, find_sessions
from ..activity.changes import Observation
from ..activity.collisions._coin import RELEASED, TOLD
from ..activity.collisions._working_set import CollisionState
from ..activity.delivery import Delivered, delivered
from ..activity.session_state import KnownState
from ..activity.updates import waiting_text
from .context import Context
from .prompt import observation

_MARK = b'\\"draws\\":'  # in a state within a state


class DeliveryState(NamedTuple):
    """The update that was `delivered` last, None if unknown; and the text that is `waiting`, '' for
    none. `is_withheld` says that the delivered text may contain something hidden by now. The
    sessions with the keys `left_out` were last active so long ago that they count as told."""

    delivered: Delivered | None
    waiting: str
    is_withheld: bool = False
    left_out: tuple[str, ...] = ()


class Drawn(NamedTuple):
    """A line that the coin decided on, in the session with the key `own`, about an edit of the file
    at `path` by `other`: when, in seconds since the epoch; if it was held back, and if it was told
    since."""

    own: FoundSession
    other: FoundSession
    path: str
    at: float
    is_held: bool
    is_released: bool

    @property
    def words(self) -> str:
        """Return what was held back, for people."""
        rest = "told with the prompt after" if self.is_released else "not told yet"
        name = relative(self.path, self.own.start)
        return for_people(
            f"{name}, edited by {self.other.name}: held back {age(time.time() - self.at)}, {rest}"
        )


def drawn_for(one: FoundSession, found: Iterable[FoundSession]) -> list[Drawn]:
    """Return what the coin decided for the session `one`, as far as the sessions that may be shown,
    `found`, did it. Raises OSError."""
    key = one.session.key
    state = KnownState(one.home.cursor_file(key)).of(key).as_reported()
    shown = {other.session.key: other for other in found}
    return [
        Drawn(
            one,
            shown[draw.session],
            draw.path,
            draw.at,
            draw.outcome != TOLD,
            draw.outcome == RELEASED,
        )
        for draw in CollisionState.load(state.collisions or "", 0.0).draws
        if draw.session in shown and not _is_forgotten(shown[draw.session], draw.at)
    ]


def every_draw(home: Home, path: str | None, environ: Mapping[str, str]) -> list[Drawn]:
    """Return what the coin decided in all sessions that may be shown, of the home `path` as
    commands take it. Without a draw in the state of `home`, no transcript is read. Raises
    OSError."""
    folder = f"{home.state_dir}/cursors"
    files = [f"{folder}/{name}" for name in names_in(folder) if name.endswith(".json")]
    if not any(_MARK in read_whole(file) for file in files if is_file(file)):
        return []
    try:
        found = find_sessions(path, True, environ)
    except UnknownSessionError:
        return []
    return [drawn for one in found for drawn in drawn_for(one, found)]


def _is_forgotten(one: FoundSession, at: float) -> bool:
    return one.gate is not None and one.gate.until is not None and at * 1000 <= one.gate.until


def delivery_state(one: FoundSession, environ: Mapping[str, str]) -> DeliveryState:
    """Return the state of the session `one`. Raises ConfigError, OSError."""
    return _state_of(_context_of(one, environ))


def text_at(one: FoundSession, now: float, environ: Mapping[str, str]) -> str:
    """Return what a prompt of the session `one` would have been told at a time, in seconds since
    the epoch, if it was the first since the hooks were there; '' for nothing. Only sessions count
    that wrote nothing after it. Raises ConfigError, OSError."""
    observed = observation(_context_of(one, environ), {})
    observed.own.cursor_file += ".none"
    observed.statuses = [pair for pair in observed.statuses if pair[1].st_mtime <= now]
    observed.sessions = [session for session, _ in observed.statuses]
    return _waiting(observed, now)


def _context_of(one: FoundSession, environ: Mapping[str, str]) -> Context:
    runtime, path = one.runtime, one.session.path
    return Context(
        {"session_id": one.id, "transcript_path": path},
        one.home,
        one.session.key,
        path,
        runtime,
        session_id=one.id,
        config_dir=runtime.config_dir(environ) if one.home.sessions_dir else one.home.root,
        directory=describe(runtime, path).start,
    )


def state_in_group(group: Group, session_id: str) -> DeliveryState | None:
    """Return the state of a session of a host's group; None if it has no name there, so that it
    gets no updates. Raises ConfigError, OutsideGroupError, OSError."""
    if not os.path.isdir(group.memory_home.sessions_dir):
        return None
    file = os.path.basename(group.transcript(session_id))
    with held_home(group) as home:
        named = group.runtime.named_sessions(home.sessions_dir, group.config_dir, group.root)
        name = next((one.name for one in named if os.path.basename(one.path) == file), "")
        path = f"{home.project_dir}/{file}"
        event: dict[str, object] = {"session_id": session_id, "transcript_path": path}
        context = Context(event, home, name, path, group.runtime, session_id=session_id)
        return _state_of(context) if name else None


def _state_of(context: Context) -> DeliveryState:
    observed = observation(context, {})
    own = observed.own
    state = KnownState(own.cursor_file).of(own.key)
    last = delivered(state, own)
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
    """Return when rules, or what was forgotten, changed last for sessions that were started in the
    directories `starts` if anything is hidden now; 0.0 if nothing is. The gate judged an earlier
    text by the rules of then."""
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
