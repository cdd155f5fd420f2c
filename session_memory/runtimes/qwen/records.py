"""What a line in a chat of Qwen Code means. Records are those of Qwen Code 0.11 to 0.24."""

from __future__ import annotations

from ...system.json import as_string, is_glued
from ...text.timestamps import epoch_seconds
from ...transcripts.entries import Entry, Reply, ToolUse, tool_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...transcripts.edits import Edit
    from ...transcripts.usage import ModelUsage
    from ..contract import ToolResult

    Record = dict[str, Any]

TITLE_RANK = 3
TITLE_MARKS = (b'"custom_title"',)
HEAD_BYTES = 600  # of a line, in which its type shows
_GLUED = b'{"uuid":"'  # a record behind another one on the same line
_KINDS = {
    "edit": "edit", "write_file": "edit", "read_file": "read", "run_shell_command": "command",
}  # fmt: skip
_ARGUMENTS = ("file_path", "command", "pattern", "url", "query", "description", "path", "prompt", "name")
# What older versions, which do not say where a text comes from, write as a user's that nobody typed.
_PUT_IN = ("slash_command", "goal_runtime", "notification", "cron")
_INJECTED = "<qwen:"  # how a part begins that Qwen Code or a hook put in


def may_matter(line: bytes, with_tools: bool = True) -> bool:
    """False for lines recognised as telemetry, snapshots and results, most of a chat; without tools also for what
    shows that it has no text."""
    at = line.find(b'"type":"', 0, HEAD_BYTES)
    if at < 0:
        return True
    if line.startswith(b"system", at + 8):
        at = line.find(b'"subtype":"', at, HEAD_BYTES + 400)
        is_known = line.startswith((b"custom_title", b"chat_compression"), at + 11)
        return at < 0 or is_known or is_glued(line, _GLUED)
    if line.startswith(b"tool_result", at + 8):
        return is_glued(line, _GLUED)
    return with_tools or b'"text":"' in line or is_glued(line, _GLUED)


def branch(first_line: bytes) -> None:
    """None: a chat is no tree, every record counts."""


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a `user` or `assistant` record: without what hooks put in, and without thoughts."""
    kind = record.get("type")
    message = record.get("message")
    if kind not in ("user", "assistant") or not isinstance(message, dict) or record.get("isSidechain"):
        return None
    if record.get("provenance", "real_user") not in ("real_user", "assistant_output"):
        return None
    if "provenance" not in record and record.get("subtype") in _PUT_IN:
        return None
    parts = message.get("parts")
    text, tools = _content(parts if isinstance(parts, list) else [])
    if kind == "user":
        payload = record.get("systemPayload")
        shown = payload.get("displayText") if isinstance(payload, dict) else None
        text, tools = (shown.strip() if isinstance(shown, str) and shown.strip() else text), ()
    if not text and not tools:
        return None
    return Entry(
        str(kind),
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=_copied(record, "messageUuid") or as_string(record.get("uuid")),
        offset=offset,
        cwd=as_string(record.get("cwd")),
        is_copy="forkedFrom" in record,
        origin=_copied(record, "sessionId") or as_string(record.get("sessionId")),
    )


def title(record: Record) -> tuple[int, str] | None:
    """The name that the user gave the session with `/rename`."""
    payload = record.get("systemPayload")
    if record.get("subtype") != "custom_title" or not isinstance(payload, dict):
        return None
    return TITLE_RANK, as_string(payload.get("customTitle")).strip()


def is_compaction(record: Record) -> bool:
    """Whether Qwen Code compressed the conversation here."""
    return record.get("subtype") == "chat_compression"


def may_bring_results(line: bytes) -> bool:
    """False only for a line that surely brings no result of a call."""
    return b'"functionResponse"' in line


def results_in(line: bytes, decode: Callable[[bytes], tuple[list[Any], int]]) -> None:
    """None: results stand nowhere but in the record, which has to be decoded."""


def results(record: Record) -> list[ToolResult]:
    """The results in a `tool_result` record: what failed has an `error` in place of an `output`."""
    message = record.get("message")
    if record.get("type") != "tool_result" or not isinstance(message, dict) or record.get("isSidechain"):
        return []
    found: list[ToolResult] = []
    parts = message.get("parts")
    for part in parts if isinstance(parts, list) else ():
        given = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(given, dict):
            response = given.get("response")
            response = response if isinstance(response, dict) else {}
            content = response.get("error", response.get("output"))
            found.append((as_string(given.get("id")), "error" in response, content))
    return found


def may_show_told(line: bytes) -> bool:
    """False only for a line that surely says nothing of what a hook told."""
    return b'"hookContext":"' in line


def told(record: Record) -> tuple[str, ...] | None:
    """What hooks told with a prompt, which stands in its record."""
    payload = record.get("systemPayload")
    context = payload.get("hookContext") if isinstance(payload, dict) else None
    return (context,) if record.get("type") == "user" and isinstance(context, str) else None


def may_link(line: bytes) -> bool:
    """False only for a line that surely holds no record of a conversation."""
    return b'"uuid":"' in line


def link(record: Record) -> tuple[str, str, bool] | None:
    """Every record names the one that it goes on from."""
    record_id = record.get("uuid")
    if not isinstance(record_id, str):
        return None
    return record_id, as_string(record.get("parentUuid")), record.get("type") in ("user", "assistant")


def time(record: Record) -> float | None:
    """When the record was written."""
    return epoch_seconds(record.get("timestamp"))


def written(record: Record, call_id: str) -> str | None:
    """What the tool write_file was given as the content of a file."""
    message = record.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    for part in parts if isinstance(parts, list) else ():
        call = part.get("functionCall") if isinstance(part, dict) else None
        if isinstance(call, dict) and call.get("id") == call_id and call.get("name") == "write_file":
            arguments = call.get("args")
            content = arguments.get("content") if isinstance(arguments, dict) else None
            return content if isinstance(content, str) else None
    return None


def edits(record: Record, call_id: str) -> list[Edit]:
    """What edit or write_file replaced."""
    from ...transcripts.edits import argument_edits

    message = record.get("message")
    parts = message.get("parts") if isinstance(message, dict) else None
    for part in parts if isinstance(parts, list) else ():
        call = part.get("functionCall") if isinstance(part, dict) else None
        if isinstance(call, dict) and call.get("id") == call_id:
            return argument_edits(call.get("args"), "old_string", "new_string", "content")
    return []


def of_sub_agent(record: Record) -> Record:
    """The record without its mark."""
    return {key: value for key, value in record.items() if key != "isSidechain"}


def prompt_id(record: Record) -> str:
    """The id of a user's message; '' for any other record. Who sends a prompt cannot choose it."""
    return as_string(record.get("uuid")) if record.get("type") == "user" else ""


