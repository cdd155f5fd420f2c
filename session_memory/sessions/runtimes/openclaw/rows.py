"""The rows of OpenClaw's databases as lines of a mirror: records of Pi's sessions, format 3."""

from __future__ import annotations

from ....common.system.json import (
    as_object,
    as_string,
    encode_compactly,
    objects_in,
    objects_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Record = dict[str, Any]

SESSION = "openclaw_session"  # the type of a mirror's first record
KEY = "openclawKey"  # in the first record of a kept copy
# Parts of a result's details that repeat its text or the call
_REPEATED = ("aggregated", "content", "diff", "patch")
# the provenance of a prompt that OpenClaw wrote, or that comes from another session
_OF_PROGRAM = ("inter_session", "internal_system")
_TIMER = "[OpenClaw heartbeat poll]"  # ends the prompt of a timer
_LEFT_OUT = ("data", "textSignature", "thinkingSignature", "thoughtSignature")  # of a block


class WindowRow:
    """A session, with its columns in the tables `session_windows` and `session_nodes`."""

    def __init__(self, window: Mapping[str, object], node: Mapping[str, object]) -> None:
        """The rows may contain anything, and columns of another version."""
        self.id, self.key = (
            as_string(window.get("session_id")),
            as_string(window.get("session_key")),
        )
        self.updated = max(_number(window, "updated_at"), _number(window, "transcript_updated_at"))
        self.title = as_string(node.get("label")) or as_string(node.get("display_name"))
        self.spawned_by = as_string(node.get("spawned_by") or node.get("parent_session_key"))

    @property
    def kind(self) -> str:
        """The kind in the session's key, `agent:<agent>:<kind>:...`, such as `subagent`."""
        return [*self.key.split(":"), "", "", ""][2]

    @property
    def is_of_subagent(self) -> bool:
        return self.kind == "subagent"

    def header(self, first: Record, own_id: str, parent: str = "") -> Record:
        """Return the first record of the session's mirror.

        `first` is the session's own first record, `own_id` the id in mirrors, and `parent` the
        session that started a sub-agent."""
        # `sqlite:<agent>:<session>:<path of the database>`
        source = [*as_string(first.get("parentSession")).split(":"), "", "", ""][2]
        return {
            "type": SESSION,
            "version": first.get("version", 3),
            "id": own_id,
            "timestamp": as_string(first.get("timestamp")),
            "cwd": as_string(first.get("cwd")),
            "started_by": self.kind,
            **({"parentSession": source} if source else {}),
            **({"parent_id": parent} if parent else {}),
        }

    @staticmethod
    def title_lines(title: str) -> list[Record | bytes]:
        """Return the record that gives the session a title."""
        return [{"type": "session_info", "name": title}]

    @staticmethod
    def line(record: Record, seq: int) -> Record | bytes:
        """Return the line of a record in row `seq`; one that is counted as unreadable for no record.

        A `leaf` says where the conversation goes on, so this becomes its parent. A prompt that no
        person wrote becomes a message of the system."""
        kind = record.get("type")
        if not isinstance(kind, str):
            return encode_compactly({"type": "message", "row": seq}).encode()[:-1]
        if kind == "message":
            message = _message(as_object(record.get("message")))
            role = {"role": "system"} if _is_of_program(message) else {}
            return {**record, "message": {**message, **role}}
        if kind == "custom":
            return {key: value for key, value in record.items() if key != "data"}
        return {**record, "parentId": record.get("targetId")} if kind == "leaf" else record

    @classmethod
    def exported_lines(cls, content: bytes) -> list[Record | bytes]:
        """Return a session in the form of a kept copy as the lines of a mirror; [] for anything else.

        The form is OpenClaw's older one, a file of records."""
        records = [objects_in(line) for line in content.splitlines()]
        first = records[0][0] if records and records[0] else {}
        if first.get("type") != "session" or KEY not in first:
            return []
        window = {"session_id": first.get("id"), "session_key": first[KEY]}
        session = cls(window, {"label": first.get("label")})
        titles = session.title_lines(session.title) if session.title else []
        rows = [record for line in records[1:] for record in line]
        return [
            session.header(first, session.id),
            *titles,
            *[cls.line(record, seq) for seq, record in enumerate(rows, 1)],
        ]


def _is_of_program(message: Record) -> bool:
    """Return whether a message is a prompt that no person wrote (forms of 2026.9)."""
    if message.get("role") != "user":
        return False
    content, kind = message.get("content"), as_object(message.get("provenance")).get("kind")
    blocks = [{"text": content}] if isinstance(content, str) else objects_of(content)
    is_of_timer = bool(blocks) and as_string(blocks[-1].get("text")).rstrip().endswith(_TIMER)
    return message.get("display") is False or kind in _OF_PROGRAM or is_of_timer


def _message(message: Record) -> Record:
    """Return a message without pictures, signatures and the second copy of a result."""
    kept = {key: value for key, value in message.items() if key != "details"}
    if isinstance(message.get("details"), dict):
        details = message["details"]
        kept["details"] = {key: details[key] for key in details if key not in _REPEATED}
    if isinstance(message.get("content"), list):
        kept["content"] = [
            {key: value for key, value in block.items() if key not in _LEFT_OUT}
            for block in objects_of(message["content"])
        ]
    return kept


def _number(row: Mapping[str, object], name: str) -> int:
    """Return the milliseconds in a column; 0 if there are none."""
    value = row.get(name)
    return value if isinstance(value, int) and 0 < value < 253_402_300_800_000 else 0
