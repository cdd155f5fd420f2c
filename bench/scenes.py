"""Homes with sessions, and the states in which a measured run of the hook begins."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from session_memory.app.install.environment import Environment
from session_memory.app.install.program import ensure_app
from session_memory.app.notices import Notices
from session_memory.common.system.files import is_locked
from session_memory.common.system.process_table import ProcessTable
from session_memory.memory import prompt_index
from session_memory.memory.memory_index import IndexedMemory, Origin
from session_memory.memory.prompt_index_reader import PROMPT_INDEX
from session_memory.sessions.runtimes.claude import encode_cwd
from session_memory.sessions.settings.program import ProgramPaths

from .corpus import Texts
from .opencode import LargeDatabase
from .sources import Source
from .stopwatch import Command, CommandError, Stopwatch

REPOSITORY = Path(__file__).resolve().parent.parent
OWN_SESSION = "11111111-1111-4111-8111-111111111111"
AGE_SECONDS = 3600  # how long ago the sessions were last active
FRESH_AGE_SECONDS = 60  # and how long ago, where they did something since
SETTLED_SECONDS = 2.5  # two seconds after its last write, a file is trusted to be unchanged
NOTICE_SECONDS = 30.0
UPKEEP_SECONDS = 60.0  # that a first run may take
KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE
SEED = 7
BURYING_BYTES = 62 * MEGABYTE


def install(program_dir: Path) -> Path:
    """Install the program for this interpreter; return the directory that the hooks run."""
    paths = ProgramPaths(program_dir, program_dir / "bin")
    ensure_app(paths, REPOSITORY, Environment(sys.executable, platform.python_version(), "ready"))
    return paths.app


class Scene:
    """A user's home directory with one project, or one agent home, and its sessions.

    The program in `app` is run. `sessions` are the others' transcripts; `environment` and `event`
    are the runtime's input to the hook. The session itself has a transcript too. `database` is
    OpenCode's, if it has sessions."""

    database: LargeDatabase | None = None

    def __init__(
        self, root: Path, app: Path, source: Source, sizes: list[int], *, with_names: bool = False
    ) -> None:
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
        source(self._project_dir, 100 * KILOBYTE, self.ended).rename(
            self._project_dir / f"{OWN_SESSION}.jsonl"
        )
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
        """Return the hook as the runtime runs it."""
        return self._command("hooks/user_prompt_submit.py")

    def session_start(self) -> Command:
        """Return the hook for a session that starts."""
        return self._command(
            "hooks/session_start.py", hook_event_name="SessionStart", source="startup"
        )

    def call_hook(self) -> Command:
        """Return the hook for tool calls, as the runtime runs it before an edit."""
        edit = {
            "file_path": str(self.agent_dir / "src" / "module0.py"),
            "old_string": "1",
            "new_string": "2",
        }
        call = {"tool_name": "Edit", "tool_use_id": "toolu_1", "tool_input": edit}
        return self._command("hooks/pre_tool_use.py", hook_event_name="PreToolUse", **call)

    def status_line(self) -> Command:
        """Return the command for the status line."""
        return self._command("hooks/status_line.py")

    def want_status_line(self) -> None:
        """Have the hook keep what the status line shows."""
        self.state_dir.parent.mkdir(parents=True, exist_ok=True)
        (self.state_dir.parent / "config.yaml").write_text("statusline: true\n")

    def stop(self) -> Command:
        """Return the hook for the end of a turn, which only notices need."""
        return self._command("hooks/session_waits.py", hook_event_name="Stop")

    def want_notices(self) -> Notices:
        """Turn notices on. Return them; as long as they are claimed, a hook leaves them."""
        self.state_dir.parent.mkdir(parents=True, exist_ok=True)
        (self.state_dir.parent / "config.yaml").write_text(
            "notices: command\nnotice_command: ['true']\n"
        )
        return Notices(self.environment, print)

    def wait_for_notice(self) -> None:
        """Wait until the processes that the hook started have ended. Raises CommandError."""
        deadline, script = time.monotonic() + NOTICE_SECONDS, f"{self._app}/hooks/notice.py"
        while any(script in process.words for process in ProcessTable.now().processes.values()):
            if time.monotonic() > deadline:
                raise CommandError(f"{self.root}: the process for a notice does not end")
            time.sleep(0.05)

    def reader(self, name: str) -> Command:
        """Return the reader as an agent runs it, for the last entries of one named session."""
        return self._command(
            "scripts/session_reader.py", name, "--lines", "50", "--home", str(self.agent_dir)
        )

    def program(self, *arguments: str) -> Command:
        """Return an interpreter with these arguments, started like the hook."""
        return Command(
            [sys.executable, *arguments], self.environment, json.dumps(self.event).encode()
        )

    def bare(self) -> Command:
        """An interpreter that does nothing, started like the hook."""
        return self.program("-I", "-c", "pass")

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
        """Run the hook until it has nothing left to report.

        Raises CommandError if that never happens, or if the hook complains."""
        for path in self.sessions:
            os.utime(path, (self.ended, self.ended))
        for command in self.before_settling():
            stopwatch.run(command)
        for _ in range(2 * len(self.sessions) + 2):
            printed = stopwatch.run(self.hook()).stdout
            if self.database is not None:
                self.wait_for_hooks()
            if printed and self.own_path.exists():
                self.show_told(printed)
            if not printed:
                time.sleep(SETTLED_SECONDS)
                stopwatch.run(self.hook())  # the folders of the project, too, are old enough now
                if self.database is not None:
                    self.wait_for_hooks()
                return self.check_log()
        raise CommandError(f"{self.root}: the hook has something new to tell on every prompt")

    def before_settling(self) -> list[Command]:
        """Do upkeep's work before the hook runs: nothing, if no session has a mirror."""
        return []

    def show_told(self, printed: bytes) -> None:
        """Add the runtime's record of a hook's output to the session's own transcript."""
        text = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
        attachment = {"type": "hook_additional_context", "content": [text]}
        update = {
            "parentUuid": None,
            "type": "attachment",
            "uuid": "told",
            "attachment": attachment,
        }
        answer = {
            "parentUuid": "told",
            "type": "assistant",
            "uuid": "answer",
            "message": {"content": []},
        }
        with self.own_path.open("ab") as transcript:
            for record in (update, answer):
                transcript.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")

    def check_log(self) -> None:
        """Raise CommandError if the hook failed open; its time must not be measured then."""
        log = self.state_dir / "hook.log"
        if log.exists():
            raise CommandError(f"the hook complains: {log.read_text().splitlines()[0]}")

    def wait_for_hooks(self) -> None:
        """Wait until no hook writes mirrors any more, as it does after its answer.

        Raises CommandError if that takes long."""
        deadline = time.monotonic() + UPKEEP_SECONDS
        while time.monotonic() < deadline:
            running = subprocess.run(
                ["ps", "-axwwo", "args"], capture_output=True, text=True, check=True
            ).stdout
            if f"{self._app}/hooks/" not in running:
                return
            time.sleep(0.01)
        raise CommandError(f"{self.root}: a hook does not end")

    def make_upkeep_due(self) -> None:
        """Lets the next start of a session start upkeep."""
        os.utime(self.state_dir / "upkeep.lock", (1, 1))

    def wait_for_upkeep(self) -> None:
        """Wait until the started upkeep has ended and released its lock.

        Raises CommandError if that takes long."""
        deadline = time.monotonic() + UPKEEP_SECONDS
        while time.monotonic() < deadline:
            try:
                has_begun = (self.state_dir / "upkeep.lock").stat().st_mtime > 1
                has_ended = json.loads((self.state_dir / "upkeep.json").read_bytes())["runs"][-1][
                    "ended"
                ]
                if has_begun and has_ended and not is_locked(str(self.state_dir / "upkeep.lock")):
                    return
            except (OSError, ValueError, LookupError):
                pass
            time.sleep(0.05)
        raise CommandError(f"{self.root}: upkeep does not end")

    def _command(self, script: str, *arguments: str, **event: object) -> Command:
        command = self.program("-I", "-S", str(self._app / script), *arguments)
        return command._replace(stdin=json.dumps({**self.event, **event}).encode())

    def _add(self, source: Source, number: int, size: int) -> Path | None:
        path = source(self._project_dir, size, self.ended)
        self._name(f"session-{number}", path.stem)
        return path

    def _name(self, name: str, session_id: str) -> None:
        if self._with_names:
            self._names_dir.mkdir(parents=True, exist_ok=True)
            (self._names_dir / f"{name}.json").write_text(json.dumps({"sessionId": session_id}))


