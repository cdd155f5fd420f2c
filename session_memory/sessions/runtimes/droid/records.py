"""Decodes the lines of sessions of Droid 0.225."""

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
from ...transcripts.entries import INTRODUCTION, Entry, ToolUse, typed_by_person
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ..records import Decode, Event, Record

_TITLE_RANK = 3
_MESSAGE = b'{"type":"message","id":"'
_START = b'{"type":"session_start",'
_GLUED = (_MESSAGE, _START)  # a record after another one on the same line
_RESULT = b'"message":{"role":"user","content":[{"type":"tool_result",'
_HOOK = b'"hookEventName":"'
_TEXT = b'"type":"text"'
_PATCH = "ApplyPatch"
_REFUSED = f"Error: {INTRODUCTION}"  # a call that our hook refused
_CONTEXT = "context-"  # begins the id of a message in which Droid describes its tools
_KINDS = {
    "Edit": "edit",
    "Create": "edit",
    _PATCH: "edit",
    "Read": "read",
    "Execute": "command",
}
_ARGUMENTS = ("file_path", "command", "pattern", "directory_path", "prompt", "query", "input")


class DroidRecords(records.Records):
    """Every run of a hook is a message of the user without content."""

    TITLE_MARKS = (b'"session_start"',)
    CALL_MARK = b'"tool_use"'
    BEGINNINGS = (_MESSAGE, b'{"type":"agent_turn_outcome",')

    def recognises(self, line: bytes) -> bool:
        if line.startswith(b'{"type":"session_start","id":"'):
            return b'"owner":"' in line or b'"hostId":"' in line
        return line.startswith(_MESSAGE) and b'"message":{"role":"' in line

    def owns(self, record: Record) -> bool:
        kind = record.get("type")
        if kind == "session_start":
            return "owner" in record or "hostId" in record
        # Pi's messages have this form too, but follow its header
        return kind == "message" and "id" in record and "role" in as_object(record.get("message"))

    def open_transcript(self, first_line: bytes) -> DroidSession | None:
        """Return what the first record states; None for a file that begins with another one."""
        start = next(iter(objects_in(first_line)), {})
        return DroidSession(start) if start.get("type") == "session_start" else None

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        if wanted.links or wanted.turns or is_glued(line, *_GLUED):
            return True
        return bool(
            (wanted.injected and _HOOK in line)
            or (wanted.results and b'"tool_result"' in line)
            or (wanted.messages and _may_say(line, wanted.calls))
        )

    def results_in(self, line: bytes, decode: Decode) -> list[records.CallResult] | None:
        """Return the results in a line of only results, else None."""
        is_usual = line.startswith(_MESSAGE) and _RESULT in line and _TEXT not in line
        if not is_usual or is_glued(line, *_GLUED):
            return None
        values, unreadable = decode(line)
        record = as_object(values[0]) if len(values) == 1 else {}
        blocks = _blocks(record)
        is_only_results = bool(blocks) and all(
            [each.get("type") == "tool_result" for each in blocks]
        )
        return _results(record) if is_only_results and not unreadable else None

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind = record.get("type")
        if kind == "message":
            entry = _entry(record, offset)
            return () if entry is None else (entry,)
        if kind == "session_start" and record.get("isSessionTitleManuallySet") is True:
            return (records.Title(_TITLE_RANK, as_string(record.get("title")).strip()),)
        return (records.Compaction(),) if kind == "compaction_state" else ()

    def results(self, record: Record) -> Iterable[Event]:
        return _results(record)

    def injected(self, record: Record) -> Iterable[Event]:
        """Return the texts of a finished run of hooks; none if Droid says that it failed."""
        message = as_object(record.get("message"))
        if record.get("type") != "message" or "hookEventName" not in message:
            return ()
        texts = [_text_of(result) for result in objects_of(message.get("hookResults"))]
        has_failed = message.get("hookStatus") == "error"
        given = tuple([text for text in texts if text])
        return (records.Injected(given),) if given or has_failed else ()

    def turns(self, record: Record) -> Iterable[Event]:
        return records.turn_of(_entry(record, 0))

    def is_interruption(self, record: Record) -> bool:
        is_end = record.get("type") == "agent_turn_outcome"
        return is_end and record.get("reason") in ("cancelled", "permission_rejected")

    def links(self, record: Record) -> Iterable[Event]:
        """Return the link of a message, except of a run of hooks."""
        is_link = record.get("type") == "message" and isinstance(record.get("id"), str)
        if not is_link or "hookEventName" in as_object(record.get("message")):
            return ()
        parent = as_string(record.get("parentId"))
        is_message = not record["id"].startswith(_CONTEXT)
        return (records.ParentLink(record["id"], parent, is_message),)

    def thinking(self, record: Record) -> str:
        return "\n\n".join([as_string(each.get("thinking")) for each in _blocks(record)]).strip()

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import block_edits, part_number, patch_edits

        for block in _blocks(record):
            number = part_number(call_id, as_string(block.get("id")))
            if number is not None and (patch := _patch(block)):
                return patch_edits(patch, number)
        return block_edits(record, call_id, "input", "old_str", "new_str")


