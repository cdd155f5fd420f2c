"""A session as a dialogue, for a template: its chunks, their content, and a full tool call.

The store has only the main argument and the outcome of a call, so the transcript is read when a
call is opened. Between the items is content that only the transcript has: updates, where they were
delivered, and the model's thinking.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import NamedTuple

from ...app.labels import quoted
from ...common.errors import SessionMemoryError
from ...common.system.files import Closing
from ...common.text.format import one_line, shorten
from ...common.text.paths import relative
from ...common.text.sanitize import for_people
from ...common.text.timestamps import local_time
from ...history.recorded import call_in
from ...history.store.ingest.extract import result_text
from ...history.store.location import StoreLocation
from ...history.store.sqlite.engine import SqliteStore
from ...history.store.values import ITEM_BITS, NUMBERS, TOOL_ROLE, Conversation, StoredEntry
from ...history.told import told_in
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.records import INJECTED, CallResult, Injected
from ...sessions.runtimes.table import all_runtimes
from ...sessions.transcripts.edits import Hunk
from ...sessions.transcripts.lines import first_line, lines_forward
from ...sessions.transcripts.reader import TranscriptReader, is_request
from ._diffs import Diff, diff_of

CHUNK = 60  # items; rendering takes 20 ms
ARGUMENT_CHARACTERS = 240
LONG_CHARACTERS = 4000  # a longer text gets a scroll box
RESULT_BYTES = 8 * 1024 * 1024  # of the transcript after the call, searched for its result
RESULT_CHARACTERS = 20_000
NOTE_ID = -1  # the most characters of an update or a thought, which only the transcript has
TOLD, THOUGHT = "told", "thought"
MOST_BYTES = 16 * 1024 * 1024  # of a transcript, searched for one chunk
DID_NEXT = 4
_WITHHELD = "Withheld: since then, rules have changed or a session was forgotten."


class DialoguePart(NamedTuple):
    """A part of a session: the items of a conversation with the numbers from `first` to `last`.

    The very last part `is_open`, because new items go into it. `silence` is the pause before it, in
    seconds."""

    conversation: int
    first: int
    last: int
    is_open: bool
    silence: float


class ShownCall(NamedTuple):
    """A tool call in one line; `text` is its whole argument.

    `outcome` is ok, error, or '' if unknown."""

    number: int
    tool: str
    kind: str
    text: str
    argument: str
    outcome: str
    error: str
    lines: int | None


class Block(NamedTuple):
    """One block of the dialogue.

    It is a message (`text`), consecutive tool calls and thoughts (`calls`), or a report to the
    session (role TOLD), with the next action as `did_next`. `number` is the first item's, `key` is
    unique. `day` is set on the first block of a day. `goes_on` means that the previous block has
    the same speaker."""

    number: int
    role: str
    at: float | None
    day: str
    text: str = ""
    is_request: bool = False
    is_long: bool = False
    goes_on: bool = False
    calls: tuple[ShownCall, ...] = ()
    key: str = ""
    did_next: tuple[str, ...] = ()


class CallDetail(NamedTuple):
    """A call in full.

    It has its `argument`, the `diff` of an edit, the `result`, the number of characters left out of
    it, and the reason if nothing more can be shown."""

    argument: str
    diff: Diff | None = None
    result: str = ""
    left_out: int = 0
    problem: str = ""


def chunks_of(store: SqliteStore, conversations: Iterable[Conversation]) -> list[DialoguePart]:
    """Return the chunks of conversations, given in order."""
    parts: list[DialoguePart] = []
    before: float | None = None
    for conversation in conversations:
        first, last = store.item_ids(conversation.id)
        begin, end = _number(first), _number(last)
        silence = 0.0
        if before is not None and conversation.first_message_at is not None:
            silence = max(0.0, (conversation.first_message_at - before) / 1000)
        for number in range(begin, end + 1, CHUNK):
            parts.append(
                DialoguePart(conversation.id, number, min(number + CHUNK - 1, end), False, silence)
            )
            silence = 0.0
        before = conversation.last_message_at or before
    if parts:
        parts[-1] = parts[-1]._replace(is_open=True)
    return parts


def items_of(store: SqliteStore, chunk: DialoguePart) -> list[StoredEntry]:
    first, _ = store.item_ids(chunk.conversation)
    base = first >> ITEM_BITS << ITEM_BITS
    return store.items(
        base + chunk.first - 1, base + (NUMBERS if chunk.is_open else chunk.last - 1)
    )


def blocks_of(items: list[StoredEntry], day_before: str = "") -> Iterator[Block]:
    """Yield items as blocks, joining consecutive texts of one message, and consecutive calls."""
    block: Block | None = None
    message = 0
    speaker = ""
    for item in items:
        if block is not None:
            joined = _joined(block, item, is_same_message=bool(message) and item.message == message)
            if joined is not None:
                block = joined
                continue
            yield _finished(block)
        shown_day, day_before = _new_day(item, day_before)
        message = item.message
        is_following = item.role == speaker and not shown_day
        block = _block_of(item, shown_day, is_following=is_following)
        if not block.calls and item.role != TOLD:
            speaker = item.role
        elif block.calls and speaker == "user":  # an agent's calls end a user's block
            speaker = ""
    if block is not None:
        yield _finished(block)


def _joined(block: Block, item: StoredEntry, *, is_same_message: bool) -> Block | None:
    """Return a block with the next item added; None if the item begins another block."""
    text = for_people(item.text)
    if block.role == item.role == TOOL_ROLE:
        call = _call(item, text, for_people(item.error))
        return block._replace(calls=(*block.calls, call))
    if block.role == item.role and is_same_message:
        return block._replace(text=f"{block.text}\n\n{text}")
    return None


def _new_day(item: StoredEntry, day_before: str) -> tuple[str, str]:
    """Return the day to show before an item ('' if it is unchanged), and the last known day."""
    if item.timestamp is None:
        return "", day_before
    at = item.timestamp / 1000
    day = local_time(at)[:10]
    shown = time.strftime("%A, %Y-%m-%d", time.localtime(at)) if day != day_before else ""
    return shown, day or day_before


def _block_of(item: StoredEntry, shown_day: str, *, is_following: bool) -> Block:
    """Return the block that an item begins; `is_following` continues the same speaker's."""
    text, error = for_people(item.text), for_people(item.error)
    calls = (_call(item, text, error),) if item.role == TOOL_ROLE else ()
    return Block(
        item.number,
        item.role,
        None if item.timestamp is None else item.timestamp / 1000,
        shown_day,
        "" if calls else text,
        goes_on=is_following,
        calls=calls,
        key=f"n{item.offset}" if item.id == NOTE_ID else f"e{item.number}",
    )


