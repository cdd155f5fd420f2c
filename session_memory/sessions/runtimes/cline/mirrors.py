"""Brings the mirrors of Cline's sessions up to date by adding new messages.

A session is one JSON document with messages in Anthropic's form, beside a manifest with its
directory and its title. Messages become the steps of a trajectory, so atif/mirrors.py adds new
ones and takes back changed ones. Messages that Cline made itself have a `displayRole`, and so have
those with the texts that plugins and hooks added. A run that is aborted may write an earlier state
of the document, with an error at its end; the messages that it lacks stay in the mirror.
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
from ....common.text.timestamps import epoch_seconds, iso_time
from ...transcripts._mirrored_files import MOST_BYTES, Source, UnreadableError, read_document
from ...transcripts.edits import part_id
from ...transcripts.entries import INTRODUCTION
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
_ADDED, _ADDED_END = '<hook_context source="RunStart">\n', "\n</hook_context>"
_MEDIA = ("image", "media")  # kinds of blocks in a result
# sent as a prompt once the model has left plan mode
_CONTINUATION = "The user approved switching to act mode. Continue with the approved plan now."
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
                parent = "" if name == session_id + ENDING else session_id
                path, manifest = f"{folder}/{name}", f"{folder}/{session_id}.json"
                sources.append(Source(path, f"{session_id}/{name}", "", parent, manifest))
    return listed, sources


def _decoded(path: str, most_bytes: int) -> tuple[Record, int]:
    """Return the document in a file, and its size.

    Raises OSError; ValueError if it is longer than `most_bytes`; UnreadableError if it can never be
    read."""
    with Opened(path) as descriptor:
        return read_document(descriptor, most_bytes)


def _manifest(source: Source, session_id: str) -> Record:
    """Return the manifest of a document's session.

    Raises UnreadableError if it cannot be read, because only it has the directory, which rules may
    name."""
    path = f"{source.path.rpartition('/')[0]}/{session_id}.json"
    try:
        return _decoded(path, MOST_BYTES)[0]
    except (OSError, ValueError):
        raise UnreadableError("its session's manifest is missing or damaged") from None


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
    exclusion = mirrors.exclusion
    hidden_by = exclusion.hidden_by([cwd], [session_id, own_id], [title])
    if source.parent or title in _typed(prompt):  # else a person gave it
        title = ""
    until = exclusion.forgotten(cwd, session_id)
    folder = mirrors.folder(cwd) + (f"/{session_id}" if source.parent else "")
    make_private_dir(folder)
    head = {"type": SESSION, "id": own_id, "cwd": cwd, "parent_id": source.parent}
    head |= _fork(manifest)
    titles = [{"type": TITLE, "title": title}] if title and not until else []
    messages = objects_of(document.get("messages"))
    repeats = mirrors.repeats(cwd, session_id)
    place = Place(source, hidden_by, repeats, may_be_earlier=_is_error(messages[-1:]))
    began = as_string(manifest.get("started_at"))
    place.mirror(f"{folder}/{own_id}.jsonl", head, titles, _lines(messages, until, began))
    return size


def _fork(manifest: Record) -> Record:
    """Return the session that `/fork` copied, and when; empty if the session is not a fork."""
    fork = as_object(as_object(manifest.get("metadata")).get("fork"))
    copied, at = as_string(fork.get("forkedFromSessionId")), as_string(fork.get("forkedAt"))
    return {"forked_from": copied, "forked_at": at} if copied and at else {}


def _is_error(messages: list[Record]) -> bool:
    """Check if the first of the messages is one in which Cline shows an error."""
    return any([_metadata(each).get("displayRole") == "error" for each in messages[:1]])


def _metadata(message: Record) -> Record:
    return as_object(message.get("metadata"))


def _lines(messages: list[Record], until: float, began: str) -> Iterator[tuple[int, Record]]:
    """Yield the lines of a document's messages, each with the number of its message.

    Messages up to `until`, which were forgotten, are left out. A message without a time has the
    time of the one before; the first has `began`, the start of the session. If it repeats the last
    prompt before an error, an aborted run wrote it, and it has no line."""
    counts: dict[str, int] = {}
    prompt = ""
    for number, message in enumerate(messages, 1):
        at = message.get("ts")
        if typed := _prompt(message):
            if typed == prompt and at is None and _is_error(messages[number:]):
                continue
            prompt = typed
        if isinstance(at, (int, float)) and 0 < at < 253_402_300_800_000:
            began = iso_time(at / 1000)
        if until and (epoch_seconds(began) or 0.0) <= until:
            continue
        metadata = _metadata(message)
        step = {"type": STEP, "id": as_string(message.get("id")), "number": number}
        step["timestamp"] = began
        if metadata.get("kind") in _SUMMARIES:
            yield number, {**step, "source": "system", "context_management": {"type": "compaction"}}
        elif metadata.get("displayRole") == "system":
            for text in _added_to_prompt(_blocks(message)):
                yield number, {**step, "source": "system", "context": text}
        elif not metadata.get("displayRole"):
            yield from _lines_of(message, _blocks(message), step, counts)


def _blocks(message: Record) -> list[Record]:
    """Return the blocks of a message, which may be a text."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects_of(content)


