"""Pi: where session files lie, what a record means, what its extension is given. Session format versions 1 to 3."""

from __future__ import annotations

from ..entries import Entry, ToolUse
from ..files import is_directory, os
from ..timestamps import epoch_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Record = dict[str, Any]

CUSTOM_TYPE = "session-update"
_KINDS = {"edit": "edit", "write": "edit", "read": "read", "bash": "command"}
_ARGUMENTS = ("path", "file_path", "command", "pattern", "url", "query", "description")


def session_names(sessions_dir: str) -> list[str]:
    """The names of the sessions of an agent home: one directory each, without `new-*`, which are just being made."""
    try:
        names = os.listdir(sessions_dir)
    except FileNotFoundError:
        return []
    return [name for name in names if not name.startswith((".", "new-")) and is_directory(f"{sessions_dir}/{name}")]


def latest_transcript(sessions_dir: str, name: str) -> str:
    """The session file of `<sessions_dir>/<name>/` written last, which pi would continue; '' if there is none."""
    directory = f"{sessions_dir}/{name}"
    try:
        paths = [f"{directory}/{file}" for file in os.listdir(directory) if file.endswith(".jsonl")]
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return max(paths, key=lambda path: os.stat(path).st_mtime_ns, default="")


def may_matter(line: bytes) -> bool:
    """False for tool results, most of a session file's bytes."""
    return b'"role":"toolResult"' not in line[:400]


def entry(record: Record, offset: int) -> Entry | None:
    """The entry in a `message` record: a user's, the assistant's, or a command that the user ran (`!`)."""
    message = record.get("message")
    if record.get("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    text = ""
    tools: tuple[ToolUse, ...] = ()
    if role == "user":
        text, _ = _content(message.get("content"))
    elif role == "assistant" and message.get("stopReason") != "error":
        text, tools = _content(message.get("content"))
    elif role == "bashExecution" and isinstance(message.get("command"), str):
        role, tools = "user", (ToolUse("bash", message["command"], "command"),)
    if not text and not tools:
        return None
    return Entry(
        str(role),
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=record["id"] if isinstance(record.get("id"), str) else "",
        offset=offset,
    )


def title(record: Record) -> tuple[int, str] | None:
    """The name that the user gave the session with `/name`."""
    name = record.get("name") if record.get("type") == "session_info" else None
    return (3, name) if isinstance(name, str) and name.strip() else None


def context_output(text: str) -> dict[str, Any]:
    """The message that the extension returns from `before_agent_start`."""
    return {"message": {"customType": CUSTOM_TYPE, "content": text, "display": True}}


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
            name = block["name"]
            tools.append(ToolUse(name, _primary_argument(block.get("arguments")), _KINDS.get(name, "other")))
    return "\n\n".join([part for part in parts if part]), tuple(tools)


def _primary_argument(arguments: object) -> str:
    values = arguments if isinstance(arguments, dict) else {}
    strings = {key: value for key, value in values.items() if isinstance(value, str) and value}
    return next((strings[key] for key in _ARGUMENTS if key in strings), next(iter(strings.values()), ""))
