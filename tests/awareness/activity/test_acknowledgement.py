"""Updates are repeated if the agent did not get them, judged by its transcript, in every runtime."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from records import (
    PiSession,
    append,
    assistant,
    cline_exchange,
    codex_exchange,
    copilot_exchange,
    droid_exchange,
    exchange,
    gemini_exchange,
    hermes_exchange,
    kimi_exchange,
    lines,
    new_id,
    opencode_exchange,
    qwen_exchange,
    record,
    show_told,
    user,
    write,
)

from session_memory.awareness.activity import delivery
from session_memory.awareness.activity.changes import Observation, OwnSession
from session_memory.awareness.activity.delivery import Delivery
from session_memory.awareness.activity.updates import open_update
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.records import INJECTED, Injected
from session_memory.sessions.runtimes.table import all_runtimes, runtime
from session_memory.sessions.settings.compiled import Settings
from session_memory.sessions.transcripts.entries import INTRODUCTION, Session


class Told:
    """A session of a runtime whose prompts are told what one other session does."""

    def __init__(self, root: Path, runtime: Runtime) -> None:
        self.runtime = runtime
        self.own = root / "own.jsonl"
        self.other = root / "other.jsonl"
        self.state = root / "state" / "own.json"
        self.keeps: bool | None = None
        self.process = ""
        self.turn_id = ""
        self.text = ""
        write(self.own, *self.turn("hello", "hi"))
        write(self.other, *self.turn("begin", "done"))

    def turn(self, question: str, answer: str) -> list[dict[str, object]]:
        if self.runtime.name == "cline":
            return cline_exchange(question, answer)
        if self.runtime.name == "codex":
            return codex_exchange(question, answer)[1:]
        if self.runtime.name == "gemini":
            return gemini_exchange(question, answer)
        if self.runtime.family() == "opencode":
            return opencode_exchange(question, answer)
        if self.runtime.name == "copilot":
            return copilot_exchange(question, answer)
        if self.runtime.name == "droid":
            return droid_exchange(question, answer)
        if self.runtime.name == "hermes":
            return hermes_exchange(question, answer)
        if self.runtime.name == "kimi":
            return kimi_exchange(question, answer)
        if self.runtime.name == "qwen-code":
            return qwen_exchange(question, answer)
        if self.runtime.name == "claude-code":
            return exchange(question, answer)
        session = PiSession()
        session.exchange(question, answer)
        return session.records[1:]

    def works(self) -> None:
        """The other session is asked for something, and does it."""
        append(self.other, *self.turn("work", "done"))

    def open(self) -> Delivery:
        own = OwnSession("own", self.runtime, str(self.state), str(self.own))
        own.keeps_transcript, own.prompt_id, own.process = (
            self.keeps,
            self.turn_id or new_id(),
            self.process,
        )
        settings = Settings({})
        self.notes = own.deadline.notes
        others = Observation(own, [Session("other", str(self.other))], settings)
        return open_update(others, now=time.time(), limit=500, introduction=INTRODUCTION)

    def show(self, text: str, *, is_answered: bool = True) -> None:
        show_told(
            self.own,
            json.dumps(self.runtime.context_output(text)).encode(),
            is_answered=is_answered,
        )

    def branch_off(self, before: bytes, *records: dict[str, object]) -> None:
        """What is said next goes on from where the transcript held `before`."""
        content = self.own.read_bytes()
        self.own.write_bytes(before)
        append(self.own, *records)
        self.own.write_bytes(content + self.own.read_bytes()[len(before) :])

    def tell_and_die(self) -> None:
        with self.open() as update:
            self.text = update.text or ""
            update.commit_first()
            raise KeyboardInterrupt

    def prompt(self, *, arrives: bool = True, is_answered: bool = True) -> str:
        """Return the text that a prompt gets, or ''.

        The agent gets it or not, and answers or not."""
        with self.open() as update:
            text = update.text or ""
            update.commit_first()
        if arrives and text:
            self.show(text, is_answered=is_answered)
        if is_answered:
            append(self.own, *self.turn("go on", "yes"))
        return text


@pytest.fixture(
    params=[one for one in all_runtimes() if one.PROMPT_EVENT and one.SHOWS_WHAT_WAS_TOLD],
    ids=lambda runtime: runtime.name,
)
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Told:
    return Told(tmp_path, request.param)


@pytest.fixture
def of_claude(tmp_path: Path) -> Told:
    """For what is the same in all runtimes."""
    return Told(tmp_path, all_runtimes()[0])


def test_what_the_transcript_shows_is_told_once(told: Told) -> None:
    told.works()
    assert "4 messages" in told.prompt()
    assert told.prompt() == ""
    assert told.prompt() == ""


def test_what_a_cancelled_prompt_was_told_is_told_again_with_what_is_new(told: Told) -> None:
    assert "begin" in told.prompt()
    told.works()
    assert "2 messages" in told.prompt(arrives=False, is_answered=False)
    told.works()
    assert "4 messages" in told.prompt(arrives=False, is_answered=False)
    assert "4 messages" in told.prompt()
    assert told.prompt() == ""


def test_a_hook_that_is_killed_after_it_told_is_believed_by_the_transcript_alone(
    told: Told,
) -> None:
    for arrives in (True, False):
        told.works()
        with pytest.raises(KeyboardInterrupt):
            told.tell_and_die()
        if arrives:
            told.show(told.text)
        assert bool(told.prompt()) is not arrives


def test_an_update_that_no_transcript_shows_counts_once_its_hook_has_ended(tmp_path: Path) -> None:
    told = Told(tmp_path, runtime("openclaw"))
    told.works()
    with pytest.raises(KeyboardInterrupt):
        told.tell_and_die()
    assert told.text
    assert told.prompt(arrives=False) == told.text
    assert told.prompt(arrives=False) == ""


def test_a_record_that_comes_late_is_told_twice_and_no_more(told: Told) -> None:
    told.works()
    late = told.prompt(arrives=False, is_answered=False)
    again = told.prompt(arrives=False, is_answered=False)
    for text in (late, again):
        told.show(text)
    assert late
    assert again
    assert told.prompt() == ""


def test_it_is_found_behind_an_image_of_megabytes(told: Told) -> None:
    told.works()
    text = told.prompt(arrives=False, is_answered=False)
    append(told.own, *told.turn("x" * 3_000_000, "seen")[:1])
    told.show(text)
    assert told.prompt() == ""


def test_it_is_found_among_what_else_the_hook_said(told: Told) -> None:
    told.works()
    text = told.prompt(arrives=False, is_answered=False)
    told.show(f"notice\n\n{text}\n\n- a memory")
    assert told.prompt() == ""


def test_it_is_found_after_a_compaction_and_in_what_a_fork_copied(told: Told) -> None:
    told.works()
    assert told.prompt()
    fork = told.own.with_name("fork.jsonl")
    fork.write_bytes(told.own.read_bytes())
    told.own = fork
    assert told.prompt() == ""


def test_a_transcript_that_shows_nothing_of_hooks_counts_what_was_told_after_some_times(
    told: Told,
) -> None:
    """As one of a version of the runtime that does not record them."""
    told.works()
    answered = [bool(told.prompt(arrives=False)) for _ in range(6)]
    assert answered == [True, True, True, True, False, False]
    told.works()
    assert [bool(told.prompt(arrives=False)) for _ in range(2)] == [True, False]
    told.works()
    assert told.prompt()  # it is recorded: from here on nothing counts unseen again
    assert told.prompt() == ""
    told.works()
    assert [bool(told.prompt(arrives=False, is_answered=False)) for _ in range(6)] == [True] * 6


@pytest.mark.parametrize(
    ("keeps", "processes", "answered"),
    [
        (True, ("1",) * 6, [True, True, True, True, False, False]),
        (False, ("", ""), [True, False]),
        (None, ("1", "1"), [True, False]),
        (None, ("1", "2"), [True, True]),
        (None, ("", "", "", "", "", ""), [True, True, True, True, False, False]),
    ],
    ids=[
        "one was to be there",
        "none is kept",
        "its process goes on",
        "another process begins",
        "nothing tells",
    ],
)
def test_without_a_transcript_it_is_told_again_unless_the_agent_must_have_got_it(
    of_claude: Told, keeps: bool | None, processes: tuple[str, ...], answered: list[bool]
) -> None:
    of_claude.own.unlink()
    of_claude.keeps = keeps
    of_claude.works()
    found = []
    for of_claude.process in processes:
        found.append(bool(of_claude.prompt(arrives=False, is_answered=False)))
    assert found == answered


def test_a_prompt_that_was_cancelled_before_the_answer_is_told_again_though_its_record_is_there(
    told: Told,
) -> None:
    """As with Esc: the conversation goes on from what stood before it."""
    told.process = "1"
    told.works()
    before = told.own.read_bytes()
    assert told.prompt(is_answered=False)
    assert told.prompt(arrives=False, is_answered=False)
    told.branch_off(before, *told.turn("another", "yes"))
    assert told.prompt()
    assert told.prompt() == ""


def test_a_conversation_that_another_process_resumes_has_what_stands_unanswered_at_its_end(
    told: Told,
) -> None:
    told.works()
    told.process = "1"
    assert told.prompt(is_answered=False)
    told.process = "2"
    assert told.prompt() == ""


def test_a_prompt_in_the_middle_of_a_turn_does_not_repeat_what_the_turn_is_still_to_record(
    told: Told,
) -> None:
    told.works()
    told.turn_id = "one"
    text = told.prompt(arrives=False, is_answered=False)
    told.works()
    assert told.prompt(arrives=False, is_answered=False) == ""
    append(told.own, *told.turn("go on", "yes")[:1])
    told.show(text)
    assert "2 messages" in told.prompt()


def test_what_is_not_found_as_far_as_the_search_goes_is_told_again_and_the_log_says_so(
    of_claude: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MOST_BYTES", 2 << 20)
    of_claude.works()
    text = of_claude.prompt(arrives=False, is_answered=False)
    append(of_claude.own, *of_claude.turn("x" * 3_000_000, "seen")[:1])
    of_claude.show(text)
    with of_claude.open() as update:
        assert update.text == text
        assert of_claude.notes == [
            f"{of_claude.own}: the last update is sent again: the 2 MB after it do not contain it"
        ]


@pytest.mark.parametrize(
    ("event", "is_known"), [("UserPromptSubmit", True), ("PostToolUse", False)]
)
def test_a_prompt_s_hook_that_the_runtime_gave_up_on_shows_that_it_records_them(
    of_claude: Told, event: str, is_known: bool
) -> None:
    told = of_claude
    told.works()
    failed = {"type": "hook_cancelled", "hookEvent": event}
    answered = []
    for _ in range(6):
        answered.append(bool(told.prompt(arrives=False, is_answered=False)))
        append(told.own, user("go on"), record("attachment", attachment=failed), assistant("yes"))
    assert answered == [True, True, True, True, is_known, is_known]


def test_a_note_that_is_not_as_it_was_written_costs_itself(of_claude: Told) -> None:
    for damage in (
        lambda last: last.pop("file"),
        lambda last: last.update(cursors=[1]),
        lambda last: last.clear(),
    ):
        of_claude.works()
        assert of_claude.prompt()
        content = json.loads(of_claude.state.read_text())
        damaged: Callable[[dict[str, object]], object] = damage
        damaged(content["own"][" last"])
        content["own"][" last"]["offset"] = 0
        of_claude.state.write_text(json.dumps(content))
        of_claude.works()
        assert of_claude.prompt()


def test_where_it_is_settled_nothing_is_written(of_claude: Told) -> None:
    of_claude.works()
    for _ in range(3):  # it is delivered, acknowledged, and nothing is new
        of_claude.prompt()
    before = of_claude.state.stat().st_ino
    assert of_claude.prompt() == ""
    assert of_claude.state.stat().st_ino == before


def test_only_the_record_of_a_hook_shows_what_it_told() -> None:
    claude = all_runtimes()[0].records
    context = record("attachment", attachment={"type": "hook_additional_context", "content": ["a"]})
    failed = record("attachment", attachment={"type": "hook_non_blocking_error"})
    repeated = {"type": "api-request-blob", "message": {"content": "a"}}
    found = [claude.events(one, 0, INJECTED) for one in (context, failed, repeated)]
    assert found == [[Injected(("a",))], [Injected(())], []]
    assert not claude.prefilter(lines(repeated), INJECTED)
