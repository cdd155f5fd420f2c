"""What a line in the events of a Copilot session means. Lines are those of Copilot CLI 1.0.64 to 1.0.102.

Each is `{type, data, id, timestamp, parentId}`. What a sub-agent did stands in the same file, with an `agentId`. A
resume and a compaction rewrite nothing, and there is no record of a session's name (see files.given_name).
"""

from __future__ import annotations

from ...system.json import as_string, is_glued, objects_in
from ...text.timestamps import epoch_seconds
from ...transcripts.edits import part_id, patched_files
from ...transcripts.entries import Entry, Reply, ToolUse, tool_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..contract import ToolResult

    Record = dict[str, Any]

TITLE_MARKS = ()
_START = b'{"type":"'
# A record behind another one on the same line, a whole one or one that was torn.
_GLUED = (b'}{"type":"', b'{"type":"user.message"', b'{"type":"assistant.message"')
_MOVES = ("session.resume", "session.context_changed")  # after these the session may be in another directory
_SAID = (b"user.message", b"assistant.message", b"session.compaction_complete", b"tool.user_requested")
_KINDS = {
    "edit": "edit", "create": "edit", "str_replace_editor": "edit", "view": "read", "bash": "command",
    "powershell": "command",
}  # fmt: skip
_ARGUMENTS = ("path", "command", "pattern", "url", "query", "description", "prompt", "name")
_PARENT = "parentToolCallId"
_REMINDER, _REMINDER_END = "<system_reminder>", "</system_reminder>"
_PUT_IN = ("skill-", "agent-", "system", "hook", "jit-", "instruction")  # how the source of a message begins that
# nobody typed


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for lines recognised as what hooks, tools and models were given and gave, most of a transcript; without
    tools also for an answer that has no text."""
    if not line.startswith(_START) or line[-3:].rstrip()[-1:] != b"}":  # perhaps torn: it is counted
        return True
    kind = line[len(_START) : line.find(b'"', len(_START))]
    if kind in _SAID:
        is_empty = kind == b"assistant.message" and b'"content":"",' in line
        return with_tools or not is_empty or is_glued(line, *_GLUED)
    return kind.decode("ascii", "replace") in _MOVES or is_glued(line, *_GLUED)


def branch(first_line: bytes) -> CopilotSession:
    """What is the same for all entries of a session, and its directory, which may change."""
    header = next(iter(objects_in(first_line)), {})
    return CopilotSession(header if header.get("type") == "session.start" else {})


class CopilotSession:
    """A session. A fork begins with all that was said before it, as it was: what is older than the session itself was
    copied."""

    is_of_subagent = False
    of_session = ""

    def __init__(self, start: Record) -> None:
        data = start.get("data")
        self._began = epoch_seconds(data.get("startTime")) if isinstance(data, dict) else None
        self._directory = _directory_of(start)
        self._before_move: list[Entry] | None = None

    def holds(self, line: bytes) -> bool:
        """True: every line counts. To be asked of every line that is read, from the last to the first."""
        if self._before_move is None:
            self._before_move = []
        if line.startswith(b'{"type":"session.start"'):
            self._before_move = None  # this is the first line: what is read from here on is read forward
        elif line.startswith((b'{"type":"session.resume"', b'{"type":"session.context_changed"')):
            for record in objects_in(line):
                directory = _directory_of(record)
                for entry in self._before_move if directory else ():
                    entry.cwd = directory
            self._before_move = []
        return True

    def note(self, record: Record) -> None:
        """Takes the directory from a record that tells it to those behind it."""
        self._directory = _directory_of(record) or self._directory

    def complete(self, entry: Entry) -> None:
        """Adds the directory, and whether it was copied. Read backward, the directory is that of the session's start
        until what moved it is reached."""
        entry.cwd = self._directory
        entry.is_copy = self._began is not None and (entry.timestamp or self._began) < self._began
        if self._before_move is not None:
            self._before_move.append(entry)


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a message of the user, without what hooks told, in one of the model with the calls that it asks for,
    or in a command that the user had run. None for a sub-agent's, and for what nobody typed."""
    data, kind = record.get("data"), record.get("type")
    if not isinstance(data, dict) or _is_of_sub_agent(record):
        return None
    role, text = "assistant", ""
    tools: tuple[ToolUse, ...] = ()
    if kind == "user.message":
        if data.get("isAutopilotContinuation") or as_string(data.get("source")).startswith(_PUT_IN):
            return None
        role, text = "user", _typed(data)
    elif kind == "assistant.message":
        text, tools = as_string(data.get("content")).strip(), _uses(data.get("toolRequests"))
    elif kind == "tool.user_requested":
        role = "user"
        tools = _uses([{**data, "name": data.get("toolName")}])
    if not text and not tools:
        return None
    return Entry(
        role,
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=as_string(record.get("id")),
        offset=offset,
    )


