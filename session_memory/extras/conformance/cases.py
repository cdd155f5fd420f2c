"""Checks habits that some programs have: each case is a small transcript in the folder `cases`.

Two cases have another form: `directory-elsewhere` is a folder like the runtime's own directory, and
`event-without-path.json` is the event of a hook. Add those that your program has; the others are
skipped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ...history.store.ingest.extract import Extractor
from ...sessions.runtimes.records import CallResult
from ...sessions.runtimes.table import sender_of
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

    def test_a_directory_in_another_file_is_the_session_s(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        """The transcript does not name the directory of the session, and a file beside it does.

        The runtime finds it by the folder's name, or in `refresh`, for a mirror that has it."""
        folder = case(fixture, "directory-elsewhere", "")
        runtime, cwd = fixture.runtime, fixture.own["cwd"]
        config_dir = shutil.copytree(folder, tmp_path / "config")
        runtime.refresh(str(config_dir), everything=True)
        sessions = fixture.of_project(config_dir, cwd, "project")
        assert len(sessions) == 1, (
            f"{folder.name}: expected one session of {cwd}, found {len(sessions)}; another file than "
            "the transcript has its directory"
        )
        path = Path(sessions[0].path)
        entries = fixture.conversation(path)
        check_story(path, entries, [PROMPT, ANSWER])
        directories = {entry.cwd for entry in entries if entry}
        assert directories == {cwd}, f"{folder.name}: expected entries of {cwd}, read {directories}"
        assert fixture.of_project(config_dir, "/elsewhere", "project") == []

    def test_a_hook_without_a_transcript_path_finds_its_session(
        self, fixture: Fixture, tmp_path: Path
    ) -> None:
        """The event of the conversation's last prompt, as the program gives it to a hook."""
        file = case(fixture, "event-without-path", ".json")
        event, runtime = json.loads(file.read_text()), fixture.runtime
        assert "transcript_path" not in event, f"{file.name}: it has a transcript_path"
        config_dir = tmp_path / Path(fixture.own.get("moved_dir", "/srv/runtime")).name
        path, environ = fixture.laid_out(config_dir), fixture.environ(config_dir)
        environ.setdefault(fixture.own["config_variable"], str(config_dir))
        assert sender_of(event, environ, runtime) is runtime, (
            f"{file.name}: expected that is_own recognises the event by another key, or by a variable "
            "in `environ` of expected.json"
        )
        found_dir = runtime.event_config_dir(event, environ)
        assert found_dir == str(config_dir), (
            f"{file.name}: expected event_config_dir to return {config_dir}, as the environment "
            f"names it, and it is {found_dir}"
        )
        start = runtime.project_start(event, environ)
        own_path = runtime.own_path(event, start, found_dir)
        assert own_path == str(path), (
            f"{file.name}: expected own_path to find the transcript {path} by session_id and cwd, and "
            f"it is {own_path}"
        )


def case(fixture: Fixture, name: str, ending: str = ".jsonl") -> Path:
    """Return the file or folder of a case; skip if the fixture does not have it."""
    path = fixture.path(f"cases/{name}{ending}")
    if not path.exists():
        pytest.skip(f"no cases/{path.name}: add it if the program does that")
    return path
