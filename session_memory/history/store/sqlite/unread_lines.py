"""Hashes the lines that ingest left out.

These are lines of files that an earlier version ingested, that rules excluded, or whose key was
lost. They are also the lines of sub-agents, which belong to the call of the session that started
the sub-agent. The calls of sub-agents are stored likewise (sub_agent_calls.py).

That starting call names no file, so each line of a sub-agent is hashed twice: alone, and with the
name of its file. A row of `memory_unread_lines` tells what a file still waits for.
"""

import os
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ....common.system.files import Opened
from ....common.system.quick_json import decode_line
from ....common.system.sqlite import Connection, fetch
from ....common.text.sanitize import beginning, for_people
from ....common.text.written_lines import line_hashes, line_in, made_commits
from ....sessions.runtimes.base import Runtime
from ....sessions.runtimes.detection import runtime_of
from ....sessions.runtimes.records import CallResult
from ....sessions.settings.forgotten import ForgottenSessions, forgotten_of
from ....sessions.transcripts.edits import edited_files
from ....sessions.transcripts.entries import Entry, ToolUse
from ....sessions.transcripts.lines import first_line, lines_forward
from ....sessions.transcripts.reader import TranscriptReader
from ..ingest.extract import (
    ARGUMENT_CHARACTERS,
    SECRET_CHARACTERS,
    Extractor,
    result_text,
    whole_lines,
    written_by,
)
from ..ingest.values import NewEntry
from ..values import ITEM_BITS, items_of_file, key_of
from ._sub_agent_calls import SubAgentCall
from ._sub_agent_calls import insert as insert_calls
from .engine import SqliteStore
from .rows import ids_of
from .written_lines import insert, key_for

_EXCLUDED = (
    f"SELECT file_id FROM memory_excluded_files UNION SELECT item >> {ITEM_BITS} AS "
    f"file_id FROM memory_excluded_items"
)
_UNREAD = """
    SELECT f.id, f.home, f.root, f.file_path, f.session_id, f.next_ordinal, f.last_processed_offset, f.last_modified,
        u.since
    FROM memory_unread_lines AS u JOIN memory_file_states AS f ON f.id = u.file_id
"""
_READ = """
    DELETE FROM memory_unread_lines
    WHERE file_id IN (SELECT id FROM memory_file_states WHERE id = ? AND last_modified = ?)
"""
_CALLS = """
    SELECT timestamp, id FROM memory_tool_uses
    WHERE id BETWEEN ? AND ? AND timestamp IS NOT NULL AND outcome IS NOT 'error' ORDER BY timestamp, id
"""
_OWNER = (
    "SELECT f.id FROM memory_file_states AS f WHERE f.home = ? AND f.session_id = ? AND "
    "f.next_ordinal > 0"
)
# Separately ingested transcripts of sub-agents have no items of their own. They are read again with
# the rest of the session, because their lines may have been removed with the session's.
_SUB_AGENTS = (
    "INSERT OR IGNORE INTO memory_unread_lines SELECT id, 0 FROM memory_file_states "
    "WHERE next_ordinal = 0"
)


class _Edit(NamedTuple):
    """One call of a sub-agent and the lines that it wrote; its item is not known yet.

    `at` is when the sub-agent began, or when it called if it is in its session's transcript
    (milliseconds). `name` is the name of the file, and `owner` the session that the call names as
    its own, or ''."""

    at: int
    name: str
    lines: list[str]
    owner: str
    call: SubAgentCall


