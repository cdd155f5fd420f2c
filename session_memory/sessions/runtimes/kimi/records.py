"""Decodes the lines of sessions of Kimi Code 2.1.

Each prompt is in three records and each answer in two; only those that are written first count."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, is_glued, objects_in, objects_of
from ...transcripts.entries import INTRODUCTION, Entry, ToolUse, tool_use, typed_by_person
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Decode, Event, Record

_PROMPT = b'{"type":"turn.prompt",'
_STEER = b'{"type":"turn.steer",'
_LOOP = b'{"type":"context.append_loop_event",'
_BOUND = b'{"type":"profile.bind",'
_COMPACTED = b'{"type":"full_compaction.complete"'
_USAGE = b'{"type":"usage.record",'
_GLUED = (_PROMPT, _LOOP, _USAGE)  # a record after another one on the same line
_KIND = b'"event":{"type":"'  # of an event of the loop, in the first bytes of its line
_KIND_BYTES = 160
_RESULT = b"tool.result"
_TEXT = b'"part":{"type":"text"'
_DIRECTORY = b'"environmentDisclosure"'
_MESSAGE = b'{"type":"context.append_message",'
_HOOK = b'"kind":"hook_result"'
# around the output of each hook that ran with a prompt, in one text of all of them
_TOLD, _TOLD_END = '<hook_result hook_event="UserPromptSubmit">\n', "\n</hook_result>"
_MAIN = "main"
_PROMPTS = ("turn.prompt", "turn.steer")
_KINDS = {"Edit": "edit", "Write": "edit", "Read": "read", "Bash": "command"}
_ARGUMENTS = ("path", "command", "pattern", "url", "query", "prompt", "description", "name")


class KimiCodeRecords(records.Records):
    """The log of one agent; a sub-agent has its own."""

    CALL_MARK = b'"tool.call"'
    BEGINNINGS = (b'{"type":"', b'{"message":{"message":', b'{"turnId":')
    THINKING = b'"think":'

    def recognises(self, line: bytes) -> bool:
        if b'"protocol_version"' in line[:200]:
            return b'"created_at"' in line and b'"metadata"' in line
        return line.startswith((_PROMPT, _LOOP, _BOUND)) and b'"agentId":"' in line

    def owns(self, record: Record) -> bool:
        kind = record.get("type")
        if kind == "metadata":
            return "protocol_version" in record
        return "agentId" in record and kind in (*_PROMPTS, "context.append_loop_event")

    def open_transcript(self, first_line: bytes) -> KimiSession:
        return KimiSession(first_line)

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        if wanted.links or wanted.turns or is_glued(line, *_GLUED):
            return True
        kind = _kind_in(line)
        return bool(
            (wanted.results and kind.startswith(_RESULT))
            or (wanted.injected and _HOOK in line and line.startswith(_MESSAGE))
            or (wanted.usage and line.startswith(_USAGE))
            or (wanted.messages and _may_say(line, kind, wanted.calls))
        )

    def results_in(self, line: bytes, decode: Decode) -> list[records.CallResult] | None:
        """Return the result in a line of only a result, else None."""
        if not _kind_in(line).startswith(_RESULT) or is_glued(line, *_GLUED):
            return None
        values, unreadable = decode(line)
        record = as_object(values[0]) if len(values) == 1 else {}
        is_whole = not unreadable and self.counts(record, of_sub_agents=False)
        return _results(record) or None if is_whole else None

    def counts(self, record: Record, *, of_sub_agents: bool) -> bool:
        return of_sub_agents or record.get("agentId", _MAIN) == _MAIN

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind = record.get("type")
        if kind == "full_compaction.complete":
            return (records.Compaction(),)
        entry = _prompt(record, offset) if kind in _PROMPTS else _entry(record, offset)
        return () if entry is None else (entry,)

    def results(self, record: Record) -> Iterable[Event]:
        return _results(record)

    def calls_and_results(
        self, record: Record
    ) -> Iterable[ToolUse | records.CallResult | records.Approval]:
        """Return also the request for an approval; the call is written once it is approved."""
        kind = record.get("type")
        if kind == "interaction.resolved" or record.get("kind") == "approval":
            id, is_answered = as_string(record.get("id")), kind == "interaction.resolved"
            return (records.Approval(id, is_answered),)
        return super().calls_and_results(record)

    def injected(self, record: Record) -> Iterable[Event]:
        """Return the outputs of the hooks that ran with a prompt, in the message before it."""
        message = as_object(record.get("message"))
        if as_object(message.get("origin")).get("kind") != "hook_result":
            return ()
        shown = [as_string(part.get("text")) for part in objects_of(message.get("content"))]
        texts = [text for each in shown for text in each.split(f"{_TOLD_END}\n{_TOLD}")]
        outputs = [text.removeprefix(_TOLD).removesuffix(_TOLD_END) for text in texts]
        return (records.Injected(tuple(outputs)),) if outputs else ()

    def turns(self, record: Record) -> Iterable[Event]:
        """Return a prompt, a part of a reply, or the end of a reply's turn."""
        if not self.counts(record, of_sub_agents=False):
            return ()
        if record.get("type") in _PROMPTS:
            prompt = _prompt(record, 0)
            return () if prompt is None else (records.PromptId(prompt.id),)
        event = _event(record)
        if event.get("type") == "step.end" and event.get("finishReason") == "end_turn":
            return (records.Reply(as_string(event.get("uuid")), "", True),)
        entry = _entry(record, 0)
        return () if entry is None else (records.Reply(entry.message_id, entry.text, False),)

    def is_interruption(self, record: Record) -> bool:
        return record.get("type") == "turn.ended" and record.get("reason") == "cancelled"

    def usage(self, record: Record) -> Iterable[Event]:
        return (_usage(record),) if record.get("type") == "usage.record" else ()

    def links(self, record: Record) -> Iterable[Event]:
        is_message = record.get("type") in _PROMPTS or _entry(record, 0) is not None
        return (records.ParentLink("", "", True),) if is_message else ()

    def thinking(self, record: Record) -> str:
        return as_string(as_object(_event(record).get("part")).get("think")).strip()

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits

        event = _event(record)
        is_call = event.get("type") == "tool.call" and event.get("toolCallId") == call_id
        given = event.get("args") if is_call else None
        return argument_edits(given, "old_string", "new_string", "content")

    def time(self, record: Record) -> float | None:
        return _seconds(record)


