"""Decodes the lines of rollouts of Codex 0.77 to 0.171, and from before September 2025.

A rollout shows a turn twice: as the model saw it (`response_item`) and, in later versions (0.169,
not yet 0.140), as a person saw it (`item_completed`). If the model writes JavaScript that calls the
tools, only the second view names commands and files. Lines of these versions have an `ordinal`;
then the person's view is read, else the model's."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, is_glued, objects_in
from ....common.text.timestamps import epoch_seconds
from ...transcripts.entries import Entry, ToolUse, tool_use
from .. import records
from .content import (
    ANSWERS,
    ARGUMENTS,
    answered,
    calls_in,
    change_id,
    changes_of,
    decoded,
    entry_of_item,
    failed_patch,
    has_failed,
    has_run,
    joined_text,
    new_entry,
    own_command,
    results_of_item,
    shell_line,
    texts_of,
    told_directory,
    typed_text,
    wrapped,
)
from .scripts import patches_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit, Hunk
    from ...transcripts.usage import ModelUsage
    from ..records import Event, Record

_ANSWERS = ANSWERS.replace('"', '\\"').encode()  # in a line
HEAD_BYTES = 200  # of a line, in which its type and its payload's show
_GLUED = b'{"timestamp":"'  # a record after another one on the same line


class CodexRecords(records.Records):
    """A rollout that is not a tree and keeps cancelled messages.

    Each message continues the one before it. Names are in an index beside the rollouts."""

    RESULT_KEY, NEXT_KEY = b'"aggregated_output":', b'"payload":'
    BEGINNINGS = (b'{"timestamp":"', b'{"type":"', b'{"id":"')

    THINKING = b'"type":"reasoning"'

    def recognises(self, line: bytes) -> bool:
        head = line[:HEAD_BYTES]
        if (
            head.startswith(b'{"id":"')
            and b'","timestamp":"' in head[:60]
            and b'","instructions":' in head
        ):
            return True
        kinds = (b'"type":"session_meta","payload":', b'"type":"response_item","payload":')
        return head.startswith(b'{"timestamp":"') and any([kind in head for kind in kinds])

    def open_transcript(self, first_line: bytes) -> CodexRollout:
        header = next(iter(objects_in(first_line)), {})
        if not header:  # it is longer than the part that was read
            _, _, time_text = first_line[:HEAD_BYTES].partition(b'"timestamp":"')
            header = {"timestamp": time_text.partition(b'"')[0].decode("utf-8", "replace")}
        payload = header.get("payload") if header.get("type") == "session_meta" else header
        return CodexRollout(as_object(payload), header)

    def owns(self, record: Record) -> bool:
        is_first = "instructions" in record and "timestamp" in record
        return is_first or (
            record.get("type") in ("session_meta", "response_item") and "payload" in record
        )

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (wanted.results and _may_bring_results(line))
            or (wanted.messages and _may_say(line, wanted.calls))
            or (wanted.injected and b'"role":"developer"' in line)
            or (wanted.links and b'"type":"message"' in line)
            or (
                wanted.usage
                and (b'"type":"token_count"' in line or b'"type":"turn_context"' in line)
            )
            or wanted.turns
        )

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        if record.get("type") == "compacted":
            return (records.Compaction(),)
        entry = _entry_in(record, offset)
        return () if entry is None else (entry,)

    def results(self, record: Record) -> Iterable[Event]:
        kind, payload = _opened(record)
        if kind == "response_item":
            return _results_of_model(payload) if "ordinal" not in record else ()
        if kind != "event_msg":
            return ()
        if payload.get("type") == "item_completed":
            return results_of_item(as_object(payload.get("item")))
        if payload.get("type") == "patch_apply_end" and "ordinal" not in record:
            return failed_patch(payload)
        return ()

    def calls_and_results(
        self, record: Record
    ) -> Iterable[ToolUse | records.CallResult | records.Approval]:
        """Return the model's calls and their results: the person's view has them at their end."""
        kind, payload = _opened(record)
        if kind != "response_item":
            entry = _entry_in(record, 0)
            tools = entry.tools if entry else ()
            return tuple(records.CallResult(tool.call_id, False, "") for tool in tools)
        if as_string(payload.get("type")).endswith("_call_output"):
            call_id, output = as_string(payload.get("call_id")), payload.get("output")
            return (records.CallResult(call_id, False, output),)
        call_id = as_string(payload.get("call_id"))
        uses = [use.with_id(call_id) for use in calls_in(payload)]
        return uses or _unnamed_call(payload, call_id)

    def is_interruption(self, record: Record) -> bool:
        kind, payload = _opened(record)
        return kind == "event_msg" and payload.get("type") == "turn_aborted"

    def injected(self, record: Record) -> Iterable[Event]:
        kind, payload = _opened(record)
        # old versions do not record hooks
        if kind != "response_item" or payload is record or payload.get("role") != "developer":
            return ()
        return (records.Injected(tuple(texts_of(payload.get("content")))),)

    def turns(self, record: Record) -> Iterable[Event]:
        kind, payload = _opened(record)
        if kind == "event_msg" and payload.get("type") == "task_complete":
            text = as_string(payload.get("last_agent_message"))  # repeats the last message
            return (records.Reply(as_string(payload.get("turn_id")), text, True),)
        entry = _entry_in(record, 0)
        if entry is None:
            return ()
        if entry.role == "user":
            return (records.PromptId(entry.id),)
        return (records.Reply(entry.id, entry.text, False),)  # another record ends the turn

    def usage(self, record: Record) -> Iterable[Event]:
        kind, payload = _opened(record)
        if kind == "event_msg" and payload.get("type") == "token_count":
            return _usage(payload, record)
        if kind != "turn_context":  # names the model and the turn of the next counts
            return ()
        from ...transcripts.usage import ModelUsage

        turn_id, model = as_string(payload.get("turn_id")), as_string(payload.get("model"))
        return (ModelUsage(turn_id, model),)

    def links(self, record: Record) -> Iterable[Event]:
        kind, payload = _opened(record)
        if kind != "response_item" or payload is record:
            return ()
        is_said = payload.get("role") in ("user", "assistant")
        return (records.ParentLink("", "", True),) if is_said else ()

    def thinking(self, record: Record) -> str:
        payload = as_object(wrapped(record).get("payload"))
        parts = as_list(payload.get("summary")) if payload.get("type") == "reasoning" else []
        return "\n\n".join([as_string(as_object(part).get("text")) for part in parts]).strip()

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import diff_edits, part_number, patch_edits

        payload = as_object(wrapped(record).get("payload"))
        item = as_object(payload.get("item"))
        if item.get("type") == "FileChange":
            for at, change in enumerate(changes_of(item).values()):
                if change_id(item, at) == call_id and isinstance(change, dict):
                    content = change.get("content")
                    is_whole = isinstance(content, str)
                    return (
                        [("", as_string(content))]
                        if is_whole
                        else diff_edits(as_string(change.get("unified_diff")))
                    )
            return []
        number = part_number(call_id, as_string(payload.get("call_id"))) if payload else None
        if number is None:
            return []
        patch = as_string(payload.get("input"))
        if payload.get("name") == "exec":
            patch = "\n".join(patches_in(patch))
        elif not patch:
            given = as_object(decoded(payload.get("arguments")))
            patch = shell_line(given.get("command") or given.get("cmd"))
        return patch_edits(patch, number)

    def hunks(self, record: Record, call_id: str) -> list[Hunk]:
        from ...transcripts.edits import diff_hunks, part_id

        payload = as_object(wrapped(record).get("payload"))
        item = as_object(payload.get("item")) or {**payload, "id": payload.get("call_id")}
        for number, change in enumerate(changes_of(item).values()):
            if part_id(as_string(item.get("id")), number) == call_id:
                return diff_hunks(as_string(as_object(change).get("unified_diff")))
        return []


def _unnamed_call(payload: Record, call_id: str) -> tuple[ToolUse, ...]:
    """Return the call of a script that names no command or file."""
    is_call = payload.get("type") == "custom_tool_call" and bool(call_id)
    return (ToolUse(as_string(payload.get("name")), "", "other", call_id),) if is_call else ()


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False for lines recognised as having no entry, compaction or directory.

    Such lines are counts of tokens, and most of the model's view, which the rollout repeats.
    Without calls, also return False for commands and their output."""
    at = line.find(b'"type":"', 0, HEAD_BYTES)
    if at < 0:
        return True
    kind = line[at + 8 : line.find(b'"', at + 8)]
    is_whole = line[-3:].rstrip()[-1:] == b"}"
    if at == 1:  # of an old version
        return not is_whole or kind == b"message" or (with_calls > 0 and kind.endswith(b"_call"))
    if kind in (b"turn_context", b"compacted"):
        return True
    if kind == b"session_meta":
        return is_glued(line, _GLUED)
    inner = line.find(b'"payload":{"type":"', at, HEAD_BYTES)
    if inner < 0:
        return kind in (b"event_msg", b"response_item") or is_glued(line, _GLUED)
    if not is_whole or line.find(b'"', inner + 19) < 0:  # torn: it is counted
        return True
    if kind == b"event_msg" and _item_may_say(line, inner, with_calls):
        return True
    if kind == b"response_item" and _model_may_say(line, at, inner, with_calls):
        return True
    return is_glued(line, _GLUED)


