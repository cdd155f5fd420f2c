"""Decodes the lines of Anvil's sessions."""

import json

from session_memory.common.system.json import as_object, as_string, is_glued, objects_of
from session_memory.common.text.timestamps import epoch_seconds
from session_memory.sessions.runtimes import records
from session_memory.sessions.transcripts.entries import Entry, tool_use

_GLUED = b'{"type":"turn","id":"'
_KINDS = {
    "Edit": "edit",
    "Create": "edit",
    "ApplyPatch": "edit",
    "Read": "read",
    "Execute": "command",
}
_ARGUMENTS = ("file_path", "command", "pattern", "directory_path", "prompt", "query")


class AnvilBranch(records.Branch):
    """Only the first record has the directory, and the parent of a fork."""

    def __init__(self, start):
        self.directory = as_string(start.get("cwd"))
        self.is_fork = "parent" in start


class AnvilRecords(records.Records):
    TITLE_MARKS = (b'"session_opened"',)
    BEGINNINGS = (b'{"type":"turn",', b'{"type":"session_opened",')

    def recognises(self, line):
        if line.startswith(b'{"type":"session_opened","id":"'):
            return b'"owner":' in line
        return (
            line.startswith(_GLUED)
            and b'"message":{"role":' in line
            and b'"parentUuid"' not in line
        )

    def owns(self, record):
        return record.get("type") in ("session_opened", "turn") and (
            "owner" in record or "role" in as_object(record.get("message"))
        )

    def open_transcript(self, first_line):
        try:
            start = json.loads(first_line)
        except ValueError:
            return None
        is_start = isinstance(start, dict) and start.get("type") == "session_opened"
        return AnvilBranch(start) if is_start else None

    def may_hold(self, line, wanted):
        if is_glued(line, _GLUED) or wanted.links or wanted.turns:
            return True
        is_hook, is_result = b'"hookEventName":' in line, b'"type":"tool_result"' in line
        if (wanted.injected and is_hook) or (wanted.results and is_result):
            return True
        is_message = line.startswith(b'{"type":"turn"')
        is_said = not is_hook and not line.startswith(b'{"type":"agent_turn_outcome"')
        has_text = wanted.calls or b'"type":"text"' in line or not is_message
        return bool(wanted.messages and is_said and has_text)

    def events(self, record, offset, wanted):
        kind, message = record.get("type"), as_object(record.get("message"))
        if kind == "session_opened":
            title = as_string(record.get("title"))
            is_given = wanted.messages and record.get("isSessionTitleManuallySet") and title
            return [records.Title(3, title)] if is_given else []
        if kind == "compaction_state":
            return [records.Compaction()] if wanted.messages else []
        if kind != "turn":
            return []
        if "hookEventName" in message:
            texts = [_told(result) for result in objects_of(message.get("hookResults"))]
            return [records.Injected((text,)) for text in texts if text and wanted.injected]
        found = []
        blocks = objects_of(message.get("content"))
        entry = _entry(record, message, blocks, offset)
        if entry is not None and wanted.messages and (wanted.calls or entry.text):
            found.append(entry)
        if wanted.turns:
            found += records.turn_of(entry)
        if wanted.results:
            found += [
                records.CallResult(
                    as_string(block.get("tool_use_id")),
                    block.get("is_error") is True,
                    block.get("content"),
                )
                for block in blocks
                if block.get("type") == "tool_result"
            ]
        if wanted.links and isinstance(record.get("id"), str):
            found.append(records.ParentLink(record["id"], as_string(record.get("parentId")), True))
        return found


def _told(result):
    try:
        output = as_object(json.loads(as_string(result.get("stdout")) or "{}"))
    except ValueError:
        return ""
    return as_string(as_object(output.get("hookSpecificOutput")).get("additionalContext"))


def _entry(record, message, blocks, offset):
    is_context = as_string(record.get("id")).startswith("context-")
    if is_context or message.get("visibility") == "user_only":
        return None
    texts = [
        as_string(block.get("text")).strip() for block in blocks if block.get("type") == "text"
    ]
    text = "\n\n".join(said for said in texts if said and not said.startswith("<system-reminder>"))
    tools = []
    for block in blocks:
        if block.get("type") == "tool_use":
            name = as_string(block.get("name")) or "tool"
            kind = _KINDS.get(name, "other")
            call_id = as_string(block.get("id"))
            tools += tool_use(name, block.get("input"), _ARGUMENTS, kind, call_id)
    if not text and not tools:
        return None
    return Entry(
        as_string(message.get("role")),
        text,
        tools=tuple(tools),
        timestamp=epoch_seconds(record.get("timestamp")),
        id=as_string(record.get("id")),
        offset=offset,
    )
