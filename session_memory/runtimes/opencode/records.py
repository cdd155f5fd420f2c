"""What a line in the mirror of an OpenCode session means. Rows are those of OpenCode 1.18; rows.py makes lines of them.

The first line is the `opencode_session`, others its `title`, a `part` of a message, a `message` that has ended, or
what was `taken_back`.
"""

from __future__ import annotations

from ...system.json import as_string, is_glued, objects_in
from ...transcripts.entries import INTRODUCTION, Entry, Reply, ToolUse, tool_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..contract import ToolResult

    Record = dict[str, Any]

TITLE_MARKS = (b'"title"',)
TITLE_RANK = 2  # nothing tells the user's own from one that a model made
_PART, _TITLE, _MESSAGE = b'{"type": "part"', b'{"type": "title"', b'{"type": "message"'
_GLUED = (b'}{"type": "', _PART, _TITLE)  # a record behind another one on the same line
_SESSION, _TAKEN_BACK = b'{"type": "opencode_session"', b'{"type": "taken_back"'
_TOOL = b'"data": {"type": "tool"'
_KINDS = {
    "edit": "edit", "write": "edit", "multiedit": "edit", "read": "read", "bash": "command",
}  # fmt: skip
_ARGUMENTS = ("filePath", "command", "pattern", "url", "query", "description", "path", "prompt", "name")
_PATCHED = ("*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ")
_ENDED = ("stop", "length", "content-filter", "error")  # for what reasons the model's turn ends


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for lines recognised as holding no part and no title; without tools also for a tool's."""
    if line.startswith(_PART):
        return with_tools or _TOOL not in line or is_glued(line, *_GLUED)
    if line.startswith((_MESSAGE, b'{"type": "mirrored"', _SESSION, _TAKEN_BACK)):
        return is_glued(line, *_GLUED) or line[-1:] not in (b"}", b"\n")  # torn: it is counted
    return True


def branch(first_line: bytes) -> MirroredSession:
    """What was not taken back, and the directory of the session."""
    return MirroredSession(next(iter(objects_in(first_line)), {}))


class MirroredSession:
    """A session. A message that was undone is taken back behind it, with all that followed; what of that is done again
    stands there again. That of a sub-agent holds nothing that counts."""

    of_session = ""  # a sub-agent's lies beside that of its session

    def __init__(self, header: Record) -> None:
        is_header = header.get("type") == "opencode_session"
        self.is_of_subagent = is_header and bool(header.get("parent"))
        self._directory = as_string(header.get("directory")) if is_header else ""
        # The ids of the message and of the part from which on all was taken back.
        self._taken_from: tuple[str, str] | None = None

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says counts. To be asked of every line, from the last to the first."""
        if is_taken_back(line):
            ids = ids_in(line)
            if ids[0]:
                self._taken_from = min(self._taken_from or ids, ids)
        elif self._taken_from and line.startswith((_PART, _MESSAGE)) and ids_in(line) >= self._taken_from:
            return False
        return not self.is_of_subagent

    def note(self, record: Record) -> None:
        """Nothing: each part says all of itself."""

    def complete(self, entry: Entry) -> None:
        """Adds the directory where a part does not say it."""
        entry.cwd = entry.cwd or self._directory


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a text that somebody wrote, a picture or a call. None for what OpenCode and plugins put in, for
    reasoning and for summaries."""
    data = record.get("data")
    role = record.get("role")
    if record.get("type") != "part" or not isinstance(data, dict) or role not in ("user", "assistant"):
        return None
    kind = data.get("type")
    text = ""
    tools: tuple[ToolUse, ...] = ()
    if record.get("summary") or data.get("synthetic") or data.get("ignored"):
        return None
    if kind == "text":
        text = as_string(data.get("text")).strip()
        if text.startswith(INTRODUCTION):
            return None
    elif kind == "file" and role == "user" and as_string(data.get("mime")).startswith("image/"):
        text = "[image]"
    elif kind == "tool":
        tools = _uses(data)
    if not text and not tools:
        return None
    return Entry(
        role,
        text,
        tools=tools,
        timestamp=time(record),
        id=_copied(record)[0] or as_string(record.get("id")),
        message_id=_copied(record)[1] or as_string(record.get("message")),
        offset=offset,
        cwd=as_string(record.get("cwd")),
        is_copy="copied" in record,
    )