class Remembering(Scene):
    """A scene with 1,000 decisions in the index of memories, each about a file of one directory.

    The files differ."""

    def settle(self, stopwatch: Stopwatch) -> None:
        origin = Origin(
            round(self.ended * 1000), "another", 1, "extractive", directory=str(self.agent_dir)
        )
        memories = [
            IndexedMemory(
                "", "", f"m{at}", "decision", f"We keep src/part{at}.py small", origins=(origin,)
            )
            for at in range(1000)
        ]
        index = self.root / ".session-memory" / "memories" / PROMPT_INDEX
        index.parent.mkdir(parents=True, exist_ok=True)
        index.write_bytes(prompt_index.content(memories, {}))
        super().settle(stopwatch)


class WithSubject(Scene):
    """A scene whose prompt has telling words, which are compared with other sessions' titles."""

    def __init__(
        self, root: Path, app: Path, source: Source, sizes: list[int], *, with_names: bool = False
    ) -> None:
        super().__init__(root, app, source, sizes, with_names=with_names)
        self.event["prompt"] = (
            "The parser of the invoice importer is slow: let it stream the lines and keep the totals."
        )


class Begun(Scene):
    """A scene after its first prompt, whose update has no room for most of the sessions.

    Sessions without room have no read cursor, so the next prompt searches all of their last hours.
    """

    def settle(self, stopwatch: Stopwatch) -> None:
        for path in self.sessions:
            os.utime(path, (self.ended, self.ended))
        self.show_told(stopwatch.run(self.hook()).stdout)
        self.check_log()


