"""Decodes the lines of mirrors of OpenCode sessions; rows.py makes them from OpenCode 1.18's rows.

The first line is the `opencode_session`. Each other line is its `title`, a `part` of a message, a
`message` that has ended, or a note that something was `taken_back`."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, is_glued, objects_in
from ...transcripts.edits import patch_uses
from ...transcripts.entries import INTRODUCTION, Entry, ToolUse, tool_use, typed_by_person
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Event, Record

_TITLE_RANK = 2  # nothing distinguishes the user's title from a model's
_PART, _TITLE, _MESSAGE = b'{"type": "part"', b'{"type": "title"', b'{"type": "message"'
_GLUED = (b'}{"type": "', _PART, _TITLE)  # a record after another one on the same line
_TAKEN_BACK = b'{"type": "taken_back"'
_TOOL = b'"data": {"type": "tool"'
_QUESTION = b'"tool": "question"'
_REFUSED = b'"error": "The user rejected permission to use this specific tool call with '
_KINDS = {"edit": "edit", "write": "edit", "multiedit": "edit", "read": "read", "bash": "command"}
_PATCHES = ("apply_patch", "patch")
_ARGUMENTS = (
    "filePath",
    "command",
    "pattern",
    "url",
    "query",
    "description",
    "path",
    "prompt",
    "name",
)
_ROLES = ("user", "assistant")
_ENDED = ("stop", "length", "content-filter", "error")  # the reasons for which a model's turn ends


class OpenCodeRecords(records.Records):
    """A message comes part by part; the record after them says if the model's turn ends."""

    HEADER = "opencode_session"

    def __init__(self) -> None:
        self._first = f'{{"type": "{self.HEADER}"'.encode()

    CALL_MARK = b'"tool"'
    RESULT_KEY, NEXT_KEY = b'"output":', b'"input":'

    TITLE_MARKS = (b'"title"',)
    BEGINNINGS = (b'{"type": "',)

    THINKING = b'"reasoning"'

    def recognises(self, line: bytes) -> bool:
        return line.startswith((self._first, b'{"type": "part", "id": "prt_'))

    def open_transcript(self, first_line: bytes) -> MirroredSession:
        return MirroredSession(next(filter(self.owns, objects_in(first_line)), {}))

    def owns(self, record: Record) -> bool:
        return record.get("type") == self.HEADER

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (wanted.results and _TOOL in line)
            or (wanted.messages and self._may_say(line, wanted.calls))
            or (wanted.injected and b'"synthetic": true' in line)
            or (wanted.links and _PART in line)
            or (wanted.usage and _MESSAGE in line)
            or wanted.turns
        )

    def _may_say(self, line: bytes, with_calls: int) -> bool:
        """Return False for lines recognised as having no part and no title.

        Without calls, also return False for a tool's part."""
        if line.startswith(_PART):
            has_words = _QUESTION in line or _REFUSED in line
            return with_calls > 0 or _TOOL not in line or has_words or is_glued(line, *_GLUED)
        if line.startswith((_MESSAGE, b'{"type": "mirrored"', self._first, _TAKEN_BACK)):
            return is_glued(line, *_GLUED) or line[-1:] not in (b"}", b"\n")  # torn: it is counted
        return True

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind, data = record.get("type"), as_object(record.get("data"))
        if kind == "title":
            text = as_string(record.get("title")).strip()
            return (records.Title(_TITLE_RANK, text),) if text and not is_unnamed(text) else ()
        if kind != "part":
            return ()
        entry = self._said(record, offset)
        if entry is None and data.get("type") != "compaction":
            return ()
        return [entry or records.Compaction(), *self._answers(data, record, offset)]

    def results(self, record: Record) -> Iterable[Event]:
        data = as_object(record.get("data"))
        is_call = record.get("type") == "part" and data.get("type") == "tool"
        return _results(data) if is_call else ()

    def injected(self, record: Record) -> Iterable[Event]:
        data = as_object(record.get("data"))
        if record.get("type") != "part" or record.get("role") != "user":
            return ()
        if data.get("type") != "text" or data.get("synthetic") is not True:
            return ()
        text = as_string(data.get("text"))
        return (records.Injected((text,)),) if INTRODUCTION in text else ()

    def turns(self, record: Record) -> Iterable[Event]:
        kind, data = record.get("type"), as_object(record.get("data"))
        if kind == "message" and record.get("role") == "assistant":
            is_end = data.get("finish") in _ENDED and not record.get("summary")
            text = as_string(data.get("text"))
            return (records.Reply(as_string(record.get("id")), text, is_end),)
        entry = self._said(record, 0) if kind == "part" else None
        if entry is None:
            return ()
        if entry.role == "user":
            return (records.PromptId(entry.id),)
        return (records.Reply(entry.message_id, entry.text, False),)

    def is_interruption(self, record: Record) -> bool:
        return record.get("type") == "message" and "error" in as_object(record.get("data"))

    def usage(self, record: Record) -> Iterable[Event]:
        data = as_object(record.get("data"))
        is_answer = record.get("type") == "message" and record.get("role") == "assistant"
        return (_usage(data, record),) if is_answer and data else ()

    def links(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "part" or record.get("role") not in _ROLES:
            return ()
        message, parent = as_string(record.get("message")), as_string(record.get("parent"))
        return (records.ParentLink(message, parent, self._said(record, 0) is not None),)

    def _said(self, record: Record, offset: int) -> Entry | None:
        """Return the entry in a part of a message of the user or the model, else None."""
        if record.get("role") not in _ROLES:
            return None
        return self._entry(as_object(record.get("data")), record, offset)

    def _entry(self, data: Record, record: Record, offset: int) -> Entry | None:
        """Return the entry in a written text, a picture or a call.

        Return None for text that OpenCode and plugins added, for reasoning and for summaries."""
        kind, role = data.get("type"), as_string(record.get("role"))
        if record.get("summary") or data.get("synthetic") or data.get("ignored"):
            return None
        text = ""
        tools: tuple[ToolUse, ...] = ()
        if kind == "text":
            text = as_string(data.get("text")).strip()
            text = _as_typed(text) if role == "user" else text
        elif kind == "file" and role == "user" and as_string(data.get("mime")).startswith("image/"):
            text = "[image]"
        elif kind == "tool":
            tools = _uses(data)
        if text.startswith(INTRODUCTION) or (not text and not tools):
            return None
        part_id, message_id = _copied(record)
        return Entry(
            role,
            text,
            tools=tools,
            timestamp=self.time(record),
            id=part_id or as_string(record.get("id")),
            message_id=message_id or as_string(record.get("message")),
            offset=offset,
            cwd=as_string(record.get("cwd")),
            is_copy="copied" in record,
        )

    def _answers(self, data: Record, record: Record, offset: int) -> list[Event]:
        """Return the user's words in a call as their entry."""
        words, at = _words_of_result(data) if data.get("type") == "tool" else "", self.time(record)
        if not words:
            return []
        entry_id = f"{_copied(record)[0] or as_string(record.get('id'))}:answer"
        return [
            Entry(
                "user", words, timestamp=at, id=entry_id, offset=offset, is_copy="copied" in record
            )
        ]

    def thinking(self, record: Record) -> str:
        data = as_object(record.get("data"))
        return as_string(data.get("text")) if data.get("type") == "reasoning" else ""

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits, part_number, patch_edits

        data = as_object(record.get("data"))
        number = part_number(call_id, as_string(data.get("callID")))
        given = as_object(as_object(data.get("state")).get("input"))
        patch = _patch(as_string(data.get("tool")), given)
        if number is not None and patch:
            return patch_edits(patch, number)
        if number != 0:
            return []
        return argument_edits(given, "oldString", "newString", "content")

    def time(self, record: Record) -> float | None:
        return _seconds(record.get("time"))


def _seconds(milliseconds: object) -> float | None:
    """Return a time in seconds since 1970; None if the value is not a time."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < 1e15 else None


def _as_typed(prompt: str) -> str:
    """Return a prompt without the quotes that `opencode run` puts around an argument with
    spaces."""
    inside = prompt[1:-1].replace('\\"', "")
    is_quoted = prompt[:1] == prompt[-1:] == '"' and " " in inside and '"' not in inside
    return typed_by_person(prompt[1:-1].replace('\\"', '"') if is_quoted else prompt)


class MirroredSession(records.Branch):
    """A session; nothing in a sub-agent's session counts.

    An undone message is taken back by a later line, with all that followed. If it is redone, it
    appears again."""

    may_leave_out = True

    def __init__(self, header: Record) -> None:
        self.is_of_subagent = bool(header.get("parent"))
        self.directory = as_string(header.get("directory"))
        # The ids of the message and of the part from which on all was taken back.
        self._taken_from: tuple[str, str] | None = None

    def holds(self, line: bytes) -> bool:
        if is_taken_back(line):
            ids = ids_in(line)
            if ids[0]:
                self._taken_from = min(self._taken_from or ids, ids)
        elif (
            self._taken_from
            and line.startswith((_PART, _MESSAGE))
            and ids_in(line) >= self._taken_from
        ):
            return False
        return not self.is_of_subagent


def is_unnamed(title: str) -> bool:
    """Return whether a title is one of OpenCode's defaults."""
    return title.startswith(("New session - ", "Child session - "))


def is_taken_back(line: bytes) -> bool:
    """Check if a mirror's line withdraws an earlier one."""
    return line.startswith(_TAKEN_BACK)


def ids_in(line: bytes) -> tuple[str, str]:
    """Return the message's and part's ids of a line, or from which a line takes back.

    Return '' for a missing id."""
    record = next(iter(objects_in(line)), {})
    if record.get("type") == "message":
        return as_string(record.get("id")), ""
    return as_string(record.get("message")), as_string(record.get("id"))


def _results(data: Record) -> list[records.CallResult]:
    """Return how a call ended.

    A failed command is `completed` too; its exit code shows the failure."""
    state = as_object(data.get("state"))
    if state.get("status") not in ("completed", "error"):
        return []
    exit_code = as_object(state.get("metadata")).get("exit")
    has_failed = state["status"] == "error" or exit_code not in (None, 0)
    content = state.get("error") if state["status"] == "error" else state.get("output")
    has_run, time = state["status"] != "error", _seconds(as_object(state.get("time")).get("end"))
    return [
        records.CallResult(use.call_id, has_failed, content, has_run, time) for use in _uses(data)
    ]


def _words_of_result(data: Record) -> str:
    """Return the user's words in a call: their answers to its questions, or why they refused it."""
    state = as_object(data.get("state"))
    status, is_question = state.get("status"), data.get("tool") == "question"
    if status not in ("completed", "error") or (status == "completed" and not is_question):
        return ""
    from .. import _dialogs as dialogs

    if status == "error":
        return dialogs.words_in(as_string(state.get("error")))
    answers = as_object(state.get("metadata")).get("answers")
    return dialogs.answer_lists(answers) or dialogs.words_in(as_string(state.get("output")))


def _usage(data: Record, record: Record) -> ModelUsage:
    """Return the usage of a message. The input tokens do not include tokens from a cache."""
    from ...transcripts.usage import ModelUsage, amount

    tokens = as_object(data.get("tokens"))
    cache = tokens.get("cache")
    return ModelUsage(
        _copied(record)[1] or as_string(record.get("id")),
        as_string(data.get("modelID")),
        input=amount(tokens, "input"),
        output=amount(tokens, "output") + amount(tokens, "reasoning"),
        cached=amount(cache, "read"),
        written=amount(cache, "write"),
        is_copy="copied" in record,
    )


def _uses(data: Record) -> tuple[ToolUse, ...]:
    """Return the tool uses of a call; for a patch, one for each file."""
    name, call_id = as_string(data.get("tool")), as_string(data.get("callID"))
    given = as_object(data.get("state")).get("input")
    if name in _PATCHES and isinstance(given, dict):
        return patch_uses(ToolUse(name, _patch(name, given), "edit", call_id))
    return tool_use(name, given, _ARGUMENTS, _KINDS.get(name, "other"), call_id) if name else ()


def _patch(tool: str, given: Record) -> str:
    """Return the patch in a call's arguments; '' for a call of another tool."""
    patch = given.get("patchText") or given.get("input")
    return as_string(patch) if tool in _PATCHES else ""


def _copied(record: Record) -> tuple[str, str]:
    """Return the ids of the part and message that a fork copied; '' if unknown."""
    ids = as_list(record.get("copied"))
    return (as_string(ids[0]), as_string(ids[1])) if len(ids) == 2 else ("", "")
