"""Our copies of sessions of OpenCode, Gemini and Codex: without secrets and what is excluded, and
not for longer than they are needed (findings A7 and C7)."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opencode_scene import OpenCodeDatabase, tool
from records import codex_exchange, codex_line, gemini_exchange, gemini_message, lines, new_id
from secret_spellings import spellings
from share import some
from store_scene import StoreUser

from bench.scratch import remove_tree
from session_memory.common.system.json import objects_in
from session_memory.sessions.runtimes.records import CALLS, MESSAGES
from session_memory.sessions.runtimes.table import runtime
from session_memory.sessions.transcripts.mirror import copies_of

SECRET = "ghp_" + "x7Kq2mVt9RbW4nLs8PdF3hJc6ZyA1eGu5oTi"
SITE = "/srv/site"
EXCLUDING = "projects: {/srv/site: {ignore: true}}"


class Person(StoreUser):
    """Somebody with a session of each of the three, in the same directory."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.state = self.home / ".session-memory" / "state"
        self.ids: dict[str, str] = {}
        self.database = OpenCodeDatabase(self.home / ".local" / "share" / "opencode")
        self.chat = (
            self.home
            / ".gemini"
            / "tmp"
            / "site"
            / "chats"
            / "session-2026-11-20T10-00-01a1fb3f.jsonl"
        )

    def opencode(self, question: str, old: str = "one", new: str = "two") -> str:
        edit = tool(
            "edit", {"filePath": f"{SITE}/app", "oldString": old, "newString": new}, "Done."
        )
        self.ids["opencode"] = self.database.exchange(SITE, question, "Deployed.", edit)
        return self.ids["opencode"]

    def gemini(self, question: str) -> None:
        self.ids["gemini"] = new_id()
        self.chat.parent.mkdir(parents=True)
        (self.chat.parents[1] / ".project_root").write_text(SITE)
        header = {"sessionId": self.ids["gemini"], "projectHash": "0" * 64, "kind": "main"}
        self.chat.write_bytes(
            lines(header, gemini_message("user", question), gemini_message("gemini", "Deployed."))
        )

    def codex(self, question: str) -> None:
        self.ids["codex"] = new_id()
        then = time.time() - 7200
        head = codex_line(
            "session_meta", {"id": self.ids["codex"], "cwd": SITE, "source": "cli"}, at=then
        )
        self.rollout(
            self.ids["codex"], head, *codex_exchange(question, "Deployed.", cwd=SITE, at=then)
        )

    def rollout(self, session_id: str, *records: dict[str, Any]) -> None:
        path = (
            self.home
            / ".codex/sessions/2026/11/20"
            / f"rollout-2026-11-20T10-00-00-{session_id}.jsonl.zst"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.compress(lines(*records)))

    def all(self, question: str) -> None:
        self.opencode(question)
        self.gemini(question)
        self.codex(question)

    def copies(self) -> dict[str, bytes]:
        """Return all that lies in the folders of the copies, by runtime."""
        self.run("sessions", "--all")
        return {
            name: b"".join(
                path.read_bytes() for path in (self.state / name).rglob("*") if path.is_file()
            )
            for name in self.ids
        }


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_no_copy_holds_a_secret_and_all_else_of_it_is_there(person: Person) -> None:
    person.all(f"Deploy with token {SECRET} please.")
    for name, content in person.copies().items():
        assert SECRET.encode() not in content, name
        assert b"Deploy with token [redacted: " in content, name
    assert person.run("ingest").returncode == 0
    assert len(person.run("search", "deploy", "--json").stdout.split('"snippet"')) > 3


