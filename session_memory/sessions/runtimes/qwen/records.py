"""Decodes the lines of chats of Qwen Code 0.11 to 0.24."""

from __future__ import annotations

from ....common.system.json import as_object, as_string, is_glued, objects_of
from ....common.text.timestamps import epoch_seconds
from ...transcripts.entries import INTRODUCTION, Entry, ToolUse, tool_use
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Decode, Event, Record

_TITLE_RANK = 3
HEAD_BYTES = 600  # of a line, in which its type shows
_GLUED = b'{"uuid":"'  # a record after another one on the same line
_KINDS = {"edit": "edit", "write_file": "edit", "read_file": "read", "run_shell_command": "command"}
_ARGUMENTS = (
    "file_path",
    "command",
    "pattern",
    "url",
    "query",
    "description",
    "path",
    "prompt",
    "name",
)
# Subtypes of a user's texts that nobody typed, in older versions, which do not state a text's
# origin.
_PUT_IN = ("slash_command", "goal_runtime", "notification", "cron")
# Commands whose argument is a value, not the user's words.
_WITH_VALUES = """
    approval-mode auth chat clear delete directory doctor editor effort export extensions help hooks ide insight
    language lsp mcp memory model permissions rename restore resume rewind settings skills stats statusline tasks
    terminal-setup theme tools trust vim
"""
_SETTINGS = frozenset(_WITH_VALUES.split())
_DIALOGS = ("ask_user_question", "exit_plan_mode")  # tools whose results contain the user's words
_DIALOG_NAMES = tuple([b'"name":"%s"' % name.encode() for name in _DIALOGS])
_RESULT = b"tool_result"
_INJECTED = "<qwen:"  # how a part begins that Qwen Code or a hook put in


class QwenCodeRecords(records.Records):
    """A chat that is not a tree: every record counts."""

    CALL_MARK = b'functionCall"'

    TITLE_MARKS = (b'"custom_title"',)
    BEGINNINGS = (b'{"uuid":"',)

    THINKING = b'"thought":'

    def recognises(self, line: bytes) -> bool:
        return line.startswith(b'{"uuid":"') and (
            b'"provenance":"' in line or b'","parts":[' in line
        )

    def owns(self, record: Record) -> bool:
        return "uuid" in record and (
            "provenance" in record or "parts" in as_object(record.get("message"))
        )

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (wanted.results and b'"functionResponse"' in line)
            or (wanted.messages and _may_say(line, wanted.calls))
            or (wanted.injected and b'"hookContext":"' in line)
            or (wanted.links and b'"uuid":"' in line)
            or (wanted.usage and b'qwen-code.api_response"' in line)
            or wanted.turns
        )

    def results_in(self, line: bytes, decode: Decode) -> list[records.CallResult] | None:
        """Return the results in a line of only results without the user's words, else None."""
        at = line.find(b'"type":"', 0, HEAD_BYTES)
        if at < 0 or not line.startswith(_RESULT, at + 8) or _may_say_in_result(line):
            return None
        values, unreadable = decode(line)
        record = as_object(values[0]) if len(values) == 1 else {}
        is_usual = record.get("type") == "tool_result" and not record.get("isSidechain")
        if unreadable or not is_usual or _answers(record, 0):
            return None
        return _results(record)

    def counts(self, record: Record, *, of_sub_agents: bool) -> bool:
        return of_sub_agents or record.get("type") == "system" or not record.get("isSidechain")

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind, payload = record.get("type"), as_object(record.get("systemPayload"))
        if kind == "user" or kind == "assistant":
            entry = _entry(kind, record, payload, offset)
            if entry is not None:
                return (entry,)
        elif kind == "tool_result":
            return _answers(record, offset)
        return _of_system(record, payload, offset)

    def results(self, record: Record) -> Iterable[Event]:
        return _results(record) if record.get("type") == "tool_result" else ()

    def injected(self, record: Record) -> Iterable[Event]:
        given = as_object(record.get("systemPayload")).get("hookContext")
        if record.get("type") != "user" or not isinstance(given, str):
            return ()
        # Qwen Code escapes angle brackets before it passes the text on and records it.
        return (records.Injected((given.replace("&lt;", "<").replace("&gt;", ">"),)),)

    def turns(self, record: Record) -> Iterable[Event]:
        kind, payload = record.get("type"), as_object(record.get("systemPayload"))
        if kind == "user":
            return (records.PromptId(as_string(record.get("uuid"))),)
        if kind != "assistant" or record.get("isSidechain"):
            return ()
        entry = _entry(kind, record, payload, 0)
        return () if entry is None else (records.Reply(entry.id, entry.text, not entry.tools),)

    def usage(self, record: Record) -> Iterable[Event]:
        event = as_object(as_object(record.get("systemPayload")).get("uiEvent"))
        is_answer = event.get("event.name") == "qwen-code.api_response"
        return (_usage(event, record),) if is_answer else ()

    def links(self, record: Record) -> Iterable[Event]:
        if not isinstance(record.get("uuid"), str):
            return ()
        is_message = record.get("type") in ("user", "assistant")
        parent = as_string(record.get("parentUuid"))
        return (records.ParentLink(record["uuid"], parent, is_message),)

    def thinking(self, record: Record) -> str:
        return "\n\n".join(
            [as_string(part.get("text")) for part in _parts(record) if part.get("thought")]
        )

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits

        for part in _parts(record):
            call = as_object(part.get("functionCall"))
            if call.get("id") == call_id:
                return argument_edits(call.get("args"), "old_string", "new_string", "content")
        return []


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False for lines recognised as telemetry, snapshots and results, most of a chat.

    Without calls, also return False for lines that show that they have no text."""
    at = line.find(b'"type":"', 0, HEAD_BYTES)
    if at < 0:
        return True
    if line.startswith(b"system", at + 8):
        at = line.find(b'"subtype":"', at, HEAD_BYTES + 400)
        is_known = line.startswith(
            (b"custom_title", b"chat_compression", b"slash_command"), at + 11
        )
        return at < 0 or is_known or is_glued(line, _GLUED)
    if line.startswith(_RESULT, at + 8):
        return _may_say_in_result(line)
    return with_calls > 0 or b'"text":"' in line or is_glued(line, _GLUED)


def _may_say_in_result(line: bytes) -> bool:
    """Check if the results in a line may have the user's words, or another record."""
    return is_glued(line, _GLUED) or any([name in line for name in _DIALOG_NAMES])