class Tail(NamedTuple):
    """The last lines of a transcript; `offset` is where they begin."""

    path: Path
    offset: int
    content: bytes

    def halves(self) -> tuple[Tail, Tail]:
        """Return the first and the second half of the lines."""
        lines = self.content.splitlines(keepends=True)
        middle = len(lines) // 2
        first, second = b"".join(lines[:middle]), b"".join(lines[middle:])
        return self._replace(content=first), Tail(self.path, self.offset + len(first), second)

    def put(self, seconds_ago: float) -> None:
        """Write the records there as if so long ago, replacing everything after the offset."""
        with open(self.path, "r+b") as file:
            file.truncate(self.offset)
            file.seek(self.offset)
            file.write(self.content)
        written = time.time() - seconds_ago
        os.utime(self.path, (written, written))


class State:
    """The files that the hook keeps of a settled scene."""

    def __init__(self, scene: Scene) -> None:
        self._directory = scene.state_dir
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        self._kept = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    def set_back(self) -> None:
        """Delete newer files and restore all others with their times, which mirrors depend on."""
        for path in self._directory.rglob("*"):
            if path.is_file() and path not in self._kept:
                path.unlink()
        for path, (content, written) in self._kept.items():
            if path.read_bytes() != content:
                path.write_bytes(content)
            os.utime(path, ns=(written, written))


class Tails:
    """New ends of transcripts of a settled scene; the hook must report them after each `bring`."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch, tails: list[Tail]) -> None:
        self._scene = scene
        self._tails = tails
        self._database = scene.database
        scene.settle(stopwatch)
        self._state = State(scene)

    def bring(self) -> None:
        """Reset the hook's state, and append to each transcript the parts not reported yet."""
        if self._database is not None:
            self._scene.wait_for_hooks()
        self._state.set_back()
        if self._database is not None:
            self._database.put()
        # A mirror has whole milliseconds: with other times, its place among the last active
        # sessions would be a matter of chance.
        for number, tail in enumerate(reversed(self._tails)):
            tail.put(FRESH_AGE_SECONDS + number / 100)


class News(Tails):
    """Something new in each session: the last kilobytes of its transcript, or typed text."""

    def __init__(
        self, scene: Scene, stopwatch: Stopwatch, *, kilobytes: int = 20, is_typed: bool = False
    ) -> None:
        size = kilobytes * KILOBYTE
        texts = Texts(SEED) if is_typed else None
        tails = [
            _typed_tail(path, size, texts) if texts else _cut_tail(path, size)
            for path in scene.sessions
        ]
        if scene.database is not None:
            scene.database.cut(size)
        super().__init__(scene, stopwatch, tails)


