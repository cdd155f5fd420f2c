"""Nothing excluded is readable in the store, on any surface and by any name."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memories_scene import told_with_prompt
from records import append, assistant, user
from store_scene import MONDAY, StoreUser

from bench.scratch import remove_tree
from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend

SECRET, OTHER = "cherimoya", "persimmon"  # what each of two sessions is about
ID, OTHER_ID = (f"5e55a0f1-0000-4000-8000-00000000000{number}" for number in (1, 2))
HOUR = 3600


class Machine(StoreUser):
    """A person with a session in an agent home, where it is called diary, and another one. Each has
    a conversation that memories were made of, and one that waits."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.agent = path / "work" / SECRET
        (self.agent / ".session-memory" / "sessions").mkdir(parents=True)
        (self.agent / ".session-memory" / "sessions" / "diary.json").write_text(
            json.dumps({"sessionId": ID})
        )
        self.talk(ID, SECRET, self.agent, "My Diary", MONDAY)
        self.talk(OTHER_ID, OTHER, path / OTHER, "Garden", MONDAY)
        self.run("process")
        self.talk(ID, SECRET, self.agent, "My Diary", MONDAY + 5 * HOUR)
        self.talk(OTHER_ID, OTHER, path / OTHER, "Garden", MONDAY + 5 * HOUR)
        self.run("ingest")

    def talk(self, id: str, word: str, cwd: Path, title: str, at: float) -> None:
        records: list[dict[str, Any]] = []
        for number in range(3):
            command = {
                "type": "tool_use",
                "id": f"t{at}{number}",
                "name": "Bash",
                "input": {"command": f"make {word}"},
            }
            result = {"tool_use_id": f"t{at}{number}", "type": "tool_result", "is_error": True}
            result["content"] = f"no rule for {word}"
            records += [
                user(
                    f"Please remember that {word} number {number} is ripe in May",
                    at=at + 60 * number,
                ),
                assistant(
                    f"I decided to keep {word} number {number}.", command, at=at + 60 * number + 5
                ),
                user([result], at=at + 60 * number + 6),
            ]
        records.append({"type": "custom-title", "customTitle": title, "sessionId": id})
        records = [{**record, "cwd": str(cwd), "sessionId": id} for record in records]
        path = self.projects / str(cwd).replace("/", "-") / f"{id}.jsonl"
        path.parent.mkdir(exist_ok=True)
        append(path, *records)

    def rules(self, text: str, place: str) -> None:
        """Writes a config.yaml of the person's or the agent's; '' removes both."""
        places = {"person": self.home, "home": self.agent}
        for one in places.values():
            (one / ".session-memory" / "config.yaml").unlink(missing_ok=True)
        if text:
            filled = (
                text.replace("AGENT", str(self.agent))
                .replace("WORK", str(self.home / "work"))
                .replace("ID", ID)
                .replace("HERE", str(self.home))
            )
            (places[place] / ".session-memory" / "config.yaml").write_text(filled)

    def said(self, *words: object) -> str:
        done = self.run(*words)
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def view(self, name: str) -> str:
        with closing(sqlite3.connect(self.database)) as connection:
            return str(connection.execute(f"SELECT * FROM {name}").fetchall())

    def conversation_of(self, id: str) -> int:
        with closing(sqlite3.connect(self.database)) as connection:
            sql = "SELECT min(id) FROM memory_conversations WHERE session_id = ?"
            return int(connection.execute(sql, (id,)).fetchone()[0])

    def lose_store(self) -> None:
        """Removes the store, and the transcripts that it could be made of again."""
        remove_tree(self.projects)
        for path in self.database.parent.glob("memory.db*"):
            path.unlink()

    def pages(self) -> list[Path]:
        return list((self.home / ".session-memory" / "memories").rglob("*.md"))

    def readable(self) -> dict[str, str]:
        """The archives and pages that lie open, by path."""
        place = self.home / ".session-memory"
        found = [
            path for name in ("conversations", "memories") for path in (place / name).rglob("*.md")
        ]
        return {str(path.relative_to(place)): path.read_text() for path in found}


def asked_of_tool(machine: Machine) -> str:
    backend = HomeBackend(str(machine.home), {"HOME": str(machine.home)})
    return call(backend, "search_sessions", {"query": "number ripe May"}).text


