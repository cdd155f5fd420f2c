"""A host: groups with sessions, a group's shared directory, and a host on its own machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from textwrap import indent
from typing import Any, TypeVar

from clients.claude import API_KEY, REPOSITORY
from fakes.fake_anthropic import FakeAnthropic, Reply
from fakes.loopback import Json, Request
from own_process import run_here
from records import exchange, new_id, write

from session_memory.app.tools.call import ToolResult, call
from session_memory.extras.host._ipc import answer_requests
from session_memory.extras.host._ledger import Ledger
from session_memory.extras.host._log import HostLog
from session_memory.extras.host._values import ChatReply
from session_memory.extras.host.administration import HostAdministration
from session_memory.extras.host.group_backend import GroupBackend
from session_memory.extras.host.recovery import _running_pids
from session_memory.history.archives.writer import open_sessions
from session_memory.history.store.location import find_location
from session_memory.history.store.refresh import open_store, refresh
from session_memory.sessions.runtimes.claude import RUNTIME as CLAUDE
from session_memory.sessions.settings.host_layout import Group, Layout
from session_memory.sessions.transcripts.pointers import SessionManager

NOON = datetime(2026, 2, 21, 12, 0).timestamp()  # local


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


class Told(HostLog):
    """A host's log that keeps what it told."""

    def __init__(self, directory: Path) -> None:
        self.events: list[str] = []
        self.faults: list[str] = []
        super().__init__(
            str(directory / "host.log"), lambda line, is_fault: self._of(is_fault).append(line)
        )

    def _of(self, is_fault: bool) -> list[str]:
        return self.faults if is_fault else self.events


class GroupDir:
    """A host in `root` with the groups that are added to it."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.layout = Layout(root)
        self.layout.make()
        self.sessions = open_sessions(self.layout)
        self.root = Path(self.layout.root)
        self._ledger: Ledger | None = None

    def close(self) -> None:
        self.sessions.close()
        if self._ledger is not None:
            self._ledger.close()

    def add(self, name: str) -> Group:
        group = self.layout.group(name)
        group.make()
        self.ledger.register(name, f"chat:{name}", name, "", False)
        return group

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = Ledger(self.layout.database)
        return self._ledger

    def transcript(self, name: str, session_id: str) -> Path:
        return Path(self.layout.group(name).transcript(session_id))

    def begin(self, name: str, *records: dict[str, Any]) -> str:
        """Makes a new session the group's active one; its id."""
        session_id = new_id()
        write(self.transcript(name, session_id), *(records or exchange("hello", "hi")))
        self.sessions.set(name, session_id)
        return session_id

    def backend(self, name: str) -> GroupBackend:
        return GroupBackend(
            self.layout, name, self.sessions, administration=HostAdministration(self.layout, name)
        )

    def call(self, group: str, tool: str, /, **arguments: Any) -> ToolResult:
        """Has the agent of `group` call a tool."""
        return call(self.backend(group), tool, arguments)

    def archives(self, name: str) -> list[str]:
        """The names of the group's archives."""
        directory = self.layout.group(name).conversations_dir
        return (
            sorted(one for one in os.listdir(directory) if one.endswith(".md"))
            if os.path.isdir(directory)
            else []
        )


@contextmanager
def three_groups(root: Path) -> Iterator[GroupDir]:
    """A host with the groups main, family and work."""
    with closing(GroupDir(root)) as host:
        for name in ("main", "family", "work"):
            host.add(name)
        yield host


def ingested(host: GroupDir) -> None:
    """Makes the store of a host, of all that was said in its groups."""
    location = find_location(str(host.root), {})
    store = open_store(location)
    refresh(store, location, print)
    store.close()


