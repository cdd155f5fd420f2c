"""Brings the mirrors of Gemini's chats up to date by adding new messages.

Gemini keeps a chat as a log, `chats/session-<minute>-<beginning of the id>.jsonl`; older versions
rewrite one JSON document (`.json`). The chat does not contain its directory, and Gemini deletes
chats, even ones just resumed. A mirror has only the messages, each once, after a header with the
directory.

A mark says how far each file of a chat was read, and which messages were added last, because the
model's messages are repeated with their calls."""

from __future__ import annotations

from ....common.system.files import (
    Opened,
    make_private_dir,
    names_in,
    os,
    path_text,
    read_at,
    read_whole,
)
from ....common.system.json import as_string, decode, objects_in, objects_of
from ....common.text.paths import is_name
from ....common.text.secrets.redaction import redact
from ....common.text.timestamps import epoch_seconds
from ...transcripts._mirrored_files import Source
from ...transcripts.lines import id_checksum
from ...transcripts.mirror import Mirror, mark_of
from . import CHATS
from .records import COMPRESSED, CONTEXT, REFERENCED, WHOLE, said, snapshot_id, summary_in, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .._mirrored import Mirrors

    Record = dict[str, Any]
    Mark = dict[str, Any]

HEAD_BYTES = 256  # these identify a file as the one read before
LAST_IDS = 40
_HEADER_KEYS = ("sessionId", "projectHash", "startTime", "kind")
# without the parts for the screen
_CALL_KEYS = ("id", "name", "args", "result", "status", "timestamp", "agentId")


def bring_up_to_date(mirrors: Mirrors, everything: bool) -> None:
    """Add new messages of the chats to the mirrors.

    Do this for the chats that a prompt may report, or for all. Chats that cannot be read, or that
    another process is adding now, are left for the next time."""

    mirrors.refresh(everything, _sources, _add)


def _sources(config_dir: str) -> tuple[list[str], list[Source]]:
    """Return the directories whose listings show new chats, and the files of all chats."""
    projects_dir = f"{config_dir}/tmp"
    listed, sources = [projects_dir], []
    for name in names_in(projects_dir):
        chats = f"{projects_dir}/{name}/{CHATS}"
        listed += [f"{projects_dir}/{name}", chats]
        names = names_in(chats)
        directory = _project_root(config_dir, name) if names else ""
        for file in names:
            if file.endswith((".json", ".jsonl")):
                sources.append(Source(f"{chats}/{file}", file, directory))
            elif is_name(file):
                listed.append(f"{chats}/{file}")
                for inner in names_in(f"{chats}/{file}"):
                    sources.append(Source(f"{chats}/{file}/{inner}", inner, directory, file))
    return listed, sources


