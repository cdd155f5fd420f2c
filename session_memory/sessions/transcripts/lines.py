"""The lines of a transcript with their byte offsets: from the end in growing windows, or forward.

A line ends only in a line feed byte (`str.splitlines` would cut at U+2028 inside a JSON string).
Text after the last line feed is ignored, because the runtime is still writing it."""

from __future__ import annotations

from time import time_ns

from ...common.system.files import checksum, path_stamp, read_at
from ...common.system.json import decode_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Line = tuple[int, bytes]

# Codex's first line contains its instructions, 15 KB and more
FIRST_LINE_BYTES = (8 * 1024, 64 * 1024, 512 * 1024)
# The line of a title, which omp rewrites in place; the record of the session follows it.
TITLE_LINE = b'"type":"title"'
# A first line with one of these keys among its first bytes does not name the session's directory,
# but one of so many first lines does, in the files of Kimi Code and omp: the one with the second
# key, if there is one. In Kimi Code, a line for each MCP server comes before it.
HEADS = ((b'"protocol_version"', b'"environmentDisclosure"', 40), (TITLE_LINE, b"", 4))
_HEAD_KEY_BYTES = 512
FIRST_WINDOW_BYTES = 128 * 1024
WINDOW_GROWTH = 2
LARGEST_WINDOW_BYTES = 512 * 1024
BLOCK_BYTES = 1024 * 1024
# of a file that is searched: a larger block would get new memory each time, and zeroing that takes
# longer than the search (480 pages in a prompt with news)
SEARCHED_BYTES = 64 * 1024
LONG_LINE_BYTES = 4 * 1024 * 1024  # a longer line is only kept if it may matter
LARGEST_LINE_BYTES = 32 * 1024 * 1024  # a longer line counts as unreadable if it may matter
_BEGINNING_BYTES = 4096  # of a long line; they show its kind
_OVERLAP_BYTES = 512  # of a long line's parts, so no mark of its kind is split
LINE_FEED = 10


def windows_backward(
    descriptor: int,
    start: int,
    end: int,
    limit: int | None = None,
    may_matter: Callable[[bytes], bool] | None = None,
) -> Iterator[list[Line]]:
    """Yield the lines of `[start, end)` in windows from the end to the start.

    Each window's lines are in file order. A line begins at `start`, and one ends at `end`. Windows
    grow, so stopping early costs little. With `limit`, at most that many bytes are read, unless the
    last line is longer; any other line not completely in them is omitted. With `may_matter`, a long
    line that does not matter takes little memory: its beginning and end represent it."""
    lowest = start if limit is None else max(start, end - limit)
    window = FIRST_WINDOW_BYTES
    is_first = True
    # the line whose beginning is not read yet: its line feed, and the bytes read so far
    line_end, pieces = end - 1, []
    while end > (start if is_first else lowest):
        begin = max(lowest if end > lowest else start, end - window)
        window = min(window * WINDOW_GROWTH, LARGEST_WINDOW_BYTES)
        content = read_at(descriptor, begin, min(end, line_end))
        end = begin
        line_feed = content.find(b"\n") if begin > start else -1
        if begin > start and line_feed < 0:
            if may_matter is None or line_end - begin <= LONG_LINE_BYTES:
                pieces.append(content)
            continue
        first = content[: max(0, line_feed)]
        offset_lines = _with_offsets(content, line_feed + 1, begin)
        at, last = offset_lines.pop()
        if may_matter is None or line_end - at <= LONG_LINE_BYTES:
            offset_lines.append((at, b"".join([last, *reversed(pieces)])))
        else:
            offset_lines.append((at, _long_line(descriptor, at, line_end, may_matter)))
        yield offset_lines
        line_end, pieces, is_first = begin + len(first), [first], False


def _long_line(descriptor: int, start: int, end: int, may_matter: Callable[[bytes], bool]) -> bytes:
    """Return the line at `[start, end)`, or a part if it does not matter or is too long.

    If it does not matter, return its beginning and end. If it is too long, return only its
    beginning, which is not a record."""
    beginning = read_at(descriptor, start, start + _BEGINNING_BYTES)
    last = read_at(descriptor, end - 8, end)
    for at in range(start, end, BLOCK_BYTES):
        part = read_at(descriptor, max(start, at - _OVERLAP_BYTES), min(end, at + BLOCK_BYTES))
        if may_matter(part + last if at == start else beginning + part + last):
            return (
                read_at(descriptor, start, end) if end - start <= LARGEST_LINE_BYTES else beginning
            )
    return beginning + last


def lines_forward(descriptor: int, start: int, end: int, stop: int | None = None) -> Iterator[Line]:
    """Yield the lines of `[start, end)` one by one, each with its line feed.

    With `stop`, only lines that begin before it are yielded. Memory grows only with the longest
    line. The last line counts even without a line feed, if it is a whole record. A buffered file
    cuts lines from one buffer, which takes a third of the time of splitting blocks."""
    stop = end if stop is None else stop
    with open(descriptor, "rb", buffering=BLOCK_BYTES, closefd=False) as file:
        file.seek(start)
        for line in file:
            following = start + len(line)
            if start >= stop or following > end or (line[-1] != LINE_FEED and not is_whole(line)):
                return
            yield start, line
            start = following


