"""A session as a dialogue: its chunks, and the content of each, as values for a template."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ..store.values import ITEM_BITS, TOOL_ROLE
from ..text.format import one_line, shorten
from ..text.paths import relative
from ..text.sanitize import all_for_people, for_people
from ..text.timestamps import local_time
from ..transcripts.titles import is_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..store.sqlite.engine import SqliteStore
    from ..store.values import Conversation, StoredEntry

CHUNK = 60  # items; rendering takes 20 ms
ARGUMENT_CHARACTERS = 240
LONG_CHARACTERS = 4000  # a longer text gets a scroll box
_LAST_NUMBER = (1 << ITEM_BITS) - 1


class DialoguePart(NamedTuple):
    """A part of a session: the items of a conversation with the numbers from `first` to `last`. The very last chunk
    `is_open`: new items go into it. `silence` is the pause before it, in seconds."""

    conversation: int
    first: int
    last: int
    is_open: bool
    silence: float


class ShownCall(NamedTuple):
    """A tool call in one line; `text` is its whole argument. `outcome` is ok, error, or '' if unknown."""

    number: int
    tool: str
    kind: str
    text: str
    argument: str
    outcome: str
    error: str
    lines: int | None


class Block(NamedTuple):
    """One message (`text`), or consecutive tool calls (`calls`); `number` is that of the first item. `day` is set on
    the first block of a day; `goes_on` means the previous block has the same speaker."""

    number: int
    role: str
    at: float | None
    day: str
    text: str = ""
    is_request: bool = False
    is_long: bool = False
    goes_on: bool = False
    calls: tuple[ShownCall, ...] = ()


def chunks_of(store: SqliteStore, conversations: Iterable[Conversation]) -> list[DialoguePart]:
    """Return the chunks of conversations, given in order."""
    found: list[DialoguePart] = []
    before: float | None = None
    for one in conversations:
        first, last = store.item_ids(one.id)
        begin, end = _number(first), _number(last)
        silence = 0.0
        if before is not None and one.first_message_at is not None:
            silence = max(0.0, (one.first_message_at - before) / 1000)
        for number in range(begin, end + 1, CHUNK):
            found.append(
                DialoguePart(one.id, number, min(number + CHUNK - 1, end), False, silence if number == begin else 0)
            )
        before = one.last_message_at or before
    if found:
        found[-1] = found[-1]._replace(is_open=True)
    return found


def items_of(store: SqliteStore, chunk: DialoguePart) -> list[StoredEntry]:
    """Return the items of a chunk."""
    first, _ = store.item_ids(chunk.conversation)
    base = first >> ITEM_BITS << ITEM_BITS
    return store.items(base + chunk.first - 1, base + (_LAST_NUMBER if chunk.is_open else chunk.last - 1))


def blocks_of(items: list[StoredEntry], day_before: str = "") -> Iterator[Block]:
    """Yield items as blocks, joining consecutive texts of one message, and consecutive calls."""
    texts = iter(all_for_people([text for item in items for text in (item.text, item.error)]))
    block: Block | None = None
    message = 0
    speaker = ""
    for item in items:
        text, error = next(texts), next(texts)
        at = None if item.timestamp is None else item.timestamp / 1000
        if block is not None and block.role == item.role == TOOL_ROLE:
            block = block._replace(calls=(*block.calls, _call(item, text, error)))
            continue
        if block is not None and block.role == item.role and item.message and item.message == message:
            block = block._replace(text=f"{block.text}\n\n{text}")
            continue
        if block is not None:
            yield _finished(block)
        day = "" if at is None else local_time(at)[:10]
        shown_day = _day_name(at) if at is not None and day != day_before else ""
        day_before = day or day_before
        message = item.message
        calls = (_call(item, text, error),) if item.role == TOOL_ROLE else ()
        goes_on = item.role == speaker and not shown_day
        if not calls:
            speaker = item.role
        elif speaker == "user":  # an agent's calls end a user's block
            speaker = ""
        block = Block(item.number, item.role, at, shown_day, "" if calls else text, goes_on=goes_on, calls=calls)
    if block is not None:
        yield _finished(block)


def _finished(block: Block) -> Block:
    return block._replace(
        is_request=block.role == "user" and is_request(block.text), is_long=len(block.text) > LONG_CHARACTERS
    )


def _call(item: StoredEntry, argument: str, error: str) -> ShownCall:
    is_path = item.kind in ("edit", "read")
    shown = relative(argument, for_people(item.cwd)) if is_path else argument
    shown = shorten(one_line(shown[: 4 * ARGUMENT_CHARACTERS]), ARGUMENT_CHARACTERS)
    return ShownCall(
        item.number, for_people(item.tool), item.kind, argument, shown, item.outcome, one_line(error), item.result_lines
    )


def _day_name(at: float) -> str:
    return time.strftime("%A, %Y-%m-%d", time.localtime(at))


def _number(item: int) -> int:
    return (item & _LAST_NUMBER) + 1
