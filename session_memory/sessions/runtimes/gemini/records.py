"""Decodes the lines of chats of Gemini CLI, and of their mirrors (see mirrors.py).

A chat is a log of changes to a list of messages: a line is a message, `{"$set": ...}` or
`{"$rewindTo": <id>}`. A message of the model comes twice: first its text, then again with its
calls. From the second only the calls count, unless a mirror has merged both into one line. Message
lists that are set as a whole contain nothing new."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, is_glued, objects_in, objects_of
from ....common.text.timestamps import epoch_seconds
from ...transcripts.entries import Entry, ToolUse, tool_use, typed_by_person
from ...transcripts.mirror import is_mark
from .. import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..records import Event, Record

_TITLE_RANK = 1  # of a title that a model made from the first prompts
COMPRESSED = "compressed"  # the type of a mirror's line for a compression of the chat
WHOLE = "whole"  # marks a mirror's line that has the text of a message beside its calls
SNAPSHOT = "<state_snapshot>"  # begins the summary that replaces the compressed messages
REFERENCED = "--- Content from referenced files ---"  # begins Gemini's addition after a prompt
CONTEXT, _CONTEXT_END = "<hook_context>", "</hook_context>"  # around a hook's text
_WRAPPERS = (CONTEXT, "<session_context>", SNAPSHOT)  # how parts begin that nobody typed
_DIRECTORIES = "- **Workspace Directories:**\n  - "
_TELLS_DIRECTORY = b"- **Workspace Directories:**"
_MESSAGE = b'{"id":'
_GLUED = (b'}{"id":', b'{"$rewindTo":')  # a record after another one on the same line
_KINDS = {
    "replace": "edit",
    "edit": "edit",
    "write_file": "edit",
    "read_file": "read",
    "read_many_files": "read",
    "run_shell_command": "command",
}
_ARGUMENTS = (
    "file_path",
    "absolute_path",
    "command",
    "pattern",
    "url",
    "query",
    "prompt",
    "path",
    "name",
)
_EXIT_CODE = "Exit Code: "
_DIALOGS = ("ask_user", "exit_plan_mode")  # tools whose results contain the user's words
_DIALOGS_IN_LINE = tuple(f'"{name}"'.encode() for name in _DIALOGS)


class GeminiRecords(records.Records):
    """Decodes messages.

    Cancelled ones stay in the log, and each message continues the one before."""

    CALL_MARK = b'toolCalls"'
    RESULT_KEY, NEXT_KEY = b'"result":', b'"args":'

    TITLE_MARKS = (b'"summary"',)
    BEGINNINGS = (
        b'{"id":',
        b'{"$set":',
        b'{"$rewindTo":',
        b'{"sessionId":',
        b'{"type": "mirrored"',
    )

    THINKING = b'"thoughts":'

    def recognises(self, line: bytes) -> bool:
        return line.startswith(b'{"sessionId":') and b'"projectHash":' in line

    def open_transcript(self, first_line: bytes) -> GeminiChat:
        header = next(iter(objects_in(first_line)), {})
        return GeminiChat(header if "sessionId" in header else {})

    def owns(self, record: Record) -> bool:
        return "sessionId" in record and "projectHash" in record

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (wanted.results and b'"toolCalls":' in line)
            or (wanted.messages and _may_say(line, wanted.calls))
            or (wanted.injected and CONTEXT.encode() in line and b'"functionResponse"' not in line)
            or (wanted.links and line.startswith(b'{"id":'))
            or (wanted.usage and b'"tokens":' in line)
            or wanted.turns
        )

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        entry = _entry(record, offset)
        if entry is not None:
            return [entry, *_answers(record, offset)]
        summary = summary_in(record)
        if summary is not None:
            return (records.Title(_TITLE_RANK, summary),)
        is_compaction = record.get("type") == COMPRESSED or snapshot_id(record)
        return (records.Compaction(),) if is_compaction else ()

    def results(self, record: Record) -> Iterable[Event]:
        return _results(record)

    def calls_and_results(
        self, record: Record
    ) -> Iterable[ToolUse | records.CallResult | records.Approval]:
        """Return also a call that waits or runs: until its end, the message has no text and no
        call."""
        is_open = record.get("type") == "gemini" and record.get("content") == ""
        if is_open and not record.get("toolCalls") and isinstance(record.get("tokens"), dict):
            return (ToolUse("", "", "command", as_string(record.get("id"))),)
        return super().calls_and_results(record)

    def injected(self, record: Record) -> Iterable[Event]:
        return _injected(record) if record.get("type") == "user" else ()

    def turns(self, record: Record) -> Iterable[Event]:
        return records.turn_of(_entry(record, 0))

    def usage(self, record: Record) -> Iterable[Event]:
        is_counted = record.get("type") == "gemini" and isinstance(record.get("tokens"), dict)
        return (_usage(record),) if is_counted else ()

    def links(self, record: Record) -> Iterable[Event]:
        return () if _entry(record, 0) is None else (records.ParentLink("", "", True),)

    def thinking(self, record: Record) -> str:
        thoughts = objects_of(record.get("thoughts"))
        return "\n\n".join(
            f"{as_string(thought.get('subject'))}\n{as_string(thought.get('description'))}"
            for thought in thoughts
        )

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits

        for call in objects_of(record.get("toolCalls")):
            if call.get("id") == call_id:
                return argument_edits(call.get("args"), "old_string", "new_string", "content")
        return []


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False for notes on a whole chat and lists of messages.

    Without calls, also return False for lines with calls."""
    if line[-3:].rstrip()[-1:] != b"}":  # perhaps torn: it is counted
        return True
    may_be_glued = is_glued(line, *_GLUED)
    if line.startswith(b'{"$set":'):
        is_torn = not line.rstrip().endswith(b"}}") and is_glued(line, _MESSAGE)
        may_be_glued = may_be_glued or is_torn or b'"summary":' in line[:40]
        return may_be_glued or SNAPSHOT.encode() in line or _TELLS_DIRECTORY in line
    if is_mark(line) or line.startswith(b'{"sessionId":'):
        return may_be_glued or is_glued(line, _MESSAGE)
    has_words = any([name in line for name in _DIALOGS_IN_LINE])
    is_whole = b'"toolCalls":' not in line or b'"whole":' in line
    return with_calls > 0 or is_whole or has_words or line.count(b'"type":"') > 1


