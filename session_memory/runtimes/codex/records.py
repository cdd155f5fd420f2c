"""What a line in a rollout of Codex means. Lines are those of Codex 0.77 to 0.169, and those of before September 2025.

A rollout shows a turn twice: as the model saw it (`response_item`) and, in later versions (0.169, not yet 0.140), as a
person saw it (`item_completed`), which alone names commands and files where the model writes JavaScript that calls the
tools. Lines of these versions have an `ordinal`: then what a person saw is read, else what the model saw.
"""

from __future__ import annotations

from ...system.json import as_string, is_glued, objects_in
from ...text.timestamps import epoch_seconds
from ...transcripts.entries import Entry, Reply
from .content import (
    calls_in,
    decoded,
    has_failed,
    joined_text,
    new_entry,
    shell_line,
    texts_of,
    told_directory,
    typed_text,
    wrapped,
)  # fmt: skip
from .items import change_id, changes_of, entry_of_item, results_of_item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..contract import ToolResult

    Record = dict[str, Any]

TITLE_MARKS = ()
HEAD_BYTES = 200  # of a line, in which its type and its payload's show
_GLUED = b'{"timestamp":"'  # a record behind another one on the same line


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for lines recognised as holding no entry, compaction or directory: most of what the model saw, which stands
    there a second time, and counts of tokens. Without tools also for commands and what they printed."""
    at = line.find(b'"type":"', 0, HEAD_BYTES)
    if at < 0:
        return True
    kind = line[at + 8 : line.find(b'"', at + 8)]
    is_whole = line[-3:].rstrip()[-1:] == b"}"
    if at == 1:  # of an old version
        return not is_whole or kind == b"message" or (with_tools and kind.endswith(b"_call"))
    if kind in (b"turn_context", b"compacted", b"session_meta"):
        return kind != b"session_meta" or is_glued(line, _GLUED)
    inner = line.find(b'"payload":{"type":"', at, HEAD_BYTES)
    if inner < 0:
        return kind in (b"event_msg", b"response_item") or is_glued(line, _GLUED)
    end = line.find(b'"', inner + 19)
    said = line[inner + 19 : end]
    if end < 0 or not is_whole:  # torn: it is counted
        return True
    if kind == b"event_msg":
        if said != b"item_completed":
            return is_glued(line, _GLUED)
        item = line.find(b'"item":{"type":"', inner, inner + 400)
        is_said = line.startswith((b"UserMessage", b"AgentMessage"), item + 16)
        is_work = not line.startswith((b"Reasoning", b"ContextCompaction"), item + 16)
        return item < 0 or is_said or (with_tools and is_work) or is_glued(line, _GLUED)
    if kind == b"response_item" and line.find(b'"ordinal":', 0, at) < 0:
        if said == b"message":
            return True
        return (with_tools and said.endswith(b"_call")) or is_glued(line, _GLUED)
    return is_glued(line, _GLUED)


def branch(first_line: bytes) -> CodexRollout:
    """What is the same for all entries of a rollout, and the directory of each turn."""
    header = next(iter(objects_in(first_line)), {})
    if not header:  # longer than what was read of it
        _, _, rest = first_line[:HEAD_BYTES].partition(b'"timestamp":"')
        header = {"timestamp": rest.partition(b'"')[0].decode("utf-8", "replace")}
    payload = header.get("payload") if header.get("type") == "session_meta" else header
    return CodexRollout(payload if isinstance(payload, dict) else {}, header)


class CodexRollout:
    """A rollout. That of a sub-agent holds nothing that counts. A session may go on in another directory: each turn
    names its own, and stands before what was said in it."""

    def __init__(self, header: Record, line: Record) -> None:
        source = header.get("source")
        is_own_work = isinstance(source, dict) and ("subagent" in source or "internal" in source)
        self.is_of_subagent = is_own_work or header.get("thread_source") in ("subagent", "memory_consolidation")
        self.of_session = _parent_of(header) if self.is_of_subagent else ""
        self._directory = as_string(header.get("cwd"))
        # Before lines had ordinals, a fork began with a copy of what was said, written at once.
        is_copied = bool(header.get("forked_from_id")) and "history_base" not in header
        self._began = epoch_seconds(line.get("timestamp"))
        self._copied_until = self._began + 1.0 if is_copied and self._began is not None else None
        self._without_turn: list[Entry] = []

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says counts. To be asked of every line that is read, from the last to the first."""
        is_old = line.startswith(b'{"type":"message"') and b"<environment_context>" in line
        if is_old or line.find(b'"type":"turn_context"', 0, HEAD_BYTES) > 0:
            for record in objects_in(line):
                directory = _directory_of(record)
                for entry in self._without_turn if directory else ():
                    entry.cwd = directory
            self._without_turn = []
        return not self.is_of_subagent

    def note(self, record: Record) -> None:
        """Takes from a record that is no entry what it says of those behind it."""
        directory = _directory_of(record)
        if directory:
            self._directory = directory
            self._without_turn = []

    def complete(self, entry: Entry) -> None:
        """Adds the directory, unless a command named its own; whether it was copied; and where its line has no time,
        that of the beginning."""
        if entry.timestamp is None:
            entry.timestamp = self._began
        if not entry.cwd:
            entry.cwd = self._directory
            self._without_turn.append(entry)
        entry.is_copy = self._copied_until is not None and (entry.timestamp or 0.0) < self._copied_until


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in what a person saw, a message or something that was done, or in what the model saw of older versions:
    a user's or assistant's message or a call. None for what Codex and hooks put in."""
    record = wrapped(record)
    payload = record.get("payload")
    if not isinstance(payload, dict):
        return None
    if record.get("type") == "event_msg" and payload.get("type") == "item_completed":
        item = payload.get("item")
        return entry_of_item(item, payload, record, offset) if isinstance(item, dict) else None
    if record.get("type") != "response_item" or "ordinal" in record:
        return None
    if payload.get("type") == "message":
        return _of_message(payload, record, offset)
    uses = calls_in(payload)
    if not uses:
        return None
    found = new_entry("assistant", "", uses, record, offset, as_string(payload.get("call_id")))
    arguments = decoded(payload.get("arguments"))
    found.cwd = as_string(arguments.get("workdir")) if isinstance(arguments, dict) else ""
    return found


def title(record: Record) -> None:
    """None: names lie in an index beside the rollouts."""


def is_compaction(record: Record) -> bool:
    """Whether Codex compacted the conversation here."""
    return record.get("type") == "compacted"


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a call."""
    at = line.find(b'"payload":{"type":"', 0, HEAD_BYTES)
    if at < 0:
        return b'"type":"item_completed"' in line or b'_output"' in line
    if line.startswith(b"item_completed", at + 19):
        return b'"status":"' in line
    return line.find(b'_call_output"', at, at + 60) > 0 and line.find(b'"ordinal":', 0, at) < 0


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: results stand nowhere but in the record, which has to be decoded."""


def results(record: Record) -> list[ToolResult]:
    """The result of a call: in what a person saw beside the call itself, in what the model saw a record of its own."""
    record = wrapped(record)
    payload = record.get("payload")
    if not isinstance(payload, dict):
        return []
    if record.get("type") == "event_msg" and payload.get("type") == "item_completed":
        item = payload.get("item")
        return results_of_item(item) if isinstance(item, dict) else []
    if record.get("type") != "response_item" or "ordinal" in record:
        return []
    if not as_string(payload.get("type")).endswith("_call_output"):
        return []
    output = payload.get("output")
    text = output if isinstance(output, str) else joined_text(output)
    call_id = as_string(payload.get("call_id"))
    return [(call_id, has_failed(text), text)]


def may_show_told(line: bytes) -> bool:
    """False only for a line that surely says nothing of what a hook told."""
    return b'"role":"developer"' in line


def told(record: Record) -> tuple[str, ...] | None:
    """The texts of a message that stands for the developer: what hooks tell comes as one."""
    payload = record.get("payload")
    is_one = record.get("type") == "response_item" and isinstance(payload, dict) and payload.get("role") == "developer"
    return tuple(texts_of(payload.get("content"))) if is_one and isinstance(payload, dict) else None


def may_link(line: bytes) -> bool:
    """False only for a line that surely holds no message."""
    return b'"type":"message"' in line


def link(record: Record) -> tuple[str, str, bool] | None:
    """A message as the model saw it. A rollout is no tree, and what was cancelled stays in it: each goes on from what
    stands before it."""
    payload = record.get("payload")
    is_message = isinstance(payload, dict) and payload.get("role") in ("user", "assistant")
    return ("", "", True) if record.get("type") == "response_item" and is_message else None


def time(record: Record) -> float | None:
    """When the record was written."""
    return epoch_seconds(record.get("timestamp"))


def item_began(lines: Iterable[bytes]) -> float | None:
    """Return when the call was made whose item is in the first of `lines`; None for another record. What a command in
    the background did may lie before the last call, and an item says that it started after it did what it was to do."""
    found = iter(lines)
    payloads = [record.get("payload") for record in objects_in(next(found, b""))]
    items = [one for one in payloads if isinstance(one, dict) and one.get("type") == "item_completed"]
    if not items:
        return None
    started = items[0].get("started_at_ms")
    times = [started / 1000] if isinstance(started, int) else []
    for line in found:
        at = line.find(b'"payload":{"type":"', 0, HEAD_BYTES) + 19
        said = line[at : line.find(b'"', at)] if at > 19 else b""
        if said.endswith(b"_call"):
            times += [made for record in objects_in(line) if (made := time(record)) is not None]
        if said.endswith(b"_call") or said == b"task_started":
            break
    return min(times, default=None)


def written(record: Record, call_id: str) -> str | None:
    """What a patch wrote as the content of a file that it added."""
    payload = record.get("payload")
    item = payload.get("item") if isinstance(payload, dict) else None
    if not isinstance(item, dict) or item.get("type") != "FileChange":
        return None
    for number, change in enumerate(changes_of(item).values()):
        if change_id(item, number) == call_id and isinstance(change, dict) and isinstance(change.get("content"), str):
            return as_string(change["content"])
    return None


def edits(record: Record, call_id: str) -> list[Edit]:
    """What a patch replaced in one of its files."""
    from ...transcripts.edits import diff_edits, patch_edits

    payload = wrapped(record).get("payload")
    if not isinstance(payload, dict):
        return []
    item = payload.get("item")
    if isinstance(item, dict) and item.get("type") == "FileChange":
        for number, change in enumerate(changes_of(item).values()):
            if change_id(item, number) == call_id and isinstance(change, dict):
                content = change.get("content")
                is_whole = isinstance(content, str)
                return [("", as_string(content))] if is_whole else diff_edits(as_string(change.get("unified_diff")))
        return []
    base, _, number_text = call_id.partition(":")
    if base != as_string(payload.get("call_id")):
        return []
    patch = as_string(payload.get("input"))
    if not patch:
        arguments = decoded(payload.get("arguments"))
        given = arguments if isinstance(arguments, dict) else {}
        patch = shell_line(given.get("command") or given.get("cmd"))
    return patch_edits(patch, int(number_text) if number_text.isdecimal() else 0)


def of_sub_agent(record: Record) -> Record:
    """The same: nothing in a record tells whose it is."""
    return record


def prompt_id(record: Record) -> str:
    """The id of a user's message; '' for any other record. Who sends a prompt cannot choose it."""
    found = entry(record, 0)
    return found.id if found is not None and found.role == "user" else ""