def title(record: Record) -> tuple[int, str] | None:
    """The session's title, unless it is one that OpenCode begins with."""
    if record.get("type") != "title":
        return None
    text = as_string(record.get("title")).strip()
    return None if not text or is_unnamed(text) else (TITLE_RANK, text)


def is_unnamed(title: str) -> bool:
    """Whether a title is one that OpenCode begins with."""
    return title.startswith(("New session - ", "Child session - "))


def is_compaction(record: Record) -> bool:
    """Whether OpenCode compacted the conversation here."""
    data = record.get("data")
    return record.get("type") == "part" and isinstance(data, dict) and data.get("type") == "compaction"


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a call."""
    return _TOOL in line


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: a result stands with its call."""


def results(record: Record) -> list[ToolResult]:
    """How a call ended: a command that failed is `completed` like any other, and its exit code tells."""
    data = record.get("data")
    if record.get("type") != "part" or not isinstance(data, dict) or data.get("type") != "tool":
        return []
    state = _state(data)
    if state.get("status") not in ("completed", "error"):
        return []
    metadata = state.get("metadata")
    exit_code = metadata.get("exit") if isinstance(metadata, dict) else None
    has_failed = state["status"] == "error" or exit_code not in (None, 0)
    content = state.get("error") if state["status"] == "error" else state.get("output")
    return [(use.call_id, has_failed, content) for use in _uses(data)]


def may_show_told(line: bytes) -> bool:
    """False only for a line that surely says nothing of what a hook told."""
    return b'"synthetic": true' in line


def told(record: Record) -> tuple[str, ...] | None:
    """What our plugin put behind a prompt: a part that nobody typed."""
    data = record.get("data")
    is_one = record.get("type") == "part" and record.get("role") == "user" and isinstance(data, dict)
    if not is_one or not isinstance(data, dict) or data.get("type") != "text" or data.get("synthetic") is not True:
        return None
    text = as_string(data.get("text"))
    return (text,) if INTRODUCTION in text else None


def may_link(line: bytes) -> bool:
    """False only for a line that surely holds no part of a message."""
    return _PART in line


def link(record: Record) -> tuple[str, str, bool] | None:
    """The message of a part, and that which it answers."""
    if record.get("type") != "part" or record.get("role") not in ("user", "assistant"):
        return None
    return as_string(record.get("message")), as_string(record.get("parent")), entry(record, 0) is not None


def time(record: Record) -> float | None:
    """When a message was written, or a part of it."""
    milliseconds = record.get("time")
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return None
    return milliseconds / 1000 if 0 <= milliseconds < 1e15 else None


def written(record: Record, call_id: str) -> str | None:
    """What a call wrote as the whole of a file."""
    data = record.get("data")
    if not isinstance(data, dict) or data.get("tool") != "write" or data.get("callID") != call_id:
        return None
    given = _state(data).get("input")
    content = given.get("content") if isinstance(given, dict) else None
    return content if isinstance(content, str) else None


def edits(record: Record, call_id: str) -> list[Edit]:
    """What edit, multiedit or write replaced, or a patch in one of its files."""
    from ...transcripts.edits import argument_edits, patch_edits

    base, _, number = call_id.partition(":")
    data = record.get("data")
    if not isinstance(data, dict) or as_string(data.get("callID")) not in (call_id, base):
        return []
    given = _state(data).get("input")
    patch = as_string(given.get("patchText")) if isinstance(given, dict) else ""
    if patch:
        return patch_edits(patch, int(number) if number.isdecimal() else 0)
    return argument_edits(given, "oldString", "newString", "content")


