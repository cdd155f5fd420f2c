"""A forgotten session does not return in another file: a fork, a copy or a renamed transcript.

The part of a fork after the forgotten one is a session of its own.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from forgotten_scene import CLAUDE, FIXTURES, WORD, Person
from records import append, exchange, new_id

from session_memory.history.copies.pack import Pack, pack_path
from session_memory.sessions.runtimes.table import all_runtimes

IN_DATABASES = ("hermes", "openclaw", "opencode")
OWN_WORDS = "What about staging?"  # in the fork that each runtime's fixtures tell of


@pytest.fixture(params=all_runtimes(), ids=lambda one: one.name)
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Person:
    return Person(tmp_path, request.param)


def transcripts(person: Person) -> list[Path]:
    """The runtime's own files of the forgotten session; none if it has a database."""
    if person.other.family() in IN_DATABASES:
        return []
    below = {"gemini": "tmp/app/chats", "atif": ""}.get(person.other.name, "")
    place = person.config_dir / below if below else person.config_dir
    found = [path for path in place.rglob("*.json*") if path.is_file() and WORD in path.read_text()]
    return [
        path
        for path in found
        if person.ids[0][-12:] in str(path) or below or person.other.name == "atif"
    ]


def fork(person: Person) -> Iterator[str]:
    """Put a fork of the session beside it, as its runtime does; yield its id."""
    # it already exists, or there is nothing like it
    if person.other.family() in (*IN_DATABASES, "gemini", "cline", "atif"):
        return
    id, text = new_id(), person.told((FIXTURES / person.other.name / "fork.jsonl").read_text())
    heads = [json.loads(head) for head in text.split("\n")[:2]]
    text = text.replace(next((head["id"] for head in heads if "id" in head), id), id)
    # Pi's ids are random
    text = text.replace('"a1b2000c"', '"b1b2000c"').replace('"a1b2000d"', '"b1b2000d"')
    for path in [path for path in transcripts(person) if path.suffix == ".jsonl"][:1]:
        target = Path(str(path).replace(person.ids[0], id))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        yield id


