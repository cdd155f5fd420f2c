"""The runtimes by their transcript format: the rows of `extension_points.RUNTIMES`."""

from __future__ import annotations

from ...common.system.files import is_directory, user_dir
from .base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def _rows() -> dict[str, tuple[str, str, str]]:
    from ...extension_points import RUNTIMES

    return RUNTIMES


_PACKAGE = __name__.partition(".")[0]
PREBUILT = _rows()  # so a bundle has the rows without the module


def runtime(format: str) -> Runtime:
    """Return the runtime of a transcript format.

    Formats: `agent-sdk` (Claude Code and claude-agent-sdk), `pi`, `codex`, `qwen`, `copilot`,
    `opencode`, `gemini`, `atif`. Raises ValueError."""
    try:
        place = PREBUILT[format][0]
    except KeyError:
        raise ValueError(
            f"unknown transcript format {format!r}: choose one of {', '.join(PREBUILT)}"
        ) from None
    module, _, attribute = place.partition(":")
    # as common.extensions.load does, but without one more module for a prompt
    instance: Runtime = getattr(__import__(f"{_PACKAGE}.{module}", fromlist=[attribute]), attribute)
    return instance


def all_runtimes() -> list[Runtime]:
    """Return all runtimes, in the order of the table."""
    return [runtime(format) for format in PREBUILT]


def runtimes_here(environ: Mapping[str, str]) -> list[Runtime]:
    """Return the runtimes that the user with this environment may have used; load no others."""
    home = user_dir(environ)
    return [
        runtime(format)
        for format, (_, directory, variable) in PREBUILT.items()
        if variable in environ or is_directory(f"{home}/{directory}")
    ]


def sender_of(
    event: Mapping[str, Any], environ: Mapping[str, str], expected: Runtime
) -> Runtime | None:
    """Return the runtime that sent an event to a hook of the runtime `expected`.

    It is `expected` itself, or another runtime that takes its plugins or runs the hooks in its
    settings. Return None if no known runtime sent it, or if the event must not be answered."""
    # Cursor: too little is known about it to answer
    if "cursor_version" in event or "conversation_id" in event:
        return None
    if expected.is_own(event, environ):
        return expected
    return next((other for other in all_runtimes() if other.is_own(event, environ)), None)
