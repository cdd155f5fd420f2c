"""Events, into which each record of a transcript is decoded once, and the base class of the
decoders.

A reader says what is `wanted`, as a sum of the constants here: lines that surely hold none of it
are not decoded, and nothing else is looked for in a record."""

from __future__ import annotations

from ...common.system.json import as_list, as_object, as_string, objects_in
from ...common.text.timestamps import epoch_seconds
from ..transcripts.entries import Entry, Value, tool_use, typed_by_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from ..transcripts.edits import Edit, Hunk
    from ..transcripts.entries import ToolUse
    from ..transcripts.usage import ModelUsage

    Record = dict[str, Any]
    Decode = Callable[[bytes], tuple[list[Any], int]]
    Event: TypeAlias = (
        "Entry | Title | Compaction | CallResult | Injected | ParentLink | "
        "PromptId | Reply | ModelUsage"
    )

MESSAGES = 1  # entries with text, titles and compactions
CALLS = 2  # with MESSAGES: also entries without text
RESULTS = 4
INJECTED = 8
LINKS = 16
TURNS = 32  # prompts and replies
USAGE = 64
SUB_AGENTS = 128  # with others: what sub-agents did counts, and nothing else

# how runtimes call the id of a call
_CALL_IDS = ("id", "call_id", "callID", "toolCallId", "tool_call_id")
_GIVEN = ("arguments", "input", "args")  # and its arguments
# The text around a command that the user ran (`!`), as Gemini CLI and Qwen Code show it to the
# model.
_RAN, _PRODUCED = (
    "I ran the following shell command:\n```sh\n",
    "\n```\n\nThis produced the following result:",
)


class Title(Value):
    """A title of the session: the user's own has the highest rank. `session_id` and `within`, bytes
    that have to be in its transcript, say which session's it is, if they are not empty."""

    __slots__ = ("rank", "session_id", "text", "within")

    def __init__(self, rank: int, text: str, session_id: str = "", within: bytes = b"") -> None:
        self.rank = rank
        self.text = text
        self.session_id = session_id
        self.within = within


class Compaction(Value):
    """The runtime compacted the conversation here."""


class CallResult(Value):
    """The result of a tool call: the call's id, if it failed, and a string or blocks with text. It
    has not run if it was refused or interrupted, or could not begin. `time` is when it came, in
    seconds since the epoch. Without one, it came at the time of its record."""

    __slots__ = ("call_id", "content", "has_failed", "has_run", "time")

    def __init__(
        self,
        call_id: str,
        has_failed: bool,
        content: object,
        has_run: bool = True,
        time: float | None = None,
    ) -> None:
        self.time = time
        self.call_id = call_id
        self.has_failed = has_failed
        self.content = content
        self.has_run = has_run


class Injected(Value):
    """The texts that hooks gave to the agent; none if a hook failed that a prompt had started."""

    __slots__ = ("texts",)

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.texts = texts


class ParentLink(Value):
    """A record of the conversation: its id, that of the record which it goes on from ('' for none,
    or if every record goes on from the one before), and whether it is a message of the user or the
    model, whatever that holds."""

    __slots__ = ("id", "is_message", "parent_id")

    def __init__(self, id: str, parent_id: str, is_message: bool) -> None:
        self.id = id
        self.parent_id = parent_id
        self.is_message = is_message


class PromptId(Value):
    """The record is a prompt: the id that its sender gave it."""

    __slots__ = ("id",)

    def __init__(self, id: str) -> None:
        self.id = id


class Reply(Value):
    """One record's part of a message of the model: the message's id, its text as it was written,
    and if the model's turn ends with that message."""

    __slots__ = ("ends_turn", "message_id", "text")

    def __init__(self, message_id: str, text: str, ends_turn: bool) -> None:
        self.message_id = message_id
        self.text = text
        self.ends_turn = ends_turn


class Branch:
    """The records of a transcript that count, if some do not or do not say all of themselves: in a
    tree of records, the live branch, found by reading from the end."""

    # whether lines may stop counting: those of a branch that was left, and what was taken back
    may_leave_out = False
    is_of_subagent = False  # whether none of it counts, since it is a sub-agent's
    # The time before which all of it was copied from the session that it is a fork of, if nothing
    # else tells that
    copied_until: float | None = None
    # whether the ids of answers are those that they had in the other session
    copies_keep_ids = True
    directory = ""  # the one of entries that name none
    # the id of the session that entries which name none are of, if the file says so
    session_id = ""
    forked_from = ""  # the id of the session that the copies are from, if the file says so
    # the id of the session that the sub-agent belongs to, if nothing but this tells it
    of_session = ""

    def holds(self, line: bytes) -> bool:
        """Tell whether `line` counts. To be asked of every line, from the last to the first."""
        return True

    def note(self, record: Record) -> None:
        """Take from a record that is no entry what it says of those behind it. To be given all of
        them, in order."""

    def is_copied(self, time: float | None) -> bool:
        """Tell whether what was written at that time was copied."""
        return self.copied_until is not None and (time or 0.0) < self.copied_until

    def complete(self, entry: Entry) -> None:
        """Add to an entry what the transcript says once for many of them: the directory, if it was
        copied, and the session that it is of. Read backward, that may follow later."""
        entry.cwd = entry.cwd or self.directory
        entry.is_copy = entry.is_copy or self.is_copied(entry.timestamp)
        entry.origin = entry.origin or (self.forked_from if entry.is_copy else self.session_id)


