"""No reader of transcripts shows hidden content: each way of hiding with each reader."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hooks_scene import ROOT
from hooks_scene import run as run_hook
from hooks_scene import told as told_at
from own_process import plain_environment, run_here
from records import NamedHome, append, assistant, exchange, new_id, user, write
from share import some
from source_trees import tree_of
from store_scene import StoreUser

from session_memory.app.notices import Notices
from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.extras.page._active_sessions import ActiveSessions
from session_memory.session_monitor import read_session_log

SECRET, OTHER = "cherimoya", "persimmon"  # what is hidden, and what everybody may be told
HIDDEN_ID, FORK_ID, OTHER_ID, OWN_ID = (
    f"5e55a0f1-0000-4000-8000-00000000000{number}" for number in range(1, 5)
)
HOUR = 3600.0


class Machine(StoreUser):
    """A person with three sessions in one project: one about SECRET, one about OTHER, and the one
    at hand. Each reader is asked in a method, and says something of OTHER."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.work = path / "work"
        self.work.mkdir()
        self.folder = self.projects / str(self.work).replace("/", "-")
        self.began = time.time() - 6 * HOUR
        self.last_told = ""
        self.is_told_first = False
        self.own = self.talk(OWN_ID, "zucchini", at=self.began)
        self.other = self.talk(OTHER_ID, OTHER, at=time.time() - 60)

    def talk(self, id: str, word: str, at: float, cwd: Path | None = None, **fields: Any) -> Path:
        path = self.folder / f"{id}.jsonl"
        records = [
            user(f"Please tell me all about {word}", at=at),
            assistant(
                f"A {word} it is.", ("Edit", {"file_path": f"{self.work}/{word}.py"}), at=at + 1
            ),
        ]
        self.add(path, id, *records, cwd=cwd, **fields)
        return path

    def add(
        self, path: Path, id: str, *records: dict[str, Any], cwd: Path | None = None, **fields: Any
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        append(
            path,
            *[{**one, "sessionId": id, "cwd": str(cwd or self.work), **fields} for one in records],
        )

    def config(self, text: str) -> None:
        self.before_hiding()
        super().config(text)

    def before_hiding(self) -> None:
        """Has the session at hand be told of all, if it is asked for, and its transcript show that."""
        if self.is_told_first and not self.last_told:
            event = self.event(hook_event_name="UserPromptSubmit", prompt="hi")
            self.last_told = told_at(run_hook(event, self.home))
            content = {
                "type": "hook_additional_context",
                "content": [self.last_told],
                "hookEvent": "UserPromptSubmit",
            }
            shown, reply = new_id(), assistant("Hello.")
            self.add(
                self.own,
                OWN_ID,
                {"type": "attachment", "uuid": shown, "attachment": content},
                {**reply, "parentUuid": shown},
            )

    def said(self, *words: object) -> str:
        done = self.run(*words, cwd=self.work)
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def event(self, **fields: Any) -> dict[str, Any]:
        return {
            "session_id": OWN_ID,
            "transcript_path": str(self.own),
            "cwd": str(self.work),
            **fields,
        }

    def prompt(self) -> str:
        """All that the session at hand is told from the beginning on, at its prompts."""
        event = self.event(hook_event_name="UserPromptSubmit", prompt="hi")
        return "".join([run_hook(event, self.home).decode() for _ in range(3)])

    def tool_call(self) -> str:
        told = ""
        for word in (SECRET, OTHER):
            call = {
                "tool_name": "Edit",
                "tool_use_id": f"t{word}",
                "tool_input": {"file_path": f"{self.work}/{word}.py"},
            }
            reading = assistant(
                ("Read", {"file_path": f"{self.work}/{word}.py"}), at=self.began + 1
            )
            self.add(self.own, OWN_ID, reading)
            told += run_hook(
                self.event(hook_event_name="PreToolUse", **call), self.home, "pre_tool_use"
            ).decode()
        return told

    def session_start(self) -> str:
        self.said("archive", "--all")
        with (self.home / ".session-memory" / "config.yaml").open("a") as file:
            file.write("recent_conversations: 9\n")
        event = self.event(hook_event_name="SessionStart", source="startup", session_id=new_id())
        return run_hook(event, self.home, "session_start").decode()

    def archives(self) -> str:
        self.said("archive", "--all")
        found = (self.home / ".session-memory" / "conversations").glob("*.md")
        return "".join([f"{path.name}\n{path.read_text()}" for path in found])

    def tool(self, tool: str, **arguments: object) -> str:
        backend = HomeBackend(str(self.home / ".claude"), {"HOME": str(self.home)})
        return call(backend, tool, arguments).text

    def names(self) -> list[str]:
        return [
            one["id"]
            for one in json.loads(self.run("sessions", "--json", cwd=self.work).stdout)["sessions"]
        ]

    def page(self) -> str:
        from session_memory.extras.page._store_pool import StorePool
        from session_memory.history.store.location import find_location

        environ = {"HOME": str(self.home)}
        pool = StorePool(find_location(str(self.home), environ))
        try:
            sessions = ActiveSessions(pool, environ, Notices(environ, print))
            sessions.read()
            return "".join(map(str, sessions.sessions))
        finally:
            pool.close()

    def monitor(self) -> str:
        """What a program is told that imports ours."""
        paths = sorted(self.folder.glob("*.jsonl"))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(self.home))
            return "".join(
                [read_session_log(jsonl_path=path, format="agent-sdk") for path in paths]
            )


