"""The scene of the conformance suite: a runtime with its folder of fixtures, and the common story.

A test file imports this module first, then the classes of the suite, and gives them the runtime:

    from session_memory.extras.conformance.cases import *
    from session_memory.extras.conformance.fixture import Fixture, fixture_of
    from session_memory.extras.conformance.runtimes import *
    from session_memory.extras.conformance.transcripts import *

    @pytest.fixture
    def fixture(tmp_path, monkeypatch):
        return fixture_of(MyRuntime(), Path(__file__).parent / "my-runtime", tmp_path, monkeypatch)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest

from ...common.system import files
from ...common.system.files import Closing
from ...common.system.json import decode_line
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.records import CALLS, INJECTED, LINKS, MESSAGES, RESULTS, TURNS, USAGE
from ...sessions.transcripts.entries import Entry, Session
from ...sessions.transcripts.lines import first_line
from ...sessions.transcripts.project_folders import project_folders
from ...sessions.transcripts.reader import TranscriptReader
from ._expected import read_expected

if TYPE_CHECKING:
    from ...sessions.runtimes.records import Wanted

# Shows the values of failed asserts, as in test files.
pytest.register_assert_rewrite(
    f"{__package__}.cases", f"{__package__}.runtimes", f"{__package__}.transcripts"
)

Found = TypeVar("Found")

FIRST_TURN = [
    ("user", "How do I deploy this?"),
    ("assistant", "I will look."),
    ("tool", "read"),
    ("tool", "command"),
    ("tool", "edit"),
    ("assistant", "Deployed."),
]
BEFORE_COMPACTION = [*FIRST_TURN, ("user", "Now tag it."), ("assistant", "Tagging")]
CONVERSATION = [*BEFORE_COMPACTION, ("user", "Thanks!"), ("assistant", "You are welcome.")]
FORK = [*FIRST_TURN, ("user", "What about staging?"), ("assistant", "Staging is the same.")]
TITLE = "Deploy the site"
# Texts in the files that nobody said to the other: updates from our hook, a sub-agent's actions,
# thinking, failures.
UNSAID = (
    "Session Activity",
    "landlord",
    "the logs",
    "the docs",
    "529",
    "Summary",
    "they deployed",
    "notification",
)
BEGAN = "2026-11-20T10:00:00.000Z"
EVERYTHING = MESSAGES | CALLS | RESULTS | INJECTED | LINKS | TURNS | USAGE


class Fixture(NamedTuple):
    """A runtime with its folder of fixtures, and its differences."""

    runtime: Runtime
    folder: Path
    own: dict[str, Any]

    def path(self, name: str = "conversation.jsonl") -> Path:
        return self.folder / name

    def lines(self, name: str = "conversation.jsonl") -> list[bytes]:
        return self.path(name).read_bytes().splitlines()

    @contextmanager
    def opened(self, path: Path) -> Iterator[tuple[TranscriptReader, int]]:
        """Open the transcript at `path`: a reader of it, and a descriptor."""
        with Closing(os.open(path, os.O_RDONLY)) as descriptor:
            yield TranscriptReader(self.runtime, first_line(descriptor)), descriptor

    def conversation(self, path: Path, *, with_tools: bool = True) -> list[Entry | None]:
        with self.opened(path) as (reader, descriptor):
            return list(reader.conversation(descriptor, with_tools=with_tools))

    def records(self, name: str = "conversation.jsonl") -> list[dict[str, Any]]:
        """Return the records of a transcript, one a line."""
        return [decode_line(line)[0][0] for line in self.lines(name)]

    def entries_in(self, lines: Sequence[bytes]) -> tuple[list[Entry], TranscriptReader]:
        """Return the entries in lines, and the reader that has read them."""
        reader = TranscriptReader(self.runtime, lines[0])
        return [
            event for event in reader.forward(enumerate(lines)) if isinstance(event, Entry)
        ], reader

    def found_in(
        self, record: dict[str, Any], kind: type[Found], wanted: Wanted = EVERYTHING
    ) -> list[Found]:
        """Return the events of a kind in a record."""
        return [
            event
            for event in self.runtime.records.events(record, 0, wanted)
            if isinstance(event, kind)
        ]

    def laid_out(self, config_dir: Path) -> Path:
        """Copy the conversation to the runtime's path for it in its directory `config_dir`."""
        path = Path(
            self.runtime.project_dir(str(config_dir), self.own["cwd"]), self.own["file_name"]
        )
        path.parent.mkdir(parents=True)
        if self.own.get("names_file"):
            shutil.copyfile(self.path("names.index"), config_dir / self.own["names_file"])
        return Path(shutil.copyfile(self.path(), path))

    def of_project(self, config_dir: Path, directory: str, scope: str) -> list[Session]:
        """Return all sessions, or those of the project of a directory outside any repository."""
        folders = project_folders([(self.runtime, str(config_dir))], directory, "")[
            self.runtime.name
        ]
        own_path = (
            f"{self.runtime.project_dir(str(config_dir), directory)}/own"
            if self.runtime.HAS_PROJECT_FOLDERS
            else "/own"
        )
        return self.runtime.other_sessions("", str(config_dir), own_path, scope, folders)

    def environ(self, config_dir: Path) -> dict[str, str]:
        """Return the environment of a hook of the runtime whose directory is `config_dir`."""
        variables = self.own.get("environ", {})
        places = {"{config}": str(config_dir), "{above config}": str(config_dir.parent)}
        return {
            "HOME": "/home/dev",
            **{key: places.get(value, value) for key, value in variables.items()},
        }

    def event(self, transcript: Path) -> dict[str, Any]:
        """Return the event of a prompt in the session with the transcript at `transcript`."""
        places = {"{transcript}": str(transcript), "{directory}": str(transcript.parent)}
        return {
            key: places.get(value, value) if isinstance(value, str) else value
            for key, value in self.own["event"].items()
        }


