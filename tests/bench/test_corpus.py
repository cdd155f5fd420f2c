"""The generated transcripts of the benchmarks are like real ones, and the same every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from bench.corpus import FORMATS, Author, Texts, append_turns, texts_of, write_session
from bench.corpus.__main__ import main as make_corpus
from session_memory.common.system.json import decode_line
from session_memory.sessions.runtimes.records import CALLS, MESSAGES
from session_memory.sessions.runtimes.table import runtime as runtime_of

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT.parent / "shared" / "transcripts" / "claude"
END = 1_780_000_000.0
SIZE = 3_000_000


@pytest.fixture(scope="module")
def texts() -> Texts:
    return texts_of(7)


@pytest.fixture(scope="module")
def same_texts() -> Texts:
    return Texts(seed=7)


@pytest.fixture(scope="module")
def session_of(texts: Texts, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The session of usual size in a format, which nobody may change."""

    @cache
    def session_of(format: str) -> Path:
        path = tmp_path_factory.mktemp("corpus") / "a.jsonl"
        write_session(path, author(texts), format)
        return path

    return session_of


def author(texts: Texts, seed: str = "a", size: int = SIZE) -> Author:
    return Author(texts, seed, "alpha", size, END)


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def times(path: Path, format: str) -> list[float]:
    entries = [runtime_of(format).records.entry(record, 0) for record in records(path)]
    return [
        entry.timestamp for entry in entries if entry is not None and entry.timestamp is not None
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_seed_and_arguments_give_the_same_bytes(texts, same_texts, tmp_path, format):
    size = SIZE // 10
    write_session(tmp_path / "one.jsonl", author(texts, size=size), format)
    write_session(tmp_path / "two.jsonl", author(same_texts, size=size), format)
    write_session(tmp_path / "other.jsonl", author(texts, "b", size), format)
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert (tmp_path / "one.jsonl").read_bytes() != (tmp_path / "other.jsonl").read_bytes()


@pytest.mark.sample(3)
@pytest.mark.parametrize("format", FORMATS)
def test_a_transcript_has_the_size_that_was_asked_for(texts, tmp_path, format):
    bytes_by_kind = write_session(tmp_path / "a.jsonl", author(texts), format)
    assert bytes_by_kind.total() == (tmp_path / "a.jsonl").stat().st_size
    assert SIZE <= bytes_by_kind.total() < 1.5 * SIZE


def test_most_of_its_bytes_are_tool_results(texts, tmp_path):
    bytes_by_kind = write_session(tmp_path / "a.jsonl", author(texts, size=8 * SIZE))
    assert 0.6 < bytes_by_kind["tool_result"] / bytes_by_kind.total() < 0.8


@pytest.mark.parametrize("format", ["agent-sdk", "pi"])
def test_its_records_are_read_as_those_of_the_runtime(session_of, format):
    entries = [
        entry
        for record in records(session_of(format))
        if (entry := runtime_of(format).records.entry(record))
    ]
    assert {entry.role for entry in entries} == {"user", "assistant"}
    assert {tool.kind for entry in entries for tool in entry.tools} == {
        "edit",
        "read",
        "command",
        "other",
    }
    assert len({entry.id for entry in entries}) == len(entries)


@pytest.mark.parametrize("format", FORMATS)
def test_every_runtime_s_records_hold_what_users_and_agents_said(session_of, format):
    own = runtime_of(format).records
    entries = [entry for record in records(session_of(format)) if (entry := own.entry(record, 0))]
    assert {entry.role for entry in entries if entry.text} == {"user", "assistant"}


@pytest.mark.parametrize("format", FORMATS)
def test_time_never_goes_back_and_ends_when_it_was_said_to(session_of, format):
    path = session_of(format)
    found = times(path, format)
    assert found == sorted(found)
    assert END - 1800 < found[-1] <= END  # behind the last entry there may be a large result
    assert path.stat().st_mtime == END


@pytest.mark.parametrize(
    ("format", "link", "parent"), [("agent-sdk", "uuid", "parentUuid"), ("pi", "id", "parentId")]
)
def test_appended_turns_go_on_where_the_session_ended(texts, tmp_path, format, link, parent):
    path = tmp_path / "a.jsonl"
    write_session(path, author(texts), format)
    before = path.read_bytes()
    append_turns(path, author(texts, "appended", size=20_000), format)
    assert path.read_bytes().startswith(before)
    kept, added = records(path)[: before.count(b"\n")], records(path)[before.count(b"\n") :]
    last = next(record for record in reversed(kept) if link in record)
    first = next(record for record in added if link in record)
    assert first[parent] == last[link]
    assert {record.get("sessionId") for record in added if link in record} == {
        last.get("sessionId")
    }


def test_a_corpus_has_the_layout_of_claude_code_and_of_pi(tmp_path, capsys):
    make_corpus(tmp_path / "out", sizes="0.2,0.1", small=1, subagents=1, pi="0.1")
    assert capsys.readouterr().out.startswith("5 files, ")
    [transcript] = (tmp_path / "out").glob("projects/-home-dev-alpha/*.jsonl")
    [subagent] = (tmp_path / "out").glob("projects/-home-dev-alpha/*/subagents/agent-*.jsonl")
    assert len(list((tmp_path / "out").glob("projects/*/*.jsonl"))) == 3
    assert len(list((tmp_path / "out").glob("pi/--home-dev-alpha--/*Z_*.jsonl"))) == 1
    assert {record["sessionId"] for record in records(subagent) if "uuid" in record} == {
        transcript.stem
    }
    assert all(record["isSidechain"] for record in records(subagent) if "uuid" in record)
    size = transcript.stat().st_size
    make_corpus(tmp_path / "out", append=20_000)
    assert transcript.stat().st_size >= size + 20_000


@pytest.mark.parametrize("format", ["agent-sdk", "pi"])
def test_what_is_not_worth_decoding_holds_no_entry_and_no_title(session_of, format):
    lines = session_of(format).read_bytes().splitlines()
    left_out = [
        line for line in lines if not runtime_of(format).records.prefilter(line, MESSAGES | CALLS)
    ]
    assert len(left_out) > len(lines) / 4
    assert not [line for line in left_out if holds_something(line, format)]


@pytest.mark.skipif(not SAMPLES.exists(), reason="../shared/transcripts is not there")
def test_neither_does_it_in_transcripts_of_real_sessions():
    lines = [
        line
        for path in SAMPLES.glob("*/*.jsonl")
        for line in path.read_bytes().split(b"\n")
        if line
    ]
    left_out = [
        line
        for line in lines
        if not runtime_of("agent-sdk").records.prefilter(line, MESSAGES | CALLS)
    ]
    assert len(left_out) > len(lines) / 4
    assert not [line for line in left_out if holds_something(line, "agent-sdk")]


def test_a_record_that_is_glued_to_one_that_does_not_matter_is_decoded(session_of):
    lines = session_of("agent-sdk").read_bytes().splitlines()
    prompt = next(line for line in lines if holds_something(line, "agent-sdk"))
    assert all(
        runtime_of("agent-sdk").records.prefilter(line + prompt, MESSAGES | CALLS) for line in lines
    )


def holds_something(line: bytes, format: str) -> bool:
    return any(
        runtime_of(format).records.events(record, 0, MESSAGES) for record in decode_line(line)[0]
    )