def test_the_texts_of_an_edit_are_redacted_too_and_stay_an_edit(person: Person) -> None:
    person.opencode("Deploy.", old=f"token = {SECRET}\n", new="token = os.environ['TOKEN']\n")
    assert SECRET.encode() not in person.copies()["opencode"]
    (path,) = (person.state / "opencode").glob("*/*.jsonl")
    records = [record for line in path.read_bytes().splitlines() for record in objects_in(line)]
    meaning = runtime("opencode").records
    calls = [
        (record, use.call_id)
        for record in records
        for event in meaning.events(record, 0, MESSAGES | CALLS)
        for use in getattr(event, "tools", ())
    ]
    (edits,) = [meaning.edits(record, id) for record, id in calls]
    ((old, new),) = edits
    assert old.startswith("token = [redacted: ")
    assert new == "token = os.environ['TOKEN']\n"


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        (
            {"input": {"password": "Maple.tunnel36"}},
            {"input": {"password": "[redacted: password]"}},
        ),
        (
            {"arguments": '{"password": "Maple.tunnel36"}'},
            {"arguments": '{"password": "[redacted: password]"}'},
        ),
        (
            {"arguments": '{"command": "make", "n": 1}'},
            {"arguments": '{"command": "make", "n": 1}'},
        ),
        ({"arguments": "{not JSON"}, {"arguments": "{not JSON"}),
        (
            {"id": SECRET, "call_id": SECRET, "message": "msg_1"},
            {"id": SECRET, "call_id": SECRET, "message": "msg_1"},
        ),
        (
            {"message": f"The token is {SECRET}."},
            {"message": "The token is [redacted: github token]."},
        ),
        (
            {"text": "Look at src/app.py.", "n": [1, None, True]},
            {"text": "Look at src/app.py.", "n": [1, None, True]},
        ),
    ],
)
def test_a_copy_keeps_ids_and_all_that_is_no_secret(held: object, kept: object) -> None:
    assert copies_of([held], is_excluded=False) == [kept]


