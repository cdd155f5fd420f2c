"""The runtimes whose transcripts are read: one module each, one line in the table."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from ..entries import Entry

    class Runtime(Protocol):
        """What a module in this folder offers."""

        def session_names(self, sessions_dir: str) -> list[str]:
            """The names of the sessions of an agent home, in no particular order."""

        def may_matter(self, line: bytes) -> bool:
            """False only for a line that surely holds neither an entry nor a title: it need not be decoded."""

        def entry(self, record: dict[str, Any], offset: int) -> Entry | None:
            """The entry that a record of a line at byte `offset` holds, if it is a user's or the assistant's."""

        def title(self, record: dict[str, Any]) -> tuple[int, str] | None:
            """The session's title where the record is one, with its rank: the user's own ranks highest."""

        def context_output(self, text: str) -> dict[str, Any]:
            """What a prompt hook prints (or a callback returns) so that the runtime adds `text` to the prompt."""


_MODULES = {"agent-sdk": "claude", "pi": "pi"}


def runtime(format: str) -> Runtime:
    """The module for a transcript format: `agent-sdk` (Claude Code and claude-agent-sdk) or `pi`."""
    try:
        name = _MODULES[format]
    except KeyError:
        raise ValueError(f"unknown transcript format {format!r}: it is one of {', '.join(_MODULES)}") from None
    module: Any = __import__(f"{__name__}.{name}", fromlist=[name])
    found: Runtime = module
    return found
