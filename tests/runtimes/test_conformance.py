"""What holds for every runtime: each one's folder in `fixtures/` tells the same story in its own records.

A new runtime is a folder of modules, a line in the table, a fixture folder, and these tests. `expected.json` says what
is its own: ids, names of tools, events, and whether a fork copies. The files are `conversation.jsonl`, `fork.jsonl` (a
fork of it after its first turn), `names.index` (the names that users gave, where they are not in the transcripts; it
lies at `names_file` in the runtime's directory), `torn.jsonl` (two records on one line, one that was cut off, the last without a line feed), and a sub-agent's
transcript where the runtime writes one; `subagent` names it, or the conversation where that has it too.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conformance_scene import (
    BEFORE_COMPACTION,
    BEGAN,
    CONVERSATION,
    FIRST_TURN,
    FORK,
    TITLE,
    UNSAID,
    Fixture,
    fixture_of,
    said,
)

from session_memory.activity.acknowledgement import delivered, settle, with_last
from session_memory.activity.changes import OwnSession
from session_memory.activity.cursor_file import LAST
from session_memory.host.recovery import recover
from session_memory.runtimes import all_runtimes
from session_memory.session_monitor import parse_jsonl_entries, read_session_log
from session_memory.store.ingest.extract import Extractor
from session_memory.system import quick_json
from session_memory.system.json import decode_line
from session_memory.text.timestamps import epoch_seconds
from session_memory.transcripts.gate import describe
from session_memory.transcripts.lines import lines_forward
from session_memory.transcripts.log import last_entries
from session_memory.transcripts.reader import TranscriptHead, TranscriptReader


@pytest.fixture(params=all_runtimes(), ids=lambda runtime: runtime.name)
def fixture(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    return fixture_of(request.param, tmp_path, monkeypatch)


class TestEntries:
    def test_a_transcript_read_forward_tells_what_was_said_and_where_it_was_compacted(self, fixture):
        found = fixture.conversation(fixture.path())
        compaction = found.index(None)
        assert said(found[:compaction]) == BEFORE_COMPACTION
        assert said(found[compaction + 1 :]) == CONVERSATION[len(BEFORE_COMPACTION) :]

    def test_read_backward_it_tells_the_same(self, fixture):
        with fixture.opened(fixture.path()) as (reader, descriptor):
            backward = list(reader.from_end(descriptor))[::-1]
        assert backward == [entry for entry in fixture.conversation(fixture.path()) if entry]

    def test_its_lines_alone_tell_the_same(self, fixture):
        found = parse_jsonl_entries(fixture.lines(), fixture.own["format"])
        assert said(found) == CONVERSATION
        assert found.unreadable == 0

    def test_without_tools_only_what_has_text_is_told(self, fixture):
        found = fixture.conversation(fixture.path(), with_tools=False)
        assert [(entry.role, entry.text) for entry in found if entry] == [
            (role, text) for role, text in CONVERSATION if role != "tool"
        ]

    def test_the_last_entries_are_the_end_of_all(self, fixture):
        found, unreadable = last_entries(fixture.runtime, str(fixture.path()), 3, None)
        assert said(found) == CONVERSATION[-3:]
        assert unreadable == 0

    def test_nothing_is_told_that_nobody_said(self, fixture):
        content = fixture.path().read_text()
        assert any(text in content for text in UNSAID)
        told = str(fixture.conversation(fixture.path()))
        assert [text for text in UNSAID if text in told] == []

    def test_what_a_sub_agent_did_can_be_read_and_is_none_of_the_conversation(self, fixture):
        if not fixture.own["subagent"]:
            assert fixture.runtime.sub_agents(str(fixture.path())) == []
            pytest.skip("it writes nothing of sub-agents")
        path = fixture.path(fixture.own["subagent"])
        content = path.read_bytes()
        reader = TranscriptReader(fixture.runtime, content.split(b"\n")[0], of_sub_agents=True)
        with path.open("rb") as file:
            done = [one for one in reader.forward(lines_forward(file.fileno(), 0, len(content))) if one]
        assert "".join(entry.text for entry in done).endswith(("are clean.", "are empty."))
        assert {entry.cwd for entry in done} == {fixture.own["cwd"]}
        assert {entry.id for entry in done}.isdisjoint(entry.id for entry in fixture.conversation(path) if entry)
        with fixture.opened(path) as (backward, descriptor):
            assert {entry.id for entry in done}.isdisjoint(entry.id for entry in backward.from_end(descriptor))

    def test_each_entry_has_its_id_time_directory_and_the_offset_of_its_line(self, fixture):
        content = fixture.path().read_bytes()
        entries = [entry for entry in fixture.conversation(fixture.path()) if entry]
        assert [entry.id for entry in entries] == fixture.own["ids"]
        assert entries[0].timestamp == epoch_seconds(BEGAN)
        assert [entry.timestamp for entry in entries] == sorted(entry.timestamp for entry in entries)
        assert {entry.cwd for entry in entries} == {fixture.own["cwd"]}
        assert not any(entry.is_copy for entry in entries)
        for entry in entries:
            line = content[entry.offset : content.index(b"\n", entry.offset)]
            assert all(part.encode() in line for part in entry.id.split(":"))
            assert entry.offset == 0 or content[entry.offset - 1 : entry.offset] == b"\n"

    def test_a_tool_use_has_its_name_and_the_argument_that_tells_most(self, fixture):
        entries = [entry for entry in fixture.conversation(fixture.path()) if entry]
        tools = [tool for entry in entries for tool in entry.tools]
        assert {tool.kind: tool.name for tool in tools} == fixture.own["tools"]
        assert {tool.kind: tool.argument for tool in tools} == fixture.own["arguments"]
        assert [tool.call_id for tool in tools] == list(fixture.own["results"])

    def test_a_log_of_it_can_be_read(self, fixture):
        log = read_session_log(jsonl_path=fixture.path(), format=fixture.own["format"])
        assert log.index("How do I deploy this?") < log.index("make deploy") < log.index("You are welcome.")


class TestResults:
    def test_each_tool_call_has_its_result_which_says_whether_it_failed(self, fixture):
        found = {}
        with fixture.opened(fixture.path()) as (reader, descriptor):
            for item in reader.forward(lines_forward(descriptor, 0, 1 << 40), with_results=True):
                if isinstance(item, list):
                    found.update({call_id: is_error for call_id, is_error, _ in item})
        assert found == fixture.own["results"]

    def test_results_taken_out_of_a_line_are_those_of_its_record(self, fixture):
        records = fixture.runtime.records
        for line in fixture.lines():
            (record,), _ = decode_line(line)
            taken = records.results_in(line, decode_line)
            assert taken is None or taken == records.results(record) != []
            assert records.may_bring_results(line) or records.results(record) == []

    def test_the_store_takes_entries_and_outcomes_of_tools(self, fixture):
        with fixture.opened(fixture.path()) as (_, descriptor):
            size = fixture.path().stat().st_size
            extract = Extractor(fixture.runtime, descriptor, "").read(0, size, size)
        assert [entry.text for entry in extract.entries if entry.text] == [
            text for role, text in CONVERSATION if role != "tool"
        ]
        outcomes = [tool.ended.outcome for entry in extract.entries for tool in entry.tools if tool.ended]
        assert outcomes == ["ok", "error", "ok"]
        title = "" if fixture.own.get("names_file") else TITLE
        assert (extract.title[1], extract.cwd, extract.unreadable) == (title, fixture.own["cwd"], 0)
        assert extract.is_last


class TestDelivery:
    """Where a transcript shows what a hook told, it shows whether the agent got it."""

    def told(self, fixture):
        """The first text that a hook told, with the offset of its line; None where no record shows one."""
        offset = 0
        for line in fixture.lines():
            (record,), _ = decode_line(line)
            found = fixture.runtime.records.told(record)
            if found:
                return found[0], offset
            offset += len(line) + 1
        return None

    def test_what_was_told_is_found_in_its_transcript_if_the_runtime_shows_it(self, fixture, tmp_path):
        told = self.told(fixture)
        assert bool(told) is fixture.runtime.SHOWS_WHAT_WAS_TOLD
        if told:
            path = fixture.laid_out(tmp_path)
            own = OwnSession("own", fixture.runtime, str(tmp_path / "own.json"), str(path))
            behind = {"other": {"offset": 7}}
            before = with_last({}, behind, told[0], own, 1.0, has_collisions=False)
            before[LAST]["offset"] = 0  # the transcript ended there when it was told
            found = delivered(before, own)
            assert (found.text, found.acknowledged) == (told[0], True)
            assert settle(before, own).cursors["other"] == behind["other"]

    def test_of_a_prompt_that_nothing_follows_it_is_not_known_yet(self, fixture, tmp_path):
        told = self.told(fixture)
        if told is None:
            pytest.skip("it shows nothing of hooks")
        path = fixture.laid_out(tmp_path)
        content = path.read_bytes()
        path.write_bytes(content[: content.index(b"\n", told[1]) + 1])
        own = OwnSession("own", fixture.runtime, str(tmp_path / "own.json"), str(path))
        before = with_last({}, {}, told[0], own, 1.0, has_collisions=False)
        before[LAST]["offset"] = 0
        assert delivered(before, own).acknowledged is None

    def test_a_line_that_does_not_show_it_or_links_nothing_is_not_decoded(self, fixture):
        records = fixture.runtime.records
        for line in fixture.lines():
            (record,), _ = decode_line(line)
            assert records.may_show_told(line) or records.told(record) is None
            assert records.may_link(line) or records.link(record) is None

    def test_every_message_goes_on_from_one_that_stands_before_it(self, fixture):
        links = [fixture.runtime.records.link(decode_line(line)[0][0]) for line in fixture.lines()]
        seen = {""}
        for record_id, parent_id, _ in filter(None, links):
            assert parent_id in seen
            seen.add(record_id)
        assert sum(is_message for _, _, is_message in filter(None, links)) >= len(fixture.own["ids"])


class TestTitles:
    def test_the_title_is_the_one_that_the_user_gave(self, fixture, tmp_path):
        assert describe(fixture.runtime, str(fixture.laid_out(tmp_path))).title == TITLE

    def test_a_session_without_a_title_goes_by_its_first_prompt(self, fixture, tmp_path):
        lines = [line for line in fixture.lines() if TITLE.encode() not in line]
        (tmp_path / "t.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        assert describe(fixture.runtime, str(tmp_path / "t.jsonl")).title == "How do I deploy this?"

    def test_the_head_tells_the_first_entry_prompt_and_time(self, fixture):
        with fixture.opened(fixture.path()) as (_, descriptor):
            head = TranscriptHead(fixture.runtime, descriptor)
        assert (head.first_id, head.prompt) == (fixture.own["ids"][0], "How do I deploy this?")
        assert head.first_time == epoch_seconds(BEGAN)


class TestForks:
    def test_a_fork_marks_what_it_copied(self, fixture):
        found = [entry for entry in fixture.conversation(fixture.path("fork.jsonl")) if entry]
        if not fixture.own.get("fork_copies", True):
            assert said(found) == FORK[len(FIRST_TURN) :]
            assert not any(entry.is_copy for entry in found)
            return
        assert said(found) == FORK
        copied = [entry for entry in found if entry.is_copy]
        assert said(copied) == FIRST_TURN
        assert said(found[len(copied) :]) == FORK[len(FIRST_TURN) :]

    def test_what_was_copied_keeps_its_id(self, fixture):
        found = [entry for entry in fixture.conversation(fixture.path("fork.jsonl")) if entry and entry.is_copy]
        assert [entry.id for entry in found] == fixture.own["ids"][: len(found)]


class TestDamage:
    def test_glued_records_are_read_torn_ones_counted_and_a_whole_last_one_needs_no_line_feed(self, fixture):
        with fixture.opened(fixture.path("torn.jsonl")) as (reader, descriptor):
            found = list(reader.conversation(descriptor))
        assert [entry.text for entry in found] == ["one", "two", "three", "four"]
        assert reader.unreadable == 1

    def test_backward_only_complete_lines_are_read(self, fixture):
        found, unreadable = last_entries(fixture.runtime, str(fixture.path("torn.jsonl")), 9, None)
        assert ([entry.text for entry in found], unreadable) == (["one", "two", "three"], 1)

    def test_a_file_that_ends_anywhere_holds_what_was_complete(self, fixture, tmp_path):
        content = fixture.path().read_bytes()
        whole = [entry for entry in fixture.conversation(fixture.path()) if entry]
        path = tmp_path / "t.jsonl"
        for end in [*range(0, len(content), 97), len(content) - 1]:
            path.write_bytes(content[:end])
            found = [entry for entry in fixture.conversation(path) if entry]
            assert [entry.text for entry in found] == [entry.text for entry in whole[: len(found)]]
            complete = [entry for entry in whole if content.find(b"\n", entry.offset) < end]
            assert len(found) >= len(complete)

    def test_lines_that_are_no_records_cost_themselves_only(self, fixture, tmp_path):
        first, *lines = fixture.lines()
        noise = [b"", b"{broken", b"[1]", b'"text"', b"\xff\xfe", b"null"]
        spoiled = [first] + [part for number, line in enumerate(lines) for part in (noise[number % len(noise)], line)]
        path = tmp_path / "t.jsonl"
        path.write_bytes(b"\n".join(spoiled) + b"\n")
        assert said([entry for entry in fixture.conversation(path) if entry]) == CONVERSATION

    def test_orjson_and_the_scanner_of_the_standard_library_give_the_same(self, fixture):
        for name in ("conversation.jsonl", "torn.jsonl"):
            assert [quick_json.decode_line(line) for line in fixture.lines(name)] == [
                decode_line(line) for line in fixture.lines(name)
            ]


class TestFilters:
    """Lines that are not decoded hold nothing: most of a transcript's bytes."""

    def test_a_line_that_does_not_matter_holds_no_entry_title_or_compaction(self, fixture):
        records = fixture.runtime.records
        left_out = [line for line in fixture.lines() if not records.may_matter(line)]
        assert left_out
        for line in left_out:
            (record,), _ = decode_line(line)
            found = records.entry(record, 0) or records.title(record) or records.is_compaction(record)
            assert not found

    def test_without_tools_a_line_that_does_not_matter_holds_no_text_either(self, fixture):
        records = fixture.runtime.records
        for line in fixture.lines():
            (record,), _ = decode_line(line)
            entry = records.entry(record, 0)
            holds_something = (entry and entry.text) or records.title(record) or records.is_compaction(record)
            assert records.may_matter(line, False) or not holds_something

    def test_a_prompt_that_is_glued_to_a_result_is_read(self, fixture):
        records = fixture.runtime.records
        first, *lines = fixture.lines()
        prompt = next(line for line in lines if records.prompt_id(decode_line(line)[0][0]) and b"Thanks!" in line)
        for line in [line for line in lines if records.results(decode_line(line)[0][0])]:
            found = parse_jsonl_entries([first, line + prompt], fixture.own["format"])
            assert [entry.text for entry in found if entry.text == "Thanks!"]

    def test_a_prompt_behind_a_record_that_was_torn_anywhere_is_read_and_the_torn_one_counted(self, fixture, tmp_path):
        records = fixture.runtime.records
        first, *lines = fixture.lines()
        number = next(
            n for n, one in enumerate(lines) if records.prompt_id(decode_line(one)[0][0]) and b"Thanks!" in one
        )
        path = tmp_path / "t.jsonl"
        for torn in [line for line in lines[:number] if len(line) > 1]:
            for cut in range(1, len(torn), max(1, len(torn) // 40)):
                glued = torn[:cut] + lines[number]
                path.write_bytes(b"\n".join([first, *lines[:number], glued, *lines[number + 1 :]]) + b"\n")
                for with_tools in (True, False):
                    found = [one for one in fixture.conversation(path, with_tools=with_tools) if one]
                    assert found[-2].text == "Thanks!", glued
                    assert found[0].text == CONVERSATION[0][1]
                with fixture.opened(path) as (reader, descriptor):
                    found = list(reader.from_end(descriptor))
                assert [found[1].text, found[-1].text] == ["Thanks!", CONVERSATION[0][1]], glued
                assert reader.unreadable == 1


class TestUsage:
    def test_an_answer_says_what_it_took_and_of_which_model(self, fixture):
        records = fixture.runtime.records
        model, found = "", set()
        for line in fixture.lines():
            usage = records.usage(decode_line(line)[0][0])
            model = usage.model or model if usage else model
            if usage and usage.tokens:
                found.add((model, usage.input, usage.output, usage.cached))
        assert sorted(map(list, found)) == [fixture.own["usage"]]

    def test_a_line_that_brings_no_usage_says_nothing_of_it(self, fixture):
        records = fixture.runtime.records
        left_out = [line for line in fixture.lines() if not records.may_bring_usage(line)]
        assert left_out
        assert not any(records.usage(decode_line(line)[0][0]) for line in left_out)

    def test_odd_numbers_count_as_none(self, fixture):
        records = fixture.runtime.records
        for line in fixture.lines():
            for odd in (b'"many"', b"-5", b"true", b"null", b"[]", b"1e9", b"9" * 400):
                [record] = decode_line(re.sub(rb"(?i)(tokens|count|put)\": ?\d+", rb'\1":' + odd, line))[0]
                usage = records.usage(record)
                assert usage is None or usage.input + usage.output == 0


class TestTurns:
    def test_a_prompt_is_known_by_the_id_that_its_sender_gave(self, fixture):
        records = fixture.runtime.records
        found = [records.prompt_id(decode_line(line)[0][0]) for line in fixture.lines()]
        assert [one for one in found if one in fixture.own["ids"]] == fixture.own["prompt_ids"]

    def test_the_reply_that_ends_a_turn_is_told_from_those_that_do_not(self, fixture):
        replies = [fixture.runtime.records.reply(decode_line(line)[0][0]) for line in fixture.lines()]
        ends = [reply.text for reply in replies if reply and reply.ends_turn]
        assert [text for text in ends if text in dict(map(reversed, CONVERSATION))] == fixture.own["turn_ends"]

    def test_answers_that_a_killed_host_lost_are_found_again(self, fixture):
        first, _, last = fixture.own["prompt_ids"]
        found = recover(fixture.runtime, str(fixture.path()), {first, last})
        assert [answer.text for answer in found.answers] == ["Deployed.", "You are welcome."]
        assert found.begun == set()
        assert recover(fixture.runtime, str(fixture.path()), {"none-of-them"}) == ([], set())