class DroidSession(records.Branch):
    """Only the first record has the directory.

    A fork has the messages of its original with the same ids, and no mark where they end."""

    def __init__(self, start: Record) -> None:
        self.directory = as_string(start.get("cwd"))
        self.session_id = as_string(start.get("id"))


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False for runs of hooks, results, and without calls for lines without a text."""
    if _TEXT in line:
        return True
    return with_calls > 0 and _HOOK not in line and _RESULT not in line


def _blocks(record: Record) -> list[Record]:
    return objects_of(as_object(record.get("message")).get("content"))


def _patch(block: Record) -> str:
    """Return the patch of a call; '' if the call is another one."""
    is_patch = block.get("type") == "tool_use" and block.get("name") == _PATCH
    return as_string(as_object(block.get("input")).get("input")) if is_patch else ""


def _text_of(result: Record) -> str:
    """Return the text that one hook gave to the agent, or ''."""
    values = decode_line(as_string(result.get("stdout")).encode())[0]
    output = as_object(as_object(values[0]).get("hookSpecificOutput")) if len(values) == 1 else {}
    return as_string(output.get("additionalContext"))


def _entry(record: Record, offset: int) -> Entry | None:
    """Return the entry of a message, without Droid's reminders and the runs of hooks."""
    message = as_object(record.get("message"))
    role, id = message.get("role"), as_string(record.get("id"))
    is_said = record.get("type") == "message" and role in ("user", "assistant")
    if not is_said or "visibility" in message or id.startswith(_CONTEXT):
        return None
    blocks = [
        block
        for block in _blocks(record)
        if role == "assistant"
        or typed_by_person(as_string(block.get("text")))
        or block.get("type") != "text"
    ]
    text, tools = records.said_and_called(blocks, ("tool_use",), "input", _KINDS, _ARGUMENTS)
    if role == "user":
        text = typed_by_person(text)
    if not text and not tools:
        return None
    return Entry(
        as_string(role),
        text,
        tools=_by_file(tools),
        timestamp=epoch_seconds(record.get("timestamp")),
        id=id,
        offset=offset,
    )


def _by_file(tools: tuple[ToolUse, ...]) -> tuple[ToolUse, ...]:
    """Return an edit per file instead of each patch."""
    if not any([tool.name == _PATCH for tool in tools]):
        return tools
    from ...transcripts.edits import patch_uses

    parts = [patch_uses(tool) if tool.name == _PATCH else (tool,) for tool in tools]
    return tuple([tool for part in parts for tool in part])


def _results(record: Record) -> list[records.CallResult]:
    if record.get("type") != "message":
        return []
    return [_result(block) for block in _blocks(record) if block.get("type") == "tool_result"]


def _result(block: Record) -> records.CallResult:
    content = block.get("content")
    is_refused = isinstance(content, str) and content.startswith(_REFUSED)
    return records.CallResult(
        as_string(block.get("tool_use_id")),
        block.get("is_error") is True,
        "" if is_refused else content,
        not is_refused,
    )
