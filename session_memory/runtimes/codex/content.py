"""Reads the content of records of Codex: texts of messages, calls with their arguments, outputs."""

from __future__ import annotations

from ...system.json import as_list, as_string, decode
from ...text.timestamps import epoch_seconds
from ...transcripts.edits import patch_uses
from ...transcripts.entries import Entry, ToolUse, tool_use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Record

ARGUMENTS = ("command", "cmd", "path", "file_path", "query", "url", "prompt", "pattern")
_SHELLS = ("exec_command", "shell", "shell_command", "local_shell", "container.exec")
_EXIT_CODES = ("Process exited with code ", "Exit code: ", '"exit_code":')
_NOT_RUN = ("blocked by PreToolUse hook", "reject command", "rejected by user", "aborted by user")
_REQUEST = "## My request for Codex:"  # behind what an editor tells of its open files

# Texts of the role user that no user wrote, by how they begin.
_WRAPPERS = (
    "# AGENTS.md instructions", "<INSTRUCTIONS>", "<environment_context>", "<user_instructions>", "<turn_aborted>",
    "<subagent_notification>", "<permissions instructions>", "<collaboration_mode>", "<skill>", "<user_shell_command>",
    "<hook_prompt", "Another language model started to solve this problem", "<image>", "<image name=", "</image>",
)  # fmt: skip


def wrapped(record: Record) -> Record:
    """Return a record as later versions have it: until September 2025 a line was only what the model saw."""
    return record if "payload" in record else {"type": "response_item", "payload": record}


def told_directory(content: object) -> str:
    """Return the directory that Codex tells the model in a message of the role user; '' for any other message."""
    for text in texts_of(content):
        if text.lstrip().startswith("<environment_context>"):
            return text.partition("<cwd>")[2].partition("</cwd>")[0].strip()
    return ""


def new_entry(
    role: str, text: str, tools: tuple[ToolUse, ...], record: Record, offset: int, entry_id: str
) -> Entry:  # fmt: skip
    """Return the entry of a record, written when that was."""
    return Entry(role, text, tools=tools, timestamp=epoch_seconds(record.get("timestamp")), id=entry_id, offset=offset)


def typed_text(content: object) -> str:
    """Return what the user typed, of the texts in a message; an image shows as `[image]`."""
    parts = []
    for block in as_list(content):
        kind = block.get("type") if isinstance(block, dict) else None
        text = as_string(block.get("text")) if kind in ("text", "input_text") else ""
        if text:
            _, mark, request = text.partition(_REQUEST) if text.lstrip().startswith("# ") else ("", "", "")
            text = request if mark else text
            parts.append("" if text.lstrip().startswith(_WRAPPERS) else text.strip())
        elif kind in ("image", "local_image", "input_image"):
            parts.append("[image]")
    return "\n\n".join([part for part in parts if part])


def joined_text(content: object) -> str:
    """Return the texts of a message of the model."""
    return "\n\n".join([text.strip() for text in texts_of(content) if text.strip()])


def texts_of(content: object) -> list[str]:
    """Return the texts in the content of a message, block by block."""
    texts = [block.get("text") for block in as_list(content) if isinstance(block, dict)]
    return [text for text in texts if isinstance(text, str)]


def decoded(arguments: object) -> object:
    """Return the arguments of a call, which are JSON in a string."""
    try:
        return decode(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return {}


def shell_line(command: object) -> str:
    """Return the command line that was run: what a shell was given with `-c`, else all words."""
    if isinstance(command, str):
        return command
    words = [as_string(word) for word in as_list(command)]
    if len(words) >= 3 and words[1] in ("-c", "-lc", "-Command") and words[0].rpartition("/")[2]:
        return words[2]
    return " ".join(words)


def has_failed(output: str) -> bool:
    """Tell whether what a call printed says that it failed."""
    head = output[:400]
    for sign in _EXIT_CODES:
        at = output.find(sign) if sign.startswith('"') else head.find(sign)
        if at >= 0:
            return output[at + len(sign) :].lstrip()[:1] not in ("0", "")
    failed = ("apply_patch verification failed", "unsupported", "execution error", "failed")
    return head.startswith(failed) or not has_run(output)


def has_run(output: str) -> bool:
    """Tell whether a call ran, by what it printed: it may have been refused, or interrupted."""
    head = output[:400]
    return any([sign in head for sign in _EXIT_CODES]) or not any([sign in head for sign in _NOT_RUN])


def calls_in(payload: Record) -> tuple[ToolUse, ...]:
    """Return the calls in what the model asked for."""
    kind, name, call_id = payload.get("type"), as_string(payload.get("name")), as_string(payload.get("call_id"))
    if kind == "custom_tool_call" and name == "apply_patch":
        return patch_uses(ToolUse("apply_patch", as_string(payload.get("input")), "edit", call_id))
    if kind == "custom_tool_call":
        arguments: object = {"input": payload.get("input")}
    elif kind == "function_call":
        arguments = decoded(payload.get("arguments"))
    elif kind == "local_shell_call":
        name, arguments = "local_shell", payload.get("action")
    else:
        return ()
    if name in _SHELLS and isinstance(arguments, dict):
        line = shell_line(arguments.get("command") or arguments.get("cmd"))
        if line.startswith("*** Begin Patch") or "apply_patch" in line.partition("\n")[0]:
            return patch_uses(ToolUse("apply_patch", line, "edit", call_id))
        arguments = {"command": line}
    if name == "write_stdin":
        return ()
    return tool_use(name, arguments, ARGUMENTS, "command" if name in _SHELLS else "other", call_id)
