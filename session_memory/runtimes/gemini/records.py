"""What a line in a chat of Gemini CLI means, or in the mirror that is kept of it (see mirrors.py).

A chat is a log of changes to a list of messages: a line is a message, `{"$set": ...}` or `{"$rewindTo": <id>}`. A
message of the model comes first as it was said, and again with the calls that were made for it: then its calls alone
count, unless a mirror has put both into one line. Lists of messages that are set as a whole hold nothing new.
"""

from __future__ import annotations

from ...system.json import as_string, is_glued, objects_in
from ...text.timestamps import epoch_seconds
from ...transcripts.entries import Entry, Reply, ToolUse, tool_use
from ...transcripts.mirror import is_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..contract import ToolResult

    Record = dict[str, Any]

TITLE_MARKS = (b'"summary"',)
TITLE_RANK = 1  # of what a model made of the first prompts
COMPRESSED = "compressed"  # the type of a mirror's line where Gemini compressed the chat
WHOLE = "whole"  # marks a mirror's line that has the text of a message beside its calls
SNAPSHOT = "<state_snapshot>"  # begins the summary that takes the place of what was compressed
REFERENCED = "--- Content from referenced files ---"  # begins what Gemini put behind a prompt
CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"  # around what a hook told
_WRAPPERS = (CONTEXT, "<session_context>", SNAPSHOT)  # how parts begin that nobody typed
_DIRECTORIES = "- **Workspace Directories:**\n  - "
_TELLS_DIRECTORY = b"- **Workspace Directories:**"
_MESSAGE = b'{"id":'
_GLUED = (b'}{"id":', b'{"$rewindTo":')  # a record behind another one on the same line
_KINDS = {
    "replace": "edit", "edit": "edit", "write_file": "edit", "read_file": "read", "read_many_files": "read",
    "run_shell_command": "command",
}  # fmt: skip
_ARGUMENTS = ("file_path", "absolute_path", "command", "pattern", "url", "query", "prompt", "path", "name")
_EXIT_CODE = "Exit Code: "
_NO_TOOLS: tuple[ToolUse, ...] = ()


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for what Gemini notes of a chat as a whole, and for lists of what was said before; without tools also for
    calls."""
    if line[-3:].rstrip()[-1:] != b"}":  # perhaps torn: it is counted
        return True
    may_be_glued = is_glued(line, *_GLUED)
    if line.startswith(b'{"$set":'):
        is_torn = not line.rstrip().endswith(b"}}") and is_glued(line, _MESSAGE)
        may_be_glued = may_be_glued or is_torn or b'"summary":' in line[:40]
        return may_be_glued or SNAPSHOT.encode() in line or _TELLS_DIRECTORY in line
    if is_mark(line) or line.startswith(b'{"sessionId":'):
        return may_be_glued or is_glued(line, _MESSAGE)
    return with_tools or b'"toolCalls":' not in line or b'"whole":' in line or line.count(b'"type":"') > 1


def branch(first_line: bytes) -> GeminiChat:
    """The chat that begins with this header."""
    header = next(iter(objects_in(first_line)), {})
    return GeminiChat(header if "sessionId" in header else {})


class GeminiChat:
    """A chat, from which its user may have taken back what was said from some message on."""

    of_session = ""  # a sub-agent's lies beside that of its session

    def __init__(self, header: Record) -> None:
        self.is_of_subagent = header.get("kind") == "subagent"
        directories = header.get("directories")
        first = directories[0] if isinstance(directories, list) and directories else ""
        self._directory = as_string(header.get("cwd")) or as_string(first)
        self._back_to = b""  # the id that is looked for where something was taken back
        self._taken_back = b""  # that of the first message that was
        self._without_directory: list[Entry] = []

    def holds(self, line: bytes) -> bool:
        """Whether what `line` says was not taken back. To be asked of every line, from the last to the first."""
        if not self._directory and line.startswith(b'{"$set":') and _TELLS_DIRECTORY in line:
            for record in objects_in(line):
                self.note(record)
        if line.startswith(b'{"$rewindTo":'):
            for record in objects_in(line):
                self._back_to = self._back_to or as_string(record.get("$rewindTo")).encode()
            return False
        if self._back_to:
            if _id_in(line) == self._back_to:
                self._back_to, self._taken_back = b"", self._back_to
            return False
        return not self._taken_back or _id_in(line) != self._taken_back

    def note(self, record: Record) -> None:
        """Takes the directory from what Gemini tells the model of it, where the header has none."""
        changed = record.get("$set")
        messages = changed.get("messages") if isinstance(changed, dict) and not self._directory else None
        for message in messages if isinstance(messages, list) else ():
            texts = _texts(message.get("content")) if isinstance(message, dict) else []
            for text in texts:
                _, found, after = text.partition(_DIRECTORIES)
                if found:
                    self._directory = after.partition("\n")[0]
                    for entry in self._without_directory:
                        entry.cwd = self._directory
                    self._without_directory = []
                    return

    def complete(self, entry: Entry) -> None:
        """Adds the directory, which the chat itself tells in its first lines."""
        entry.cwd = self._directory
        if not self._directory:
            self._without_directory.append(entry)


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a message of the user, without what hooks and Gemini put in, or in one of the model."""
    kind, record_id = record.get("type"), as_string(record.get("id"))
    text, tools = "", _NO_TOOLS
    if kind == "user":
        text = typed(record)
    elif kind == "gemini":
        tools = _uses(record)
        text = said(record) if not tools or record.get(WHOLE) else ""
        if tools and not text:
            record_id = f"{record_id}:{tools[0].call_id}"
    if not text and not tools:
        return None
    return Entry(
        "user" if kind == "user" else "assistant",
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=record_id,
        offset=offset,
    )