class KimiSession(records.Branch):
    """The directory of an agent, and whether the agent is a sub-agent.

    Both are in the lines that follow the first one. A fork is a copy of all lines, without a mark
    in the first ones."""

    def __init__(self, head: bytes) -> None:
        for line in head.split(b"\n"):
            for record in objects_in(line) if _DIRECTORY in line else ():
                self.note(record)

    def note(self, record: Record) -> None:
        if record.get("type") == "profile.bind":
            place = as_object(record.get("environmentDisclosure"))
            self.directory = as_string(place.get("cwd")) or self.directory


def _kind_in(line: bytes) -> bytes:
    """Return the bytes from the kind of an event of the loop on; b"" for another line."""
    at = line.find(_KIND, 0, _KIND_BYTES) if line.startswith(_LOOP) else -1
    return line[at + len(_KIND) : at + len(_KIND) + 16] if at >= 0 else b""


def _may_say(line: bytes, kind: bytes, with_calls: int) -> bool:
    if line.startswith(_LOOP):
        if kind.startswith((_RESULT, b"step.")):
            return False
        return with_calls > 0 or _TEXT in line
    return line.startswith((_PROMPT, _STEER, _BOUND, _COMPACTED))


def _event(record: Record) -> Record:
    is_event = record.get("type") == "context.append_loop_event"
    return as_object(record.get("event")) if is_event else {}


def _seconds(record: Record) -> float | None:
    at = record.get("time")
    return at / 1000 if isinstance(at, int | float) and 0 < at < 1e14 else None


def _prompt(record: Record, offset: int) -> Entry | None:
    """Return what the user typed; None for a prompt that a program made."""
    if as_object(record.get("origin")).get("kind") != "user":
        return None
    parts = objects_of(record.get("input"))
    text, _ = records.said_and_called(parts, (), "", {}, ())
    text = typed_by_person(text)
    steering = as_list(record.get("promptIds"))
    id = as_string(record.get("promptId") or (steering[0] if steering else ""))
    return Entry("user", text, timestamp=_seconds(record), id=id, offset=offset) if text else None


def _entry(record: Record, offset: int) -> Entry | None:
    """Return a part of an answer: a text or a call."""
    event = _event(record)
    part = as_object(event.get("part"))
    is_text = event.get("type") == "content.part" and part.get("type") == "text"
    text = as_string(part.get("text")).strip() if is_text else ""
    tools: tuple[ToolUse, ...] = ()
    if event.get("type") == "tool.call":
        name = as_string(event.get("name")) or "tool"
        call_id = as_string(event.get("toolCallId"))
        kind = _KINDS.get(name, "other")
        tools = tool_use(name, event.get("args"), _ARGUMENTS, kind, call_id)
    if not text and not tools:
        return None
    return Entry(
        "assistant",
        text,
        tools=tools,
        timestamp=_seconds(record),
        id=as_string(event.get("uuid")),
        message_id=as_string(event.get("stepUuid")),
        offset=offset,
    )


def _results(record: Record) -> list[records.CallResult]:
    event = _event(record)
    if event.get("type") != "tool.result":
        return []
    result = as_object(event.get("result"))
    output, has_failed = result.get("output"), result.get("isError") is True
    is_refused = has_failed and isinstance(output, str) and output.startswith(INTRODUCTION)
    call_id = as_string(event.get("toolCallId"))
    output = "" if is_refused else output
    return [records.CallResult(call_id, has_failed, output, not is_refused, _seconds(record))]


def _usage(record: Record) -> ModelUsage:
    from ...transcripts.usage import ModelUsage, amount

    usage = as_object(record.get("usage"))
    return ModelUsage(
        f"{record.get('agentId')} {record.get('time')}",
        as_string(record.get("model")),
        input=amount(usage, "inputOther"),
        output=amount(usage, "output"),
        cached=amount(usage, "inputCacheRead"),
        written=amount(usage, "inputCacheCreation"),
    )
