"""Events, into which each record of a transcript is decoded once, and the decoders' base class.

A reader states the kinds of events that are `wanted`, such as `MESSAGES | CALLS`. Lines that surely
have none of these are not decoded, and nothing else is searched for in a record.
"""

from __future__ import annotations

from ...common.system.json import as_list, as_object, as_string, objects_in
from ...common.text.timestamps import epoch_seconds
from ..transcripts.entries import Entry, Value, tool_use, typed_by_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
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


class Wanted:
    """The kinds of events that a reader wants; `a | b` has the kinds of both."""

    # not slots: this is made with each prompt that has news
    messages = calls = results = injected = False
    links = turns = usage = of_sub_agents = False

    def __init__(self, *kinds: str) -> None:
        for kind in kinds:
            setattr(self, kind, True)

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(*self.__dict__, *other.__dict__)


MESSAGES = Wanted("messages")  # entries with text, titles and compactions
CALLS = Wanted("calls")  # with MESSAGES: also entries without text
RESULTS = Wanted("results")
INJECTED = Wanted("injected")
LINKS = Wanted("links")
TURNS = Wanted("turns")  # prompts and replies
USAGE = Wanted("usage")
SUB_AGENTS = Wanted("of_sub_agents")  # with MESSAGES or RESULTS: only the sub-agents'

NO_TITLE = (-1, "")  # ranks below any title
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
    """A title of the session; the user's own has the highest rank.

    `session_id` and `within`, bytes that its transcript must contain, identify the session if they
    are not empty."""

    __slots__ = ("rank", "session_id", "text", "within")

    def __init__(self, rank: int, text: str, session_id: str = "", within: bytes = b"") -> None:
        self.rank = rank
        self.text = text
        self.session_id = session_id
        self.within = within


class Compaction(Value):
    """A mark that the runtime compacted the conversation here."""


class CallResult(Value):
    """The result of a tool call: the call's id, whether it failed, and a string or text blocks.

    A call has not run if it was refused, was interrupted, or could not start. `time` is when the
    result came, in seconds since 1970; without one, it is the record's time."""

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

    def part_ids(self) -> Iterator[str]:
        """Yield the ids that the parts of the call would have, such as the files of a patch."""
        from ..transcripts.edits import part_id

        number = 0
        while True:
            yield part_id(self.call_id, number)
            number += 1

    @staticmethod
    def of_call(call_id: str, results: Iterable[CallResult]) -> CallResult | None:
        """Return the result of a call among the results in a record, or None.

        A part of a call may have a result of its own. If not, the result of the call is the
        part's."""
        from ..transcripts.edits import part_number

        of_call = None
        for result in results:
            if result.call_id == call_id:
                return result
            if of_call is None and part_number(call_id, result.call_id) is not None:
                of_call = result
        return of_call


class Approval(Value):
    """A request for the user's approval of a call, or the answer to it, by the request's id."""

    __slots__ = ("id", "is_answered")

    def __init__(self, id: str, is_answered: bool) -> None:
        self.id = id
        self.is_answered = is_answered


class Injected(Value):
    """The texts that hooks gave to the agent; none if a prompt's hook failed."""

    __slots__ = ("texts",)

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.texts = texts


class ParentLink(Value):
    """A record's link in the conversation: its id, and its parent's id.

    The parent's id is '' if there is none. If every record continues the one before it, both ids are
    ''; with an id of its own, a record without a parent begins another branch.
    `is_message` is whether the record is a message of the user or the model, whatever its
    content."""

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
    """One record's part of a message of the model.

    It has the message's id, its text as written, and whether the model's turn ends with the
    message."""

    __slots__ = ("ends_turn", "message_id", "text")

    def __init__(self, message_id: str, text: str, ends_turn: bool) -> None:
        self.message_id = message_id
        self.text = text
        self.ends_turn = ends_turn


