"""Reads the items of a turn in Codex, as a person saw it: messages, and what was done, each with how it ended."""

from __future__ import annotations

from ...system.json import as_list, as_object, as_string
from ...text.paths import resolved
from ...transcripts.edits import part_id
from ...transcripts.entries import Entry, ToolUse, tool_use
from ..records import CallResult
from .content import ARGUMENTS, joined_text, new_entry, shell_line, typed_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Record


def entry_of_item(item: Record, payload: Record, record: Record, offset: int) -> Entry | None:
    """Return the entry in an item that a person saw."""
    kind = item.get("type")
    item_id = as_string(item.get("id"))
    if kind == "UserMessage":
        text = typed_text(item.get("content"))
        return new_entry("user", text, (), record, offset, item_id) if text else None
    # Ids of messages and calls are the provider's, and some number them anew in each turn.
    entry_id = ":".join([part for part in (as_string(payload.get("turn_id")), item_id) if part])
    if kind == "AgentMessage":
        text = joined_text(item.get("content"))
        return new_entry("assistant", text, (), record, offset, entry_id) if text else None
    uses = _uses(item)
    if not uses:
        return None
    role = "user" if item.get("source") in ("user_shell", "userShell") else "assistant"
    found = new_entry(role, "", uses, record, offset, entry_id)
    found.cwd = as_string(item.get("cwd")).removeprefix("file://")
    return found


def _uses(item: Record) -> tuple[ToolUse, ...]:
    """Return what an item did: a command or a file that it read, the files of a patch, or the call of another tool."""
    kind, call_id = item.get("type"), as_string(item.get("id"))
    if kind == "CommandExecution":
        parsed = as_list(item.get("parsed_cmd"))
        only = as_object(parsed[0]) if len(parsed) == 1 else {}
        path = as_string(only.get("path"))
        if only.get("type") == "read" and path:
            directory = as_string(item.get("cwd")).removeprefix("file://")
            return tool_use("read", {"path": resolved(path, directory) or path}, ARGUMENTS, "read", call_id)
        return tool_use("exec_command", {"command": shell_line(item.get("command"))}, ARGUMENTS, "command", call_id)
    if kind == "FileChange":
        changes = enumerate(changes_of(item))
        each = [tool_use("apply_patch", {"path": path}, ARGUMENTS, "edit", change_id(item, at)) for at, path in changes]
        return tuple([use for uses in each for use in uses])
    if kind == "McpToolCall":
        name = f"mcp__{as_string(item.get('server'))}__{as_string(item.get('tool'))}"
        return tool_use(name, item.get("arguments"), ARGUMENTS, "other", call_id)
    if kind == "CollabAgentToolCall":
        return tool_use(as_string(item.get("tool")) or "agent", item, ("prompt",), "other", call_id)
    return (
        tool_use("web_search", {"query": item.get("query")}, ARGUMENTS, "other", call_id) if kind == "WebSearch" else ()
    )


def results_of_item(item: Record) -> list[CallResult]:
    """Return how what an item did ended; nothing where it does not say."""
    status = item.get("status")
    if status not in ("completed", "failed", "declined"):
        return []
    has_run = status != "declined"
    has_failed = status != "completed" or item.get("exit_code") not in (None, 0)
    call_id = as_string(item.get("id"))
    if item.get("type") == "CommandExecution":
        return [CallResult(call_id, has_failed, item.get("aggregated_output"), has_run)]
    if item.get("type") == "FileChange":
        text = as_string(item.get("stderr")) or as_string(item.get("stdout"))
        return [CallResult(change_id(item, at), has_failed, text, has_run) for at in range(len(changes_of(item)))]
    if item.get("type") == "McpToolCall":
        result = item.get("error") or item.get("result")
        content = result.get("content") if isinstance(result, dict) else result
        return [CallResult(call_id, has_failed or bool(item.get("error")), content)]
    return [CallResult(call_id, has_failed, "")]


def changes_of(item: Record) -> Record:
    """Return the changes of a patch by the path of each file."""
    return as_object(item.get("changes"))


def change_id(item: Record, number: int) -> str:
    """Return the id of the change of one file in a patch."""
    return part_id(as_string(item.get("id")), number)
