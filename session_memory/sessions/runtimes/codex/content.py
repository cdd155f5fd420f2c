"""Reads the content of Codex's records: messages, calls with their arguments, and outputs.

Also reads the items of a turn as a person saw them, and how each ended."""

from __future__ import annotations

from ....common.system.json import as_list, as_object, as_string, decode, objects_of
from ....common.text.paths import resolved
from ....common.text.timestamps import epoch_seconds
from ...transcripts.edits import part_id, patch_uses, patched_files
from ...transcripts.entries import Entry, ToolUse, tool_use, typed_by_person
from ..records import CallResult
from .scripts import commands_in, patches_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Record

ARGUMENTS = ("command", "cmd", "path", "file_path", "query", "url", "prompt", "pattern")
_SHELLS = ("exec_command", "shell", "shell_command", "local_shell", "container.exec")
_EXIT_CODES = ("Process exited with code ", "Exit code: ", '"exit_code":')
_NOT_RUN = ("blocked by PreToolUse hook", "reject command", "rejected by user", "aborted by user")
ANSWERS = '{"answers":{'  # begins the output of a dialog
_REQUEST = "## My request for Codex:"  # follows an editor's text about its open files

# Texts of the role user that no user wrote, by how they begin.
_WRAPPERS = (
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skill>",
    "<user_shell_command>",
    "<hook_prompt",
    "Another language model started to solve this problem",
    "<image>",
    "<image name=",
    "</image>",
)


def wrapped(record: Record) -> Record:
    """Return a record in the form of later versions.

    Until September 2025 a line was only the model's view."""
    return record if "payload" in record else {"type": "response_item", "payload": record}


def told_directory(content: object) -> str:
    """Return the directory that Codex states in a message of the role user, or ''."""
    for text in texts_of(content):
        if text.lstrip().startswith("<environment_context>"):
            return text.partition("<cwd>")[2].partition("</cwd>")[0].strip()
    return ""


def new_entry(
    role: str, text: str, tools: tuple[ToolUse, ...], record: Record, offset: int, entry_id: str
) -> Entry:
    """Return the entry of a record, written when that was."""
    return Entry(
        role,
        text,
        tools=tools,
        timestamp=epoch_seconds(record.get("timestamp")),
        id=entry_id,
        offset=offset,
    )


def typed_text(content: object) -> str:
    """Return the text that the user typed in a message; an image shows as `[image]`."""
    parts = []
    for block in as_list(content):
        kind = block.get("type") if isinstance(block, dict) else None
        text = as_string(block.get("text")) if kind in ("text", "input_text") else ""
        if text:
            _, mark, request = (
                text.partition(_REQUEST) if text.lstrip().startswith("# ") else ("", "", "")
            )
            text = typed_by_person(request if mark else text)
            parts.append("" if text.startswith(_WRAPPERS) else text)
        elif kind in ("image", "local_image", "input_image"):
            parts.append("[image]")
    return "\n\n".join([part for part in parts if part])


def own_command(content: object) -> str:
    """Return the command line that the user ran (`!`), from a message; '' for any other message."""
    texts = texts_of(content)
    if len(texts) != 1 or not texts[0].lstrip().startswith("<user_shell_command>"):
        return ""
    return texts[0].partition("<command>")[2].partition("</command>")[0].strip()


def answered(output: object) -> str:
    """Return the user's answers in a dialog, from a call's output; '' for any other output."""
    if not isinstance(output, str) or not output.startswith(ANSWERS):
        return ""
    from .. import _dialogs as dialogs

    return dialogs.words_in(output)


def joined_text(content: object) -> str:
    """Return all text of a content, with an empty line between its blocks."""
    return "\n\n".join([text.strip() for text in texts_of(content) if text.strip()])


def texts_of(content: object) -> list[str]:
    """Return the texts of the blocks of a content."""
    texts = [block.get("text") for block in objects_of(content)]
    return [text for text in texts if isinstance(text, str)]


