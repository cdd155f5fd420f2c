"""Decodes the lines of mirrors of ATIF trajectories (see mirrors.py).

The first line is the session. Each other line is its title, a step, a result, or a note that
withdraws steps.
"""

from __future__ import annotations

from ....common.system.json import as_object, as_string, is_glued, objects_in, objects_of
from ....common.text.timestamps import epoch_seconds
from ...transcripts.edits import (
    argument_edits,
    part_id,
    part_number,
    patch_edits,
    patched_files,
)
from ...transcripts.entries import Entry, ToolUse, tool_use, typed_by_person
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Event, Record

SESSION, STEP, TITLE = "atif_session", "step", "title"
_TITLE_RANK = 2  # nothing distinguishes the user's title from a model's
_STEP, _RESULT, _TITLE = b'{"type": "step"', b'{"type": "result"', b'{"type": "title"'
_SESSION, _TAKEN_BACK = b'{"type": "atif_session"', b'{"type": "taken_back"'
_CONTEXT = b'"context": "'
_GLUED = (b'}{"type": "', _STEP, _TITLE)  # a record after another one on the same line
# Agents' names for their tools, by kind, in lower case; a call may state its kind itself.
_KINDS = {
    **dict.fromkeys(
        (
            "edit",
            "write",
            "multiedit",
            "replace",
            "write_file",
            "apply_patch",
            "create",
            "str_replace_editor",
            "str_replace_based_edit_tool",
            "edit_file",
            "search_replace",
            "patch",
            "create_file",
        ),
        "edit",
    ),
    **dict.fromkeys(("read", "read_file", "read_many_files", "view", "open_file", "cat"), "read"),
    **dict.fromkeys(
        (
            "bash",
            "shell",
            "exec",
            "exec_command",
            "shell_command",
            "local_shell",
            "run_shell_command",
            "terminal",
            "bash_command",
            "execute_bash",
            "run_command",
            "execute_command",
            "container.exec",
        ),
        "command",
    ),
}
_ARGUMENTS = (
    "file_path",
    "filePath",
    "absolute_path",
    "command",
    "cmd",
    "keystrokes",
    "pattern",
    "url",
    "query",
    "description",
    "path",
    "prompt",
    "name",
)
_TEXTS = (
    ("old_string", "new_string", "content"),
    ("old_str", "new_str", "file_text"),
    ("oldString", "newString", "content"),
    ("oldText", "newText", "content"),
    ("search", "replace", "contents"),
)
_FAILED = ("is_error", "tool_result_is_error")


class AtifRecords(records.Records):
    """Decodes records: each step continues the one before, and has its calls and usage inside."""

    TITLE_MARKS = (b'"title"',)
    BEGINNINGS = (b'{"type": "',)
    THINKING = b'"reasoning_content"'

    def recognises(self, line: bytes) -> bool:
        return line.startswith((_SESSION, b'{"type": "step", "id": "'))

    def owns(self, record: Record) -> bool:
        return record.get("type") == SESSION or (record.get("type") == STEP and "number" in record)

    def open_transcript(self, first_line: bytes) -> MirroredTrajectory:
        return MirroredTrajectory(next(iter(objects_in(first_line)), {}))

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        is_step = line.startswith(_STEP)
        return bool(
            (wanted.results and line.startswith(_RESULT))
            or (wanted.messages and _may_say(line))
            or ((wanted.links or wanted.turns) and is_step)
            or (wanted.usage and is_step and b'"metrics"' in line)
        )

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind = record.get("type")
        if kind == TITLE:
            title = as_string(record.get("title")).strip()
            return (records.Title(_TITLE_RANK, title),) if title else ()
        if kind != STEP:
            return ()
        entry = _entry(record, offset)
        if entry is not None:
            return (entry,)
        management = as_object(record.get("context_management"))
        return (records.Compaction(),) if management.get("type") == "compaction" else ()

    def results(self, record: Record) -> Iterable[Event]:
        is_result = record.get("type") == "result" and as_string(record.get("id"))
        return (_result(record),) if is_result else ()

    def turns(self, record: Record) -> Iterable[Event]:
        return records.turn_of(_entry(record, 0) if record.get("type") == STEP else None)

    def usage(self, record: Record) -> Iterable[Event]:
        metrics = record.get("metrics") if record.get("type") == STEP else None
        return (_usage(metrics, record),) if isinstance(metrics, dict) else ()

    def links(self, record: Record) -> Iterable[Event]:
        is_said = record.get("type") == STEP and _entry(record, 0) is not None
        return (records.ParentLink("", "", True),) if is_said else ()

    def thinking(self, record: Record) -> str:
        return as_string(record.get("reasoning_content"))

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        for call in objects_of(record.get("tool_calls")):
            given = as_object(call.get("arguments"))
            number = part_number(call_id, as_string(call.get("tool_call_id")))
            if number is not None and (patch := _patch(given)):
                return patch_edits(patch, number)
            if number == 0:
                return next(
                    (edits for keys in _TEXTS if (edits := argument_edits(given, *keys))), []
                )
        return []


