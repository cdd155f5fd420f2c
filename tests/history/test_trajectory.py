"""A session exported as ATIF passes Harbor's validator, and has the same content when read again.

Left out are a fork's copies (marked as copied context, and read in the original), text from hooks
and the system, lookups in our own memory with their results, pictures (replaced by `[image]`), the
text of edits by a shell command, and the times of results.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from records import assistant, user, write
from share import some

from session_memory.common.system import files
from session_memory.common.text.sanitize import for_people
from session_memory.history.costs import answers_in
from session_memory.history.store.ingest.extract import result_text
from session_memory.history.store.values import Conversation
from session_memory.history.trajectory import _from_transcript
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.detection import runtime_of
from session_memory.sessions.runtimes.records import CallResult
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.settings.privacy import Privacy
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.gate import Gate
from session_memory.sessions.transcripts.lines import first_line, lines_forward
from session_memory.sessions.transcripts.reader import TranscriptReader

FIXTURES = Path(__file__).resolve().parents[1] / "sessions" / "runtimes" / "fixtures"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "transcripts"
ATIF = runtime("atif")
TOKENS = ("input", "output", "cached", "written", "written_for_an_hour")


class Content(NamedTuple):
    """What a transcript says: entries, results of calls by id, and tokens by model."""

    entries: list[tuple[Any, ...]]
    results: list[tuple[str, bool, str]]
    tokens: Counter[tuple[str, str]]


def named(call_id: str) -> str:
    """Return the id that a call had: some have none."""
    return "" if call_id.startswith("unnamed-") else call_id


def content_of(one: Runtime, path: Path) -> Content:
    entries, results, calls, ids = [], [], set[str](), set[str]()
    descriptor = os.open(path, os.O_RDONLY)
    reader = TranscriptReader(one, first_line(descriptor))
    left = reader.offsets_off_branch(descriptor, path.stat().st_size)
    for item in reader.forward(
        lines_forward(descriptor, 0, 1 << 40), with_results=True, left_out=left
    ):
        if isinstance(item, Entry) and not (item.id and item.id in ids):
            ids.add(item.id)
            calls |= set() if item.is_copy else {use.call_id for use in item.tools}
            uses = [
                (use.name, use.kind, named(use.call_id), for_people(use.argument))
                for use in item.tools
            ]
            at = None if item.timestamp is None else round(item.timestamp * 1000)
            is_empty = item.is_copy or not (uses or for_people(item.text).strip())
            entries += [] if is_empty else [(item.role, for_people(item.text).strip(), at, uses)]
        elif isinstance(item, CallResult) and item.call_id in calls:
            results.append(
                (named(item.call_id), item.has_failed, for_people(result_text(item.content)))
            )
    tokens = Counter[tuple[str, str]]()
    for _, usage, _ in (
        answers_in(one, descriptor) if any(role == "assistant" for role, *_ in entries) else ()
    ):
        tokens.update(
            {} if usage.is_copy else {(usage.model, key): getattr(usage, key) for key in TOKENS}
        )
    os.close(descriptor)
    return Content(entries, results, +tokens)


def exported(one: Runtime, path: Path, home: Path) -> dict[str, Any]:
    """The trajectory of a transcript without rules."""
    conversation = Conversation(
        1, "0191b0b0-session", "", "", one.name, "/srv/site", "A title", 0, 0, 1, "ready", ""
    )
    descriptor = os.open(path, os.O_RDONLY)
    gate = Gate(Privacy({"HOME": str(home)}), conversation.session_id, "/srv/site")
    document = _from_transcript(conversation, one, descriptor, str(path), gate)
    os.close(descriptor)
    return json.loads(json.dumps(document))  # type: ignore[no-any-return]


def read_again(document: dict[str, Any], home: Path) -> Content:
    (home / ".atif").mkdir(exist_ok=True)
    (home / ".atif" / "t.json").write_text(json.dumps(document))
    ATIF.refresh(str(home / ".atif"), everything=True)
    (path,) = Path(ATIF.transcripts_dir(str(home / ".atif"))).glob("*/*.jsonl")
    found = content_of(ATIF, path)
    path.unlink()
    return found


def check(one: Runtime, path: Path, home: Path) -> dict[str, Any]:
    before, document = content_of(one, path), exported(one, path, home)
    if not document["steps"]:
        assert before.entries == []
        return document
    after = read_again(document, home)
    assert after.entries == before.entries
    assert sorted(after.results) == sorted(before.results)
    assert after.tokens == before.tokens
    return document


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(files.os.environ, b"HOME", os.fsencode(tmp_path))
    return tmp_path


def validated(document: dict[str, Any]) -> None:
    validator = pytest.importorskip(
        "harbor.utils.trajectory_validator",
        reason="Harbor's validator is not installed: pip install --no-deps --ignore-requires-python harbor",
    ).TrajectoryValidator()
    assert validator.validate(document, validate_images=False), validator.errors


@pytest.mark.parametrize("one", all_runtimes(), ids=lambda one: one.name)
def test_what_a_runtime_wrote_is_the_same_after_export_and_reading(
    one: Runtime, home: Path
) -> None:
    for name in ("conversation.jsonl", "torn.jsonl"):
        check(one, FIXTURES / one.name / name, home)


@pytest.mark.parametrize("one", all_runtimes(), ids=lambda one: one.name)
def test_the_export_of_every_runtime_is_valid(one: Runtime, home: Path) -> None:
    for name in ("conversation.jsonl", "fork.jsonl", "torn.jsonl"):
        validated(exported(one, FIXTURES / one.name / name, home))


def shared() -> Iterator[tuple[Path, Runtime]]:
    paths = sorted(SHARED.rglob("*.jsonl"))
    for path in paths[:: len(paths) // some(len(paths))]:
        descriptor = os.open(path, os.O_RDONLY)
        one = runtime_of(descriptor)
        os.close(descriptor)
        if one is not None and "/odd/" not in str(path):
            yield path, one


@pytest.mark.skipif(
    not SHARED.exists(), reason="the transcripts of public repositories are not on this machine"
)
@pytest.mark.timeout(900)
def test_transcripts_of_public_repositories_are_the_same_after_export_and_reading(
    home: Path,
) -> None:
    problems = []
    for path, one in shared():
        try:
            document = check(one, path, home)
            if document["steps"]:
                validated(document)
        except AssertionError as error:
            problems.append(f"{path}: {str(error)[:1500]}")
    assert problems == []


def test_random_histories_are_the_same_after_export_and_reading(home: Path) -> None:
    claude = runtime("agent-sdk")
    for seed in range(30):
        chance = random.Random(seed)
        records = []
        for number in range(chance.randrange(1, 12)):
            said = "".join(chance.choices('ab é\n‮<>"\\{}:\u2028😀', k=chance.randrange(30)))
            id, name = (
                f"toolu_{seed}_{number}",
                chance.choice(["Bash", "Edit", "Read", "mcp__x__y"]),
            )
            given = {
                chance.choice(["command", "file_path", "query"]): said,
                "n": [number, None, {"deep": said}],
            }
            call = {"type": "tool_use", "id": id, "name": name, "input": given}
            at = 1_790_000_000 + number + chance.random()
            records += chance.choice(
                [
                    [user(said or "go", at=at)],
                    [assistant(said, at=at)],
                    [
                        assistant(call, at=at),
                        user(
                            [
                                {
                                    "tool_use_id": id,
                                    "type": "tool_result",
                                    "content": said,
                                    "is_error": chance.random() < 0.5,
                                }
                            ],
                            at=at,
                        ),
                    ],
                    [assistant(call, at=at)],
                ]
            )
        path = home / "projects" / "x" / f"{seed}.jsonl"
        write(path, *records)
        check(claude, path, home)
