"""Checks if a file is still the one that a cursor was made from.

An offset alone misses rewrites. A cursor also keeps the inode, and checksums of the file's first bytes and of those
before the offset: if one differs, the file is a new generation."""

from __future__ import annotations

from ..system.files import read_at, stamp_of
from .lines import last_line_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import stat_result
    from typing import Any

    Cursor = dict[str, Any]

CHECKED_BYTES = 1024
LARGE_PRIME = (1 << 30) - 35  # of one digit to Python, which divides by such many times as fast
# A file that changes twice within the clock's grain keeps its mtime. As git does with its index, an mtime is trusted
# only if it was older than that when it was written down.
RACY_NANOSECONDS = 2_000_000_000


def resume_offset(cursor: Cursor, descriptor: int, status: stat_result) -> int | None:
    """Return the offset to continue at, always the beginning of a line; None if the file is not the cursor's."""
    offset = cursor.get("offset")
    if not isinstance(offset, int) or not 0 <= offset <= status.st_size:
        return None
    if "tail" not in cursor:  # an offset of unknown origin: continue at the beginning of its line
        return last_line_end(descriptor, 0, offset, offset)
    is_same_file = cursor.get("inode") == status.st_ino
    return offset if is_same_file and [cursor.get("head"), cursor["tail"]] == _checksums(descriptor, offset) else None


def make_cursor(descriptor: int, status: stat_result, offset: int, now_nanoseconds: int) -> Cursor:
    """Return the cursor for a file that was read up to `offset`."""
    head, tail = _checksums(descriptor, offset)
    is_settled = now_nanoseconds - status.st_mtime_ns > RACY_NANOSECONDS
    inode, size, milliseconds = stamp_of(status)
    return {
        "offset": offset,
        "size": size,
        "inode": inode,
        "mtime": milliseconds if is_settled else 0,
        "head": head,
        "tail": tail,
    }


def id_checksum(entry_id: str) -> int:
    """Return a checksum of an entry id, which is short to store and finds recent entries again in their own file."""
    return _checksum(entry_id.encode("utf-8", "replace"))


def _checksums(descriptor: int, offset: int) -> list[int]:
    """Return the checksums of the first bytes of the file and of those before `offset`, at most CHECKED_BYTES each."""
    length = min(CHECKED_BYTES, offset)
    return [_checksum(read_at(descriptor, 0, length)), _checksum(read_at(descriptor, offset - length, offset))]


def _checksum(content: bytes) -> int:
    """Return the remainder of `content`, as a number, by a prime: detects changes like a CRC, without zlib."""
    return int.from_bytes(content, "little") % LARGE_PRIME