class GeminiChat(records.Branch):
    """A chat whose user may have taken back the messages from some message on."""

    may_leave_out = True

    def __init__(self, header: Record) -> None:
        self.is_of_subagent = header.get("kind") == "subagent"
        directories = header.get("directories")
        first = directories[0] if isinstance(directories, list) and directories else ""
        self.directory = as_string(header.get("cwd")) or as_string(first)
        self._back_to = b""  # the id of the message to which the chat was rewound; searched for
        self._taken_back = b""  # the id of the first message taken back
        self._without_directory: list[Entry] = []

    def holds(self, line: bytes) -> bool:
        """Return whether the content of `line` still counts.

        Call it for every line, last to first."""
        if not self.directory and line.startswith(b'{"$set":') and _TELLS_DIRECTORY in line:
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
        """Note the directory in Gemini's text to the model, if the header has none."""
        for message in _messages(record) if not self.directory else ():
            for text in _texts(message.get("content")):
                _, mark, after = text.partition(_DIRECTORIES)
                if mark:
                    self.directory = after.partition("\n")[0]
                    for entry in self._without_directory:
                        entry.cwd = self.directory
                    self._without_directory = []
                    return

    def complete(self, entry: Entry) -> None:
        """Add the directory, which the chat itself has in its first lines."""
        super().complete(entry)
        if not self.directory:
            self._without_directory.append(entry)


def _entry(record: Record, offset: int) -> Entry | None:
    """Return the entry in a message of the user or the model.

    Text that hooks and Gemini added is left out."""
    kind, record_id = record.get("type"), as_string(record.get("id"))
    text = ""
    tools: tuple[ToolUse, ...] = ()
    if kind == "user":
        text, tools = records.typed_or_run(typed(record))
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


def _injected(record: Record) -> list[Event]:
    """Return the text that hooks added to a prompt."""
    contexts = [
        text[len(CONTEXT) :] for text in _texts(record.get("content")) if text.startswith(CONTEXT)
    ]
    texts = [
        text.rpartition(_CONTEXT_END)[0].replace("&lt;", "<").replace("&gt;", ">")
        for text in contexts
    ]
    return [records.Injected(tuple(texts))] if texts else []


