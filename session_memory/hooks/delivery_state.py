"""What a session was told last, whether it got it, and what waits for its next prompt: asking moves no cursor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ..activity.acknowledgement import Delivered, delivered
from ..activity.cursor_file import KnownCursors
from ..activity.delivery import waiting_text
from ..transcripts.entries import INTRODUCTION
from ..transcripts.sessions import describe
from .context import Context
from .prompt import own_session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..transcripts.sessions import FoundSession


class DeliveryState(NamedTuple):
    """What was `delivered` last, None where nothing was or nothing is known of it; and the very text that is `waiting`,
    '' for none."""

    delivered: Delivered | None
    waiting: str


def delivery_state(one: FoundSession, environ: Mapping[str, str]) -> DeliveryState:
    """The state of the session `one`. Raises ConfigError, OSError."""
    runtime, path = one.runtime, one.session.path
    context = Context(
        {"session_id": one.id, "transcript_path": path},
        one.home,
        one.session.key,
        path,
        runtime,
        session_id=one.id,
        config_dir=runtime.FILES.config_dir(environ) if one.home.sessions_dir else one.home.root,
        directory=describe(runtime, path).start,
    )
    own, settings = own_session(context, {}), context.settings
    told = delivered(KnownCursors(own.cursor_file).cursors.get(own.key, {}), own)
    waiting = waiting_text(
        own,
        context.other_sessions(),
        settings=settings,
        now=time.time(),
        limit=settings.max_characters,
        introduction=INTRODUCTION,
    )
    return DeliveryState(told, waiting)