def _entry(kind: str, record: Record, payload: Record, offset: int) -> Entry | None:
    """Return the entry in a `user` or `assistant` record, without hooks' text and thoughts."""
    if record.get("provenance", "real_user") not in ("real_user", "assistant_output"):
        return None
    if "provenance" not in record and record.get("subtype") in _PUT_IN:
        return None
    text, tools = _content(_parts(record))
    if kind == "user":
        text, tools = records.typed_or_run(as_string(payload.get("displayText")).strip() or text)
    return _new_entry(kind, text, tools, record, offset) if text or tools else None


def _command(payload: Record) -> str:
    """Return a slash command as the user typed it, if it has words.

    Qwen Code turns it into a different prompt."""
    text = as_string(payload.get("rawCommand")).strip()
    name, _, words = text.partition(" ")
    is_typed = payload.get("phase") == "invocation" and not payload.get("hiddenInvocation")
    return text if is_typed and words.strip() and name[1:] not in _SETTINGS else ""


def _of_system(record: Record, payload: Record, offset: int) -> list[Event]:
    """Return the event in a system record: a command's words, a title or a compaction."""
    subtype = record.get("subtype")
    if subtype == "slash_command":
        text = _command(payload) if record.get("type") == "system" else ""
        return [_new_entry("user", text, (), record, offset)] if text else []
    if subtype == "custom_title" and payload:
        return [records.Title(_TITLE_RANK, as_string(payload.get("customTitle")).strip())]
    return [records.Compaction()] if subtype == "chat_compression" else []


def _answers(record: Record, offset: int) -> list[Event]:
    """Return the user's words in a result: answers to questions, or reasons to refuse a plan."""
    results = [as_object(part.get("functionResponse")) for part in _parts(record)]
    outputs = [
        as_object(result.get("response")) for result in results if result.get("name") in _DIALOGS
    ]
    if not outputs:
        return []
    from .. import _dialogs as dialogs

    texts = [
        dialogs.words_in(as_string(output.get("output", output.get("error")))) for output in outputs
    ]
    text = "\n\n".join([text for text in texts if text])
    return [_new_entry("user", text, (), record, offset)] if text else []


def _new_entry(
    kind: str, text: str, tools: tuple[ToolUse, ...], record: Record, offset: int
) -> Entry:
    return Entry(
        kind,
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=records.copied_id(record, "messageUuid") or as_string(record.get("uuid")),
        offset=offset,
        cwd=as_string(record.get("cwd")),
        is_copy="forkedFrom" in record,
        origin=records.copied_id(record, "sessionId") or as_string(record.get("sessionId")),
    )


def _results(record: Record) -> list[records.CallResult]:
    """Return the results in a `tool_result` record.

    A failed call has an `error` instead of an `output`. A hook's text about the failure comes after
    it and is left out."""
    given = [
        part["functionResponse"]
        for part in _parts(record)
        if isinstance(part.get("functionResponse"), dict)
    ]
    result = as_object(record.get("toolCallResult"))
    has_run = result.get("executionStatus") != "not_started" and result.get("status") != "cancelled"
    results = []
    for response_part in given:
        response = as_object(response_part.get("response"))
        content = response.get("error", response.get("output"))
        if "error" in response and isinstance(content, str):
            content = content.partition(f"\n\n{INTRODUCTION}")[0]
        results.append(
            records.CallResult(
                as_string(response_part.get("id")), "error" in response, content, has_run
            )
        )
    return results


def _usage(event: Record, record: Record) -> ModelUsage:
    """Return the usage of an answer, from the telemetry after it.

    Tokens from a cache are part of the input tokens. Thoughts count as output, wherever the
    provider counts them."""
    from ...transcripts.usage import ModelUsage, amount

    read, cached = amount(event, "input_token_count"), amount(event, "cached_content_token_count")
    return ModelUsage(
        f"{event.get('response_id')} {event.get('event.timestamp')}",
        as_string(event.get("model")),
        input=max(0, read - cached),
        output=max(amount(event, "output_token_count"), amount(event, "total_token_count") - read),
        cached=cached,
        is_copy=bool(records.copied_id(record, "messageUuid")),
    )


def _parts(record: Record) -> list[Record]:
    return objects_of(as_object(record.get("message")).get("parts"))


def _content(parts: list[Record]) -> tuple[str, tuple[ToolUse, ...]]:
    texts: list[str] = []
    tools: list[ToolUse] = []
    for part in parts:
        if part.get("thought"):
            continue
        text = part.get("text")
        call = part.get("functionCall")
        if isinstance(text, str):
            texts.append("" if text.lstrip().startswith(_INJECTED) else text.strip())
        elif "inlineData" in part or "fileData" in part:
            texts.append("[image]")
        elif isinstance(call, dict):
            name = as_string(call.get("name")) or "tool"
            tools += tool_use(
                name,
                call.get("args"),
                _ARGUMENTS,
                _KINDS.get(name, "other"),
                as_string(call.get("id")),
            )
    return "\n\n".join([text for text in texts if text]), tuple(tools)
