"""Filtering and exchanges: the parts of a conversation for a model, in pieces of suitable size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import share
from hypothesis import given, settings
from hypothesis import strategies as some
from records import PiSession, assistant, user, write

from bench.research.filtering import measured, transcript_entries
from session_memory.common.text.tokens import estimated_tokens
from session_memory.history.filtering import (
    GOES_ON,
    WENT_ON,
    _size_text,
    chunks,
    exchanges,
    filtered,
)
from session_memory.history.store.values import StoredEntry
from session_memory.sessions.runtimes.table import all_runtimes
from session_memory.sessions.settings.sections import Filtering, MemorySettings

ROOT = Path(__file__).resolve().parents[2]
TRANSCRIPTS = ROOT.parent / "shared" / "transcripts"
CWD = "/srv/agent"


def said(role: str, text: str, number: int = 1) -> StoredEntry:
    return StoredEntry(number, role, text, 1000 * number, CWD, 0)


def used(tool: str, kind: str, argument: str, number: int = 1, **ended: object) -> StoredEntry:
    return said("tool", argument, number)._replace(tool=tool, kind=kind, **ended)


class TestLines:
    def test_text_is_kept_whole_and_tools_as_a_line(self):
        for entry, line in [
            (said("user", "Why?\n\nTell me."), "User: Why?\n\nTell me."),
            (said("assistant", "Because."), "Assistant: Because."),
            (
                used(
                    "Read",
                    "read",
                    "/srv/agent/src/a.py",
                    outcome="ok",
                    error="",
                    result_size=48_000,
                    result_lines=2134,
                ),
                "Action: Read(src/a.py) -> file read, 2,134 lines, 48 KB",
            ),
            (
                used(
                    "Bash",
                    "command",
                    "npm test",
                    outcome="ok",
                    error="",
                    result_size=480,
                    result_lines=1,
                ),
                "Action: Bash(npm test) -> ok, 1 line, 480 B",
            ),
            (
                used(
                    "Edit",
                    "edit",
                    "/elsewhere/b.py",
                    outcome="ok",
                    error="",
                    result_size=900,
                    result_lines=40,
                ),
                "Action: Edit(/elsewhere/b.py) -> file changed",
            ),
            (
                used(
                    "Bash",
                    "command",
                    "npm test",
                    outcome="error",
                    error="TypeError: x\nis undefined",
                ),
                "Action: Bash(npm test) -> error: TypeError: x is undefined",
            ),
            (
                used("mcp__github__search", "other", "is:open", outcome="", error=""),
                "Action: mcp__github__search(is:open)",
            ),
            (
                used("TodoWrite", "other", "", outcome="ok", error="", result_size=0),
                "Action: TodoWrite() -> ok",
            ),
            (used("Bash", "command", "ls", outcome="error", error=""), "Action: Bash(ls) -> error"),
        ]:
            assert filtered([entry], Filtering()) == line

    def test_parameters_and_errors_are_capped(self):
        long = used("Bash", "command", "echo " + "x" * 900, outcome="error", error="E" * 900)
        line = filtered([long], Filtering(max_parameter_chars=50, max_output_summary_chars=30))
        parameter, _, ended = line.removeprefix("Action: Bash(").partition(") -> ")
        assert (len(parameter), len(ended)) == (50, 30)

    def test_each_kind_can_be_left_out(self):
        for filtering, speakers in [
            (Filtering(), ["User", "Assistant", "Action"]),
            (Filtering(keep_user_messages=False), ["Assistant", "Action"]),
            (Filtering(keep_agent_responses=False), ["User", "Action"]),
            (Filtering(keep_tool_structure=False), ["User", "Assistant"]),
        ]:
            entries = [said("user", "a"), said("assistant", "b"), used("Bash", "command", "c")]
            assert [
                line.partition(":")[0] for line in filtered(entries, filtering).splitlines()
            ] == speakers

    def test_sizes_are_told_in_the_unit_that_fits(self):
        for characters, text in [
            (1, "1 B"),
            (999, "999 B"),
            (1000, "1 KB"),
            (999_499, "999 KB"),
            (1_234_567, "1.2 MB"),
        ]:
            assert _size_text(characters) == text


class TestExchanges:
    def test_an_exchange_is_what_the_user_said_and_all_replies(self):
        roles = "user assistant tool assistant user user tool assistant".split()  # noqa: SIM905
        found = exchanges([said(role, "x", number) for number, role in enumerate(roles)])
        assert [[entry.id for entry in exchange] for exchange in found] == [
            [0, 1, 2, 3],
            [4, 5, 6, 7],
        ]

    def test_what_comes_before_the_user_speaks_is_one_too(self):
        found = exchanges([said("assistant", "x", 1), said("user", "y", 2)])
        assert [[entry.id for entry in exchange] for exchange in found] == [[1], [2]]

    def test_each_is_a_chunk_with_its_time_and_its_entries(self):
        entries = [said("user", "a", 1), said("assistant", "b", 2), said("user", "c", 3)]
        [first, second] = chunks(entries, Filtering(), 1000)
        assert first == (
            "User: a\nAssistant: b",
            estimated_tokens("User: a\nAssistant: b"),
            0,
            0,
            1,
            2,
            1000,
        )
        assert second[2:] == (1, 0, 3, 3, 3000)

    def test_one_of_which_nothing_is_left_is_no_chunk(self):
        entries = [used("Bash", "command", "ls", 1), said("user", "c", 2)]
        assert [
            chunk.text for chunk in chunks(entries, Filtering(keep_tool_structure=False), 1000)
        ] == ["User: c"]

    def test_a_large_one_is_split_between_entries(self):
        entries = [
            said("user", "u" * 200, 1),
            said("assistant", "a" * 200, 2),
            said("assistant", "b" * 200, 3),
        ]
        found = chunks(entries, Filtering(), 200)
        assert [(chunk.part, chunk.first_item, chunk.last_item) for chunk in found] == [
            (0, 1, 2),
            (1, 3, 3),
        ]

    def test_a_large_entry_is_split_after_a_paragraph_with_marks_at_the_seam(self):
        paragraphs = ["first " * 30, "second " * 30, "third " * 30]
        found = chunks([said("user", "\n\n".join(paragraphs))], Filtering(), 200)
        assert len(found) > 1
        assert found[0].text.endswith(f"second\n{GOES_ON}")
        assert all(chunk.text.startswith(WENT_ON) for chunk in found[1:])
        assert all(chunk.text.endswith(GOES_ON) for chunk in found[:-1])

    @settings(max_examples=share.some(100, 30))
    @given(
        some.lists(
            some.tuples(some.sampled_from(["user", "assistant", "tool"]), some.text(max_size=600)),
            min_size=1,
            max_size=6,
        ),
        some.integers(min_value=100, max_value=300),
    )
    def test_no_chunk_is_too_large_and_no_word_is_lost(self, spoken, limit):
        entries = [said(role, text, number) for number, (role, text) in enumerate(spoken, 1)]
        found = chunks(entries, Filtering(), limit)
        assert all(chunk.tokens <= limit for chunk in found)
        kept = "".join(chunk.text for chunk in found)
        for mark in (GOES_ON, WENT_ON, "User: ", "Assistant: "):
            kept = kept.replace(mark, "")
        whole = filtered(entries, Filtering())
        for mark in ("User: ", "Assistant: "):
            whole = whole.replace(mark, "")
        assert "".join(kept.split()) == "".join(
            whole.replace(GOES_ON, "").replace(WENT_ON, "").split()
        )


class TestMeasuring:
    def test_before_is_all_that_the_messages_hold_and_after_what_is_left(self, tmp_path):
        call = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Read",
            "input": {"file_path": "/srv/agent/a.py"},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": "toolu_1",
            "content": [{"type": "text", "text": "z" * 4000}],
        }
        path = write(
            tmp_path / "a.jsonl",
            user("Read it"),
            assistant({"type": "thinking", "thinking": "Hm.", "signature": "x" * 99}),
            assistant(call),
            user([result, {"type": "image", "source": {"data": "x" * 99}}]),
            assistant("Done."),
        )
        size = measured(str(path), MemorySettings())
        parameters = json.dumps(call["input"])
        assert (
            size.characters_before
            == len("Read it" + "Hm." + parameters + "[image]" + "Done.") + 4000
        )
        left = "User: Read it\nAction: Read(a.py) -> file read, 1 line, 4 KB\nUser: [image]\nAssistant: Done."
        assert filtered(transcript_entries(str(path)), Filtering()) == left
        assert size.characters_after == len(left)
        assert size.file_bytes == path.stat().st_size
        assert (size.exchanges, size.chunks) == (2, 2)

    def test_a_pi_session_is_measured_alike(self, tmp_path):
        session = PiSession()
        session.user("Look")
        session.assistant(("bash", {"command": "ls"}))
        session.tool_result("q" * 500)
        session.assistant("Nothing there.")
        size = measured(str(session.write(tmp_path)), MemorySettings())
        assert size.characters_before == 4 + len('{"command": "ls"}') + 500 + len("Nothing there.")
        assert size.exchanges == 1

    def test_a_session_of_every_runtime_is_measured(self):
        for runtime in all_runtimes():
            path = (
                ROOT
                / "tests"
                / "sessions"
                / "runtimes"
                / "fixtures"
                / runtime.name
                / "conversation.jsonl"
            )
            size = measured(str(path), MemorySettings())
            assert size.characters_before > 0.7 * size.characters_after > 100, runtime.name

    def test_a_file_of_nobody_is_left_out(self, tmp_path):
        path = tmp_path / "a.jsonl"
        path.write_text('{"some": "thing"}\n')
        assert measured(str(path), MemorySettings()) is None

    @pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="../shared/transcripts is not there")
    @pytest.mark.parametrize("runtime", ["claude", "pi"])
    def test_of_real_sessions_most_is_left_out(self, runtime):
        largest = max(
            (TRANSCRIPTS / runtime).rglob("*.jsonl"), key=lambda path: path.stat().st_size
        )
        size = measured(str(largest), MemorySettings())
        assert size.reduction > 0.85
