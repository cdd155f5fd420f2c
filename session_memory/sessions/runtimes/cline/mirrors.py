"""Brings the mirrors of Cline's sessions up to date by adding new messages.

A session is one JSON document with messages in Anthropic's form, beside a manifest with its
directory and its title. Messages become the steps of a trajectory, so atif/mirrors.py adds new
ones and takes back changed ones. Messages that Cline made itself have a `displayRole`.
"""

from __future__ import annotations

from ....common.system.files import Opened, make_private_dir, names_in
from ....common.system.json import (
    as_list,
    as_object,
    as_string,
    encode,
    objects_in,
    objects_of,
)
from ....common.text.paths import is_name
from ....common.text.secrets.redaction import redact
from ....common.text.timestamps import iso_time
from ...transcripts._mirrored_files import MOST_BYTES, Source, read_document
from ...transcripts.edits import part_id
from ..atif.mirrors import Place
from ..atif.records import STEP, TITLE
from .records import SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .._mirrored import Mirrors

    Record = dict[str, Any]

SESSIONS, ENDING = "sessions", ".messages.json"
_INPUT, _INPUT_END = "<user_input", "</user_input>"
_SUMMARIES = ("compaction", "compaction_summary")  # kinds of messages
# The tools that do several things in one call: the key of the list, the key in its objects, and the
# kind of each thing.
_LISTS = {"read_files": ("files", "path", "read"), "run_commands": ("commands", "", "command")}
_TEXTS = {"old_text": "old_string", "new_text": "new_string"}  # as other runtimes call them


def bring_up_to_date(mirrors: Mirrors, everything: bool) -> None:
    """Add new messages of the sessions to the mirrors.

    Do this for the sessions that a prompt may report, or for all."""

    mirrors.refresh(everything, _sources, _add)


def _sources(config_dir: str) -> tuple[list[str], list[Source]]:
    """Return the directories whose listings show new documents, and the documents."""
    root = f"{config_dir}/{SESSIONS}"
    listed, sources = [root], []
    for session_id in names_in(root):
        folder = f"{root}/{session_id}"
        listed.append(folder)
        for name in names_in(folder):
            if name.endswith(ENDING):
                is_main = name == session_id + ENDING
                key, parent = f"{session_id}/{name}", "" if is_main else session_id
                sources.append(Source(f"{folder}/{name}", key, parent=parent))
    return listed, sources


def _decoded(path: str, most_bytes: int) -> tuple[Record, int]:
    """Return the document in a file, and its size.

    Raises OSError; ValueError if it is longer than `most_bytes`; UnreadableError if it can never be
    read."""
    with Opened(path) as descriptor:
        return read_document(descriptor, most_bytes)


def _manifest(source: Source, session_id: str) -> Record:
    """Return the manifest of a document's session; empty if it cannot be read."""
    path = f"{source.path.rpartition('/')[0]}/{session_id}.json"
    try:
        return _decoded(path, MOST_BYTES)[0]
    except (OSError, ValueError):
        return {}


def _add(source: Source, mirrors: Mirrors, most_bytes: int) -> int:
    """Update the mirror of a document; return the number of bytes read.

    Raises OSError and ValueError."""
    own_id = source.path.rpartition("/")[2].removesuffix(ENDING)
    session_id = source.parent or own_id
    if not (is_name(session_id) and is_name(own_id)):
        return 0
    document, size = _decoded(source.path, most_bytes)
    manifest = _manifest(source, session_id)
    cwd, prompt = as_string(manifest.get("cwd")), as_string(manifest.get("prompt"))
    title = redact(as_string(as_object(manifest.get("metadata")).get("title")).strip())
    if source.parent or title in _typed(prompt):  # else a person gave it
        title = ""
    exclusion = mirrors.exclusion
    is_excluded = exclusion.hides(cwd, session_id, title)
    until = exclusion.forgotten(cwd, session_id)
    folder = mirrors.folder(cwd) + (f"/{session_id}" if source.parent else "")
    make_private_dir(folder)
    head = {"type": SESSION, "id": own_id, "cwd": cwd, "parent_id": source.parent}
    titles = [{"type": TITLE, "title": title}] if title and not until else []
    place = Place(source, is_excluded, mirrors.repeats(cwd, session_id))
    began = as_string(manifest.get("started_at"))
    place.mirror(f"{folder}/{own_id}.jsonl", head, titles, _lines(document, until, began))
    return size