class Records:
    """Decodes the lines of a transcript."""

    # Bytes of which each line with a title has one, and few others do; none if no line ever has a
    # title
    TITLE_MARKS: tuple[bytes, ...] = ()
    CALL_MARK = b""  # bytes that each line with a call has, and few others; none if that is unknown
    # If the line of a call has its result too: the key of that, and the one where the next call
    # begins
    RESULT_KEY = NEXT_KEY = b""
    # How lines begin as the runtime writes them. Any other line, such as one that another program
    # has rewritten, is decoded.
    BEGINNINGS: tuple[bytes, ...] = ()
    THINKING = b'"thinking":'  # what a line has in it that holds what the model thought

    def recognises(self, line: bytes) -> bool:
        """Tell whether a line (perhaps cut off) at the beginning of a transcript shows that it is
        this runtime's."""
        raise NotImplementedError

    def owns(self, record: Record) -> bool:
        """Tell the same of a record in a file that another program has rewritten, with other white
        space or order."""
        raise NotImplementedError

    def open_transcript(self, first_line: bytes) -> Branch | None:
        """Return what counts of the transcript that begins with this line; None if every record
        counts as it is."""
        return None

    def prefilter(self, line: bytes, wanted: int) -> bool:
        """Return False only for a line that surely holds nothing `wanted`: it need not be
        decoded."""
        return not line.startswith(self.BEGINNINGS) or self.may_hold(line, wanted)

    def may_hold(self, line: bytes, wanted: int) -> bool:
        """Return the same for a line that begins as the runtime writes them."""
        return True

    def without_results(self, line: bytes) -> bytes:
        """Return a line without the results of its calls, as far as these are recognised: bytes to
        search, no JSON."""
        if not self.RESULT_KEY or self.RESULT_KEY not in line:
            return line
        first, *others = line.split(self.RESULT_KEY)
        calls = [part.partition(self.NEXT_KEY) for part in others]
        return b"".join([first, *[key + call for _, key, call in calls if key]])

    def results_in(self, line: bytes, decode: Decode) -> list[CallResult] | None:
        """Return the results of tool calls in a line that is recognised as holding nothing else;
        None for any other. `decode` gives the values in some JSON, and how many of them could not
        be read: no more than is needed is decoded."""
        return None

    def events(self, record: Record, offset: int, wanted: int) -> list[Event]:
        """Return the events in a record at byte `offset` that are `wanted`; an entry first."""
        raise NotImplementedError

    def entry(self, record: Record, offset: int = 0) -> Entry | None:
        """Return the entry among the events of a record."""
        events = self.events(record, offset, MESSAGES)
        return events[0] if events and isinstance(events[0], Entry) else None

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        """Return what a call in the record took out of a file and put in, as pairs of texts; [] for
        any other call. The whole of a file that it wrote replaces ''."""
        return []

    def arguments(self, record: Record, call_id: str) -> Record:
        """Return the arguments of a call in the record, wherever the runtime writes them; {} for
        none."""
        parts: list[object] = [record]
        while parts:
            one = parts.pop()
            if isinstance(one, list):
                parts += one
            elif isinstance(one, dict):
                if call_id in [one.get(key) for key in _CALL_IDS]:
                    given = next(
                        (one[key] for key in _GIVEN if key in one),
                        as_object(one.get("state")).get("input"),
                    )
                    if isinstance(given, str):
                        found = (
                            next(iter(objects_in(given.encode())), {})
                            if given.startswith("{")
                            else {}
                        )
                        given = found or {"input": given}
                    if isinstance(given, dict):
                        return given
                parts += one.values()
        return {}

    def thinking(self, record: Record) -> str:
        """Return the model's thinking in a line with THINKING; '' for none."""
        return ""

    def hunks(self, record: Record, call_id: str) -> list[Hunk]:
        """Return what an edit by the call changed and where in the file, if the record says so; []
        if not."""
        return []

    def time(self, record: Record) -> float | None:
        """Return when the record was written, in seconds since the epoch; None if it does not
        say."""
        return epoch_seconds(record.get("timestamp"))


def copied_id(record: Record, key: str) -> str:
    """Return the id that a copied record (`messageUuid`) or its session had: Claude Code's and Qwen
    Code's forks."""
    return as_string(as_object(record.get("forkedFrom")).get(key))


def turn_of(entry: Entry | None) -> list[Event]:
    """Return the prompt or reply that an entry is, in runtimes whose model ends its turn by calling
    no tool."""
    if entry is None:
        return []
    if entry.role == "user":
        return [PromptId(entry.id)]
    return [Reply(entry.message_id or entry.id, entry.text, not entry.tools)]


def typed_or_run(text: str) -> tuple[str, tuple[ToolUse, ...]]:
    """Return the words that a user of Gemini CLI or Qwen Code typed. For a command that they ran,
    return the call and no text."""
    if text.startswith(_RAN) and _PRODUCED in text:
        given = {"command": text[len(_RAN) :].partition(_PRODUCED)[0].strip()}
        return "", tool_use("run_shell_command", given, ("command",), "command", "")
    return typed_by_person(text), ()


def said_and_called(
    content: object,
    calls: tuple[str, ...],
    key: str,
    kinds: Mapping[str, str],
    preferred: tuple[str, ...],
) -> tuple[str, tuple[ToolUse, ...]]:
    """Return the text and the calls in a message, a string or blocks. Blocks of the types `calls`
    have their arguments at `key`; `kinds` has the kind of a tool by its name, `preferred` the
    arguments that tell most."""
    if isinstance(content, str):
        return content.strip(), ()
    parts: list[str] = []
    tools: list[ToolUse] = []
    for block in as_list(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            parts.append(block["text"].strip())
        elif kind == "image":
            parts.append("[image]")
        elif kind in calls:
            name = as_string(block.get("name")) or "tool"
            tools += tool_use(
                name,
                block.get(key),
                preferred,
                kinds.get(name, "other"),
                as_string(block.get("id")),
            )
    return "\n\n".join([part for part in parts if part]), tuple(tools)
