"""What a line in a session file of Pi means. Session format versions 1 to 3."""

from __future__ import annotations

from ...system.json import as_string, decode_line, is_glued, objects_in
from ...text.timestamps import epoch_seconds
from ...transcripts.entries import INTRODUCTION, Entry, Reply, ToolUse, tool_use, written_by
from . import CUSTOM_TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..contract import ToolResult

    Record = dict[str, Any]

TITLE_MARKS = (b'"session_info"',)
TITLE_RANK = 3
_TORN = ""  # in place of a parent's id: that of a torn record is not known
_TOLD = f'"customType":"{CUSTOM_TYPE}"'.encode()
_GLUED = (b'}{"type":"', b'{"type":"message"')  # a record behind another one on the same line
# `exec` is what programs that are built on Pi call their shell.
_KINDS = {
    "edit": "edit",
    "write": "edit",
    "read": "read",
    "bash": "command",
    "exec": "command",
    "powershell": "command",
}
_ARGUMENTS = ("path", "file_path", "command", "pattern", "url", "query", "description")


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for tool results, most of a session file's bytes, and for the system prompt; without tools also for what
    shows that it has no text.

    The first `"message":{` that is not part of a string is the record's own: what stands before it are plain strings.
    An unescaped `"type":` is never part of a string either, so that a glued record shows.
    """
    at = line.find(b'"message":{"role":"', 0, 400)
    if at < 0:
        return True
    if line.startswith((b"toolResult", b"system"), at + 19):
        return is_glued(line, *_GLUED)
    if with_tools:
        return True
    if line.startswith(b'assistant","content":[{"type":"', at + 19):
        return b'"text":"' in line or b'"type":"image"' in line or is_glued(line, *_GLUED)
    return not line.startswith(b"bashExecution", at + 19) or is_glued(line, *_GLUED)


def branch(first_line: bytes) -> PiBranch | None:
    """The live branch of the tree that a session file is. None for a file without a header: it is read as it stands."""
    header = _first_record(first_line)
    return PiBranch(header) if header is not None and header.get("type") == "session" else None


class PiBranch:
    """The branch that ends at the last record. Records beside it do not count, nor do those that an edit took out.

    Records before version 2 have no ids and are all on it. `/tree` may return to a branch: its records count again as
    soon as one follows them.
    """

    is_of_subagent = False  # Pi writes no transcripts of sub-agents
    of_session = ""

    def __init__(self, header: Record) -> None:
        version = header.get("version")
        self._is_tree = isinstance(version, int) and version > 1
        self._cwd = as_string(header.get("cwd"))
        is_fork = bool(header.get("parentSession") or header.get("branchedFrom"))
        self._forked_at = epoch_seconds(header.get("timestamp")) if is_fork else None
        self._is_leaf_known = False
        self._next_id: str | None = None
        self._is_removed: dict[str, bool] = {}

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says counts. To be asked of every line that is read, from the last to the first."""
        link = _link(line) if self._is_tree else None
        if link is None:
            if line and _first_record(line) is None:
                # Torn, and perhaps the one that is looked for: the branch is taken to go on at the record before it.
                self._is_leaf_known = False
            return True
        if not self._is_leaf_known or link[0] == self._next_id:
            self._is_leaf_known = link[1] != _TORN
            self._next_id = link[1]
        elif not self._continues_in(line, link):
            return False
        if b'"context_edit"' in line:
            for record in objects_in(line):
                self._take_edit(record)
        return not self._is_removed.get(link[0], False)

    def _continues_in(self, line: bytes, first: tuple[str, str | None]) -> bool:
        """Check if the branch goes on in a line behind whose first record, perhaps torn, others are glued; follow it
        through them."""
        if not is_glued(line, *_GLUED):
            return False
        records = [record for record in objects_in(line) if isinstance(record.get("id"), str)]
        parents = dict([first, *[(record["id"], record.get("parentId")) for record in records]])
        is_in_it = self._next_id in parents
        while self._next_id in parents:
            self._next_id = parents.pop(self._next_id)
        return is_in_it

    def note(self, record: Record) -> None:
        """Nothing: no record says anything of those behind it."""

    def complete(self, entry: Entry) -> None:
        """Adds the directory, and what the header of a fork tells: what is older than the fork was copied."""
        entry.cwd = self._cwd
        entry.is_copy = self._forked_at is not None and (entry.timestamp or 0.0) < self._forked_at

    def _take_edit(self, record: Record) -> None:
        """Note what an edit took out. Of several edits of a record the last holds, which is met first."""
        if record.get("type") == "context_edit":
            self._is_removed.setdefault(as_string(record.get("targetId")), record.get("replacement") is None)


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a `message` record: a user's, the assistant's, or a command that the user ran (`!`).

    Left out are attempts that failed, and commands that the user kept from the agent (`!!`).
    """
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    text = ""
    tools: tuple[ToolUse, ...] = ()
    if role == "user":
        text, _ = _content(message.get("content"))
        text = _as_typed(text)
    elif role == "assistant" and message.get("stopReason") != "error":
        text, tools = _content(message.get("content"))
    elif role == "bashExecution" and not message.get("excludeFromContext"):
        call = tool_use("bash", message, ("command",), "command", as_string(record.get("id")))
        role, tools = "user", (call,) if call else ()
    if not text and not tools:
        return None
    return Entry(
        str(role),
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=as_string(record.get("id")),
        offset=offset,
    )


def title(record: Record) -> tuple[int, str] | None:
    """The name that the user gave the session with `/name`; '' where it was taken away."""
    if record.get("type") != "session_info":
        return None
    return TITLE_RANK, as_string(record.get("name")).strip()


def is_compaction(record: Record) -> bool:
    """Whether the runtime compacted the conversation here."""
    return record.get("type") == "compaction"


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a tool call."""
    return b'"toolResult"' in line or b'"bashExecution"' in line


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: results stand nowhere but in the record, which has to be decoded."""


def results(record: Record) -> list[ToolResult]:
    """The result in a `toolResult` message; a command that the user ran brings its own."""
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return []
    if message.get("role") == "toolResult":
        return [(as_string(message.get("toolCallId")), message.get("isError") is True, _without_told(message))]
    if message.get("role") == "bashExecution" and not message.get("excludeFromContext"):
        return [(as_string(record.get("id")), message.get("exitCode") != 0, message.get("output"))]
    return []


def _without_told(message: Record) -> object:
    """The content of a result without what our extension put behind it."""
    content = message.get("content")
    if not isinstance(content, list):
        return content
    texts = [block.get("text") if isinstance(block, dict) else None for block in content]
    return [one for one, text in zip(content, texts) if not (isinstance(text, str) and text.startswith(INTRODUCTION))]


def may_show_told(line: bytes) -> bool:
    """False only for a line that surely says nothing of what our extension told."""
    return _TOLD in line


def told(record: Record) -> tuple[str, ...] | None:
    """The text of a message that our extension put in."""
    content = record.get("content")
    is_ours = record.get("type") == "custom_message" and record.get("customType") == CUSTOM_TYPE
    return (content,) if is_ours and isinstance(content, str) else None


def may_link(line: bytes) -> bool:
    """False only for a line without a `parentId`."""
    return b'"parentId":' in line


def link(record: Record) -> tuple[str, str, bool] | None:
    """Every record but the header names the one that it goes on from."""
    record_id = record.get("id")
    if not isinstance(record_id, str) or "parentId" not in record:
        return None
    return record_id, as_string(record["parentId"]), record.get("type") == "message"


def time(record: Record) -> float | None:
    """When the record was written."""
    return epoch_seconds(record.get("timestamp"))


def written(record: Record, call_id: str) -> str | None:
    """What the tool write was given as the content of a file."""
    return written_by(record, call_id, "write", "arguments")


def edits(record: Record, call_id: str) -> list[Edit]:
    """What edit or write replaced."""
    from ...transcripts.edits import block_edits

    return block_edits(record, call_id, "arguments", "oldText", "newText")


def of_sub_agent(record: Record) -> Record:
    """The record: Pi has no sub-agents of its own."""
    return record


def prompt_id(record: Record) -> str:
    """The id of a user's message; '' for any other record. Who sends a prompt cannot choose it."""
    message = record.get("message")
    is_prompt = record.get("type") == "message" and isinstance(message, dict) and message.get("role") == "user"
    return as_string(record.get("id")) if is_prompt else ""