class Branch:
    """The records of a transcript that count, if some do not or need context.

    In a tree of records this is the live branch, found by reading from the end."""

    # whether lines may stop counting, because their branch was left or they were taken back
    may_leave_out = False
    is_of_subagent = False  # whether nothing counts, because it is a sub-agent's transcript
    # The time before which everything was copied from the fork's original session, if nothing else
    # shows that
    copied_until: float | None = None
    # whether copied answers keep the ids from the other session
    copies_keep_ids = True
    directory = ""  # the directory of entries that name none
    # the session's id for entries that name none, if the file has one
    session_id = ""
    forked_from = ""  # the id of the session that was copied, if the file names it
    # the id of the session to which the sub-agent belongs, if only this file names it
    of_session = ""
    title: tuple[int, str] = NO_TITLE  # with its rank, if the first lines have it
    # entries that were read backward, whose directory is in an earlier line; the last ones first
    unsettled: list[Entry] | tuple[Entry, ...] = ()
    # what a line has one of that may name the directory of the lines after it, if any does
    DIRECTORY_MARKS: tuple[bytes, ...] = ()

    def directory_in(self, line: bytes) -> str:
        """Return the directory that a line names for the records after it; '' if it names none."""
        return ""

    def settle(self, directory: str) -> None:
        """Give the entries that were read backward the directory that an earlier line names."""
        for entry in self.unsettled:
            entry.cwd = directory
        self.unsettled = []

    def holds(self, line: bytes) -> bool:
        """Tell whether `line` counts. Call this for every line, from the last to the first."""
        return True

    def note(self, record: Record) -> None:
        """Note context in a record that applies to the records after it.

        Give it all records, in order."""

    def is_copied(self, time: float | None) -> bool:
        """Return whether records from that time are copies."""
        return self.copied_until is not None and (time or 0.0) < self.copied_until

    def complete(self, entry: Entry) -> None:
        """Add the values that the transcript states once for many entries.

        These are the directory, whether the entry was copied, and its session. When reading
        backward, they may follow later."""
        entry.cwd = entry.cwd or self.directory
        entry.is_copy = entry.is_copy or self.is_copied(entry.timestamp)
        entry.origin = entry.origin or (self.forked_from if entry.is_copy else self.session_id)