def title(record: Record) -> tuple[int, str] | None:
    """What a model called the chat, at a later start of Gemini."""
    changed = record.get("$set")
    name = changed.get("summary") if isinstance(changed, dict) else None
    return (TITLE_RANK, name.strip()) if isinstance(name, str) else None


def is_compaction(record: Record) -> bool:
    """Whether Gemini compressed the chat here."""
    return record.get("type") == COMPRESSED or bool(snapshot_id(record))


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a call."""
    return b'"toolCalls":' in line


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: results stand beside the calls."""


def results(record: Record) -> list[ToolResult]:
    """The results of calls, which stand beside them. A command that failed was run with success: its exit code
    tells."""
    found: list[ToolResult] = []
    for call in _calls(record):
        output = "\n".join(_outputs(call))
        _, is_told, code = output.partition(_EXIT_CODE)
        has_failed = call.get("status") != "success" or (is_told != "" and not code.startswith("0"))
        found.append((as_string(call.get("id")), has_failed, output))
    return found


def may_show_told(line: bytes) -> bool:
    """False only for a line that surely says nothing of what a hook told."""
    return CONTEXT.encode() in line and b'"functionResponse"' not in line


def told(record: Record) -> tuple[str, ...] | None:
    """What hooks told with a prompt, which are parts of its message."""
    if record.get("type") != "user":
        return None
    texts = [
        text[len(CONTEXT) :].rpartition(_CONTEXT_END)[0].replace("&lt;", "<").replace("&gt;", ">")
        for text in _texts(record.get("content"))
        if text.startswith(CONTEXT)
    ]
    return tuple(texts) or None


def may_link(line: bytes) -> bool:
    """False only for a line that surely holds no message."""
    return line.startswith(b'{"id":')


def link(record: Record) -> tuple[str, str, bool] | None:
    """A message. What was cancelled stays in the log: each goes on from what stands before it."""
    is_message = record.get("type") in ("user", "gemini") and entry(record, 0) is not None
    return ("", "", True) if is_message else None


def time(record: Record) -> float | None:
    """When the record was written."""
    return epoch_seconds(record.get("timestamp"))


def written(record: Record, call_id: str) -> str | None:
    """What the tool write_file was given as the content of a file."""
    for call in _calls(record):
        if call.get("id") == call_id and call.get("name") == "write_file":
            arguments = call.get("args")
            content = arguments.get("content") if isinstance(arguments, dict) else None
            return content if isinstance(content, str) else None
    return None