def _finished(block: Block) -> Block:
    is_asked = block.role == "user" and is_request(block.text)
    return block._replace(is_request=is_asked, is_long=len(block.text) > LONG_CHARACTERS)


def _call(item: StoredEntry, argument: str, error: str) -> ShownCall:
    is_path = item.kind in ("edit", "read")
    shown = relative(argument, for_people(item.cwd)) if is_path else argument
    shown = shorten(one_line(shown[: 4 * ARGUMENT_CHARACTERS]), ARGUMENT_CHARACTERS)
    if item.kind == THOUGHT:
        shown = quoted(argument, ARGUMENT_CHARACTERS)
    number, tool = 0 if item.id == NOTE_ID else item.number, for_people(item.tool)
    return ShownCall(
        number, tool, item.kind, argument, shown, item.outcome, one_line(error), item.result_lines
    )


def _number(item: int) -> int:
    return (item & NUMBERS) + 1


def call_detail(
    location: StoreLocation, conversation: Conversation, item: StoredEntry
) -> CallDetail:
    """Return the call behind an item of a conversation."""
    detail = CallDetail(for_people(item.text))
    runtime = next(
        (
            known_runtime
            for known_runtime in all_runtimes()
            if known_runtime.name == conversation.runtime
        ),
        None,
    )
    try:
        file = location.transcript_of(conversation)
        if runtime is None or file is None:
            return detail._replace(problem="its transcript is gone; this is the stored text")
        with Closing(file.open()) as descriptor:
            return _read(detail, runtime, descriptor, item)
    except (OSError, SessionMemoryError) as error:
        return detail._replace(problem=for_people(f"its transcript cannot be read: {error}"))


def _read(detail: CallDetail, runtime: Runtime, descriptor: int, item: StoredEntry) -> CallDetail:
    lines = lines_forward(
        descriptor, item.offset, min(item.offset + RESULT_BYTES, os.fstat(descriptor).st_size)
    )
    reader = TranscriptReader(runtime, first_line(descriptor))
    call, record = call_in(next(lines, (0, b"")), runtime, reader, item)
    if call is None:
        return detail._replace(
            problem="its transcript has changed since then; this is the stored text"
        )
    edits = runtime.records.edits(record, call.call_id)
    hunks = _hunks(descriptor, runtime, reader, item.offset, call.call_id) if edits else []
    result = _result(lines, reader, call.call_id)
    text = for_people(result[: RESULT_CHARACTERS + 1000])[:RESULT_CHARACTERS]
    return detail._replace(
        diff=diff_of(edits, hunks), result=text, left_out=max(0, len(result) - RESULT_CHARACTERS)
    )


