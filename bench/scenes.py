"""Homes with sessions in them, and the states that a measured run of the hook begins with."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
import uuid
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from session_memory.install.environment import Environment
from session_memory.install.program import ensure_app
from session_memory.runtimes.claude import encode_cwd
from session_memory.settings.program import ProgramPaths
from session_memory.system.files import is_locked

from .corpus import Texts
from .opencode import LargeDatabase
from .sources import Source
from .stopwatch import Command, CommandError, Stopwatch

REPOSITORY = Path(__file__).resolve().parent.parent
OWN_SESSION = "11111111-1111-4111-8111-111111111111"
AGE_SECONDS = 3600  # how long ago the sessions were last active
FRESH_AGE_SECONDS = 60  # and how long ago, where they did something since
SETTLED_SECONDS = 2.5  # what was written is trusted to stay as it is once it is two seconds old
UPKEEP_SECONDS = 60.0  # that a first run may take
KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE
SEED = 7


def install(program_dir: Path) -> Path:
    """Installs the program for this interpreter; the directory with what the hooks run."""
    paths = ProgramPaths(program_dir, program_dir / "bin")
    ensure_app(paths, REPOSITORY, Environment(sys.executable, platform.python_version(), "ready"))
    return paths.app


class Scene:
    """A user's home directory with one project, or one agent home, and its sessions; the program in `app` is run.

    `sessions` are the transcripts of the others, `environment` and `event` what the runtime gives to the hook. There
    is a transcript of the own session too. `database` is that of OpenCode, if it has sessions.
    """

    database: LargeDatabase | None = None

    def __init__(self, root: Path, app: Path, source: Source, sizes: list[int], *, with_names: bool = False) -> None:
        self.root = root
        self._app = app
        self.agent_dir = root / "work" / "alpha"
        self.agent_dir.mkdir(parents=True)
        self._project_dir = root / ".claude" / "projects" / encode_cwd(str(self.agent_dir))
        self._names_dir = self.agent_dir / ".session-memory" / "sessions"
        self._with_names = with_names
        self.ended = time.time() - AGE_SECONDS
        added = [self._add(source, number, size) for number, size in enumerate(sizes)]
        self.sessions = [path for path in added if path is not None]
        source(self._project_dir, 100 * KILOBYTE, self.ended).rename(self._project_dir / f"{OWN_SESSION}.jsonl")
        self._name("main", OWN_SESSION)
        self.environment = {
            "HOME": str(root),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "CLAUDE_PROJECT_DIR": str(self.agent_dir),
            "CLAUDE_PID": "4711",
        }
        self.event = {
            "session_id": OWN_SESSION,
            "transcript_path": f"{self._project_dir}/{OWN_SESSION}.jsonl",
            "cwd": str(self.agent_dir),
            "hook_event_name": "UserPromptSubmit",
            "prompt": "And now the tests, please.",
        }

    def hook(self) -> Command:
        """The hook as the runtime runs it."""
        script = str(self._app / "hooks" / "user_prompt_submit.py")
        return self._command("-I", "-S", script)

    def session_start(self) -> Command:
        """The hook for a session that starts."""
        script = str(self._app / "hooks" / "session_start.py")
        event = {**self.event, "hook_event_name": "SessionStart", "source": "startup"}
        return self._command("-I", "-S", script, event=event)

    def call_hook(self) -> Command:
        """The hook for tool calls, as the runtime runs it before an edit."""
        path = str(self.agent_dir / "src" / "module0.py")
        call = {"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "toolu_1"}
        event = {**self.event, **call, "tool_input": {"file_path": path, "old_string": "1", "new_string": "2"}}
        script = str(self._app / "hooks" / "pre_tool_use.py")
        return self._command("-I", "-S", script)._replace(stdin=json.dumps(event).encode())

    def reader(self, name: str) -> Command:
        """The reader as an agent runs it, for the last entries of one named session."""
        script = str(self._app / "scripts" / "session_reader.py")
        return self._command("-I", "-S", script, name, "--lines", "50", "--home", str(self.agent_dir))

    def bare(self) -> Command:
        """An interpreter that does nothing, started like the hook."""
        return self._command("-I", "-c", "pass")

    @property
    def own_path(self) -> Path:
        """The transcript of the own session."""
        return self._project_dir / f"{OWN_SESSION}.jsonl"

    @property
    def state_dir(self) -> Path:
        """What the hook keeps of this home."""
        return (self.agent_dir if self._with_names else self.root) / ".session-memory" / "state"

    def forget(self) -> None:
        """Back to a home in which the hook never ran."""
        shutil.rmtree(self.state_dir, ignore_errors=True)

    def settle(self, stopwatch: Stopwatch) -> None:
        """Has the hook tell all there is to tell. Raises CommandError where that has no end, or the hook complains."""
        for path in self.sessions:
            os.utime(path, (self.ended, self.ended))
        for command in self.before_settling():
            stopwatch.run(command)
        for _ in range(2 * len(self.sessions) + 2):
            printed = stopwatch.run(self.hook()).stdout
            if printed and self.own_path.exists():
                self.show_told(printed)
            if not printed:
                time.sleep(SETTLED_SECONDS)
                stopwatch.run(self.hook())  # the folders of the project, too, are old enough now
                return self.check_log()
        raise CommandError(f"{self.root}: the hook has something new to tell on every prompt")

    def before_settling(self) -> list[Command]:
        """What upkeep does before the hook is run: nothing, where no session has a mirror."""
        return []

    def show_told(self, printed: bytes) -> None:
        """Adds to the own transcript what the runtime records of a hook that told something."""
        text = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
        attachment = {"type": "hook_additional_context", "content": [text]}
        told = {"parentUuid": None, "type": "attachment", "uuid": "told", "attachment": attachment}
        answer = {"parentUuid": "told", "type": "assistant", "uuid": "answer", "message": {"content": []}}
        with self.own_path.open("ab") as transcript:
            for one in (told, answer):
                transcript.write(json.dumps(one, separators=(",", ":")).encode() + b"\n")

    def check_log(self) -> None:
        """Raises CommandError where the hook failed open: what that takes is not what is to be measured."""
        log = self.state_dir / "hook.log"
        if log.exists():
            raise CommandError(f"the hook complains: {log.read_text().splitlines()[0]}")

    def make_upkeep_due(self) -> None:
        """Lets the next start of a session start upkeep."""
        os.utime(self.state_dir / "upkeep.lock", (1, 1))

    def wait_for_upkeep(self) -> None:
        """Returns when the upkeep that was started is over and has released its lock. Raises CommandError where that
        takes long."""
        deadline = time.monotonic() + UPKEEP_SECONDS
        while time.monotonic() < deadline:
            try:
                has_begun = (self.state_dir / "upkeep.lock").stat().st_mtime > 1
                has_ended = json.loads((self.state_dir / "upkeep.json").read_bytes())["runs"][-1]["ended"]
                if has_begun and has_ended and not is_locked(str(self.state_dir / "upkeep.lock")):
                    return
            except (OSError, ValueError, LookupError):
                pass
            time.sleep(0.05)
        raise CommandError(f"{self.root}: upkeep does not end")

    def _command(self, *arguments: str, event: dict[str, str] | None = None) -> Command:
        return Command([sys.executable, *arguments], self.environment, json.dumps(event or self.event).encode())

    def _add(self, source: Source, number: int, size: int) -> Path | None:
        path = source(self._project_dir, size, self.ended)
        self._name(f"session-{number}", path.stem)
        return path

    def _name(self, name: str, session_id: str) -> None:
        if self._with_names:
            self._names_dir.mkdir(parents=True, exist_ok=True)
            (self._names_dir / f"{name}.json").write_text(json.dumps({"sessionId": session_id}))


class Tail(NamedTuple):
    """The last lines of a transcript; `offset` is where they begin."""

    path: Path
    offset: int
    content: bytes


class State:
    """What the hook keeps of a settled scene."""

    def __init__(self, scene: Scene) -> None:
        self._directory = scene.state_dir
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        self._kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    def set_back(self) -> None:
        """Takes away what came since, and has all else be as it was, with its time: mirrors are told by that."""
        for path in self._directory.rglob("*"):
            if path.is_file() and path not in self._kept:
                path.unlink()
        for path, (content, written) in self._kept.items():
            if path.read_bytes() != content:
                path.write_bytes(content)
            os.utime(path, ns=(written, written))


class News:
    """Something new in each session of a settled scene: the last kilobytes of its transcript, or as much that its user
    typed.

    They are taken away, and each time that they come back the hook has them to tell anew.
    """

    def __init__(self, scene: Scene, kilobytes: int, stopwatch: Stopwatch, *, is_typed: bool = False) -> None:
        size = kilobytes * KILOBYTE
        texts = Texts(SEED) if is_typed else None
        self._tails = [_typed_tail(path, size, texts) if texts else _cut_tail(path, size) for path in scene.sessions]
        self._database = scene.database
        if self._database is not None:
            self._database.cut(size)
        scene.settle(stopwatch)
        self._state = State(scene)

    def bring(self) -> None:
        """Sets back what the hook keeps, and appends to each transcript what it was not told of yet."""
        self._state.set_back()
        if self._database is not None:
            self._database.put()
        written = time.time() - FRESH_AGE_SECONDS
        for tail in self._tails:
            with open(tail.path, "r+b") as file:
                file.truncate(tail.offset)
                file.seek(tail.offset)
                file.write(tail.content)
            os.utime(tail.path, (written, written))


class Buried:
    """A session of a settled scene edited a file, and what its tools showed and printed lies behind it: brought each
    time as `News` is."""

    def __init__(self, scene: Scene, size: int, stopwatch: Stopwatch) -> None:
        self._path = scene.sessions[0]
        self._before = self._path.stat().st_size
        self._size = size
        self._edit = _edit_lines(self._path.stem, str(scene.agent_dir / "module.py"), time.time() - 60, scene)
        record = json.loads(self._edit.splitlines()[1])
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR/x0" * 110_000}}
        shown = [_with_result(record, [image]), _with_result(record, "12 passed, def f(): return {}\n" * 2_500)]
        self._shown = shown[0] + 4 * shown[1]
        scene.settle(stopwatch)
        self._state = State(scene)

    def bring(self) -> None:
        """Sets back what the hook keeps, and appends to the transcript what it was not told of yet."""
        self._state.set_back()
        written = time.time() - FRESH_AGE_SECONDS
        with open(self._path, "r+b") as file:
            file.truncate(self._before)
            file.seek(self._before)
            file.write(self._edit)
            for _ in range(self._size // len(self._shown)):
                file.write(self._shown)
        os.utime(self._path, (written, written))


def _with_result(record: dict[str, Any], content: object) -> bytes:
    """The line of a record with another result of its call."""
    (block,) = record["message"]["content"]
    message = {**record["message"], "content": [{**block, "content": content}]}
    return json.dumps({**record, "message": message}, separators=(",", ":")).encode() + b"\n"


class Unsettled:
    """A settled scene whose hook has told something last that the own transcript shows, and has not looked there yet:
    brought each time anew."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        News(scene, 20, stopwatch).bring()
        scene.show_told(stopwatch.run(scene.hook()).stdout)
        self._cursors = {path: path.read_bytes() for path in scene.state_dir.rglob("cursors/*.json")}

    def bring(self) -> None:
        """Sets the hook's cursors back."""
        for path, content in self._cursors.items():
            path.write_bytes(content)