def _answers(record: Record, offset: int) -> list[Entry]:
    """Return the user's words in a model's message: answers, or reasons to refuse a plan."""
    answers = []
    for call in objects_of(record.get("toolCalls")):
        if call.get("name") in _DIALOGS:
            from .. import _dialogs as dialogs

            words = dialogs.words_in("\n".join(_outputs(call)))
            entry_id = f"{as_string(record.get('id'))}:{as_string(call.get('id'))}:answer"
            at = epoch_seconds(record.get("timestamp"))
            answers += (
                [Entry("user", words, timestamp=at, id=entry_id, offset=offset)] if words else []
            )
    return answers


def _results(record: Record) -> list[records.CallResult]:
    """Return the results of a message's calls; the exit code shows if a command failed."""
    results = []
    for call in objects_of(record.get("toolCalls")):
        output = "\n".join(_outputs(call))
        _, is_told, code = output.partition(_EXIT_CODE)
        has_failed = call.get("status") != "success" or (is_told != "" and not code.startswith("0"))
        has_run, time = call.get("status") == "success", epoch_seconds(call.get("timestamp"))
        results.append(
            records.CallResult(as_string(call.get("id")), has_failed, output, has_run, time)
        )
    return results


def _usage(record: Record) -> ModelUsage:
    """Return the usage of an answer.

    Tokens from a cache are part of the input tokens; thoughts count as output."""
    from ...transcripts.usage import ModelUsage, amount

    tokens = record["tokens"]
    cached = amount(tokens, "cached")
    return ModelUsage(
        as_string(record.get("id")),
        as_string(record.get("model")),
        input=max(0, amount(tokens, "input") - cached),
        output=amount(tokens, "output") + amount(tokens, "thoughts"),
        cached=cached,
    )


def summary_in(record: Record) -> str | None:
    """Return a model's title for the chat, made at a later start; None for another record."""
    name = as_object(record.get("$set")).get("summary")
    return name.strip() if isinstance(name, str) else None


def typed(record: Record) -> str:
    """Return the user's typed text in their message, with `[image]` for a pasted image.

    Return '' for results of calls."""
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
    """Return the text of a message, with an empty line between its parts."""
    return "\n\n".join([text.strip() for text in _texts(record.get("content")) if text.strip()])


def snapshot_id(record: Record) -> str:
    """Return the id of the summary that replaces compressed messages in a list; '' if none does."""
    for message in _messages(record):
        if any([text.startswith(SNAPSHOT) for text in _texts(message.get("content"))]):
            return as_string(message.get("id"))
    return ""


def _messages(record: Record) -> list[Record]:
    return objects_of(as_object(record.get("$set")).get("messages"))


def _without_context(text: str) -> str:
    """Return a part of a prompt without text that nobody typed.

    That may be all of it, or a hook's text from the session's start before the prompt."""
    if text.startswith(CONTEXT) and _CONTEXT_END in text:
        return text.partition(_CONTEXT_END)[2]
    return "" if text.startswith(_WRAPPERS) else typed_by_person(text)


def _uses(record: Record) -> tuple[ToolUse, ...]:
    uses: list[ToolUse] = []
    for call in objects_of(record.get("toolCalls")):
        name = as_string(call.get("name")) or "tool"
        uses += tool_use(
            name, call.get("args"), _ARGUMENTS, _KINDS.get(name, "other"), as_string(call.get("id"))
        )
    return tuple(uses)


def _outputs(call: Record) -> list[str]:
    """Return the output of a call, or why it failed."""
    responses = [
        as_object(part.get("functionResponse"))
        for part in as_list(call.get("result"))
        if as_object(part)
    ]
    given = [
        response["response"] for response in responses if isinstance(response.get("response"), dict)
    ]
    return [as_string(response.get("error", response.get("output"))) for response in given]


def _texts(content: object) -> list[str]:
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _id_in(line: bytes) -> bytes:
    """Return the id at the beginning of a line; empty if there is none."""
    if line.startswith(GeminiRecords.BEGINNINGS):
        return line[6:].partition(b'"')[2].partition(b'"')[0] if line.startswith(b'{"id":') else b""
    return as_string(next(iter(objects_in(line)), {}).get("id")).encode()
