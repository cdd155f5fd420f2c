"""Decodes the events of sessions of Copilot CLI 1.0.64 to 1.0.102.

Each is `{type, data, id, timestamp, parentId}`. The events of a sub-agent are in the same file,
with an `agentId`. A resume or a compaction rewrites nothing, and there is no record of a session's
name (see files.given_name)."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, is_glued, objects_in, objects_of
from ....common.text.timestamps import epoch_seconds
from ...transcripts.edits import part_id, patch_uses
from ...transcripts.entries import Entry, ToolUse, tool_use, typed_by_person
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Event, Record

_START = b'{"type":"'
# A record after another one on the same line; either of them may be torn.
_GLUED = (b'}{"type":"', b'{"type":"user.message"', b'{"type":"assistant.message"')
# after these events the session may be in another directory
_MOVES = ("session.resume", "session.context_changed")
_TELLS_DIRECTORY = tuple(_START + kind.encode() + b'"' for kind in ("session.start", *_MOVES))
_SAID = (
    b"user.message",
    b"assistant.message",
    b"session.compaction_complete",
    b"tool.user_requested",
)
_KINDS = {
    "edit": "edit",
    "create": "edit",
    "str_replace_editor": "edit",
    "view": "read",
    "bash": "command",
    "powershell": "command",
}
_ARGUMENTS = ("path", "command", "pattern", "url", "query", "description", "prompt", "name")
# How the text of a result with the user's words begins in a line.
_WORDS = (
    b'":"User selected: ',
    b'":"User responded:',
    b'":"Plan not approved. User feedback:',
    b'":"The user rejected this tool call. User feedback:',
)
_COMPACTION = "session.compaction_complete"
_MESSAGE_TYPES = ("user.message", "assistant.message")
_SPOKEN = (*_MESSAGE_TYPES, "tool.user_requested")
_REMINDER, _REMINDER_END = "<system_reminder>", "</system_reminder>"
_CLOSED_BY_RESUME = "resumed"  # the model in the results of calls that a resume closed
# how the source of a message begins that
_PUT_IN = ("skill-", "agent-", "system", "hook", "jit-", "instruction")
# nobody typed


class CopilotRecords(records.Records):
    """Decodes events, including those of sub-agents."""

    BEGINNINGS = (_START,)

    THINKING = b'"reasoningText":'

    def recognises(self, line: bytes) -> bool:
        return line.startswith(_START) and line.startswith(
            b'","data":{', line.find(b'"', len(_START))
        )

    def open_transcript(self, first_line: bytes) -> CopilotSession:
        header = next(iter(objects_in(first_line)), {})
        return CopilotSession(header if header.get("type") == "session.start" else {})

    def owns(self, record: Record) -> bool:
        return "data" in record and "parentId" in record and isinstance(record.get("type"), str)

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (wanted.results and b'"tool.execution_complete"' in line)
            or (wanted.messages and _may_say(line, wanted.calls))
            or (wanted.injected and b'"user.message"' in line and _REMINDER.encode() in line)
            or (wanted.links and b'.message"' in line)
            or (wanted.usage and b'"session.usage_record"' in line)
            or wanted.turns
        )

    def counts(self, record: Record, *, of_sub_agents: bool) -> bool:
        if record.get("type") == _COMPACTION:
            return True
        return isinstance(record.get("data"), dict) and _is_sub_agents(record) is of_sub_agents

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind, data = record.get("type"), as_object(record.get("data"))
        if kind == _COMPACTION:
            return _compacted(data, record, offset)
        if kind == "tool.execution_complete":
            words = _words_of_result(data)
            return (_new_entry("user", words, (), record, offset),) if words else ()
        entry = _entry(kind, data, record, offset) if kind in _SPOKEN else None
        return () if entry is None else (entry,)

    def results(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "tool.execution_complete":
            return ()
        return _results(as_object(record.get("data")))

    def calls_and_results(
        self, record: Record
    ) -> Iterable[ToolUse | records.CallResult | records.Approval]:
        kind, data = as_string(record.get("type")), as_object(record.get("data"))
        if kind in ("permission.requested", "permission.completed"):
            request_id = as_string(data.get("requestId"))
            return (records.Approval(request_id, kind == "permission.completed"),)
        return super().calls_and_results(record)

    def is_interruption(self, record: Record) -> bool:
        return record.get("type") == "abort"

    def injected(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "user.message" or _is_sub_agents(record):
            return ()
        # Only the last hook that prints something is recorded; the others' texts are missing.
        content = as_string(as_object(record.get("data")).get("transformedContent"))
        parts = content.split(_REMINDER)[1:]
        texts = [part.partition(_REMINDER_END)[0].strip("\n") for part in parts]
        return (records.Injected(tuple(texts)),) if texts else ()

    def turns(self, record: Record) -> Iterable[Event]:
        kind, data = record.get("type"), as_object(record.get("data"))
        if kind not in _MESSAGE_TYPES or _is_sub_agents(record):
            return ()
        return records.turn_of(_entry(kind, data, record, 0) if data else None)

    def usage(self, record: Record) -> Iterable[Event]:
        data = as_object(record.get("data"))  # a sub-agent's as well
        is_usage = record.get("type") == "session.usage_record"
        return (_usage(data),) if is_usage and isinstance(data.get("usage"), dict) else ()

    def links(self, record: Record) -> Iterable[Event]:
        if record.get("type") not in _MESSAGE_TYPES or _is_sub_agents(record):
            return ()
        return (records.ParentLink("", "", True),) if isinstance(record.get("data"), dict) else ()

    def thinking(self, record: Record) -> str:
        return as_string(as_object(record.get("data")).get("reasoningText"))

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits, part_number, patch_edits

        for request in objects_of(as_object(record.get("data")).get("toolRequests")):
            number = part_number(call_id, as_string(request.get("toolCallId")))
            given, is_patch = _given(request), request.get("name") == "apply_patch"
            if number is not None and is_patch:
                return patch_edits(_patch_in(given), number)
            if number == 0:
                return argument_edits(given, "old_str", "new_str", "file_text")
        return []


def _is_sub_agents(record: Record) -> bool:
    """Check if a record is a sub-agent's, whose events are among the session's."""
    return bool(record.get("agentId") or as_object(record.get("data")).get("parentToolCallId"))


def _compacted(data: Record, record: Record, offset: int) -> list[Event]:
    """Return a compaction, after the command that asked for it if that has words."""
    if data.get("success") is not True:
        return []
    words = as_string(data.get("customInstructions")).strip()
    if not words:
        return [records.Compaction()]
    return [_new_entry("user", f"/compact {words}", (), record, offset), records.Compaction()]


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False for lines recognised as inputs and outputs of hooks, tools and models.

    They are most of a transcript. Without calls, also return False for an answer without text."""
    # perhaps torn: it is counted
    if not line.startswith(_START) or line[-3:].rstrip()[-1:] != b"}":
        return True
    kind = line[len(_START) : line.find(b'"', len(_START))]
    if kind in _SAID:
        is_empty = kind == b"assistant.message" and b'"content":"",' in line
        return with_calls > 0 or not is_empty or is_glued(line, *_GLUED)
    if kind == b"tool.execution_complete" and any([mark in line for mark in _WORDS]):
        return True
    return kind.decode("ascii", "replace") in _MOVES or is_glued(line, *_GLUED)