def test_a_secret_is_found_wherever_it_stands_in_a_record() -> None:
    kept, every = [], list(spellings())
    for text, secret in every[:: len(every) // some(len(every), 300)]:
        record = {
            "type": "text",
            "text": "Look at the café.",
            "state": {"input": {"description": text}, "n": 3},
        }
        records = [
            {"id": "prt_1", "output": "12 passed"},
            record,
            {"arguments": json.dumps({"command": text})},
        ]
        if secret in json.dumps(copies_of(records, is_excluded=False), ensure_ascii=False):
            kept.append(text)
    assert kept == []


@pytest.mark.parametrize("rule", [EXCLUDING, "sessions: {ID: {ignore: true}}"])
def test_of_an_excluded_session_no_copy_holds_what_was_said(person: Person, rule: str) -> None:
    person.all("Deploy the landlord's site.")

    def configure(text: str) -> None:
        ids = ", ".join(f"{id}: {{ignore: true}}" for id in person.ids.values())
        person.config(text.replace("{ID: {ignore: true}}", f"{{{ids}}}"))

    for before in ("{}", rule):  # said before it was excluded, and again after
        configure(before)
        held = {name: b"landlord" in content for name, content in person.copies().items()}
        assert held == dict.fromkeys(person.ids, before == "{}")
    fork = person.database.fork(person.ids["opencode"], "fork")
    person.database.turn(fork, "Again.", "Deployed.")
    for words in (("sessions", "--all", "--json"), ("read", fork)):
        assert "landlord" not in person.run(*words).stdout
    configure("{}")
    assert all(b"landlord" in content for content in person.copies().values())


def test_of_an_excluded_session_of_codex_no_copy_holds_what_a_sub_agent_or_an_older_version_wrote(
    person: Person,
) -> None:
    person.codex("Deploy the site.")
    old, agent, told = (
        new_id(),
        new_id(),
        codex_exchange("The landlord's site?", "The landlord's.", cwd=SITE),
    )
    person.rollout(old, {"id": old, "timestamp": told[0]["timestamp"], "instructions": None}, *told)
    header = {
        "id": agent,
        "session_id": person.ids["codex"],
        "cwd": SITE,
        "source": {"subagent": "review"},
    }
    person.rollout(agent, codex_line("session_meta", header), *told)
    assert person.copies()["codex"].count(b"The landlord's site?") == 4  # twice in each
    person.config(f"sessions: {{{old}: {{ignore: true}}, {person.ids['codex']}: {{ignore: true}}}}")
    assert b"landlord" not in person.copies()["codex"]


def test_the_copy_of_a_deleted_chat_goes_once_the_store_has_it(person: Person) -> None:
    person.gemini("Deploy the site.")
    person.copies()
    person.chat.unlink()
    assert b"Deploy the site." in person.copies()["gemini"]
    assert person.run("ingest").returncode == 0
    assert list((person.state / "gemini").glob("*/*.jsonl")) == []
    assert "Deploy the site." in person.run("search", "deploy", "--json").stdout


def test_the_copy_of_a_chat_that_is_there_stays(person: Person) -> None:
    person.gemini("Deploy the site.")
    for _ in range(2):
        assert person.run("ingest").returncode == 0
    assert len(list((person.state / "gemini").glob("*/*.jsonl"))) == 1


def test_what_is_forgotten_is_in_no_copy_that_is_made_again(person: Person) -> None:
    """Copies are made again if rules change, a chat is written anew, or ours are gone."""
    person.all("Is the cherimoya ripe?")
    with person.chat.open("ab") as chat:
        chat.write(
            lines(
                *[
                    message
                    for number in range(25)
                    for message in gemini_exchange(f"{number}?", "Yes.")
                ]
            )
        )
    assert person.run("ingest").returncode == 0
    assert all(b"cherimoya" in content for content in person.copies().values())
    for session_id in person.ids.values():
        assert person.run("forget", session_id, "--yes").returncode == 0
    person.config("sessions: {other: {ignore: true}}")
    held = [person.copies()]
    person.chat.write_bytes(person.chat.read_bytes().replace(b'"kind"', b'"kind" '))
    held.append(person.copies())
    for name in person.ids:
        remove_tree(person.state / name)
    held.append(person.copies())
    assert [
        name for copies in held for name, content in copies.items() if b"cherimoya" in content
    ] == []
    person.database.turn(person.ids["opencode"], "And now?", "It is.")
    assert b"And now?" in person.copies()["opencode"]


@pytest.mark.parametrize(
    "statements",
    [
        (
            "CREATE TABLE session_message (id text, session_id text)",
            "INSERT INTO session_message VALUES ('m', 's')",
        ),
        ("CREATE TABLE session_v2 (id text)", "INSERT INTO session_v2 VALUES ('s')"),
    ],
)
def test_sessions_in_tables_of_a_newer_opencode_are_reported(
    person: Person, statements: tuple[str, str]
) -> None:
    """OpenCode moves its sessions there (public source): they must not be missing in silence."""
    person.opencode("Deploy the site.")
    person.database.run(statements[0])
    assert person.run("ingest").returncode == 0
    person.database.run(statements[1])
    done = person.run("ingest")
    assert (
        done.returncode,
        "1 session is in tables of a newer OpenCode" in " ".join(done.stdout.split()),
    ) == (1, True)
    health: dict[str, Any] = json.loads(person.run("doctor", "store", "--json").stdout)
    assert any(path.endswith("opencode.db") for path in health["unread"])


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_no_longer_excluded_is_found(person: Person, is_known: bool) -> None:
    """Its texts take the place of those that an excluded copy has, also in the search index."""
    person.all("Deploy the landlord's site.")
    failing = tool("bash", {"command": "make landlord"}, "landlord: no such target", exit_code=2)
    person.database.turn(person.ids["opencode"], "Make it.", "It fails.", failing)
    for text in ("{}", EXCLUDING, "{}") if is_known else (EXCLUDING, "{}"):
        person.config(text)
        assert person.run("ingest").returncode == 0
    found = person.run("search", "landlord", "--json").stdout
    assert [name for name, id in person.ids.items() if id not in found] == []
    assert '"hits": []' in person.run("search", "excluded", "--json").stdout
    with closing(
        sqlite3.connect(person.home / ".session-memory" / "store" / "memory.db")
    ) as connection:
        calls = connection.execute(
            "SELECT argument, outcome, error FROM memory_tool_uses ORDER BY id"
        ).fetchall()
    assert calls[-1] == ("make landlord", "error", "landlord: no such target")


@pytest.mark.parametrize("known", ["original", "", "fork"])  # before it was excluded, or first
def test_of_a_fork_the_store_tells_nothing_that_its_excluded_original_said(
    person: Person, known: str
) -> None:
    original = person.opencode("Deploy the landlord's site.")
    if known == "original":
        assert person.run("ingest").returncode == 0
    person.config(f"sessions: {{{original}: {{ignore: true}}}}")
    fork = person.database.fork(original, "fork")
    person.database.turn(fork, "Again, tenant.", "Deployed.")
    if known == "fork":  # the latest is ingested last
        person.database.turn(original, "And again.", "Deployed.", at=time.time() + 5)
    assert person.run("ingest").returncode == 0
    assert "Again" in person.run("search", "tenant", "--json").stdout
    found = (
        person.run("search", "landlord", "--json").stdout
        + person.run("search", f"{SITE}/app", "--json").stdout
    )
    assert [text for text in ("Deploy the", f'"{SITE}/app') if text in found] == []
    assert "landlord" not in person.run("read", fork).stdout
