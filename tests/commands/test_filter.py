"""`session-memory filter`, as somebody types it."""

from __future__ import annotations

import json

import pytest
from records import assistant, user, write
from store_scene import StoreUser


@pytest.fixture
def machine(tmp_path):
    return StoreUser(tmp_path / "user")


def test_it_prints_sizes_and_the_reduction(machine):
    write(machine.home / "p" / "a.jsonl", user("hello"), assistant("hi"))
    (machine.home / "p" / "odd.jsonl").write_text("{}\n")
    done = machine.run("filter", "p", "--json")
    value = json.loads(done.stdout)
    assert [one["path"] for one in value["transcripts"]] == ["p/a.jsonl"]
    assert value["all"]["characters_before"] == 7
    assert "1 file skipped" in machine.run("filter", "p").stdout


def test_it_shows_what_is_left(machine):
    write(machine.home / "a.jsonl", user("hello"), assistant("hi"))
    assert machine.run("filter", "a.jsonl", "--show").stdout == "User: hello\nAssistant: hi\n"


def test_it_goes_by_the_configuration(machine):
    machine.config("memories: {filtering: {keep_user_messages: false}}\n")
    write(machine.home / "a.jsonl", user("hello"), assistant("hi"))
    assert machine.run("filter", "a.jsonl", "--show").stdout == "Assistant: hi\n"


def test_without_a_transcript_it_says_what_to_name(machine):
    done = machine.run("filter")
    assert done.returncode == 2
    assert "--all" in done.stderr
