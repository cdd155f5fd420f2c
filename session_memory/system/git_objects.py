"""Git's objects, read without starting git: the object that a commit has at a path, from loose objects and from packs.

The formats are those of gitformat-pack(5) and of `git cat-file`: index files of version 2, deltas of both kinds.
"""

from __future__ import annotations

from .files import names_in, open_regular, os, read_at, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_BYTES = 8 * 1024 * 1024  # of a commit or a directory
DEEPEST_DELTA = 60  # git makes chains of at most 50
_BLOCK_BYTES = 16 * 1024
_TREE_MODE = b"40000"
_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_OFFSET_DELTA, _REFERENCE_DELTA = 6, 7
_FANOUT_AT = 8  # in an index: behind its magic number and version
_NAMES_AT = _FANOUT_AT + 256 * 4


class GitObjects:
    """The objects of a repository, by its `common_dir`."""

    def __init__(self, common_dir: str) -> None:
        self._directories = [f"{common_dir}/objects", *_alternates(f"{common_dir}/objects")]
        self._entries: dict[str, dict[bytes, tuple[bytes, str]]] = {}

    def at(self, commit: str, path: str) -> str | None:
        """Return the name of the object that a commit has at a path (relative to the root of the worktree); '' if it
        has none there, None if the objects cannot be read."""
        from zlib import error

        try:
            return self._found(commit, path.encode("utf-8", "surrogateescape"))
        except (OSError, ValueError, IndexError, StopIteration, RecursionError, error):
            return None  # missing, damaged, or in an unsupported format

    def _found(self, commit: str, path: bytes) -> str | None:
        kind, content = self._read(commit, 0)
        if kind != b"commit" or not content.startswith(b"tree "):
            return None
        name = content[5 : 5 + len(commit)].decode()
        *directories, last = path.split(b"/")
        for directory in directories:
            mode, name = self._entries_of(name).get(directory, (b"", ""))
            if mode != _TREE_MODE:
                return ""
        return self._entries_of(name).get(last, (b"", ""))[1]

    def _entries_of(self, tree: str) -> dict[bytes, tuple[bytes, str]]:
        """Return the entries of a directory: mode and object name, by file name."""
        if tree not in self._entries:
            kind, content = self._read(tree, 0)
            if kind != b"tree":
                raise ValueError(tree)
            self._entries[tree] = found = {}
            at, length = 0, len(tree) // 2
            while at < len(content):
                end = content.index(b"\0", at) + 1
                mode, _, name = content[at : end - 1].partition(b" ")
                found[name] = mode, content[end : end + length].hex()
                at = end + length
        return self._entries[tree]

    def _read(self, name: str, depth: int) -> tuple[bytes, bytes]:
        """Return the kind and the content of an object. Raises OSError if it is missing."""
        for directory in self._directories:
            found = _read_loose(f"{directory}/{name[:2]}/{name[2:]}") or self._read_packed(directory, name, depth)
            if found is not None:
                return found
        raise OSError(name)

    def _read_packed(self, directory: str, name: str, depth: int) -> tuple[bytes, bytes] | None:
        for file in names_in(f"{directory}/pack"):
            if file.endswith(".idx"):
                offset = _offset_in(f"{directory}/pack/{file}", bytes.fromhex(name))
                if offset is not None:
                    pack = open_regular(f"{directory}/pack/{file[:-4]}.pack")
                    try:
                        return self._read_at(pack, offset, len(name) // 2, depth)
                    finally:
                        os.close(pack)
        return None

    def _read_at(self, pack: int, offset: int, name_bytes: int, depth: int) -> tuple[bytes, bytes]:
        """Return the object at an offset of a pack."""
        head = read_at(pack, offset, offset + 64)
        at, kind, size = 1, head[0] >> 4 & 7, head[0] & 15
        while head[at - 1] & 0x80:
            size |= (head[at] & 0x7F) << 4 + 7 * (at - 1)
            at += 1
        if size > LARGEST_BYTES or depth > DEEPEST_DELTA:
            raise ValueError(f"{size} bytes at {offset}")
        if kind == _REFERENCE_DELTA:
            base_kind, base = self._read(head[at : at + name_bytes].hex(), depth + 1)
            return base_kind, _patched(base, _inflated(pack, offset + at + name_bytes, size))
        if kind == _OFFSET_DELTA:
            back = head[at] & 0x7F
            while head[at] & 0x80:
                at += 1
                back = (back + 1) << 7 | head[at] & 0x7F
            base_kind, base = self._read_at(pack, offset - back, name_bytes, depth + 1)
            return base_kind, _patched(base, _inflated(pack, offset + at + 1, size))
        return _KINDS.get(kind, b""), _inflated(pack, offset + at, size)


def _alternates(objects: str) -> list[str]:
    """Return the directories of objects that are shared with another repository."""
    try:
        lines = read_whole(objects + "/info/alternates").decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    return [line if line.startswith("/") else f"{objects}/{line}" for line in lines if line and line[0] != "#"]


def _read_loose(path: str) -> tuple[bytes, bytes] | None:
    from zlib import decompressobj

    try:
        packed = read_whole(path, LARGEST_BYTES)
    except FileNotFoundError:
        return None
    head, _, content = decompressobj().decompress(packed, LARGEST_BYTES).partition(b"\0")
    kind, _, size = head.partition(b" ")
    if len(content) != int(size):
        raise ValueError(path)
    return kind, content


def _offset_in(index_path: str, name: bytes) -> int | None:
    """Return the offset of an object in the pack of an index; None if another pack has it."""
    descriptor = open_regular(index_path)
    try:
        if read_at(descriptor, 0, _FANOUT_AT) != b"\xfftOc\0\0\0\2":
            return None
        low, high, total = _fanout(descriptor, name[0] - 1), _fanout(descriptor, name[0]), _fanout(descriptor, 255)
        while low < high:
            middle = (low + high) // 2
            start = _NAMES_AT + middle * len(name)
            there = read_at(descriptor, start, start + len(name))
            if there == name:
                offsets_at = _NAMES_AT + total * (len(name) + 4)  # behind the names and their checksums
                offset = _number(descriptor, offsets_at + 4 * middle, 4)
                if offset >> 31:  # its place among the offsets that are too large for four bytes
                    offset = _number(descriptor, offsets_at + 4 * total + 8 * (offset & 0x7FFFFFFF), 8)
                return offset
            low, high = (middle + 1, high) if there < name else (low, middle)
        return None
    finally:
        os.close(descriptor)


def _fanout(descriptor: int, first_byte: int) -> int:
    """Return how many names in an index begin with this byte or a lower one."""
    return _number(descriptor, _FANOUT_AT + 4 * first_byte, 4) if first_byte >= 0 else 0


def _number(descriptor: int, at: int, length: int) -> int:
    return int.from_bytes(read_at(descriptor, at, at + length), "big")


def _inflated(pack: int, offset: int, size: int) -> bytes:
    """Return the `size` bytes that are packed at an offset."""
    from zlib import decompressobj

    stream, content = decompressobj(), b""
    while not stream.eof:
        block = read_at(pack, offset, offset + _BLOCK_BYTES)
        content += stream.decompress(block, size + 1 - len(content))
        if not block or len(content) > size:
            break
        offset += len(block)
    if len(content) != size:
        raise ValueError(f"{len(content)} bytes in place of {size}")
    return content


def _patched(base: bytes, delta: bytes) -> bytes:
    """Apply a delta to `base`: two sizes, then copies from `base` and insertions."""
    numbers = iter(delta)
    base_size, size = _size(numbers), _size(numbers)
    if base_size != len(base) or size > LARGEST_BYTES:
        raise ValueError("a delta of something else")
    found: list[bytes] = []
    for code in numbers:
        if code & 0x80:
            start = sum([next(numbers) << 8 * at for at in range(4) if code & 1 << at])
            length = sum([next(numbers) << 8 * at for at in range(3) if code & 0x10 << at]) or 0x10000
            found.append(base[start : start + length])
        else:
            found.append(bytes([next(numbers) for _ in range(code)]))
    content = b"".join(found)
    if len(content) != size:
        raise ValueError("a delta of something else")
    return content


def _size(numbers: Iterator[int]) -> int:
    size = shift = 0
    for number in numbers:
        size |= (number & 0x7F) << shift
        shift += 7
        if not number & 0x80:
            break
    return size