class Clash:
    """A repository in which the own session and each of the others edit the same files, and one switched the branch:
    brought each time as `News` is."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        self._git_dir = scene.agent_dir / ".git"
        (self._git_dir / "logs").mkdir(parents=True)
        (self._git_dir / "HEAD").write_text("ref: refs/heads/main\n")
        self._log = self._git_dir / "logs" / "HEAD"
        self._log.write_text(_moved("commit (initial): begin", scene.ended))
        files = [scene.agent_dir / "src" / f"module{number}.py" for number in range(8)]
        files[0].parent.mkdir()
        for file in files:
            file.write_text("x = 1\n")
        then = time.time() - 20 * FRESH_AGE_SECONDS
        own = scene.own_path
        with own.open("ab") as transcript:
            transcript.write(b"".join([_edit_lines(own.stem, str(file), then, scene) for file in files]))
        os.utime(own, (then + 60, then + 60))
        self._news = [
            (path, path.stat().st_size, _edit_lines(path.stem, str(files[number % 8]), time.time() - 60, scene))
            for number, path in enumerate(scene.sessions)
        ]
        scene.settle(stopwatch)
        self._state = State(scene)

    def bring(self) -> None:
        """Sets back what the hook keeps, appends to each transcript, and switches the branch."""
        self._state.set_back()
        written = time.time() - FRESH_AGE_SECONDS
        for path, offset, content in self._news:
            with open(path, "r+b") as file:
                file.truncate(offset)
                file.seek(offset)
                file.write(content)
            os.utime(path, (written, written))
        (self._git_dir / "HEAD").write_text("ref: refs/heads/fix\n")
        self._log.write_text(_moved("checkout: moving from main to fix", written))


def _moved(message: str, when: float) -> str:
    commit = "1" * 40
    return f"{commit} {commit} Ada <ada@example.org> {int(when)} +0000\t{message}\n"


def _edit_lines(session_id: str, path: str, when: float, scene: Scene) -> bytes:
    """An edit and its result, as two records."""
    call_id = f"toolu_{uuid.uuid4().hex[:24]}"
    arguments = {"file_path": path, "old_string": "1", "new_string": "2"}
    call = {"type": "tool_use", "id": call_id, "name": "Edit", "input": arguments}
    result = {"tool_use_id": call_id, "type": "tool_result", "content": "Done."}
    lines = b""
    for kind, block in (("assistant", call), ("user", result)):
        record = {
            "parentUuid": None, "isSidechain": False, "type": kind, "message": {"role": kind, "content": [block]},
            "uuid": str(uuid.uuid4()), "cwd": str(scene.agent_dir), "sessionId": session_id, "version": "2.1.329",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(when)),
        }  # fmt: skip
        lines += json.dumps(record, separators=(",", ":")).encode() + b"\n"
    return lines


def _typed_tail(path: Path, size: int, texts: Texts) -> Tail:
    """Prompts of up to 500 characters, to be added to a transcript."""
    random = Random(path.stem)
    content = b""
    while len(content) < size:
        text = texts.cut("prose", random.randrange(20, 500), random)
        record = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": "/home/dev/alpha",
            "sessionId": path.stem, "version": "2.1.329", "gitBranch": "main",
            "type": "user", "message": {"role": "user", "content": text},
            "uuid": str(uuid.UUID(int=random.getrandbits(128), version=4)),
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - FRESH_AGE_SECONDS)),
        }  # fmt: skip
        content += json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    return Tail(path, path.stat().st_size, content)


def _cut_tail(path: Path, size: int) -> Tail:
    """Takes whole lines from the end of a transcript, `size` bytes at most: lines that are too long for it are lost."""
    content = path.read_bytes()
    offset = len(content)
    kept: list[bytes] = []
    for line in reversed(content.splitlines(keepends=True)):
        offset -= len(line)
        if len(line) + sum(map(len, kept)) <= size:
            kept.insert(0, line)
        if sum(map(len, kept)) > 0.9 * size:
            break
    os.truncate(path, offset)
    return Tail(path, offset, b"".join(kept))