def add_missing(store: SqliteStore, seconds: float) -> None:
    """Hash lines for `seconds`; the next call continues. A deleted transcript has no lines.

    Raises DatabaseError."""
    deadline = time.monotonic() + seconds
    shown = ""
    if store.is_excluding():
        shown = f"AND f.id NOT IN ({_EXCLUDED})"
        _remove_excluded(store)
    if not store.rows("SELECT 1 FROM memory_unread_lines LIMIT 1"):
        return
    key = key_for(store)
    waiting = store.rows(f"{_UNREAD} WHERE true {shown} ORDER BY f.last_entry_timestamp DESC")
    if any(since is None for *_, since in waiting):
        with store.transaction() as connection:
            connection.execute(_SUB_AGENTS)
    for file_id, home, root, file_path, session_id, items, end, modified, since in waiting:
        if time.monotonic() > deadline:
            return
        path = f"{root}/{file_path}"
        own_entries = (
            _entries_of(path, home, session_id, end, key) if since is None and items else []
        )
        forgotten = forgotten_of(store.path, home)
        of_sub_agents = list(
            _transcripts(path, root, forgotten, is_empty=not items, since=since or 0)
        )
        with store.transaction() as connection:
            insert(connection, _lines_of(connection, file_id, own_entries))
            for edits in of_sub_agents:
                owner = next((edit.owner for edit in edits if edit.owner), session_id)
                files = (
                    [(file_id,)] if items else fetch(connection, f"{_OWNER} {shown}", (home, owner))
                )
                for (item,) in files[:1]:
                    _insert_edits(connection, item, edits, key)
            connection.execute(_READ, (file_id, modified))


def _remove_excluded(store: SqliteStore) -> None:
    """Remove the lines of files that rules exclude in part.

    These files wait, so they get their lines again once no rule excludes them."""
    waiting = "SELECT file_id FROM memory_unread_lines WHERE since IS NULL"
    ids = [file_id for (file_id,) in store.rows(f"{_EXCLUDED} EXCEPT {waiting}")]
    if not ids:
        return
    with store.transaction() as connection:
        for table in ("memory_written_lines", "memory_sub_agent_calls"):
            connection.execute(
                f"DELETE FROM {table} WHERE item >> {ITEM_BITS} IN carray(?)", (ids_of(ids),)
            )
        connection.executemany(
            "INSERT OR REPLACE INTO memory_unread_lines VALUES (?, NULL)",
            [(file_id,) for file_id in ids],
        )


def _entries_of(path: str, home: str, session_id: str, end: int, key: bytes) -> list[NewEntry]:
    with suppress(Exception), Opened(path) as descriptor:  # ingesting it reports the reason
        runtime = runtime_of(descriptor)
        size = min(end, os.fstat(descriptor).st_size)
        return (
            Extractor(runtime, descriptor, session_id, home, key).read(0, size, size).entries
            if runtime
            else []
        )
    return []


def _lines_of(
    connection: Connection, file_id: int, entries: Iterable[NewEntry]
) -> list[tuple[int, int]]:
    """Return the lines of this file's entries, with the ids of their items."""
    tools = [tool for entry in entries for tool in entry.tools if tool.lines]
    keys = [tool.key for tool in tools] + [key_of(f"{tool.key} {tool.argument}") for tool in tools]
    if not keys:
        return []
    sql = "SELECT key, id FROM memory_item_keys WHERE key IN carray(?) AND id BETWEEN ? AND ?"
    known = dict(fetch(connection, sql, (ids_of(keys), *items_of_file(file_id))))
    pairs = [
        (tool, known.get(key_of(f"{tool.key} {tool.argument}")) or known.get(tool.key))
        for tool in tools
    ]
    return [(line, item) for tool, item in pairs if item for line in tool.lines]


def _insert_edits(connection: Connection, file_id: int, edits: Sequence[_Edit], key: bytes) -> None:
    """Write the lines and the calls of a sub-agent.

    They belong to the last call of the session before the sub-agent began."""
    calls = fetch(connection, _CALLS, items_of_file(file_id))
    lines: list[tuple[int, int]] = []
    made: list[SubAgentCall] = []
    for edit in edits:
        place = bisect_right(calls, (edit.at, items_of_file(file_id)[1]))
        if place:
            item = calls[place - 1][1]
            long = [line for line in edit.lines if "\0" not in line] if edit.name else []
            texts = [*edit.lines, *(line_in(edit.name, line) for line in long)]
            lines += [(line, item) for line in line_hashes(texts, key)]
            made.append(edit.call._replace(item=item))
    insert(connection, lines)
    insert_calls(connection, made)