def copies(person: Person) -> Iterator[Path]:
    """Put copies of the session's files beside them, under other names."""
    for path in transcripts(person):
        id = new_id()
        target = Path(str(path).replace(person.ids[0], id))
        if target == path:
            target = path.with_name(f"{path.stem}-{id[:8]}{path.suffix}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
        yield target


def test_what_repeats_a_forgotten_session_comes_back_nowhere(person: Person) -> None:
    assert WORD in person.prompt()
    person.upkeep()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    list(fork(person))
    made = list(copies(person))
    assert made or person.other.family() in IN_DATABASES
    for _ in range(2):
        assert WORD not in person.prompt()
        assert WORD not in person.about_to_edit()
        person.upkeep()
        assert person.holding() == []
    assert person.result("search", WORD, code=1)["hits"] == []
    for command in (("sessions", "--all"), ("conversations",)):
        assert WORD not in person.run(*command).stdout


def test_what_is_said_after_a_fork_is_a_session_of_its_own(person: Person) -> None:
    if person.other.name in ("gemini", "cline", "atif"):
        pytest.skip("the runtime has no forks")
    assert person.run("ingest").returncode == 0
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    list(fork(person))
    # a prompt that says little may concern all sessions; another one, none that is hours old
    assert OWN_WORDS.rstrip("?") in person.prompt("go on")
    hits = person.result("search", "staging")["hits"]
    assert len(hits) > 0
    shown = json.dumps(person.result("sessions", "--all")) + json.dumps(
        person.result("conversations")
    )
    assert OWN_WORDS.rstrip("?") in shown
    assert WORD not in shown


@pytest.fixture
def of_claude(tmp_path: Path) -> Person:
    return Person(tmp_path, CLAUDE)


def fork_on_the_command_line(person: Person) -> str:
    """Fork the session as `claude --resume ID --fork-session` does: the records keep their ids and
    name no parent."""
    [path], id = transcripts(person), new_id()
    fork = path.with_name(f"{id}.jsonl")
    fork.write_text(path.read_text().replace(person.ids[0], id))
    append(
        fork, *exchange("And the tamarind tree?", "It is green.", sessionId=id, cwd=str(person.app))
    )
    return id


def test_a_fork_on_the_command_line_begins_with_what_is_said_in_it(of_claude: Person) -> None:
    person = of_claude
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    id = fork_on_the_command_line(person)
    told = person.prompt()
    assert ("tamarind" in told, WORD in told) == (True, False)
    person.upkeep()
    assert person.holding() == []
    shown = person.run("show", id).stdout
    assert ("tamarind" in shown, WORD in shown) == (True, False)
    [session] = [one for one in person.result("sessions", "--all")["sessions"] if one["id"] == id]
    assert "tamarind" in session["name"]


def test_a_fork_from_before_loses_what_it_copied(of_claude: Person) -> None:
    person = of_claude
    fork = fork_on_the_command_line(person)
    assert WORD in person.prompt()
    person.upkeep()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    assert person.holding() == []
    assert [
        one["conversation"]["session_id"] for one in person.result("search", "tamarind")["hits"]
    ] == [fork]
    person.prompt()
    person.upkeep()
    assert person.holding() == []
    assert "tamarind" in " ".join(
        path.read_text() for path in (person.home / ".session-memory").rglob("*tamarind*.md")
    )


def test_a_fork_that_the_store_knew_before_its_origin_loses_what_it_copied(
    of_claude: Person,
) -> None:
    person = of_claude
    [path] = transcripts(person)
    content = path.read_bytes()
    fork = fork_on_the_command_line(person)
    path.unlink()
    assert person.run("ingest").returncode == 0
    path.write_bytes(content)
    assert person.run("ingest").returncode == 0
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    assert person.holding() == []
    assert [
        one["conversation"]["session_id"] for one in person.result("search", "tamarind")["hits"]
    ] == [fork]


def test_tombstones_of_an_older_version_know_a_renamed_transcript_by_the_session_in_its_records(
    of_claude: Person,
) -> None:
    person = of_claude
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    for path in (person.home / ".session-memory" / "store").glob("*.forgotten.messages"):
        path.unlink()
    [path] = transcripts(person)
    path.rename(path.with_name(f"{new_id()}.jsonl"))
    assert WORD not in person.prompt()
    person.upkeep()
    assert person.holding() == []


def test_what_was_forgotten_before_a_time_comes_back_in_no_fork(of_claude: Person) -> None:
    person = of_claude
    [path] = transcripts(person)
    # which would stay
    path.write_text("".join(line for line in path.open() if '"custom-title"' not in line))
    append(
        path,
        *exchange("And the quince?", "It is yellow.", sessionId=person.ids[0], cwd=str(person.app)),
    )
    before = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() - 3600))
    assert person.run("forget", "--before", before, "--yes").returncode == 0
    fork_on_the_command_line(person)
    told = person.prompt()
    assert ("quince" in told, WORD in told) == (True, False)
    person.upkeep()
    assert person.holding() == []
    assert person.result("search", "quince")["hits"] != []


