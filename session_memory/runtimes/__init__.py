"""The runtimes whose transcripts are read: one module each, one line in the table."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from ..transcripts.entries import Entry, Session

    ToolResult = tuple[str, bool, object]  # the id of the call, whether it went wrong, a string or blocks with text

    class Trail(Protocol):
        """The way from a transcript's last line to its first, where some lines lie beside it and no longer count."""

        def holds(self, line: bytes) -> bool:
            """Whether what `line` says counts. To be asked of every line that is read, from the last to the first."""

        def complete(self, entry: Entry) -> None:
            """Adds to an entry what the transcript says once for all of them."""

    class Runtime(Protocol):
        """What a module in this folder offers. Events are what its prompt hook reads from stdin."""

        SESSIONS_FOLDER: str
        """The folder in an agent home's memory directory that names its sessions."""

        NAME: str
        """What archives and the store call the runtime."""

        USUAL_DIR: str
        """The runtime's own directory as it lies in a user's home."""

        PROJECTS_FOLDER: str
        """The folder in it that holds a folder of transcripts for each project."""

        OWN_ID_VARIABLE: str
        """The variable in which an agent's commands find the id of its session."""

        PROMPT_EVENT: str
        """What the event of a prompt is called."""

        LIVE_FOLDER: str
        """The folder in its directory with `<pid>.json` of each open session; '' if there is none."""

        RENAME: str
        """What a user types to name the session."""

        CLEAR: str
        """What a user types to begin a new session."""

        RESUME: str
        """What a user types in a terminal to go on with an earlier session."""

        def is_own(self, event: Mapping[str, Any]) -> bool:
            """Whether an event comes from this runtime, and not from another that takes its plugins."""

        def start_dir(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> str:
            """The directory from which upwards an agent home is looked for."""

        def config_dir(self, event: Mapping[str, Any], environ: Mapping[str, str]) -> str:
            """The runtime's own directory, which is the home where there is no agent home."""

        def own_path(self, event: Mapping[str, Any], start: str, config_dir: str) -> str:
            """Where the transcript of the session at hand, which was started in `start`, lies or will lie."""

        def own_name(self, event: Mapping[str, Any], sessions_dir: str, sessions: Iterable[Session]) -> str:
            """The name of the session at hand in an agent home, whose `sessions` are given; '' if it has none."""

        def others(self, sessions_dir: str, config_dir: str, own_path: str, scope: str) -> list[Session]:
            """The sessions of an agent home, or, where `sessions_dir` is '', those of the project or of `all`.

            The session at hand may be among them."""

        def located(self, sessions_dir: str, config_dir: str, root: str) -> list[Session]:
            """The named sessions of the agent home `root`, wherever their transcripts lie."""

        def of_project(self, config_dir: str, own_id: str, directory: str, scope: str) -> list[Session]:
            """The sessions of the project of the session `own_id`, or of `directory`, or of `all` projects."""

        def session_id_of(self, path: str) -> str:
            """The id of the session whose transcript lies at `path`."""

        def is_from_a_person(self, prompt: str) -> bool:
            """Whether a prompt was typed, and not put in by the runtime."""

        def session_names(self, sessions_dir: str) -> list[str]:
            """The names of the sessions of an agent home, in no particular order."""

        def may_matter(self, line: bytes, with_tools: bool = ...) -> bool:
            """False only for a line that surely holds no entry, title or compaction: it need not be decoded.

            Without tools (they count if nothing is said) entries that have no text do not count either."""

        def trail(self, first_line: bytes) -> Trail | None:
            """The trail of the transcript that begins with this line; None where every record counts and says all."""

        def entry(self, record: dict[str, Any], offset: int) -> Entry | None:
            """The entry that a record of a line at byte `offset` holds, if it is a user's or the assistant's."""

        def title(self, record: dict[str, Any]) -> tuple[int, str] | None:
            """The session's title where the record is one, with its rank: the user's own ranks highest."""

        def is_compaction(self, record: dict[str, Any]) -> bool:
            """Whether the record marks where the runtime compacted the conversation."""

        def may_bring_results(self, line: bytes) -> bool:
            """False only for a line that surely brings no result of a tool call."""

        def results_in(self, line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> list[ToolResult] | None:
            """The results of tool calls that a line brings, where it is recognised as bringing nothing else; else None.

            `decode` gives the values in some JSON, and how many of them could not be read: no more than is needed is
            decoded."""

        def results(self, record: dict[str, Any]) -> list[ToolResult]:
            """The results of tool calls that the record brings."""

        def recognises(self, line: bytes) -> bool:
            """Whether a line (perhaps cut off) at the beginning of a transcript shows that it is this runtime's."""

        def context_output(self, text: str, event: str = ...) -> dict[str, Any]:
            """What a hook prints (or a callback returns) so that the runtime tells the agent `text`.

            `event` is the one that is answered, by default a prompt."""


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


def all_runtimes() -> list[Runtime]:
    """Every runtime of the table."""
    return [runtime(format) for format in _MODULES]
