"""`python -m bench.pi`: how long the real Pi waits for our extension, compared with the hook alone.

Pi runs under RPC with a fake model. Two more extensions, loaded before and after ours, measure the
time between them on every prompt. The tests' harness installs Pi from npm; it needs what the tests
need.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from session_memory.sessions.runtimes.pi import encode_cwd

from .cases import MIXED_SIZES
from .command import run
from .corpus import Author, Texts, write_session
from .report import Row, as_table
from .scenes import AGE_SECONDS, REPOSITORY
from .scratch import scratch_directory
from .stopwatch import WARM_UP_RUNS, Command, CommandError, Stopwatch, compile_package

sys.path.insert(0, str(REPOSITORY / "tests"))
harness: Any = import_module("clients.pi")
fake_llm: Any = import_module("fakes.fake_llm")

LIMIT = 1.5
BEFORE = (
    "export default (pi) => pi.on('before_agent_start', () => { globalThis.begun = "
    "performance.now(); });\n"
)
AFTER = (
    "import {{ appendFileSync }} from 'node:fs';\n"
    "export default (pi) => pi.on('before_agent_start', () => {{\n"
    "  appendFileSync({path}, `${{performance.now() - globalThis.begun}}\\n`);\n"
    "}});\n"
)


def main(runs: int = 40) -> None:
    compile_package()
    with scratch_directory() as root, Stopwatch() as stopwatch:
        print(as_table([measure(root, stopwatch, runs)], runs))


def measure(root: Path, stopwatch: Stopwatch, runs: int) -> Row:
    """The time between a prompt and the next extension, in a project with 50 other sessions and
    nothing new in them.

    Raises CommandError if the hook complains.
    """
    times = root / "times"
    before, after = root / "before.ts", root / "after.ts"
    before.write_text(BEFORE)
    after.write_text(AFTER.format(path=json.dumps(str(times))))
    with fake_llm.FakeLLM() as model:
        pi = harness.Pi(root, model)
        pi.command = pi.command or _complain()
        _add_sessions(pi)
        extensions = [
            option
            for path in (before, harness.EXTENSION, after)
            for option in ("--extension", str(path))
        ]
        alone = []
        with pi.rpc(*extensions) as rpc:
            while rpc.prompt("What is there to do?").told:
                pass
            hook = _hook(pi, rpc)
            for _ in range(WARM_UP_RUNS + runs):
                alone.append(stopwatch.run(hook).seconds)
                rpc.prompt("And then?")
    if (pi.state_dir() / "hook.log").exists():
        raise CommandError(
            f"the hook complains: {(pi.state_dir() / 'hook.log').read_text().splitlines()[0]}"
        )
    waited = [float(line) / 1000 for line in times.read_text().split()]
    title = "Pi waits for the extension, 50 other sessions, nothing new"
    return Row(title, median(waited[-runs:]), median(alone[-runs:]), "hook alone", LIMIT)


def _add_sessions(pi: Any) -> None:
    """50 sessions of the project, an hour old."""
    texts = Texts(7)
    ended = time.time() - AGE_SECONDS
    for number, size in enumerate(MIXED_SIZES):
        author = Author(texts, f"7-pi-{number}", "alpha", size, ended)
        begun = author.timestamp().replace(":", "-").replace(".", "-")
        path = (
            pi.agent_dir
            / "sessions"
            / encode_cwd(str(pi.project))
            / f"{begun}_{author.session_id}.jsonl"
        )
        write_session(path, author, "pi")
        os.utime(path, (ended, ended))


def _hook(pi: Any, rpc: Any) -> Command:
    """Return the process that the extension starts, with the event that it passes on."""
    state = rpc.send("get_state")
    event = {
        "hook_event_name": "before_agent_start",
        "runtime": "pi",
        "session_id": state["sessionId"],
        "transcript_path": state["sessionFile"],
        "session_dir": os.path.dirname(state["sessionFile"]),
        "cwd": str(pi.project),
        "prompt": "And then?",
    }
    script = str(REPOSITORY / "hooks" / "pi_prompt.py")
    return Command([sys.executable, "-I", "-S", script], pi.environment, json.dumps(event).encode())


def _complain() -> list[str]:
    raise CommandError("there is no npm here to install Pi with")


if __name__ == "__main__":
    run(main)