def _item_may_say(line: bytes, inner: int, with_calls: int) -> bool:
    """Return `_may_say` for an item that a person saw, whose payload is at `inner`."""
    if not line.startswith(b'item_completed"', inner + 19):
        return False
    item = line.find(b'"item":{"type":"', inner, inner + 400)
    if item < 0 or line.startswith((b"UserMessage", b"AgentMessage"), item + 16):
        return True
    is_work = not line.startswith((b"Reasoning", b"ContextCompaction"), item + 16)
    return with_calls > 0 and is_work


def _model_may_say(line: bytes, at: int, inner: int, with_calls: int) -> bool:
    """Return `_may_say` for the model's view.

    The record's type is at `at`, its payload at `inner`."""
    end = line.find(b'"', inner + 19)
    said = line[inner + 19 : end]
    if said == b"function_call_output":
        return line.find(_ANSWERS, end, end + HEAD_BYTES) > 0
    if line.find(b'"ordinal":', 0, at) >= 0:
        return False
    return said == b"message" or (with_calls > 0 and said.endswith(b"_call"))


def _may_bring_results(line: bytes) -> bool:
    at = line.find(b'"payload":{"type":"', 0, HEAD_BYTES)
    if at < 0:
        return b'"type":"item_completed"' in line or b'_output"' in line
    if line.startswith(b"item_completed", at + 19):
        return b'"status":"' in line
    if line.startswith(b"patch_apply_end", at + 19):
        return b'"success":false' in line
    return line.find(b'_call_output"', at, at + 60) > 0 and line.find(b'"ordinal":', 0, at) < 0