def told_to_prompt(machine: Machine) -> str:
    machine.run("memories")  # whoever looks at memories has the index written anew
    directory = str(machine.home / ".session-memory" / "memories")
    prompts = [f"remember that {word} number 0 is ripe in May" for word in (SECRET, OTHER)]
    return "".join(told_with_prompt(directory, prompt, 5000) for prompt in prompts)


# Each shows something of both sessions where there is no rule.
SURFACES = {
    "search": lambda machine: machine.said("search", "number ripe May"),
    "search for what is literal": lambda machine: machine.said("search", '"is ripe in May"'),
    "search of tools": lambda machine: machine.said("search", "--role", "tool", "make"),
    "search_sessions": asked_of_tool,
    "conversations": lambda machine: machine.said("conversations", "--json"),
    "show": lambda machine: "".join(
        machine.said("show", machine.conversation_of(id)) for id in (ID, OTHER_ID)
    ),
    "export": lambda machine: machine.said("export", "--all", "--full"),
    "errors": lambda machine: machine.said("errors", "no rule for cherimoya or persimmon"[:11]),
    "patterns": lambda machine: machine.said("patterns"),
    "process": lambda machine: machine.said("process", "--dry-run", "--json"),
    "memories": lambda machine: machine.said("memories", "--limit", 1000),
    "memories search": lambda machine: machine.said(
        "memories", "search", "ripe May", "--limit", 1000
    ),
    "memories of a prompt": told_to_prompt,
    "pages of memories": lambda machine: (
        machine.said("memories")[:0] + "".join(map(Path.read_text, machine.pages()))
    ),
    "export for a model": lambda machine: machine.said("export", "--all", "--format", "filtered"),
    "view sessions": lambda machine: machine.view("sessions"),
    "view conversations": lambda machine: machine.view("conversations"),
    "view entries": lambda machine: machine.view("entries"),
    "view tool_uses": lambda machine: machine.view("tool_uses"),
}
# Whose config.yaml it stands in, and what.
RULES = {
    "a name": ("person", "sessions: {diary: RULE}"),
    "a title": ("person", "sessions: {My Diary: RULE}"),
    "an id": ("person", "sessions: {ID: RULE}"),
    "a pattern": ("person", 'sessions: {"My D*": RULE}'),
    "a project": ("person", "projects: {AGENT: RULE}"),
    "a directory above": ("person", "projects: {WORK: RULE}"),
    "a rule for all with an exception": (
        "person",
        f"projects: {{HERE: RULE, HERE/{OTHER}: {{ignore: false}}}}",
    ),
    "an exception to an exception": (
        "person",
        "projects: {HERE: {ignore: true}, HERE/p*: {ignore: false}, HERE/w*: {ignore: false}, "
        "WORK: RULE}",
    ),
    "tracking of the other only": (
        "person",
        f"{{tracking: only, projects: {{HERE/{OTHER}: {{ignore: false}}}}}}",
    ),
    "the home's tracking of another directory": (
        "home",
        "{tracking: only, projects: {AGENT/src: {ignore: false}}}",
    ),
    "the home's rule for a name": ("home", "sessions: {diary: RULE}"),
    "the home's rule for its directory": ("home", "projects: {AGENT: RULE}"),
    "the home's rule for a title, and a looser one of its name": (
        "home",
        "sessions: {diary: {ignore: false, text: true}, My Diary: RULE}",
    ),
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("home"))


def asked_of(machine: Machine, tool: str, arguments: dict[str, Any]) -> str:
    backend = HomeBackend(str(machine.home), {"HOME": str(machine.home)})
    return call(backend, tool, arguments).text


# Every command that has JSON to tell of sessions, and every tool.
JSON: dict[str, list[object]] = {
    "search": ["search", "number ripe May"],
    "search by its word": ["search", SECRET],
    "search of tools": ["search", "--role", "tool", "make"],
    "conversations": ["conversations"],
    "errors": ["errors", "no rule for"],
    "patterns": ["patterns"],
    "costs": ["costs", "--by", "session"],
    "proof": ["proof"],
    "sessions": ["sessions", "--all"],
    "read": ["read", ID, "--all"],
    "process": ["process", "--dry-run"],
    "memories": ["memories", "--limit", 1000],
    "memories search": ["memories", "search", "ripe May", "--limit", 1000],
    "memories show": ["memories", "show", "MEMORY"],
    "show": ["show", "CONVERSATION"],
    "export for a model": ["export", "--all", "--format", "filtered"],
    "health-check": ["health-check"],
    "ingest": ["ingest"],
    "archive": ["archive", "--all"],
}
TOOLS: dict[str, dict[str, Any]] = {
    "list_sessions": {},
    "read_session": {"session": ID},
    "search_sessions": {"query": f"{SECRET} ripe May"},
}