def _add(source: Source, mirrors: Mirrors, most_bytes: int) -> int:
    """Add the new part of a chat's file to its mirror, unless it exceeds `most_bytes`.

    Return the number of bytes read, 0 if the file is not a chat. Raises OSError; ValueError if it
    cannot be read now."""
    with Opened(source.path) as descriptor:
        size = os.fstat(descriptor).st_size
        head = read_at(descriptor, 0, 64 * 1024)
        header = _header(head)
        if not is_name(header.get("sessionId")):
            return 0
        path = _mirror_path(source, mirrors, header["sessionId"])
        # rules that hide a chat hide its sub-agents, whatever their titles
        chat = f"{path.rpartition('/')[0]}.jsonl" if source.parent else path
        chat_id = source.parent or header["sessionId"]
        titles = [mark_of(chat).get("title", "")]
        hidden_by = mirrors.exclusion.hidden_by([source.directory], [chat_id], titles)
        repeats = mirrors.repeats(source.directory, header["sessionId"])
        with Mirror(path, hidden_by, repeats) as mirror:
            file, checksum = source.key, id_checksum(repr(head[:HEAD_BYTES]))
            mark = dict(mirror.mark)
            at, known_head = mark.get("files", {}).get(file, (0, checksum))
            is_log = b'"messages":' not in head.partition(b"\n")[0] and source.path.endswith(
                ".jsonl"
            )
            if known_head != checksum or at > size or not is_log:
                at = 0
            if size - at > most_bytes:
                raise ValueError("too much for now")
            content = read_at(descriptor, at, size)
            if is_log:
                content = content[: content.rfind(b"\n") + 1]
            records = _records_in(content, is_log=is_log)
            if until := mirrors.exclusion.forgotten(source.directory, chat_id):
                records = [kept for record in records for kept in _said_since(until, record)]
            addition = ChatAddition(mark, _mirrored(path) if mark else (), is_again=not at)
            lines = addition.lines(records)
            if not mirror.mark:
                lines.insert(0, {**header, "cwd": source.directory})
            mark["files"] = {**mark.get("files", {}), file: [at + len(content), checksum]}
            if mark != mirror.mark:
                mirror.append(lines, mark, source.stamp[2] // 1_000_000)
            return len(content)


def _mirror_path(source: Source, mirrors: Mirrors, session_id: str) -> str:
    """Return the path of a chat's mirror; make its folder."""
    folder = mirrors.folder(source.directory)
    if source.parent:
        folder = f"{folder}/{source.parent}"
    make_private_dir(folder)
    return f"{folder}/{session_id}.jsonl"


def _records_in(content: bytes, *, is_log: bool) -> list[Record]:
    """Return the records in the lines of a log, or the messages of a document."""
    if is_log:
        return [record for line in content.split(b"\n") for record in objects_in(line)]
    return objects_of(decode(content.decode("utf-8", "replace")).get("messages"))


def _said_since(until: float, record: Record) -> Iterator[Record]:
    """Yield a record, unless it is a message up to the time `until`.

    Its title is removed, because it may be made from such messages."""
    if (
        record.get("type") not in ("user", "gemini")
        or (epoch_seconds(record.get("timestamp")) or 0.0) > until
    ):
        yield (
            record
            if summary_in(record) is None
            else {**record, "$set": {**record["$set"], "summary": None}}
        )


def _mirrored(path: str) -> Iterator[Record]:
    """Return the records in a mirror. Raises OSError."""
    for line in read_whole(path).split(b"\n"):
        yield from objects_in(line)


def exported_lines(content: bytes) -> list[Record]:
    """Return a chat in Gemini's form as the lines of a mirror; [] if it is not one.

    The form is a log or one JSON document."""
    try:
        document = decode(content.decode("utf-8", "replace"))
        records = [document, *document["messages"]] if "messages" in document else [document]
    except (ValueError, TypeError, RecursionError):
        records = [record for line in content.split(b"\n") for record in objects_in(line)]
    head = records[0] if records and isinstance(records[0], dict) else {}
    if not is_name(head.get("sessionId")) or "projectHash" not in head:
        return []
    header = {key: as_string(head[key]) for key in _HEADER_KEYS if key in head}
    return [header, *ChatAddition({}, (), is_again=False).lines(objects_of(records[1:]))]


def _header(head: bytes) -> Record:
    """Return the header in the beginning of a chat's file; without an id if it is not a chat."""
    header: Record = next(iter(objects_in(head.partition(b"\n")[0])), {})
    for key in _HEADER_KEYS if "sessionId" not in header else ():
        value = head.partition(b'"%b":' % key.encode())[2].partition(b'"')[2].partition(b'"')[0]
        header = {**header, key: value.decode("utf-8", "replace")} if value else header
    return {key: as_string(header[key]) for key in _HEADER_KEYS if key in header}


class ChatAddition:
    """The new part of a chat's records, found by its `mark` and the records in its mirror.

    The mark is updated. The mirror's records are used for a chat that is read `is_again` from its
    beginning, and for prompts to which Gemini gave new ids."""

    def __init__(self, mark: Mark, mirrored: Iterable[Record], *, is_again: bool) -> None:
        self._mark = mark
        self._ids = dict.fromkeys(mark.get("ids", ()))
        self._calls = dict.fromkeys(mark.get("calls", ()))
        # new ids of prompts, with their old ids
        self._renamed: dict[str, str] = dict(mark.get("renamed", {}))
        self._mirrored = list(mirrored) if is_again else mirrored
        for record in self._mirrored if is_again else ():
            self._ids[as_string(record.get("id"))] = None
            self._calls.update(dict.fromkeys([call["id"] for call in _calls(record)]))
        self._prompts: list[Record] = []  # in this addition
        self._added: dict[str, Record] = {}

    def lines(self, records: Iterable[Record]) -> list[Record]:
        lines: list[Record] = []
        for record in records:
            lines += self._lines_of(record)
        self._mark["ids"], self._mark["calls"] = (
            list(self._ids)[-LAST_IDS:],
            list(self._calls)[-LAST_IDS:],
        )
        if self._renamed:
            self._mark["renamed"] = dict(list(self._renamed.items())[-LAST_IDS:])
        return lines

    def _lines_of(self, record: Record) -> Iterator[Record]:
        kind, record_id = record.get("type"), as_string(record.get("id"))
        if isinstance(record.get("$rewindTo"), str):
            yield {"$rewindTo": self._renamed.get(record["$rewindTo"], record["$rewindTo"])}
        elif isinstance(record.get("$set"), dict):
            yield from self._changes(record)
        elif record_id and kind == "user" and typed(record) and record_id not in self._ids:
            self._ids[record_id] = None
            self._prompts.append(_prompt(record))
            yield self._prompts[-1]
        elif record_id and kind == "gemini":
            yield from self._answer(record, record_id)

    def _changes(self, record: Record) -> Iterator[Record]:
        compressed, named = snapshot_id(record), summary_in(record)
        if compressed and compressed not in self._ids:
            self._ids[compressed] = None
            self._note_renamed(record["$set"]["messages"])
            yield {
                "id": compressed,
                "timestamp": as_string(record["$set"].get("lastUpdated")),
                "type": COMPRESSED,
            }
        if named is not None and (named := redact(named)) != self._mark.get("title"):
            self._mark["title"] = named
            yield {"$set": {"summary": named}}

    def _note_renamed(self, messages: list[Any]) -> None:
        """Note prompts with new ids, except compressed ones, by their typed text, last first."""
        self._mirrored = list(self._mirrored)
        known = [
            *[message for message in self._mirrored if message.get("type") == "user"],
            *self._prompts,
        ]
        for message in reversed(messages):
            text = (
                typed(message)
                if isinstance(message, dict) and message.get("type") == "user"
                else ""
            )
            while text and known:
                prompt = known.pop()
                if typed(prompt) in (text, redact(text)):
                    if message.get("id") != prompt["id"]:
                        self._renamed[as_string(message.get("id"))] = prompt["id"]
                    break

    def _answer(self, record: Record, record_id: str) -> Iterator[Record]:
        calls = [call for call in _calls(record) if call["id"] not in self._calls]
        self._calls.update(dict.fromkeys([call["id"] for call in calls]))
        line: Record = {key: record[key] for key in ("id", "timestamp", "type") if key in record}
        if record_id not in self._ids:
            self._ids[record_id] = None
            line.update(
                {key: record[key] for key in ("model", "tokens") if key in record},
                content=said(record),
            )
            self._added[record_id] = line
            yield line
        elif record_id not in self._added and calls:
            yield {**line, "content": "", "toolCalls": calls}
            return
        if calls and record_id in self._added:
            line = self._added[record_id]
            line[WHOLE], line["toolCalls"] = True, [*line.get("toolCalls", ()), *calls]


def _prompt(record: Record) -> Record:
    """Return a user's message as typed, with hooks' text, without files that Gemini read for it."""
    content = record.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [
        as_string(part.get("text")).strip() if isinstance(part, dict) else "" for part in parts
    ]
    context_parts = [part for part, text in zip(parts, texts) if text.startswith(CONTEXT)]
    shown = (
        record.get("displayContent")
        or parts[: texts.index(REFERENCED) if REFERENCED in texts else None]
    )
    shown = shown if isinstance(shown, list) else [{"text": shown}]
    kept: Record = {key: record[key] for key in ("id", "timestamp", "type") if key in record}
    return {**kept, "content": shown + [part for part in context_parts if part not in shown]}


def _calls(record: Record) -> list[Record]:
    """Return the calls of a message that have an id, without the parts for the screen."""
    calls = [call for call in objects_of(record.get("toolCalls")) if as_string(call.get("id"))]
    return [{key: call[key] for key in _CALL_KEYS if key in call} for call in calls]


def _project_root(config_dir: str, name: str) -> str:
    """Return the directory of the project whose chats are in `tmp/<name>`; '' if unknown.

    Older versions named the folder after the directory's SHA-256."""
    try:
        root = read_whole(f"{config_dir}/tmp/{name}/.project_root").decode(
            "utf-8", "surrogateescape"
        )
        return path_text(root.strip())
    except OSError:
        pass
    from hashlib import sha256

    try:
        projects = decode(read_whole(f"{config_dir}/projects.json").decode("utf-8", "replace"))[
            "projects"
        ]
        named = [path for path, project in projects.items() if project == name]
        encoded = {path: path.encode("utf-8", "surrogateescape") for path in projects}
        return next(
            iter(named or [path for path in projects if sha256(encoded[path]).hexdigest() == name]),
            "",
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
