"""Shells complete visible sessions, projects and memories, whatever a title contains."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from completion_scene import (
    completed_by_bash,
    completed_by_fish,
    put_program,
    script,
    shell,
    typed_shell,
)
from records import exchange
from store_scene import StoreUser, trip

CART = "11111111-aaaa-4aaa-8aaa-000000000001"
EVIL = "22222222-aaaa-4aaa-8aaa-000000000002"
PRIVATE = "33333333-aaaa-4aaa-8aaa-000000000003"
FORGOTTEN = "44444444-aaaa-4aaa-8aaa-000000000004"
COLOURED = "55555555-aaaa-4aaa-8aaa-000000000005"
CART_TITLE = "Fix the cart: 2 prices = wrong"
EVIL_TITLE = 'Run $(touch marker) `touch marker`; it\'s "this" & hello!'


class Person(StoreUser):
    """A person with sessions in three directories; a rule hides one, and one session was forgotten."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.shop, self.private = home / "shop", home / "private"
        for directory in (self.shop, self.private):
            directory.mkdir()
        self._put(CART, CART_TITLE, self.shop)
        self._put(EVIL, EVIL_TITLE, self.shop)
        self._put(PRIVATE, "Fix what nobody may know", self.private)
        self._put(FORGOTTEN, "Fix what is over", self.shop)
        self._put(COLOURED, "Fix \x1b[31mred\x1b[0m text", self.shop)
        self.config(f"projects: {{{self.private}: {{ignore: true}}}}\n")
        forgotten = self.run("forget", FORGOTTEN, "--yes")
        assert forgotten.returncode == 0, forgotten.stderr
        self.path = put_program(self.home)

    def _put(self, id: str, request: str, directory: Path) -> None:
        records = exchange(request, "I look at it.", cwd=str(directory))
        self.session(id, *records, project=str(directory).replace("/", "-").replace(".", "-"))

    def candidates(self, kind: str, word: str = "", *line: str) -> dict[str, str]:
        """Return the candidates and their descriptions."""
        done = self.run("__complete", kind, word, "session-memory", *line, cwd=self.shop)
        assert (done.returncode, done.stderr) == (0, "")
        return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path / "user")


def test_titles_and_ids_are_offered_without_hidden_and_forgotten_sessions(person: Person) -> None:
    assert set(person.candidates("sessions")) == {
        CART_TITLE,
        CART,
        EVIL_TITLE,
        EVIL,
        "Fix red text",
        COLOURED,
    }
    assert set(person.candidates("sessions", "fix the")) == {CART_TITLE}
    assert set(person.candidates("ids")) == {CART, EVIL, COLOURED}
    assert person.candidates("ids", PRIVATE[:4]) == person.candidates("ids", FORGOTTEN[:4]) == {}


def test_each_candidate_means_its_session_to_the_command(person: Person) -> None:
    for word, about in person.candidates("sessions").items():
        shown = person.result("read", word, "--json", cwd=person.shop)
        assert word in (shown["id"], shown["name"]), about


def test_a_title_of_several_sessions_is_not_offered_but_their_ids_are(person: Person) -> None:
    other = "66666666-aaaa-4aaa-8aaa-000000000006"
    person._put(other, CART_TITLE, person.shop)
    offered = person.candidates("sessions")
    assert CART_TITLE not in offered
    assert {CART, other} <= set(offered)


def test_projects_are_offered_by_name_and_path_without_hidden_ones(person: Person) -> None:
    assert set(person.candidates("projects")) == {"shop"}
    assert (
        set(person.candidates("projects", "/"))
        == set(person.candidates("directories"))
        == {str(person.shop)}
    )


def test_ids_of_memories_are_offered(person: Person) -> None:
    assert person.candidates("memories") == {}
    assert person.run("remember", "Prices are in cents", cwd=person.shop).returncode == 0
    [(id, about)] = person.candidates("memories").items()
    assert "Prices are in cents" in about
    assert person.run("memories", "show", id, cwd=person.shop).returncode == 0


def test_a_memory_of_a_hidden_session_is_not_offered(tmp_path: Path) -> None:
    user = StoreUser(tmp_path / "user")
    user.session(CART, *trip())
    for command in ("ingest", "process"):
        assert user.run(command).returncode == 0
    assert "plan a trip" in user.run("__complete", "memories", "").stdout
    user.config(f"sessions: {{{CART}: {{ignore: true}}}}\n")
    assert user.run("__complete", "memories", "").stdout == ""


