"""`session-memory forget`: its preview, its deletions, and that nothing restores deleted content."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from host_scene import ingested, three_groups
from records import append, assistant, exchange, gemini_exchange, lines, new_id, user
from store_scene import COMMAND, MONDAY, StoreUser

from session_memory.history.archives.writer import archive_group_session

DAY = 24 * 3600
OLD, NEW, OTHER = "old-session", "new-session", "other-session"
WORDS = {OLD: "cherimoya", NEW: "tamarind", OTHER: "persimmon"}


class Person(StoreUser):
    """A person with two sessions in one project, a day apart, and one in another.

    All of them are archived and have memories."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.work = home / "work"
        for session, at in ((OLD, MONDAY), (NEW, MONDAY + DAY), (OTHER, MONDAY + DAY)):
            self.talk(session, at)
        self.run("ingest")
        assert "3 archived" in self.run("process").stdout
        assert self.run("archive", "--all").returncode == 0

    def talk(self, session: str, at: float) -> Path:
        cwd = str(self.home / "elsewhere" if session == OTHER else self.work)
        path = self.projects / cwd.replace("/", "-") / f"{session}.jsonl"
        path.parent.mkdir(exist_ok=True)
        for number in range(3):
            records = [
                user(
                    f"Please remember that {WORDS[session]} number {number} is ripe",
                    at=at + number,
                    cwd=cwd,
                ),
                assistant(
                    f"I decided to keep {WORDS[session]} number {number}.", at=at + number, cwd=cwd
                ),
            ]
            append(path, *[{**one, "sessionId": session} for one in records])
        return path

    def holds(self, word: str) -> list[str]:
        """The files below the person's place in which a word stands."""
        place = self.home / ".session-memory"
        return [
            path.name
            for path in sorted(place.rglob("*"))
            if path.is_file() and word.encode() in path.read_bytes()
        ]

    def hits(self, word: str) -> int:
        found = json.loads(self.run("search", word, "--json").stdout)
        return len(found["hits"]) + len(found["memories"])


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_it_shows_what_goes_and_what_stays_and_does_nothing_unless_somebody_agrees(
    person: Person,
) -> None:
    before = person.holds("cherimoya")
    done = person.run("forget", OLD)
    assert done.returncode == 1
    assert "1 conversation, 6 messages, " in done.stdout
    assert "1 archive" in done.stdout
    assert f"{OLD}.jsonl" in done.stdout
    assert "--yes" in done.stderr
    assert person.holds("cherimoya") == before
    assert person.hits("cherimoya") > 0


