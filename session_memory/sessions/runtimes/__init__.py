"""The runtimes whose sessions are remembered: one line in the table, and one folder with the class
(see base.py)."""

from __future__ import annotations

from ...common.system.files import is_directory, user_dir
from ._base import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Runtime", "all_runtimes", "runtime", "runtimes_here", "sender_of"]

# By transcript format: the folder, and what shows without loading it that the runtime may have been
# used, a directory in a user's home or a variable.
_TABLE = {
    "agent-sdk": ("claude", ".claude", "CLAUDE_CONFIG_DIR"),
    "pi": ("pi", ".pi", "PI_CODING_AGENT_DIR"),
    "codex": ("codex", ".codex", "CODEX_HOME"),
    "qwen": ("qwen", ".qwen", "QWEN_RUNTIME_DIR"),
    "copilot": ("copilot", ".copilot", "COPILOT_HOME"),
    "opencode": ("opencode", ".local/share/opencode", "XDG_DATA_HOME"),
    "gemini": ("gemini", ".gemini", "GEMINI_CLI_HOME"),
    "atif": ("atif", ".atif", "ATIF_DIR"),
}


def runtime(format: str) -> Runtime:
    """Return the runtime of a transcript format: `agent-sdk` (Claude Code and claude-agent-sdk),
    `pi`, `codex`, `qwen`, `copilot`, `opencode`, `gemini`, `atif`. Raises ValueError."""
    try:
        folder = _TABLE[format][0]
    except KeyError:
        raise ValueError(
            f"unknown transcript format {format!r}: it is one of {', '.join(_TABLE)}"
        ) from None
    found: Runtime = __import__(f"{__name__}.{folder}", fromlist=["RUNTIME"]).RUNTIME
    return found


def all_runtimes() -> list[Runtime]:
    return [runtime(format) for format in _TABLE]


def runtimes_here(environ: Mapping[str, str]) -> list[Runtime]:
    """Return the runtimes that may have been used by the user with this environment; no other is
    loaded."""
    home = user_dir(environ)
    return [
        runtime(format)
        for format, (_, directory, variable) in _TABLE.items()
        if variable in environ or is_directory(f"{home}/{directory}")
    ]


def sender_of(
    event: Mapping[str, Any], environ: Mapping[str, str], expected: Runtime
) -> Runtime | None:
    """Return the runtime that sent an event to a hook of the runtime `expected`: this one, or
    another that takes its plugins or runs the hooks in its settings. None if none is known to have,
    or the event is not to be answered."""
    # Cursor, of which too little is known to answer it
    if "cursor_version" in event or "conversation_id" in event:
        return None
    if expected.is_own(event, environ):
        return expected
    return next((other for other in all_runtimes() if other.is_own(event, environ)), None)