class Records:
    """Decodes the lines of a transcript."""

    # Each line with a title contains one of these byte strings, and few others do; empty if no line
    # ever has a title
    TITLE_MARKS: tuple[bytes, ...] = ()
    CALL_MARK = b""  # bytes in each line with a call, and in few others; empty if unknown
    # If a call's line also has its result: the result's key, and the key where the next call begins
    RESULT_KEY = NEXT_KEY = b""
    # Prefixes of lines that the runtime wrote. Any other line, such as one rewritten by another
    # program, is decoded.
    BEGINNINGS: tuple[bytes, ...] = ()
    HEADER = ""  # the type of a mirror's first record, if members of a family differ in it
    THINKING = b'"thinking":'  # is in each line with the model's thinking
    HUNKS = b""  # is in each line of results with the hunks of an edit, if `edited_path` names one

    def recognises(self, line: bytes) -> bool:
        """Return whether the first line of a transcript identifies this runtime; it may be cut."""
        raise NotImplementedError

    def owns(self, record: Record) -> bool:
        """Return whether a record shows this runtime, even after another program rewrote the file.

        White space and order may then differ."""
        raise NotImplementedError

    def open_transcript(self, first_line: bytes) -> Branch | None:
        """Return the part of a transcript that counts, by its first line; None if all of it does."""
        return None

    def prefilter(self, line: bytes, wanted: Wanted) -> bool:
        """Return False only for a line that surely has nothing `wanted` and need not be decoded."""
        return not line.startswith(self.BEGINNINGS) or self.may_hold(line, wanted)

    def may_hold(self, line: bytes, wanted: Wanted) -> bool:
        """Return the result of `prefilter`, for a line in the runtime's own form."""
        return True

    def without_results(self, line: bytes) -> bytes:
        """Return a line without its calls' results, if they are recognised.

        The line is for searching and need not be JSON."""
        if not self.RESULT_KEY or self.RESULT_KEY not in line:
            return line
        first, *others = line.split(self.RESULT_KEY)
        calls = [part.partition(self.NEXT_KEY) for part in others]
        return b"".join([first, *[key + call for _, key, call in calls if key]])

    def results_in(self, line: bytes, decode: Decode) -> list[CallResult] | None:
        """Return the results of tool calls in a line recognised as having nothing else, else None.

        `decode` returns the values in JSON text and the number of unreadable ones. Only the
        necessary part is decoded."""
        return None

    def events(self, record: Record, offset: int, wanted: Wanted) -> list[Event]:
        """Return the events in a record at byte `offset` that are `wanted`; an entry first."""
        events: list[Event] = []
        is_counted = self.counts(record, of_sub_agents=wanted.of_sub_agents)
        if wanted.messages and is_counted:
            events += self.messages(record, offset)
        if wanted.results and is_counted:
            events += self.results(record)
        if wanted.injected:
            events += self.injected(record)
        if wanted.turns:
            events += self.turns(record)
        if wanted.usage:
            events += self.usage(record)
        if wanted.links:
            events += self.links(record)
        return events

    def counts(self, record: Record, *, of_sub_agents: bool) -> bool:
        """Check if a record's messages and results are the session's, or a sub-agent's.

        With `of_sub_agents`, a sub-agent's are meant."""
        return True

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        """Return the entries in a record at byte `offset`, its title or compaction."""
        return ()

    def results(self, record: Record) -> Iterable[Event]:
        """Return the results of tool calls in a record."""
        return ()

    def injected(self, record: Record) -> Iterable[Event]:
        """Return what hooks gave to the agent in a record."""
        return ()

    def turns(self, record: Record) -> Iterable[Event]:
        """Return the prompt that a record is, or the reply that it is a part of."""
        return ()

    def usage(self, record: Record) -> Iterable[Event]:
        """Return the tokens that an answer in a record took."""
        return ()

    def links(self, record: Record) -> Iterable[Event]:
        """Return the link of a record of the conversation to the one before it."""
        return ()

    def calls_and_results(self, record: Record) -> Iterable[ToolUse | CallResult | Approval]:
        """Return the calls that a record begins, and results and approvals in it, in order.

        A call counts as soon as it is written, even if another record shows it to people."""
        for event in self.events(record, 0, MESSAGES | CALLS | RESULTS):
            if isinstance(event, Entry):
                yield from event.tools
            elif isinstance(event, CallResult):
                yield event

    def is_interruption(self, record: Record) -> bool:
        """Return whether a record notes that the user interrupted the turn."""
        return False

    def entry(self, record: Record, offset: int = 0) -> Entry | None:
        """Return the entry among the events of a record."""
        events = self.events(record, offset, MESSAGES)
        return events[0] if events and isinstance(events[0], Entry) else None

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        """Return a call's changes to a file, as pairs of removed and added text; else [].

        If the call wrote the whole file, the removed text is ''."""
        return []

    def arguments(self, record: Record, call_id: str) -> Record:
        """Return the arguments of a call in the record, wherever they are; {} if there are none."""
        parts: list[object] = [record]
        while parts:
            part = parts.pop()
            if isinstance(part, list):
                parts += part
            elif isinstance(part, dict):
                if call_id in [part.get(key) for key in _CALL_IDS]:
                    given = next(
                        (part[key] for key in _GIVEN if key in part),
                        as_object(part.get("state")).get("input"),
                    )
                    if isinstance(given, str):
                        decoded_input = (
                            next(iter(objects_in(given.encode())), {})
                            if given.startswith("{")
                            else {}
                        )
                        given = decoded_input or {"input": given}
                    if isinstance(given, dict):
                        return given
                parts += part.values()
        return {}

    def thinking(self, record: Record) -> str:
        """Return the model's thinking in a line with THINKING; '' if there is none."""
        return ""

    def thoughts_in(self, line: bytes, decode: Decode) -> list[str]:
        """Return the model's thinking in each record of a line that has any."""
        values = decode(line)[0] if self.THINKING in line else ()
        thoughts = [self.thinking(value) for value in values if isinstance(value, dict)]
        return [thought for thought in thoughts if thought]

    def hunks(self, record: Record, call_id: str) -> list[Hunk]:
        """Return the hunks of a call's edit in the file; [] if the record does not have them."""
        return []

    def edited_path(self, record: Record) -> str:
        """Return the file whose `hunks` a result has; '' if only the call shows written lines."""
        return ""

    def time(self, record: Record) -> float | None:
        """Return when the record was written, in seconds since 1970; None if it does not say."""
        return epoch_seconds(record.get("timestamp"))


def copied_id(record: Record, key: str) -> str:
    """Return the original id of a copied record (`messageUuid`) or its session.

    Used for forks in Claude Code and Qwen Code."""
    return as_string(as_object(record["forkedFrom"]).get(key)) if "forkedFrom" in record else ""


def turn_of(entry: Entry | None) -> list[Event]:
    """Return the prompt or reply in an entry.

    For runtimes whose model ends its turn by calling no tool."""
    if entry is None:
        return []
    if entry.role == "user":
        return [PromptId(entry.id)]
    return [Reply(entry.message_id or entry.id, entry.text, not entry.tools)]


def typed_or_run(text: str) -> tuple[str, tuple[ToolUse, ...]]:
    """Return the words that a user of Gemini CLI or Qwen Code typed.

    For a command that they ran, return the call and no text."""
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
    """Return the text and the calls in a message, which is a string or blocks.

    Blocks of the types `calls` have their arguments at `key`. `kinds` maps tool names to kinds;
    `preferred` lists the most informative arguments."""
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