def _prompt(message: Record) -> str:
    """Return what a person typed in a message; '' if they typed nothing."""
    if message.get("role") != "user" or _metadata(message).get("displayRole"):
        return ""
    blocks = [block for block in _blocks(message) if block.get("type") == "text"]
    typed = [_typed(as_string(block.get("text"))) for block in blocks]
    return "\n\n".join(filter(None, typed))


def _added_to_prompt(blocks: list[Record]) -> Iterator[str]:
    """Yield the texts that plugins added to a prompt, from a message of Cline's."""
    for block in blocks:
        for part in as_string(block.get("text")).split(_ADDED)[1:]:
            yield part.rpartition(_ADDED_END)[0]


def _lines_of(
    message: Record, blocks: list[Record], step: Record, counts: dict[str, int]
) -> Iterator[tuple[int, Record]]:
    """Yield the step of a message, if it says or calls something, and the results in it.

    `counts` has how many calls each earlier block was, by its id."""
    if message.get("role") == "user":
        if text := _prompt(message):
            yield step["number"], {**step, "source": "user", "message": text}
    else:
        texts = [as_string(block.get("text")) for block in blocks if block.get("type") == "text"]
        used = [list(_calls(block)) for block in blocks if block.get("type") == "tool_use"]
        counts |= {calls[0]["tool_call_id"]: len(calls) for calls in used}
        line = {
            **step,
            "source": "agent",
            "message": "\n\n".join(texts),
            "model": as_string(as_object(message.get("modelInfo")).get("id")),
            "tool_calls": [call for calls in used for call in calls],
            "reasoning_content": "\n\n".join(
                [as_string(block.get("thinking")) for block in blocks if "thinking" in block]
            ),
            "metrics": _metrics(as_object(message.get("metrics"))),
        }
        yield step["number"], {key: value for key, value in line.items() if value}
    for block in blocks:
        if block.get("type") == "tool_result":
            for result in _results(block, counts.get(as_string(block.get("tool_use_id")), 1)):
                shown = {"type": "result", "number": step["number"], "timestamp": step["timestamp"]}
                yield step["number"], {**shown, **result}


def _typed(text: str) -> str:
    """Return a prompt without the tag that Cline puts around it; '' if Cline wrote it."""
    if text.startswith(_INPUT) and text.rstrip().endswith(_INPUT_END):
        text = text.partition(">")[2].rstrip().removesuffix(_INPUT_END)
    return "" if text.rpartition(">")[2].strip() == _CONTINUATION else text


def _metrics(metrics: Record) -> Record:
    """Return the usage as ATIF has it: in both, cached tokens belong to the prompt."""
    counts = {
        "prompt_tokens": metrics.get("inputTokens"),
        "completion_tokens": metrics.get("outputTokens"),
        "cached_tokens": metrics.get("cacheReadTokens"),
        "cost_usd": metrics.get("cost"),
    }
    usage = {name: count for name, count in counts.items() if count is not None}
    if metrics.get("cacheWriteTokens"):
        usage["extra"] = {"cache_creation_input_tokens": metrics["cacheWriteTokens"]}
    return usage


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


def _results(block: Record, count: int) -> Iterator[Record]:
    """Yield the results in a block: `success` in the content says whether a call failed.

    Content without it is the single result of `count` calls. Then the block may say that they
    failed, or that our plugin refused them."""
    call_id, content = as_string(block.get("tool_use_id")), block.get("content")
    parts = (
        objects_in(content.encode("utf-8", "replace"))
        if isinstance(content, str)
        else objects_of(content)
    )
    extra: Record = {}
    if not any(["success" in part for part in parts]):
        text = content if isinstance(content, str) else _text_in(parts)
        has_failed = block.get("is_error") is True
        reason = as_string(parts[0].get("error")) if has_failed and len(parts) == 1 else ""
        if reason.startswith(INTRODUCTION):
            text, reason, extra = "", "", {"has_run": False}
        parts = [{"result": reason or text, "success": not has_failed}]
        parts += [{"result": "", "success": not has_failed}] * (count - 1)
    for number, part in enumerate(parts):
        given = part.get("result") or part.get("error", "")
        given = _text_in(given) if isinstance(given, list) else given
        shown = given if isinstance(given, str) else encode(given)
        result: Record = {"id": part_id(call_id, number), "content": shown}
        if part.get("success") is False:
            result["extra"] = {"is_error": True, **extra}
        yield result


def _text_in(content: list[Any]) -> str:
    """Return the text of blocks in a result, without pictures and other media."""
    parts = [part for part in content if as_object(part).get("type") not in _MEDIA]
    texts = [as_object(part).get("text") or as_object(part).get("content") for part in parts]
    return "\n\n".join(
        [text if isinstance(text, str) else encode(part) for part, text in zip(parts, texts)]
    )