class Box:
    """The shared directory of a group as its agent sees it."""

    def __init__(self, host: GroupDir, group: str) -> None:
        self.host = host
        self.group = group
        self.path = Path(host.layout.group(group).ipc_dir)
        self.tasks = self.path / "tasks"
        self.responses = self.path / "responses"

    def snapshot(self, name: str) -> Any:
        return json.loads((self.path / f"{name}.json").read_text())

    def ask(self, request_id: str, tool: str, /, **arguments: Any) -> None:
        self.put(request_id, json.dumps({"tool": tool, "arguments": arguments}).encode())

    def put(self, request_id: str, content: bytes, age_seconds: float = 60) -> Path:
        path = self.tasks / f"{request_id}.json"
        path.write_bytes(content)
        then = time.time() - age_seconds
        os.utime(path, (then, then))
        return path

    def answer(self, backend: GroupBackend | None = None) -> int:
        return answer_requests(
            self.host.layout, self.group, backend or self.host.backend(self.group)
        )

    def response(self, request_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.responses / f"{request_id}.json").read_text())
        return found

    def answered(self) -> list[str]:
        return sorted(path.name for path in self.responses.iterdir())


WAIT_SECONDS = 150
PROGRAM = "import sys; from session_memory.cli import main; sys.exit(main())"
GROUP = re.compile("the agent of the group `([^`]+)`")
TOKEN = re.compile(r"\bm-[A-Za-z0-9]+-[0-9]+\b")
Found = TypeVar("Found")