def head_lines(descriptor: int, limit: int) -> tuple[bytes, Iterator[Line]]:
    """Return the first line as `first_line` does, and an iterator of the complete lines, in a
    file's first `limit` bytes.

    The first line is b"" if it is longer. Most readers need only a few lines, so a short beginning
    is read first: for a head of 64 KB, this takes a tenth of the instructions."""
    least = min(limit, FIRST_LINE_BYTES[0])
    content = read_at(descriptor, 0, least)
    head, is_whole = _head_of(content, least)
    if not is_whole:
        content = read_at(descriptor, 0, limit)
        head, is_whole = _head_of(content, limit)
    return head if is_whole else b"", _complete_lines(descriptor, content, limit)


def _complete_lines(descriptor: int, content: bytes, limit: int) -> Iterator[Line]:
    """Yield the complete lines of `content`, then of the rest of a file's first `limit` bytes."""
    start = 0
    while True:
        while (end := content.find(b"\n", start)) >= 0:
            yield start, content[start:end]
            start = end + 1
        further = read_at(descriptor, len(content), limit)
        if not further:
            return
        content += further


def holds_bytes(descriptor: int, wanted: bytes, limit: int) -> bool:
    """Return whether `wanted` is in the first `limit` bytes of a file, up to a whole megabyte."""
    for start in range(0, -(-limit // BLOCK_BYTES) * BLOCK_BYTES, SEARCHED_BYTES):
        block = read_at(descriptor, start, start + SEARCHED_BYTES + len(wanted) - 1)
        if wanted in block:
            return True
        if len(block) < SEARCHED_BYTES:
            break
    return False


def first_line(descriptor: int) -> bytes:
    """Return the first line of a file, without its line feed, at most FIRST_LINE_BYTES.

    If it has the key of one of the HEADS, return as many lines as that says."""
    line = b""
    for limit in FIRST_LINE_BYTES:
        content = read_at(descriptor, 0, limit)
        line, is_whole = _head_of(content, limit)
        if is_whole or len(content) < limit:
            break
    return line


def _head_of(content: bytes, limit: int) -> tuple[bytes, bool]:
    """Return the first line of `content`, or the lines of its head, and whether they are whole.

    `content` is a file's first `limit` bytes."""
    beginning = _beginning(content)
    for key, last, most in HEADS:
        if key in beginning:
            lines = content.split(b"\n", most)[:most]
            if last:
                at = next((at for at, line in enumerate(lines, 1) if last in line), most)
                lines = lines[:at]
            head = b"\n".join(lines)
            return head, len(head) < len(content) or len(content) < limit
    line, end, _ = content.partition(b"\n")
    return line, bool(end)


def settled_from(descriptor: int, head: bytes = b"") -> int:
    """Return where the part of a transcript begins that is never rewritten in place.

    That is after a first line that is a TITLE_LINE. `head` is the beginning of the file, if at
    least its first 512 bytes have been read. Raises OSError."""
    head = head or read_at(descriptor, 0, _HEAD_KEY_BYTES)
    return head.find(b"\n") + 1 if TITLE_LINE in _beginning(head) else 0


def _beginning(content: bytes) -> bytes:
    """Return the first bytes of a first line, without spaces."""
    return content[:_HEAD_KEY_BYTES].partition(b"\n")[0].replace(b" ", b"")


def last_line_end(descriptor: int, start: int, end: int, limit: int) -> int | None:
    """Return the offset after the last line feed in `[start, end)`; `start` if there is none.

    Return None if the last `limit` bytes have none: a longer line is being written."""
    lowest = max(start, end - limit)
    window = 4096
    while end > lowest:
        begin = max(lowest, end - window)
        window *= WINDOW_GROWTH
        line_feed = read_at(descriptor, begin, end).rfind(b"\n")
        if line_feed >= 0:
            return begin + line_feed + 1
        end = begin
    return start if lowest == start else None


def is_whole(line: bytes) -> bool:
    """Check if a line without a line feed consists of whole records.

    A line that is being written never does. Many transcripts end in such a line: copies, and files
    that another program wrote."""
    if not line.endswith(b"}"):
        return False
    records, unreadable = decode_line(line)
    return not unreadable and all(isinstance(record, dict) for record in records)


def _with_offsets(content: bytes, start: int, offset: int) -> list[Line]:
    """Return the lines of `content` from `start` on, each with its offset in the file.

    `content` is at `offset` there. `split` takes six instructions a byte, which is ten times as
    long for the lines of transcripts."""
    lines = []
    end = content.find(b"\n", start)
    while end >= 0:
        lines.append((offset + start, content[start:end]))
        start = end + 1
        end = content.find(b"\n", start)
    lines.append((offset + start, content[start:]))
    return lines


# A file that changes twice within one tick of the clock keeps its mtime. As in git's index, an
# mtime is trusted only if it was older than this when it was noted.
RACY_NANOSECONDS = 2_000_000_000


def settled_stamp(path: str) -> list[int]:
    """Return a path's stamp, or [] if it is too new to be reliable.

    Another change may leave such a stamp as it is."""
    stamp = path_stamp(path)
    return stamp if time_ns() - stamp[2] > RACY_NANOSECONDS else []


def id_checksum(entry_id: str) -> int:
    """Return a checksum of an entry id.

    It is short to store and identifies recent entries in their own file."""
    return checksum(entry_id.encode("utf-8", "replace"))