def edits(record: Record, call_id: str) -> list[Edit]:
    """What replace or write_file replaced."""
    from ...transcripts.edits import argument_edits

    for call in _calls(record):
        if call.get("id") == call_id:
            return argument_edits(call.get("args"), "old_string", "new_string", "content")
    return []


def of_sub_agent(record: Record) -> Record:
    """The same: the header alone tells whose it is."""
    return record


def prompt_id(record: Record) -> str:
    """The id of a user's message; '' for any other record. Who sends a prompt cannot choose it."""
    found = entry(record, 0) if record.get("type") == "user" else None
    return found.id if found is not None else ""


def reply(record: Record) -> Reply | None:
    """What a message of the model holds; the last of a turn has no calls."""
    found = entry(record, 0) if record.get("type") == "gemini" else None
    return Reply(found.id, found.text, not found.tools) if found is not None else None


def may_bring_usage(line: bytes) -> bool:
    """False only for a line that does not tell of an answer."""
    return b'"tokens":' in line


def usage(record: Record) -> ModelUsage | None:
    """What an answer took. What came from a cache is part of what was read; thoughts were written too."""
    from ...transcripts.usage import ModelUsage, amount

    tokens = record.get("tokens")
    if record.get("type") != "gemini" or not isinstance(tokens, dict):
        return None
    cached = amount(tokens, "cached")
    return ModelUsage(
        as_string(record.get("id")),
        as_string(record.get("model")),
        input=max(0, amount(tokens, "input") - cached),
        output=amount(tokens, "output") + amount(tokens, "thoughts"),
        cached=cached,
    )


def recognises(line: bytes) -> bool:
    """Whether a line (perhaps cut off) at the beginning of a file shows that it is a chat of Gemini."""
    return line.startswith(b'{"sessionId":') and b'"projectHash":' in line


def typed(record: Record) -> str:
    """What the user typed, of a message of theirs; `[image]` for what was pasted. '' for results of calls."""
    content = record.get("displayContent") or record.get("content")
    texts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(part, dict) and ("inlineData" in part or "fileData" in part):
            texts.append("[image]")
        elif isinstance(text, str):
            if text.strip() == REFERENCED:
                break
            texts.append(_without_context(text).strip())
    return "\n\n".join([text for text in texts if text])


def said(record: Record) -> str:
    """The text of a message of the model."""
    return "\n\n".join([text.strip() for text in _texts(record.get("content")) if text.strip()])


def snapshot_id(record: Record) -> str:
    """The id of the summary in a list of messages that takes the place of what was compressed; '' for none."""
    changed = record.get("$set")
    messages = changed.get("messages") if isinstance(changed, dict) else None
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and any([text.startswith(SNAPSHOT) for text in _texts(message.get("content"))]):
            return as_string(message.get("id"))
    return ""


def _without_context(text: str) -> str:
    """A part of a prompt without what is no one's words: all of it, or, where a hook told something at the start of the
    session, what stands before the prompt."""
    if text.startswith(CONTEXT) and _CONTEXT_END in text:
        return text.partition(_CONTEXT_END)[2]
    return "" if text.startswith(_WRAPPERS) else text


def _uses(record: Record) -> tuple[ToolUse, ...]:
    uses = []
    for call in _calls(record):
        name = as_string(call.get("name")) or "tool"
        use = tool_use(name, call.get("args"), _ARGUMENTS, _KINDS.get(name, "other"), as_string(call.get("id")))
        if use is not None:
            uses.append(use)
    return tuple(uses)


def _calls(record: Record) -> list[Record]:
    calls = record.get("toolCalls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _outputs(call: Record) -> list[str]:
    """What a call gave, or why it failed."""
    parts = call.get("result")
    responses = (
        [part.get("functionResponse") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    )
    given = [one.get("response") for one in responses if isinstance(one, dict)]
    return [as_string(one.get("error", one.get("output"))) for one in given if isinstance(one, dict)]


def _texts(content: object) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    found = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [text for text in found if isinstance(text, str)]


def _id_in(line: bytes) -> bytes:
    """The id with which a line begins; empty for none."""
    return line[6:].partition(b'"')[2].partition(b'"')[0] if line.startswith(b'{"id":') else b""