READERS = {
    "prompt": Machine.prompt,
    "sessions": lambda machine: machine.said("sessions") + machine.said("sessions", "--json"),
    "read": lambda machine: "".join(
        [
            machine.said("read", path.stem, "--all")
            for path in sorted(machine.folder.glob("*.jsonl"))
        ]
    ),
    "list_sessions": lambda machine: machine.tool("list_sessions"),
    "read_session": lambda machine: "".join(
        [
            machine.tool("read_session", name=path.stem)
            for path in sorted(machine.folder.glob("*.jsonl"))
        ]
    ),
    "search_sessions": lambda machine: machine.tool(
        "search_sessions", query="Please tell me all about"
    ),
    "export for a model": lambda machine: machine.said("export", "--all", "--format", "filtered"),
    "told": lambda machine: machine.said("told", OWN_ID),
    "search": lambda machine: machine.said("search", "Please tell me all about"),
    "export": lambda machine: machine.said("export", "--all", "--full"),
    "conversations": lambda machine: machine.said("conversations", "--json"),
    "page": Machine.page,
    "read_session_log": Machine.monitor,
    "archives": Machine.archives,
    "session start": Machine.session_start,
    "tool call": Machine.tool_call,
}


def by_id(machine: Machine) -> None:
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120)
    machine.config(f"sessions: {{{HIDDEN_ID}: {{ignore: true}}}}\n")


def by_name(machine: Machine) -> None:
    """A name that stands in the middle of a long transcript."""
    path = machine.talk(HIDDEN_ID, SECRET, at=time.time() - 130)
    filler = {"type": "progress", "data": "x" * 100_000}
    machine.add(
        path, HIDDEN_ID, filler, {"type": "custom-title", "customTitle": "DIARY"}, *[filler] * 3
    )
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120)
    machine.config("sessions: {Diary: {ignore: true}}\n")


def by_path(machine: Machine) -> None:
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120, cwd=machine.home / "private" / "x")
    machine.config("projects: {~/private: {ignore: true}}\n")


def by_project(machine: Machine) -> None:
    """A link to the project that was made after the rule."""
    private = machine.home / "private"
    private.mkdir()
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120, cwd=private)
    machine.config("projects: {~/alias: {ignore: true}}\n")
    machine.said("sessions")
    (machine.home / "alias").symlink_to(private)


def by_directory(machine: Machine) -> None:
    """A part of a session that moved there."""
    machine.talk(HIDDEN_ID, "apricot", at=time.time() - 130)
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120, cwd=machine.home / "private")
    machine.config("projects: {~/private: {ignore: true}}\n")


def forgotten(machine: Machine) -> None:
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120)
    machine.said("ingest")
    machine.before_hiding()
    assert "Forgotten" in machine.said("forget", HIDDEN_ID, "--yes")


def forgotten_before(machine: Machine) -> None:
    machine.talk(HIDDEN_ID, SECRET, at=machine.began)
    machine.talk(HIDDEN_ID, "apricot", at=time.time() - 120)
    machine.said("ingest")
    machine.before_hiding()
    before = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(machine.began + HOUR))
    assert "Forgotten" in machine.said("forget", HIDDEN_ID, "--before", before, "--yes")


def forgotten_project(machine: Machine) -> None:
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120, cwd=machine.home / "private")
    machine.said("ingest")
    machine.before_hiding()
    assert "Forgotten" in machine.said("forget", "--project", machine.home / "private", "--yes")


def fork(machine: Machine, rule: str = HIDDEN_ID, *, marked: bool = False, title: str = "") -> None:
    """A fork of a hidden session, with words of its own; `marked` as the SDK does it, else as
    --fork-session."""
    path = machine.talk(HIDDEN_ID, SECRET, at=time.time() - 200)
    if title:
        machine.add(path, HIDDEN_ID, {"type": "custom-title", "customTitle": title})
    copies = [
        json.loads(line) for line in path.read_text().splitlines() if "uuid" in json.loads(line)
    ]
    for record in copies:
        if marked:
            record["forkedFrom"] = {"sessionId": HIDDEN_ID, "messageUuid": record["uuid"]}
            record["uuid"] = new_id()
        record["sessionId"] = FORK_ID
    write(machine.folder / f"{FORK_ID}.jsonl", *copies)
    machine.talk(FORK_ID, "apricot", at=time.time() - 100)
    machine.config(f"sessions: {{{rule}: {{ignore: true}}}}\n")