def reply(record: Record) -> Reply | None:
    """What an `assistant` record holds; the last of a turn calls no tool."""
    found = entry(record, 0) if record.get("type") == "assistant" else None
    return Reply(found.id, found.text, not found.tools) if found is not None else None


def may_bring_usage(line: bytes) -> bool:
    """False only for a line that does not tell of an answer."""
    return b'qwen-code.api_response"' in line


def usage(record: Record) -> ModelUsage | None:
    """What an answer took, by the telemetry behind it. What came from a cache is part of what was read; thoughts count
    as written, wherever the provider counts them."""
    from ...transcripts.usage import ModelUsage, amount

    payload = record.get("systemPayload")
    event = payload.get("uiEvent") if isinstance(payload, dict) else None
    if not isinstance(event, dict) or event.get("event.name") != "qwen-code.api_response":
        return None
    read, cached = amount(event, "input_token_count"), amount(event, "cached_content_token_count")
    return ModelUsage(
        f"{event.get('response_id')} {event.get('event.timestamp')}",
        as_string(event.get("model")),
        input=max(0, read - cached),
        output=max(amount(event, "output_token_count"), amount(event, "total_token_count") - read),
        cached=cached,
        is_copy=bool(_copied(record, "messageUuid")),
    )


def recognises(line: bytes) -> bool:
    """Whether a line (perhaps cut off) at the beginning of a file shows that it is a chat of Qwen Code."""
    return line.startswith(b'{"uuid":"') and (b'"provenance":"' in line or b'","parts":[' in line)


def _copied(record: Record, key: str) -> str:
    """Return the id that a copied record, or its session, had."""
    origin = record.get("forkedFrom")
    return as_string(origin.get(key)) if isinstance(origin, dict) else ""


def _content(parts: list[Any]) -> tuple[str, tuple[ToolUse, ...]]:
    texts: list[str] = []
    tools: list[ToolUse] = []
    for part in parts:
        if not isinstance(part, dict) or part.get("thought"):
            continue
        text = part.get("text")
        call = part.get("functionCall")
        if isinstance(text, str):
            texts.append("" if text.lstrip().startswith(_INJECTED) else text.strip())
        elif "inlineData" in part or "fileData" in part:
            texts.append("[image]")
        elif isinstance(call, dict):
            name = as_string(call.get("name")) or "tool"
            of_kind, call_id = _KINDS.get(name, "other"), as_string(call.get("id"))
            use = tool_use(name, call.get("args"), _ARGUMENTS, of_kind, call_id)
            if use is not None:
                tools.append(use)
    return "\n\n".join([text for text in texts if text]), tuple(tools)