def test_no_field_of_any_json_nor_any_tool_holds_a_word_of_a_session_without_text(
    machine: Machine,
) -> None:
    machine.rules("", "person")
    memory = json.loads(machine.run("memories", "search", SECRET, "--json").stdout)["memories"][0][
        "id"
    ]
    machine.rules("projects: {AGENT: {text: false}}", "person")
    known = {"CONVERSATION": machine.conversation_of(ID), "MEMORY": memory}
    for named, words in JSON.items():
        done = machine.run(*[known.get(str(word), word) for word in words], "--json")
        assert (done.returncode, done.stdout) == (1, "") or json.loads(done.stdout), named
        assert SECRET not in done.stdout.replace(f'"query": "{SECRET}"', ""), named
        assert SECRET not in done.stderr.replace(
            SECRET, "", 1 if named == "search by its word" else 0
        ), named
    for tool, arguments in TOOLS.items():
        assert SECRET not in asked_of(machine, tool, arguments).replace(
            arguments.get("query", ""), ""
        ), tool


def test_memories_of_sessions_that_the_store_does_not_know_go_by_what_their_pages_say(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.lose_store()
    assert both_in(machine.said("memories", "--limit", 1000)) == (True, True)
    for named, (place, rule) in RULES.items():
        if "itle" not in named and named != "a pattern":  # no page names it
            machine.rules(rule.replace("RULE", "{ignore: true}"), place)
            assert both_in(machine.said("memories", "--limit", 1000)) == (False, True), named
            assert all(SECRET not in page.read_text() for page in machine.pages()), named
    machine.rules("", "person")
    assert both_in(machine.said("memories", "--limit", 1000)) == (True, True)


def test_pages_of_an_earlier_version_which_name_no_directory_go_by_the_session(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    for page in machine.pages():
        page.write_text(re.sub(r", in \S+\*$", "*", page.read_text(), flags=re.M))
    machine.lose_store()
    for rule, is_shown in (
        ("projects: {AGENT: {ignore: true}}", True),
        ("sessions: {ID: {text: false}}", False),
    ):
        machine.rules(rule, "person")
        assert both_in(machine.said("memories", "--limit", 1000)) == (is_shown, True)


def both_in(text: str) -> tuple[bool, bool]:
    """Whether something of the one session, and of the other, is in a text."""
    return SECRET in text, OTHER in text


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("named", "rule"),
    [
        *[(named, "{ignore: true}") for named in RULES],
        *[
            (named, "{text: false}")
            for named in RULES
            if named.startswith(("a name", "a project", "the home's rule for a t"))
        ],
    ],
)
def test_what_is_excluded_is_nowhere_at_once_and_nothing_else_is_missing(
    machine: Machine, named: str, rule: str
) -> None:
    place, text = RULES[named]
    machine.rules(text.replace("RULE", rule), place)
    found = {surface: both_in(show(machine)) for surface, show in SURFACES.items()}
    assert found == dict.fromkeys(SURFACES, (False, True))


def test_without_the_rule_there_is_something_of_both_sessions_everywhere(machine: Machine) -> None:
    machine.rules("projects: {WORK: {ignore: true}}", "person")
    assert both_in(SURFACES["search"](machine)) == (False, True)
    machine.rules("", "person")
    found = {surface: both_in(show(machine)) for surface, show in SURFACES.items()}
    assert found == dict.fromkeys(SURFACES, (True, True))


def test_of_a_session_without_text_is_told_who_when_and_how_much(machine: Machine) -> None:
    machine.rules("sessions: {diary: {text: false}}", "person")
    listed = json.loads(machine.said("conversations", "--json"))["conversations"]
    shown = [
        (one["title"], one["entry_count"], one["cwd"]) for one in listed if one["session_id"] == ID
    ]
    assert shown == [("My Diary", 6, ""), ("My Diary", 6, "")]
    assert "the rules in config.yaml hide the text" in machine.said(
        "show", machine.conversation_of(ID)
    )
    machine.rules("sessions: {diary: {ignore: true}}", "person")
    assert ID not in machine.said("conversations", "--json")


@pytest.mark.parametrize("command", ["search", "show", "conversations", "export", "memories"])
def test_a_person_gets_the_text_where_they_ask_for_it(machine: Machine, command: str) -> None:
    words = {
        "search": ["number ripe May"],
        "show": [machine.conversation_of(ID)],
        "conversations": ["--json"],
        "export": ["--all"],
    }.get(command, [])
    machine.rules("sessions: {diary: {text: false}}", "person")
    told = machine.said(command, *words)
    assert (SECRET in told, str(machine.agent) in told) == (False, False)
    private = machine.said(command, *words, "--include-private")
    assert SECRET in private or str(machine.agent) in private
    assert "private" not in machine.said(command, "--help")
    machine.rules("sessions: {diary: {ignore: true}}", "person")
    assert SECRET not in machine.said(command, *words, "--include-private")


@pytest.mark.parametrize(
    "words",
    [
        ["search", "number ripe May"],
        ["show", "1"],
        ["conversations"],
        ["export", "--all"],
        ["memories"],
    ],
)
def test_an_agent_does_not_get_it_that_way(machine: Machine, words: list[str]) -> None:
    for variable in ("CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "PI_SESSION_ID"):
        done = machine.run(*words, "--include-private", **{variable: OTHER_ID})
        assert (done.returncode, done.stdout) == (1, "")
        assert "only for people" in done.stderr
        assert "in their own terminal" in done.stderr


@pytest.mark.parametrize("by", ["config", "ingest", "watch"])
def test_no_file_that_agents_read_tells_of_it_once_a_rule_is_set_or_the_store_brought_up_to_date(
    machine: Machine, by: str
) -> None:
    machine.rules("", "person")
    machine.run("memories")
    machine.run("archive", "--all")
    assert SECRET in str(machine.readable())
    if by == "config":
        machine.run("config", f"projects.{machine.agent}.ignore", "true")
    else:
        machine.rules("projects: {AGENT: {ignore: true}}", "person")
        machine.run(*["watch", "--once"] if by == "watch" else ["ingest"])
    assert not [path for path, text in machine.readable().items() if SECRET in f"{path} {text}"]
    assert OTHER in str(machine.readable())


def test_a_session_has_its_own_text(machine: Machine) -> None:
    machine.rules("sessions: {diary: {text: false}}", "person")
    own = machine.run(
        "search",
        "number ripe May",
        CLAUDE_CODE_SESSION_ID=ID,
        SESSION_MEMORY_HOME=str(machine.home),
    )
    other = machine.run(
        "search",
        "number ripe May",
        CLAUDE_CODE_SESSION_ID=OTHER_ID,
        SESSION_MEMORY_HOME=str(machine.home),
    )
    assert (both_in(own.stdout)[0], both_in(other.stdout)[0]) == (True, False)


def test_a_check_of_the_store_counts_it_and_does_not_name_it(machine: Machine) -> None:
    machine.rules("", "person")
    with closing(sqlite3.connect(machine.database)) as connection, connection:
        connection.execute("UPDATE memory_file_states SET unreadable = 1")
    everything = json.loads(machine.said("health-check", "--json"))
    machine.rules("projects: {WORK: {ignore: true}}", "person")
    excluding = json.loads(machine.said("health-check", "--json"))
    assert (len(everything["unreadable"]), len(excluding["unreadable"])) == (2, 1)
    assert excluding["entries"] == everything["entries"]


def test_the_index_of_memories_tells_a_prompt_nothing_until_it_is_made_anew(
    machine: Machine,
) -> None:
    machine.rules("", "person")
    directory = str(machine.home / ".session-memory" / "memories")
    assert both_in(told_to_prompt(machine)) == (True, True)
    machine.rules("sessions: {diary: {ignore: true}}", "person")
    assert (
        told_with_prompt(directory, f"remember that {SECRET} number 0 is ripe in May", 5000) == ""
    )
