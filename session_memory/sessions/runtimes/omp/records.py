"""Decodes the lines of session files of omp 18.2: Pi's records after a line with the title.

omp's calls differ from Pi's. A read may name lines of its file, a command its own directory, and an
edit is a patch of one or more files, in one of several forms."""

from __future__ import annotations

from ....common.system.json import as_object, as_string, objects_in, objects_of
from ...transcripts.entries import Entry, ToolUse, in_directory
from .. import records
from ..pi.records import PiBranch, PiRecords, given_to
from . import RUNTIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...transcripts.edits import Edit
    from ..records import Event, Record

_USER_RANK, _MADE_RANK = 3, 2  # of titles that the user gave, and that omp made
_TITLE = "title"
_SUB_AGENT = b'"session_init"'  # is in one of the first lines of a sub-agent's session
_FILE, _MOVED, _MOVED_IN_PATCH = ("[", "]"), "MV ", "*** "
_TAG_CHARACTERS = 4  # of the checksum after a file's name in an edit
_ROW = "+"  # begins each line that an edit puts in
_LINES = frozenset("0123456789-+,")  # of a part of a file, as a read names it
_FORMS = ("raw", "conflicts", "img")  # of a file, as a read names them


class OmpRecords(PiRecords):
    """The first line has the title and is rewritten in place; the second is the header."""

    TITLE_MARKS = ()  # each reader has the first line

    def recognises(self, line: bytes) -> bool:
        return b'"pad"' in line and self.owns(next(iter(objects_in(line)), {}))

    def owns(self, record: Record) -> bool:
        return record.get("type") == _TITLE and "pad" in record

    def open_transcript(self, first_line: bytes) -> OmpBranch | None:
        """Return the live branch by the first four lines; None for a file without a header."""
        lines = first_line.split(b"\n")
        heads = [record for line in lines[:2] for record in objects_in(line)]
        header = next((record for record in heads if record.get("type") == "session"), None)
        if header is None:
            return None
        title = next((record for record in heads if self.owns(record)), {})
        return OmpBranch(header, title, any([_SUB_AGENT in line for line in lines[2:]]))

    def messages(self, record: Record, offset: int) -> Iterable[Event]:
        """Return the entry, compaction or cleared context in a record.

        omp itself writes prompts too, such as the task of a sub-agent."""
        message = as_object(record.get("message"))
        if message.get("role") == "user" and message.get("attribution") == "agent":
            return ()
        if record.get("type") == "reset_boundary":
            return (records.Compaction(),)
        events = list(super().messages(record, offset))
        for event in events:
            if isinstance(event, Entry) and event.role == "assistant":
                event.tools = _uses(message, event.tools)
        return events

    def usage(self, record: Record) -> Iterable[Event]:
        """Return the tokens of an answer, or of a call for omp's own purposes, such as a title."""
        if record.get("type") == "model_usage" and isinstance(record.get("usage"), dict):
            message = {**record, "role": "assistant"}
            return super().usage({**record, "type": "message", "message": message})
        return super().usage(record)

    def edits(self, record: Record, call_id: str) -> list[Edit]:
        from ...transcripts.edits import argument_edits, diff_edits, patch_edits

        arguments, place = given_to(as_object(record.get("message")), call_id)
        patch = as_string(arguments.get("input"))
        if patch:
            sections = _sections(patch)
            if not sections:
                return patch_edits(patch, place)
            texts = _put_in(sections[place][1]) if place < len(sections) else []
            return [("", text) for text in texts]
        diffs = [as_string(part.get("diff")) for part in objects_of(arguments.get("edits"))]
        if any(diffs):
            return [edit for diff in diffs for edit in diff_edits(diff)]
        return argument_edits(arguments, "old_string", "new_string", "content")


class OmpBranch(PiBranch):
    """The live branch; the title is the one in the line before the header, or the header's."""

    def __init__(self, header: Record, title: Record, is_of_subagent: bool) -> None:
        super().__init__(header)
        if is_of_subagent:
            self.is_of_subagent = True
            self.of_session, self.forked_from, self.copied_until = self.forked_from, "", None
        text = as_string(title.get("title") or header.get("title")).strip()
        source = title.get("source") or header.get("titleSource")
        if text:
            self.title = _USER_RANK if source == "user" else _MADE_RANK, text


def _uses(message: Record, uses: Iterable[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the calls of a message, an edit of several files as several."""
    named: list[ToolUse] = []
    for use in uses:
        if use.kind == "read":
            named.append(ToolUse(use.name, _file_of(use.argument), use.kind, use.call_id))
            continue
        arguments, _ = given_to(message, use.call_id)
        patch = as_string(arguments.get("input"))
        if use.kind == "edit" and patch:
            named += RUNTIME.edits_of(use, _patched(patch))
        else:
            named.append(in_directory(use, arguments.get("cwd")))
    return tuple(named)


def _file_of(path: str) -> str:
    """Return the file that a read names, without the lines or the form of it."""
    while not path.startswith(("http:", "https:")):
        file, mark, part = path.rpartition(":")
        if not (mark and file and (part in _FORMS or (part and set(part) <= _LINES))):
            break
        path = file
    return path


def _patched(patch: str) -> list[str]:
    """Return the files that an edit names, in the order of its parts."""
    sections = _sections(patch)
    if not sections:
        from ...transcripts.edits import patched_files

        return patched_files(patch)
    moved = [
        line[len(_MOVED) :].strip(" \"'")
        for _, lines in sections
        for line in lines
        if line.startswith(_MOVED)
    ]
    return [*[path for path, _ in sections], *moved]


def _sections(patch: str) -> list[tuple[str, list[str]]]:
    """Return the files in a patch of omp's own form, each once, with the lines below its name.

    A name is in brackets, and ends in the checksum of the file's content: `[app.py#A1B2]`."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in patch.removeprefix("\ufeff").splitlines():
        if line.startswith(_FILE[0]) and line.rstrip().endswith(_FILE[1]):
            name, mark, tag = line.rstrip()[1:-1].strip().rpartition("#")
            path = name if mark and len(tag) == _TAG_CHARACTERS else line.rstrip()[1:-1].strip()
            lines = sections.setdefault(path.strip("\"'"), [])
        else:
            lines.append(line)
    return list(sections.items())


def _put_in(lines: Iterable[str]) -> list[str]:
    """Return the texts that the operations of a part of a patch put in."""
    texts: list[list[str]] = []
    for line in lines:
        if not line.startswith(_ROW):
            texts.append([])
        elif texts:
            texts[-1].append(line[1:])
    return ["\n".join(text) for text in texts if text]