def test_a_session_is_gone_everywhere_and_the_transcript_stays(person: Person) -> None:
    assert person.hits("cherimoya") > 0
    done = person.run("forget", OLD, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert person.hits("cherimoya") == 0
    assert person.holds("cherimoya") == []
    assert person.hits("tamarind") > 0
    assert len(list(person.projects.rglob(f"{OLD}.jsonl"))) == 1


def test_it_does_not_come_back_with_the_next_ingest_nor_with_a_new_store(person: Person) -> None:
    person.run("forget", OLD, "--yes")
    transcript = next(person.projects.rglob(f"{OLD}.jsonl"))
    transcript.touch()
    person.run("ingest")
    assert person.hits("cherimoya") == 0
    for path in person.database.parent.glob("memory.db*"):
        if "forgotten" not in path.name:
            path.unlink()
    assert person.hits("tamarind") > 0
    assert person.hits("cherimoya") == 0
    person.run("process")
    assert "cherimoya" not in person.run("memories", "--limit", 1000).stdout


def test_what_was_said_by_a_clock_that_was_ahead_does_not_come_back_either(person: Person) -> None:
    path = next(person.projects.rglob(f"{OLD}.jsonl"))
    append(path, {**user("the cherimoya of next week", at=time.time() + 7 * DAY), "sessionId": OLD})
    assert person.run("forget", OLD, "--yes").returncode == 0
    path.touch()
    assert person.run("ingest", "--reimport").returncode == 0
    assert (person.hits("cherimoya"), person.holds("cherimoya")) == (0, [])


def test_a_session_that_goes_on_is_known_from_then_on(person: Person) -> None:
    person.run("forget", OLD, "--yes")
    append(
        next(person.projects.rglob(f"{OLD}.jsonl")),
        {**user("what about quince?"), "sessionId": OLD},
    )
    assert (person.hits("quince"), person.hits("cherimoya")) == (1, 0)


def test_a_project_is_all_that_was_started_there_also_what_turns_up_later(person: Person) -> None:
    late = next(person.projects.rglob(f"{NEW}.jsonl"))
    content = late.read_bytes().replace(NEW.encode(), b"late-session")
    assert person.run("forget", "--project", person.work, "--yes").returncode == 0
    late.with_name("late-session.jsonl").write_bytes(content)
    assert [person.hits(word) > 0 for word in ("cherimoya", "tamarind", "persimmon")] == [
        False,
        False,
        True,
    ]


def test_what_is_old_goes_by_conversation(person: Person) -> None:
    assert person.run("forget", "--before", "2026-09-22", "--yes").returncode == 0
    assert [person.hits(word) > 0 for word in ("cherimoya", "tamarind", "persimmon")] == [
        False,
        True,
        True,
    ]


def test_what_is_excluded_can_be_forgotten(person: Person) -> None:
    person.config(f"sessions: {{{OLD}: {{ignore: true}}}}\n")
    assert person.run("forget", OLD, "--yes").returncode == 0
    assert person.holds("cherimoya") == []


def test_a_private_archive_is_forgotten_too(person: Person) -> None:
    person.config(f"sessions: {{{OLD}: {{ignore: true}}}}\n")
    person.run("archive", "--all")
    assert [path.parent.name for path in person.home.rglob("*cherimoya*.md")] == [
        ".private-conversations"
    ]
    assert person.run("forget", OLD, "--yes").returncode == 0
    assert list(person.home.rglob("*cherimoya*.md")) == []


def test_the_archive_of_a_session_that_goes_on_has_no_more_of_it(person: Person) -> None:
    person.run("forget", OLD, "--yes")
    person.run("archive", "--all")
    assert person.holds("cherimoya") == []
    append(
        next(person.projects.rglob(f"{OLD}.jsonl")),
        {**user("what about quince?"), "sessionId": OLD},
    )
    person.run("archive", "--all")
    assert person.holds("cherimoya") == []
    assert [name for name in person.holds("quince") if name.endswith("-what-about-quince.md")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no session was named"),
        (("no-such-session",), "no session is called 'no-such-session'"),
        (("--before", "2020-01-01"), "nothing"),
    ],
)
def test_where_nothing_fits_that_is_said(person: Person, words: tuple[str, ...], said: str) -> None:
    done = person.run("forget", *words, "--yes")
    assert done.returncode == (1 if words else 2)
    assert said in done.stderr


def test_what_is_kept_of_it_is_nothing_that_anybody_can_read(person: Person) -> None:
    person.run("forget", "--project", person.work, "--yes")
    kept = Path(f"{person.database}.forgotten.jsonl").read_text()
    assert (OLD in kept, str(person.work) in kept) == (False, False)
    assert all(json.loads(line)["before"] for line in kept.splitlines())


def test_of_a_session_that_we_mirror_the_mirror_is_emptied_and_what_the_runtime_keeps_stays(
    tmp_path: Path,
) -> None:
    person, id = StoreUser(tmp_path), new_id()
    project = tmp_path / ".gemini" / "tmp" / "site"
    (project / "chats").mkdir(parents=True)
    (project / ".project_root").write_text("/srv/site")
    chat = project / "chats" / f"session-2026-11-20T10-00-{id[:8]}.jsonl"
    said = gemini_exchange("Is the cherimoya ripe?", "The cherimoya is ripe.", at=MONDAY)
    chat.write_bytes(lines({"sessionId": id, "projectHash": "0" * 64, "kind": "main"}, *said))
    place = tmp_path / ".session-memory"
    assert len(person.result("search", "cherimoya")["hits"]) > 0
    assert [
        path.name for path in place.rglob(f"{id}.jsonl") if b"cherimoya" in path.read_bytes()
    ] == [f"{id}.jsonl"]

    done = person.run("forget", id, "--yes")
    assert "The runtime's own copies of 1 session stay too" in done.stdout
    assert person.run("ingest").returncode == 0
    assert [
        path.name
        for path in place.rglob("*")
        if path.is_file() and b"cherimoya" in path.read_bytes()
    ] == []
    assert b"cherimoya" in chat.read_bytes()

    with chat.open("ab") as file:
        file.write(lines(*gemini_exchange("And the tamarind?", "The tamarind too.")))
    assert person.result("search", "cherimoya", code=1)["hits"] == []
    assert len(person.result("search", "tamarind")["hits"]) > 0
    assert [
        path.name
        for path in place.rglob("*")
        if path.is_file() and b"cherimoya" in path.read_bytes()
    ] == []


def at_a_terminal(person: Person, answers: bytes, *words: str) -> str:
    """What `session-memory forget` shows somebody who gives these answers."""
    controller, worker = pty.openpty()
    command = [sys.executable, "-c", COMMAND, "forget", *words]
    with subprocess.Popen(
        command, stdin=worker, stdout=worker, stderr=worker, env=person.environment, cwd=person.home
    ) as process:
        os.write(controller, answers)
        assert process.wait(60) == 0
        shown = os.read(controller, 100_000).decode()
    os.close(worker)
    os.close(controller)
    return shown


