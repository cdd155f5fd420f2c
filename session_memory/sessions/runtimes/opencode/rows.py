"""The rows of OpenCode's database as lines of a mirror: the final rows, and their relevant keys."""

from __future__ import annotations

from ....common.system.json import as_object, as_string, decode, encode, objects_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Data = dict[str, Any]

LAST_MILLISECOND = 253_402_300_800_000  # of the year 9999
_KEPT = ("text", "tool", "compaction", "file")  # kinds of parts
_KEPT_OF_PART = (
    "type",
    "text",
    "synthetic",
    "ignored",
    "tool",
    "callID",
    "mime",
    "filename",
    "auto",
)
_KEPT_OF_STATE = ("status", "input", "output", "error")
_KEPT_OF_MESSAGE = ("finish", "tokens", "modelID", "providerID")


class SessionRow:
    """A session, with times in milliseconds since 1970.

    `reverted` has the ids of the message and part from which the session is currently taken back;
    '' if it is not."""

    def __init__(self, row: tuple[Any, ...]) -> None:
        """`row` may contain anything: SQLite's columns accept values of every type."""
        self.id, self.parent, self.project, self.directory, self.title = [
            as_string(text) for text in row[:5]
        ]
        self.created, self.updated = [milliseconds(time) for time in row[5:7]]
        reverted = decoded(row[7])
        self.reverted = (str(reverted.get("messageID") or ""), str(reverted.get("partID") or ""))


class MessageRow:
    """A message of a session. `is_ended` means that none of its parts will change again."""

    def __init__(self, row: tuple[Any, ...], session: SessionRow, last_assistant: str) -> None:
        """`last_assistant` is the id of the session's last model message; all before it have
        ended."""
        self.id, self.created, self.data = as_string(row[0]), milliseconds(row[1]), decoded(row[2])
        self.role = str(self.data.get("role"))
        # by a fork, which is newer than the messages at its beginning
        self.is_copied = self.created < session.created
        self.original = ""  # the message that it is a copy of
        self.cwd = str(as_object(self.data.get("path")).get("cwd") or session.directory)
        is_done = bool(self.data.get("error") or as_object(self.data.get("time")).get("completed"))
        self.is_ended = self.id < last_assistant or (self.role == "assistant" and is_done)

    @property
    def ends_turn(self) -> bool:
        """Return whether the model is done or was stopped; otherwise the turn continues."""
        return (
            self.role == "assistant" and self.is_ended and self.data.get("finish") != "tool-calls"
        )

    def line(self, texts: list[str]) -> Data:
        """Return the line of an ended message, with its own data and its last `texts`."""
        record: Data = {"type": "message", "id": self.id, "role": self.role}
        if self.data.get("summary") is True:
            record["summary"] = True
        if self.original:
            record["copied"] = ["", self.original]
        error = self.data.get("error")
        record["data"] = {
            **{key: self.data[key] for key in _KEPT_OF_MESSAGE if key in self.data},
            **({"error": error.get("name")} if isinstance(error, dict) else {}),
            **({"text": "\n\n".join(texts)} if texts else {}),
        }
        return record

    def part_line(self, part_id: str, data: Data, original: str) -> Data | bytes:
        """Return the line of a final part.

        `original` is the id of the part that it copies, if any. A part that cannot be read becomes
        a line that is counted as unreadable."""
        record: Data = {"type": "part", "id": part_id, "message": self.id, "role": self.role}
        if self.role == "assistant":
            record["parent"] = str(self.data.get("parentID") or "")
        record["time"] = _began(data) or self.created
        record["cwd"] = self.cwd
        if self.data.get("summary") is True:
            record["summary"] = True
        if self.original:
            record["copied"] = [original, self.original]
        record["data"] = _kept(data)
        return record if data else encode(record).encode()[:-1]


def milliseconds(time: object) -> int:
    """Return a time in milliseconds since 1970; 0 if it is not in the years up to 9999."""
    return int(time) if isinstance(time, (int, float)) and 0 < time < LAST_MILLISECOND else 0


def session_line(session: SessionRow, header: str, first: str = "") -> Data:
    """Return the first record of a mirror; `header` is its type.

    `first` is the directory in which the session was before it was moved; '' if it was not."""
    directory = first or session.directory
    names = {"id": session.id, "directory": directory, "parent": session.parent}
    return {"type": header, **names, "time": session.created}


def _exported_row(message: Data, session: SessionRow, last: str) -> MessageRow:
    """Return the row of a message in an export. Raises KeyError, TypeError."""
    return MessageRow((message["id"], message["time"]["created"], encode(message)), session, last)


def exported_lines(content: bytes, header: str) -> list[Data | bytes]:
    """Return a session from `opencode export` as the lines of a mirror; `header` is the first's type.

    An export is a JSON document. Return [] if `content` is not one."""
    try:
        document = decode(content.decode("utf-8", "replace"))
        info = document["info"]
        messages = [(message["info"], message["parts"]) for message in document["messages"]]
        session = SessionRow(
            (
                *[info.get(key) for key in ("id", "parentID", "projectID", "directory", "title")],
                *[info["time"].get(key) for key in ("created", "updated")],
                encode(info.get("revert")),
            )
        )
        last = max(
            [message["id"] for message, _ in messages if message["role"] == "assistant"], default=""
        )
        rows = [(_exported_row(message, session, last), parts) for message, parts in messages]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    lines: list[Data | bytes] = [
        session_line(session, header),
        {"type": "title", "title": session.title},
    ]
    for message, parts in rows:
        message.original = message.id if message.is_copied else ""
        kept = [part for part in objects_of(parts) if is_kept(part) and is_final(part, message)]
        lines += [
            message.part_line(as_string(part.get("id")), part, as_string(part.get("id")))
            for part in kept
        ]
        if message.is_ended and message.role == "assistant":
            texts = [
                as_string(part["text"])
                for part in kept
                if part.get("type") == "text" and part.get("text")
            ]
            lines.append(message.line(texts if message.ends_turn else []))
    return lines


def is_kept(data: Data) -> bool:
    """Return whether a part belongs in a mirror: something said or done."""
    return data.get("type") in _KEPT or not data


def is_final(data: Data, message: MessageRow) -> bool:
    """Return whether a part no longer changes.

    A text of the model is empty until it has ended."""
    if message.is_ended or message.role != "assistant":
        return True
    if data.get("type") == "tool":
        return as_object(data.get("state")).get("status") in ("completed", "error")
    return data.get("type") != "text" or bool(as_object(data.get("time")).get("end"))


def _kept(data: Data) -> Data:
    """Return the kept keys of a part, without an edit's copies of files and without pictures."""
    kept = {key: data[key] for key in _KEPT_OF_PART if key in data}
    state = data.get("state")
    if isinstance(state, dict):
        kept["state"] = {key: state[key] for key in _KEPT_OF_STATE if key in state}
        for key, part in (("metadata", "exit"), ("time", "end")):
            if part in as_object(state.get(key)):
                kept["state"][key] = {part: state[key][part]}
    return kept


def _began(data: Data) -> int:
    """Return when a part began, in milliseconds; 0 if unknown."""
    time = as_object(data.get("state")).get("time") if "state" in data else data.get("time")
    return milliseconds(as_object(time).get("start"))


def decoded(text: object) -> Data:
    """Return the object in a column; empty if there is none."""
    try:
        return as_object(decode(text) if isinstance(text, str) else None)
    except ValueError:
        return {}