class HeadedRecords(AtifRecords):
    """Decodes mirrors of another runtime: a first line of the type HEADER, then a trajectory.

    A step may have the text that hooks added to a prompt."""

    HEADER = ""

    def recognises(self, line: bytes) -> bool:
        return line.startswith(b'{"type": "%b"' % self.HEADER.encode())

    def owns(self, record: Record) -> bool:
        return record.get("type") == self.HEADER

    def open_transcript(self, first_line: bytes) -> MirroredTrajectory:
        header = next(iter(objects_in(first_line)), {})
        return MirroredTrajectory({**header, "type": SESSION} if self.owns(header) else header)

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return super().may_hold(line, wanted) or bool(wanted.injected and _CONTEXT in line)

    def injected(self, record: Record) -> Iterable[Event]:
        text = as_string(record.get("context")) if record.get("type") == STEP else ""
        return (records.Injected((text,)),) if text else ()


def _may_say(line: bytes) -> bool:
    """Return False for lines recognised as having no step and no title."""
    if line.startswith((_RESULT, b'{"type": "mirrored"', _SESSION, _TAKEN_BACK)):
        return is_glued(line, *_GLUED) or line.rstrip()[-1:] != b"}"  # torn: it is counted
    return True


class MirroredTrajectory(records.Branch):
    """A trajectory whose steps may have been withdrawn; a sub-agent's has no content."""

    may_leave_out = True

    def __init__(self, header: Record) -> None:
        self.is_of_subagent = header.get("type") == SESSION and bool(header.get("parent_id"))
        self.directory = as_string(header.get("cwd")) if header.get("type") == SESSION else ""
        self.forked_from = as_string(header.get("forked_from"))
        self.copied_until = epoch_seconds(header["forked_at"]) if self.forked_from else None
        self._taken_from: int | None = None

    def holds(self, line: bytes) -> bool:
        if line.startswith(_TAKEN_BACK):
            number = _number(line)
            self._taken_from = number if self._taken_from is None else min(self._taken_from, number)
        elif self._taken_from is not None and line.startswith((_STEP, _RESULT)):
            return _number(line) < self._taken_from
        return not self.is_of_subagent


def _number(line: bytes) -> int:
    number = next(iter(objects_in(line)), {}).get("number")
    return number if isinstance(number, int) else 0


def _entry(record: Record, offset: int) -> Entry | None:
    """Return the entry for a user's or agent's step; None for text that the system added."""
    source = record.get("source")
    if source not in ("user", "agent"):
        return None
    text, _ = records.said_and_called(record.get("message"), (), "", {}, ())
    text = typed_by_person(text) if source == "user" else text
    tools = (
        [use for call in objects_of(record.get("tool_calls")) for use in _uses(call)]
        if source == "agent"
        else []
    )
    if not text and not tools:
        return None
    return Entry(
        "user" if "user" in (source, record.get("role")) else "assistant",
        text,
        tools=tuple(tools),
        timestamp=epoch_seconds(record.get("timestamp")),
        id=as_string(record.get("id")),
        message_id=as_string(record.get("message_id")),
        offset=offset,
        cwd=as_string(record.get("cwd")),
    )


def _patch(arguments: Record) -> str:
    """Return the patch in a call's arguments; '' if there is none."""
    texts = [arguments.get(key) for key in ("input", "patch", "patchText")]
    return next((text for text in texts if isinstance(text, str) and patched_files(text)), "")


def _uses(call: Record) -> tuple[ToolUse, ...]:
    """Return the tool uses of a call; for a patch, one for each file.

    A call may state its kind and its argument itself."""
    name, call_id, given = (call.get(key) for key in ("function_name", "tool_call_id", "arguments"))
    name, call_id, extra = (
        as_string(name) or "tool",
        as_string(call_id),
        as_object(call.get("extra")),
    )
    kind = extra.get("kind") if extra.get("kind") in ("edit", "read", "command", "other") else None
    argument = extra.get("argument", as_object(given).get(as_string(extra.get("argument_key"))))
    if isinstance(argument, str):
        return (ToolUse(name, argument, kind or "other", call_id),)
    if patch := _patch(as_object(given)):
        paths = patched_files(patch)
        return tuple(
            [ToolUse(name, path, "edit", part_id(call_id, at)) for at, path in enumerate(paths)]
        )
    return tool_use(name, given, _ARGUMENTS, kind or _KINDS.get(name.lower(), "other"), call_id)


def _result(record: Record) -> records.CallResult:
    """Return how a call ended, if its agent recorded it."""
    extra = as_object(record.get("extra"))
    has_failed = any([extra.get(key) is True for key in _FAILED]) or extra.get(
        "exit_code", 0
    ) not in (0, None)
    has_run = extra.get("has_run") is not False
    return records.CallResult(as_string(record["id"]), has_failed, record.get("content"), has_run)


def _usage(metrics: Record, record: Record) -> ModelUsage:
    """Return the usage of an answer.

    The prompt's tokens include cached tokens and tokens written to a cache."""
    from ...transcripts.usage import ModelUsage, amount

    cached, extra, dollars = (
        amount(metrics, "cached_tokens"),
        metrics.get("extra"),
        metrics.get("cost_usd"),
    )
    written, for_an_hour = (
        amount(extra, "cache_creation_input_tokens"),
        amount(extra, "cache_creation_1h_tokens"),
    )
    return ModelUsage(
        as_string(as_object(extra).get("answer_id")) or as_string(record.get("id")),
        as_string(record.get("model")),
        input=max(0, amount(metrics, "prompt_tokens") - cached - written),
        output=amount(metrics, "completion_tokens"),
        cached=cached,
        written=written - min(written, for_an_hour),
        written_for_an_hour=min(written, for_an_hour),
        dollars=float(dollars)
        if isinstance(dollars, (int, float)) and 0 <= dollars < 1e9
        else None,
    )
