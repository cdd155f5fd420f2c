"""Files that are compressed with zstd, read by the standard library where it can (from Python 3.14 on), else by the
package `zstandard`, if that is installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import SessionMemoryError
from .files import os

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BLOCK_BYTES = 64 * 1024  # of what is compressed; text becomes about ten times as much


class DamagedFileError(SessionMemoryError):
    """A compressed file is cut off, or is none."""


class NoLibraryError(SessionMemoryError):
    """There is nothing that could decompress a file."""


def can_decompress() -> bool:
    """Whether this Python can read such files."""
    return _library() is not None


def decompressed(descriptor: int) -> Iterator[bytes]:
    """What a file holds, from where it is read next, in pieces. Raises DamagedFileError where that ends before its
    time, ImportError without a library."""
    library = _library()
    if library is None:
        raise ImportError("no library for zstd")
    begin, error_type = library
    stream = begin()
    for block in blocks(descriptor):
        while block:
            if stream.eof:
                stream = begin()
            try:
                yield stream.decompress(block)
            except error_type as error:
                raise DamagedFileError(f"damaged: {error}") from error
            block = stream.unused_data if stream.eof else b""
    if not stream.eof:
        raise DamagedFileError("damaged: it ends in the middle")


def decompressed_file(descriptor: int) -> int:
    """A descriptor of a file without a name that holds what another one does, decompressed, with its time. Raises
    DamagedFileError, NoLibraryError, OSError."""
    if not can_decompress():
        raise NoLibraryError("it is compressed, and nothing here can read that: session-memory install --with zstd")
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        for block in decompressed(descriptor):
            file.write(block)
        file.flush()
        modified = os.fstat(descriptor).st_mtime_ns
        os.utime(file.fileno(), ns=(modified, modified))
        return os.dup(file.fileno())


def blocks(descriptor: int) -> Iterator[bytes]:
    """What a file holds as it is, from where it is read next, in pieces."""
    while block := os.read(descriptor, _BLOCK_BYTES):
        yield block


def _library() -> tuple[Callable[[], Any], type[Exception]] | None:
    """What begins to decompress one frame, and the error that it raises; None where nothing can."""
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