def decoded(arguments: object) -> object:
    """Return the arguments of a call, which are JSON in a string."""
    try:
        return decode(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return {}


def shell_line(command: object) -> str:
    """Return the command line that ran: a shell's argument after `-c`, else all words."""
    if isinstance(command, str):
        return command
    words = [as_string(word) for word in as_list(command)]
    if len(words) >= 3 and words[1] in ("-c", "-lc", "-Command") and words[0].rpartition("/")[2]:
        return words[2]
    return " ".join(words)


def has_failed(output: str) -> bool:
    """Check if the output of a tool says that the call failed."""
    head = output[:400]
    for sign in _EXIT_CODES:
        at = output.find(sign) if sign.startswith('"') else head.find(sign)
        if at >= 0:
            return output[at + len(sign) :].lstrip()[:1] not in ("0", "")
    failed = ("apply_patch verification failed", "unsupported", "execution error", "failed")
    return head.startswith(failed) or not has_run(output)


def has_run(output: str) -> bool:
    """Return whether a call ran, judged by its output; it may have been refused or interrupted."""
    head = output[:400]
    return any([sign in head for sign in _EXIT_CODES]) or not any(
        [sign in head for sign in _NOT_RUN]
    )


def calls_in(payload: Record) -> tuple[ToolUse, ...]:
    """Return the tool uses in the payload of a record."""
    kind, name, call_id = (
        payload.get("type"),
        as_string(payload.get("name")),
        as_string(payload.get("call_id")),
    )
    if kind == "custom_tool_call" and name == "apply_patch":
        return patch_uses(ToolUse("apply_patch", as_string(payload.get("input")), "edit", call_id))
    if (
        kind == "custom_tool_call"
        and name == "exec"
        and (uses := _script_uses(as_string(payload.get("input")), call_id))
    ):
        return uses
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


def _script_uses(script: str, call_id: str) -> tuple[ToolUse, ...]:
    """Return the commands and edits of a script in code mode.

    All have the script's id, because its result names them by that."""
    commands = [
        tool_use("exec_command", {"command": line}, ARGUMENTS, "command", call_id)
        for line in commands_in(script)
    ]
    files = [path for patch in patches_in(script) for path in patched_files(patch)]
    edits = tuple(
        [
            ToolUse("apply_patch", path, "edit", part_id(call_id, at))
            for at, path in enumerate(files)
        ]
    )
    return (*[use for uses in commands for use in uses], *edits)


def entry_of_item(item: Record, payload: Record, record: Record, offset: int) -> Entry | None:
    """Return the entry in an item that a person saw."""
    kind = item.get("type")
    item_id = as_string(item.get("id"))
    if kind == "UserMessage":
        text = typed_text(item.get("content"))
        return new_entry("user", text, (), record, offset, item_id) if text else None
    # Ids of messages and calls come from the provider; some providers restart their numbers in each
    # turn.
    entry_id = ":".join([part for part in (as_string(payload.get("turn_id")), item_id) if part])
    if kind == "AgentMessage":
        text = joined_text(item.get("content"))
        return new_entry("assistant", text, (), record, offset, entry_id) if text else None
    uses = _uses(item)
    if not uses:
        return None
    role = "user" if item.get("source") in ("user_shell", "userShell") else "assistant"
    entry = new_entry(role, "", uses, record, offset, entry_id)
    entry.cwd = as_string(item.get("cwd")).removeprefix("file://")
    return entry


def _uses(item: Record) -> tuple[ToolUse, ...]:
    """Return the tool uses of an item.

    An item is a command, a file that a command read, the files of a patch, or the call of another
    tool."""
    kind, call_id = item.get("type"), as_string(item.get("id"))
    if kind == "CommandExecution":
        parsed = as_list(item.get("parsed_cmd"))
        only = as_object(parsed[0]) if len(parsed) == 1 else {}
        path = as_string(only.get("path"))
        if only.get("type") == "read" and path:
            directory = as_string(item.get("cwd")).removeprefix("file://")
            return tool_use(
                "read", {"path": resolved(path, directory) or path}, ARGUMENTS, "read", call_id
            )
        return tool_use(
            "exec_command",
            {"command": shell_line(item.get("command"))},
            ARGUMENTS,
            "command",
            call_id,
        )
    if kind == "FileChange":
        changes = enumerate(changes_of(item))
        each = [
            tool_use("apply_patch", {"path": path}, ARGUMENTS, "edit", change_id(item, at))
            for at, path in changes
        ]
        return tuple([use for uses in each for use in uses])
    if kind == "McpToolCall":
        name = f"mcp__{as_string(item.get('server'))}__{as_string(item.get('tool'))}"
        return tool_use(name, item.get("arguments"), ARGUMENTS, "other", call_id)
    if kind == "CollabAgentToolCall":
        return tool_use(as_string(item.get("tool")) or "agent", item, ("prompt",), "other", call_id)
    if kind == "SubAgentActivity" and item.get("kind") == "started":  # its task is encrypted
        return tool_use("spawn_agent", item, ("agent_path",), "other", call_id)
    return (
        tool_use("web_search", {"query": item.get("query")}, ARGUMENTS, "other", call_id)
        if kind == "WebSearch"
        else ()
    )


def results_of_item(item: Record) -> list[CallResult]:
    """Return how an item's actions ended; [] if the item does not state it."""
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
        return [
            CallResult(change_id(item, at), has_failed, text, has_run)
            for at in range(len(changes_of(item)))
        ]
    if item.get("type") == "McpToolCall":
        result = item.get("error") or item.get("result")
        content = result.get("content") if isinstance(result, dict) else result
        return [CallResult(call_id, has_failed or bool(item.get("error")), content)]
    return [CallResult(call_id, has_failed, "")]


def failed_patch(payload: Record) -> list[CallResult]:
    """Return a failed result for each file of a failed patch.

    Return nothing for an applied patch: its call's output reports it too."""
    if payload.get("success") is not False:
        return []
    call_id, text = as_string(payload.get("call_id")), as_string(payload.get("stderr"))
    numbers = range(max(1, len(changes_of(payload))))
    return [CallResult(part_id(call_id, number), True, text, False) for number in numbers]


def changes_of(item: Record) -> Record:
    """Return the changes of an item by their paths."""
    return as_object(item.get("changes"))


def change_id(item: Record, number: int) -> str:
    """Return the id of one file's change in a patch."""
    return part_id(as_string(item.get("id")), number)