def of_sub_agent(record: Record) -> Record:
    """The same: nothing in a part tells whose it is."""
    return record


def prompt_id(record: Record) -> str:
    """The id of what a user typed; '' for any other record."""
    found = entry(record, 0)
    return found.id if found is not None and found.role == "user" else ""


def reply(record: Record) -> Reply | None:
    """What the model wrote; the message says behind its parts whether its turn ends there."""
    if record.get("role") != "assistant":
        return None
    if record.get("type") == "message":
        data = record.get("data")
        is_end = isinstance(data, dict) and data.get("finish") in _ENDED and not record.get("summary")
        text = as_string(data.get("text")) if isinstance(data, dict) else ""
        return Reply(as_string(record.get("id")), text, is_end)
    found = entry(record, 0)
    return Reply(found.message_id, found.text, False) if found is not None else None


def may_bring_usage(line: bytes) -> bool:
    """False only for a line with no message that has ended."""
    return _MESSAGE in line


def usage(record: Record) -> ModelUsage | None:
    """What a message took. What came from a cache is no part of what was read anew."""
    from ...transcripts.usage import ModelUsage, amount

    data = record.get("data")
    if record.get("type") != "message" or record.get("role") != "assistant" or not isinstance(data, dict):
        return None
    tokens = data.get("tokens")
    cache = tokens.get("cache") if isinstance(tokens, dict) else None
    return ModelUsage(
        _copied(record)[1] or as_string(record.get("id")),
        as_string(data.get("modelID")),
        input=amount(tokens, "input"),
        output=amount(tokens, "output") + amount(tokens, "reasoning"),
        cached=amount(cache, "read"),
        written=amount(cache, "write"),
        is_copy="copied" in record,
    )


def recognises(line: bytes) -> bool:
    """Whether a line (perhaps cut off) at the beginning of a file shows that it is a mirror of a session."""
    return line.startswith((_SESSION, b'{"type": "part", "id": "prt_'))


def is_taken_back(line: bytes) -> bool:
    """Whether a line says that something is taken back."""
    return line.startswith(_TAKEN_BACK)


def ids_in(line: bytes) -> tuple[str, str]:
    """The ids of the message and of the part that a line is of, or from which on it takes back; '' for none."""
    record = next(iter(objects_in(line)), {})
    if record.get("type") == "message":
        return as_string(record.get("id")), ""
    return as_string(record.get("message")), as_string(record.get("id"))


def _uses(data: Record) -> tuple[ToolUse, ...]:
    """What a call did; of a patch each file that it names."""
    name, call_id = as_string(data.get("tool")), as_string(data.get("callID"))
    given = _state(data).get("input")
    if name in ("apply_patch", "patch") and isinstance(given, dict):
        text = as_string(given.get("patchText")) or as_string(given.get("input"))
        paths = [line.partition(": ")[2].strip() for line in text.split("\n") if line.startswith(_PATCHED)]
        uses = [
            tool_use(name, {"path": path}, _ARGUMENTS, "edit", f"{call_id}:{number}" if number else call_id)
            for number, path in enumerate(dict.fromkeys(paths))
        ]
        return tuple([use for use in uses if use is not None])
    use = tool_use(name, given, _ARGUMENTS, _KINDS.get(name, "other"), call_id) if name else None
    return (use,) if use is not None else ()


def _state(data: Record) -> Record:
    state = data.get("state")
    return state if isinstance(state, dict) else {}


def _copied(record: Record) -> tuple[str, str]:
    """The ids of the part and of the message that a fork copied; '' where they are not known."""
    ids = record.get("copied")
    if not isinstance(ids, list) or len(ids) != 2:
        return "", ""
    return as_string(ids[0]), as_string(ids[1])
