"""Which lines a reader decodes at all, and how far a transcript goes."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from records import (
    PiSession,
    assistant,
    codex_exchange,
    codex_line,
    exchange,
    line,
    lines,
    tool_result,
    user,
    write,
)

from bench.corpus import Author, texts_of, write_session
from session_memory.common.system.json import decode_line
from session_memory.sessions.runtimes.codex.records import CodexRollout
from session_memory.sessions.runtimes.records import CALLS, MESSAGES, NO_TITLE
from session_memory.sessions.runtimes.table import runtime as runtime_of
from session_memory.sessions.transcripts import lines as lines_of_files
from session_memory.sessions.transcripts import reader
from session_memory.sessions.transcripts.entries import Entry
from session_memory.sessions.transcripts.lines import first_line, head_lines, holds_bytes, is_whole
from session_memory.sessions.transcripts.reader import TitleOwner, TranscriptReader

if TYPE_CHECKING:
    from session_memory.sessions.runtimes.base import Runtime

CLAUDE, PI = runtime_of("agent-sdk"), runtime_of("pi")
USES = ("Bash", {"command": "ls"})


def said(path: Path, runtime: Runtime = CLAUDE, *, with_tools: bool = False) -> list[str]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        reader = TranscriptReader(runtime, first_line(descriptor))
        return [
            entry.text for entry in reader.conversation(descriptor, with_tools=with_tools) if entry
        ]
    finally:
        os.close(descriptor)


def says_something(content: bytes, runtime: Runtime) -> bool:
    for value in decode_line(content)[0]:
        if any(
            not isinstance(one, Entry) or one.text
            for one in runtime.records.events(value, 0, MESSAGES)
        ):
            return True
    return False


def usual(*blocks: dict[str, Any], result: Any = "done") -> bytes:
    """The line of a tool result in the order in which Claude Code writes it, with more behind the
    message."""
    head = {
        "parentUuid": "p",
        "isSidechain": False,
        "cwd": "/srv",
        "version": "2.1.329",
        "type": "user",
    }
    message = {"role": "user", "content": list(blocks)}
    record = {
        **head,
        "message": message,
        "uuid": "u",
        "timestamp": "2026-09-21T14:13:00.000Z",
        "toolUseResult": result,
    }
    return json.dumps(record, separators=(",", ":")).encode()


RESULT = {"tool_use_id": "t", "type": "tool_result", "content": "x" * 5000}
REFUSED = {"type": "tool_result", "content": "no", "is_error": True, "tool_use_id": "t"}
TEXT = {"type": "text", "text": "and this"}


class TestToolResults:
    @pytest.mark.parametrize("block", [RESULT, REFUSED])
    @pytest.mark.parametrize("result", ["done", {"content": [TEXT], "uuid": "other"}])
    def test_one_alone_is_not_decoded_whatever_the_runtime_notes_of_it(self, block, result):
        content = usual(block, result=result)
        assert not CLAUDE.records.prefilter(content, MESSAGES | CALLS)
        assert not says_something(content, CLAUDE)

    @pytest.mark.parametrize("block", [RESULT, REFUSED])
    def test_a_text_beside_one_is_read(self, block):
        assert CLAUDE.records.prefilter(usual(block, TEXT), MESSAGES | CALLS)
        assert CLAUDE.records.prefilter(
            usual(block, RESULT, TEXT, REFUSED, result={"stdout": "y" * 5000}), MESSAGES | CALLS
        )

    @pytest.mark.parametrize("behind", [user("hello"), assistant("hello"), user([TEXT])])
    def test_a_record_glued_to_one_is_read(self, behind):
        assert CLAUDE.records.prefilter(
            usual(RESULT, result={"content": [RESULT]}) + line(behind), MESSAGES | CALLS
        )

    def test_one_that_is_glued_to_a_record_does_not_hide_it(self):
        assert CLAUDE.records.prefilter(line(user("hello"))[:-1] + usual(RESULT), MESSAGES | CALLS)


class TestGluedLines:
    @pytest.mark.parametrize(
        ("content", "values", "unreadable"),
        [
            (b'{"a":1}{"b":2}', [{"a": 1}, {"b": 2}], 0),
            (b'{"a":{"b":"x{"c":{"d":2}}', [{"c": {"d": 2}}], 1),
            (b'{"a":[{"b":1},{"c":[{"d":2}]}', [{"c": [{"d": 2}]}], 1),
            (b'{"a":{"b":{"c":2}', [{"c": 2}], 1),
            (b'{"a":1}{"b":"{"c":3}{"d":4}', [{"a": 1}, {"c": 3}, {"d": 4}], 1),
            (b'{"a{"b":"\\{"c":3}\r\n', [{"c": 3}], 1),
            (b'{"a":"\\u12{"c":3}{"d":', [{"c": 3}], 1),
            (b'{"a":"{","b":"\xe2{"c":"{"}', [{"c": "{"}], 1),
            (b'{"a":"x', [], 1),
            (b"{broken}", [], 1),
        ],
    )
    def test_what_is_whole_on_a_line_is_read_and_the_rest_counted(
        self, content, values, unreadable
    ):
        assert decode_line(content) == (values, unreadable)

    def test_a_torn_line_of_any_kind_takes_little_time(self):
        began = time.process_time()
        for content in (
            b'{"a":' * 300_000,
            b'{"a":1,"b":[' + b'{"c":{"d":[1]}},' * 100_000,
            b'{"a":"{",' * 200_000,
        ):
            assert decode_line(content) == ([], 1)
        assert time.process_time() - began < 3


class TestToolUses:
    @pytest.mark.parametrize(
        ("record", "matters"),
        [
            (assistant(USES), False),
            (assistant(("Write", {"content": '{"type":"text","text":"typed"}'})), False),
            (assistant(USES, "and text"), True),
            (assistant("text", USES), True),
            (assistant({"type": "thinking", "thinking": "hm"}, USES), False),
            (assistant({"type": "thinking", "thinking": "hm"}, USES, "text"), True),
        ],
    )
    def test_without_tools_a_record_of_claude_code_matters_if_it_has_text(self, record, matters):
        assert CLAUDE.records.prefilter(line(record), MESSAGES) is matters
        assert CLAUDE.records.prefilter(line(record), MESSAGES | CALLS)
        assert CLAUDE.records.prefilter(line(record)[:-1] + line(user("glued")), MESSAGES)

    @pytest.mark.parametrize(
        ("blocks", "matters"),
        [
            ([USES], False),
            ([{"type": "thinking", "thinking": "hm"}, USES], False),
            ([USES, "and text"], True),
            ([{"type": "image", "data": ""}], True),
        ],
    )
    def test_without_tools_a_record_of_pi_matters_if_it_has_text(self, blocks, matters):
        session = PiSession()
        session.assistant(*blocks)
        assert PI.records.prefilter(session.lines[-1], MESSAGES) is matters
        assert PI.records.prefilter(session.lines[-1], MESSAGES | CALLS)

    def test_a_command_that_the_user_ran_in_pi_is_a_tool_use_without_text(self):
        session = PiSession()
        session.bash("ls")
        assert not PI.records.prefilter(session.lines[-1], MESSAGES)
        assert PI.records.prefilter(session.lines[-1], MESSAGES | CALLS)

    def test_an_entry_without_text_is_left_out_however_its_line_is_written(self, tmp_path):
        path = tmp_path / "t.jsonl"
        path.write_text(f"{json.dumps(assistant(USES))}\n{json.dumps(user('spaced'))}\n")
        assert said(path) == ["spaced"]
        assert said(path, with_tools=True) == ["", "spaced"]


@pytest.mark.slow  # on real transcripts and on each runtime's fixtures it is tested without `--all`
@pytest.mark.parametrize(("format", "runtime"), [("agent-sdk", CLAUDE), ("pi", PI)])
def test_nothing_is_said_in_what_is_not_decoded_without_tools(tmp_path, format, runtime):
    write_session(
        tmp_path / "a.jsonl",
        Author(texts_of(7), "7-a", "alpha", 1_000_000, 1_780_000_000.0),
        format,
    )
    found = (tmp_path / "a.jsonl").read_bytes().splitlines()
    left_out = [content for content in found if not runtime.records.prefilter(content, MESSAGES)]
    without_any = [
        content for content in found if not runtime.records.prefilter(content, MESSAGES | CALLS)
    ]
    assert len(left_out) > len(without_any)
    assert not [content for content in left_out if says_something(content, runtime)]


class TestTheLastLine:
    def test_it_is_read_without_a_line_feed_if_it_is_whole(self, tmp_path):
        path = tmp_path / "t.jsonl"
        path.write_bytes(lines(*exchange("question", "answer"))[:-1])
        assert said(path) == ["question", "answer"]

    def test_it_is_read_though_it_is_the_only_one(self, tmp_path):
        path = tmp_path / "t.jsonl"
        path.write_bytes(line(user("alone"))[:-1])
        assert said(path) == ["alone"]

    def test_a_record_that_is_being_written_never_is_wherever_it_ends(self):
        content = line(assistant("an {answer}", USES))[:-1]
        assert is_whole(content)
        assert not any(is_whole(content[:end]) for end in range(len(content)))

    @pytest.mark.parametrize("content", [b"", b"{}x", b"[{}]", b"5}", b'"}', b"1 {}"])
    def test_nothing_but_records_is_whole(self, content):
        assert not is_whole(content)

    def test_what_is_appended_to_it_later_is_read_once(self, tmp_path):
        path = tmp_path / "t.jsonl"
        first, second = user("first"), user("second")
        path.write_bytes(line(first) + line(second)[:-20])
        assert said(path) == ["first"]
        path.write_bytes(line(first) + line(second) + line(tool_result()))
        assert said(path) == ["first", "second"]

    def test_in_pi_it_is_the_leaf_of_the_branch(self, tmp_path):
        session = PiSession()
        first = session.exchange("one", "two")
        session.exchange("wrong way", "I see")
        session.back_to(first)
        session.user("right way")
        path = session.write(tmp_path)
        path.write_bytes(path.read_bytes()[:-1])
        assert said(path, PI) == ["one", "two", "right way"]


def test_a_session_of_pi_without_a_tree_is_not_searched_for_its_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records had no ids before version 2."""
    header = {"type": "session", "id": "s", "timestamp": "2025-12-09T00:53:29.825Z", "cwd": "/srv"}
    messages = [
        {"type": "message", "message": {"role": role, "content": [{"type": "text", "text": role}]}}
        for role in ("user", "assistant")
    ]
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines(header, *messages))
    monkeypatch.setattr(reader, "windows_backward", None)
    assert said(path, PI) == ["user", "assistant"]


