"""Every runtime's real transcripts, where they lie beside the repository: they read as the rules
say, in each direction."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from session_memory.common.system.json import decode_line
from session_memory.session_monitor import parse_jsonl_entries
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.records import (
    CALLS,
    INJECTED,
    LINKS,
    MESSAGES,
    RESULTS,
    USAGE,
)
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.log import last_entries

SHARED = Path(__file__).resolve().parents[4] / "shared"
FOLDERS = {"agent-sdk": "claude", "pi": "pi", "copilot": "copilot"}
TORN_LINES = {"v1.jsonl": 1, "v3torn.jsonl": 1}


class RealFile(NamedTuple):
    """A transcript, and the runtime that wrote it."""

    path: Path
    format: str

    @property
    def runtime(self) -> Runtime:
        return runtime(self.format)


KINDS = (MESSAGES | CALLS, MESSAGES, RESULTS, INJECTED, LINKS, USAGE)


@pytest.fixture(params=FOLDERS)
def files(request: pytest.FixtureRequest) -> list[RealFile]:
    """The transcripts of a runtime."""
    folders = [SHARED / kind / FOLDERS[request.param] for kind in ("transcripts", "captures")]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.jsonl"))]
    if not paths:
        pytest.skip("no real transcripts beside the repository")
    return [RealFile(path, request.param) for path in paths]


def test_they_read_without_exception_the_same_in_each_direction_and_no_record_is_lost(
    files: list[RealFile],
) -> None:
    for file in files:
        content = file.path.read_bytes()
        found = parse_jsonl_entries(content.splitlines(keepends=True), file.format)
        assert found.unreadable == TORN_LINES.get(file.path.name, 0), file
        assert all(
            (entry.text or entry.tools) and entry.cwd and entry.timestamp for entry in found
        ), file
        whole = parse_jsonl_entries(
            content[: content.rfind(b"\n") + 1].splitlines(keepends=True), file.format
        )
        last = {entry.id: at for at, entry in enumerate(whole)}
        once = [entry for at, entry in enumerate(whole) if not entry.id or last[entry.id] == at]
        assert last_entries(file.runtime, str(file.path), 10_000, None)[0] == once, file


def test_no_line_that_is_left_out_holds_what_is_wanted_and_results_taken_out_are_all_that_it_brings(
    files: list[RealFile],
) -> None:
    for file in files:
        records, content = file.runtime.records, file.path.read_bytes()
        # the runtime itself writes no spaces behind colons
        is_as_written = b'": "' not in content[:200]
        for line in filter(None, content.split(b"\n")):
            left_out = [one for one in KINDS if is_as_written and not records.prefilter(line, one)]
            taken = records.results_in(line, decode_line)
            values = decode_line(line)[0] if left_out or taken is not None else ()
            for wanted in left_out:
                found = [event for value in values for event in records.events(value, 0, wanted)]
                assert not [
                    one for one in found if not isinstance(one, Entry) or one.text or wanted.calls
                ], file
            if taken is not None:
                assert [records.events(value, 0, MESSAGES | RESULTS) for value in values] == [
                    taken
                ], file