def reply(record: Record) -> Reply | None:
    """What an `assistant` message holds; one record is the whole message."""
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict) or message.get("role") != "assistant":
        return None
    text, _ = _content(message.get("content"))
    return Reply(as_string(record.get("id")), text, message.get("stopReason") in ("stop", "length"))


def may_bring_usage(line: bytes) -> bool:
    """False only for a line without a `usage`."""
    return b'"usage":{' in line


def usage(record: Record) -> ModelUsage | None:
    """What an assistant's message took, with what it cost where Pi knows the price."""
    from ...transcripts.usage import ModelUsage, amount

    message = record.get("message")
    found = message.get("usage") if isinstance(message, dict) and message.get("role") == "assistant" else None
    if record.get("type") != "message" or not isinstance(message, dict) or not isinstance(found, dict):
        return None
    price = found.get("cost")
    total = price.get("total") if isinstance(price, dict) else None
    return ModelUsage(
        f"{record.get('id')} {record.get('timestamp')}",  # ids are short; a fork keeps both
        as_string(message.get("model")),
        input=amount(found, "input"),
        output=amount(found, "output"),
        cached=amount(found, "cacheRead"),
        written=amount(found, "cacheWrite"),
        dollars=float(total) if isinstance(total, int | float) and 0 < total < 1e9 else None,
    )