class CopilotSession(records.Branch):
    """A session.

    A fork begins with all earlier messages, which are older than the session itself."""

    DIRECTORY_MARKS = (b'"session.',)

    def __init__(self, start: Record) -> None:
        data = start.get("data")
        self.copied_until = epoch_seconds(data.get("startTime")) if isinstance(data, dict) else None
        self.session_id = as_string(as_object(data).get("sessionId"))
        self.directory = _directory_of(start)
        self.unsettled: list[Entry] = []  # before these, no move was read yet
        self._is_backward = False

    def holds(self, line: bytes) -> bool:
        directory = self.directory_in(line)
        if directory:
            self.settle(directory)
        # from the first line on, everything is read forward
        self._is_backward = not (directory and b'"session.start"' in line)
        return True

    def directory_in(self, line: bytes) -> str:
        is_rewritten = not line.startswith(_START)
        if line.startswith(_TELLS_DIRECTORY) or (is_rewritten and b'"session.' in line):
            return next(filter(None, map(_directory_of, reversed(objects_in(line)))), "")
        return ""

    def note(self, record: Record) -> None:
        """Note the directory in a record; it applies to the records after it."""
        self.directory = _directory_of(record) or self.directory

    def complete(self, entry: Entry) -> None:
        """Add the directory.

        When reading backward, use the directory at the session's start until the record of a move
        is reached."""
        super().complete(entry)
        if self._is_backward:
            self.unsettled.append(entry)