def _hunks(
    descriptor: int, runtime: Runtime, reader: TranscriptReader, offset: int, call_id: str
) -> list[Hunk]:
    """Return where an edit changed its file, from the record of the call or its result, or []."""
    named = call_id.partition(":")[0].encode()
    for at, line in lines_forward(
        descriptor, offset, min(offset + RESULT_BYTES, os.fstat(descriptor).st_size)
    ):
        for record in reader.records(line) if named and (at == offset or named in line) else ():
            hunks = runtime.records.hunks(record, call_id)
            if hunks:
                return hunks
    return []


def _result(lines: Iterator[tuple[int, bytes]], reader: TranscriptReader, call_id: str) -> str:
    """Return the text of a call's result from the lines after it; '' for none."""
    events = reader.forward(lines, with_results=True)
    result = CallResult.of_call(call_id, (each for each in events if isinstance(each, CallResult)))
    return result_text(result.content) if result else ""


@dataclass
class AnnotatedSession:
    """A session of the store at `location`.

    Reports to it from before `hidden_at` are withheld, as in delivery_state."""

    store: SqliteStore
    location: StoreLocation
    hidden_at: float

    def blocks(self, conversation: Conversation, chunk: DialoguePart) -> list[Block]:
        """Return the blocks of a chunk with the notes between its items."""
        before = items_of(
            self.store, chunk._replace(first=chunk.first - 1, last=chunk.first - 1, is_open=False)
        )
        items = items_of(self.store, chunk)
        begin = before[-1].offset if before and chunk.first > 1 else -1
        end = None if chunk.is_open or not items else items[-1].offset
        try:
            notes = list(self._notes(conversation, begin, end))
        except (OSError, SessionMemoryError):  # the dialogue is shown as stored
            notes = []
        blocks = list(blocks_of(list(merge(items, notes, key=lambda item: item.offset))))
        return [
            block._replace(did_next=tuple(islice(_did_next(blocks[at + 1 :]), DID_NEXT)))
            if block.role == TOLD
            else block
            for at, block in enumerate(blocks)
        ]

    def _notes(
        self, conversation: Conversation, begin: int, end: int | None
    ) -> Iterator[StoredEntry]:
        """Yield the notes after the record at `begin` and before the record at `end`.

        Raises OSError."""
        runtime = next(
            (
                known_runtime
                for known_runtime in all_runtimes()
                if known_runtime.name == conversation.runtime
            ),
            None,
        )
        file = self.location.transcript_of(conversation)
        if runtime is None or file is None:
            return
        with Closing(file.open()) as descriptor:
            size = os.fstat(descriptor).st_size
            until = size if end is None else min(size, end)
            reader = TranscriptReader(runtime, first_line(descriptor))
            start = max(0, begin)
            for offset, line in lines_forward(descriptor, start, min(until, start + MOST_BYTES)):
                may_hold = runtime.records.THINKING in line or runtime.records.prefilter(
                    line, INJECTED
                )
                if offset > begin and may_hold:
                    yield from self._notes_in(runtime, reader, offset, line)

    def _notes_in(
        self, runtime: Runtime, reader: TranscriptReader, offset: int, line: bytes
    ) -> Iterator[StoredEntry]:
        for record in reader.records(line):
            at = runtime.records.time(record)
            time = None if at is None else round(at * 1000)
            thought = runtime.records.thinking(record) if runtime.records.THINKING in line else ""
            if thought:
                yield StoredEntry(
                    NOTE_ID, TOOL_ROLE, thought, time, "", offset, tool="Thinking", kind=THOUGHT
                )
            for event in runtime.records.events(record, offset, INJECTED):
                for text in told_in(event) if isinstance(event, Injected) else ():
                    shown = _WITHHELD if at is None or at < self.hidden_at else text
                    yield StoredEntry(NOTE_ID, TOLD, shown, time, "", offset)


def _did_next(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the first calls of the agent before the next prompt."""
    for block in blocks:
        if block.role == "user":
            return
        yield from (f"{call.tool} {call.argument}" for call in block.calls if call.kind != THOUGHT)