def test_a_person_is_asked_about_the_runtime_s_transcript_which_is_then_deleted(
    person: Person,
) -> None:
    shown = at_a_terminal(person, b"y\nn\n", OLD)
    assert "Delete them too?" in shown
    assert len(list(person.projects.rglob(f"{OLD}.jsonl"))) == 1
    shown = at_a_terminal(person, b"", NEW, "--yes", "--transcripts")
    assert "Deleted: 1 transcript." in shown
    assert [path.stem for path in person.projects.rglob("*.jsonl")].count(NEW) == 0


def test_transcripts_are_deleted_by_nobody_but_a_person_at_a_terminal(person: Person) -> None:
    done = person.run("forget", OLD, "--yes", "--transcripts")
    assert (done.returncode, "only for people" in done.stderr) == (1, True)
    assert person.hits("cherimoya") > 0
    assert len(list(person.projects.rglob(f"{OLD}.jsonl"))) == 1


def test_it_takes_the_whole_id_or_what_only_one_session_goes_by(person: Person) -> None:
    person.session("old-town", {**user("the persimmon is green"), "sessionId": "old-town"})
    person.run("ingest")
    done = person.run("forget", "old-", "--yes")
    assert done.returncode == 1
    assert [name in done.stderr for name in ("2 sessions match 'old-'", OLD, "old-town", NEW)] == [
        True,
        True,
        True,
        False,
    ]
    assert person.hits("cherimoya") > 0
    assert person.run("forget", "old-s", "--yes").returncode == 0
    assert (person.hits("cherimoya"), person.hits("green")) == (0, 1)


def test_an_agent_is_shown_no_excluded_session(person: Person) -> None:
    person.config(f"sessions: {{{OLD}: {{ignore: true}}}}\n")
    agent = {"CLAUDECODE": "1"}
    for words in (["--project", str(person.home)], ["--before", "2030-01-01"]):
        shown = [person.run("forget", *words, **environ) for environ in ({}, agent)]
        assert [OLD in done.stdout for done in shown] == [True, False]
        assert [NEW in done.stdout for done in shown] == [True, True]
    person.session("old-town", {**user("a green fruit"), "sessionId": "old-town"})
    person.run("ingest")
    done = person.run("forget", "old-", **agent)
    assert [name in done.stderr for name in (OLD, "old-town")] == [False, True]
    done = person.run("forget", "--project", str(person.home), "--yes", "--json", **agent)
    assert (OLD in done.stdout.replace(f"{OLD}.jsonl", ""), person.hits("cherimoya")) == (False, 0)


@pytest.mark.parametrize("words", [(OLD,), ("--before", "2026-09-22")])
def test_a_title_that_a_model_made_of_it_is_gone_from_a_session_that_goes_on(
    person: Person, words: tuple[str, ...]
) -> None:
    path = next(person.projects.rglob(f"{OLD}.jsonl"))
    title = {"type": "ai-title", "aiTitle": "About a cherimoya", "sessionId": OLD}
    append(path, title, *([] if words == (OLD,) else goes_on()))
    assert "About a cherimoya" in person.run("conversations").stdout
    assert person.run("forget", *words, "--yes").returncode == 0
    append(path, *(goes_on() if words == (OLD,) else []), title)
    shown = person.run("conversations").stdout + person.run("search", "quince").stdout
    assert ("what about quince?" in shown, person.holds("cherimoya")) == (True, [])


def goes_on() -> list[dict[str, Any]]:
    return [{**one, "sessionId": OLD} for one in exchange("what about quince?", "Good.")]


@pytest.fixture
def resumed(person: Person) -> Path:
    """The transcript of a session that went on days later, and is stored and archived."""
    cwd = str(person.work)
    late = [
        user("what about quince?", at=MONDAY + 2 * DAY, cwd=cwd),
        assistant("Good.", at=MONDAY + 2 * DAY, cwd=cwd),
    ]
    path = next(person.projects.rglob(f"{OLD}.jsonl"))
    append(path, *[{**one, "sessionId": OLD} for one in late])
    person.run("ingest")
    person.run("archive", "--all")
    return path


@pytest.mark.usefixtures("resumed")
def test_a_part_of_a_session_is_gone_from_its_archive_and_from_the_archive_s_name(
    person: Person,
) -> None:
    assert [path for path in person.home.rglob("*cherimoya*.md")]
    assert person.run("forget", "--before", "2026-09-22", "--yes").returncode == 0
    assert person.holds("cherimoya") == []
    assert [path for path in person.home.rglob("*cherimoya*.md")] == []
    assert len([name for name in person.holds("quince") if name.endswith(".md")]) == 1


