"""Decodes the lines of session files of Pi, format versions 1 to 3."""

from __future__ import annotations

from ....common.system.json import (
    as_object,
    as_string,
    decode_line,
    is_glued,
    objects_in,
    objects_of,
)
from ....common.text.timestamps import epoch_seconds
from ...transcripts.entries import INTRODUCTION, Entry, ToolUse, tool_use, typed_by_person
from .. import records
from . import CUSTOM_TYPE
from .nested import MARKS, arguments_of, nested_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Decode, Event, Record

_TITLE_RANK = 3
_TORN = ""  # replaces a parent's id if that is unknown because the record is torn
_INJECTED = f'"customType":"{CUSTOM_TYPE}"'.encode()
_RESULT = b'"message":{"role":"toolResult"'
_GLUED = (b'}{"type":"', b'{"type":"message"')  # a record after another one on the same line
# `exec` is the shell's name in programs that are built on Pi.
_KINDS = {
    "edit": "edit",
    "write": "edit",
    "read": "read",
    "bash": "command",
    "exec": "command",
    "powershell": "command",
}
_ARGUMENTS = ("path", "file_path", "command", "pattern", "url", "query", "description")


class PiRecords(records.Records):
    """A session file is a tree with one live branch."""

    TITLE_MARKS: tuple[bytes, ...] = (b'"session_info"',)
    BEGINNINGS = (b'{"type":"',)

    def recognises(self, line: bytes) -> bool:
        return b'"session"' in line and self.owns(_first_record(line) or {})

    def open_transcript(self, first_line: bytes) -> PiBranch | None:
        """Return the live branch; None for a file without a header, which is read as it is."""
        header = _first_record(first_line)
        return PiBranch(header) if header is not None and header.get("type") == "session" else None

    def owns(self, record: Record) -> bool:
        return record.get("type") == "session"

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (wanted.results and (b'"toolResult"' in line or b'"bashExecution"' in line))
            or (wanted.messages and _may_say(line, wanted.calls))
            or (wanted.injected and _INJECTED in line)
            or (wanted.links and b'"parentId":' in line)
            or (wanted.usage and b'"usage":{' in line)
            or wanted.turns
        )

    def results_in(self, line: bytes, decode: Decode) -> list[records.CallResult] | None:
        """Return the result in a line of only a result without nested calls, else None."""
        at = line.find(_RESULT, 0, 400)
        if at < 0 or not line.startswith(b'{"type":"message"') or _may_say_in_result(line, at):
            return None
        values, unreadable = decode(line)
        message = as_object(as_object(values[0]).get("message")) if len(values) == 1 else {}
        is_usual = not unreadable and message.get("role") == "toolResult"
        if not is_usual or nested_calls(message) or _answered(message):
            return None
        return [_result(message)]

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind = record.get("type")
        if kind == "message":
            entry = _entry_of(as_object(record.get("message")), record, offset)
            return () if entry is None else (entry,)
        if kind == "session_info":  # '' if the user took the name away
            return (records.Title(_TITLE_RANK, as_string(record.get("name")).strip()),)
        return (records.Compaction(),) if kind == "compaction" else ()

    def results(self, record: Record) -> Iterable[Event]:
        message = as_object(record.get("message")) if record.get("type") == "message" else {}
        role = message.get("role")
        if role == "bashExecution" and not message.get("excludeFromContext"):
            call_id, output = as_string(record.get("id")), message.get("output")
            return (records.CallResult(call_id, message.get("exitCode") != 0, output),)
        return _results(message) if role == "toolResult" else ()

    def injected(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "custom_message" or record.get("customType") != CUSTOM_TYPE:
            return ()
        content = record.get("content")
        return (records.Injected((content,)),) if isinstance(content, str) else ()

    def turns(self, record: Record) -> Iterable[Event]:
        message = as_object(record.get("message")) if record.get("type") == "message" else {}
        record_id, role = as_string(record.get("id")), message.get("role")
        if role == "user":
            return (records.PromptId(record_id),)
        if role != "assistant":
            return ()
        text, _ = _said_and_called(message)
        ends_turn = message.get("stopReason") in ("stop", "length")
        return (records.Reply(record_id, text, ends_turn),)

    def is_interruption(self, record: Record) -> bool:
        return as_object(record.get("message")).get("stopReason") in ("aborted", "error")

    def usage(self, record: Record) -> Iterable[Event]:
        message = as_object(record.get("message")) if record.get("type") == "message" else {}
        is_counted = message.get("role") == "assistant" and isinstance(message.get("usage"), dict)
        return (_usage(message, record),) if is_counted else ()

    def links(self, record: Record) -> Iterable[Event]:
        if not isinstance(record.get("id"), str) or "parentId" not in record:
            return ()
        is_message, parent = record.get("type") == "message", as_string(record["parentId"])
        return (records.ParentLink(record["id"], parent, is_message),)

    def thinking(self, record: Record) -> str:
        blocks = objects_of(as_object(record.get("message")).get("content"))
        return "\n\n".join([as_string(block.get("thinking")) for block in blocks]).strip()

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits, block_edits

        for call in nested_calls(as_object(record.get("message"))):
            if call.get("id") == call_id:
                return argument_edits(arguments_of(call), "oldText", "newText", "content")
        return block_edits(record, call_id, "arguments", "oldText", "newText")


def given_to(message: Record, call_id: str) -> tuple[Record, int]:
    """Return a call's arguments in a message, and the number of the part that `call_id` names."""
    from ...transcripts.edits import part_number

    for block in objects_of(message.get("content")):
        number = part_number(call_id, as_string(block.get("id")))
        if number is not None and block.get("type") == "toolCall":
            return as_object(block.get("arguments")), number
    return {}, 0


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False for tool results, most of a session file's bytes, and for the system prompt.

    Without calls, also return False for lines that show that they have no text. The first
    `"message":{` outside a string is the record's own, because only plain strings come before it.
    An unescaped `"type":` is never part of a string either, so a glued record is noticed."""
    at = line.find(b'"message":{"role":"', 0, 400)
    if at < 0:
        return True
    if line.startswith(b"toolResult", at + 19):
        return _may_say_in_result(line, at, with_calls)
    if line.startswith(b"system", at + 19):
        return is_glued(line, *_GLUED)
    if with_calls:
        return True
    if line.startswith(b'assistant","content":[{"type":"', at + 19):
        return b'"text":"' in line or b'"type":"image"' in line or is_glued(line, *_GLUED)
    return not line.startswith(b"bashExecution", at + 19) or is_glued(line, *_GLUED)


def _may_say_in_result(line: bytes, at: int, with_calls: int = 1) -> bool:
    """Return `_may_say` for a tool's result, whose message is at `at`."""
    name = line[line.find(b'"toolName":"', at, at + 400) + 12 :][:40].lower()
    is_said = b"ask" in name or b"question" in name or is_glued(line, *_GLUED)
    return is_said or (with_calls > 0 and (MARKS[0] in line or MARKS[1] in line))


class PiBranch(records.Branch):
    """The branch that ends at the last record of the tree; other or removed records do not count.

    Before version 2, records have no ids and all are on the branch. `/tree` may return to another
    branch: its records count again once another record follows them."""

    def __init__(self, header: Record) -> None:
        version = header.get("version")
        self.may_leave_out = isinstance(version, int) and version > 1
        self.directory = as_string(header.get("cwd"))
        is_fork = bool(header.get("parentSession") or header.get("branchedFrom"))
        self.copied_until = epoch_seconds(header.get("timestamp")) if is_fork else None
        self.session_id = as_string(header.get("id"))
        # the path of its transcript
        parent = as_string(header.get("parentSession") or header.get("branchedFrom"))
        self.forked_from = parent.rpartition("/")[2].removesuffix(".jsonl").rpartition("_")[2]
        self._is_leaf_known = False
        self._next_id: str | None = None
        self._is_removed: dict[str, bool] = {}

    def holds(self, line: bytes) -> bool:
        if not self.may_leave_out:
            return True
        link = _link(line)
        if link is None:
            if line and _first_record(line) is None:
                # Torn, and possibly the record that is searched for: the branch is assumed to
                # continue at the record before it.
                self._is_leaf_known = False
            return True
        if not self._is_leaf_known or link[0] == self._next_id:
            self._is_leaf_known = link[1] != _TORN
            self._next_id = link[1]
        elif not self._continues_in(line, link):
            return False
        if b'"context_edit"' in line:
            for record in objects_in(line):
                # of several edits of one record the last applies, which is read first
                if record.get("type") == "context_edit":
                    self._is_removed.setdefault(
                        as_string(record.get("targetId")), record.get("replacement") is None
                    )
        return not self._is_removed.get(link[0], False)

    def _continues_in(self, line: bytes, first: tuple[str, str | None]) -> bool:
        """Check if the branch continues in a line with glued records, and follow it.

        The first of these records may be torn."""
        if not is_glued(line, *_GLUED):
            return False
        with_ids = [record for record in objects_in(line) if isinstance(record.get("id"), str)]
        parents = dict([first, *[(record["id"], record.get("parentId")) for record in with_ids]])
        is_in_it = self._next_id in parents
        while self._next_id in parents:
            self._next_id = parents.pop(self._next_id)
        return is_in_it


_RUN = ("Command exited with code ", "Command timed out")  # end the output of a command that failed
_CANCELLED = "manual-cancel"  # why a command of OpenClaw ended, if a person stopped it


def _entry_of(message: Record, record: Record, offset: int) -> Entry | None:
    """Return the entry in a message; None if there is none.

    A command that the user kept from the agent (`!!`) has none, nor has a failed attempt."""
    role, text = as_string(message.get("role")), ""
    tools: tuple[ToolUse, ...] = ()
    if role == "toolResult":
        role, text = "user", _answered(message)
        if not text:
            role = "assistant"
            tools = tuple([use for call in nested_calls(message) for use in _nested_uses(call)])
    elif role == "bashExecution":
        if not message.get("excludeFromContext"):
            role, record_id = "user", as_string(record.get("id"))
            tools = tool_use("bash", message, ("command",), "command", record_id)
    elif role == "user":
        text = _as_typed(_said_and_called(message)[0])
    elif role == "assistant" and message.get("stopReason") != "error":
        text, tools = _said_and_called(message)
    return _entry(role, text, tools, record, offset) if text or tools else None


def _said_and_called(message: Record) -> tuple[str, tuple[ToolUse, ...]]:
    content = message.get("content")
    return records.said_and_called(content, ("toolCall",), "arguments", _KINDS, _ARGUMENTS)


def _results(message: Record) -> list[Event]:
    """Return the results of the calls nested in a call, and of the call itself."""
    return [*[_nested_result(call) for call in nested_calls(message)], _result(message)]


def _result(message: Record) -> records.CallResult:
    call_id, details = as_string(message.get("toolCallId")), as_object(message.get("details"))
    # OpenClaw 2026.9, which writes Pi's records, does not call each failure an error
    is_error = message.get("isError") is True or details.get("status") == "error"
    code, ended = details.get("exitCode"), details.get("exitReason", _CANCELLED)
    has_failed = is_error or (type(code) is int and code != 0)
    content = _without_injected(message)
    has_run = not is_error or ended != _CANCELLED or any([sign in str(content) for sign in _RUN])
    return records.CallResult(call_id, has_failed, content, has_run)


def _nested_uses(call: Record) -> tuple[ToolUse, ...]:
    name = as_string(call.get("name")) or "tool"
    return tool_use(
        name, arguments_of(call), _ARGUMENTS, _KINDS.get(name, "other"), as_string(call.get("id"))
    )


def _nested_result(call: Record) -> records.CallResult:
    """Return how a nested call ended. One that was interrupted may have had its effect."""
    status, error = call.get("status"), as_string(call.get("error"))
    has_run = status != "error" or any([sign in error for sign in _RUN])
    return records.CallResult(as_string(call.get("id")), status != "ok", error, has_run)


def _entry(role: str, text: str, tools: tuple[ToolUse, ...], record: Record, offset: int) -> Entry:
    return Entry(
        role,
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=as_string(record.get("id")),
        offset=offset,
    )


def _answered(message: Record) -> str:
    """Return the user's answer in a dialog that an extension offers as a tool; '' for others."""
    name = as_string(message.get("toolName")).lower()
    if "ask" not in name and "question" not in name:
        return ""
    from .. import _dialogs as dialogs

    texts = [as_string(block.get("text")) for block in objects_of(message.get("content"))]
    return dialogs.words_in("\n".join(texts))


def _without_injected(message: Record) -> object:
    """Return the content of a result without our extension's addition."""
    content = message.get("content")
    if not isinstance(content, list):
        return content
    texts = [block.get("text") if isinstance(block, dict) else None for block in content]
    return [
        block
        for block, text in zip(content, texts)
        if not (isinstance(text, str) and text.startswith(INTRODUCTION))
    ]


def _usage(message: Record, record: Record) -> ModelUsage:
    """Return the usage of an assistant's message, with its price if Pi knows that."""
    from ...transcripts.usage import ModelUsage, amount

    usage = message["usage"]
    total = as_object(usage.get("cost")).get("total")
    return ModelUsage(
        f"{record.get('id')} {record.get('timestamp')}",  # ids are short; a fork keeps both
        as_string(message.get("model")),
        input=amount(usage, "input"),
        output=amount(usage, "output"),
        cached=amount(usage, "cacheRead"),
        written=amount(usage, "cacheWrite"),
        dollars=float(total) if isinstance(total, int | float) and 0 < total < 1e9 else None,
    )


def _link(line: bytes) -> tuple[str, str | None] | None:
    """Return the id in a line and its parent's id, or None for a line outside the tree.

    The first record's parent is None. Most lines begin in pi's form, with both ids, and need no
    decoding."""
    if line.startswith(b'{"type":"'):
        at = line.find(b'"', 9)
        end = line.find(b'"', at + 8)
        if line.startswith(b'","id":"', at) and line.startswith(b'","parentId":', end):
            parent = line[end + 13 : end + 80]
            if parent.startswith(b"null"):
                return line[at + 8 : end].decode("utf-8", "replace"), None
            close = parent.find(b'",', 1)
            if parent.startswith(b'"') and 0 < close == parent.find(b'"', 1):
                return line[at + 8 : end].decode("utf-8", "replace"), parent[1:close].decode(
                    "utf-8", "replace"
                )
    values, unreadable = decode_line(line)
    record = next((value for value in values if isinstance(value, dict)), {})
    if (
        record.get("type") == "session"
        or not isinstance(record.get("id"), str)
        or "parentId" not in record
    ):
        return None
    parent_id = record["parentId"]
    return record["id"], _TORN if unreadable else parent_id if isinstance(parent_id, str) else None


def _first_record(line: bytes) -> Record | None:
    return next(iter(objects_in(line)), None)


def _as_typed(text: str) -> str:
    """Return the text as typed: undo pi's replacement of skill and file names by their content."""
    typed = []
    while text.startswith(('<skill name="', '<file name="')):
        tag, sign = ("</skill>", "/skill:") if text.startswith("<skill") else ("</file>", "@")
        begin, end = text.find('"') + 1, text.find(tag)
        if end < 0:
            break
        typed.append(sign + text[begin : text.find('"', begin)])
        text = text[end + len(tag) :].lstrip()
    return " ".join([*typed, typed_by_person(text)]).strip()
