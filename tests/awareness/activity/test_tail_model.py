"""A changing transcript that is read in between: no line is missed and none is cut.

The changes are everything that happens to files.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from share import some

from session_memory.sessions.transcripts.lines import (
    last_line_end,
    windows_backward,
)
from session_memory.sessions.transcripts.read_cursor import ReadCursor
from session_memory.sessions.transcripts.reader import _marked_lines

LINE = st.integers(0, 3000)


class Tailed(RuleBasedStateMachine):
    """The reference keeps the file's bytes; the reader keeps a cursor, as the hook does, and a set
    of lines it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "t.jsonl"
        self.content = b""
        self.number = 0
        self.cursor = None
        self.seen: set[bytes] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize()
    def start(self) -> None:
        self.path.write_bytes(b"")

    def new_line(self, length: int) -> bytes:
        self.number += 1
        return b'{"n":%d,"x":"%s"}' % (self.number, b"\xe2\x80\xa8y" * (length // 4))

    def put(self, content: bytes) -> None:
        self.content = content

    @rule(lengths=st.lists(LINE, min_size=1, max_size=4))
    def append(self, lengths: list[int]) -> None:
        added = b"".join(self.new_line(length) + b"\n" for length in lengths)
        with self.path.open("ab") as file:
            file.write(added)
        self.content += added

    @rule(length=LINE, cut=st.integers(1, 3000))
    def append_torn(self, length: int, cut: int) -> None:
        torn = self.new_line(length)[:cut]
        with self.path.open("ab") as file:
            file.write(torn)
        self.content += torn

    @rule(at=st.integers(0, 20_000), lengths=st.lists(LINE, min_size=1, max_size=3))
    def truncate_and_regrow(self, at: int, lengths: list[int]) -> None:
        kept = self.content[: self.content.rfind(b"\n", 0, at) + 1]
        self.content = kept + b"".join(self.new_line(length) + b"\n" for length in lengths)
        with self.path.open("r+b") as file:
            file.truncate(len(kept))
            file.seek(len(kept))
            file.write(self.content[len(kept) :])

    @rule(lengths=st.lists(LINE, max_size=4))
    def rewrite_in_place(self, lengths: list[int]) -> None:
        self.content = b"".join(self.new_line(length) + b"\n" for length in lengths)
        self.path.write_bytes(self.content)

    @rule(lengths=st.lists(LINE, max_size=4), keep=st.booleans())
    def replace(self, lengths: list[int], keep: bool) -> None:
        self.content = (self.content if keep else b"") + b"".join(
            self.new_line(length) + b"\n" for length in lengths
        )
        other = self.path.with_suffix(".new")
        other.write_bytes(self.content)
        os.replace(other, self.path)

    @rule(lengths=st.lists(LINE, max_size=3))
    def recreate(self, lengths: list[int]) -> None:
        self.path.unlink()
        self.content = b"".join(self.new_line(length) + b"\n" for length in lengths)
        self.path.write_bytes(self.content)

    @rule()
    def drop_last_line(self) -> None:
        self.content = self.content[: self.content.rstrip(b"\n").rfind(b"\n") + 1]
        os.truncate(self.path, len(self.content))

    @rule()
    def look(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            status = os.fstat(descriptor)
            start = (self.cursor.resume_offset(descriptor, status) if self.cursor else 0) or 0
            end = last_line_end(descriptor, start, status.st_size, status.st_size + 1)
            assert end is not None
            for lines in windows_backward(descriptor, start, end):
                for offset, line in lines:
                    assert self.content[offset : offset + len(line) + 1] == line + b"\n"
                    assert offset == 0 or self.content[offset - 1 : offset] == b"\n", (
                        "a line was read from its middle"
                    )
                    self.seen.add(line)
            self.cursor = ReadCursor.behind(descriptor, status, end, 0)
        finally:
            os.close(descriptor)
        missed = set(self.content.split(b"\n")[:-1]) - self.seen
        assert not missed, "complete lines were missed"

    @invariant()
    def the_file_is_what_the_reference_says(self) -> None:
        if self.path.exists():
            assert self.path.read_bytes() == self.content


TestTailed = Tailed.TestCase
TestTailed.settings = settings(max_examples=some(200), stateful_step_count=30, deadline=None)


class WithoutTheSeam(Tailed):
    """The same with an offset alone, as in the seed.

    It must fail, or the model could not tell the difference."""

    @rule()
    def look(self) -> None:
        if self.cursor:
            self.cursor = ReadCursor(self.cursor.offset)
        super().look()


def test_the_model_tells_an_offset_alone_from_an_identity():
    import pytest

    with pytest.raises(AssertionError):
        run_offset_only()


def run_offset_only() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        WithoutTheSeam,
        settings=settings(  # one failure, as it is found: looking for the smallest may take minutes
            max_examples=300,
            stateful_step_count=30,
            deadline=None,
            database=None,
            derandomize=True,
            print_blob=False,
            phases=[Phase.generate],
            report_multiple_bugs=False,
        ),
    )


def test_windows_give_every_line_once_whatever_their_sizes(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = [b"x" * (length * length % 90_001) for length in range(200)]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b"torn")
    descriptor = os.open(path, os.O_RDONLY)
    size = path.stat().st_size
    end = last_line_end(descriptor, 0, size, size)
    assert end == size - 4
    found = [
        line
        for window in reversed(list(windows_backward(descriptor, 0, end)))
        for _, line in window
    ]
    os.close(descriptor)
    assert found == lines


def test_the_lines_with_a_mark_are_found_from_last_to_first(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = [b"x" * (number * number % 90_001) for number in range(200)]
    for number in range(0, 200, 7):
        at = number * 31 % (len(lines[number]) + 1)
        lines[number] = lines[number][:at] + (b"[one]", b"[other]")[number % 2] + lines[number][at:]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b"torn [one]")
    end = path.stat().st_size - len(b"torn [one]")
    with path.open("rb") as file:
        windows = list(windows_backward(file.fileno(), 0, end))
        expected = [line for window in windows for line in reversed(window) if b"[" in line[1]]
        found = list(_marked_lines(file.fileno(), end, (b"[one]", b"[other]")))
    assert found == expected
    assert len(found) == 29


def test_a_limit_leaves_out_lines_of_which_not_every_byte_is_read(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"first line\nsecond line\nthird line\n")
    descriptor = os.open(path, os.O_RDONLY)
    (window,) = windows_backward(descriptor, 0, 34, limit=20)
    os.close(descriptor)
    assert window == [(23, b"third line")]


def test_a_line_longer_than_the_limit_that_is_not_complete_is_told_apart(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"done\n" + b"x" * 100)
    descriptor = os.open(path, os.O_RDONLY)
    ends = [last_line_end(descriptor, 0, 105, limit) for limit in (50, 105)]
    os.close(descriptor)
    assert ends == [None, 5]