class CodexRollout(records.Branch):
    """A rollout; in a sub-agent's rollout nothing counts.

    A session may continue in another directory: each turn names its directory before its messages.
    """

    copies_keep_ids = False
    DIRECTORY_MARKS = (b'"turn_context"', b"<environment_context>")

    def __init__(self, header: Record, line: Record) -> None:
        source = header.get("source")
        is_own_work = isinstance(source, dict) and ("subagent" in source or "internal" in source)
        self.is_of_subagent = is_own_work or header.get("thread_source") in (
            "subagent",
            "memory_consolidation",
        )
        self.of_session = _parent_of(header) if self.is_of_subagent else ""
        self.directory = as_string(header.get("cwd"))
        self.session_id, self.forked_from = (
            as_string(header.get("id")),
            as_string(header.get("forked_from_id")),
        )
        # Before lines had ordinals, a fork began with a copy of the earlier messages, written at
        # once.
        is_copied = bool(header.get("forked_from_id")) and "history_base" not in header
        self._began = epoch_seconds(line.get("timestamp"))
        self.copied_until = self._began + 1.0 if is_copied and self._began is not None else None
        self.unsettled: list[Entry] = []  # their turn was not read yet

    def holds(self, line: bytes) -> bool:
        if directory := self.directory_in(line):
            self.settle(directory)
        return not self.is_of_subagent

    def directory_in(self, line: bytes) -> str:
        is_rewritten = not line.startswith(CodexRecords.BEGINNINGS)
        is_old = (
            is_rewritten or line.startswith(b'{"type":"message"')
        ) and b"<environment_context>" in line
        if is_old or line.find(b'"turn_context"', 0, len(line) if is_rewritten else HEAD_BYTES) > 0:
            return next(filter(None, map(_directory_of, reversed(objects_in(line)))), "")
        return ""

    def note(self, record: Record) -> None:
        directory = _directory_of(record)
        if directory:
            self.directory = directory
            self.unsettled = []

    def complete(self, entry: Entry) -> None:
        """Add the directory, unless a command named one; mark a copy; add a missing time."""
        if entry.timestamp is None:
            entry.timestamp = self._began
        if not entry.cwd:
            self.unsettled.append(entry)
        super().complete(entry)


def _opened(record: Record) -> tuple[object, Record]:
    """Return the type of a record and its payload.

    Until September 2025 a line was the model's view."""
    payload = record.get("payload")
    if isinstance(payload, dict):
        return record.get("type"), payload
    return ("", {}) if "payload" in record else ("response_item", record)


