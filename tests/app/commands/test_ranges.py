"""A range of days: from one day to the same day is that day."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from records import assistant, tool_result, user
from store_scene import StoreUser

USAGE = {"usage": {"input_tokens": 100, "output_tokens": 0}}


def day(text: str, clock: str) -> float:
    return time.mktime(time.strptime(f"{text} {clock}", "%Y-%m-%d %H:%M:%S"))


@pytest.fixture
def person(tmp_path: Path, set_zone: Callable[[str], None]) -> StoreUser:
    """A person who said something in the first and last second of days of 23, 24 and 25 hours.

    The neighbouring days have messages too."""
    set_zone("Europe/Berlin")
    person = StoreUser(tmp_path)
    for date in (
        "2026-03-28",
        "2026-03-29",
        "2026-03-30",
        "2026-10-24",
        "2026-10-25",
        "2026-10-26",
    ):
        for number, clock in enumerate(("00:00:00", "23:59:59")):
            at = day(date, clock)
            words = f"plum{date.replace('-', '')}{'ab'[number]}"
            call = assistant("yes", ("Bash", {"command": "make"}), at=at, message=USAGE)
            failed = tool_result("Exit code 2\nboom", at=at)
            failed["message"]["content"][0] |= {
                "is_error": True,
                "tool_use_id": call["message"]["content"][-1]["id"],
            }
            person.session(f"{date}-{number}", user(words, at=at), call, failed)
    return person


@pytest.mark.parametrize("date", ["2026-03-29", "2026-03-30", "2026-10-24", "2026-10-25"])
def test_from_a_day_to_the_same_day_is_all_of_that_day_and_no_more(
    person: StoreUser, date: str
) -> None:
    span = ["--since", date, "--until", date]
    zone = {"TZ": "Europe/Berlin"}
    said = person.result("search", "yes", *span, "--role", "assistant", **zone)["hits"]
    assert sorted(hit["conversation"]["session_id"] for hit in said) == [f"{date}-0", f"{date}-1"]
    costs = person.result("costs", *span, **zone)
    assert costs["total"]["input_tokens"] == 200
    listed = person.result("conversations", *span, **zone)["conversations"]
    assert len(listed) == 2
    assert person.result("patterns", *span, **zone)["conversations"] == 2
    failed = person.run("errors", "boom", *span, **zone)
    assert failed.returncode == 0
    assert "2 sessions" in failed.stdout


def test_the_help_says_that_a_day_counts_to_its_end(person: StoreUser) -> None:
    for command in ("search", "costs", "conversations", "patterns"):
        assert "a day counts to its end" in " ".join(person.run(command, "--help").stdout.split())


def test_a_day_without_sessions_is_no_result(person: StoreUser) -> None:
    """The exit code of a search without a hit, and words that do not say that there is nothing."""
    for command, said in (
        ("conversations", "No conversation matches. Try fewer options."),
        ("costs", "No transcript contains costs: try fewer options."),
        ("patterns", "No tool use matches. Try fewer options."),
    ):
        done = person.run(command, "--since", "2026-01-01", "--until", "2026-01-01")
        assert (done.returncode, done.stdout) == (1, f"{said}\n")
