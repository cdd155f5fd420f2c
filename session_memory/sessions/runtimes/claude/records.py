"""Decodes the records of Claude Code and claude-agent-sdk, 1.0.51 to 2.1.332.

Only listed types of records are read, because newer versions repeat whole requests, including
injected text, in records of other types.
"""

from __future__ import annotations

from ....common.system.files import read_end
from ....common.system.json import (
    as_list,
    as_object,
    as_string,
    holds_object,
    is_glued,
    objects_in,
    objects_of,
)
from ....common.text.timestamps import epoch_seconds
from ...transcripts.entries import Entry, ToolUse, tool_use, typed_by_person
from .. import records
from . import RUNTIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit, Hunk
    from ...transcripts.usage import ModelUsage
    from ..records import Decode, Event, Record

# Records with titles: the rank of each, and the key. The first two titles come from the user, or
# from the agent that started a teammate; models make the others.
_TITLES = {
    "custom-title": (3, "customTitle"),
    "agent-name": (3, "agentName"),
    "ai-title": (2, "aiTitle"),
    "summary": (1, "summary"),
}
_READ_TYPES = tuple(
    f'{kind}"'.encode() for kind in ("user", "assistant", "attachment", "system", *_TITLES)
)
_RESULTS = (b'tool_use_id":', b'type":"tool_result"')
_BEFORE_RESULTS = b'user","message":{"role":"user","content":'
_TYPED = _BEFORE_RESULTS + b'"'
_USUAL_RESULTS = tuple(_BEFORE_RESULTS + b'[{"' + result for result in _RESULTS)
_RESULTS_AT = len(b'"type":"' + _BEFORE_RESULTS)
_DENIED = b'"toolDenialKind":'  # after the message: the call was refused or interrupted
# How an error begins if the call did not run.
_NOT_RUN = (
    "<tool_use_error>",
    "The user doesn't want to ",
    "Permission to use ",
    "Claude requested permissions",
    "PreToolUse:",
    "[Request interrupted",
)
_INTERRUPTED = "[Request interrupted by user"
_MESSAGE_END = b']},"uuid":"'
_TEXT = b'{"type":"text","text":'
# A message with one of these is not the last of its turn
_GOES_ON = (None, "tool_use", "pause_turn")
_FAILED_HOOKS = ("hook_cancelled", "hook_non_blocking_error", "hook_error_during_execution")
HEAD_BYTES = 2048  # of a line, in which its kind shows
_TASK_BYTES = 256 * 1024  # of the end, which contain the call that starts a sub-agent
_GLUED = b'{"parentUuid":'  # a record after another one on the same line

# A result with one of these near its beginning may contain the user's words: answers, or reasons to
# refuse a call.
_ANSWERED, _REFUSED = b" answered", b"user doesn't want to"
_WITH_WORDS = (
    "User has answered",
    "Your questions have",
    "The user answered",
    "The user doesn't want to",
)
_RESULT_HEAD_BYTES = 400  # of a result, in which its text begins
_SHELL_OUTPUT = b'"content":"<bash-stdout>'

_KINDS = {
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "NotebookRead": "read",
    "Bash": "command",
    "PowerShell": "command",
}
# The most informative input of a call, in order of preference, for any tool.
_ARGUMENTS = (
    "file_path",
    "notebook_path",
    "command",
    "pattern",
    "url",
    "query",
    "description",
    "skill",
    "path",
    "name",
)


# Keys of Qwen Code, Gemini and Copilot, which are also in files rewritten by another program.
_KEYS_OF_OTHERS = (b'"provenance":', b'"parts":[', b'"parts": [', b'"projectHash":', b'"parentId":')


