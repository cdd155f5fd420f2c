"""Splits a file into chunks and packs each, such that the same text becomes the same chunk.

So a file that grows, and a fork, share chunks. A chunk ends after a line with a certain checksum,
not at a fixed offset (as in restic, borg and bup): adding or removing a line changes only the chunk
that contains it. A packed chunk leaves out the session's own id, because a fork replaces it in each
line.
"""

import zlib
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.system.files import read_at
from ...common.system.json import as_object, as_string, decode_line, encode
from ...common.system.zstd import DamagedFileError, compressed, decompressed_bytes
from ...common.text.secrets.redaction import redact
from ...sessions.transcripts.lines import settled_from
from ...sessions.transcripts.mirror import copies_of

LEAST_BYTES = 128 * 1024
MOST_BYTES = 1024 * 1024
LONGEST_LINE = 8 * 1024 * 1024
_CHECKSUM_BITS = 63  # one line of 64 may end a chunk
_OWN_ID = b"\x00own id\x00"  # in no line of JSON
_SUM_BYTES = 20
_PAD = "pad"  # extends the line of a title to the length that it always has
_LEVEL = 6
ZLIB, ZSTD = "zlib", "zstd"


class LineTooLongError(SessionMemoryError):
    """A line is too long to be redacted."""


class DamagedChunkError(SessionMemoryError):
    """A kept chunk differs from its original content."""


def checksum(content: bytes) -> bytes:
    """Return the checksum by which a chunk is known."""
    return blake2b(content, digest_size=_SUM_BYTES).digest()


def chunks_of(
    descriptor: int, start: int, end: int, own_id: bytes, *, is_cut: bool = True
) -> Iterator[bytes]:
    """Yield the bytes of `[start, end)` in chunks, fewer if the file ends earlier.

    A line longer than LONGEST_LINE is cut if that `is_cut`; otherwise LineTooLongError is raised. A
    first line that its runtime rewrites in place is a chunk of its own."""
    buffer = b""
    if not start and (title := settled_from(descriptor)):
        yield read_at(descriptor, 0, title)
        start = title
    while True:
        size = _chunk_end(buffer, own_id)
        if not size and len(buffer) >= LONGEST_LINE + MOST_BYTES:
            if not is_cut:
                raise LineTooLongError(f"a line is longer than {LONGEST_LINE // 1024 // 1024} MB")
            size = LONGEST_LINE
        if size:
            yield buffer[:size]
            buffer = buffer[size:]
            continue
        block = read_at(descriptor, start, min(end, start + MOST_BYTES))
        start += len(block)
        if not block:
            break
        buffer += block
    if buffer:
        yield buffer


def _chunk_end(buffer: bytes, own_id: bytes) -> int:
    """Return the end of the first chunk in `buffer`; 0 if it is still unknown."""
    at = buffer.find(b"\n", LEAST_BYTES) + 1 if len(buffer) > LEAST_BYTES else 0
    while at:
        line = buffer[buffer.rfind(b"\n", 0, at - 1) + 1 : at]
        if at >= MOST_BYTES or not zlib.crc32(line.replace(own_id, _OWN_ID)) & _CHECKSUM_BITS:
            return at
        at = buffer.find(b"\n", at) + 1
    return 0


def masked(chunk: bytes, own_id: bytes) -> tuple[bytes, bool]:
    """Return a chunk without the id of its session, and whether `unmasked` must restore the id."""
    without_id = chunk if _OWN_ID in chunk else chunk.replace(own_id, _OWN_ID)
    return without_id, without_id != chunk


def unmasked(content: bytes, own_id: bytes) -> bytes:
    """Return the chunk that was masked."""
    return content.replace(_OWN_ID, own_id)


def redacted(chunk: bytes, path: str) -> bytes:
    """Return a chunk of a file without secrets; lines of JSON are redacted one by one."""
    if path.endswith(".jsonl"):
        return b"\n".join([_redacted_line(line) for line in chunk.split(b"\n")])
    return _redacted_text(chunk)


def _redacted_line(line: bytes) -> bytes:
    records, unreadable = decode_line(line)
    if unreadable or not records:
        return _redacted_text(line)
    kept = copies_of(records, False)
    if kept == records:
        return line
    record = as_object(kept[0]) if len(kept) == 1 else {}
    if record.get("type") == "title" and _PAD in record:
        return _padded(record, len(line))
    return b"".join([encode(record).encode() for record in kept])


def _padded(record: dict[str, Any], size: int) -> bytes:
    """Return the line of a title with `size` bytes, in which its runtime rewrites it in place."""
    title = as_string(record.get("title"))
    while len(bare := encode({**record, "title": title, _PAD: ""}).encode()) > size and title:
        title = title[:-1]
    return encode({**record, "title": title, _PAD: " " * (size - len(bare))}).encode()


def _redacted_text(content: bytes) -> bytes:
    return redact(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def packed(content: bytes) -> tuple[str, bytes]:
    """Return a chunk's compression and its compressed form.

    The compression is zstd if this Python has it, else zlib."""
    zstd_content = compressed(content)
    return (ZLIB, zlib.compress(content, _LEVEL)) if zstd_content is None else (ZSTD, zstd_content)


def unpacked(how: str, content: bytes, sum: bytes) -> bytes:
    """Return the original chunk. Raises DamagedChunkError, NoLibraryError."""
    try:
        decompressed = (
            zlib.decompress(content)
            if how == ZLIB
            else decompressed_bytes(content, LONGEST_LINE + MOST_BYTES)
        )
    except DamagedFileError as error:
        raise DamagedChunkError(str(error)) from error
    except zlib.error as error:
        raise DamagedChunkError(f"damaged: {error}") from error
    if checksum(decompressed) != sum:
        raise DamagedChunkError("damaged: its content changed after it was kept")
    return decompressed
