"""`python -m bench.instructions`: counts the instructions of prompts, against a bare start.

Valgrind counts them, so the figures do not depend on other programs on the machine. The work of the
system is not counted. Valgrind is slow, so the hook's deadline is extended. With `--check` the exit
code is 1 if a figure exceeds the published one by more than TOLERANCE.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from session_memory.awareness.events.bundle import write_bundle

from .cases import CASES, Setup, Stage
from .command import run
from .scenes import install
from .scratch import scratch_directory
from .sources import generated
from .stopwatch import Command, CommandError, Stopwatch

SEED = 7
TOLERANCE = 0.03
# in docs/measured/performance.md, in multiples of a bare start
PUBLISHED = {
    "quiet-50": 0.87,
    "new-50": 2.34,
    "new-50-about": 2.47,
    "new-50-secret": 2.38,
    "collisions": 2.03,
    "first-50": 3.41,
    "first-10": 3.82,
    "many-new-50": 5.2,
}
DEADLINE = "HOOK_SECONDS = 1.0"


def main(*cases: str, runs: int = 2, check: bool = False) -> int:
    """Return the exit code: 1 if `check` and a figure exceeds the published one, 2 if a case could
    not be run."""
    if unknown := set(cases) - PUBLISHED.keys():
        print(f"bench.instructions: no such case: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    is_over = False
    try:
        with scratch_directory() as root, Stopwatch() as stopwatch:
            app = _patient(root / "program")
            for case in [case for case in CASES if case.name in (cases or PUBLISHED)]:
                setup = case.set_up(Stage(root / case.name, app, generated(SEED), stopwatch))
                ratio, published = _ratio(setup, runs), PUBLISHED[case.name]
                is_risen = ratio > published * (1 + TOLERANCE)
                verdict = "over" if is_risen else "ok"
                print(f"{case.name:14} {ratio:.2f} x (published: {published:.2f} x) {verdict}")
                is_over = is_over or is_risen
    except (CommandError, OSError) as error:
        print(f"bench.instructions: {error}", file=sys.stderr)
        return 2
    return 1 if check and is_over else 0


def _patient(program_dir: Path) -> Path:
    """Install the program with a deadline that also suffices under valgrind; return its path."""
    app = install(program_dir)
    file = app / "session_memory" / "common" / "system" / "deadline.py"
    text = file.read_text()
    if DEADLINE not in text:
        raise CommandError(f"{file}: no line {DEADLINE!r}")
    file.write_text(text.replace(DEADLINE, "HOOK_SECONDS = 100.0"))
    write_bundle(str(app))
    return app


def _ratio(setup: Setup, runs: int) -> float:
    """Return the least of several runs, after one that is not counted, against a bare start."""
    counts = []
    for number in range(1 + runs):
        setup.before()
        count, stdout = instructions(setup.command)
        setup.check(stdout)
        if number:
            counts.append(count)
    bare = min([instructions(setup.reference)[0] for _ in range(runs)])
    return min(counts) / bare


def instructions(command: Command) -> tuple[int, bytes]:
    """Return how many instructions a command takes without its children, and its output.

    Raises CommandError."""
    with scratch_directory() as directory:
        counting = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            f"--log-file={directory}/%p",
        ]
        with subprocess.Popen(
            [*counting, *command.arguments],
            env=command.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            stdout, _ = process.communicate(command.stdin)
        log = (directory / str(process.pid)).read_text()
    _, mark, count = log.rpartition("Collected : ")
    if process.returncode or not mark:
        raise CommandError(f"{' '.join(command.arguments)}: valgrind counts nothing: {log[-500:]}")
    return int(count.split()[0]), stdout


if __name__ == "__main__":
    run(main)
