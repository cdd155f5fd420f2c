"""`session-memory patterns` and `session-memory errors`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from records import assistant, user
from store_scene import MONDAY, StoreUser

from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """A user, one of whose sessions had trouble with a build."""
    machine = StoreUser(tmp_path)
    build = ("Bash", {"command": "make dist"})
    records = [user("Please build it", at=1e9)]
    for error in ("make: *** No rule to make target '<dist>'.  Stop.", ""):
        call = assistant(build, at=1e9)
        use = call["message"]["content"][0]["id"]
        result = {
            "type": "tool_result",
            "tool_use_id": use,
            "is_error": bool(error),
            "content": error or "built",
        }
        records += [call, user([result], at=1e9)]
    machine.session("a", *records, assistant("Built.", at=1e9))
    return machine


def test_patterns_prints_what_fails_and_what_helps(machine):
    done = machine.run("patterns")
    assert done.returncode == 0, done.stderr
    assert "make dist: 1 of 2 runs failed (50%)" in done.stdout
    assert "make: *** No rule to make target '‹dist›'. Stop." in done.stdout
    assert "worked at another try" in done.stdout
    value = json.loads(machine.run("patterns", "--json").stdout)
    assert value["commands"][0]["errors"] == [
        {"error": "make: *** No rule to make target '‹dist›'.  Stop.", "times": 1}
    ]


def test_patterns_of_a_project_without_any_says_so(machine):
    assert (
        "no project has 'elsewhere' in its directory"
        in machine.run("patterns", "--project", "elsewhere").stderr
    )


def test_errors_prints_where_it_was_and_what_solved_it(machine):
    done = machine.run("errors", "No rule to make target")
    assert done.returncode == 0, done.stderr
    assert "of      Bash: make dist" in done.stdout
    assert "solved  it worked at another try" in done.stdout
    [seen] = json.loads(machine.run("errors", "No rule to make target", "--json").stdout)["seen"]
    assert (seen["session"], seen["solved"], seen["worked"]) == ("a", "at another try", "make dist")


def test_an_error_that_was_only_spoken_of_was_never_seen(machine):
    for words in ("please build", "kubernetes evicted"):
        done = machine.run("errors", words)
        assert done.returncode == 1
        assert (
            done.stdout
            == "No tool call failed with these words. To search the conversations: session-memory search WORDS\n"
        )


def test_without_any_text_it_says_what_to_name(machine):
    done = machine.run("errors", "  ")
    assert done.returncode == 2
    assert "the query is empty" in done.stderr


def timed_out(session: str, at: float, *, new: str = "timeout=30") -> list[dict[str, Any]]:
    """A test that fails, an edit of one line that the user requests, and the test that passes."""
    pytest_call = {
        "type": "tool_use",
        "id": f"{session}-1",
        "name": "Bash",
        "input": {"command": "pytest"},
    }
    failed = {
        "tool_use_id": f"{session}-1",
        "type": "tool_result",
        "is_error": True,
        "content": "Exit code 1\nConnectionError: Connection timeout to database after 5 s",
    }
    given = {
        "file_path": "/srv/agent/db.py",
        "old_string": "connect(\n    timeout=5,\n)",
        "new_string": f"connect(\n    {new},\n)",
    }
    edit = {"type": "tool_use", "id": f"{session}-2", "name": "Edit", "input": given}
    worked = {**pytest_call, "id": f"{session}-3"}
    return [
        user("why do the tests fail?", at=at),
        assistant(pytest_call, at=at + 1),
        user([failed], at=at + 2),
        user("then increase the timeout", at=at + 3),
        assistant(edit, at=at + 4),
        user([result(f"{session}-2")], at=at + 5),
        assistant(worked, at=at + 6),
        user([result(f"{session}-3")], at=at + 7),
        assistant("Now it works.", at=at + 8),
    ]


def result(call_id: str) -> dict[str, Any]:
    return {"tool_use_id": call_id, "type": "tool_result", "content": "ok"}


class TestEqualErrors:
    """Equal errors are one block, which says what changed and who asked."""

    @pytest.fixture
    def slow(self, tmp_path: Path) -> StoreUser:
        person = StoreUser(tmp_path / "user")
        for number in range(3):
            name = f"5e55a0f1-0000-4000-8000-00000000000{number}"
            person.session(name, *timed_out(name, MONDAY + 7200 * number))
        return person

    def test_they_are_one_block_with_the_change_and_the_request(self, slow: StoreUser) -> None:
        done = slow.run("errors", "Connection timeout to database")
        assert done.stdout.count("ConnectionError") == 1
        assert "(3 times in 3 sessions)" in done.stdout
        assert "solved  it worked after editing `db.py`" in done.stdout
        assert "change  timeout=5, → timeout=30," in done.stdout
        assert "asked   then increase the timeout" in done.stdout
        value = slow.result("errors", "Connection timeout to database")
        [seen] = value["seen"]
        assert (value["all"], seen["times"], len(seen["sessions"])) == (1, 3, 3)
        assert seen["change"] == "timeout=5, → timeout=30,"
        assert seen["asked"] == "then increase the timeout"

    @pytest.mark.parametrize(
        ("new", "shown"),
        [
            ("timeout=30,\n    retries=3", "timeout=5, → timeout=30, (2 lines)"),
            ("timeout=5,\n    retries=3", "+ retries=3,"),
            ("timeout=5,\n\n    retries=3,\n    wait=2", "+ retries=3, (3 lines)"),
            (
                "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----",
                "timeout=5, → ",
            ),
        ],
    )
    def test_a_change_of_several_lines_is_its_first_line_and_their_number(
        self, tmp_path: Path, new: str, shown: str
    ) -> None:
        person = StoreUser(tmp_path / "user")
        person.session("one", *timed_out("one", MONDAY, new=new))
        [seen] = person.result("errors", "Connection timeout to database")["seen"]
        assert seen["change"] == shown or (
            seen["change"].startswith(shown) and "MIIE" not in seen["change"]
        )

    def test_the_tool_says_the_same(self, slow: StoreUser) -> None:
        slow.run("ingest")
        backend = HomeBackend(None, slow.environment)
        text = call(backend, "seen_error", {"error": "Connection timeout to database"}).text
        assert "and 2 more sessions" in text
        assert "Change: timeout=5, → timeout=30," in text
        assert 'Asked: "then increase the timeout"' in text

    def test_without_the_transcript_the_change_is_unknown(self, slow: StoreUser) -> None:
        slow.run("ingest")
        for path in slow.projects.rglob("*.jsonl"):
            path.unlink()
        done = slow.run("errors", "Connection timeout to database")
        assert "asked   then increase the timeout" in done.stdout
        assert "change  " not in done.stdout

    def test_a_secret_in_the_change_is_redacted(self, tmp_path: Path) -> None:
        person = StoreUser(tmp_path / "user")
        secret = "ghp_" + "a1B2" * 9
        person.session("one", *timed_out("one", MONDAY, new=f'token="{secret}"'))
        shown = person.run("errors", "Connection timeout to database").stdout
        assert "change  timeout=5, → token=" in shown
        assert secret not in shown

    def test_a_change_that_a_rule_hides_is_not_shown(self, slow: StoreUser) -> None:
        slow.config("projects: {/srv/agent: {quote: false}}")
        done = slow.run("errors", "Connection timeout to database")
        assert "timeout=30" not in done.stdout


def called(command: str, error: str = "") -> list[dict[str, Any]]:
    """Return the records of a command and of its result."""
    call = assistant(("Bash", {"command": command}), at=MONDAY)
    use = call["message"]["content"][0]["id"]
    result = {"type": "tool_result", "tool_use_id": use, "is_error": bool(error)}
    return [call, user([{**result, "content": error or "done"}], at=MONDAY)]


def test_patterns_begins_with_sentences_for_agents_and_the_commands_that_note_them(
    tmp_path: Path,
) -> None:
    machine = StoreUser(tmp_path)
    trouble = [
        record
        for number in range(3)
        for record in (
            user(f"test it {number}", at=MONDAY),
            *called("npm test", "Cannot find module 'x'"),
            *called("npm install"),
            *called("npm test"),
        )
    ]
    edits = [
        record
        for number in range(5)
        for record in (
            user(f"add a field {number}", at=MONDAY),
            assistant(
                ("Edit", {"file_path": "/srv/agent/schema.sql"}),
                ("Edit", {"file_path": "/srv/agent/models.py"}),
                at=MONDAY,
            ),
        )
    ]
    machine.session("a", *trouble, *edits)
    first = "`npm test` often fails. It works after running `npm install`."
    second = "If you change `agent/models.py`, check `agent/schema.sql` too."
    said = machine.run("patterns").stdout
    assert said.index("Worth telling") < said.index(first) < said.index("Commands that fail")
    assert f"{first} (failed in 3 of 6 runs, and worked so 3 times)" in said
    assert f"{second} (changed together in 5 of 5 requests)" in said
    assert [each["sentence"] for each in machine.result("patterns")["advice"]] == [first, second]
    commands = [line.strip() for line in said.splitlines() if " remember '" in line]
    assert len(commands) == 2
    for command in commands:
        assert machine.run(*shlex.split(command)[1:]).returncode == 0
    assert first in str(machine.result("memories"))


def test_what_an_edit_solved_or_happened_twice_is_no_advice(machine: StoreUser) -> None:
    assert machine.result("patterns")["advice"] == []
    assert "Worth telling" not in machine.run("patterns").stdout


RULE = "Never edit the generated files."


def asked(machine: StoreUser, *requests: str) -> list[str]:
    """Return the advice after sessions with these requests."""
    for number, request in enumerate(requests):
        machine.session(f"s{number}", user(request, at=MONDAY + number), *called("ls"))
    return [each["sentence"] for each in machine.result("patterns")["advice"]]


def test_an_instruction_of_several_sessions_is_worth_telling(machine: StoreUser) -> None:
    advice = asked(
        machine,
        f"Add a field. {RULE}",
        "Rename the field.\n- please never edit the generated files",
        f"Remove the field. {RULE} Then run the tests.",
    )
    assert advice == [RULE]
    said = machine.run("patterns").stdout
    assert f"{RULE} (you asked for this in 3 sessions)" in said
    assert f"remember '{RULE}'" in said


@pytest.mark.parametrize(
    "requests",
    [
        [f"Add a field. {RULE}", f"Rename the field. {RULE}"],  # twice
        [f"Add a field. {RULE}"] * 3,  # a script
        [f"{'log ' * 300}{number}. {RULE}" for number in range(3)],  # pasted
        [f"Do the task number {number}." for number in range(3)],  # for one task
        [f"Never mind the failing test. Do {number}." for number in range(3)],
        [f"Look at part {number}. Don't we need a lock here?" for number in range(3)],
    ],
)
def test_what_a_person_does_not_keep_repeating_is_no_advice(
    tmp_path: Path, requests: list[str]
) -> None:
    assert asked(StoreUser(tmp_path), *requests) == []


def test_instructions_are_shown_before_any_tool_was_used(tmp_path: Path) -> None:
    machine = StoreUser(tmp_path)
    for number in range(3):
        machine.session(f"s{number}", user(f"Explain part {number}. {RULE}", at=MONDAY + number))
    for words in ((), ("--since", "2020-01-01")):
        shown = machine.run("patterns", *words)
        assert f"remember '{RULE}'" in shown.stdout
        assert shown.returncode == 0


def test_an_instruction_that_a_rule_hides_is_no_advice(tmp_path: Path) -> None:
    machine = StoreUser(tmp_path)
    machine.config("projects: {/srv/agent: {quote: false}}")
    assert asked(machine, *[f"Do {number}. {RULE}" for number in range(3)]) == []
