"""`session-memory patterns` and `session-memory errors`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from records import assistant, user
from store_scene import StoreUser


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
    assert "nothing to look for" in done.stderr
