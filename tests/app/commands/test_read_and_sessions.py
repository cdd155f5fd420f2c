"""`read` takes what it is given, `sessions` lists conversations by their options, and the former
names of both print the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from records import exchange, user
from store_scene import MONDAY, StoreUser

TRIP = "8f3a-trip"


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    """Two days of one session about a trip, and one about bread in another directory."""
    machine = StoreUser(tmp_path / "user")
    shop, bakery = (machine.home / name for name in ("shop", "bakery"))
    for directory in (shop, bakery):
        directory.mkdir(parents=True)
    first = exchange("Where do the cherries bloom?", "In Kyoto.", at=MONDAY, cwd=str(shop))
    second = exchange("And the plums?", "In Mito.", at=MONDAY + 86_400, cwd=str(shop))
    machine.session(TRIP, *first, *second, project=str(shop).replace("/", "-"))
    bread = exchange("How long does rye rise?", "Two hours.", at=MONDAY, cwd=str(bakery))
    machine.session("b2ab-bread", *bread, project=str(bakery).replace("/", "-"))
    machine.run("ingest")
    return machine


def number_of(machine: StoreUser, first_message: str) -> str:
    listed = machine.result("sessions", "--conversations", "--all")["conversations"]
    (number,) = [
        each["id"]
        for each in listed
        if first_message in machine.run("read", str(each["id"])).stdout
    ]
    return str(number)


def test_read_prints_a_conversation_for_its_number_and_a_session_for_its_id(
    machine: StoreUser,
) -> None:
    number = number_of(machine, "cherries")
    said = machine.run("read", number).stdout
    assert ("cherries" in said, "plums" in said) == (True, False)
    assert said == machine.run("show", number).stdout
    said = machine.run("read", TRIP, "--all").stdout
    assert ("cherries" in said, "plums" in said) == (True, True)
    around = machine.run("read", number, "--around", "2", "--lines", "1")
    assert around.stdout == machine.run("show", number, "--around", "2", "--lines", "1").stdout


def test_read_prints_the_last_conversation_of_a_session_if_asked(machine: StoreUser) -> None:
    said = machine.run("read", TRIP, "--conversation").stdout
    assert ("cherries" in said, "plums" in said) == (False, True)
    assert said == machine.run("show", TRIP).stdout


def test_read_prints_a_session_from_the_store_if_its_transcript_is_gone(
    machine: StoreUser,
) -> None:
    for path in machine.home.rglob(f"{TRIP}.jsonl"):
        path.unlink()
    for word in (TRIP, TRIP[:6], "plums"):
        done = machine.run("read", word)
        assert (done.returncode, "plums" in done.stdout) == (0, True), done
    assert machine.run("read", "zebra").returncode == 1


def test_read_with_raw_text_needs_the_transcript(machine: StoreUser) -> None:
    said = machine.run("read", number_of(machine, "cherries"), "--raw").stdout
    assert said.startswith("Session ")
    assert "plums" in said


def test_a_number_that_is_no_conversation_may_begin_an_id(machine: StoreUser) -> None:
    machine.session("7777-oven", user("Is the oven hot?", at=MONDAY))
    assert "Is the oven hot?" in machine.run("read", "7777", "--all").stdout


def titles(machine: StoreUser, *words: str, cwd: Path) -> list[str]:
    found = machine.result("sessions", *words, cwd=cwd)["conversations"]
    return sorted({each["title"] for each in found})


def test_sessions_lists_conversations_of_this_project_or_of_all(machine: StoreUser) -> None:
    shop = machine.home / "shop"
    trip = ["And the plums?", "Where do the cherries bloom?"]
    bread = "How long does rye rise?"
    assert titles(machine, "--since", "2020-01-01", cwd=shop) == trip
    assert titles(machine, "--since", "2020-01-01", "--all", cwd=shop) == sorted([bread, *trip])
    assert titles(machine, "--project", "bakery", cwd=shop) == [bread]
    assert titles(machine, "--session", "b2ab", cwd=shop) == [bread]
    assert titles(machine, "--conversations", cwd=shop) == trip
    assert "conversations" not in machine.result("sessions", cwd=shop)
    former = machine.run("conversations", cwd=shop).stdout
    assert former == machine.run("sessions", "--conversations", "--all", cwd=shop).stdout
    assert bread in former


def test_where_a_project_has_no_conversation_all_are_listed(machine: StoreUser) -> None:
    (machine.home / "empty").mkdir()
    done = machine.run("sessions", "--since", "2020-01-01", cwd=machine.home / "empty")
    first, *rest = done.stdout.splitlines()
    assert first == "This directory's project has no conversation yet. These are of all projects:"
    assert len(rest) == 4
    assert machine.run("sessions", "--since", "1h", cwd=machine.home / "empty").returncode == 1


def test_read_takes_the_file_name_of_an_archive(machine: StoreUser) -> None:
    machine.run("archive", "b2ab-bread")
    [archive] = [path for path in machine.home.rglob("*.md") if "rye" in path.read_text()]
    for name in (archive.name, str(archive)):
        done = machine.run("read", name)
        assert done.stdout == machine.run("read", "b2ab-bread").stdout
        assert "Two hours." in done.stdout
    missing = machine.run("read", "2026-01-01-nothing.md")
    assert (missing.returncode, "2026-01-01-nothing.md" in missing.stderr) == (1, True)
