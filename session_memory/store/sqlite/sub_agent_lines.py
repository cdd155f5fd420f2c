"""The lines that sub-agents wrote: hashed for the session that started them, with the call that did.

That call names no file, so each line is hashed a second time, with the name of its file.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ...system.files import Opened
from ...system.quick_json import decode_line
from ...text.written_lines import line_hashes, line_in
from ..values import items_of_file
from .written_lines import EXCLUDED, insert, key_for

if TYPE_CHECKING:
    from ...runtimes import Runtime
    from .engine import SqliteStore

_UNREAD = """
    SELECT f.id, f.home, f.root, f.file_path, f.session_id, f.next_ordinal, f.last_modified, u.since
    FROM memory_unread_sub_agents AS u JOIN memory_file_states AS f ON f.id = u.file_id
"""
_CALLS = """
    SELECT timestamp, id FROM memory_tool_uses
    WHERE id BETWEEN ? AND ? AND timestamp IS NOT NULL AND outcome IS NOT 'error' ORDER BY timestamp, id
"""
_OWNER = "SELECT id FROM memory_file_states WHERE home = ? AND session_id = ? AND next_ordinal > 0"


class _Edit(NamedTuple):
    """The lines of one call of a sub-agent: in which file, since when the sub-agent ran (milliseconds; if it stands in
    its session's transcript, when it called), and the session that it names as its own, '' for none."""

    at: int
    name: str
    lines: list[str]
    owner: str


def add_sub_agent_lines(store: SqliteStore, deadline: float) -> None:
    """Hash the lines of sub-agents that were not read yet; the next call continues after the deadline. Raises
    DatabaseError."""
    shown = f"WHERE f.id NOT IN ({EXCLUDED})" if store.is_excluding() else ""
    waiting = store.rows(f"{_UNREAD} {shown} ORDER BY f.last_entry_timestamp DESC")
    done: list[tuple[int, int]] = []
    for file_id, home, root, file_path, session_id, items, modified, since in waiting:
        if time.monotonic() > deadline:
            break
        path = f"{root}/{file_path}"
        for edits in _transcripts(path, root, is_empty=not items, since=since):
            owner = next((edit.owner for edit in edits if edit.owner), session_id)
            _add(store, file_id if items else _file_of(store, home, owner), edits)
        done.append((file_id, modified))
    if done:
        with store.transaction() as connection:
            connection.executemany(
                "DELETE FROM memory_unread_sub_agents "
                "WHERE file_id IN (SELECT id FROM memory_file_states WHERE id = ? AND last_modified = ?)",
                done,
            )


def _file_of(store: SqliteStore, home: str, session_id: str) -> int:
    """Return the file of the session that started a sub-agent; 0 if there is none, or rules exclude it."""
    hidden = f" AND id NOT IN ({EXCLUDED})" if store.is_excluding() else ""
    return next((file_id for (file_id,) in store.rows(_OWNER + hidden, (home, session_id))), 0)


def _add(store: SqliteStore, file_id: int, edits: Sequence[_Edit]) -> None:
    """Add lines for the last call of the session before the sub-agent began."""
    calls = store.rows(_CALLS, items_of_file(file_id)) if file_id else []
    found: list[tuple[int, int]] = []
    key = key_for(store)
    for edit in edits:
        place = bisect_right(calls, (edit.at, items_of_file(file_id)[1]))
        if place:
            texts = [*edit.lines, *(line_in(edit.name, line) for line in edit.lines)] if edit.name else edit.lines
            found += [(line, calls[place - 1][1]) for line in line_hashes(texts, key)]
    if found:
        with store.transaction() as connection:
            insert(connection, found)


def _transcripts(path: str, root: str, *, is_empty: bool, since: int) -> Iterator[list[_Edit]]:
    """Yield the edits in each transcript of the session's sub-agents; of a file without items in this one, which may
    be a sub-agent's. None is read outside the root, and what cannot be read has none."""
    from ...runtimes.detection import runtime_of

    with suppress(OSError), Opened(path) as descriptor:
        runtime = runtime_of(descriptor)
        for one in [path] if is_empty else runtime.sub_agents(path) if runtime else []:
            with suppress(Exception):
                is_inside = os.path.realpath(one).startswith(f"{os.path.realpath(root)}/")
                if runtime and is_inside and os.stat(one).st_mtime_ns // 1_000_000 >= since:
                    yield _edits(one, runtime, is_own=one == path and not is_empty)


def _edits(path: str, runtime: Runtime, *, is_own: bool) -> list[_Edit]:
    from ...runtimes.records import CallResult
    from ...transcripts.entries import Entry
    from ...transcripts.lines import first_line, lines_forward
    from ...transcripts.reader import TranscriptReader
    from ..ingest.extract import written_by

    found: dict[str, _Edit] = {}
    began: int | None = None
    with Opened(path) as descriptor:
        first = first_line(descriptor)
        branch = runtime.records.open_transcript(first)
        of_session = branch.of_session if branch else ""
        reader = TranscriptReader(runtime, first, decode_line, of_sub_agents=True)
        for one in reader.forward(lines_forward(descriptor, 0, os.fstat(descriptor).st_size), with_results=True):
            if isinstance(one, CallResult) and one.has_failed:
                found.pop(one.call_id, None)
            elif isinstance(one, Entry) and one.timestamp is not None and not one.is_copy:
                began = round(one.timestamp * 1000) if began is None or is_own else began
                for tool in one.tools:
                    if lines := written_by(runtime, tool, reader.record):
                        name = tool.argument.rpartition("/")[2] if tool.kind == "edit" else ""
                        found[tool.call_id or str(len(found))] = _Edit(began, name, lines, of_session or one.origin)
    return list(found.values())