def title(record: Record) -> None:
    """None: a name lies beside the events."""


def is_compaction(record: Record) -> bool:
    """Whether Copilot has compacted the conversation here."""
    data = record.get("data") if record.get("type") == "session.compaction_complete" else None
    return isinstance(data, dict) and data.get("success") is True


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a call."""
    return b'"tool.execution_complete"' in line


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: results stand nowhere but in the record, which has to be decoded."""


def results(record: Record) -> list[ToolResult]:
    """The result of a call. A command that failed was run with success: its exit code tells."""
    data = record.get("data")
    if record.get("type") != "tool.execution_complete" or not isinstance(data, dict) or _is_of_sub_agent(record):
        return []
    shell, problem, result = data.get("shellExecution"), data.get("error"), data.get("result")
    exit_code = shell.get("exitCode") if isinstance(shell, dict) else None
    has_failed = data.get("success") is not True or exit_code not in (None, 0)
    text = problem.get("message") if isinstance(problem, dict) else None
    if text is None:
        text = result.get("content") if isinstance(result, dict) else ""
    edits = data.get("fileEdits")
    call_id, parts = as_string(data.get("toolCallId")), len(edits) if isinstance(edits, list) else 1
    return [(part_id(call_id, number), has_failed, text) for number in range(max(1, parts))]


def may_show_told(line: bytes) -> bool:
    """False only for a line that surely says nothing of what a hook told."""
    return b'"user.message"' in line and _REMINDER.encode() in line


def told(record: Record) -> tuple[str, ...] | None:
    """What hooks told with a prompt, which stands behind it in what the model got. Of several hooks the last one that
    says something is heard: what the others told is not there."""
    data = record.get("data")
    if record.get("type") != "user.message" or not isinstance(data, dict) or _is_of_sub_agent(record):
        return None
    given = as_string(data.get("transformedContent"))
    texts = [part.partition(_REMINDER_END)[0].strip("\n") for part in given.split(_REMINDER)[1:]]
    return tuple(texts) or None


def may_link(line: bytes) -> bool:
    """False only for a line that surely holds no message."""
    return b'.message"' in line


def link(record: Record) -> tuple[str, str, bool] | None:
    """A message. The events are no tree, and what was cancelled stays: each goes on from what stands before it."""
    is_message = record.get("type") in ("user.message", "assistant.message") and not _is_of_sub_agent(record)
    return ("", "", True) if is_message else None


def time(record: Record) -> float | None:
    """When the record was written."""
    return epoch_seconds(record.get("timestamp"))


def written(record: Record, call_id: str) -> str | None:
    """What the tool `create` was given as the content of a file."""
    data = record.get("data")
    requests = data.get("toolRequests") if isinstance(data, dict) else None
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict) and request.get("toolCallId") == call_id and request.get("name") == "create":
            arguments = _given(request)
            text = arguments.get("file_text") if isinstance(arguments, dict) else None
            return text if isinstance(text, str) else None
    return None


def edits(record: Record, call_id: str) -> list[Edit]:
    """What edit or create replaced, or a patch in one of its files."""
    from ...transcripts.edits import argument_edits, patch_edits

    data = record.get("data")
    requests = data.get("toolRequests") if isinstance(data, dict) else None
    for request in requests if isinstance(requests, list) else ():
        own_id, given = (request.get("toolCallId"), _given(request)) if isinstance(request, dict) else ("", "")
        if isinstance(request, dict) and request.get("name") == "apply_patch":
            patch = _patch_in(given)
            for number in range(len(patched_files(patch))):
                if call_id == part_id(as_string(own_id), number):
                    return patch_edits(patch, number)
        elif own_id == call_id:
            return argument_edits(given, "old_str", "new_str", "file_text")
    return []


def of_sub_agent(record: Record) -> Record:
    """The record without its mark; what has none is the session's own, of which the directory alone is kept."""
    if not _is_of_sub_agent(record):
        return record if _directory_of(record) else {}
    data = record.get("data")
    kept = {key: value for key, value in data.items() if key != _PARENT} if isinstance(data, dict) else data
    return {**{key: value for key, value in record.items() if key != "agentId"}, "data": kept}