class ClaudeCodeRecords(records.Records):
    """A transcript that is not a tree: every record counts."""

    TITLE_MARKS = (b'"custom-title"', b'"agent-name"', b'"ai-title"', b'"summary"')
    CALL_MARK = b'tool_use"'
    HUNKS = b'"structuredPatch":[{'
    BEGINNINGS = (b'{"parentUuid":"', b'{"parentUuid":n', b'{"type":"')

    def recognises(self, line: bytes) -> bool:
        # as in Copilot
        if not line.startswith(b"{") or line.startswith(b'","data":{', line.find(b'"', 9)):
            return False
        if any(key in line for key in _KEYS_OF_OTHERS):
            return False
        return any(key in line for key in (b'"parentUuid":', b'"sessionId":"', b'"leafUuid":"'))

    def owns(self, record: Record) -> bool:
        is_another = (
            "projectHash" in record
            or "provenance" in record
            or "parts" in as_object(record.get("message"))
        )
        return not is_another and any(
            key in record for key in ("parentUuid", "sessionId", "leafUuid")
        )

    def may_hold(self, line: bytes, wanted: records.Wanted) -> bool:
        return bool(
            (
                wanted.results
                and b'"type":"user"' in line
                and (b'"tool_result"' in line or _SHELL_OUTPUT in line)
            )
            or (wanted.messages and _may_say(line, wanted.calls))
            or (wanted.injected and b'"attachment":{"type":"hook_' in line)
            or (wanted.links and b'"parentUuid":' in line)
            or (wanted.usage and b'"usage":{' in line and b'"type":"assistant"' in line)
            or wanted.turns
        )

    def results_in(self, line: bytes, decode: Decode) -> list[records.CallResult] | None:
        """Return the results in a line of only results in the usual form, else None.

        After the message the CLI repeats the result in its own form, which need not be decoded
        then."""
        at = line.find(b'"type":"', 0, HEAD_BYTES)
        if at < 0 or line.find(b"{", 1, at) > 0 or not line.startswith(_USUAL_RESULTS, at + 8):
            return None
        end = line.find(_MESSAGE_END, at)
        if (
            end < 0
            or is_glued(line, _GLUED)
            or line.find(b'"isSidechain":true', 0, at) > 0
            or _may_bring_words(line, at)
        ):
            return None
        decoded, _ = decode(line[at + _RESULTS_AT : end + 1])
        blocks = decoded[0] if len(decoded) == 1 else []
        is_denied = _has_error(blocks) and line.find(_DENIED, end) > 0
        results = _results_of(blocks, is_denied=is_denied)
        return results if results and len(results) == len(blocks) else None

    def counts(self, record: Record, *, of_sub_agents: bool) -> bool:
        return of_sub_agents or not record.get("isSidechain")

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        kind = record.get("type")
        if kind == "user" or kind == "assistant":
            entry = _entry_of(kind, as_object(record.get("message")), record, offset)
            return () if entry is None else (entry,)
        if kind == "attachment":
            return _queued(as_object(record.get("attachment")), record, offset)
        if kind == "system":
            return _of_system(record, offset)
        title = _title(kind, record) if isinstance(kind, str) and kind in _TITLES else None
        return () if title is None else (title,)

    def results(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "user":
            return ()
        content = as_object(record.get("message")).get("content")
        results = _results_of(content, is_denied="toolDenialKind" in record)
        return [*results, *_shell_output(content, record)]

    def injected(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "attachment":
            return ()
        attachment = as_object(record.get("attachment"))
        kind, content = attachment.get("type"), attachment.get("content")
        if kind in _FAILED_HOOKS:
            event = attachment.get("hookEvent", RUNTIME.PROMPT_EVENT)
            return (records.Injected(()),) if event == RUNTIME.PROMPT_EVENT else ()
        if kind == "hook_additional_context" and isinstance(content, list):
            texts = [text for text in content if isinstance(text, str)]
            return (records.Injected(tuple(texts)),)
        return ()

    def turns(self, record: Record) -> Iterable[Event]:
        kind, message = record.get("type"), as_object(record.get("message"))
        if kind == "user":
            return (records.PromptId(as_string(record.get("uuid"))),)
        if kind == "assistant" and message:
            return (_reply(message, record),)
        attachment = as_object(record.get("attachment")) if kind == "attachment" else {}
        if attachment.get("type") == "queued_command":
            return (records.PromptId(as_string(attachment.get("source_uuid"))),)
        return ()

    def is_interruption(self, record: Record) -> bool:
        content = as_object(record.get("message")).get("content")
        texts = [content, *[block.get("text") for block in objects_of(content)]]
        return record.get("type") == "user" and any(
            as_string(text).startswith(_INTERRUPTED) for text in texts
        )

    def usage(self, record: Record) -> Iterable[Event]:
        if record.get("type") != "assistant":
            return ()
        return _usage(as_object(record.get("message")), record)

    def links(self, record: Record) -> Iterable[Event]:
        if not isinstance(record.get("uuid"), str):
            return ()
        # The first record after a compaction names its parent with another key. A prompt that was
        # cancelled before its answer remains as a branch.
        parent = record.get("parentUuid") or record.get("logicalParentUuid")
        is_said = record.get("type") in ("user", "assistant") and not record.get("isSidechain")
        return (records.ParentLink(record["uuid"], as_string(parent), is_said),)

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import block_edits

        return block_edits(record, call_id, "input", "old_string", "new_string")

    def thinking(self, record: Record) -> str:
        blocks = objects_of(as_object(record.get("message")).get("content"))
        return "\n\n".join([as_string(block.get("thinking")) for block in blocks]).strip()

    def hunks(self, record: Record, call_id: str) -> list[Hunk]:
        from ...transcripts.edits import structured_hunks

        blocks = objects_of(as_object(record.get("message")).get("content"))
        if call_id not in [block.get("tool_use_id") for block in blocks]:
            return []
        return structured_hunks(as_object(record.get("toolUseResult")).get("structuredPatch"))

    def edited_path(self, record: Record) -> str:
        return as_string(as_object(record.get("toolUseResult")).get("filePath"))


def _may_say(line: bytes, with_calls: int) -> bool:
    """Return False only for lines recognised as having no entry, title or compaction.

    Lines are recognised without decoding. Without calls, also return False for lines recognised as
    having an entry without text. Most bytes of a transcript are tool results. An unescaped `"key":`
    is never part of a string, so these searches cannot match typed text."""
    at = line.find(b'"type":"', 0, HEAD_BYTES)
    if at > 0 and line.find(b"{", 1, at) < 0:  # nothing is nested before: the record's type
        if line.startswith(_TYPED, at + 8):
            return True
        if line.startswith(_USUAL_RESULTS, at + 8):
            return _usual_result_may_say(line, at)
        if not line.startswith(_READ_TYPES, at + 8):
            return is_glued(line, _GLUED)
    else:
        at = 0
    at = line.find(b'"content":[{"', at, HEAD_BYTES)
    if at < 0:
        at = line.find(b'"attachment":{"type":"', 0, HEAD_BYTES)
        return at < 0 or line.startswith(b"queued_command", at + 22) or is_glued(line, _GLUED)
    if line.startswith(_RESULTS, at + 13):
        return _may_bring_words(line, at) or holds_object(line, (_TEXT, _GLUED))
    if line.startswith(b'type":"thinking"', at + 13):
        says = b'{"type":"text",' in line or (with_calls > 0 and b'{"type":"tool_use",' in line)
        return says or is_glued(line, _GLUED)
    if not with_calls and line.startswith(b'type":"tool_use"', at + 13):
        return b'"text":"' in line or is_glued(line, _GLUED)
    return True


def _usual_result_may_say(line: bytes, at: int) -> bool:
    """Return `_may_say` for a line with results in the usual form, whose type is at `at`."""
    if _may_bring_words(line, at):
        return True
    if not holds_object(line, (_TEXT, _GLUED), at):
        return False
    end = line.find(_MESSAGE_END, at)  # after it, only a glued record has text
    return line.find(_TEXT, at, end) > 0 or is_glued(line, _GLUED)


def _may_bring_words(line: bytes, at: int) -> bool:
    """Check if the result that begins at `at` in a line may have the user's words."""
    end = at + _RESULT_HEAD_BYTES
    return line.find(_ANSWERED, at, end) > 0 or line.find(_REFUSED, at, end) > 0


def _entry_of(kind: str, message: Record, record: Record, offset: int) -> Entry | None:
    """Return the entry in a `user` or `assistant` record; None if nobody said it.

    Results, thinking, meta records, compaction summaries, notifications, API errors and injected
    text were said by nobody."""
    if not message or record.get("isCompactSummary") or message.get("role", kind) != kind:
        return None
    if kind == "user":
        content = message.get("content")
        is_typed = (
            not record.get("isMeta")
            and as_object(record.get("origin")).get("kind", "human") == "human"
        )
        text = _user_text(content, record) if is_typed else _sent_by_channel(content)
        tools = () if text else _own_command(content, record)
        return _entry("user", text, tools, record, offset) if text or tools else None
    if record.get("isMeta"):
        return None
    if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
        return None
    text, tools = records.said_and_called(
        message.get("content"),
        ("tool_use", "server_tool_use", "mcp_tool_use"),
        "input",
        _KINDS,
        _ARGUMENTS,
    )
    if not text and not tools:
        return None
    return _entry("assistant", text, tools, record, offset, message_id=message.get("id"))


def _queued(attachment: Record, record: Record, offset: int) -> list[Event]:
    """Return a prompt that was typed while the agent was working, and so has no user record."""
    if attachment.get("type") != "queued_command" or record.get("isCompactSummary"):
        return []
    if attachment.get("commandMode", "prompt") != "prompt":
        return []
    origin, prompt = as_object(attachment.get("origin")), attachment.get("prompt")
    is_the_users = origin.get("kind", "human") == "human" and not record.get("isMeta")
    text = _user_text(prompt, record) if is_the_users else _sent_by_channel(prompt)
    return [_entry("user", text, (), record, offset)] if text else []


def _of_system(record: Record, offset: int) -> list[Event]:
    """Return a compaction, or a command's words that newer versions store in a system record."""
    if record.get("subtype") == "compact_boundary":
        return [records.Compaction()]
    text = _prompt_text(record.get("content")) if record.get("subtype") == "local_command" else ""
    return [_entry("user", text, (), record, offset)] if text else []


def _title(kind: str, record: Record) -> records.Title | None:
    """Return the title in a record.

    A summary belongs to the conversation that ends with its leaf, usually another one."""
    rank, key = _TITLES[kind]
    text = as_string(record.get(key))
    if not text.strip():
        return None
    leaf = (
        f'"uuid":"{as_string(record.get("leafUuid"))}"'.encode("utf-8", "replace")
        if kind == "summary"
        else b""
    )
    return records.Title(rank, text, as_string(record.get("sessionId")), leaf)


def _reply(message: Record, record: Record) -> records.Reply:
    """Return the part of a reply in an `assistant` record.

    A message of several blocks spans several records. API errors and sub-agents' messages end no
    turn."""
    blocks = objects_of(message.get("content"))
    texts = [
        block["text"]
        for block in blocks
        if block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    is_the_models = not record.get("isSidechain") and not record.get("isApiErrorMessage")
    ends_turn = (
        is_the_models
        and message.get("model") != "<synthetic>"
        and message.get("stop_reason") not in _GOES_ON
    )
    return records.Reply(as_string(message.get("id")), "\n\n".join(texts), ends_turn)


def _usage(message: Record, record: Record) -> list[ModelUsage]:
    """Return the usage of a message, including the advisor's that its model asked meanwhile.

    A sub-agent's message counts too. All records of a message repeat its usage."""
    usage, model = message.get("usage"), as_string(message.get("model"))
    if not isinstance(usage, dict) or model == "<synthetic>" or record.get("isApiErrorMessage"):
        return []
    # gateways may leave out the first
    answer_id = as_string(message.get("id")) or as_string(record.get("requestId"))
    usages = [_usage_of(usage, answer_id, model, is_copy="forkedFrom" in record)]
    for number, part in enumerate(objects_of(usage.get("iterations"))):
        if part.get("type") == "advisor_message":  # is not in the totals
            adviser = as_string(part.get("model")) or model
            part_id = f"{answer_id} {number}" if answer_id else ""
            advice = _usage_of(part, part_id, adviser, is_copy="forkedFrom" in record)
            usages.append(advice._replace(is_advisor=True))
    return usages


def _usage_of(usage: Record, answer_id: str, model: str, *, is_copy: bool) -> ModelUsage:
    from ...transcripts.usage import ModelUsage, amount

    for_an_hour = amount(usage.get("cache_creation"), "ephemeral_1h_input_tokens")
    return ModelUsage(
        answer_id,
        model,
        input=amount(usage, "input_tokens"),
        output=amount(usage, "output_tokens"),
        cached=amount(usage, "cache_read_input_tokens"),
        written=max(0, amount(usage, "cache_creation_input_tokens") - for_an_hour),
        written_for_an_hour=for_an_hour,
        is_copy=is_copy,
        searches=amount(usage.get("server_tool_use"), "web_search_requests"),
    )


def _entry(
    role: str,
    text: str,
    tools: tuple[ToolUse, ...],
    record: Record,
    offset: int,
    message_id: object = None,
) -> Entry:
    is_copy = "forkedFrom" in record
    id = records.copied_id(record, "messageUuid") if is_copy else ""
    origin = records.copied_id(record, "sessionId") if is_copy else ""
    return Entry(
        role,
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=id or as_string(record.get("uuid")),
        message_id=as_string(message_id),
        offset=offset,
        cwd=as_string(record.get("cwd")),
        is_copy=is_copy,
        origin=origin or as_string(record.get("sessionId")),
    )


def _results_of(content: object, *, is_denied: bool) -> list[records.CallResult]:
    """Return the results among the blocks of a message."""
    return [
        records.CallResult(
            as_string(block["tool_use_id"]),
            block.get("is_error") is True,
            block.get("content"),
            not (
                block.get("is_error") is True and (is_denied or _says_not_run(block.get("content")))
            ),
        )
        for block in as_list(content)
        if isinstance(block, dict) and block.get("type") == "tool_result" and "tool_use_id" in block
    ]


def _has_error(blocks: object) -> bool:
    return any([block.get("is_error") is True for block in objects_of(blocks)])


def _says_not_run(content: object) -> bool:
    """Check if an error states that the call did not run.

    Older versions do not mark this, and few errors state it."""
    first = content[0] if isinstance(content, list) and content else content
    return as_string(first.get("text") if isinstance(first, dict) else first).startswith(_NOT_RUN)


def _user_text(content: object, record: Record) -> str:
    """Return the user's text in `content`, a string or blocks; images become `[image]`, and so
    on."""
    if isinstance(content, str):
        return _prompt_text(content)
    parts = []
    for block in as_list(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            parts.append(_prompt_text(block["text"]))
        elif kind in ("image", "document"):
            parts.append(f"[{kind}]")
        elif kind == "tool_result":
            parts.append(_words_of_result(block, record))
    return "\n\n".join([part for part in parts if part])


def _prompt_text(text: object) -> str:
    """Return the words that the user typed, without additions by the CLI and hooks."""
    if not isinstance(text, str):
        return ""
    text = text.strip()
    if text.startswith(("<", "[Request interrupted", "Caveat: The messages below")):
        from .prompts import typed_text

        text = typed_text(text)
    return typed_by_person(text)


def _words_of_result(block: Record, record: Record) -> str:
    """Return the user's words in a tool's result: their answers, or why they refused the call."""
    content = block.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = as_string(first.get("text") if isinstance(first, dict) else first)
    if not text.startswith(_WITH_WORDS):
        return ""
    from .prompts import words_of_result

    return words_of_result(
        text, record.get("toolUseResult"), has_failed=block.get("is_error") is True
    )


def _sent_by_channel(content: object) -> str:
    """Return a person's words in a message from a channel, or ''."""
    blocks = (
        [content]
        if isinstance(content, str)
        else [block.get("text") for block in objects_of(content)]
    )
    return "\n\n".join(
        [_prompt_text(text) for text in blocks if as_string(text).startswith("<channel ")]
    )


def _own_command(content: object, record: Record) -> tuple[ToolUse, ...]:
    """Return the command that the user ran (`!`)."""
    if (
        record.get("isMeta")
        or not isinstance(content, str)
        or not content.lstrip().startswith("<bash-input>")
    ):
        return ()
    command = content.partition("<bash-input>")[2].rpartition("</bash-input>")[0].strip()
    return tool_use(
        "Bash", {"command": command}, ("command",), "command", as_string(record.get("uuid"))
    )


def _shell_output(content: object, record: Record) -> list[records.CallResult]:
    """Return the result of a command that the user ran. Nothing says if it failed."""
    if not isinstance(content, str) or not content.startswith("<bash-stdout>"):
        return []
    return [records.CallResult(as_string(record.get("parentUuid")), False, content)]


def tasks_given(path: str, agent_type: str) -> list[str]:
    """Return the prompts for sub-agents of a type in the last message that starts some.

    Return [] unless one of these calls has no result yet."""
    calls_by_message: dict[str, dict[str, str]] = {}
    content = read_end(path, _TASK_BYTES)
    for line in content.split(b"\n"):
        if b'"name":"Agent"' in line or b'"name":"Task"' in line:
            for message in [as_object(record.get("message")) for record in objects_in(line)]:
                for block in map(as_object, as_list(message.get("content"))):
                    given = as_object(block.get("input"))
                    if (
                        block.get("name") in ("Agent", "Task")
                        and given.get("subagent_type", agent_type) == agent_type
                    ):
                        calls = calls_by_message.setdefault(as_string(message.get("id")), {})
                        calls[as_string(block.get("id"))] = as_string(given.get("prompt"))
    calls = next(reversed(calls_by_message.values()), {})
    is_open = any([b'"tool_use_id":"%s"' % call.encode() not in content for call in calls])
    return list(calls.values()) if is_open else []
