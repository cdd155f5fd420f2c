"""The seconds and the peak memory of a command, from its start to its end."""

from __future__ import annotations

import compileall
import gc
import marshal
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import session_memory
from session_memory.app.install.program import launcher_text

LAUNCHER = Path(__file__).with_name("launcher.py")
WARM_UP_RUNS = 3


class Command(NamedTuple):
    """A program by its absolute path, its arguments, its whole environment, and its input."""

    arguments: list[str]
    environment: dict[str, str]
    stdin: bytes = b""


def compile_package() -> None:
    """Compile the modules that a benchmark runs from the sources, as an install has them."""
    compileall.compile_dir(Path(session_memory.__file__).parent, quiet=1)


def installed(home: Path, *words: str) -> Command:
    """Return `session-memory WORDS` as it is installed, for the person whose HOME is `home`."""
    launcher = home / "session-memory"
    launcher.write_text(launcher_text(sys.executable, Path(__file__).resolve().parents[1]))
    launcher.chmod(0o755)
    return Command(
        [str(launcher), *words], {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    )


class Run(NamedTuple):
    """One run of a command; `peak_memory` is in the unit of the system's getrusage."""

    seconds: float
    peak_memory: int
    stdout: bytes


class Typical(NamedTuple):
    """The medians of many runs."""

    seconds: float
    peak_memory: float


class CommandError(Exception):
    """A command that was to be measured did not do what it is there for."""


class Stopwatch:
    """Runs commands through one small process that starts them all; for a `with` block.

    A run's time is from its start to its end or, on request, only the processor's."""

    def __init__(self, *, of_processor: bool = False) -> None:
        self._of_processor = of_processor

    def __enter__(self) -> Stopwatch:
        self._launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._launcher.communicate()

    def run(self, command: Command) -> Run:
        """Runs a command. Raises CommandError if it does not exit with 0."""
        assert self._launcher.stdin is not None
        assert self._launcher.stdout is not None
        marshal.dump((command.arguments, command.environment, command.stdin), self._launcher.stdin)
        self._launcher.stdin.flush()
        seconds, of_processor, peak_memory, status, stdout = marshal.load(self._launcher.stdout)
        if status:
            raise CommandError(f"{' '.join(command.arguments)}: exit status {status}")
        return Run(of_processor if self._of_processor else seconds, peak_memory, stdout)

    def compare(
        self,
        command: Command,
        reference: Command,
        runs: int,
        before: Callable[[], None] = lambda: None,
        check: Callable[[bytes], None] = lambda stdout: None,
    ) -> tuple[Typical, Typical]:
        """Return the medians of `command` and `reference`, run in turn, so both meet the same load.

        `before` is called before each pair, `check` with the output of each run of `command`."""
        measured: list[Run] = []
        bare: list[Run] = []
        for number in range(WARM_UP_RUNS + runs):
            before()
            pair = self.run(reference), self.run(command)
            check(pair[1].stdout)
            if number >= WARM_UP_RUNS:
                bare.append(pair[0])
                measured.append(pair[1])
        return _typical(measured), _typical(bare)


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the time that some work takes in this process."""
    gc.collect()
    began = clock()
    work()
    return clock() - began


def peak_memory() -> int:
    """Return the peak memory in bytes of this process, and of its largest finished child."""
    own_kilobytes, child = [
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    status = Path("/proc/self/status")
    # there, getrusage includes the parent of this process, with its size at the start
    if status.exists():
        own_kilobytes = next(
            int(line.split()[1])
            for line in status.read_text().splitlines()
            if line.startswith("VmHWM:")
        )
    return (own_kilobytes + child) * (1 if sys.platform == "darwin" else 1024)


def _typical(runs: list[Run]) -> Typical:
    return Typical(median([run.seconds for run in runs]), median([run.peak_memory for run in runs]))
