"""The records that Claude Code 2.1 writes: one content block per line, every tool result twice."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

from .author import Author, Record
from .formats import Format
from .tools import Call, call

MODEL = "claude-opus-4-5-20251101"
_SYSTEM: Record = {"type": "system", "level": "info", "isMeta": False}


class Claude(Format):
    def opening(self, author: Author) -> Iterator[Record]:
        if author.chance(0.4):
            yield {"type": "summary", "summary": author.words(7), "leafUuid": author.uuid()}

    def take_up(self, author: Author, record: Record) -> bool:
        if "uuid" not in record:
            return False
        author.parent_id, author.session_id, author.cwd = (
            record["uuid"],
            record["sessionId"],
            record["cwd"],
        )
        return True

    def kind(self, record: Record) -> str:
        if record["type"] not in ("user", "assistant"):
            return str(record["type"])
        content = record["message"]["content"]
        block = "text" if isinstance(content, str) else content[0]["type"]
        return f"text of the {record['type']}" if block == "text" else str(block)

    def turn(self, author: Author) -> Iterator[Record]:
        prompt = author.prose(author.spread(150, 1.1, most=8000))
        yield _file_history_snapshot(author)
        yield from _prompt(author, prompt)
        for _ in range(int(author.random.expovariate(1 / 9)) + 1):
            yield from _step(author)
            if author.chance(0.02):
                yield _queued_prompt(author)
        answer = author.prose(author.spread(735, 0.8, most=9000))
        yield _assistant(author, author.token("msg_01"), {"type": "text", "text": answer})
        yield _linked(
            author, **_SYSTEM, subtype="turn_duration", durationMs=author.random.randrange(300_000)
        )
        if author.chance(0.5):
            yield {
                "type": "last-prompt",
                "lastPrompt": prompt[:200],
                "sessionId": author.session_id,
            }
        if author.chance(0.03):
            yield from _compaction(author)


def _prompt(author: Author, text: str) -> Iterator[Record]:
    content = text if author.chance(0.7) else [{"type": "text", "text": text}]
    yield _linked(
        author,
        type="user",
        message={"role": "user", "content": content},
        permissionMode="default",
        todos=[],
    )
    if author.chance(0.3):
        attachment = {"type": "hook_additional_context", "content": [author.prose(400)]}
        yield _linked(author, attachment=attachment, type="attachment")


def _step(author: Author) -> Iterator[Record]:
    """Yield one answer of the API: perhaps thoughts and a remark, then tools with results."""
    message_id = author.token("msg_01")
    if author.chance(0.35):
        signature = b64encode(author.random.randbytes(author.random.randrange(150, 900))).decode()
        thought = author.prose(author.spread(490, 0.9, most=6000))
        yield _assistant(
            author, message_id, {"type": "thinking", "thinking": thought, "signature": signature}
        )
    if author.chance(0.4):
        remark = author.prose(author.random.randrange(40, 400))
        yield _assistant(author, message_id, {"type": "text", "text": remark})
    for _ in range(1 if author.chance(0.8) else 2):
        yield from _tool_use(author, message_id)


def _tool_use(author: Author, message_id: str) -> Iterator[Record]:
    used = call(author)
    use_id = author.token("toolu_01")
    block = {"type": "tool_use", "id": use_id, "name": used.name, "input": used.arguments}
    yield _assistant(author, message_id, block)
    asked_by = author.parent_id
    yield from _progress(author, used, use_id)
    yield _tool_result(author, used, use_id, asked_by)


def _progress(author: Author, used: Call, use_id: str) -> Iterator[Record]:
    """Yield the progress output of a running tool, long for commands and sub-agents."""
    if author.chance(0.5):
        report: Record = {
            "type": "hook_progress",
            "hookEvent": "PostToolUse",
            "command": "callback",
        }
        yield _linked(author, type="progress", data=report, toolUseID=use_id)
    if used.name == "Bash" and author.chance(0.3):
        for _ in range(author.random.randrange(1, 6)):
            output = author.text("log", author.random.randrange(300, 2500))
            report = {"type": "bash_progress", "output": output[-300:], "fullOutput": output}
            yield _linked(author, type="progress", data=report, parentToolUseID=use_id)
    if used.name == "Task":
        for _ in range(author.random.randrange(4, 20)):
            result = {
                "type": "tool_result",
                "tool_use_id": author.token("toolu_01"),
                "content": call(author).result,
            }
            message: Record = {"type": "user", "message": {"role": "user", "content": [result]}}
            report = {"message": message, "type": "agent_progress", "agentId": "a1b2c3d"}
            yield _linked(author, type="progress", data=report, parentToolUseID=use_id)


def _tool_result(author: Author, used: Call, use_id: str, asked_by: str | None) -> Record:
    is_error = author.chance(0.05)
    block: Record = {"tool_use_id": use_id, "type": "tool_result", "content": used.result}
    if is_error or used.name == "Bash":
        block["is_error"] = is_error
    record = _linked(author, type="user", message={"role": "user", "content": [block]})
    record["toolUseResult"] = f"Error: {used.result[:2000]}" if is_error else used.details
    record["sourceToolAssistantUUID"] = asked_by
    return record


def _assistant(author: Author, message_id: str, block: Record) -> Record:
    random = author.random
    usage = {
        "input_tokens": random.randrange(1, 12),
        "cache_creation_input_tokens": random.randrange(9_000),
        "cache_read_input_tokens": random.randrange(180_000),
        "cache_creation": {
            "ephemeral_5m_input_tokens": random.randrange(9_000),
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": 300,
        "service_tier": "standard",
    }
    message = {
        "model": MODEL,
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "content": [block],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return _linked(author, message=message, requestId=author.token("req_011C"), type="assistant")


def _queued_prompt(author: Author) -> Record:
    """Return what a person typed while the agent was working."""
    queued: Record = {
        "type": "queued_command",
        "prompt": author.prose(120),
        "commandMode": "prompt",
    }
    return _linked(author, attachment={**queued, "origin": {"kind": "human"}}, type="attachment")


def _compaction(author: Author) -> Iterator[Record]:
    metadata = {"trigger": "auto", "preTokens": 155_123}
    fields = {"content": "Conversation compacted", "compactMetadata": metadata}
    yield _linked(author, **_SYSTEM, subtype="compact_boundary", **fields)
    text = "This session is being continued from a previous conversation. " + author.prose(9000)
    message = {"role": "user", "content": text}
    yield _linked(
        author, type="user", message=message, isVisibleInTranscriptOnly=True, isCompactSummary=True
    )


def _file_history_snapshot(author: Author) -> Record:
    message_id = author.uuid()
    files = author.random.sample(author.texts.files, min(40, int(author.random.expovariate(0.15))))
    time = author.timestamp()
    backups = {
        file: {
            "backupFileName": f"{author.random.getrandbits(64):016x}@v2",
            "version": 2,
            "backupTime": time,
        }
        for file in files
    }
    snapshot = {"messageId": message_id, "trackedFileBackups": backups, "timestamp": time}
    return {
        "type": "file-history-snapshot",
        "messageId": message_id,
        "snapshot": snapshot,
        "isSnapshotUpdate": False,
    }


def _linked(author: Author, **fields: object) -> Record:
    """Return a record in the common envelope of records, with the keys in order.

    User, assistant, system, attachment and progress records have it."""
    envelope: Record = {
        "parentUuid": author.parent_id,
        "isSidechain": author.is_subagent,
        "userType": "external",
        "cwd": author.cwd,
        "sessionId": author.session_id,
        "version": "2.1.37",
        "gitBranch": "main",
    }
    author.parent_id = author.uuid()
    return {**envelope, **fields, "uuid": author.parent_id, "timestamp": author.timestamp()}
