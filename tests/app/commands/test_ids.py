"""Every command that reads accepts what another one prints.

These are ids of sessions, conversations and memories, and words of a title.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from records import assistant, codex_exchange, codex_line, exchange, new_id, user, write
from store_scene import MONDAY, StoreUser, trip

BREAD = "9c01aaaa-bread"


def made(home: Path) -> StoreUser:
    """A trip, and two sessions with the same title in two projects; the older one has edits."""
    machine = StoreUser(home)
    machine.session("8f3a-trip", *trip())
    for name, project in ((BREAD, "bakery"), ("9c01bbbb-bread", "mill")):
        said = [
            user("how long does rye rise?", at=MONDAY),
            assistant(
                ("Read", {"file_path": "/srv/rye.md"}),
                ("Edit", {"file_path": "/srv/rye.md"}),
                at=MONDAY + 1,
            ),
            assistant("It rises for two hours.", at=MONDAY + 2),
        ]
        for record in said:
            record["cwd"] = f"/srv/{project}"
        machine.session(name, *said, project=f"-srv-{project}")
    machine.run("ingest")
    return machine


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    return made(tmp_path / "user")


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    return made(tmp_path_factory.mktemp("user"))


def number_of(machine: StoreUser, session: str) -> str:
    found = machine.result("conversations")["conversations"]
    return str(next(one["id"] for one in found if one["session_id"] == session))


def test_every_command_that_reads_takes_every_id(read_only: StoreUser) -> None:
    ids = ["8f3a-trip", "8f3a", "trip japan", number_of(read_only, "8f3a-trip")]
    calls = [(command, id) for command in ("read", "show", "export") for id in ids]
    for command, id in [*calls, ("deliveries", "8f3a")]:
        done = read_only.run(command, id)
        assert (done.returncode, done.stderr) == (0, ""), (command, id)
        assert command != "export" or "Japan" in done.stdout, id


def test_the_option_session_takes_them_too(read_only: StoreUser) -> None:
    for session in ("8f3a", "japan", number_of(read_only, "8f3a-trip")):
        said = read_only.run("conversations", "--session", session).stdout
        assert ("Japan" in said, "rye" in said) == (True, False), session
    said = read_only.run("search", "cherry", "--session", "japan").stdout
    assert ("Japan" in said, "rye" in said) == (True, False)
    for words in (["patterns"], ["errors", "cherry"]):
        assert "no session is called" not in read_only.run(*words, "--session", "japan").stderr


def test_a_memory_is_read_and_leads_to_its_conversation(machine: StoreUser) -> None:
    oven = [
        record
        for turn in range(3)
        for record in exchange(f"Is the oven hot {turn}?", "Yes.", at=1e9)
    ]
    machine.session("77aa-oven", *oven)
    machine.run("process")
    memories = machine.result("memories")["memories"]
    memory = next(one for one in memories if one["origins"][-1]["session"] == "77aa-oven")
    said = machine.run("read", memory["id"]).stdout
    (command,) = re.findall(r"session-memory (read \d+)", said)
    assert "the oven hot 2" in machine.run(*command.split()).stdout
    for words in (
        ("read", memory["id"]),
        ("show", memory["id"]),
        ("memories", "show", memory["id"][:5]),
        ("memories", "show", memory["title"]),
    ):
        assert memory["id"] in machine.run(*words).stdout


def test_of_two_that_fit_both_are_offered_with_date_and_project(read_only: StoreUser) -> None:
    for command in ("read", "show", "deliveries", "export"):
        # it takes all that have a title
        done = read_only.run(command, "rise" if command == "export" else "rye")
        assert (done.returncode, done.stdout) == (1, ""), command
        first, *offered = done.stderr.splitlines()
        assert first.endswith("fits 2 sessions; give the id of one:")
        assert sorted(line.split()[0] for line in offered) == [BREAD, "9c01bbbb-bread"]
        for line in offered:
            assert line.split()[1].startswith("20")
            assert ("bakery" in line) is (BREAD in line)


def test_what_is_only_in_another_project_is_found(machine: StoreUser, tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    assert "two hours" in machine.run("read", BREAD, cwd=tmp_path / "srv").stdout
    listed = machine.run("sessions", cwd=tmp_path / "srv").stdout.splitlines()
    assert (
        listed[0]
        == "This directory's project has no session yet. These are sessions of all projects:"
    )


def test_a_title_is_not_enough_to_delete(machine: StoreUser) -> None:
    done = machine.run("forget", "japan", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "session-memory: forget needs a session id, and 'japan' is not one\n"
    )
    assert "8f3a-trip" in done.stderr
    assert machine.run("forget", "8f3a", "--yes").returncode == 0
    assert "fits 2 sessions" in machine.run("forget", "rye", "--yes").stderr


def test_a_dry_run_names_it_and_changes_nothing(machine: StoreUser) -> None:
    def files() -> set[str]:
        return {
            str(path)
            for path in machine.home.rglob("*")
            if "-wal" not in path.name and "-shm" not in path.name
        }

    before = files()
    for words in (["forget", "8f3a"], ["forget", "--project", "/srv"], ["archive", "--all"]):
        done = machine.run(*words, "--dry-run")
        assert (done.returncode, done.stderr) == (0, ""), words
        assert "8f3a-trip" in done.stdout
        assert files() == before, words
        assert "Japan" in machine.run("conversations").stdout
        assert "8f3a-trip" in str(machine.result(*words, "--dry-run"))


def test_a_search_names_a_conversation_once_and_the_words_that_nothing_has(
    read_only: StoreUser,
) -> None:
    said = read_only.run("search", "rise hours", "--session", BREAD).stdout
    assert said.count("session 9c01aaaa-bread") == 1
    assert "claude-code, in /srv/bakery, session 9c01aaaa-bread\n" in said
    assert "Not found" not in said
    assert read_only.run("search", "hours zebra").stdout.endswith(
        "\nFound: hours. Not found: zebra.\n"
    )
    assert read_only.result("search", "hours zebra")["words_not_found"] == ["zebra"]


def test_memories_are_named_and_kept_in_a_dry_run(machine: StoreUser) -> None:
    oven = [
        record
        for turn in range(3)
        for record in exchange(f"Is the oven hot {turn}?", "Yes.", at=1e9)
    ]
    machine.session("77aa-oven", *oven)
    machine.run("process")
    id = machine.result("memories")["memories"][0]["id"]
    assert machine.run("memories", "forget", id, "--dry-run").stdout.startswith(
        "1 memory would be forgotten:\n"
    )
    assert machine.result("memories")["memories"][0]["id"] == id
    assert machine.run("memories", "search", "oven", "--dry-run").returncode == 2


def test_an_ingest_says_how_much_it_would_read(tmp_path: Path) -> None:
    machine = StoreUser(tmp_path)
    machine.session("8f3a-trip", *trip())
    assert machine.run("ingest", "--dry-run").stdout == "1 file (2 kB) would be ingested.\n"
    assert not (tmp_path / ".session-memory").exists()
    machine.run("ingest")
    assert machine.run("ingest", "--dry-run").stdout == "0 files (0 bytes) would be ingested.\n"
    assert machine.result("ingest", "--reimport", "--dry-run")["files"] == 1


def test_the_name_of_a_runtime_means_its_latest_session(machine: StoreUser) -> None:
    rollout = (
        machine.home
        / ".codex/sessions/2026/11/20"
        / f"rollout-2026-11-20T10-00-00-{new_id()}.jsonl"
    )
    head = codex_line("session_meta", {"id": rollout.stem[-36:], "cwd": "/srv/mill"})
    write(rollout, head, *codex_exchange("Is the cherimoya ripe?", "It is.", cwd="/srv/mill"))
    calls = [
        ("read", "codex"),
        ("handoff", "codex"),
        ("export", "Codex"),
        ("read", "codex", "--conversation"),
        ("search", "cherimoya", "--session", "codex"),
    ]
    for call in calls:
        done = machine.run(*call)
        assert (done.returncode, done.stderr) == (0, ""), call
        assert "cherimoya" in done.stdout, call