def _lines(document: Record, until: float, began: str) -> Iterator[tuple[int, Record]]:
    """Yield the lines of a document, each with the number of its message.

    Messages up to `until`, which were forgotten, are left out. A message without a time has the
    time of the one before; the first has `began`, the start of the session."""
    for number, message in enumerate(objects_of(document.get("messages")), 1):
        at = message.get("ts")
        if isinstance(at, (int, float)) and 0 < at < 253_402_300_800_000:
            began = iso_time(at / 1000)
            if until and at / 1000 <= until:
                continue
        metadata = as_object(message.get("metadata"))
        step = {"type": STEP, "id": as_string(message.get("id")), "number": number}
        step["timestamp"] = began
        if metadata.get("kind") in _SUMMARIES:
            yield number, {**step, "source": "system", "context_management": {"type": "compaction"}}
        elif not metadata.get("displayRole"):
            content = message.get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            yield from _lines_of(message, objects_of(blocks), step)


def _lines_of(message: Record, blocks: list[Record], step: Record) -> Iterator[tuple[int, Record]]:
    """Yield the step of a message, if it says or calls something, and the results in it."""
    texts = [as_string(block.get("text")) for block in blocks if block.get("type") == "text"]
    if message.get("role") == "user":
        if text := "\n\n".join([_typed(text) for text in texts if text]):
            yield step["number"], {**step, "source": "user", "message": text}
    else:
        used = [block for block in blocks if block.get("type") == "tool_use"]
        line = {
            **step,
            "source": "agent",
            "message": "\n\n".join(texts),
            "model": as_string(as_object(message.get("modelInfo")).get("id")),
            "tool_calls": [call for block in used for call in _calls(block)],
            "reasoning_content": "\n\n".join(
                [as_string(block.get("thinking")) for block in blocks if "thinking" in block]
            ),
            "metrics": _metrics(as_object(message.get("metrics"))),
        }
        yield step["number"], {key: value for key, value in line.items() if value}
    for block in blocks:
        if block.get("type") == "tool_result":
            for result in _results(block):
                shown = {"type": "result", "number": step["number"], "timestamp": step["timestamp"]}
                yield step["number"], {**shown, **result}


def _typed(text: str) -> str:
    """Return a prompt without the tag that Cline puts around it."""
    if text.startswith(_INPUT) and text.rstrip().endswith(_INPUT_END):
        return text.partition(">")[2].rstrip().removesuffix(_INPUT_END)
    return text


def _metrics(metrics: Record) -> Record:
    counts = {
        name: metrics.get(key)
        for name, key in (
            ("prompt_tokens", "inputTokens"),
            ("completion_tokens", "outputTokens"),
            ("cached_tokens", "cacheReadTokens"),
        )
    }
    return {name: count for name, count in counts.items() if count is not None}


def _calls(block: Record) -> Iterator[Record]:
    """Yield the calls in a block; each file or command of a list is a call."""
    name, call_id = as_string(block.get("name")), as_string(block.get("id"))
    given = as_object(block.get("input"))
    key, inner, kind = _LISTS.get(name, ("", "", ""))
    things = as_list(given.get(key)) if key else []
    for number, thing in enumerate(things):
        argument = as_object(thing).get(inner) if isinstance(thing, dict) else thing
        call = {"tool_call_id": part_id(call_id, number), "function_name": name}
        extra = {"kind": kind, "argument": as_string(argument)}
        yield {**call, "arguments": {kind: as_string(argument)}, "extra": extra}
    if not things:
        arguments = {_TEXTS.get(key, key): value for key, value in given.items()}
        if "new_string" in arguments and "old_string" not in arguments:
            arguments["content"] = arguments.pop("new_string")
        kind = "edit" if name == "editor" else ""
        called: Record = {"tool_call_id": call_id, "function_name": name, "arguments": arguments}
        yield {**called, "extra": {"kind": kind, "argument_key": "path"}} if kind else called


def _results(block: Record) -> Iterator[Record]:
    """Yield the results in a block: `success` in the content says whether a call failed."""
    call_id, content = as_string(block.get("tool_use_id")), block.get("content")
    if isinstance(content, str):
        parts = objects_in(content.encode())
        content = parts if parts and "success" in parts[0] else content
    for number, part in enumerate(content if isinstance(content, list) else [content]):
        result: Record = {"id": part_id(call_id, number), "content": part}
        if isinstance(part, dict) and "success" in part:
            text = part.get("result") or part.get("error")
            result["content"] = text if isinstance(text, str) else encode(text)
            if part["success"] is False:
                result["extra"] = {"is_error": True}
        yield result
