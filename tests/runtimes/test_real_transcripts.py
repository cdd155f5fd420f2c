"""Every runtime's real transcripts, where they lie beside the repository: they read as the rules say, in each direction."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from session_memory.runtimes import Runtime, runtime
from session_memory.runtimes.records import CALLS, INJECTED, LINKS, MESSAGES, RESULTS, USAGE
from session_memory.session_monitor import parse_jsonl_entries
from session_memory.system.json import decode_line
from session_memory.transcripts.entries import Entry
from session_memory.transcripts.log import last_entries

SHARED = Path(__file__).resolve().parents[3] / "shared"
FOLDERS = {"agent-sdk": "claude", "pi": "pi", "copilot": "copilot"}
TORN_LINES = {"v1.jsonl": 1, "v3torn.jsonl": 1}


class RealFile(NamedTuple):
    """A transcript, and the runtime that wrote it."""

    path: Path
    format: str

    @property
    def runtime(self) -> Runtime:
        return runtime(self.format)

    def lines(self) -> list[bytes]:
        return [line for line in self.path.read_bytes().split(b"\n") if line]


FILES = [
    RealFile(path, format)
    for format, folder in FOLDERS.items()
    for kind in ("transcripts", "captures")
    for path in sorted((SHARED / kind / folder).rglob("*.jsonl"))
]


@pytest.fixture(params=FILES, ids=lambda file: f"{file.format}-{file.path.name[:50]}")
def file(request: pytest.FixtureRequest) -> RealFile:
    return request.param


def test_it_reads_without_exception_and_no_record_is_lost(file):
    found = parse_jsonl_entries(file.path.read_bytes().splitlines(keepends=True), file.format)
    assert found.unreadable == TORN_LINES.get(file.path.name, 0)
    assert all(entry.text or entry.tools for entry in found)
    assert all(entry.cwd and entry.timestamp for entry in found)


def test_read_from_its_end_it_holds_the_same(file):
    content = file.path.read_bytes()
    whole = parse_jsonl_entries(content[: content.rfind(b"\n") + 1].splitlines(keepends=True), file.format)
    ids = [entry.id for entry in whole]
    once = [entry for at, entry in enumerate(whole) if not entry.id or entry.id not in ids[at + 1 :]]
    assert last_entries(file.runtime, str(file.path), 10_000, None)[0] == once


@pytest.mark.parametrize("wanted", [MESSAGES | CALLS, MESSAGES, RESULTS, INJECTED, LINKS, USAGE])
def test_no_line_that_is_left_out_holds_what_is_wanted(file, wanted):
    records = file.runtime.records
    for line in file.lines() if is_as_written(file) else ():
        if not records.prefilter(line, wanted):
            for value in decode_line(line)[0]:
                found = records.events(value, 0, wanted)
                assert not [one for one in found if not isinstance(one, Entry) or one.text or wanted & CALLS]


def test_results_that_are_taken_out_of_a_line_are_all_that_it_brings(file):
    records = file.runtime.records
    for line in file.lines():
        taken = records.results_in(line, decode_line)
        if taken is not None:
            (value,) = decode_line(line)[0]
            assert records.events(value, 0, MESSAGES | RESULTS) == taken


def is_as_written(file: RealFile) -> bool:
    """Some captures have spaces behind their colons, as the runtime itself writes none."""
    return b'": "' not in file.path.read_bytes()[:200]