def _entry_in(record: Record, offset: int) -> Entry | None:
    """Return the entry in a record of the model's or a person's view.

    With an `ordinal`, messages and calls of the model's view are read elsewhere."""
    kind, payload = _opened(record)
    inner = as_string(payload.get("type"))
    if kind == "response_item":
        is_read = "ordinal" not in record or inner == "function_call_output"
        return _entry(inner, payload, record, offset) if is_read else None
    if kind == "event_msg" and inner == "item_completed":
        return entry_of_item(as_object(payload.get("item")), payload, record, offset)
    return None


def _results_of_model(payload: Record) -> list[Event]:
    """Return the result of a call in the model's view."""
    if not as_string(payload.get("type")).endswith("_call_output"):
        return []
    output = payload.get("output")
    text = output if isinstance(output, str) else joined_text(output)
    call_id = as_string(payload.get("call_id"))
    return [records.CallResult(call_id, has_failed(text), text, has_run(text))]


def _entry(kind: str, payload: Record, record: Record, offset: int) -> Entry | None:
    """Return the entry in a message or call as the model saw it.

    Return None for text that Codex and hooks added."""
    call_id = as_string(payload.get("call_id"))
    if kind == "message":
        role, content, message_id = (
            as_string(payload.get("role")),
            payload.get("content"),
            as_string(payload.get("id")),
        )
        text = (
            typed_text(content)
            if role == "user"
            else joined_text(content)
            if role == "assistant"
            else ""
        )
        command = own_command(content) if role == "user" and not text else ""
        tools = (
            tool_use("exec_command", {"command": command}, ARGUMENTS, "command", message_id)
            if command
            else ()
        )
        return new_entry(role, text, tools, record, offset, message_id) if text or tools else None
    if kind == "function_call_output":
        words = answered(payload.get("output"))
        return new_entry("user", words, (), record, offset, f"{call_id}:answer") if words else None
    uses = calls_in(payload)
    if not uses:
        return None
    entry = new_entry("assistant", "", uses, record, offset, call_id)
    entry.cwd = as_string(as_object(decoded(payload.get("arguments"))).get("workdir"))
    return entry


def _usage(payload: Record, record: Record) -> list[ModelUsage]:
    """Return the usage of the last answer.

    If an old version wrote only the sum, return the usage of all answers up to now. Cached tokens
    are part of the input tokens. A count may be repeated."""
    from ...transcripts.usage import ModelUsage, amount

    info = payload.get("info")
    if not isinstance(info, dict):
        return []
    sums = info.get("total_token_usage")
    last, total = info.get("last_token_usage", sums), amount(sums, "total_tokens")
    cached = amount(last, "cached_input_tokens")
    return [
        ModelUsage(
            f"{record.get('timestamp')} {total}",
            input=max(0, amount(last, "input_tokens") - cached),
            output=amount(last, "output_tokens"),
            cached=cached,
            running_total=total,
            is_sum="last_token_usage" not in info,
        )
    ]


def item_began(lines: Iterable[bytes]) -> float | None:
    """Return when a call was made whose item is in the first of `lines`.

    Return None for another record. A background command may have acted before the last call, and an
    item's own start may be later than its effect."""
    remaining = iter(lines)
    payloads = [as_object(record.get("payload")) for record in objects_in(next(remaining, b""))]
    items = [payload for payload in payloads if payload.get("type") == "item_completed"]
    if not items:
        return None
    started = items[0].get("started_at_ms")
    times = [started / 1000] if isinstance(started, int) else []
    for line in remaining:
        at = line.find(b'"payload":{"type":"', 0, HEAD_BYTES) + 19
        said = line[at : line.find(b'"', at)] if at > 19 else b""
        if said.endswith(b"_call"):
            made = [epoch_seconds(record.get("timestamp")) for record in objects_in(line)]
            times += [time for time in made if time is not None]
        if said.endswith(b"_call") or said == b"task_started":
            break
    return min(times, default=None)


def _parent_of(header: Record) -> str:
    """Return the id of a sub-agent's parent session.

    In older versions it may be another sub-agent's."""
    root = as_string(header.get("session_id"))
    if root and root != header.get("id"):
        return root
    spawned = as_object(
        as_object(as_object(header.get("source")).get("subagent")).get("thread_spawn")
    )
    return as_string(header.get("parent_thread_id")) or as_string(spawned.get("parent_thread_id"))


def _directory_of(record: Record) -> str:
    """Return the directory of the turn that a record begins; '' for any other record."""
    if record.get("type") == "message":
        return told_directory(record.get("content"))
    return (
        as_string(as_object(record.get("payload")).get("cwd"))
        if record.get("type") == "turn_context"
        else ""
    )