def reply(record: Record) -> Reply | None:
    """What the assistant said; the end of a turn repeats what it said last, and that alone ends it."""
    payload = record.get("payload")
    if not isinstance(payload, dict):
        return None
    if record.get("type") == "event_msg" and payload.get("type") == "task_complete":
        return Reply(as_string(payload.get("turn_id")), as_string(payload.get("last_agent_message")), True)
    found = entry(record, 0)
    return Reply(found.id, found.text, False) if found is not None and found.role == "assistant" else None


def may_bring_usage(line: bytes) -> bool:
    """False only for a line with neither a `token_count` nor a `turn_context`."""
    return b'"type":"token_count"' in line or b'"type":"turn_context"' in line


def usage(record: Record) -> ModelUsage | None:
    """What the last answer took, by a `token_count`, which does not name the model: a `turn_context` before it does.
    What came from a cache is part of what was read, and a count may be told again as it was."""
    from ...transcripts.usage import ModelUsage, amount

    payload = record.get("payload")
    if not isinstance(payload, dict):
        return None
    if record.get("type") == "turn_context":
        return ModelUsage(model=as_string(payload.get("model")))
    info = payload.get("info")
    if payload.get("type") != "token_count" or not isinstance(info, dict):
        return None
    last, total = info.get("last_token_usage"), amount(info.get("total_token_usage"), "total_tokens")
    cached = amount(last, "cached_input_tokens")
    return ModelUsage(
        f"{record.get('timestamp')} {total}",
        input=max(0, amount(last, "input_tokens") - cached),
        output=amount(last, "output_tokens"),
        cached=cached,
        running_total=total,
    )