class TestTheHeadOfAFile:
    @pytest.mark.parametrize("limit", [0, 1, 9_000, 20_000, 64 * 1024, 10**6])
    @pytest.mark.parametrize("longest", [0, 40, 9_000, 70_000])
    def test_has_its_complete_lines(self, tmp_path: Path, longest: int, limit: int) -> None:
        content = b"".join([b"x" * (longest * at // 5) + b"\n" for at in range(9)]) + b"torn"
        path = tmp_path / "t.jsonl"
        path.write_bytes(content)
        whole = content[:limit].split(b"\n")[:-1]
        with path.open("rb") as file:
            first, found = head_lines(file.fileno(), limit)
            read = [*found]
        assert first == (whole[0] if whole else b"")
        assert [line for _, line in read] == whole
        assert all(content[at : at + len(line) + 1] == line + b"\n" for at, line in read)

    def test_is_read_only_as_far_as_it_is_needed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, ends = tmp_path / "t.jsonl", []
        path.write_bytes(b"{}\n" * 30_000)
        read_at = lines_of_files.read_at
        monkeypatch.setattr(
            lines_of_files, "read_at", lambda *range: ends.append(range[2]) or read_at(*range)
        )
        with path.open("rb") as file:
            _, found = head_lines(file.fileno(), 64 * 1024)
            assert [next(found), next(found)] == [(0, b"{}"), (3, b"{}")]
        assert max(ends) <= 8 * 1024


@pytest.mark.parametrize("at", [0, 64 * 1024 - 3, 64 * 1024, 1024 * 1024 - 1, 1024 * 1024])
def test_bytes_are_found_also_across_the_parts_that_are_read(tmp_path: Path, at: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"x" * at + b"wanted" + b"x" * 3 * 1024 * 1024)
    with path.open("rb") as file:
        assert holds_bytes(file.fileno(), b"wanted", 9) == (at < 1024 * 1024)
        assert holds_bytes(file.fileno(), b"wanted", 1024 * 1024 + 1)
        assert not holds_bytes(file.fileno(), b"unwanted", 4 * 1024 * 1024)


@pytest.mark.parametrize("separator", [b'":"', b'": "'])
@pytest.mark.parametrize("at", [64 * 1024 - 9, 64 * 1024, 1024 * 1024 - 1, 1024 * 1024])
def test_many_titles_have_the_same_owner_as_each_alone(
    tmp_path: Path, at: int, separator: bytes
) -> None:
    path = tmp_path / "t.jsonl"
    ids = [b"%036x" % number for number in range(6)]
    first = b'{"a%sb"}\n{"uuid%s%s"}\n' % (separator, separator, ids[4])
    last = b'{"uuid%s%s"}' % (separator, ids[5])
    path.write_bytes(first + b"x" * (at - len(first)) + last + b"x" * 3 * 1024 * 1024)
    odd = b'"uuid":"' * 2
    wanted = [*[b'"uuid":"%s"' % each for each in ids], odd, b'"uuid":""', b"x" * 36, b"missing"]
    with path.open("rb") as file:
        searched = 1024 * 1024
        shared = TitleOwner("", file.fileno(), searched)
        alone = [TitleOwner("", file.fileno(), searched).has(within=within) for within in wanted]
        assert [shared.has(within=within) for within in wanted] == alone
        assert alone == [False] * 4 + [True, at + 1 < searched, False, False, True, False]


def summary(title: str, leaf: str) -> dict[str, Any]:
    return {"type": "summary", "summary": title, "leafUuid": leaf}


def searches(titles: list[dict[str, Any]], path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how often a transcript with these titles is searched to its end for their records."""
    path.write_bytes(lines(*exchange("one?", "two"), *titles) + b"x" * 3 * 1024 * 1024)
    ends: list[int] = []
    read_at = lines_of_files.read_at
    for module in (lines_of_files, reader):
        monkeypatch.setattr(
            module, "read_at", lambda *range: ends.append(range[2]) or read_at(*range)
        )
    with path.open("rb") as file:
        owner = TitleOwner("", file.fileno())
        transcript = TranscriptReader(CLAUDE, first_line(file.fileno()), owner=owner)
        assert len([*transcript.conversation(file.fileno())]) == 2
    assert transcript.title == NO_TITLE
    return ends.count(max(ends))


@pytest.mark.parametrize(("titles", "passes"), [(1, 1), (2, 2), (40, 1)])
def test_many_foreign_titles_are_looked_up_in_one_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, titles: int, passes: int
) -> None:
    foreign = [summary("Other", f"{number:036x}") for number in range(titles)]
    assert searches(foreign, tmp_path / "t.jsonl", monkeypatch) == passes


def test_only_the_best_title_is_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = [summary("Other", f"{number:036x}") for number in range(40)]
    path = tmp_path / "t.jsonl"
    own = {"type": "custom-title", "customTitle": "Mine"}
    path.write_bytes(lines(*exchange("one?", "two"), *foreign[:20], own, *foreign[20:]))
    monkeypatch.setattr(TitleOwner, "_has_value", None)
    monkeypatch.setattr(reader, "holds_bytes", None)
    assert title_of_whole(path) == (reader.USER_RANK, "Mine")


def title_of_whole(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        owner = TitleOwner(path.stem, file.fileno())
        transcript = TranscriptReader(CLAUDE, first_line(file.fileno()), owner=owner)
        for _ in transcript.conversation(file.fileno()):
            pass
    return transcript.title


@pytest.mark.parametrize("seed", range(30))
def test_the_last_own_title_of_the_best_kind_counts_in_every_direction(
    tmp_path: Path, seed: int
) -> None:
    numbers = random.Random(seed)
    own, other = f"{seed:08x}-0000-4000-a000-000000000000", str(uuid.UUID(int=7))
    record = user("hello", uuid=str(uuid.UUID(int=seed)))
    titles: list[tuple[dict[str, Any], tuple[int, str], bool]] = []
    for number in range(numbers.randrange(9)):
        is_own, text = numbers.random() < 0.5, f"title {number}"
        ranked = [
            (
                3,
                {
                    "type": "custom-title",
                    "customTitle": text,
                    "sessionId": own if is_own else other,
                },
            ),
            (2, {"type": "ai-title", "aiTitle": text, "sessionId": own if is_own else other}),
            (1, summary(text, record["uuid"] if is_own else f"{number:036x}")),
        ]
        rank, value = numbers.choice(ranked)
        titles.append((value, (rank, text), is_own))
    best = max(
        [(title[0], at, title[1]) for at, (_, title, is_own) in enumerate(titles) if is_own],
        default=(*NO_TITLE[:1], 0, NO_TITLE[1]),
    )
    path = tmp_path / f"{own}.jsonl"
    values = [value for value, _, _ in titles]
    values.insert(numbers.randrange(len(values) + 1), record)
    path.write_bytes(lines(*values))
    assert title_of_whole(path) == (best[0], best[2])
    with path.open("rb") as file:
        for takes_all_again in (False, True):
            owner = TitleOwner(own, file.fileno())
            backward = TranscriptReader(CLAUDE, first_line(file.fileno()), owner=owner)
            assert len([*backward.from_end(file.fileno())]) == 1
            if takes_all_again:
                backward.take_titles(file.fileno(), 0, path.stat().st_size)
            assert backward.title == (best[0], best[2])


def test_the_beginning_of_a_long_turn_is_searched_for_once(tmp_path: Path, monkeypatch) -> None:
    """Only the first line of a turn of Codex names its directory."""
    asked: list[bytes] = []
    directory_in = CodexRollout.directory_in

    def noted(branch: CodexRollout, content: bytes) -> str:
        asked.append(content)
        return directory_in(branch, content)

    monkeypatch.setattr(CodexRollout, "directory_in", noted)
    start = codex_line("session_meta", {"id": "a", "cwd": "/srv/app", "thread_source": "user"})
    turn = codex_exchange("go", "I go on. " * 200, cwd="/srv/other")
    records = [start, *turn, *turn[3:] * 1000]
    path = write(tmp_path / "a.jsonl", *records)
    with path.open("rb") as file:
        reader = TranscriptReader(runtime_of("codex"), first_line(file.fileno()))
        entries = list(reader.from_end(file.fileno()))
    assert len(entries) > 1000
    assert {entry.cwd for entry in entries} == {"/srv/other"}
    assert len(asked) <= 2 * len(records)
