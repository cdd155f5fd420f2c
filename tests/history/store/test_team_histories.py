"""Random histories of machines in two teams: after each push, a member reads exactly the shared
part.

The stored part is read from the machine's own store, and its sharing is judged again by simpler
means.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random

import pytest
from postgres_server import PostgresServer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from records import append, assistant, user
from share import some
from store_scene import EVERYTHING
from team_scene import Member

from session_memory.cli import main
from session_memory.extras.team.postgres.connection import TeamError, connect
from session_memory.extras.team.postgres.engine import TeamStore
from session_memory.extras.team.postgres.schema import add_member, migrate
from session_memory.history.store.location import find_location
from session_memory.history.store.sqlite.engine import SqliteStore

STEPS = 25  # of a history
SESSIONS = ("plan", "build", "notes", "fork")
SHARES = ("off", "mine", "team")
MEMBERSHIPS = {"one": ("ann", "bob"), "two": ("bob", "cleo")}
MACHINES = (("one", "ann"), ("one", "bob"), ("two", "bob"), ("two", "cleo"))

Texts = dict[str, list[str]]  # by session


class Machine:
    """A member's machine in a team; `rules` are what its settings say of sessions."""

    def __init__(self, home: Path, url: str, member: str, random: Random) -> None:
        self.user = Member(home)
        self.url, self.member, self.random = url, member, random
        self.share = "mine"
        self.rules: dict[str, dict[str, str]] = {}
        self.hides_secret_directory = False
        self.is_cut_off = False
        self.said = 0
        self.gone: set[str] = set()  # texts that were forgotten or cleaned
        for _ in range(3):
            self.grows()
        self.is_forked()
        self.settles()

    def runs(self, *words: str) -> int:
        os.environ["HOME"] = str(self.user.home)
        os.chdir(self.user.home)
        return main(words)

    def settles(self) -> None:
        """Writes the settings."""
        given = conninfo_to_dict(make_conninfo(self.url, user=self.member))
        host, port = (
            ("/nowhere", 1) if self.is_cut_off else (given["host"], given.get("port", 5432))
        )
        url = f"postgresql://{self.member}@/{given['dbname']}?host={host}&port={port}"
        sessions = "".join(
            f"  {name}: {{{', '.join(f'{key}: {value}' for key, value in rule.items())}}}\n"
            for name, rule in self.rules.items()
        )
        secret = (
            f"projects: {{{self.user.clone}/secret: {{ignore: true}}}}\n"
            if self.hides_secret_directory
            else ""
        )
        sessions = f"sessions:\n{sessions}" if sessions else ""
        self.user.config(
            f"upkeep: off\nteam: {{url: '{url}', machine: laptop, share: {self.share}}}\n{secret}{sessions}"
        )

    def transcript(self, name: str) -> Path:
        return self.user.projects / name / f"{name}.jsonl"

    # What may happen
    # ---------------------------------------------------------------------------------------------

    def grows(self) -> None:
        name = self.random.choice(SESSIONS[:3])
        for _ in range(self.random.randint(1, 3)):
            self.said += 1
            at = time.time() - self.random.choice((0, 0, 7200))
            cwd = f"{self.user.clone}{self.random.choice(('', '', '/secret'))}"
            text = f"{self.member} says w{self.said}x{self.random.randrange(10**6)}"
            use = ("Bash", {"command": f"echo w{self.said}y{self.random.randrange(10**6)}"})
            self.transcript(name).parent.mkdir(exist_ok=True)
            answer = assistant(f"done w{self.said}z", use, at=at, cwd=cwd, sessionId=name)
            append(self.transcript(name), user(text, at=at, cwd=cwd, sessionId=name), answer)

    def is_forked(self) -> None:
        original = self.transcript(self.random.choice(SESSIONS[:3]))
        if original.exists() and not self.transcript("fork").exists():
            self.transcript("fork").parent.mkdir(exist_ok=True)
            shutil.copyfile(original, self.transcript("fork"))
            self.said += 1
            cwd = str(self.user.clone)
            append(
                self.transcript("fork"),
                user(f"{self.member} forks w{self.said}f", cwd=cwd, sessionId="fork"),
            )

    def is_told_to_share(self) -> None:
        self.rules.setdefault(self.random.choice(SESSIONS), {})["share"] = self.random.choice(
            SHARES
        )

    def is_told_to_hide(self) -> None:
        rule = self.rules.setdefault(self.random.choice(SESSIONS), {})
        for key in ("ignore", "text"):
            rule.pop(key, None)
        if self.random.random() < 0.5:
            rule.update(self.random.choice(({"ignore": "true"}, {"text": "false"})))

    def hides_a_directory_or_shows_it(self) -> None:
        self.hides_secret_directory = not self.hides_secret_directory

    def shares_otherwise(self) -> None:
        self.share = self.random.choice(SHARES)

    def forgets(self) -> None:
        name = self.random.choice(SESSIONS)
        self.runs("ingest")
        before = {text for texts in self.stored(rules=False).values() for text in texts}
        self.runs("forget", name, "--yes", *self.random.choice(((), ("--before", "1h"))))
        self.gone |= before - {
            text for texts in self.stored(rules=False).values() for text in texts
        }

    def is_cleaned(self) -> None:
        path = self.transcript(self.random.choice(SESSIONS))
        if path.exists():
            lines = path.read_text().splitlines(keepends=True)
            at = self.random.randrange(len(lines))
            self.said += 1
            lines[at] = (
                lines[at]
                .replace(" says ", f" cleaned w{self.said}c ")
                .replace("echo ", "echo cleaned ")
            )
            if self.random.random() < 0.3:
                del lines[at]
            before = {text for texts in self.stored(rules=False).values() for text in texts}
            path.write_text("".join(lines))
            self.runs("ingest", "--reimport", *self.random.choice(((), ("--file", str(path)))))
            self.gone |= before - {
                text for texts in self.stored(rules=False).values() for text in texts
            }

    def is_rebuilt(self) -> None:
        for path in self.user.database.parent.glob("memory.db*"):
            if "forgotten" not in path.name:
                path.unlink()

    def loses_the_server_or_finds_it(self) -> None:
        self.is_cut_off = not self.is_cut_off

    # What is to be there
    # -----------------------------------------------------------------------------------------

    def stored(self, *, rules: bool = True) -> Texts:
        """Return the store's content in the order of the transcript; without `rules`, all of it."""
        os.environ["HOME"] = str(self.user.home)
        location = find_location(None, os.environ)
        found: Texts = {}
        with closing(
            SqliteStore(str(self.user.database), rules=location.rules if rules else None)
        ) as store:
            if not rules:
                with store.transaction() as connection:
                    connection.execute(
                        "DELETE FROM memory_excluded_files; DELETE FROM memory_excluded_items"
                    )
                    connection.execute("DELETE FROM memory_rules")
            for talk in store.conversations(EVERYTHING)[::-1]:
                found.setdefault(talk.session_id, []).extend(
                    entry.text for entry in store.entries(talk.id)
                )
        return {name: texts for name, texts in found.items() if texts}

    def shares(self, name: str) -> int:
        """Return with whom a session is shared: nobody, the member's machines, or the team."""
        rule = self.rules.get(name, {})
        if "ignore" in rule or "text" in rule:
            return 0
        return SHARES.index(rule.get("share", self.share))

    def shared(self) -> dict[str, Texts]:
        """Return the content for the member, and for the others.

        A text in several sessions is shared like the strictest of them."""
        everything, told = self.stored(rules=False), self.stored()
        having: dict[str, list[str]] = {}
        for name, texts in everything.items():
            for text in texts:
                having.setdefault(text, []).append(name)
        found: dict[str, Texts] = {}
        for share in SHARES[1:]:
            of_share = {
                name: [
                    text
                    for text in texts
                    if min(map(self.shares, having[text])) == self.shares(name)
                ]
                for name, texts in told.items()
                if self.shares(name) == SHARES.index(share)
            }
            found[share] = {name: sorted(texts) for name, texts in of_share.items() if texts}
        return {"others": found["team"], "own": {**found["mine"], **found["team"]}}


