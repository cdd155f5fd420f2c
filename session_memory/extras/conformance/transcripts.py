"""Checks the transcripts of every runtime, whatever their records."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ...awareness.activity.changes import OwnSession
from ...awareness.activity.delivery import delivered, resolved, with_last
from ...awareness.activity.session_state import SessionState
from ...common.system import quick_json
from ...common.system.json import decode_line
from ...common.text.timestamps import epoch_seconds
from ...history.store.ingest.extract import Extractor
from ...sessions.runtimes.detection import runtime_of
from ...sessions.runtimes.records import (
    CALLS,
    INJECTED,
    LINKS,
    MESSAGES,
    RESULTS,
    TURNS,
    USAGE,
    CallResult,
    Injected,
    ParentLink,
    PromptId,
    Reply,
)
from ...sessions.transcripts.entries import Entry
from ...sessions.transcripts.gate import describe
from ...sessions.transcripts.lines import first_line, lines_forward
from ...sessions.transcripts.log import last_entries, render
from ...sessions.transcripts.read_cursor import ReadCursor, ReadCursors
from ...sessions.transcripts.reader import TitleOwner, TranscriptHead, TranscriptReader
from ...sessions.transcripts.usage import ModelUsage
from .fixture import (
    BEFORE_COMPACTION,
    BEGAN,
    CONVERSATION,
    FIRST_TURN,
    FORK,
    TITLE,
    UNSAID,
    Fixture,
    check_story,
    said,
)


class TestEntries:
    def test_a_transcript_tells_what_was_said_and_where_it_was_compacted_in_every_way_of_reading(
        self, fixture: Fixture
    ) -> None:
        conversation = fixture.conversation(fixture.path())
        assert None in conversation, "conversation.jsonl: expected a Compaction, read none"
        compaction = conversation.index(None)
        check_story(fixture.path(), conversation[:compaction], BEFORE_COMPACTION)
        story_after = CONVERSATION[len(BEFORE_COMPACTION) :]
        check_story(fixture.path(), conversation[compaction + 1 :], story_after)
        with fixture.opened(fixture.path()) as (reader, descriptor):
            assert list(reader.from_end(descriptor))[::-1] == [
                entry for entry in conversation if entry
            ]
        of_lines, reader = fixture.entries_in(fixture.lines())
        assert (said(of_lines), reader.unreadable) == (CONVERSATION, 0)
        with_text = fixture.conversation(fixture.path(), with_tools=False)
        assert [(entry.role, entry.text) for entry in with_text if entry] == [
            message for message in CONVERSATION if message[0] != "tool"
        ]
        last, unreadable = last_entries(fixture.runtime, str(fixture.path()), 3, None)
        assert (said(last), unreadable) == (CONVERSATION[-3:], 0)
        log = render(*last_entries(fixture.runtime, str(fixture.path()), 50, None))
        assert (
            log.index("How do I deploy this?")
            < log.index("make deploy")
            < log.index("You are welcome.")
        )

    def test_nothing_is_told_that_nobody_said(self, fixture: Fixture) -> None:
        content = fixture.path().read_text()
        assert any(text in content for text in UNSAID)
        text_read = str(fixture.conversation(fixture.path()))
        assert [text for text in UNSAID if text in text_read] == []

    def test_what_a_sub_agent_did_can_be_read_and_is_none_of_the_conversation(
        self, fixture: Fixture
    ) -> None:
        if not fixture.own["subagent"]:
            assert fixture.runtime.sub_agents(str(fixture.path())) == []
            pytest.skip("it does not record sub-agents")
        path = fixture.path(fixture.own["subagent"])
        content = path.read_bytes()
        with path.open("rb") as file:
            first = first_line(file.fileno())
            reader = TranscriptReader(fixture.runtime, first, of_sub_agents=True)
            done = [
                entry
                for entry in reader.forward(lines_forward(file.fileno(), 0, len(content)))
                if isinstance(entry, Entry)
            ]
        assert "".join(entry.text for entry in done).endswith(("are clean.", "are empty."))
        assert {entry.cwd for entry in done} == {fixture.own["cwd"]}
        assert {entry.id for entry in done}.isdisjoint(
            entry.id for entry in fixture.conversation(path) if entry
        )
        with fixture.opened(path) as (backward, descriptor):
            assert {entry.id for entry in done}.isdisjoint(
                entry.id for entry in backward.from_end(descriptor)
            )

    def test_each_entry_has_its_id_time_and_directory(self, fixture: Fixture) -> None:
        entries = [entry for entry in fixture.conversation(fixture.path()) if entry]
        assert [entry.id for entry in entries] == fixture.own["ids"]
        assert entries[0].timestamp == epoch_seconds(BEGAN)
        assert [entry.timestamp for entry in entries] == sorted(
            entry.timestamp or 0.0 for entry in entries
        )
        assert {entry.cwd for entry in entries} == {fixture.own["cwd"]}
        assert not any(entry.is_copy for entry in entries)

    def test_each_entry_has_the_offset_of_its_line(self, fixture: Fixture) -> None:
        content = fixture.path().read_bytes()
        for entry in [entry for entry in fixture.conversation(fixture.path()) if entry]:
            line = content[entry.offset : content.index(b"\n", entry.offset)]
            assert all(part.encode() in line for part in entry.id.split(":"))
            assert entry.offset == 0 or content[entry.offset - 1 : entry.offset] == b"\n"

    def test_the_tools_of_entries_have_their_names_arguments_and_ids(
        self, fixture: Fixture
    ) -> None:
        entries = [entry for entry in fixture.conversation(fixture.path()) if entry]
        tools = [tool for entry in entries for tool in entry.tools]
        assert {tool.kind: tool.name for tool in tools} == fixture.own["tools"]
        assert {tool.kind: tool.argument for tool in tools} == fixture.own["arguments"]
        assert [tool.call_id for tool in tools] == list(fixture.own["results"])


def shuffled(record: Any) -> Any:
    """Return a record with the keys of each object in another order."""
    if isinstance(record, dict):
        keys = random.Random(len(record)).sample(sorted(record), len(record))
        return {key: shuffled(record[key]) for key in keys}
    return [shuffled(item) for item in record] if isinstance(record, list) else record


REWRITTEN: dict[str, Callable[[Any], str]] = {
    "spaced": json.dumps,
    "compact": partial(json.dumps, separators=(",", ":"), ensure_ascii=False),
    "sorted": partial(json.dumps, separators=(",", ":"), sort_keys=True),
    "sorted and spaced": partial(json.dumps, sort_keys=True),
    "reversed": lambda record: json.dumps(dict(reversed(record.items())), separators=(",", ":")),
    "shuffled": lambda record: json.dumps(shuffled(record), separators=(",", ":")),
    "widely spaced": lambda record: " " + json.dumps(record, separators=(" , ", " : ")) + " ",
}


class TestRewritten:
    """A transcript that another program has rewritten, for example `jq`, reads the same."""

    def test_another_order_of_keys_and_other_white_space_change_nothing(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        path = tmp_path / Path(fixture.own["file_name"]).name
        for name in ("conversation.jsonl", "fork.jsonl"):
            expected = self.told_by(fixture, fixture.path(name))
            for way, rewrite in REWRITTEN.items():
                path.write_text("".join(rewrite(record) + "\n" for record in fixture.records(name)))
                assert self.told_by(fixture, path) == expected, (name, way)

    def told_by(self, fixture: Fixture, path: Path) -> list[object]:
        """Return the results of every way of reading a transcript, without offsets."""
        with fixture.opened(path) as (reader, descriptor):
            runtime = runtime_of(descriptor)
            whole = list(reader.conversation(descriptor))
            backward = list(
                TranscriptReader(fixture.runtime, first_line(descriptor)).from_end(descriptor)
            )
            lines = [line for _, line in lines_forward(descriptor, 0, 1 << 40)]
            size = path.stat().st_size
            stored = Extractor(fixture.runtime, descriptor, "").read(0, size, size)
            owner = TitleOwner(fixture.own["session_id"], descriptor)
            title = TranscriptHead(fixture.runtime, descriptor, owner).title
        records = fixture.runtime.records
        events = [
            [
                event
                for record in decode_line(line)[0]
                for event in records.events(record, 0, wanted)
            ]
            for wanted in (RESULTS, INJECTED, LINKS, TURNS, USAGE)
            for line in lines
            if records.prefilter(line, wanted)
        ]
        outcomes = [
            (
                entry.text,
                [(tool.argument, tool.ended and tool.ended.outcome) for tool in entry.tools],
            )
            for entry in stored.entries
        ]
        for entry in filter(None, [*whole, *backward]):
            entry.offset = 0
        return [
            runtime,
            whole,
            backward,
            [event for event in events if event],
            outcomes,
            stored.title,
            stored.cwd,
            title,
        ]


class TestResults:
    def test_each_tool_call_has_its_result_which_says_whether_it_failed_however_it_is_taken_out(
        self, fixture: Fixture
    ) -> None:
        failures = {}
        with fixture.opened(fixture.path()) as (reader, descriptor):
            for item in reader.forward(lines_forward(descriptor, 0, 1 << 40), with_results=True):
                if isinstance(item, CallResult):
                    failures[item.call_id] = item.has_failed
        for call_id, has_failed in fixture.own["results"].items():
            assert call_id in failures, f"conversation.jsonl: expected a result of {call_id}"
            assert failures[call_id] == has_failed, (
                f"conversation.jsonl, result of {call_id}: expected has_failed={has_failed}"
            )
        assert failures == fixture.own["results"]
        for line in fixture.lines():
            results = fixture.runtime.records.results_in(line, decode_line)
            (record,), _ = decode_line(line)
            assert results is None or results == fixture.found_in(record, CallResult, RESULTS) != []

    def test_the_store_takes_entries_and_outcomes_of_tools(self, fixture: Fixture) -> None:
        with fixture.opened(fixture.path()) as (_, descriptor):
            size = fixture.path().stat().st_size
            extract = Extractor(fixture.runtime, descriptor, "").read(0, size, size)
        assert [entry.text for entry in extract.entries if entry.text] == [
            text for role, text in CONVERSATION if role != "tool"
        ]
        outcomes = [
            tool.ended.outcome for entry in extract.entries for tool in entry.tools if tool.ended
        ]
        assert outcomes == ["ok", "error", "ok"]
        title = "" if fixture.own.get("names_file") else TITLE
        assert (extract.title[1], extract.cwd, extract.unreadable) == (title, fixture.own["cwd"], 0)
        assert extract.is_last


class TestDelivery:
    """If a transcript shows the injected text, it also shows whether the agent got it."""

    def told(self, fixture: Fixture) -> tuple[str, int] | None:
        """Return the first text that a hook gave, with the offset of its line.

        Return None if no record shows one."""
        offset = 0
        for line, record in zip(fixture.lines(), fixture.records()):
            for injected in fixture.found_in(record, Injected):
                if injected.texts:
                    return injected.texts[0], offset
            offset += len(line) + 1
        return None

    def test_what_was_told_is_found_in_its_transcript_if_the_runtime_shows_it(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        text_and_offset = self.told(fixture)
        assert bool(text_and_offset) is fixture.runtime.SHOWS_WHAT_WAS_TOLD
        if text_and_offset:
            path = fixture.laid_out(tmp_path)
            session = OwnSession("own", fixture.runtime, str(tmp_path / "own.json"), str(path))
            behind = SessionState(ReadCursors({"other": ReadCursor(7)}))
            before = with_last(SessionState(), behind, text_and_offset[0], session, 1.0)
            assert before.last is not None
            before.last.offset = 0  # the transcript ended there when it was told
            delivery = delivered(before, session)
            assert delivery is not None
            assert (delivery.text, delivery.acknowledged) == (text_and_offset[0], True)
            after = resolved(before, session)
            assert after is not None
            assert after.cursors.get("other") == ReadCursor(7)

    def test_of_a_prompt_that_nothing_follows_it_is_not_known_yet(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        text_and_offset = self.told(fixture)
        if text_and_offset is None:
            pytest.skip("it shows nothing of hooks")
        path = fixture.laid_out(tmp_path)
        content = path.read_bytes()
        path.write_bytes(content[: content.index(b"\n", text_and_offset[1]) + 1])
        session = OwnSession("own", fixture.runtime, str(tmp_path / "own.json"), str(path))
        before = with_last(SessionState(), SessionState(), text_and_offset[0], session, 1.0)
        assert before.last is not None
        before.last.offset = 0
        delivery = delivered(before, session)
        assert delivery is not None
        assert delivery.acknowledged is None

    def test_every_message_goes_on_from_one_that_stands_before_it(self, fixture: Fixture) -> None:
        links = [
            link for record in fixture.records() for link in fixture.found_in(record, ParentLink)
        ]
        seen = {""}
        for link in links:
            assert link.parent_id in seen
            seen.add(link.id)
        assert sum(link.is_message for link in links) >= len(fixture.own["ids"])


class TestTitles:
    def test_the_title_is_the_one_that_the_user_gave(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        assert describe(fixture.runtime, str(fixture.laid_out(tmp_path))).title == TITLE

    def test_a_session_without_a_title_goes_by_its_first_prompt(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        lines = [line for line in fixture.lines() if TITLE.encode() not in line]
        (tmp_path / "t.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        assert describe(fixture.runtime, str(tmp_path / "t.jsonl")).title == "How do I deploy this?"

    def test_the_head_tells_the_first_entry_prompt_and_time(self, fixture: Fixture) -> None:
        with fixture.opened(fixture.path()) as (_, descriptor):
            head = TranscriptHead(fixture.runtime, descriptor)
        assert (head.first_id, head.prompt) == (fixture.own["ids"][0], "How do I deploy this?")
        assert head.first_time == epoch_seconds(BEGAN)


class TestForks:
    def test_a_fork_marks_what_it_copied_which_keeps_its_id(self, fixture: Fixture) -> None:
        path, copies = fixture.path("fork.jsonl"), fixture.own.get("fork_copies", True)
        entries = [entry for entry in fixture.conversation(path) if entry]
        copied = [entry for entry in entries if entry.is_copy]
        if copies == "unmarked":
            check_story(path, entries, FORK)
            assert copied == []
            copied = [entry for entry in entries if entry.id in fixture.own["ids"]]
            assert said(copied) == FIRST_TURN, "fork.jsonl: expected the ids of the first turn"
            return
        check_story(path, copied, FIRST_TURN if copies else [])
        check_story(path, entries[len(copied) :], FORK[len(FIRST_TURN) :])
        assert [entry.id for entry in copied] == fixture.own["ids"][: len(copied)]


class TestDamage:
    def test_glued_records_are_read_torn_ones_counted_and_a_whole_last_one_needs_no_line_feed(
        self, fixture: Fixture
    ) -> None:
        with fixture.opened(fixture.path("torn.jsonl")) as (reader, descriptor):
            entries = list(reader.conversation(descriptor))
        assert [entry and entry.text for entry in entries] == ["one", "two", "three", "four"]
        assert reader.unreadable == 1
        # backward
        complete, unreadable = last_entries(
            fixture.runtime, str(fixture.path("torn.jsonl")), 9, None
        )
        assert ([entry.text for entry in complete], unreadable) == (["one", "two", "three"], 1)

    def test_a_file_that_ends_anywhere_holds_what_was_complete(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        content = fixture.path().read_bytes()
        whole = [entry for entry in fixture.conversation(fixture.path()) if entry]
        path = tmp_path / "t.jsonl"
        for end in [*range(0, len(content), 97), len(content) - 1]:
            path.write_bytes(content[:end])
            entries = [entry for entry in fixture.conversation(path) if entry]
            assert [entry.text for entry in entries] == [
                entry.text for entry in whole[: len(entries)]
            ]
            complete = [entry for entry in whole if content.find(b"\n", entry.offset) < end]
            assert len(entries) >= len(complete)

    def test_lines_that_are_no_records_cost_themselves_only(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        first, *lines = fixture.lines()
        noise = [b"", b"{broken", b"[1]", b'"text"', b"\xff\xfe", b"null"]
        spoiled = [first] + [
            part for number, line in enumerate(lines) for part in (noise[number % len(noise)], line)
        ]
        path = tmp_path / "t.jsonl"
        path.write_bytes(b"\n".join(spoiled) + b"\n")
        assert said([entry for entry in fixture.conversation(path) if entry]) == CONVERSATION

    def test_orjson_and_the_scanner_of_the_standard_library_give_the_same(
        self, fixture: Fixture
    ) -> None:
        for name in ("conversation.jsonl", "torn.jsonl"):
            assert [quick_json.decode_line(line) for line in fixture.lines(name)] == [
                decode_line(line) for line in fixture.lines(name)
            ]


class TestFilters:
    """Lines that are not decoded, most of a transcript's bytes, have no content that is missed."""

    def test_a_line_that_is_left_out_holds_nothing_that_is_wanted_and_nothing_else_is_looked_for(
        self, fixture: Fixture
    ) -> None:
        for wanted in (MESSAGES | CALLS, MESSAGES, RESULTS, INJECTED, LINKS, USAGE):
            left_out = [
                line
                for line in fixture.lines()
                if not fixture.runtime.records.prefilter(line, wanted)
            ]
            assert left_out or wanted == LINKS
            for line in left_out:
                events = fixture.found_in(decode_line(line)[0][0], object, wanted)
                assert not [
                    event
                    for event in events
                    if not isinstance(event, Entry) or event.text or wanted.calls
                ]
        kinds = (MESSAGES | CALLS, RESULTS, INJECTED, LINKS, TURNS, USAGE)
        for record in fixture.records():
            alone = [
                str(event) for wanted in kinds for event in fixture.found_in(record, object, wanted)
            ]
            assert sorted(alone) == sorted(map(str, fixture.found_in(record, object)))

    def test_a_prompt_that_is_glued_to_a_result_is_read(self, fixture: Fixture) -> None:
        first, *lines = fixture.lines()
        prompt = lines[number_of_thanks(fixture) - 1]
        for line in [
            line for line in lines if fixture.found_in(decode_line(line)[0][0], CallResult)
        ]:
            entries, _ = fixture.entries_in([first, line + prompt])
            assert [entry.text for entry in entries if entry.text == "Thanks!"]

    def test_a_prompt_behind_a_record_that_was_torn_anywhere_is_read_and_the_torn_one_counted(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        first, *lines = fixture.lines()
        number = number_of_thanks(fixture) - 1
        path = tmp_path / "t.jsonl"
        for torn in [line for line in lines[:number] if len(line) > 1]:
            for cut in range(1, len(torn), max(1, len(torn) // 7)):
                glued = torn[:cut] + lines[number]
                path.write_bytes(
                    b"\n".join([first, *lines[:number], glued, *lines[number + 1 :]]) + b"\n"
                )
                for with_tools in (True, False):
                    entries = [
                        entry
                        for entry in fixture.conversation(path, with_tools=with_tools)
                        if entry
                    ]
                    assert entries[-2].text == "Thanks!", glued
                    assert entries[0].text == CONVERSATION[0][1]
                with fixture.opened(path) as (reader, descriptor):
                    entries = list(reader.from_end(descriptor))
                assert [entries[1].text, entries[-1].text] == ["Thanks!", CONVERSATION[0][1]], glued
                assert reader.unreadable == 1


class TestUsage:
    def test_an_answer_says_what_it_took_and_of_which_model(self, fixture: Fixture) -> None:
        model, usages = "", set()
        for record in fixture.records():
            for usage in fixture.found_in(record, ModelUsage):
                model = usage.model or model
                if usage.tokens:
                    usages.add((model, usage.input, usage.output, usage.cached))
        counted = fixture.own["usage"]
        assert sorted(map(list, usages)) == ([] if counted is None else [counted])

    def test_odd_numbers_count_as_none(self, fixture: Fixture) -> None:
        for line in fixture.lines():
            for odd in (b'"many"', b"-5", b"true", b"null", b"[]", b"1e9", b"9" * 400):
                [record] = decode_line(
                    re.sub(rb"(?i)(tokens|count|put|putOther)\": ?\d+", rb'\1":' + odd, line)
                )[0]
                assert not any(
                    usage.input + usage.output for usage in fixture.found_in(record, ModelUsage)
                )


class TestTurns:
    def test_a_prompt_is_known_by_the_id_that_its_sender_gave(self, fixture: Fixture) -> None:
        prompt_ids = [
            event.id for record in fixture.records() for event in fixture.found_in(record, PromptId)
        ]
        assert [
            prompt_id for prompt_id in prompt_ids if prompt_id in fixture.own["ids"]
        ] == fixture.own["prompt_ids"]

    def test_the_reply_that_ends_a_turn_is_told_from_those_that_do_not(
        self, fixture: Fixture
    ) -> None:
        replies = [
            reply for record in fixture.records() for reply in fixture.found_in(record, Reply)
        ]
        ends = [reply.text for reply in replies if reply.ends_turn]
        assert [text for text in ends if (("assistant", text)) in CONVERSATION] == fixture.own[
            "turn_ends"
        ]


def number_of_thanks(fixture: Fixture) -> int:
    """Return the number of the line with the last prompt."""
    lines = enumerate(zip(fixture.lines(), fixture.records()))
    return next(
        n
        for n, (line, record) in lines
        if b"Thanks!" in line and fixture.found_in(record, PromptId)
    )
