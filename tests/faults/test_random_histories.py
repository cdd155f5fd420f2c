"""Random histories of transcripts, compared with a model.

Transcripts are appended, torn, truncated, rewritten, renamed, copied, forked and deleted while
hooks, ingest, archive, upkeep and searches run and are killed. Then the model states what must be
in the store (once) and in the archives, and what must not have been reported. A run is a seed,
which is printed; with `--all` there are more. Each message has a token that occurs nowhere else.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
import share
from own_process import ROOT
from records import line, new_id, stamp
from store_scene import COMMAND, StoreUser

SEED = random.randrange(10**6)
STEPS = 45
TOKEN = re.compile(r"tk\d{5}z")
DIARY, SECRET = "diary", "secret"
MOST_PROCESSES = 3


class Session:
    """A session of the model: its lines on disk, each with its token, and the rest of a torn last one."""

    def __init__(self, world: World, cwd: Path) -> None:
        self.world = world
        self.cwd = cwd
        self.id = world.new_session_id()
        self.lines: list[tuple[str, bytes]] = []
        self.torn = b""
        self.is_gone = False
        self.is_forgotten = False
        world.sessions.append(self)

    @property
    def path(self) -> Path:
        folder = "".join(c if c.isalnum() else "-" for c in str(self.cwd))
        return self.world.user.projects / folder / f"{self.id}.jsonl"

    @property
    def is_excluded(self) -> bool:
        return self.cwd.name == SECRET

    def put(self, content: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            file.write(content)

    def write_all(self) -> None:
        temporary = self.path.with_suffix(".new")
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(b"".join(content for _, content in self.lines))
        temporary.replace(self.path)

    def message(self) -> tuple[str, bytes]:
        token = self.world.new_token()
        role = self.world.draw.choice(["user", "assistant"])
        text = f"please look at {token} now" + " filler" * self.world.draw.choice([0, 5, 200])
        content: object = text
        message: dict[str, object] = {"role": role, "content": content}
        if role == "assistant":
            message = {
                "id": f"msg_{token}",
                "type": "message",
                "role": role,
                "model": "m",
                "content": [{"type": "text", "text": text}],
            }
        record = {
            "type": role,
            "uuid": new_id(),
            "sessionId": self.id,
            "cwd": str(self.cwd),
            "timestamp": stamp(time.time()),
            "isSidechain": False,
            "userType": "external",
            "version": "2.1.0",
            "message": message,
        }
        return token, line(record)


class World:
    """A user, their sessions, and the processes that run."""

    def __init__(self, root: Path, seed: int) -> None:
        self.draw = random.Random(seed)
        self.user = StoreUser(root / "home")
        self.projects = [root / name for name in ("alpha", "beta", SECRET)]
        for project in self.projects:
            project.mkdir(parents=True)
        self.user.config(f"projects:\n  {self.projects[2]}: {{ignore: true}}\n")
        self.sessions: list[Session] = []
        self.tokens = 0
        self.owners: dict[str, set[str]] = {}  # the ids of the sessions that ever had a token
        self.hidden: set[str] = set()
        self.secured: set[str] = set()  # on disk from the beginning of an ingest to its end
        self.forgotten_ids: set[str] = set()
        self.said: list[str] = []
        self.faults: list[str] = []
        self.running: list[tuple[str, subprocess.Popen[bytes], float, set[str]]] = []

    def new_token(self) -> str:
        self.tokens += 1
        return f"tk{self.tokens:05d}z"

    def new_session_id(self) -> str:
        number = len(self.owners) * 1000 + len(self.sessions) * 7 + self.draw.randrange(7)
        return f"{number:08x}-0000-4000-8000-{self.draw.randrange(16**12):012x}"

    def has(self, session: Session, *tokens: str) -> None:
        for token in tokens:
            self.owners.setdefault(token, set()).add(session.id)
            if session.is_excluded:
                self.hidden.add(token)

    def live(self) -> list[Session]:
        return [session for session in self.sessions if not session.is_gone]

    def on_disk(self) -> set[str]:
        torn = {session.lines[-1][0] for session in self.sessions if session.torn}
        return {token for session in self.live() for token, _ in session.lines} - torn

    # What happens to transcripts

    def append(self, session: Session) -> None:
        if session.torn:
            session.put(session.torn)
            session.torn = b""
            self.has(session, session.lines[-1][0])
        for _ in range(self.draw.randint(1, 4)):
            token, content = session.message()
            session.lines.append((token, content))
            if self.draw.random() < 0.12:
                cut = self.draw.randrange(1, len(content))
                session.put(content[:cut])
                session.torn = content[cut:]
                return
            session.put(content)
            self.has(session, token)

    def truncate(self, session: Session) -> None:
        if len(session.lines) > 2:
            session.lines = session.lines[: self.draw.randrange(1, len(session.lines))]
            os.truncate(session.path, sum(len(content) for _, content in session.lines))

    def rewrite(self, session: Session) -> None:
        new = [session.message() for _ in range(self.draw.randint(1, 3))]
        session.lines = [kept for kept in session.lines if self.draw.random() < 0.7] + new
        session.write_all()
        self.has(session, *[token for token, _ in new])

    def delete(self, session: Session) -> None:
        session.path.unlink()
        session.is_gone = True

    def rename(self, session: Session) -> None:
        before, session.id = session.path, self.new_session_id()
        before.rename(session.path)
        self.has(session, *[token for token, _ in session.lines])

    def copy(self, session: Session) -> None:
        other = Session(self, session.cwd)
        other.lines = list(session.lines)
        other.write_all()
        self.has(other, *[token for token, _ in other.lines])

    def fork(self, session: Session) -> None:
        other = Session(self, session.cwd)
        for token, content in session.lines:
            record = json.loads(content)
            forked = {
                **record,
                "forkedFrom": {"sessionId": session.id, "messageUuid": record["uuid"]},
            }
            other.lines.append((token, line({**forked, "sessionId": other.id})))
        other.write_all()
        self.has(other, *[token for token, _ in other.lines])
        self.append(other)

    def forget(self, session: Session) -> None:
        # also if it could not end: upkeep does the rest
        self.user.run("forget", session.id, "--yes")
        session.is_forgotten = True
        self.forgotten_ids.add(session.id)

    # What runs meanwhile

    def start(
        self, name: str, *command: str, event: dict[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        before = self.on_disk()
        process = subprocess.Popen(
            command,
            cwd=cwd or self.user.home,
            env={**self.user.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(event).encode() if event else b"")
            process.stdin.close()
        except BrokenPipeError:
            pass
        process.stdin = None
        kill = self.draw.choice([0.0, 0.0, self.draw.random() * 0.3, self.draw.random()])
        self.running.append((name, process, time.monotonic() + kill if kill else 0.0, before))

    def start_something(self) -> None:
        session = self.draw.choice(self.live())
        python, choice = sys.executable, self.draw.random()
        if choice < 0.4:
            event = {
                "session_id": session.id,
                "transcript_path": str(session.path),
                "cwd": str(session.cwd),
                "hook_event_name": "UserPromptSubmit",
                "prompt": "go on",
            }
            hook = str(ROOT / "hooks" / "user_prompt_submit.py")
            self.start("hook", python, "-I", "-S", hook, event=event, cwd=session.cwd)
        elif choice < 0.65:
            self.start("ingest", python, "-c", COMMAND, "ingest")
        elif choice < 0.8:
            self.start("archive", python, "-c", COMMAND, "archive", "--all")
        elif choice < 0.88:
            self.start(
                "upkeep", python, "-I", str(ROOT / "hooks" / "upkeep.py"), str(self.user.home)
            )
        else:
            self.start("search", python, "-c", COMMAND, "search", "please look", cwd=session.cwd)

    def poll(self, *, is_last: bool = False) -> None:
        for running in list(self.running):
            name, process, kill_at, before = running
            if kill_at and time.monotonic() > kill_at:
                os.killpg(process.pid, signal.SIGKILL)
            elif process.poll() is None and not is_last:
                continue
            out, err = (
                text.decode("utf-8", "replace") for text in process.communicate(timeout=120)
            )
            self.running.remove(running)
            if "Traceback" in err or (
                name == "hook" and (err or process.returncode not in (0, -9))
            ):
                self.faults.append(f"{name} ended with {process.returncode}: {err[-500:]}")
            if name in ("hook", "search"):
                self.said.append(out)
            if name == "ingest" and process.returncode == 0:
                self.secured |= before & self.on_disk()

    def run(self) -> None:
        """The history, and then everything once more to its end."""
        for project in self.projects:
            self.append(Session(self, project))
        changes = [self.append] * 8 + [
            self.truncate,
            self.rewrite,
            self.delete,
            self.rename,
            self.copy,
            self.fork,
        ]
        for _ in range(STEPS):
            for _ in range(self.draw.randint(1, 3)):
                session, change = self.draw.choice(self.live()), self.draw.choice(changes)
                if change == self.append or not session.torn:
                    change(session)
                if not self.live() or self.draw.random() < 0.05:
                    self.append(Session(self, self.draw.choice(self.projects)))
            if (
                self.draw.random() < 0.04
                and not session.torn
                and not session.is_gone
                and not session.is_excluded
            ):
                self.forget(session)
            if len(self.running) < MOST_PROCESSES:
                self.start_something()
            self.poll()
        for session in self.live():
            if session.torn:
                session.put(session.torn)
                session.torn = b""
                self.has(session, session.lines[-1][0])
        self.poll(is_last=True)
        for words in (("ingest",), ("ingest",), ("archive", "--all")):
            done = self.user.run(*words)
            if done.returncode or "Traceback" in done.stderr:
                self.faults.append(f"{words}: {done.returncode} {done.stderr[-500:]}")


def below(directory: Path, pattern: str) -> set[str]:
    return {
        token
        for path in directory.glob(pattern)
        for token in TOKEN.findall(path.read_bytes().decode("latin-1"))
    }


@pytest.mark.parametrize("number", range(share.some(12, 2)))
def test_after_a_random_history_all_is_as_the_model_says(tmp_path, number):
    seed = SEED + number
    world = World(tmp_path, seed)
    world.run()
    place = world.user.home / ".session-memory"
    with closing(sqlite3.connect(world.user.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        texts = [text for (text,) in connection.execute("SELECT text FROM entries")]
    found = Counter(token for text in texts for token in TOKEN.findall(text))
    # What was said in a session that was forgotten is gone, in its copies too.
    may_be_gone = {token for token, owners in world.owners.items() if owners & world.forgotten_ids}
    needed = (world.secured | world.on_disk()) - world.hidden - may_be_gone
    remembered = (
        {
            token
            for session in world.live()
            if not session.is_forgotten
            for token, _ in session.lines
        }
        - world.hidden
        - may_be_gone
    )
    archived = below(place, "conversations/*.md")
    assert {
        "faults": world.faults,
        "not in the store": sorted(needed - found.keys()),
        "twice in the store": sorted(token for token, count in found.items() if count > 1),
        "on disk and in no archive": sorted(remembered - archived),
        "excluded and shown": sorted(found.keys() & world.hidden),
        "excluded and archived in the open": sorted(archived & world.hidden),
        "excluded and told": sorted(set(TOKEN.findall("\n".join(world.said))) & world.hidden),
        "set aside": [path.name for path in place.rglob("*.corrupt-*")],
    } == {
        "faults": [],
        "not in the store": [],
        "twice in the store": [],
        "on disk and in no archive": [],
        "excluded and shown": [],
        "excluded and archived in the open": [],
        "excluded and told": [],
        "set aside": [],
    }, f"seed {seed}"