STEPS_OF = (
    Machine.grows,
    Machine.grows,
    Machine.grows,
    Machine.is_forked,
    Machine.is_told_to_share,
    Machine.is_told_to_hide,
    Machine.hides_a_directory_or_shows_it,
    Machine.shares_otherwise,
    Machine.forgets,
    Machine.is_cleaned,
    Machine.is_rebuilt,
    Machine.loses_the_server_or_finds_it,
)


@contextmanager
def two_teams(postgres: PostgresServer) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        urls = {team: stack.enter_context(postgres.empty_database()) for team in MEMBERSHIPS}
        for team, names in MEMBERSHIPS.items():
            with closing(connect(urls[team])) as connection:
                migrate(connection)
                for name in names:
                    add_member(connection, name)
        yield urls


def test_a_member_reads_exactly_what_is_shared_with_them(
    postgres, tmp_path, monkeypatch, pytestconfig, capsys
):
    for name in set(os.environ) - {"LANG", "TZ", "SESSION_MEMORY_TEST_POSTGRES"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(tmp_path)
    for seed in range(pytestconfig.getoption("histories") or some(8, 2)):
        with two_teams(postgres) as urls:
            run(seed, tmp_path / str(seed), urls)
        capsys.readouterr()


def run(seed: int, directory: Path, urls: dict[str, str]) -> None:
    """Runs the history with this number."""
    random = Random(seed)
    machines = [
        Machine(directory / f"{team}-{name}", urls[team], name, random) for team, name in MACHINES
    ]
    history = []
    for _ in range(STEPS):
        machine = random.choice(machines)
        step: Callable[[Machine], None] = random.choice(STEPS_OF)
        history.append(f"{machine.member} {step.__name__}")
        step(machine)
        machine.settles()
        if random.random() < 0.4:
            history.append(f"{machine.member} pushes")
            assert machine.runs("team", "push") == (1 if machine.is_cut_off else 0), (seed, history)
            if not machine.is_cut_off:
                check(machine, urls, (seed, history))


def check(machine: Machine, urls: dict[str, str], history: object) -> None:
    """Compares what each person reads of a machine with what is to be there."""
    shared = machine.shared()
    for name in ("ann", "bob", "cleo"):
        url = make_conninfo(machine.url, user=name)
        team = next(team for team, url in urls.items() if url == machine.url)
        if name not in MEMBERSHIPS[team]:
            with pytest.raises(TeamError):
                TeamStore(url)
            continue
        with closing(TeamStore(url)) as store:
            found: Texts = {}
            for talk in store.conversations(EVERYTHING):
                if talk.who == f"{machine.member}@laptop":
                    texts = [entry.text for entry in store.entries(talk.id)]
                    assert texts, (history, "an empty conversation")
                    found.setdefault(talk.session_id, []).extend(texts)
            found = {session: sorted(texts) for session, texts in found.items()}
            wanted = shared["own" if name == machine.member else "others"]
            assert found == wanted, (history, name)
            readable = {text for texts in wanted.values() for text in texts}
            assert not machine.gone & readable - {
                t for texts in machine.stored().values() for t in texts
            }
            for text in machine.random.sample(
                sorted(machine.gone | readable), min(6, len(machine.gone | readable))
            ):
                word = next(
                    word for word in text.split() if word[:1] == "w" and word[1:2].isdigit()
                )
                hits = [
                    hit
                    for hit in store.search(word, EVERYTHING)
                    if hit.conversation.who == f"{machine.member}@laptop"
                ]
                assert bool(hits) == any(word in one.split() for one in readable), (
                    history,
                    name,
                    text,
                )
