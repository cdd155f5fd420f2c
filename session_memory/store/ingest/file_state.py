"""The state of a transcript: if the file has changed, where to continue reading, and the state after reading."""

from __future__ import annotations

import os
import time

from ...runtimes import Runtime
from ...runtimes.detection import source_of
from ...system.files import open_regular, read_at
from ...text.sanitize import for_people
from ...transcripts.cursor import make_cursor, resume_offset
from ...transcripts.lines import BLOCK_BYTES
from ...transcripts.reader import USER_RANK
from ..values import FileState
from .extract import Extract
from .sources import SourceFile


def is_unchanged(file: SourceFile, state: FileState | None) -> bool:
    """Check if the store has all of a file, and the file is unchanged."""
    if state is None or state.status != "idle" or state.root != file.directory.root:
        return False
    return (state.inode, state.file_size, state.last_modified) == file.stamp


def is_beginning(state: FileState, descriptor: int, status: os.stat_result) -> bool:
    """Check if a file is the beginning, or all, of the file known under its key."""
    try:
        known = open_regular(f"{state.root}/{state.file_path}")
    except OSError:
        cursor = make_cursor(descriptor, status, min(state.offset, status.st_size), 0)
        return bool(cursor["head"] == state.head)
    try:
        return all(
            read_at(known, start, min(start + BLOCK_BYTES, status.st_size))
            == read_at(descriptor, start, start + BLOCK_BYTES)
            for start in range(0, status.st_size, BLOCK_BYTES)
        )
    finally:
        os.close(known)


def begun(
    file: SourceFile, before: FileState | None, descriptor: int, status: os.stat_result, runtime: Runtime
) -> tuple[FileState, int]:
    """Return the state of the file as it is now, and the offset to read on from."""
    home, root = file.directory.home, file.directory.root
    given = for_people(runtime.given_name(file.plain_path))
    if before is None:
        session_id = runtime.session_id_of(file.plain_path)
        state = FileState(home, file.key, root, source_of(descriptor, runtime), session_id)
        return state._replace(title=given, title_rank=USER_RANK) if given else state, 0
    is_elsewhere = before.root != root
    cursor = {
        "offset": before.offset,
        "inode": status.st_ino if is_elsewhere else before.inode,
        "head": before.head,
        "tail": before.tail,
    }
    start = resume_offset(cursor, descriptor, status)
    state = before._replace(root=root)
    if given:
        state = state._replace(title=given, title_rank=USER_RANK)
    if start is None:
        return state._replace(generation=before.generation + 1, unreadable=0), 0
    return state, start


def advanced(state: FileState, extract: Extract, descriptor: int, status: os.stat_result) -> FileState:
    """Return the state once an extract is stored."""
    cursor = make_cursor(descriptor, status, extract.reached, time.time_ns())
    times = [entry.timestamp for entry in extract.entries if entry.timestamp is not None]
    is_better = extract.title[0] >= max(state.title_rank, 0)  # of two titles of one rank the later one
    rank, title = extract.title if is_better else (state.title_rank, state.title)
    return state._replace(
        status="idle",
        file_size=extract.size,
        last_modified=cursor["mtime"] if extract.size == status.st_size else 0,
        inode=status.st_ino,
        offset=extract.reached,
        head=cursor["head"],
        tail=cursor["tail"],
        unreadable=state.unreadable + extract.unreadable,
        first_entry_timestamp=state.first_entry_timestamp or min(times, default=None),
        last_entry_timestamp=max(times, default=state.last_entry_timestamp),
        cwd=state.cwd or extract.cwd,
        title=title,
        title_rank=rank,
    )
