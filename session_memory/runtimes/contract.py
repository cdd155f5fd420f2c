"""What `records` of a runtime offers. Only a type checker reads this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..transcripts.edits import Edit
from ..transcripts.entries import Entry, Reply
from ..transcripts.usage import ModelUsage

Title = tuple[int, str] | tuple[int, str, str, bytes]
ToolResult = tuple[str, bool, object]  # the id of the call, whether it went wrong, a string or blocks with text


class Branch(Protocol):
    """What of a transcript counts, where not every record does or tells all of itself: as of a tree of records, whose
    live branch is found by reading it from its end."""

    is_of_subagent: bool
    """Whether none of it counts, since it is a sub-agent's."""

    of_session: str
    """The id of the session that the sub-agent belongs to, where nothing but this tells it; else ''."""

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says counts. To be asked of every line, from the last to the first."""

    def note(self, record: dict[str, Any]) -> None:
        """Takes from a record that is no entry what it says of those behind it. To be given all of them, in order."""

    def complete(self, entry: Entry) -> None:
        """Adds to an entry what the transcript says once for many of them. Read backward, that may follow later."""


class RuntimeRecords(Protocol):
    """What the lines of a transcript mean."""

    def may_matter(self, line: bytes, with_tools: bool = ...) -> bool:
        """False only for a line that surely holds no entry, title or compaction: it need not be decoded.

        Without tools (they count if nothing is said) entries that have no text do not count either."""

    def branch(self, first_line: bytes) -> Branch | None:
        """The live branch of the transcript that begins with this line; None where every record counts as it is."""

    def entry(self, record: dict[str, Any], offset: int) -> Entry | None:
        """The entry that a record at byte `offset` holds, if it is a user's or the assistant's."""

    @property
    def TITLE_MARKS(self) -> tuple[bytes, ...]:
        """Bytes of which each line with a title has one, and few others do; none if no line ever has a title."""

    def title(self, record: dict[str, Any]) -> Title | None:
        """Return the title that the record is, with its rank: the user's own ranks highest. Behind them may stand whose
        it is: the id of the session, and bytes that have to be in its transcript, each empty if the record does not
        say."""

    def is_compaction(self, record: dict[str, Any]) -> bool:
        """Whether the record marks where the runtime compacted the conversation."""

    def may_bring_results(self, line: bytes) -> bool:
        """False only for a line that surely brings no result of a tool call."""

    def results_in(self, line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> list[ToolResult] | None:
        """The results of tool calls in a line that is recognised as holding nothing else; None for any other line.

        `decode` gives the values in some JSON, and how many of them could not be read: no more than is needed is
        decoded."""

    def results(self, record: dict[str, Any]) -> list[ToolResult]:
        """The results of tool calls that the record brings."""

    def may_show_told(self, line: bytes) -> bool:
        """False only for a line that surely says nothing of what a hook told."""

    def told(self, record: dict[str, Any]) -> tuple[str, ...] | None:
        """The texts that hooks gave to the agent, where the record shows them; none of them where it shows that a hook
        failed which a prompt had started; None for any other record."""

    def may_link(self, line: bytes) -> bool:
        """False only for a line that surely holds no record of a conversation."""

    def link(self, record: dict[str, Any]) -> tuple[str, str, bool] | None:
        """The id of a record of the conversation, that of the record which it goes on from ('' for none), and whether
        it is a message, of the user's side or the model's, whatever that holds; None for any other record."""

    def time(self, record: dict[str, Any]) -> float | None:
        """When the record was written, in seconds since the epoch; None where it does not say."""

    def written(self, record: dict[str, Any], call_id: str) -> str | None:
        """What a call in the record wrote as the whole of a file; None for any other call."""

    def edits(self, record: dict[str, Any], call_id: str) -> list[Edit]:
        """What a call in the record took out of a file and put in, as pairs of texts; [] for any other call."""

    def of_sub_agent(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of a sub-agent's as one of a session's, which counts. Where both stand in one transcript, an empty
        one for what the session's own agent said and did."""

    def prompt_id(self, record: dict[str, Any]) -> str:
        """The id that whoever sent a prompt gave it, where the record is one; else ''."""

    def reply(self, record: dict[str, Any]) -> Reply | None:
        """What the record holds of a message of the model; None for any other record."""

    def may_bring_usage(self, line: bytes) -> bool:
        """False only for a line that surely says nothing of what an answer took."""

    def usage(self, record: dict[str, Any]) -> ModelUsage | None:
        """What an answer of a model took, where the record says it; None for any other record."""

    def recognises(self, line: bytes) -> bool:
        """Whether a line (perhaps cut off) at the beginning of a transcript shows that it is this runtime's."""