def fixture_of(
    runtime: Runtime, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Fixture:
    """Return a runtime with its folder of fixtures, for a person whose home is below `tmp_path`.

    The folder has these files:

    - `conversation.jsonl`: the common story.
    - `fork.jsonl`: a fork of it after its first turn.
    - `torn.jsonl`: two records on one line, a record that was cut off, and no line feed at the end.
    - `names.index`: the names that users gave, if the runtime keeps them outside its transcripts.
      The suite copies it to `names_file` in the runtime's directory.
    - The transcript of a sub-agent, if the runtime writes one. `subagent` names this file, or the
      conversation if a sub-agent is part of it.
    - `expected.json`: everything that differs between runtimes. `expected.schema.json`, beside this
      module, describes its keys and has an example.
    - `cases/`: further transcripts, for habits that only some programs have (see cases.py).

    A wheel has the fixtures of this package's runtimes in `session_memory/packaged/conformance/`.

    Raises ValueError if `expected.json` has a wrong key."""
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path / "person"))
    return Fixture(runtime, folder, read_expected(folder / "expected.json"))


def said(entries: Sequence[Entry | None]) -> list[tuple[str, str]]:
    """Return who said what, and the kinds of tools used, in order.

    The result does not depend on how the records divide a message."""
    story: list[tuple[str, str]] = []
    for entry in filter(None, entries):
        story += [(entry.role, entry.text)] if entry.text else []
        story += [("tool", tool.kind) for tool in entry.tools]
    return story


def check_story(
    path: Path, entries: Sequence[Entry | None], expected: Sequence[tuple[str, str]]
) -> None:
    """Fail at the first difference between the entries of a transcript and the story.

    The message names the record's line and both texts."""
    content = path.read_bytes()
    read = [
        (part, content[: entry.offset].count(b"\n") + 1)
        for entry in filter(None, entries)
        for part in said([entry])
    ]
    for number, wanted in enumerate(expected):
        if number == len(read):
            after = f"after line {read[-1][1]}" if read else "in the whole file"
            pytest.fail(f"{path.name}: expected {wanted} {after}, and nothing was read there")
        part, line = read[number]
        if part != wanted:
            pytest.fail(f"{path.name}, line {line}: expected {wanted}, read {part}")
    if len(read) > len(expected):
        part, line = read[len(expected)]
        pytest.fail(f"{path.name}, line {line}: expected nothing more, read {part}")