def _entry(kind: str, data: Record, record: Record, offset: int) -> Entry | None:
    """Return the entry in a user message, a model message with its calls, or a user's command.

    Text from hooks is left out. Return None if nobody typed the message."""
    role, text = "user", ""
    tools: tuple[ToolUse, ...] = ()
    if kind == "user.message":
        if data.get("isAutopilotContinuation") or as_string(data.get("source")).startswith(_PUT_IN):
            return None
        text = _typed(data)
    elif kind == "assistant.message":
        role = "assistant"
        text, tools = as_string(data.get("content")).strip(), _uses(data.get("toolRequests"))
    else:
        tools = _uses([{**data, "name": data.get("toolName")}])
    return _new_entry(role, text, tools, record, offset) if text or tools else None


def _new_entry(
    role: str, text: str, tools: tuple[ToolUse, ...], record: Record, offset: int
) -> Entry:
    return Entry(
        role,
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=as_string(record.get("id")),
        offset=offset,
    )


def _words_of_result(data: Record) -> str:
    """Return the user's words in a result: answers to a question, or reasons to refuse."""
    text = _result_text(data)
    if not text.startswith(("User ", "Plan not approved", "The user rejected")):
        return ""
    from .. import _dialogs as dialogs

    return dialogs.words_in(text)


def _result_text(data: Record) -> str:
    text = as_object(data.get("error")).get("message")
    return as_string(as_object(data.get("result")).get("content", "") if text is None else text)


def _results(data: Record) -> list[records.CallResult]:
    """Return the result of a call, for each changed file; a command's exit code shows failure."""
    exit_code = as_object(data.get("shellExecution")).get("exitCode")
    has_failed = data.get("success") is not True or exit_code not in (None, 0)
    text = _result_text(data)
    call_id, parts = as_string(data.get("toolCallId")), len(as_list(data.get("fileEdits")))
    # A resume closes the calls that were running when the program was killed. They may have had
    # their effect.
    has_run = data.get("success") is True or data.get("model") == _CLOSED_BY_RESUME
    return [
        records.CallResult(part_id(call_id, number), has_failed, text, has_run)
        for number in range(max(1, parts))
    ]


def _usage(data: Record) -> ModelUsage:
    """Return the usage of an answer.

    Tokens from a cache are part of the input tokens. A record names the session in which it was
    first written, and its place there."""
    from ...transcripts.usage import ModelUsage, amount

    took = data["usage"]
    account = as_object(took.get("accounting"))
    cached, written = amount(took, "cacheReadTokens"), amount(took, "cacheWriteTokens")
    return ModelUsage(
        f"{account.get('sourceSessionId')} {account.get('sequence')} {account.get('usageId')}",
        as_string(took.get("model")),
        input=max(0, amount(took, "inputTokens") - cached - written),
        output=amount(took, "outputTokens"),
        cached=cached,
        written=written,
    )


def _typed(data: Record) -> str:
    """Return the text that the user typed, and `[image]` for each pasted image."""
    kinds = [
        as_string(attachment.get("mimeType")) for attachment in objects_of(data.get("attachments"))
    ]
    images = ["[image]" for kind in kinds if kind.startswith("image/")]
    return "\n\n".join(
        [part for part in [typed_by_person(as_string(data.get("content"))), *images] if part]
    )


def _uses(requests: object) -> tuple[ToolUse, ...]:
    """Return the calls that an answer requests; for a patch an edit for each file."""
    uses: list[ToolUse] = []
    for request in objects_of(requests):
        name, call_id = (
            as_string(request.get("name")) or "tool",
            as_string(request.get("toolCallId")),
        )
        arguments = _given(request)
        if name == "apply_patch":
            uses += patch_uses(ToolUse(name, _patch_in(arguments), "edit", call_id))
        elif (
            name == "str_replace_editor"
            and isinstance(arguments, dict)
            and arguments.get("command") == "view"
        ):
            uses += tool_use(name, arguments, _ARGUMENTS, "read", call_id)
        else:
            uses += tool_use(name, arguments, _ARGUMENTS, _KINDS.get(name, "other"), call_id)
    return tuple(uses)


def _given(request: Record) -> object:
    """Return the arguments of a call; older versions store them as JSON in a string."""
    arguments = request.get("arguments")
    if isinstance(arguments, str) and arguments.startswith("{"):
        return next(iter(objects_in(arguments.encode())), arguments)
    return arguments


def _patch_in(arguments: object) -> str:
    """Return the patch given to a call, as the whole input or as its only argument."""
    return as_string(
        next(iter(arguments.values()), "") if isinstance(arguments, dict) else arguments
    )


def _directory_of(record: Record) -> str:
    data = record.get("data")
    if not isinstance(data, dict) or record.get("type") not in ("session.start", *_MOVES):
        return ""
    context = data.get("context") if record.get("type") != "session.context_changed" else data
    return as_string(context.get("cwd")) if isinstance(context, dict) else ""