def test_the_notes_of_what_was_forgotten_hold_salted_hashes_alone(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        person = Person(tmp_path / name, CLAUDE)
        assert person.run("forget", person.ids[0], "--yes").returncode == 0
        [path] = (person.home / ".session-memory" / "store").glob("*.forgotten.messages")
        files.append(path.read_bytes())
        assert path.stat().st_mode & 0o777 == 0o600
    beginning, salt = len(b"messages1"), 16
    hashes = [{file[at : at + 8] for at in range(beginning + salt, len(file), 8)} for file in files]
    assert len(hashes[0]) > 10
    assert not hashes[0] & hashes[1]


def test_of_what_repeats_a_forgotten_session_no_transcript_is_kept_whole(of_claude: Person) -> None:
    person = of_claude
    person.upkeep()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    fork_on_the_command_line(person)
    list(copies(person))
    person.upkeep()
    with closing(
        Pack(pack_path(str(person.home / ".session-memory" / "store" / "memory.db")))
    ) as pack:
        assert [one.session_id for one in pack.sessions()] == [person.own_id]


def test_an_agent_does_not_read_what_its_own_session_repeats(of_claude: Person) -> None:
    person = of_claude
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    id = fork_on_the_command_line(person)
    shown = person.run("read", id, CLAUDE_CODE_SESSION_ID=id).stdout
    assert ("tamarind" in shown, WORD in shown) == (True, False)


def test_a_name_that_a_person_gave_a_forgotten_session_stays_away_when_it_goes_on(
    of_claude: Person,
) -> None:
    person = of_claude
    person.prompt()
    person.upkeep()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    [path] = transcripts(person)
    append(
        path,
        *exchange(
            "And the tamarind tree?", "It is green.", sessionId=person.ids[0], cwd=str(person.app)
        ),
    )
    assert WORD not in person.prompt()
    person.upkeep()
    assert person.holding() == []
    assert WORD not in person.run("sessions", "--all").stdout
    assert person.result("search", "tamarind")["hits"] != []


@pytest.mark.parametrize("place", ["app", "elsewhere"])
def test_forks_of_a_forgotten_project_do_not_have_the_names_that_a_person_gave(
    of_claude: Person, place: str
) -> None:
    person = of_claude
    person.prompt()
    person.upkeep()
    assert person.run("forget", "--project", str(person.app), "--yes").returncode == 0
    [path], id = transcripts(person), new_id()
    fork = Path(
        CLAUDE.project_dir(str(person.home / ".claude"), str(person.app.parent / place)),
        f"{id}.jsonl",
    )
    fork.parent.mkdir(exist_ok=True)
    fork.write_text(path.read_text().replace(person.ids[0], id))
    append(
        fork,
        *exchange(
            "And the tamarind tree?",
            "It is green.",
            sessionId=id,
            cwd=str(person.app.parent / place),
        ),
    )
    assert WORD not in person.prompt()
    person.upkeep()
    assert person.holding() == []
    assert WORD not in person.run("sessions", "--all").stdout
    assert person.result("search", "tamarind")["hits"] != []


def test_a_session_of_which_a_part_was_forgotten_keeps_the_name_that_a_person_gave(
    of_claude: Person,
) -> None:
    person = of_claude
    [path] = transcripts(person)
    append(
        path,
        *exchange("And the quince?", "It is yellow.", sessionId=person.ids[0], cwd=str(person.app)),
    )
    before = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() - 3600))
    assert person.run("forget", "--before", before, "--yes").returncode == 0
    name = f"{WORD} the site"
    assert name in person.prompt()
    assert name in person.run("conversations").stdout
    assert name in person.run("sessions", "--all").stdout


def test_edits_of_a_forgotten_session_s_sub_agent_are_not_told_of_a_copy_either(
    of_claude: Person,
) -> None:
    person = of_claude
    [path] = transcripts(person)
    edit = (
        "Edit",
        {"file_path": str(person.app / "Makefile"), "old_string": "all", "new_string": WORD},
    )
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    where = {
        "sessionId": person.ids[0],
        "cwd": str(person.app),
        "isSidechain": True,
        "agentId": "a1",
    }
    append(agent, *exchange(f"Write {WORD}", edit, **where))
    assert "Makefile" in person.prompt()
    assert person.run("forget", person.ids[0], "--yes").returncode == 0
    id = new_id()
    shutil.copytree(path.with_suffix(""), path.with_name(id))
    shutil.copy(path, path.with_name(f"{id}.jsonl"))
    told = person.prompt() + person.about_to_edit()
    assert ("Makefile" in told, WORD in told) == (False, False)
    person.upkeep()
    assert person.holding() == []
