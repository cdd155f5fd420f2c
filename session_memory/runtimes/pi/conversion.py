"""Pi's session files as transcripts of Claude Code, which can resume them; for those who keep all in one format.

Every record keeps the id and the time that it has in Pi, as that of what it was copied from: the store knows it for the
same if it meets both. Left out are thinking (nobody else could sign it), failed attempts, what extensions put in, and
commands that the user ran."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...errors import SessionMemoryError
from ...system.files import Opened, read_whole, write_atomically
from ...system.json import as_object, as_string, objects_in
from ...transcripts.lines import lines_forward
from ..claude import encode_cwd
from ..detection import PI_CONVERTED
from .records import PiRecords

if TYPE_CHECKING:
    Record = dict[str, Any]

_NAMESPACE = uuid.UUID("6f6b5c0e-8f0e-5c55-9c52-8a7d1f0d3b11")
_VERSION = "2.0.0"  # of Claude Code, whose format it is
_TOOLS = {"bash": "Bash", "read": "Read", "edit": "Edit", "write": "Write"}
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NotConvertedError(SessionMemoryError):
    """A file is no session of Pi, or another transcript lies where the converted one belongs."""


def convert(path: str) -> tuple[str, bytes]:
    """Return the path below a projects folder and the content of a session as Claude Code keeps it. Same input, same
    output. Raises NotConvertedError, OSError."""
    with Opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        records = [record for _, line in lines_forward(descriptor, 0, size) for record in objects_in(line)]
    if not records or records[0].get("type") != "session" or not records[0].get("id"):
        raise NotConvertedError(f"{path}: no session of Pi's")
    header = records[0]
    converted = _Conversion(as_string(header["id"]), as_string(header.get("cwd")) or "/").run(records[1:])
    content = b"".join([_line(one) for one in converted])
    return f"{encode_cwd(str(header.get('cwd') or '/'))}/{header['id']}.jsonl", content


def write_converted(path: str, directory: str) -> bool:
    """Write the converted session to its place below `directory`, with the times of the session's file. Returns whether
    it had to be written. Raises NotConvertedError, OSError."""
    where, content = convert(path)
    target = f"{directory}/{where}"
    if os.path.lexists(target):
        old = read_whole(target)
        if old == content:
            return False
        if f'"entrypoint":"{PI_CONVERTED}"'.encode() not in old[:4096]:
            raise NotConvertedError(f"{target}: there is another transcript already")
    status = os.stat(path)
    write_atomically(target, content)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


def _line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


class _Conversion:
    """Converts one session. The parent of a record is the nearest one above it that is not left out."""

    def __init__(self, session_id: str, cwd: str) -> None:
        self._session_id = session_id
        self._cwd = cwd
        self._uuids: dict[str, str | None] = {}  # of a record, or of the nearest above it that is kept

    def run(self, records: list[Record]) -> Iterator[Record]:
        # Of several edits of a record the last holds.
        edits = {one.get("targetId"): one.get("replacement") for one in records if one.get("type") == "context_edit"}
        removed = {str(target) for target, replacement in edits.items() if replacement is None}
        title = ""
        previous = ""
        for number, record in enumerate(records):
            # Before version 2 there are no ids: a plain sequence.
            entry_id = as_string(record.get("id")) or f"#{number}"
            parent_id = record.get("parentId") if "id" in record else previous
            previous = entry_id
            parent = self._uuids.get(str(parent_id)) if parent_id else None
            made = [] if entry_id in removed else self._made(record, entry_id, parent)
            self._uuids[entry_id] = made[-1]["uuid"] if made else parent
            yield from made
            if record.get("type") == "session_info":
                title = str(record.get("name") or "").strip()
        if title:
            yield {"type": "custom-title", "customTitle": title, "sessionId": self._session_id}

    def _made(self, record: Record, entry_id: str, parent: str | None) -> list[Record]:
        message = record.get("message")
        if record.get("type") == "compaction" and isinstance(record.get("summary"), str):
            return self._compaction(record, entry_id, parent)
        if record.get("type") != "message" or not isinstance(message, dict):
            return []
        role = message.get("role")
        if role == "toolResult":
            block = {
                "tool_use_id": _call_id(message.get("toolCallId")),
                "type": "tool_result",
                "content": _blocks(message.get("content")),
                "is_error": message.get("isError") is True,
            }
            return [self._record("user", record, entry_id, parent, {"role": "user", "content": [block]})]
        if role == "user":
            entry, blocks = PiRecords().entry(record), _blocks(message.get("content"))
            content = blocks if any(block["type"] == "image" for block in blocks) else entry and entry.text
            said = {"role": "user", "content": content}
            return [self._record("user", record, entry_id, parent, said)] if content else []
        blocks = _blocks(message.get("content")) if role == "assistant" and message.get("stopReason") != "error" else []
        if not blocks:
            return []
        has_calls = any(block["type"] == "tool_use" for block in blocks)
        answer = {
            "id": f"msg_{self._uuid(entry_id).replace('-', '')}", "type": "message", "role": "assistant",
            "model": str(message.get("model") or "unknown"), "content": blocks,
            "stop_reason": "tool_use" if has_calls else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }  # fmt: skip
        return [self._record("assistant", record, entry_id, parent, answer)]

    def _compaction(self, record: Record, entry_id: str, parent: str | None) -> list[Record]:
        """Return the two records that Claude Code writes: a boundary, and the summary as the user's."""
        boundary = self._record("system", record, f"{entry_id} boundary", None)
        boundary |= {
            "logicalParentUuid": parent, "subtype": "compact_boundary", "content": "Conversation compacted",
            "isMeta": False, "level": "info",
            "compactMetadata": {"trigger": "auto", "preTokens": record.get("tokensBefore") or 0},
        }  # fmt: skip
        text = {"role": "user", "content": record["summary"]}
        summary = self._record("user", record, entry_id, boundary["uuid"], text)
        return [boundary, summary | {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}]

    def _record(
        self, kind: str, record: Record, entry_id: str, parent: str | None, message: Record | None = None
    ) -> Record:
        made: Record = {
            "parentUuid": parent, "isSidechain": False, "userType": "external", "entrypoint": PI_CONVERTED,
            "cwd": self._cwd, "sessionId": self._session_id, "version": _VERSION, "gitBranch": "", "type": kind,
            "uuid": self._uuid(entry_id), "timestamp": record.get("timestamp"),
        }  # fmt: skip
        if message is not None:
            made["message"] = message
            if isinstance(record.get("id"), str):
                made["forkedFrom"] = {"sessionId": self._session_id, "messageUuid": record["id"]}
        return made

    def _uuid(self, entry_id: str) -> str:
        return str(uuid.uuid5(_NAMESPACE, f"{self._session_id} {entry_id}"))


def _blocks(content: object) -> list[Record]:
    """Return content as Claude Code has it, without thinking."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    made: list[Record] = []
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and block.get("text"):
            made.append({"type": "text", "text": str(block["text"])})
        elif kind == "image":
            source = {"type": "base64", "media_type": block.get("mimeType", "image/png"), "data": block.get("data", "")}
            made.append({"type": "image", "source": source})
        elif kind == "toolCall":
            name = str(block.get("name") or "tool")
            given = as_object(block.get("arguments"))
            made.append({
                "type": "tool_use", "id": _call_id(block.get("id")), "name": _TOOLS.get(name, name),
                "input": {"file_path" if key == "path" else key: value for key, value in given.items()},
            })  # fmt: skip
    return made


def _call_id(value: object) -> str:
    """Return the id of a call as the API accepts it; ids of some providers have other characters and are replaced."""
    text = as_string(value)
    return text if _CALL_ID.fullmatch(text) else f"toolu_{uuid.uuid5(_NAMESPACE, text).hex}"