def foreign(machine: Machine) -> None:
    """Records of a hidden session in the transcript of another, and a title of it; its own is gone."""
    path = machine.talk(FORK_ID, "apricot", at=time.time() - 300)
    records = [
        user(f"Please tell me all about {SECRET}", at=time.time() - 200),
        assistant(SECRET, at=time.time() - 199),
    ]
    machine.add(path, HIDDEN_ID, *records, {"type": "ai-title", "aiTitle": f"All about {SECRET}"})
    machine.talk(FORK_ID, "apricot", at=time.time() - 100)
    machine.config(f"sessions: {{{HIDDEN_ID}: {{ignore: true}}}}\n")


WAYS = {
    "a rule by id": by_id,
    "a rule by name": by_name,
    "a rule by path": by_path,
    "a rule by project": by_project,
    "a directory that it moved to": by_directory,
    "forgotten": forgotten,
    "forgotten before": forgotten_before,
    "a forgotten project": forgotten_project,
    "copied by a fork": fork,
    "copied by a fork of the SDK": lambda machine: fork(machine, marked=True),
    "copied by a fork from what a name hides": lambda machine: fork(
        machine, "diary", title="Diary"
    ),
    "of another session": foreign,
}


def ask(
    path: Path, way: Callable[[Machine], None], reader: str, machine: Machine | None
) -> tuple[str, Machine]:
    """Return what a reader tells, and the machine for the next. Each call of a tool tells of what
    no prompt told."""
    if machine is None or reader == "tool call":
        machine = Machine(path / reader)
        way(machine)
        machine.said("ingest")
    return READERS[reader](machine), machine


@pytest.mark.parametrize("way", WAYS)
def test_what_is_hidden_is_told_by_no_reader(tmp_path: Path, way: str) -> None:
    """All readers of the first way, three of each other; all of each with `--all`."""
    machine, number = None, list(WAYS).index(way)
    for at, reader in enumerate(READERS):
        if number == 0 or (at - number) % some(1, 5) == 0:
            told, machine = ask(tmp_path, WAYS[way], reader, machine)
            assert OTHER in told or OTHER_ID in told, f"{reader} does not read"
            assert SECRET not in told, reader


