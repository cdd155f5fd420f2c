"""An odd value in a field that a hook reads affects at most its own session.

Other sessions are still reported. `--fuzz` tries 2,000 values of each runtime in this process and
50 as a process, `--all` one in fifty of them, a plain run one in 200.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import hermes_scene
import pytest
from git_scene import git, repository
from hooks_scene import run
from odd_values import ODD, mutated, mutated_bytes, mutated_lines
from openclaw_scene import OpenClawDatabase, place_rows
from opencode_scene import OpenCodeDatabase
from records import append, assistant, exchange, new_id, show_told, user, write

from session_memory.awareness.events import prompt, tool_call
from session_memory.awareness.events.context import Context, context_of, home_of
from session_memory.common.system import files
from session_memory.common.system.deadline import Deadline
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import all_runtimes, runtime, sender_of
from session_memory.sessions.settings.homes import environment

pytestmark = pytest.mark.fuzz
FIXTURES = Path(__file__).parents[2] / "sessions" / "runtimes" / "fixtures"
CLAUDE = runtime("agent-sdk")
BEGAN = 1795168800  # of the story that the fixtures tell


class Scene:
    """Somebody with a repository, in which a session of Claude Code reads what another one edits;
    and a session of another runtime, which is odd."""

    def __init__(self, root: Path, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.runtime = runtime
        self.config_dir = root / runtime.USUAL_DIR
        self.site = repository(root / "site", Makefile="all:\n", app="1\n")
        folder = CLAUDE.project_dir(str(root / CLAUDE.USUAL_DIR), str(self.site))
        self.id = new_id()
        self.own = write(
            Path(folder, f"{self.id}.jsonl"), *exchange("look", "yes", cwd=str(self.site))
        )
        for name in ("Makefile", "app"):
            append(
                self.own,
                assistant(("Read", {"file_path": str(self.site / name)}), cwd=str(self.site)),
            )
        self.healthy = write(
            Path(folder, f"{new_id()}.jsonl"), *exchange("begin", "yes", cwd=str(self.site))
        )
        (root / ".session-memory").mkdir()
        (root / ".session-memory" / "config.yaml").write_text(
            "first_sight_hours: 96\ncollisions: ask\n"
        )
        self.environ = {"HOME": str(root), "CLAUDE_PID": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
        for key, value in self.environ.items():
            monkeypatch.setitem(files.os.environ, key.encode(), value.encode())
        self.number = 0
        self.notes: set[str] = set()

    def event(self, **fields: Any) -> dict[str, Any]:
        return {
            "session_id": self.id,
            "transcript_path": str(self.own),
            "cwd": str(self.site),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
            **fields,
        }

    def call(self, tool: str, **given: str) -> dict[str, Any]:
        return self.event(
            hook_event_name="PreToolUse", tool_use_id="toolu_9", tool_name=tool, tool_input=given
        )

    def works(self) -> None:
        """The healthy session edits a file."""
        self.number += 1
        edit, cwd = {"file_path": f"{self.site}/app"}, str(self.site)
        call = {"type": "tool_use", "id": f"toolu_{self.number}", "name": "Edit", "input": edit}
        result = {"tool_use_id": call["id"], "type": "tool_result", "content": "Done."}
        said = [
            user(f"usual question {self.number}", cwd=cwd),
            assistant(call, cwd=cwd),
            user([result], cwd=cwd),
            assistant(f"usual answer {self.number}", cwd=cwd),
        ]
        for number, one in enumerate(said):
            # those of `new_id` come again after 4,096 records
            one["uuid"] = f"{self.number}-{number}"
        append(self.healthy, *said)

    def is_told(self, text: str) -> bool:
        """Whether a text says what the healthy session did last."""
        return (
            f'usual question {self.number}\\"' in text or f'usual answer {self.number}\\"' in text
        )

    def answered(self, event: dict[str, Any], answer: Callable[[Context, Any], None]) -> str:
        environ = environment()
        sender = sender_of(event, environ, CLAUDE)
        assert sender is not None
        deadline, printed = Deadline(), []
        home = home_of(event, environ, sender)
        answer(context_of(event, environ, sender, home, deadline), printed.append)
        self.notes.update(note.rpartition(": ")[2] for note in deadline.notes if "Error: " in note)
        return json.dumps(printed)

    def check(self, seed: object) -> None:
        """A prompt and two tool calls, which are as if nothing was odd."""
        self.works()
        text = self.answered(self.event(), prompt.answer)
        assert self.is_told(text), seed
        show_told(self.own, json.dumps(json.loads(text)[0]).encode())
        self.answered(self.call("Edit", file_path=f"{self.site}/Makefile"), tool_call.answer)
        self.answered(self.call("Bash", command="git stash"), tool_call.answer)

    def check_as_process(self, seed: object) -> None:
        self.works()
        told = run(self.event(), self.root, is_process=True, **self.environ)
        assert self.is_told(told.decode()), seed
        edit = self.call("Edit", file_path=f"{self.site}/Makefile")
        run(edit, self.root, "pre_tool_use", is_process=True, **self.environ)

    def place(self, chance: random.Random) -> None:
        """Puts an odd session in the place of the one before."""
        places: dict[str, Callable[[random.Random], None]] = {
            "cline": self._place_documents,
            "hermes": self._place_messages,
            "openclaw": self._place_events,
            "opencode": self._place_rows,
            "gemini": self._place_chats,
            "atif": self._place_trajectories,
        }
        own = places.get(self.runtime.name) or places.get(self.runtime.family())
        (own or self._place_transcript)(chance)

    def _place_transcript(self, chance: random.Random) -> None:
        folder = FIXTURES / self.runtime.name
        name = chance.choice(
            [one.name for one in folder.glob("*.jsonl") if one.name != "torn.jsonl"]
        )
        expected = json.loads((folder / "expected.json").read_text())
        path = Path(
            self.runtime.project_dir(str(self.config_dir), str(self.site)), expected["file_name"]
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(mutated_lines(self._here((folder / name).read_bytes()), chance))
        if expected.get("names_file"):
            names = self._here((folder / "names.index").read_bytes())
            (self.config_dir / expected["names_file"]).write_bytes(mutated_bytes(names, chance))

    def _place_trajectories(self, chance: random.Random) -> None:
        for path in (FIXTURES / "atif" / "trajectories").iterdir():
            target = self.config_dir / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(mutated_state(self._here(path.read_bytes()), chance))

    def _place_chats(self, chance: random.Random) -> None:
        folder = FIXTURES / "gemini" / "chats"
        chats = self.config_dir / "tmp" / "site" / "chats"
        for path in [one for one in folder.rglob("*.jsonl")]:
            target = chats / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            target.write_bytes(mutated_lines(self._here(path.read_bytes()), chance))
        (chats.parent / ".project_root").write_bytes(mutated_bytes(str(self.site).encode(), chance))
        if chance.random() < 0.7:
            (chats.parent / ".project_root").write_text(str(self.site))
        projects = {"projects": {str(self.site): chance.choice(["site", *ODD])}}
        (self.config_dir / "projects.json").write_text(json.dumps(projects))

    def _place_documents(self, chance: random.Random) -> None:
        folder = FIXTURES / "cline" / "sessions"
        for path in folder.rglob("*.json"):
            target = self.config_dir / "sessions" / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(mutated_state(self._here(path.read_bytes()), chance))

    def _place_events(self, chance: random.Random) -> None:
        shutil.rmtree(self.config_dir, ignore_errors=True)
        rows = [path.read_bytes() for path in sorted((FIXTURES / "openclaw" / "rows").iterdir())]
        place_rows(self.config_dir, [self._here(content).decode() for content in rows])
        database = OpenClawDatabase(self.config_dir)
        with closing(sqlite3.connect(database.path)) as connection, connection:
            table = chance.choice(["session_windows", "session_nodes", "transcript_events"])
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            chosen = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
            row, name = chance.choice(chosen), chance.choice(names)
            value = chance.choice(["", "../x", "[" * 900, "a\0b", "7", "-1", None])
            if table == "transcript_events":
                (text,) = connection.execute(
                    "SELECT event_json FROM transcript_events WHERE rowid = ?", (row,)
                ).fetchone()
                name, value = "event_json", json.dumps(mutated(json.loads(text), [], chance))
            with suppress(sqlite3.IntegrityError):  # a value that a STRICT table refuses
                connection.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (value, row))

    def _place_messages(self, chance: random.Random) -> None:
        shutil.rmtree(self.config_dir, ignore_errors=True)
        rows = [path.read_bytes() for path in sorted((FIXTURES / "hermes" / "rows").iterdir())]
        texts = [self._here(content).decode() for content in rows]
        hermes_scene.place_rows(self.config_dir, texts, int(time.time()) - 86400 - BEGAN)
        with closing(sqlite3.connect(self.config_dir / "state.db")) as connection, connection:
            table = chance.choice(["sessions", "messages"])
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            chosen = [row for (row,) in connection.execute(f"SELECT rowid FROM {table}")]
            row, name = chance.choice(chosen), chance.choice(names)
            value = chance.choice(
                ["", "../x", "[" * 900, "\0json:[1]", "a\0b", "7", -1, b"x", None]
            )
            with suppress(sqlite3.IntegrityError):
                connection.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (value, row))

    def _place_rows(self, chance: random.Random) -> None:
        if not Path(self.runtime.source(str(self.config_dir))).exists():
            self.database = OpenCodeDatabase(self.config_dir)
            with closing(sqlite3.connect(self.database.path)) as connection:
                connection.execute("PRAGMA writable_schema = on")
                connection.execute("UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')")
                connection.commit()
        tool = {
            "type": "tool",
            "tool": "edit",
            "callID": "call_1",
            "state": {
                "status": "completed",
                "input": {"filePath": f"{self.site}/Makefile"},
                "output": "",
                "time": {"start": 1, "end": 2},
            },
        }
        session = self.database.exchange(self.site, "odd", "yes", tool)
        table = chance.choice(["session", "message", "part"])
        with closing(sqlite3.connect(self.database.path)) as connection, connection:
            key = "id" if table == "session" else "session_id"
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            (row,) = connection.execute(
                f"SELECT rowid FROM {table} WHERE {key} = ? LIMIT 1", (session,)
            ).fetchone()
            if table != "session" and chance.random() < 0.7:
                (data,) = connection.execute(
                    f"SELECT data FROM {table} WHERE rowid = ?", (row,)
                ).fetchone()
                connection.execute(
                    f"UPDATE {table} SET data = ? WHERE rowid = ?",
                    (json.dumps(mutated(json.loads(data), [], chance)), row),
                )
                return
            odd = chance.choice(
                [
                    None,
                    b"\xff\0",
                    b"",
                    "a\0b",
                    "",
                    -1,
                    2**62,
                    9e999,
                    -9e999,
                    1e300,
                    "x" * 1_000_000,
                    "[" * 900,
                    "../x",
                ]
            )
            try:
                connection.execute(
                    f"UPDATE {table} SET {chance.choice(names)} = ? WHERE rowid = ?", (odd, row)
                )
            except sqlite3.IntegrityError:  # a second one with this id
                pass

    def _here(self, content: bytes) -> bytes:
        """What a fixture tells, as of yesterday and of the repository."""
        yesterday = time.time() - 86400
        day = time.strftime("%Y-%m-%d", time.gmtime(yesterday)).encode()
        since = int(yesterday) - BEGAN
        content = content.replace(b"2026-11-20", day).replace(b"/srv/site", str(self.site).encode())
        return re.sub(
            rb"\b17951\d{8}\b", lambda found: b"%d" % (int(found[0]) + since * 1000), content
        )


@pytest.fixture(params=all_runtimes(), ids=lambda runtime: runtime.name)
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, request.param, monkeypatch)


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, CLAUDE, monkeypatch)


@pytest.fixture
def many(request: pytest.FixtureRequest) -> Callable[[int], range]:
    """The numbers of the attempts: all with --fuzz, else a part, a larger one with --all."""
    share = (
        1
        if request.config.getoption("--fuzz")
        else 50
        if request.config.getoption("--all")
        else 200
    )
    return lambda count: range(max(count // share, 2))


@pytest.mark.timeout(900)
def test_an_odd_value_in_a_transcript_costs_its_session_at_most(
    scene: Scene, many: Callable[[int], range]
) -> None:
    for number in many(2000):
        scene.place(random.Random(number))
        scene.check(number)
    assert scene.notes == set()  # each such record is read as far as it can be


@pytest.mark.timeout(300)
def test_so_it_does_where_the_hook_is_a_process(scene: Scene, many: Callable[[int], range]) -> None:
    for number in many(50):
        scene.place(random.Random(number))
        scene.check_as_process(number)


@pytest.mark.timeout(300)
def test_an_odd_file_of_the_state_costs_at_most_that_something_is_told_again(
    claude: Scene, many: Callable[[int], range]
) -> None:
    claude.check("")
    for number in many(1000):
        chance = random.Random(number)
        state = [
            path
            for path in (claude.root / ".session-memory" / "state").rglob("*")
            if path.is_file()
        ]
        path = chance.choice([one for one in state if one.suffix not in (".lock", ".log")])
        path.write_bytes(mutated_state(path.read_bytes(), chance))
        claude.check((number, path))


def mutated_state(content: bytes, chance: random.Random) -> bytes:
    try:
        return json.dumps(mutated(json.loads(content), [], chance)).encode()
    except ValueError:
        return mutated_bytes(content, chance)


@pytest.mark.timeout(300)
def test_an_odd_file_of_git_costs_at_most_what_it_would_have_said(
    claude: Scene, many: Callable[[int], range]
) -> None:
    git(claude.site, "pack-refs", "--all")
    git(claude.site, "worktree", "add", "-q", "../tree", "-b", "tree")
    paths = [
        claude.site / ".git" / name
        for name in ("HEAD", "index", "packed-refs", "logs/HEAD", "config")
    ]
    paths += [
        claude.site / ".git/worktrees/tree" / name for name in ("HEAD", "gitdir", "commondir")
    ]
    for number in many(1000):
        chance = random.Random(number)
        path = chance.choice(paths)
        before = path.read_bytes()
        path.write_bytes(mutated_bytes(before, chance))
        claude.check((number, path))
        path.write_bytes(before)


@pytest.mark.timeout(300)
def test_odd_settings_and_events_break_no_hook(claude: Scene, many: Callable[[int], range]) -> None:
    config = claude.root / ".session-memory" / "config.yaml"
    settings = "scope: all\nmax_characters: 400\nsessions:\n  - name: x*\n    ignore: true\ncollisions: ask\n"
    for number in many(100):
        chance = random.Random(number)
        config.write_bytes(mutated_bytes(settings.encode(), chance))
        run(claude.event(), claude.root, **claude.environ)
        config.write_text("collisions: ask\n")
        event = claude.call("Bash", command="git stash") if number % 2 else claude.event()
        script = "pre_tool_use" if number % 2 else "user_prompt_submit"
        run(json.dumps(mutated(event, [], chance)).encode(), claude.root, script, **claude.environ)
    claude.check_as_process("at last")
