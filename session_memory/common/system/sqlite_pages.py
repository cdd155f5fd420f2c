"""Reads the rows of a damaged SQLite file page by page, without SQLite.

The format is documented at sqlite.org/fileformat2.html. If a page is damaged or the disk cannot
read it, only its rows are lost. Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import Any

from .files import open_regular, read_at

Record = list[Any]
Cell = tuple[int, bytes]  # the row's id (0 in an index), and the row


TABLE_LEAF, TABLE_INNER, INDEX_LEAF, INDEX_INNER = 13, 5, 10, 2
_DEFAULT_PAGE_BYTES = 4096
_FILE_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24
# of numbers, by the type in a record
_SIZES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
_REAL = Struct(">d")


class DamagedRowError(Exception):
    """A page or a row that cannot be read."""


class DatabasePages:
    """The pages of the database at `path`, in the state of its write-ahead log. Raises OSError.

    `close` drops the locks of this process's connections to the database, so use it only for a
    database that was moved away, or that no connection of this process has open."""

    def __init__(self, path: str) -> None:
        self._file = open_regular(path)
        try:
            self._log = open_regular(f"{path}-wal")
        except OSError:
            self._log = -1
        header = _bytes_at(self._file, 0, _FILE_HEADER)
        size = int.from_bytes(header[16:18], "big")
        size = 65536 if size == 1 else size
        is_size = size & (size - 1) == 0 and 512 <= size <= 65536
        self.has_header = header.startswith(b"SQLite format 3\x00") and is_size
        self.page_bytes = size if self.has_header else _DEFAULT_PAGE_BYTES
        self._usable = self.page_bytes - (header[20] if self.has_header else 0)
        self._places = self._in_log()
        in_file = os.fstat(self._file).st_size // self.page_bytes
        self.count = max(in_file, *self._places, 0) if self._places else in_file

    def close(self) -> None:
        """Close the files."""
        for descriptor in (self._file, self._log):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._log = -1

    def _in_log(self) -> dict[int, int]:
        """Return the position in the log of the last committed version of each page."""
        header = _bytes_at(self._log, 0, _LOG_HEADER) if self._log >= 0 else b""
        if len(header) < _LOG_HEADER or int.from_bytes(header[8:12], "big") != self.page_bytes:
            return {}
        places: dict[int, int] = {}
        waiting: dict[int, int] = {}
        at = _LOG_HEADER
        while True:
            frame = _bytes_at(self._log, at, _FRAME_HEADER)
            if len(frame) < _FRAME_HEADER or frame[8:16] != header[16:24]:  # of an earlier log
                return places
            waiting[int.from_bytes(frame[:4], "big")] = at + _FRAME_HEADER
            at += _FRAME_HEADER + self.page_bytes
            if any(frame[4:8]):  # a commit
                places.update(waiting)
                waiting = {}

    def page(self, number: int) -> bytes:
        """Return a page. Raises DamagedRowError if it cannot be read."""
        if not 1 <= number <= self.count:
            raise DamagedRowError(f"page {number} is missing")
        place = self._places.get(number)
        if place is None:
            content = _bytes_at(self._file, (number - 1) * self.page_bytes, self.page_bytes)
        else:
            content = _bytes_at(self._log, place, self.page_bytes)
        if len(content) < self.page_bytes:
            raise DamagedRowError(f"page {number} cannot be read")
        return content

    def kind(self, number: int) -> int:
        """Return the type of a table's or index's page; 0 for any other or an unreadable page."""
        try:
            kind = self.page(number)[_FILE_HEADER if number == 1 else 0]
        except DamagedRowError:
            return 0
        return kind if kind in (TABLE_LEAF, TABLE_INNER, INDEX_LEAF, INDEX_INNER) else 0

    def free(self) -> set[int] | None:
        """Return the numbers of the unused pages; None if not all are known."""
        unused: set[int] = set()
        try:
            trunk = int.from_bytes(self.page(1)[32:36], "big") if self.has_header else -1
            while trunk:
                content = self.page(trunk)
                count = int.from_bytes(content[4:8], "big")
                if trunk in unused or count > self._usable // 4:
                    return None
                leaves = (
                    int.from_bytes(content[at : at + 4], "big") for at in range(8, 8 + 4 * count, 4)
                )
                unused.update((trunk, *leaves))
                trunk = int.from_bytes(content[:4], "big")
        except DamagedRowError:
            return None
        return unused

    def tree(self, root: int, reached: set[int]) -> Iterator[Cell]:
        """Yield the rows of the table or index with this root, and add each page read to `reached`.

        Damaged pages are left out, with everything below them."""
        waiting = [root]
        while waiting:
            number = waiting.pop()
            kind = 0 if number in reached else self.kind(number)
            if not kind:
                continue
            reached.add(number)
            content = self.page(number)
            if kind in (TABLE_INNER, INDEX_INNER):
                start = _FILE_HEADER if number == 1 else 0
                children = [
                    int.from_bytes(content[at : at + 4], "big")
                    for at in self._cells(content, start)
                ]
                waiting += [*children, int.from_bytes(content[start + 8 : start + 12], "big")]
            if kind != TABLE_INNER:
                yield from self.rows_on(number)

    def rows_on(self, number: int) -> Iterator[Cell]:
        """Yield the readable rows on one page."""
        content, start = self.page(number), _FILE_HEADER if number == 1 else 0
        kind = content[start]
        for at in self._cells(content, start):
            try:
                at += 4 if kind == INDEX_INNER else 0
                size, at = _varint(content, at)
                row_id, at = _varint(content, at) if kind == TABLE_LEAF else (0, at)
                yield _signed(row_id), self._payload(content, at, size, is_table=kind == TABLE_LEAF)
            except (DamagedRowError, IndexError):
                continue

    def _cells(self, content: bytes, start: int) -> list[int]:
        """Return where the cells of a page begin."""
        count = int.from_bytes(content[start + 3 : start + 5], "big")
        first = start + (12 if content[start] in (TABLE_INNER, INDEX_INNER) else 8)
        places = [
            int.from_bytes(content[at : at + 2], "big") for at in range(first, first + 2 * count, 2)
        ]
        return [at for at in places if first <= at < self._usable]

    def _payload(self, content: bytes, at: int, size: int, *, is_table: bool) -> bytes:
        """Return a row of `size` bytes that begins at `at`, including its overflow pages."""
        usable = self._usable
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        if size <= most:
            return content[at : at + size]
        least = (usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (usable - 4)
        here = here if here <= most else least
        parts = [content[at : at + here]]
        following = int.from_bytes(content[at + here : at + here + 4], "big")
        left = size - here
        while left > 0:
            if left > self.count * self.page_bytes:
                raise DamagedRowError("longer than the file")
            more = self.page(following)
            parts.append(more[4 : 4 + min(left, usable - 4)])
            left -= usable - 4
            following = int.from_bytes(more[:4], "big")
        return b"".join(parts)


def record_of(payload: bytes) -> Record:
    """Return the values of a row. Raises DamagedRowError if it is incomplete."""
    try:
        end, at = _varint(payload, 0)
        types = []
        while at < end:
            type, at = _varint(payload, at)
            types.append(type)
        sizes = [_SIZES[type] if type < 12 else (type - 12) // 2 for type in types]
        if at != end or end + sum(sizes) != len(payload):
            raise DamagedRowError("not a row")
        values = []
        for type, size in zip(types, sizes):
            values.append(_value(type, payload[at : at + size]))
            at += size
        return values
    except (IndexError, KeyError) as error:
        raise DamagedRowError("not a row") from error


def _value(type: int, content: bytes) -> Any:
    if type >= 12:
        return content.decode("utf-8", "replace") if type % 2 else content
    if type == 0:
        return None
    if type == 7:
        return _REAL.unpack(content)[0]
    return type - 8 if type in (8, 9) else int.from_bytes(content, "big", signed=True)


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number of up to nine bytes, and the offset after it. Raises IndexError."""
    value = 0
    for number in range(9):
        byte = content[at + number]
        if number == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + number + 1
    raise IndexError


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _bytes_at(descriptor: int, start: int, size: int) -> bytes:
    """Return up to `size` bytes; b'' if the disk cannot read them."""
    try:
        return read_at(descriptor, start, start + size)
    except OSError:
        return b""
