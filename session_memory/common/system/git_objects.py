"""Names of git's objects: in commits, by one `git cat-file` for a prompt, and in the index.

Asking git takes 2 ms, .05 of a bare interpreter's start, however many packs there are; `subprocess`
would take a whole start. The index is read without git: versions 2 to 4, split or whole, with SHA-1
or SHA-256 (gitformat-index(5)).
"""

from __future__ import annotations

from .files import names_in, os, read_whole, status_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import stat_result

    from .git import Worktree
    from .git_process import RepositoryPlace

    # its path, '' if the shared index has the path, and the bytes before the path
    IndexEntry = tuple[bytes, bytes]

_MOST_BYTES = 64 * 1024  # of an answer, which repeats a path that it does not know
_KILL = 9


class GitObjects:
    """The objects of a repository, by its `common_dir`."""

    def __init__(self, common_dir: str) -> None:
        self._common_dir = common_dir
        self._process = 0
        self._questions = self._answers = -1
        self._place: RepositoryPlace | None = None

    def __del__(self) -> None:
        if self._place:
            self._place.remove()
        if self._process:
            os.close(self._questions)
            os.close(self._answers)
            os.kill(self._process, _KILL)
            os.waitpid(self._process, 0)

    def at(self, commit: str, path: str) -> str | None:
        """Return the name of a commit's object at a path relative to the worktree's root.

        A commit may be given as a parent of another one, such as `<name>^`. Return '' if the commit
        has none there, None if git is missing or cannot tell."""
        if "\n" in path:
            return None
        from .git_process import GitUnavailableError, is_partial

        try:
            if not self._process:
                self._start()
            length = len(commit.partition("^")[0])
            is_known = self._named(f"{commit}^{{tree}}", length)
            # git has read its objects by now, and a hook ends without closing them
            if self._place:
                self._place.remove()
                self._place = None
            name = self._named(f"{commit}:{path}", length) if is_known else ""
            # a missing object has no name either
            is_told = name or (is_known and not is_partial(self._common_dir))
            return name if is_told else None
        except (OSError, AttributeError, GitUnavailableError):  # Windows has no posix_spawn
            return None

    def _named(self, object: str, length: int) -> str:
        """Return the name of the object that `object` refers to; '' if missing. Raises OSError."""
        os.write(self._questions, object.encode("utf-8", "surrogateescape") + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            block = os.read(self._answers, _MOST_BYTES)
            if not block:
                raise OSError("git has ended")
            answer += block
        name = answer[:-1].decode("utf-8", "replace")
        return name if len(name) == length and not name.strip("0123456789abcdef") else ""

    def _start(self) -> None:
        """Start git without prompts, fetches or error output.

        Raises OSError, GitUnavailableError."""
        from .git_process import RepositoryPlace, start

        self._place = RepositoryPlace(self._common_dir)
        stdin, self._questions = os.pipe()
        self._answers, stdout = os.pipe()
        try:
            self._process = start(
                self._place, ("cat-file", "--batch-check=%(objectname)"), stdin, stdout
            )
        except BaseException:
            os.close(self._questions)
            os.close(self._answers)
            raise
        finally:
            os.close(stdin)
            os.close(stdout)


def is_reachable(common_dir: str, commit: str) -> bool | None:
    """Check if any ref of a repository leads to a commit; None if git is missing or cannot tell.

    This is fast enough for an occasional prompt."""
    from .git_process import GitUnavailableError, QuickAnswer, RepositoryPlace

    question = ("rev-list", "--max-count=1", commit, "--not", "--all")
    try:
        with RepositoryPlace(common_dir) as place, QuickAnswer(place, question) as git:
            answer = os.read(git.answers, _MOST_BYTES)
            return not answer if git.wait() == 0 else None
    except (OSError, AttributeError, GitUnavailableError):  # Windows has no posix_spawn
        return None


INDEX_BYTES = 64 * 1024 * 1024
_HEADER_BYTES = 12
_STATUS_BYTES = 40  # of an entry, before the name of the object
# of an entry's flags
_NAME_BITS, _STAGE_BITS, _EXTENDED_BIT, _VALID_BIT = 0x0FFF, 0x3000, 0x4000, 0x8000
_SHARED = "sharedindex."
# bytes; in a damaged index of version 4, each path could be longer than the one before
_LONGEST_PATH = 4096
_MOST_ENTRIES = INDEX_BYTES // _STATUS_BYTES


class GitIndex:
    """The index of a worktree as it was at the first question."""

    def __init__(self, worktree: Worktree) -> None:
        self._worktree = worktree
        self._id_bytes = 0
        self._whole_paths = b""  # the index, if an entry can be found in it without the others
        self._entries: dict[bytes, bytes] = {}

    def as_they_are(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the object name of each file at `paths` (absolute) that is unchanged on the disk.

        Its size and time in the index match the disk, so its content was added or committed."""
        object_ids = {}
        for path in paths:
            entry, status = self._entry(path), status_at(path, follow_symlinks=False)
            if entry and status is not None and _is_same(entry, status):
                object_ids[path] = entry[_STATUS_BYTES : _STATUS_BYTES + self._id_bytes].hex()
        return object_ids

    def at(self, path: str) -> str:
        """Return the name of the object at an absolute path, whatever is on the disk, or ''."""
        return self._entry(path)[_STATUS_BYTES : _STATUS_BYTES + self._id_bytes].hex()

    def written(self, path: str) -> float:
        """Return the time of a file when git last found it as in the index; 0 if unknown.

        If git wrote the file, it is the time of that, whatever has been written since."""
        entry = self._entry(path)
        return int.from_bytes(entry[8:12], "big") + int.from_bytes(entry[12:16], "big") / 1e9

    def _entry(self, path: str) -> bytes:
        """Return the entry of a file; b'' for none."""
        if not self._id_bytes:
            self._read()
        name = path.removeprefix(self._worktree.root + "/").encode("utf-8", "surrogateescape")
        return _find(self._whole_paths, name, self._id_bytes) or self._entries.get(name, b"")

    def _read(self) -> None:
        git_dir, self._id_bytes = self._worktree.git_dir, _id_bytes(self._worktree)
        index = _read(git_dir + "/index")
        if int.from_bytes(index[4:8], "big") < 4 and not any(
            [name.startswith(_SHARED) for name in names_in(git_dir)]
        ):
            self._whole_paths = index
        else:
            every = _entries(git_dir, index, self._id_bytes)
            self._entries = {
                name: entry
                for name, entry in every
                if not _flags(entry, 0, self._id_bytes) & _STAGE_BITS
            }


def blob_name(content: bytes, length: int) -> str:
    """Return the object name of a file's content, in a repository with names of this length."""
    from hashlib import sha1, sha256

    header = b"blob %d\0" % len(content)
    return (sha256 if length == len(sha256().hexdigest()) else sha1)(header + content).hexdigest()


def tracked(worktree: Worktree) -> list[str]:
    """Return the absolute paths of the files in the index."""
    entries = _entries(worktree.git_dir, _read(worktree.git_dir + "/index"), _id_bytes(worktree))
    return [f"{worktree.root}/{name.decode('utf-8', 'surrogateescape')}" for name, _ in entries]


def _id_bytes(worktree: Worktree) -> int:
    """Return the length of the repository's object names."""
    settings = _read(worktree.common_dir + "/config").lower().split(b"\n")
    return (
        32 if any([b"".join(line.split()) == b"objectformat=sha256" for line in settings]) else 20
    )


def _find(index: bytes, name: bytes, id_bytes: int) -> bytes:
    """Return the entry of a path in an index with whole paths, or b'', reading no others."""
    at = index.find(name + b"\0")
    while at >= 0:
        for extended in (0, 2):
            start = at - _STATUS_BYTES - id_bytes - 2 - extended
            flags = _flags(index, start, id_bytes) if start >= _HEADER_BYTES else 0
            if flags & ~_VALID_BIT == min(len(name), _NAME_BITS) | (
                _EXTENDED_BIT if extended else 0
            ):
                return index[start:at]
        at = index.find(name + b"\0", at + 1)
    return b""


def _entries(git_dir: str, index: bytes, id_bytes: int) -> Iterator[IndexEntry]:
    """Yield the entries of an index, including the shared index if it is split."""
    own_entries, end = _parsed(index, id_bytes)
    shared, deleted, replaced = _link(git_dir, index, end, id_bytes)
    without_path = iter([entry for name, entry in own_entries if not name])
    for number, (name, entry) in enumerate(_parsed(shared, id_bytes)[0]):
        if replaced[number : number + 1] == "1":
            yield name, next(without_path, b"")
        elif deleted[number : number + 1] != "1":
            yield name, entry
    yield from [entry for entry in own_entries if entry[0]]


def _parsed(index: bytes, id_bytes: int) -> tuple[list[IndexEntry], int]:
    """Return the entries of one file, and the offset behind them."""
    entries: list[IndexEntry] = []
    is_compressed = int.from_bytes(index[4:8], "big") == 4
    at, name = _HEADER_BYTES, b""
    for _ in range(int.from_bytes(index[8:12], "big")):
        flags = _flags(index, at, id_bytes)
        begin = at + _STATUS_BYTES + id_bytes + (4 if flags & _EXTENDED_BIT else 2)
        start = begin
        if is_compressed:
            removed, start = _number(index, begin)
            name = name[: len(name) - removed]
        end = index.find(b"\0", start)
        if end < 0 or len(name) > _LONGEST_PATH:
            break
        name = name + index[start:end] if is_compressed else index[start:end]
        entries.append((name, index[at:begin]))
        at = end + 1 if is_compressed else at + (end - at + 8) // 8 * 8
    return entries, at


def _link(git_dir: str, index: bytes, at: int, id_bytes: int) -> tuple[bytes, str, str]:
    """Return the shared index of a split one, with marks for its deleted and replaced entries.

    The marks have a `1` at the number of each such entry. All are empty if the index is whole."""
    while at + 8 <= len(index) - id_bytes:
        size = int.from_bytes(index[at + 4 : at + 8], "big")
        if index[at : at + 4] == b"link":
            content = index[at + 8 : at + 8 + size]
            shared = _read(f"{git_dir}/{_SHARED}{content[:id_bytes].hex()}")
            deleted, end = _bits(content, id_bytes)
            return shared, deleted, _bits(content, end)[0]
        at += 8 + size
    return b"", "", ""


def _bits(content: bytes, at: int) -> tuple[str, int]:
    """Return the digits of the EWAH-compressed bitmap at an offset, and the offset after it."""
    end = at + 8 + 8 * int.from_bytes(content[at + 4 : at + 8], "big")
    words = [content[start : start + 8] for start in range(at + 8, end, 8)]
    digits: list[str] = []
    number = 0
    while number < len(words):
        # a bit, how many words of it follow, and how many other words
        mark = int.from_bytes(words[number], "big")
        literals = mark >> 33
        digits.append(str(mark & 1) * min(64 * ((mark >> 1) & 0xFFFFFFFF), _MOST_ENTRIES))
        digits += [
            f"{int.from_bytes(word, 'big'):064b}"[::-1]
            for word in words[number + 1 : number + 1 + literals]
        ]
        number += 1 + literals
    return "".join(digits), end + 4


def _flags(index: bytes, at: int, id_bytes: int) -> int:
    at += _STATUS_BYTES + id_bytes
    return int.from_bytes(index[at : at + 2], "big")


def _number(index: bytes, at: int) -> tuple[int, int]:
    """Return the variable-length number at an offset, and the offset after it."""
    byte = int.from_bytes(index[at : at + 1], "big")  # 0 after the end of the bytes read
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = int.from_bytes(index[at : at + 1], "big")
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _is_same(entry: bytes, status: stat_result) -> bool:
    """Check if an entry of the index was made from a file with this status."""
    seconds, nanoseconds = int.from_bytes(entry[8:12], "big"), int.from_bytes(entry[12:16], "big")
    modified = seconds * 1_000_000_000 + nanoseconds
    is_same_time = (
        abs(status.st_mtime_ns - modified) < 1_000
        if nanoseconds
        else status.st_mtime_ns // 10**9 == seconds
    )
    return is_same_time and int.from_bytes(entry[36:40], "big") == status.st_size & 0xFFFFFFFF


def _read(path: str) -> bytes:
    """Return an index; b'' for none, or one that is too large."""
    try:
        return read_whole(path, INDEX_BYTES)
    except OSError:
        return b""