def test_the_home_that_the_line_names_is_asked(person: Person, tmp_path: Path) -> None:
    assert person.candidates("sessions", "", "read", "--home", str(tmp_path / "none")) == {}
    assert CART in person.candidates("sessions", "", "read", f"--home={person.home / '.claude'}")


def test_a_fault_prints_nothing_and_ends_with_0(person: Person) -> None:
    (person.home / ".session-memory" / "config.yaml").write_bytes(b"\x00: [\n")
    for words in ([], ["sessions"], ["nonsense", ""], ["sessions", ""], ["memories", ""]):
        done = person.run("__complete", *words, cwd=person.home / "bin")
        assert (done.returncode, done.stderr) == (0, ""), words


def test_completing_makes_no_store(tmp_path: Path) -> None:
    user = StoreUser(tmp_path / "user")
    user.session(CART, *exchange("Fix the cart", "Yes."))
    for kind in ("sessions", "projects", "memories"):
        assert user.run("__complete", kind, "").returncode == 0
    assert not user.database.exists()


def test_bash_completes_them_and_a_title_runs_nothing(person: Person) -> None:
    source = script(person, "bash")

    def completed(*line: str) -> list[str]:
        return completed_by_bash(person, source, list(line), **person.path)

    words = completed("read", "")
    for word in words:
        code = 'eval "set -- $1"; printf "%s\\n" "$@"'
        done = person.run_command(shell("bash"), "-c", code, "bash", word)
        assert done.stdout.rstrip("\n") in (
            CART_TITLE,
            EVIL_TITLE,
            "Fix red text",
            CART,
            EVIL,
            COLOURED,
        ), word
    assert len(words) == 6
    assert not list(person.home.rglob("marker"))
    assert [shlex.split(word) for word in completed("read", "Fix\\ the")] == [[CART_TITLE]]
    assert completed("read", '"Fix the') == completed("read", "'Fix the") == [CART_TITLE]
    assert completed("read", '"Run') == completed("read", "'Run") == []
    assert completed("search", "cart", "--session", CART[:6]) == [CART]
    assert completed("search", "cart", "--project", "sh") == ["shop"]
    assert completed("forget", "Fix") == []
    assert completed("forget", CART[:6]) == [CART]


def test_bash_at_a_prompt_completes_a_title_with_a_colon(person: Person) -> None:
    bash = shell("bash")
    source = script(person, "bash")
    environ = {**person.environment, **person.path}
    with typed_shell(
        [bash, "--norc", "--noprofile", "-i"], environ, person.shop, f"source {source}"
    ) as typed:
        typed.type("session-memory read Fix\\ the\t\n")
        assert CART in typed.wait_for("READY")
        typed.type('session-memory read "Fix the\t\n')
        assert CART in typed.wait_for("READY")


def test_fish_completes_them(person: Person) -> None:
    source = script(person, "fish")

    def completed(line: str) -> set[str]:
        return set(completed_by_fish(person, source, line, **person.path))

    assert completed("read ") == {CART_TITLE, EVIL_TITLE, "Fix red text", CART, EVIL, COLOURED}
    assert completed("read 'Fix the") == {CART_TITLE}
    assert completed(f"search cart --session {CART[:6]}") == {CART}
    assert completed("search cart --project sh") == {"shop"}
    assert not list(person.home.rglob("marker"))


def test_zsh_at_a_prompt_completes_them_and_a_title_runs_nothing(person: Person) -> None:
    zsh = shell("zsh")
    source = script(person, "zsh")
    setup = f"fpath+=({source.parent}); autoload -U compinit; compinit -u -D"
    environ = {**person.environment, **person.path}
    with typed_shell([zsh, "-f", "-i"], environ, person.shop, setup) as typed:
        typed.type("session-memory read Fix\\ the\t\n")
        assert CART in typed.wait_for("READY")
        typed.type("session-memory read Run\t\n")
        assert EVIL in typed.wait_for("READY")
        typed.type("session-memory search prices --project sh\t\n")
        assert "--project shop " in typed.wait_for("READY")
    assert not list(person.home.rglob("marker"))
