"""The tools that sessions use: their input, output, and Claude Code's details of the result."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

from .author import Author


class Call(NamedTuple):
    """One use of a tool: `result` is for the model, `details` the transcript's `toolUseResult`."""

    name: str
    arguments: dict[str, Any]
    result: str | list[dict[str, Any]]
    details: dict[str, Any]


def call(author: Author) -> Call:
    """Return one use of a tool, drawn by frequency.

    Its result has some kilobytes, sometimes a hundred."""
    if author.chance(0.02):
        length = author.random.randrange(30_000, 100_000)
    else:
        length = max(40, author.spread(1700, 1.3, most=100_000))
    [tool] = author.random.choices(TOOLS, SHARES)
    return tool(author, length)


def _bash(author: Author, length: int) -> Call:
    if author.chance(0.12):
        length = author.random.randrange(5, 90)
    output = author.text(
        author.random.choice(("log", "log", "listing", "diff", "json")), min(length, 30_000)
    )
    command = f"cd {author.cwd} && {author.text('code', 40).strip()}"
    details = {
        "stdout": output,
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }
    return Call("Bash", {"command": command, "description": author.words(6)}, output, details)


def _read(author: Author, length: int) -> Call:
    path = author.path()
    if author.chance(0.012):
        return _read_image(author, path)
    content = author.text("code", length)
    lines = content.split("\n")
    numbered = "\n".join([f"{number:6}→{line}" for number, line in enumerate(lines, 1)])
    file = {
        "filePath": path,
        "content": content,
        "numLines": len(lines),
        "startLine": 1,
        "totalLines": len(lines),
    }
    return Call("Read", {"file_path": path}, numbered, {"type": "text", "file": file})


def _read_image(author: Author, path: str) -> Call:
    content = author.random.randbytes(author.random.randrange(20_000, 300_000))
    encoded = b64encode(content).decode()
    image = {
        "type": "image",
        "source": {"type": "base64", "data": encoded, "media_type": "image/png"},
    }
    details = {
        "type": "image",
        "file": {"base64": encoded, "type": "image/png", "originalSize": len(content)},
    }
    return Call("Read", {"file_path": f"{path}.png"}, [image], details)


def _grep(author: Author, length: int) -> Call:
    output = author.text("grep", min(length, 20_000))
    details: dict[str, Any] = {"mode": "content", "numFiles": 0, "filenames": [], "content": output}
    details["numLines"] = output.count("\n")
    return Call(
        "Grep", {"pattern": author.words(1), "output_mode": "content", "-n": True}, output, details
    )


def _edit(author: Author, length: int) -> Call:
    path = author.path()
    old = author.text("code", author.random.randrange(60, 900))
    new = author.text("code", author.random.randrange(60, 1500))
    lines = [*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n"))]
    details = {
        "filePath": path,
        "oldString": old,
        "newString": new,
        "originalFile": author.text("code", min(2 * length, 60_000)),
        "structuredPatch": [
            {"oldStart": 40, "oldLines": 9, "newStart": 40, "newLines": 12, "lines": lines}
        ],
        "userModified": False,
        "replaceAll": False,
    }
    arguments = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
    return Call("Edit", arguments, f"The file {path} has been updated successfully.", details)


def _write(author: Author, length: int) -> Call:
    path = author.path()
    content = author.text("code", min(length, 40_000))
    details: dict[str, Any] = {
        "type": "create",
        "filePath": path,
        "content": content,
        "structuredPatch": [],
    }
    return Call(
        "Write",
        {"file_path": path, "content": content},
        f"File created successfully at: {path}",
        details,
    )


def _glob(author: Author, _length: int) -> Call:
    paths = [author.path() for _ in range(author.random.randrange(3, 100))]
    details = {"filenames": paths, "durationMs": 12, "numFiles": len(paths), "truncated": False}
    return Call("Glob", {"pattern": "**/*.py"}, "\n".join(paths), details)


def _todo_write(author: Author, _length: int) -> Call:
    status = ("pending", "completed")
    todos = [
        {
            "content": author.words(7),
            "status": author.random.choice(status),
            "activeForm": author.words(5),
        }
        for _ in range(author.random.randrange(3, 9))
    ]
    return Call(
        "TodoWrite", {"todos": todos}, "Todos have been modified successfully.", {"newTodos": todos}
    )


def _task(author: Author, length: int) -> Call:
    prompt = author.prose(900)
    answer = [{"type": "text", "text": author.prose(min(length, 12_000))}]
    arguments = {
        "description": author.words(4),
        "prompt": prompt,
        "subagent_type": "general-purpose",
    }
    details = {
        "status": "completed",
        "prompt": prompt,
        "agentId": f"{author.random.getrandbits(28):07x}",
        "content": answer,
        "totalDurationMs": 91_234,
        "totalTokens": 40_000,
        "totalToolUseCount": 9,
    }
    return Call("Task", arguments, answer, details)


def _web_fetch(author: Author, length: int) -> Call:
    page = author.prose(min(length, 12_000))
    url = f"https://example.com/{author.words(1)}"
    details = {
        "bytes": 4 * len(page),
        "code": 200,
        "codeText": "OK",
        "result": page,
        "durationMs": 900,
        "url": url,
    }
    return Call("WebFetch", {"url": url, "prompt": author.words(8)}, page, details)


_USED: list[tuple[int, Callable[[Author, int], Call]]] = [
    (34, _bash),
    (26, _read),
    (14, _edit),
    (12, _grep),
    (4, _write),
    (4, _glob),
    (3, _todo_write),
    (2, _web_fetch),
    (1, _task),
]
SHARES = [share for share, _ in _USED]
TOOLS = [tool for _, tool in _USED]