def recognises(line: bytes) -> bool:
    """Whether a line (perhaps cut off) at the beginning of a file shows that it is a rollout of Codex."""
    if line.startswith(b'{"id":"') and b'","timestamp":"' in line[:60] and b'","instructions":' in line[:HEAD_BYTES]:
        return True
    return line.startswith(b'{"timestamp":"') and any(
        line.find(kind, 0, HEAD_BYTES) > 0
        for kind in (b'"type":"session_meta","payload":', b'"type":"response_item","payload":')
    )


def _parent_of(header: Record) -> str:
    """The id of the session that a sub-agent belongs to; of one that another sub-agent started, in older versions, that
    other's."""
    root = as_string(header.get("session_id"))
    if root and root != header.get("id"):
        return root
    source = header.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    spawned = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    named = spawned.get("parent_thread_id") if isinstance(spawned, dict) else None
    return as_string(header.get("parent_thread_id")) or as_string(named)


def _of_message(payload: Record, record: Record, offset: int) -> Entry | None:
    """The entry in a message as the model saw it."""
    role = payload.get("role")
    content = payload.get("content")
    text = typed_text(content) if role == "user" else joined_text(content) if role == "assistant" else ""
    return new_entry(as_string(role), text, (), record, offset, as_string(payload.get("id"))) if text else None


def _directory_of(record: Record) -> str:
    """The directory of the turn that a record begins; '' for any other record."""
    if record.get("type") == "message":
        return told_directory(record.get("content"))
    payload = record.get("payload")
    is_turn = record.get("type") == "turn_context" and isinstance(payload, dict)
    return as_string(payload.get("cwd")) if is_turn and isinstance(payload, dict) else ""
