"""Checks habits that some programs have: each case is a small transcript in the folder `cases`.

Add those that your program has; the others are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...history.store.ingest.extract import Extractor
from ...sessions.runtimes.records import CallResult
from .fixture import Fixture, check_story, said

PROMPT, ANSWER = ("user", "How do I deploy this?"), ("assistant", "Deployed.")
NEXT_PROMPT, NEXT_ANSWER = ("user", "Go on."), ("assistant", "You are welcome.")


class TestCases:
    def test_a_failed_command_without_a_flag_counts_as_failed(self, fixture: Fixture) -> None:
        """The transcript has one command that failed; only its text or exit code shows that."""
        path = case(fixture, "failed-command")
        results = [
            (number, result)
            for number, record in enumerate(fixture.records(f"cases/{path.name}"), 1)
            for result in fixture.found_in(record, CallResult)
        ]
        assert results, f"{path.name}: expected the result of a command, and no record has one"
        number, result = results[-1]
        assert result.has_failed, f"{path.name}, line {number}: expected a failed command"

    def test_a_stopped_answer_does_not_hide_the_next_turn(self, fixture: Fixture) -> None:
        """The user stopped the first answer; its text may be there or not, and "Go on." follows."""
        path = case(fixture, "stopped-answer")
        entries = [entry for entry in fixture.conversation(path) if entry]
        story = said(entries)
        assert story[:1] == [PROMPT], f"{path.name}: expected {PROMPT} first, read {story[:1]}"
        assert story[-2:] == [NEXT_PROMPT, NEXT_ANSWER], (
            f"{path.name}: expected {NEXT_PROMPT} and {NEXT_ANSWER} at the end, read {story[-2:]}"
        )
        between = [(role, text) for role, text in story[1:-2] if role == "user"]
        assert between == [], f"{path.name}: nobody typed {between}"

    def test_a_message_in_two_records_is_one_message(self, fixture: Fixture) -> None:
        path = case(fixture, "two-records")
        check_story(path, fixture.conversation(path), [PROMPT, ANSWER])

    def test_a_prompt_behind_texts_of_the_program_is_the_prompt_alone(
        self, fixture: Fixture
    ) -> None:
        path = case(fixture, "behind-texts")
        check_story(path, fixture.conversation(path), [PROMPT, ANSWER])

    def test_times_out_of_order_change_no_order_and_lose_nothing(self, fixture: Fixture) -> None:
        """The second turn has earlier times than the first."""
        path = case(fixture, "times-out-of-order")
        story = [PROMPT, ANSWER, NEXT_PROMPT, NEXT_ANSWER]
        check_story(path, fixture.conversation(path), story)
        size = path.stat().st_size
        with fixture.opened(path) as (_, descriptor):
            stored = Extractor(fixture.runtime, descriptor, "").read(0, size, size)
        assert [(entry.role, entry.text) for entry in stored.entries] == story, path.name


def case(fixture: Fixture, name: str) -> Path:
    """Return the transcript of a case; skip if the fixture does not have it."""
    path = fixture.path(f"cases/{name}.jsonl")
    if not path.exists():
        pytest.skip(f"no cases/{name}.jsonl: add it if the program writes such transcripts")
    return path
