"""A person with a session full of a WORD, and a search for our files with this word.

The word is in the title, prompts, answers, commands and paths.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import hermes_scene
from git_scene import repository
from hooks_scene import run as run_hook
from openclaw_scene import place_rows
from opencode_story import write_story
from own_process import as_a_process
from records import append, exchange, new_id, stamp
from store_scene import StoreUser

from session_memory.app.upkeep.runner import do_upkeep
from session_memory.common.text.timestamps import epoch_seconds
from session_memory.sessions.runtimes.base import Runtime
from session_memory.sessions.runtimes.table import runtime

FIXTURES = Path(__file__).parent / "sessions" / "runtimes" / "fixtures"
BEGAN = 1795168800  # of the story that the fixtures tell
WORD = "cherimoya"
CLAUDE = runtime("agent-sdk")


class Person(StoreUser):
    """Has a session of another runtime in a repository, in whose title, prompts, answers, commands
    and paths stands WORD, and one of Claude Code that is told of it."""

    def __init__(self, home: Path, other: Runtime) -> None:
        super().__init__(home)
        self.config("keep: whole\n")
        self.app = repository(home / "src" / "app", Makefile="all:\n", app="1\n")
        self.other, self.config_dir = other, Path(other.config_dir({"HOME": str(home)}))
        self.own_id = new_id()
        self.own = Path(
            CLAUDE.project_dir(str(home / ".claude"), str(self.app)), f"{self.own_id}.jsonl"
        )
        self.own.parent.mkdir(parents=True, exist_ok=True)
        look = ("Read", {"file_path": str(self.app / "Makefile")})
        append(self.own, *exchange("look", look, cwd=str(self.app), at=time.time() - 9 * 3600))
        self.began = time.time() - 8 * 3600
        places = [f"_place_{name}".replace("-", "_") for name in (other.name, other.family())]
        getattr(self, next((one for one in places if hasattr(self, one)), "_place_transcript"))()

    def told(self, text: str) -> str:
        """Return a story with WORD in it, in this repository, an hour ago."""
        text = text.replace(
            "How do I deploy this?", f"Please remember that {WORD} number 0 is ripe in May"
        )
        text = re.sub("depl?oy", WORD, text, flags=re.IGNORECASE).replace(
            "/srv/site", str(self.app)
        )
        shift = self.began - BEGAN
        text = re.sub(r"2026-11-20T1\d:\d\d:\d\d\.\d{3}Z", lambda time: self._moved(time[0]), text)
        return re.sub(r"\b17951\d{8}\b", lambda time: str(int(int(time[0]) + shift * 1000)), text)

    def _moved(self, when: str) -> str:
        return stamp((epoch_seconds(when) or 0.0) - BEGAN + self.began)

    def _place_transcript(self) -> None:
        folder = FIXTURES / self.other.name
        own = json.loads((folder / "expected.json").read_text())
        self.ids = [own["session_id"]]
        path = Path(self.other.project_dir(str(self.config_dir), str(self.app)), own["file_name"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.told((folder / "conversation.jsonl").read_text()))
        if own.get("names_file"):
            (self.config_dir / own["names_file"]).write_text(
                self.told((folder / "names.index").read_text())
            )

    def _place_gemini(self) -> None:
        project = self.config_dir / "tmp" / "app"
        for source in (FIXTURES / "gemini" / "chats").rglob("*.jsonl"):
            path = project / "chats" / source.relative_to(FIXTURES / "gemini" / "chats")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.told(source.read_text()))
        (project / ".project_root").write_text(str(self.app))
        self.ids = ["01a1fb3f-5096-4c0f-9f3a-6aedab85cb6f"]

    def _place_atif(self) -> None:
        self.config_dir.mkdir()
        text = self.told((FIXTURES / "atif" / "trajectories" / "trajectory.json").read_text())
        (self.config_dir / "trajectory.json").write_text(text)
        self.ids = [json.loads(text)["session_id"]]

    def _place_cline(self) -> None:
        [folder] = (FIXTURES / "cline" / "sessions").glob("*_site1")
        target = self.config_dir / "sessions" / folder.name
        target.mkdir(parents=True)
        for path in folder.iterdir():
            (target / path.name).write_text(self.told(path.read_text()))
        self.ids = [folder.name]

    def _place_openclaw(self) -> None:
        rows = [
            FIXTURES / "openclaw" / "rows" / f"{name}.jsonl" for name in ("conversation", "fork")
        ]
        self.ids = place_rows(self.config_dir, [self.told(path.read_text()) for path in rows])

    def _place_hermes(self) -> None:
        rows = [FIXTURES / "hermes" / "rows" / f"{name}.jsonl" for name in ("conversation", "fork")]
        texts = [self.told(path.read_text()) for path in rows]
        self.ids = hermes_scene.place_rows(self.config_dir, texts, self.began - BEGAN)

    def _place_opencode(self) -> None:
        story = write_story(self.config_dir)
        self.ids = [story["conversation.jsonl"], story["fork.jsonl"]]  # a fork keeps what it copied
        path = self.other.source(str(self.config_dir))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.create_function("told", 1, lambda text: text and self.told(text))
            for table, names in (
                ("session", ("title", "directory")),
                ("message", ("data",)),
                ("part", ("data",)),
            ):
                shift = int((self.began - BEGAN) * 1000)
                times = "time_created = time_created + :shift, time_updated = time_updated + :shift"
                texts = "".join(f", {name} = told({name})" for name in names)
                connection.execute(f"UPDATE {table} SET {times}{texts}", {"shift": shift})

    def prompt(self, prompt: str = "what is number 0, and when is it ripe?") -> str:
        """What the session of Claude Code is told."""
        return run_hook(self._event("UserPromptSubmit", prompt=prompt), self.home).decode()

    def about_to_edit(self, path: str = "") -> str:
        """What the session of Claude Code is told before an edit of the file, or of the Makefile."""
        given = {
            "file_path": path or str(self.app / "Makefile"),
            "old_string": "a",
            "new_string": "b",
        }
        event = self._event("PreToolUse", tool_name="Edit", tool_use_id=new_id(), tool_input=given)
        return run_hook(event, self.home, "pre_tool_use").decode()

    def _event(self, name: str, **fields: object) -> dict[str, object]:
        where = {"transcript_path": str(self.own), "cwd": str(self.app)}
        return {"session_id": self.own_id, "hook_event_name": name, **where, **fields}

    def upkeep(self) -> None:
        """All that nobody waits for."""
        place = self.home / ".session-memory"
        (place / "state" / "upkeep.lock").unlink(missing_ok=True)
        with as_a_process(["upkeep"], self.environment, self.home):
            run = do_upkeep(str(place), dict(os.environ))
        assert run
        assert not run.problem
        assert self.run("process").returncode == 0
        assert self.run("archive", "--all").returncode == 0

    def holding(self) -> list[str]:
        """Return our files with WORD in their name or in their content, free pages and journals of
        databases too."""
        place = self.home / ".session-memory"
        files = [path for path in sorted(self.home.rglob("*")) if path.is_relative_to(place)]
        return [
            str(path.relative_to(place))
            for path in files
            if WORD in path.name.lower()
            or (path.is_file() and WORD.encode() in path.read_bytes().lower())
        ]