class MoreNews(News):
    """Something new again in each session of a scene that has begun; at the last prompt too."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        super().__init__(scene, stopwatch, kilobytes=40)
        halves = [tail.halves() for tail in self._tails]
        self._tails = [first for first, _ in halves]
        self.bring()
        scene.show_told(stopwatch.run(scene.hook()).stdout)
        self._state = State(scene)
        self._tails = [second for _, second in halves]


class Passwords(Tails):
    """A prompt with a password in each session."""

    TEXT = "Log in with the password: hunter2x and read the totals of the last invoices."

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        written = time.time() - FRESH_AGE_SECONDS
        tails = [
            Tail(
                path,
                path.stat().st_size,
                _record("user", self.TEXT, path.stem, scene.agent_dir, written),
            )
            for path in scene.sessions
        ]
        super().__init__(scene, stopwatch, tails)


class Buried(Tails):
    """An edit of a file in one session, followed by 62 MB of its tools' output."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        path = scene.sessions[0]
        edit = _edit_lines(path.stem, str(scene.agent_dir / "module.py"), time.time() - 60, scene)
        record = json.loads(edit.splitlines()[1])
        image = {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR/x0" * 110_000},
        }
        shown = [
            _with_result(record, [image]),
            _with_result(record, "12 passed, def f(): return {}\n" * 2_500),
        ]
        behind = shown[0] + 4 * shown[1]
        content = edit + behind * (BURYING_BYTES // len(behind))
        super().__init__(scene, stopwatch, [Tail(path, path.stat().st_size, content)])


class Clash(Tails):
    """A repository in which all sessions edit the same files, and one switches the branch."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        self._git_dir = scene.agent_dir / ".git"
        self._log = self._git_dir / "logs" / "HEAD"
        self._log.parent.mkdir(parents=True)
        (self._git_dir / "HEAD").write_text("ref: refs/heads/main\n")
        self._log.write_text(_moved("commit (initial): begin", scene.ended))
        files = [scene.agent_dir / "src" / f"module{number}.py" for number in range(8)]
        files[0].parent.mkdir()
        for file in files:
            file.write_text("x = 1\n")
        then = time.time() - 20 * FRESH_AGE_SECONDS
        transcript_path = scene.own_path
        with transcript_path.open("ab") as transcript:
            transcript.write(
                b"".join(
                    [_edit_lines(transcript_path.stem, str(file), then, scene) for file in files]
                )
            )
        os.utime(transcript_path, (then + 60, then + 60))
        edits = [
            Tail(
                path,
                path.stat().st_size,
                _edit_lines(path.stem, str(files[number % 8]), time.time() - 60, scene),
            )
            for number, path in enumerate(scene.sessions)
        ]
        super().__init__(scene, stopwatch, edits)

    def bring(self) -> None:
        super().bring()
        (self._git_dir / "HEAD").write_text("ref: refs/heads/fix\n")
        self._log.write_text(
            _moved("checkout: moving from main to fix", time.time() - FRESH_AGE_SECONDS)
        )


class Unsettled:
    """A settled scene whose hook has not yet looked for its last report.

    The session's own transcript shows the report. Each `bring` restores this state."""

    def __init__(self, scene: Scene, stopwatch: Stopwatch) -> None:
        News(scene, stopwatch).bring()
        scene.show_told(stopwatch.run(scene.hook()).stdout)
        self._cursors = {
            path: path.read_bytes() for path in scene.state_dir.rglob("cursors/*.json")
        }

    def bring(self) -> None:
        """Set the hook's cursors back."""
        for path, content in self._cursors.items():
            path.write_bytes(content)


def _with_result(record: dict[str, Any], content: object) -> bytes:
    """The line of a record with another result of its call."""
    (block,) = record["message"]["content"]
    message = {**record["message"], "content": [{**block, "content": content}]}
    return json.dumps({**record, "message": message}, separators=(",", ":")).encode() + b"\n"


def _moved(message: str, when: float) -> str:
    commit = "1" * 40
    return f"{commit} {commit} Ada <ada@example.org> {int(when)} +0000\t{message}\n"


def _edit_lines(session_id: str, path: str, when: float, scene: Scene) -> bytes:
    """Return an edit and its result, as two records."""
    call_id = f"toolu_{uuid.uuid4().hex[:24]}"
    arguments = {"file_path": path, "old_string": "1", "new_string": "2"}
    call = {"type": "tool_use", "id": call_id, "name": "Edit", "input": arguments}
    result = {"tool_use_id": call_id, "type": "tool_result", "content": "Done."}
    said = (("assistant", [call]), ("user", [result]))
    return b"".join(
        [_record(kind, content, session_id, scene.agent_dir, when) for kind, content in said]
    )


def _typed_tail(path: Path, size: int, texts: Texts) -> Tail:
    """Return prompts of up to 500 characters, to be added to a transcript."""
    random = Random(path.stem)
    content = b""
    while len(content) < size:
        text = texts.cut("prose", random.randrange(20, 500), random)
        content += _record(
            "user", text, path.stem, "/home/dev/alpha", time.time() - FRESH_AGE_SECONDS
        )
    return Tail(path, path.stat().st_size, content)


def _record(role: str, content: object, session_id: str, cwd: object, when: float) -> bytes:
    """Return the line of a message."""
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": str(cwd),
        "sessionId": session_id,
        "version": "2.1.329",
        "gitBranch": "main",
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": str(uuid.uuid4()),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(when)),
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _cut_tail(path: Path, size: int) -> Tail:
    """Return whole lines from the end of a transcript, at most `size` bytes, and remove them.

    Longer lines are lost."""
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