def prompt_id(record: Record) -> str:
    """The id of a user's message; '' for any other record. Who sends a prompt cannot choose it."""
    found = entry(record, 0) if record.get("type") == "user.message" else None
    return found.id if found is not None else ""


def reply(record: Record) -> Reply | None:
    """What an `assistant.message` holds; the last of a turn calls no tool."""
    found = entry(record, 0) if record.get("type") == "assistant.message" else None
    return Reply(found.id, found.text, not found.tools) if found is not None else None


def may_bring_usage(line: bytes) -> bool:
    """False only for a line that does not tell of an answer."""
    return b'"session.usage_record"' in line


def usage(record: Record) -> ModelUsage | None:
    """What an answer took, a sub-agent's as well. What came from a cache is part of what was read. A record names the
    session that it was first written in, and its place there."""
    from ...transcripts.usage import ModelUsage, amount

    data = record.get("data")
    took = data.get("usage") if isinstance(data, dict) else None
    if record.get("type") != "session.usage_record" or not isinstance(took, dict):
        return None
    account = took.get("accounting")
    account = account if isinstance(account, dict) else {}
    cached, written = amount(took, "cacheReadTokens"), amount(took, "cacheWriteTokens")
    return ModelUsage(
        f"{account.get('sourceSessionId')} {account.get('sequence')} {account.get('usageId')}",
        as_string(took.get("model")),
        input=max(0, amount(took, "inputTokens") - cached - written),
        output=amount(took, "outputTokens"),
        cached=cached,
        written=written,
    )


def recognises(line: bytes) -> bool:
    """Whether a line (perhaps cut off) at the beginning of a file shows that it is a session of Copilot."""
    return line.startswith(_START) and line.startswith(b'","data":{', line.find(b'"', len(_START)))


def _is_of_sub_agent(record: Record) -> bool:
    """Whether a sub-agent said or did it; versions that name no agent name the call that started it."""
    data = record.get("data")
    return bool(record.get("agentId")) or (isinstance(data, dict) and bool(data.get(_PARENT)))


def _typed(data: Record) -> str:
    """What the user typed, and `[image]` for each that was pasted."""
    attached = data.get("attachments")
    images = [
        "[image]"
        for one in (attached if isinstance(attached, list) else ())
        if isinstance(one, dict) and as_string(one.get("mimeType")).startswith("image/")
    ]
    return "\n\n".join([part for part in [as_string(data.get("content")).strip(), *images] if part])


def _uses(requests: object) -> tuple[ToolUse, ...]:
    """The calls that an answer asks for; of a patch an edit for each file."""
    uses: list[ToolUse | None] = []
    for request in requests if isinstance(requests, list) else ():
        if not isinstance(request, dict):
            continue
        name, call_id = as_string(request.get("name")) or "tool", as_string(request.get("toolCallId"))
        arguments = _given(request)
        if name == "apply_patch":
            for number, path in enumerate(patched_files(_patch_in(arguments))):
                uses.append(tool_use(name, {"path": path}, _ARGUMENTS, "edit", part_id(call_id, number)))
        elif name == "str_replace_editor" and isinstance(arguments, dict) and arguments.get("command") == "view":
            uses.append(tool_use(name, arguments, _ARGUMENTS, "read", call_id))
        else:
            uses.append(tool_use(name, arguments, _ARGUMENTS, _KINDS.get(name, "other"), call_id))
    return tuple([use for use in uses if use is not None])


def _given(request: Record) -> object:
    """The arguments of a call, which older versions have as JSON in a string."""
    arguments = request.get("arguments")
    if isinstance(arguments, str) and arguments.startswith("{"):
        return next(iter(objects_in(arguments.encode())), arguments)
    return arguments


def _patch_in(arguments: object) -> str:
    """The patch that a call was given, bare or as its only argument."""
    return as_string(next(iter(arguments.values()), "") if isinstance(arguments, dict) else arguments)


def _directory_of(record: Record) -> str:
    """The directory that a record tells; '' for none."""
    data = record.get("data")
    if not isinstance(data, dict) or record.get("type") not in ("session.start", *_MOVES):
        return ""
    context = data.get("context") if record.get("type") != "session.context_changed" else data
    return as_string(context.get("cwd")) if isinstance(context, dict) else ""