def _transcripts(
    path: str, root: str, forgotten: ForgottenSessions, *, is_empty: bool, since: int
) -> Iterator[list[_Edit]]:
    """Yield the edits in each transcript of the session's sub-agents.

    If `is_empty`, the file has no items and may be a sub-agent's transcript itself. Transcripts
    outside the root or unreadable ones are left out."""
    with suppress(OSError), Opened(path) as descriptor:
        runtime = runtime_of(descriptor)
        for transcript in [path] if is_empty else runtime.sub_agents(path) if runtime else []:
            with suppress(Exception):
                is_inside = os.path.realpath(transcript).startswith(f"{os.path.realpath(root)}/")
                if runtime and is_inside and os.stat(transcript).st_mtime_ns // 1_000_000 >= since:
                    yield _edits(
                        transcript, runtime, forgotten, is_own=transcript == path and not is_empty
                    )


def _edits(
    path: str, runtime: Runtime, forgotten: ForgottenSessions, *, is_own: bool
) -> list[_Edit]:
    edits: dict[str, _Edit] = {}
    began: int | None = None
    with Opened(path) as descriptor:
        first = first_line(descriptor)
        branch = runtime.records.open_transcript(first)
        of_session = branch.of_session if branch else ""
        reader = TranscriptReader(runtime, first, decode_line, of_sub_agents=True)
        for event in reader.forward(
            lines_forward(descriptor, 0, os.fstat(descriptor).st_size), with_results=True
        ):
            if isinstance(event, CallResult) and event.call_id in edits:
                edit = edits[event.call_id]
                outcome = "error" if event.has_failed else "ok"
                written = whole_lines(runtime, event.call_id, reader.record) or edit.lines
                lines = (
                    []
                    if event.has_failed
                    else [*written, *made_commits(result_text(event.content))]
                )
                edits[event.call_id] = edit._replace(
                    lines=lines, call=edit.call._replace(outcome=outcome)
                )
            elif isinstance(event, Entry) and event.timestamp is not None and not event.is_copy:
                began = round(event.timestamp * 1000) if began is None or is_own else began
                owner = of_session or event.origin
                if forgotten and forgotten.holds(event, owner):
                    continue
                for tool in event.tools:
                    if call := _edit(runtime, tool, event, reader.record):
                        edits[tool.call_id or str(len(edits))] = call._replace(
                            at=began, owner=owner
                        )
    return list(edits.values())


def _edit(runtime: Runtime, tool: ToolUse, entry: Entry, record: dict[str, Any]) -> _Edit | None:
    """Return an entry's call, without session and time, or None.

    None means that it neither writes lines or files nor runs git."""
    lines = written_by(runtime, tool, record)
    runs_git = tool.kind == "command" and "git " in tool.argument
    if not (lines or runs_git or edited_files(tool.kind, tool.argument, entry.cwd)):
        return None
    return _Edit(
        0,
        tool.argument.rpartition("/")[2] if tool.kind == "edit" else "",
        lines,
        "",
        _stored(tool, entry),
    )


def _stored(tool: ToolUse, entry: Entry) -> SubAgentCall:
    """Return a call as the store has it, with secrets redacted."""
    argument = for_people(beginning(tool.argument, ARGUMENT_CHARACTERS + SECRET_CHARACTERS))[
        :ARGUMENT_CHARACTERS
    ]
    at = round((entry.timestamp or 0.0) * 1000)
    key = key_of(f"{entry.id} {entry.offset} {tool.call_id} {tool.argument}")
    return SubAgentCall(0, key, at, tool.kind, argument, None, for_people(entry.cwd))
