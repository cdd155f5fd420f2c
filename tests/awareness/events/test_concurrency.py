"""Many prompt hooks at once on one home, and hooks killed at any moment.

Nothing is lost, and nothing is left behind.
"""

from __future__ import annotations

import bisect
import contextlib
import fcntl
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients.claude import REPOSITORY
from records import NamedHome, line, tool_result, user
from share import some

from session_memory.common.system.files import make_private_dir

HOOK = [sys.executable, "-I", "-S", str(REPOSITORY / "hooks" / "user_prompt_submit.py")]
PRODUCERS = ("blue", "green", "red")
HOOKS = 50
ROUNDS = some(3, 2)
KILLS = some(120, 25)
SEED = 20261121
# `- blue (just now, 3 messages): "prompt 12"`: three were told of, the last one is its 13th.
NOT_NOW = re.compile(
    "held by another process|it took too long and was left out$|not done within"
)  # the next prompt tells it
REPORT = re.compile(r'^- (\w+) \(.*?, (\d+) messages?\): "prompt (\d+)"', re.MULTILINE)

Span = tuple[int, int]


class Transcript:
    """A session's file to which numbered prompts are appended, now and then with a pause in the
    middle of a line."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.result_bytes = 2000  # of a tool, at most
        self._begins: list[int] = []  # byte offsets of the prompts
        self._random = random.Random(seed)

    @property
    def prompts(self) -> int:
        return len(self._begins)

    def append(self, is_torn: bool = False) -> None:
        """Append a prompt and the result of a tool."""
        result = "x" * self._random.randrange(self.result_bytes)
        content = line(user(f"prompt {self.prompts}")) + line(tool_result(result))
        begins = self.path.stat().st_size
        cut = self._random.randrange(len(content)) if is_torn else 0
        with self.path.open("ab", buffering=0) as file:
            file.write(content[:cut])
            time.sleep(0.002 if is_torn else 0)
            file.write(content[cut:])
        self._begins.append(begins)

    def prompts_before(self, offset: int) -> int:
        """Return how many prompts begin before a byte offset."""
        return bisect.bisect_left(self._begins, offset)


class Crowd:
    """An agent home with sessions that produce and sessions that only listen."""

    def __init__(self, root: Path, listeners: int) -> None:
        self.home = NamedHome(root)
        self.state_dir = root / ".session-memory" / "state"
        self.transcripts = {
            name: Transcript(self.home.session(name), seed) for seed, name in enumerate(PRODUCERS)
        }
        self.listeners = [f"listener{number}" for number in range(listeners)]
        for name in self.listeners:
            self.home.session(name).unlink()

    def start_hook(self, listener: str, stdout: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """The prompt hook as the runtime starts it for a prompt to `listener`; it runs once its
        stdin is closed."""
        environ = {"CLAUDE_PID": "4711", "SESSION_MEMORY_HOME": str(self.home.root)}
        hook = subprocess.Popen(
            HOOK,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        event = {
            "hook_event_name": "UserPromptSubmit",
            "session_id": self.home.session_id(listener),
            "transcript_path": str(self.home.resolve(listener)),
            "cwd": str(self.home.root),
            "prompt": "go on",
        }
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(event).encode())
        return hook

    def run_hook(self, listener: str) -> bytes:
        """What the prompt hook says if nobody disturbs it."""
        return self.start_hook(listener).communicate(timeout=60)[0]

    def cursor_offsets(self, listener: str) -> dict[str, int]:
        """Return the offsets of a listener's cursors in the others' transcripts.

        Fail if the file is incomplete."""
        path = self.state_dir / "cursors" / f"{listener}.json"
        if not path.exists():
            return {}
        cursors = json.loads(path.read_bytes())[listener]
        # there is no transcript to ask: they count
        told_last = cursors.pop(" last", {}).get("cursors", {})
        known = {**cursors, **told_last}
        return {
            name: one["offset"]
            for name, one in known.items()
            if name != listener and isinstance(one, dict)
        }

    def log_lines(self) -> list[str]:
        path = self.state_dir / "hook.log"
        return path.read_text().splitlines() if path.exists() else []


def close_stdin(hook: subprocess.Popen[bytes]) -> None:
    """Ends what a hook reads, so that it begins."""
    assert hook.stdin is not None
    hook.stdin.close()
    hook.stdin = None


def reports(output: bytes) -> dict[str, Span]:
    """Return a hook's report as session -> (first prompt, end of the last one).

    It is empty unless the output is complete."""
    if not output.endswith(b"\n"):
        return {}
    text: Any = json.loads(output)["hookSpecificOutput"]["additionalContext"]
    found = {
        name: (int(last) + 1 - int(count), int(last) + 1)
        for name, count, last in REPORT.findall(text)
    }
    assert len(found) == text.count("\n- "), text
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize("listeners", [1, 10])
def test_fifty_hooks_at_once_tell_every_line_to_every_session_once(
    tmp_path: Path, listeners: int
) -> None:
    crowd = Crowd(tmp_path, listeners)
    is_over = threading.Event()

    def produce(transcript: Transcript) -> None:
        while not is_over.wait(0.003):
            transcript.append(is_torn=transcript.prompts % 3 == 0)

    writers = [
        threading.Thread(target=produce, args=(transcript,))
        for transcript in crowd.transcripts.values()
    ]
    for transcript in crowd.transcripts.values():
        transcript.append()
    for writer in writers:
        writer.start()
    outputs = []
    for _ in range(ROUNDS):
        hooks = [(name, crowd.start_hook(name)) for name in crowd.listeners * (HOOKS // listeners)]
        for _, hook in hooks:
            close_stdin(hook)  # all of them wait for it, so that they set out together
        outputs += [(name, *hook.communicate(timeout=60), hook.returncode) for name, hook in hooks]
    is_over.set()
    for writer in writers:
        writer.join()
    last = [(name, crowd.run_hook(name), b"", 0) for name in crowd.listeners]

    assert {(errors, code) for _, _, errors, code in outputs} == {(b"", 0)}
    assert [entry for entry in crowd.log_lines() if not NOT_NOW.search(entry)] == []
    for listener in crowd.listeners:
        told = [reports(output) for name, output, _, _ in outputs + last if name == listener]
        for name, transcript in crowd.transcripts.items():
            assert_spans_meet(
                sorted(spans[name] for spans in told if name in spans), transcript.prompts
            )
        assert set(crowd.cursor_offsets(listener)) == set(PRODUCERS)
    assert_nothing_stays_behind(crowd)


@pytest.mark.parametrize(
    ("moment", "result_bytes", "kills"),
    [("any", 2000, KILLS), ("when it speaks", 2000, KILLS), ("any", 800_000, some(60, 20))],
    ids=["any", "when it speaks", "any, with large records"],
)
@pytest.mark.sample(1)
def test_a_killed_hook_loses_nothing_and_leaves_whole_cursors(
    tmp_path: Path, moment: str, result_bytes: int, kills: int
) -> None:
    crowd = Crowd(tmp_path, listeners=1)
    (listener,) = crowd.listeners
    for transcript in crowd.transcripts.values():
        transcript.result_bytes = result_bytes
    chance = random.Random(SEED)
    speaks_after, ends_after = run_seconds(crowd, listener)
    before = {name: transcript.prompts for name, transcript in crowd.transcripts.items()}
    spoken = 0
    for number in range(5 * kills):
        if number >= kills and spoken:  # on a busy machine all may have been killed too early
            break
        for name in chance.sample(PRODUCERS, 2):
            crowd.transcripts[name].append()
        hook = crowd.start_hook(listener)
        close_stdin(hook)
        # what is not told yet has to be skipped again
        latest = (1.3 if result_bytes < 100_000 else 4) * ends_after
        time.sleep(
            chance.uniform(0, latest)
            if moment == "any"
            else chance.gauss(speaks_after, 0.04 * speaks_after)
        )
        hook.kill()
        output, _ = hook.communicate(timeout=60)
        spoken += bool(output)
        told = reports(output)
        for name, offset in crowd.cursor_offsets(listener).items():
            seen = crowd.transcripts[name].prompts_before(offset)
            assert seen == before[name] or told.get(name) == (before[name], seen), (
                "a cursor moved past what was told"
            )
            before[name] = seen
    assert spoken > 0
    told = reports(crowd.run_hook(listener))
    for name, transcript in crowd.transcripts.items():
        assert before[name] == transcript.prompts or told[name] == (
            before[name],
            transcript.prompts,
        )
    assert crowd.run_hook(listener) == b""
    assert crowd.log_lines() == []
    assert_nothing_stays_behind(crowd)


def test_a_hook_that_cannot_finish_speaking_has_moved_no_cursor_and_keeps_others_silent(
    tmp_path: Path,
) -> None:
    crowd = Crowd(tmp_path, listeners=1)
    with speaking(crowd) as (hook, read_all):
        assert crowd.run_hook("listener0") == b""
        assert crowd.cursor_offsets("listener0") == {}
        told = reports(read_all())
        assert hook.wait(timeout=60) == 0
    assert told == dict.fromkeys(PRODUCERS, (0, 1))
    assert crowd.run_hook("listener0") == b""
    (fault,) = crowd.log_lines()
    assert "held by another process" in fault
    assert_nothing_stays_behind(crowd)


def test_what_a_hook_was_about_to_say_when_it_was_killed_is_said_by_the_next(
    tmp_path: Path,
) -> None:
    crowd = Crowd(tmp_path, listeners=1)
    with speaking(crowd) as (hook, _):
        hook.kill()
        hook.wait(timeout=60)
    assert reports(crowd.run_hook("listener0")) == dict.fromkeys(PRODUCERS, (0, 1))
    assert crowd.log_lines() == []
    assert_nothing_stays_behind(crowd)


@contextmanager
def speaking(crowd: Crowd) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], bytes]]]:
    """A hook that reports a prompt of every session and hangs while printing.

    Nobody reads its pipe, which is full. The function that reads the rest comes with it."""
    for transcript in crowd.transcripts.values():
        transcript.append()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    hook = crowd.start_hook("listener0", stdout=writer)
    os.close(writer)

    def read_all() -> bytes:
        with open(reader, "rb", closefd=False) as pipe:
            return pipe.read()[filled:]

    try:
        close_stdin(hook)
        prepared = crowd.state_dir / "cursors" / "listener0.json.tmp"
        deadline = time.monotonic() + 60
        while not prepared.exists():
            assert time.monotonic() < deadline, "the hook does not get to speak"
            time.sleep(0.005)
        yield hook, read_all
    finally:
        hook.kill()
        hook.communicate()
        os.close(reader)


def test_many_may_make_the_same_directory_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(8, timeout=60)

    def make(number: int) -> None:
        together.wait()
        make_private_dir(str(tmp_path / str(number) / "state" / "cursors"))

    with ThreadPoolExecutor(8) as pool:
        for number in range(100):
            list(pool.map(make, [number] * 8))


def run_seconds(crowd: Crowd, listener: str) -> tuple[float, float]:
    """Return the seconds until a hook with news prints and until it ends here, as medians."""
    speaks_after, ends_after = [], []
    for _ in range(7):
        for transcript in crowd.transcripts.values():
            transcript.append()
        hook = crowd.start_hook(listener)
        started = time.monotonic()
        close_stdin(hook)
        assert hook.stdout is not None
        hook.stdout.read(1)
        speaks_after.append(time.monotonic() - started)
        hook.communicate(timeout=60)
        ends_after.append(time.monotonic() - started)
    return statistics.median(speaks_after), statistics.median(ends_after)


def assert_spans_meet(spans: list[Span], end: int) -> None:
    """Assert that the spans cover everything from 0 to `end` without gaps or overlaps."""
    position = 0
    for first, behind in spans:
        assert first == position, spans
        position = behind
    assert position == end, spans


def assert_nothing_stays_behind(crowd: Crowd) -> None:
    """Assert that only cursors and their locks are left, and that nobody holds a lock."""
    cursors = crowd.state_dir / "cursors"
    expected = {f"{name}.json{suffix}" for name in crowd.listeners for suffix in ("", ".lock")}
    assert {path.name for path in cursors.iterdir()} == expected
    for name in crowd.listeners:
        with (cursors / f"{name}.json.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