def test_an_archive_whose_transcript_is_gone_is_named_until_the_person_deleted_it(
    person: Person, resumed: Path
) -> None:
    resumed.unlink()
    done = person.run("forget", "--before", "2026-09-22", "--yes")
    [archive] = person.home.rglob("*cherimoya*.md")
    assert (done.returncode, archive.name in done.stderr) == (1, True), done.stderr
    assert (done.stdout.count("Forgotten only in part"), person.hits("cherimoya")) == (1, 0)
    assert archive.name in person.run("ingest").stderr
    archive.unlink()
    done = person.run("ingest")
    assert (done.returncode, archive.name in done.stderr, person.holds("cherimoya")) == (
        0,
        False,
        [],
    )


def test_what_cannot_be_deleted_is_reported_and_the_next_run_finishes_it(person: Person) -> None:
    journal = Path(f"{person.database}.forgetting.json")
    reading = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('BEGIN'); "
    reading += (
        "print(len(c.execute('SELECT * FROM entries').fetchall()), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", reading, str(person.database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout
        assert reader.stdout.readline()
        began = time.monotonic()
        done = person.run("forget", OLD, "--yes")
        assert (
            done.returncode,
            "another program is still reading the deleted rows" in done.stderr,
        ) == (
            1,
            True,
        )
        assert time.monotonic() - began < 20
        assert person.hits("cherimoya") == 0
        reader.communicate()
    assert json.loads(journal.read_text()) == [{"free_pages": True}]
    assert person.run("ingest").returncode == 0
    assert not journal.exists()
    assert person.holds("cherimoya") == []


def test_a_journal_that_cannot_be_read_is_reported(person: Person) -> None:
    journal = Path(f"{person.database}.forgetting.json")
    for content in ("{", '[{"moon": []}]', "7"):
        journal.write_text(content)
        done = person.run("forget", OLD, "--yes")
        assert (done.returncode, str(journal.name) in done.stderr, "Traceback" in done.stderr) == (
            1,
            True,
            False,
        )
    assert person.hits("cherimoya") > 0


def test_a_part_of_a_group_s_session_is_gone_from_its_archive_and_from_the_archive_s_name(
    tmp_path: Path,
) -> None:
    with three_groups(tmp_path / "host") as host:
        old = time.time() - 90 * 86400
        records = [
            *exchange("the aubergine plan", "done", at=old),
            *exchange("water the garden", "yes"),
        ]
        session_id = host.begin("family", *records)
        group = host.layout.group("family")
        archive_group_session(group, session_id, time.time())
        (name,) = host.archives("family")
        assert "aubergine" in name
        ingested(host)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            COMMAND,
            "forget",
            session_id,
            "--before",
            "30d",
            "--yes",
            "--home",
            str(tmp_path / "host"),
        ],
        env={
            "PATH": os.defpath,
            "HOME": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parents[3]),
        },
        cwd=tmp_path,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (name,) = [path for path in Path(group.conversations_dir).iterdir() if path.suffix == ".md"]
    assert name.name.endswith("-water-the-garden.md")
    assert "aubergine" not in name.read_text()
    assert "water the garden" in name.read_text()


def test_a_damaged_store_that_was_set_aside_goes_if_the_new_one_has_its_rows(
    person: Person,
) -> None:
    with person.database.open("r+b") as file:
        file.write(bytes(100))
    assert person.hits(WORDS[NEW]) > 0
    assert [name for name in person.holds(WORDS[OLD]) if ".corrupt-" in name] != []
    assert person.run("forget", OLD, "--yes").returncode == 0
    assert person.holds(WORDS[OLD]) == []
    assert person.hits(WORDS[NEW]) > 0


@pytest.mark.parametrize("file", ["memory.db", "memory.db.queue", "kept.db"])
def test_a_damaged_file_that_an_earlier_version_set_aside_is_named_until_it_is_gone(
    person: Person, file: str
) -> None:
    aside = person.database.with_name(f"{file}.corrupt-20260101-000000")
    aside.write_text(WORDS[OLD])
    done = person.run("forget", OLD, "--yes")
    assert done.returncode == 1
    assert (
        f"set aside may still contain it: delete them by hand: ~/.session-memory/store/{aside.name}"
        in done.stderr
    )
    aside.unlink()
    assert person.run("ingest").returncode == 0
    assert not person.database.with_name("memory.db.forgetting.json").exists()
    assert person.holds(WORDS[OLD]) == []