class Echo(FakeAnthropic):
    """A model that answers with the tokens (`m-main-7`) of the messages in front of it, unless a
    reply is scripted.

    `think` gives the seconds that it takes for that.
    """

    def __init__(self, think: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__()
        self._think = think
        self._groups: set[str] = set()  # that have asked since the last reset
        self._earlier: set[str] = set()  # that asked before it

    def reset(self) -> None:
        super().reset()
        with self.lock:
            self._earlier |= self._groups
            self._groups.clear()

    def _kind_and_script(self, request: Request) -> tuple[str, list[Reply]]:
        kind, script = super()._kind_and_script(request)
        group = next(iter(GROUP.findall(json.dumps(request.body))), "")
        if group in self._earlier - {"main"}:  # of an earlier test: its agent still ends a turn
            return "late", []
        if group:
            self._groups.add(group)
        if kind == "main" and not script:
            return kind, [
                {"text": " ".join(tokens(request.news)) or "nothing", "seconds": self._think()}
            ]
        return kind, script


def tokens(text: str) -> list[str]:
    """The tokens in a text, each once."""
    return list(dict.fromkeys(TOKEN.findall(text)))


class HostMachine:
    """A host on a machine of its own: its directory, the program that serves it, killed and started
    anew, a fake API.

    The directory has a short path, for a socket has to fit in it. `ledger` and `sessions` look into
    the host's database from outside.
    """

    def __init__(self, api: FakeAnthropic) -> None:
        self.api = api
        self.root = Path(tempfile.mkdtemp(prefix="smh-"))
        self.layout = Layout(self.root / "h")
        scratch, home = self.root / "t", self.root / "home"
        for directory in (scratch, home):
            directory.mkdir()
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(REPOSITORY),
            "TMPDIR": str(scratch),
            "CLAUDE_CODE_TMPDIR": str(scratch),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "ANTHROPIC_API_KEY": API_KEY,
            "ANTHROPIC_BASE_URL": api.base_url,
        }
        self.child: subprocess.Popen[bytes] | None = None
        self._opened: list[Any] = []

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`session-memory host ...` to its end; the directory stands behind the action, as `--at`."""
        at = [str(self.layout.root)] if words[0] == "init" else ["--at", str(self.layout.root)]
        return run_here(["host", words[0], *at, *words[1:]], self.environment, self.root)

    def init(self, *groups: str, config: str = "") -> HostMachine:
        """Makes the host with these groups; `config` is the section `host` of its settings."""
        done = self.command("init", *groups)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        if config:
            Path(self.layout.config_file).write_text("host:\n" + indent(config, "  "))
        return self

    @property
    def ledger(self) -> Ledger:
        found = next((one for one in self._opened if isinstance(one, Ledger)), None)
        if found is None:
            found = Ledger(self.layout.database)
            self._opened.append(found)
        return found

    @property
    def sessions(self) -> SessionManager:
        found = next((one for one in self._opened if isinstance(one, SessionManager)), None)
        if found is None:
            found = open_sessions(self.layout)
            self._opened.append(found)
        return found

    def group(self, name: str) -> Group:
        return self.layout.group(name)

    def start(self) -> None:
        """Starts the host; it serves a moment later."""
        assert self.child is None
        with open(self.root / "out", "ab") as out:
            self.child = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "host", "run", "--at", str(self.layout.root)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd=self.root,
                start_new_session=True,
            )

    def kill(self, *, with_runtimes: bool = False) -> None:
        """Kill the host with -9: alone, so its runtimes live on, or with all that it started."""
        child, self.child = self.child, None
        assert child is not None
        if with_runtimes:
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.wait()

    def stop(self) -> int:
        """Has the host end in good order; its exit code."""
        child, self.child = self.child, None
        assert child is not None
        child.terminate()
        return child.wait(WAIT_SECONDS)

    def output(self) -> str:
        """What the host has said so far."""
        path = self.root / "out"
        return path.read_text() if path.exists() else ""

    def say(self, group: str, text: str, sender: str = "") -> str:
        """Puts a message into a group's inbox; its id."""
        jid = self.ledger.group(group).jid
        return self.ledger.receive(jid, text, sender=sender or "terminal", sender_name=sender)

    def reply_to(self, group: str, message_id: str) -> ChatReply:
        """The reply to a message, waited for."""
        jid = self.ledger.group(group).jid
        self.wait(lambda: self.ledger.reply_to(message_id, jid)[0], f"a reply to {message_id}")
        _, reply_id = self.ledger.reply_to(message_id, jid)
        assert reply_id is not None, "the agent had nothing to say"
        return self.ledger.replies(reply_id - 1, jid, limit=1)[0]

    def due(self, group: str, prompt: str, mode: str = "group") -> str:
        """Gives a group a task that is due at once; its id."""
        ledger = Ledger(self.layout.database, lambda: 0.0)  # for which that time is still to come
        jid = self.ledger.group(group).jid
        return ledger.schedule.add(group, jid, prompt, "once", "2026-01-01T00:00:00", mode).id

    def ask(self, group: str, text: str, sender: str = "") -> str:
        """What a group's agent answers."""
        return self.reply_to(group, self.say(group, text, sender)).text

    def wait(self, what: Callable[[], Found], name: str) -> Found:
        """Wait for a value of `what` and return it. Fail with the host's output after too long."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not (found := what()):
            assert time.monotonic() < deadline, (
                f"no {name} within {WAIT_SECONDS} s; the host said:\n{self.output()}"
            )
            if self.child is not None:
                assert self.child.poll() is None, f"the host ended:\n{self.output()}"
            time.sleep(0.02)
        return found

    def let_go(self) -> None:
        """Closes the databases that were opened here."""
        for one in self._opened:
            one.close()
        self._opened.clear()

    def close(self) -> None:
        """Ends everything that was started here, and takes the directory away."""
        if self.child is not None:
            self.kill()
        self.let_go()
        for config_dir in self.root.glob("h/data/sessions/*/.claude"):
            for pid in _running_pids(CLAUDE, str(config_dir)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.root, ignore_errors=True)


def texts(request: Request) -> list[tuple[str, str]]:
    """The conversation of a request as pairs of role and text, without what the runtime adds."""
    found = []
    for message in request.messages:
        content: list[Json] | str = message.get("content") or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said = [
            b["text"]
            for b in blocks
            if b.get("type") == "text" and not b["text"].startswith("<system-reminder>")
        ]
        if said and message.get("role") in ("user", "assistant"):
            found.append((message["role"], "\n".join(said)))
    return found


def about(host: HostMachine, token: str) -> list[Request]:
    """The requests that came for the message with this token: it is new in them."""
    return [request for request in host.api.prompts() if token in request.news]
