"""Compresses and decompresses with zstd, from the standard library (Python 3.14) or `zstandard`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from ..errors import SessionMemoryError
from .files import os

MOST_BYTES = 256 * 1024 * 1024  # that a file may hold decompressed
_BLOCK_BYTES = 64 * 1024
# this much compressed data becomes at most 8 MB at once: four bytes may become 128 KB
_STEP_BYTES = 256


class DamagedFileError(SessionMemoryError):
    """A compressed file is truncated, has another format, or contains more than MOST_BYTES."""


class NoLibraryError(SessionMemoryError):
    """There is nothing that could decompress a file."""


def can_decompress() -> bool:
    """Check if this Python can read and write zstd."""
    return _library() is not None


def decompressed(descriptor: int) -> Iterator[bytes]:
    """Return the decompressed content of a file, from its current position, in parts.

    A part has at most 8 MB. Raises DamagedFileError if the file is truncated or has more than
    MOST_BYTES, ImportError without a library."""
    return _decompressed(blocks(descriptor, _STEP_BYTES), MOST_BYTES)


def decompressed_file(descriptor: int) -> int:
    """Return a descriptor of an unnamed file with another's decompressed content and time.

    Raises DamagedFileError, NoLibraryError, OSError."""
    if not can_decompress():
        raise NoLibraryError(
            "it is compressed with zstd, which needs: session-memory install --with zstd"
        )
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        for block in decompressed(descriptor):
            file.write(block)
        file.flush()
        modified = os.fstat(descriptor).st_mtime_ns
        os.utime(file.fileno(), ns=(modified, modified))
        return os.dup(file.fileno())


def compressed(content: bytes) -> bytes | None:
    """Return `content` compressed in one frame; None without a library."""
    try:
        return bytes(import_module("compression.zstd").compress(content))
    except ImportError:
        pass
    try:
        return bytes(import_module("zstandard").ZstdCompressor().compress(content))
    except ImportError:
        return None


def decompressed_bytes(content: bytes, most_bytes: int) -> bytes:
    """Return the bytes that `compressed` was given.

    Raises NoLibraryError, DamagedFileError, also above `most_bytes`."""
    if not can_decompress():
        raise NoLibraryError(
            "it is compressed with zstd, which needs: session-memory install --with zstd"
        )
    steps = (content[at : at + _STEP_BYTES] for at in range(0, len(content), _STEP_BYTES))
    return b"".join(_decompressed(steps, most_bytes))


def _decompressed(parts: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """Yield the content of compressed `parts` of one or more frames.

    Raises DamagedFileError, ImportError."""
    library = _library()
    if library is None:
        raise ImportError("no library for zstd")
    begin, error_type = library
    stream = begin()
    left = most_bytes
    for block in parts:
        while block:
            if stream.eof:
                stream = begin()
            try:
                content = stream.decompress(block)
            except error_type as error:
                raise DamagedFileError(f"damaged: {error}") from error
            left -= len(content)
            if left < 0:
                megabytes = most_bytes // 1024 // 1024
                raise DamagedFileError(
                    f"it unpacks to more than {megabytes} MB; if it is a transcript, unpack it "
                    f"with unzstd"
                )
            yield content
            block = stream.unused_data if stream.eof else b""
    if not stream.eof:
        raise DamagedFileError("damaged: it ends in the middle")


def blocks(descriptor: int, size: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the content of a file in blocks of `size` bytes, from its current position."""
    while block := os.read(descriptor, size):
        yield block


def _library() -> tuple[Callable[[], Any], type[Exception]] | None:
    """Return a factory of decompressors for one frame, and the error they raise; None without a
    library."""
    try:
        library = import_module("compression.zstd")
        return library.ZstdDecompressor, library.ZstdError
    except ImportError:
        pass
    try:
        library = import_module("zstandard")
        return library.ZstdDecompressor().decompressobj, library.ZstdError
    except ImportError:
        return None