def recognises(line: bytes) -> bool:
    """Whether a line at the beginning of a session file is Pi's header."""
    return b'"session"' in line and (_first_record(line) or {}).get("type") == "session"


def _link(line: bytes) -> tuple[str, str | None] | None:
    """The id in a line and that of its parent, None for the first of all; None for a line that is not of the tree.

    Most lines begin as pi writes them, with both, and need not be decoded for them.
    """
    if line.startswith(b'{"type":"'):
        at = line.find(b'"', 9)
        end = line.find(b'"', at + 8)
        if line.startswith(b'","id":"', at) and line.startswith(b'","parentId":', end):
            parent = line[end + 13 : end + 80]
            if parent.startswith(b"null"):
                return line[at + 8 : end].decode("utf-8", "replace"), None
            close = parent.find(b'",', 1)
            if parent.startswith(b'"') and 0 < close == parent.find(b'"', 1):
                return line[at + 8 : end].decode("utf-8", "replace"), parent[1:close].decode("utf-8", "replace")
    values, unreadable = decode_line(line)
    record = next((one for one in values if isinstance(one, dict)), {})
    if record.get("type") == "session" or not isinstance(record.get("id"), str) or "parentId" not in record:
        return None
    parent_id = record["parentId"]
    return record["id"], _TORN if unreadable else parent_id if isinstance(parent_id, str) else None


def _first_record(line: bytes) -> Record | None:
    return next(iter(objects_in(line)), None)


def _as_typed(text: str) -> str:
    """What the user typed: pi replaces names of skills and files by their content, which is undone here."""
    typed = []
    while text.startswith(('<skill name="', '<file name="')):
        tag, sign = ("</skill>", "/skill:") if text.startswith("<skill") else ("</file>", "@")
        begin, end = text.find('"') + 1, text.find(tag)
        if end < 0:
            break
        typed.append(sign + text[begin : text.find('"', begin)])
        text = text[end + len(tag) :].lstrip()
    return " ".join([*typed, text]).strip()


def _content(content: object) -> tuple[str, tuple[ToolUse, ...]]:
    if isinstance(content, str):
        return content.strip(), ()
    parts: list[str] = []
    tools: list[ToolUse] = []
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            parts.append(block["text"].strip())
        elif kind == "image":
            parts.append("[image]")
        elif kind == "toolCall" and isinstance(block.get("name"), str):
            name = as_string(block["name"])
            of_kind, call_id = _KINDS.get(name, "other"), as_string(block.get("id"))
            use = tool_use(name, block.get("arguments"), _ARGUMENTS, of_kind, call_id)
            if use is not None:
                tools.append(use)
    return "\n\n".join([part for part in parts if part]), tuple(tools)
