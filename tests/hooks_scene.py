"""A plain user of Claude Code, and the hooks as the runtime starts them.

They have a clean environment and JSON on stdin. A hook runs in this process as if in its own. A
separate process runs hooks that leave another process behind, hooks of a copy of the program,
prepared ones, and those of test_bundle, test_concurrency and test_deadline.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import patch

from own_process import as_a_process
from records import new_id, show_told, write

from session_memory.awareness.events import main
from session_memory.common.extensions import load_present

ROOT = Path(__file__).resolve().parents[1]
HERE = (
    "user_prompt_submit",
    "pre_tool_use",
    "post_tool_use_failure",
    "subagent_start",
    "session_start",
    "pre_compact",
    "status_line",
    "pi_prompt",
)


def run(
    event,
    home,
    script="user_prompt_submit",
    preexec_fn=None,
    program=ROOT,
    arguments=(),
    is_process=False,
    **environment,
):
    """Return the hook's stdout; it must end well and quietly. The transcript shows the text."""
    given = event if isinstance(event, bytes) else json.dumps(event).encode()
    command = [program / "hooks" / f"{script}.py", *arguments]
    environ = {"HOME": str(home), "CLAUDE_PID": "4711", **environment}
    is_process = is_process or script not in HERE or preexec_fn or program != ROOT
    if not is_process and threading.current_thread() is threading.main_thread():
        hook = main.before_agent_start if script == "pi_prompt" else getattr(main, script)
        done = run_here(hook, [str(word) for word in command], environ, given)
    else:
        # with a limit on the size of files, Python would leave half of a module's cache behind
        options = ["-I", "-S", *(["-B"] if preexec_fn else [])]
        done = subprocess.run(
            [sys.executable, *options, *command],
            input=given,
            capture_output=True,
            env=environ,
            timeout=60,
            preexec_fn=preexec_fn,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
    own_path = event.get("transcript_path") if isinstance(event, dict) else None
    if isinstance(own_path, str) and Path(own_path).is_file():
        show_told(Path(own_path), done.stdout)
    return done.stdout


class Ended(BaseException):
    """The hook has ended its process."""


def open_locks():
    """The numbers of the locks that this process has open; none on macOS, which does not list them."""
    numbers = set()
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with suppress(OSError):  # the listing's own
            if os.readlink(f"/proc/self/fd/{name}").endswith((".calls", ".lock")):
                numbers.add(int(name))
    return numbers


def run_here(hook, arguments, environ, given):
    """What a hook prints to its streams, and its exit code."""
    streams = [io.TextIOWrapper(io.BytesIO(content), "utf-8") for content in (given, b"", b"")]
    process, locks = os.getpid(), open_locks()

    def end(code):
        if os.getpid() != process:
            os._exit(code)
        raise Ended(code)

    handler, left = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    try:
        with (
            ExitStack() as stack,
            as_a_process(arguments, environ, ROOT),
            patch.multiple(sys, stdin=streams[0], stdout=streams[1], stderr=streams[2]),
            patch.object(main, "os") as system,
        ):
            for at_end in load_present(["history.archives.at_end"]):
                stack.enter_context(patch.object(at_end, "QUIET_SECONDS", 0.02))
            system._exit = end
            hook()
    except Ended as ended:
        (code,) = ended.args
        for number in open_locks() - locks:  # a process that ends in a hurry closes none itself
            os.close(number)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *left)
        signal.signal(signal.SIGALRM, handler)
    for stream in streams:
        stream.flush()
    return subprocess.CompletedProcess(
        arguments, code, *[stream.buffer.getvalue() for stream in streams[1:]]
    )


def told(output):
    answer = json.loads(output)["hookSpecificOutput"]
    assert answer["hookEventName"] == "UserPromptSubmit"
    assert len(answer["additionalContext"]) <= 500
    return answer["additionalContext"]


class PlainUser:
    """A plain Claude Code user with one project."""

    def __init__(self, root):
        self.root = root
        self.config_dir = root / ".claude"
        self.project_dir = self.config_dir / "projects" / "-srv-agent"
        self.project_dir.mkdir(parents=True)
        self.place = root / ".session-memory"
        self.state_dir = self.place / "state"
        self.session_id = new_id()

    def session(self, *records, project="-srv-agent"):
        return write(self.config_dir / "projects" / project / f"{new_id()}.jsonl", *records)

    def event(self, **fields):
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.project_dir / f"{self.session_id}.jsonl"),
            "cwd": "/srv/agent",
            "hook_event_name": "UserPromptSubmit",
            "prompt": "hi",
            **fields,
        }

    def run(self, script="user_prompt_submit", program=ROOT, **fields):
        return run(self.event(**fields), self.root, script, program=program)

    def log(self):
        path = self.state_dir / "hook.log"
        return path.read_text().splitlines() if path.exists() else []

    def config(self, text):
        self.place.mkdir(exist_ok=True)
        (self.place / "config.yaml").write_text(text)