# Commands that tell of sessions, or of how many there are, and need not say anything of OTHER.
COUNTING = [
    "costs",
    "costs --by session",
    "patterns",
    "errors about",
    "status",
    "health-check",
    "memories",
    "process",
    "watch --once",
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_hidden_is_told_by_no_command_that_counts(tmp_path: Path, way: str) -> None:
    machine = Machine(tmp_path)
    WAYS[way](machine)
    machine.said("ingest")
    said = {words: machine.said(*words.split()) for words in COUNTING}
    assert [words for words, text in said.items() if SECRET in text or "usage:" in text] == []


# that is never told
@pytest.mark.parametrize("way", [way for way in WAYS if way != "of another session"])
def test_an_update_of_before_something_was_hidden_is_shown_no_more(
    tmp_path: Path, way: str
) -> None:
    machine = Machine(tmp_path)
    machine.is_told_first = True
    WAYS[way](machine)
    assert SECRET in machine.last_told
    shown = machine.said("told", OWN_ID) + machine.said("told", OWN_ID, "--json") + machine.page()
    assert "arrived" in shown
    assert SECRET not in shown


def test_of_what_is_forgotten_no_file_of_ours_holds_anything(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.talk(HIDDEN_ID, SECRET, at=time.time() - 120)
    machine.said("archive", "--all")
    machine.is_told_first = True
    machine.before_hiding()
    kept = [path for path in (machine.home / ".session-memory").rglob("*") if path.is_file()]
    assert any(SECRET.encode() in path.read_bytes() for path in kept)
    forgotten(machine)
    kept = [path for path in (machine.home / ".session-memory").rglob("*") if path.is_file()]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []


def test_an_update_is_shown_if_nothing_is_hidden_since(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.is_told_first = True
    machine.config(f"sessions: {{{HIDDEN_ID}: {{ignore: true}}}}\n")
    machine.last_told = ""
    machine.talk(FORK_ID, "apricot", at=time.time() - 10)
    machine.before_hiding()
    assert "apricot" in machine.last_told
    assert "apricot" in machine.said("told", OWN_ID)
    assert "apricot" in machine.page()


def test_without_a_rule_it_is_told(tmp_path: Path) -> None:
    def way(machine: Machine) -> None:
        by_id(machine)
        machine.config("")

    machine = None
    for reader in READERS:
        told, machine = ask(tmp_path, way, reader, machine)
        assert SECRET in told, reader


# What gives entries without the gate, and the modules that may use it, each with what becomes of
# them there.
UNJUDGED = {
    "TranscriptReader",
    "TranscriptHead",
    "lines_forward",
    "windows_backward",
    "read_changed",
    "read_own",
    "entries_back_to",
    "describe",
}
ALLOWED = {
    "awareness/activity/actions.py": "of sub-agents of sessions that the gate lets be told",
    "awareness/activity/_approval.py": "report_of asks the gate",
    "awareness/activity/call_collisions.py": "report_of asks the gate; its own session is told all",
    "awareness/activity/call_log.py": "which sessions are read again, by report_of",
    "awareness/activity/collisions/_evidence.py": "times and outcomes of calls that report_of lets be told",
    "awareness/activity/_forks.py": "ids of entries, which are only compared",
    "awareness/activity/_new_entries.py": "report_of asks the gate of what it reads",
    "awareness/activity/_own_work.py": "its own session",
    "awareness/activity/report.py": "asks the gate; names that rules judge and that are only counted",
    "awareness/activity/session_edits.py": "edits of sessions that the gate lets be told",
    "awareness/activity/updates.py": "report_of asks the gate",
    "history/archives/writer.py": "asks the gate, and where anything is hidden writes into the private folder",
    "awareness/events/delivery_state.py": "the directory that a session was started in",
    "extras/host/recovery.py": "answers of its own session",
    "sessions/runtimes/hermes/mirrors.py": "a mirror of what the runtime has, which others read",
    "sessions/runtimes/opencode/mirrors.py": "a mirror of what the runtime has, which others read",
    "session_monitor.py": "asks the gate; lines that a program brings are its own",
    "history/store/ingest/extract.py": "the store keeps all, and judges whoever reads it (exclusions.py)",
    "history/recorded.py": "the call of an item that the store shows",
    "history/store/location.py": "offsets of what was taken back, and no text",
    "history/store/rules.py": "makes the gate",
    "history/store/sqlite/unread_words.py": "keys of messages, which are only compared",
    "history/store/sqlite/unread_lines.py": "hashes of lines of sessions that the rules show",
    "extras/host/group_backend.py": "makes the gate",
    "history/costs.py": "tokens and dollars of what the store may tell of",
    "history/forgotten_marks.py": "hashes of what is being forgotten",
    "history/told.py": "of sessions that the store shows; proof counts, and extras/page/_dialogue.py asks the rules",
    "history/trajectory.py": "asks the gate of every entry",
    "extras/page/_dialogue.py": "calls and notes of a session that the store may tell of",
}


def test_no_module_reads_entries_without_the_gate() -> None:
    found = {}
    for path in sorted(ROOT.glob("session_memory/**/*.py")):
        module = str(path.relative_to(ROOT / "session_memory"))
        source = path.read_text()
        if module.startswith(("extras/conformance/", "sessions/transcripts/")) or not any(
            name in source for name in UNJUDGED
        ):
            continue
        nodes = ast.walk(tree_of(source))
        names = [
            one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names
        ]
        if UNJUDGED.intersection(names):
            found[module] = UNJUDGED.intersection(names)
    assert found.keys() == ALLOWED.keys()


def test_the_last_entries_are_read_without_a_gate_only_where_nothing_of_them_is_told() -> None:
    without = set()
    for path in sorted(ROOT.glob("session_memory/**/*.py")):
        source = path.read_text()
        nodes = ast.walk(tree_of(source)) if "last_entries" in source else ()
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        gates = [
            one.args[3]
            for one in calls
            if ast.unparse(one.func) == "last_entries" and len(one.args) == 4
        ]
        if (
            any(isinstance(one, ast.Constant) for one in gates)
            and path.parent.name != "conformance"
        ):
            without.add(str(path.relative_to(ROOT / "session_memory")))
    assert without == {
        "app/install/_checks.py",
        "app/install/_trial.py",
    }  # times and directories, for doctor


def test_what_an_agent_home_excludes_by_its_name_is_not_read_among_all_projects(
    tmp_path: Path,
) -> None:
    home = NamedHome(tmp_path / "agent")
    for name in ("main", "mail"):
        home.session(name, *exchange(f"words of {name}", "hi", cwd=str(home.root)))
    (home.root / ".session-memory/config.yaml").write_text("sessions: {mail: {ignore: true}}\n")
    person = {**plain_environment(tmp_path), "CLAUDE_CONFIG_DIR": str(home.root / ".claude")}
    for environ in (person, {**person, "SESSION_MEMORY_HOME": str(home.root)}):
        for words in (
            ["sessions", "--all"],
            ["read", "--all", home.session_id("mail")],
            ["read", "words of mail"],
        ):
            done = run_here(words, environ, tmp_path)
            assert "mail" not in done.stdout, words
