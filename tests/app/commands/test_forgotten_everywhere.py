"""After forgetting, only the runtime's own file has the session.

This holds for all files from hooks, upkeep and commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from forgotten_scene import CLAUDE, WORD, Person
from records import append, exchange, gemini_exchange, lines, new_id
from store_scene import MONDAY, StoreUser

from session_memory.sessions.runtimes.table import all_runtimes, runtime


@pytest.fixture(params=all_runtimes(), ids=lambda one: one.name)
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Person:
    return Person(tmp_path, request.param)


def test_of_what_was_forgotten_our_files_hold_nothing(person: Person) -> None:
    shown = [person.prompt(), person.about_to_edit()]
    person.upkeep()
    assert WORD in shown[0]
    assert "memories/.prompt-index" in person.holding()
    for id in person.ids:
        done = person.run("forget", id, "--yes")
        assert (done.returncode, done.stderr) == (0, "")
    assert person.holding() == []
    person.prompt()
    person.about_to_edit()
    person.upkeep()
    person.prompt()
    assert person.holding() == []


@pytest.mark.parametrize("person", [CLAUDE], indirect=True, ids=["agent-sdk"])
def test_of_a_session_that_was_told_of_others_its_own_state_goes_too(person: Person) -> None:
    told_of = person.own_id
    person.own_id, person.own = person.ids[0], person.own.with_name(f"{person.ids[0]}.jsonl")
    look = ("Read", {"file_path": str(person.app / WORD)})
    append(person.own, *exchange("look", look, cwd=str(person.app)))
    append(
        person.own.with_name(f"{told_of}.jsonl"), *exchange("well?", "Done.", cwd=str(person.app))
    )
    person.prompt()
    person.about_to_edit()
    assert f"state/cursors/{person.own_id}.json" in person.holding()
    assert person.run("forget", person.own_id, "--yes").returncode == 0
    assert person.holding() == []


@pytest.mark.parametrize("person", [runtime("gemini")], indirect=True, ids=["gemini"])
def test_of_a_session_that_goes_on_our_copy_has_no_title_of_before(person: Person) -> None:
    person.prompt()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    [chat] = (person.config_dir / "tmp" / "app" / "chats").glob("*fb3f.jsonl")
    with chat.open("ab") as file:
        file.write(lines(*gemini_exchange("And the tamarind?", "It is green.")))
    assert "tamarind" in person.prompt()
    person.upkeep()
    person.about_to_edit()
    assert person.holding() == []
    assert person.result("search", "tamarind")["hits"] != []


def test_of_a_part_that_was_forgotten_our_copies_hold_nothing(tmp_path: Path) -> None:
    """Neither of a chat that goes on nor of one that stays as it is; the rest of both is there."""
    person = StoreUser(tmp_path)
    project = tmp_path / ".gemini" / "tmp" / "site"
    (project / "chats").mkdir(parents=True)
    (project / ".project_root").write_text("/srv/site")
    for number in range(2):
        id = new_id()
        old = gemini_exchange(f"Is the {WORD} ripe?", "Yes.", at=MONDAY)
        new = gemini_exchange(f"And tamarind {number}?", "No.", at=MONDAY + 9 * 86400)
        chat = project / "chats" / f"session-2026-11-20T10-0{number}-{id[9:23]}.jsonl"
        chat.write_bytes(
            lines({"sessionId": id, "projectHash": "0" * 64, "kind": "main"}, *old, *new)
        )
    place = tmp_path / ".session-memory"
    assert len(person.result("search", WORD)["hits"]) > 0
    assert person.run("forget", "--before", "2026-09-25", "--yes").returncode == 0
    for _ in range(2):
        assert len(person.result("search", "tamarind")["hits"]) == 2
        mirrors = [path.read_text() for path in (place / "state" / "gemini").rglob("*.jsonl")]
        assert [("tamarind" in text, WORD in text) for text in mirrors] == [(True, False)] * 2
        with chat.open("ab") as file:
            file.write(lines(*gemini_exchange("And the quince?", "Yes.")))


@pytest.mark.parametrize(
    "is_first_event", [False, True], ids=["after a prompt", "before any prompt"]
)
@pytest.mark.parametrize("person", [CLAUDE], indirect=True, ids=["agent-sdk"])
def test_of_a_session_that_another_collided_with_no_path_is_left(
    person: Person, is_first_event: bool
) -> None:
    path = str(person.app / f"{WORD}.py")
    Path(path).write_text("1\n")
    append(person.own, *exchange("look again", ("Read", {"file_path": path}), cwd=str(person.app)))
    theirs = person.own.with_name(f"{person.ids[0]}.jsonl")
    if not is_first_event:
        person.prompt()
    change = ("Edit", {"file_path": path, "old_string": "1", "new_string": "2"})
    append(theirs, *exchange("change it", change, cwd=str(person.app)))
    Path(path).write_text("2\n")
    assert WORD in person.about_to_edit(path)
    assert f"state/cursors/{person.own_id}.calls" in person.holding()
    person.upkeep()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    append(person.own, *exchange("and now?", "Done.", cwd=str(person.app)))
    calls = person.home / f".session-memory/state/cursors/{person.own_id}.calls"
    assert person.ids[0] not in calls.read_text()
    assert WORD not in calls.read_text()
