"""The processes of this machine at one time: their parents, ages, command lines and directories.

From /proc, else from `ps` and `lsof`. The environment of a process is never read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SETTLED_SECONDS = 2.0  # a younger process may still become another program
_PS = ("ps", "-axww", "-o", "pid=,ppid=,stat=,etime=,command=")
_PS_SECONDS = 5.0
_JUMP_SECONDS = 60.0  # a terminal's first program starts sooner than that
_DELETED = " (deleted)"  # how the kernel marks a directory that was removed


class Process(NamedTuple):
    """A running process. `began` is in seconds since 1970, by the current clock; `words` is its
    command line; `mark` tells it from a later process with the same id, '' if unknown.
    `session` is the process that leads its session (setsid), 0 if unknown, and `terminal` the
    number of its pseudo-terminal, -1 if it has none."""

    pid: int
    parent: int
    began: float
    words: tuple[str, ...]
    mark: str = ""
    session: int = 0
    terminal: int = -1

    @property
    def leads(self) -> bool:
        """Check if the process has a session of its own, as a command in the background has."""
        return self.session == self.pid


class ProcessTable:
    """The processes at one time. `is_known` is False if the system does not list them."""

    def __init__(self, processes: Iterable[Process], *, is_known: bool = True) -> None:
        self.processes = {process.pid: process for process in processes}
        self.is_known = is_known
        self._directories: dict[int, str] = {}
        self._children: dict[int, list[Process]] = {}
        for process in self.processes.values():
            self._children.setdefault(process.parent, []).append(process)

    @classmethod
    def now(cls, earlier: ProcessTable | None = None) -> ProcessTable:
        """Return the processes that run now; command lines of an `earlier` table are used again."""
        try:
            pids = [name for name in os.listdir("/proc") if name.isdigit()]
        except OSError:
            pids = []
        if not pids:
            return _from_ps()
        now = time.time()
        booted = now - time.clock_gettime(time.CLOCK_BOOTTIME)  # type: ignore[attr-defined,unused-ignore]
        known = earlier.processes if earlier else {}
        ticks = os.sysconf("SC_CLK_TCK")
        listed = [_in_proc(pid, booted, ticks, known.get(int(pid)), now) for pid in pids]
        return cls([process for process in listed if process])

    def below(self, pid: int) -> Iterator[Process]:
        """Yield the processes that a process started, and the ones that these started."""
        for child in self._children.get(pid, ()):
            yield child
            yield from self.below(child.pid)

    def opened_at(self, process: Process) -> float:
        """Return when a process began, by the clock of that time if it was set forward since.

        The kernel keeps the age of a process. The time of its terminal stays as it was when the
        terminal's first program, such as a shell, began."""
        leader = self.processes.get(process.session)
        if leader is None or process.terminal < 0:
            return process.began
        try:
            jump = leader.began - os.stat(f"/dev/pts/{process.terminal}").st_ctime
        except OSError:
            return process.began
        return process.began - jump if jump > _JUMP_SECONDS else process.began

    def directory(self, pid: int) -> str:
        """Return the working directory of a process; '' if the system does not tell."""
        if pid not in self._directories:
            self._directories[pid] = _directory_of(pid)
        return self._directories[pid]


def _in_proc(
    pid: str, booted: float, ticks: int, known: Process | None, now: float
) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # proc(5): after the name, which may hold anything, the state is the first field, the
            # parent the second, the start time the 20th.
            fields = file.read().rpartition(b")")[2].split()
        mark, began = fields[19].decode(), booted + int(fields[19]) / ticks
        if fields[0] in (b"Z", b"X"):
            return None
        if known and known.mark == mark and now - began > _SETTLED_SECONDS:
            return known._replace(parent=int(fields[1]), session=int(fields[3]))
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).rstrip("\0").split("\0")
    except (OSError, IndexError, ValueError):  # it has ended
        return None
    return Process(
        int(pid),
        int(fields[1]),
        began,
        tuple(words),
        mark,
        int(fields[3]),
        _terminal(int(fields[4])),
    )


def _terminal(number: int) -> int:
    """Return the number of a pseudo-terminal by its device; -1 for other terminals and none."""
    is_pseudo = 136 <= os.major(number) <= 143
    return os.minor(number) if is_pseudo else -1


def _from_ps() -> ProcessTable:
    listed = _printed(_PS)
    return ProcessTable(_listed(listed, time.time()), is_known=bool(listed))


def _listed(text: str, now: float) -> Iterator[Process]:
    """Yield the processes in the output of `ps`."""
    for line in text.splitlines():
        pid, parent, state, age, *words = line.split()
        session = int(pid) if "s" in state else 0
        if not state.startswith("Z"):
            began = now - _seconds(age)
            yield Process(int(pid), int(parent), began, tuple(words), session=session)


def _seconds(age: str) -> int:
    """Return the seconds of `[[days-]hours:]minutes:seconds`."""
    days, _, clock = age.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return seconds + 86400 * int(days or 0)


def _directory_of(pid: int) -> str:
    try:
        path = os.readlink(f"/proc/{pid}/cwd")
        return path if os.path.isdir(path) else path.removesuffix(_DELETED)
    except OSError:
        if os.path.exists("/proc/self"):
            return ""
    listed = _printed(("lsof", "-a", "-d", "cwd", "-p", str(pid), "-Fn"))
    return next((line[1:] for line in listed.splitlines() if line.startswith("n/")), "")


def _printed(command: tuple[str, ...]) -> str:
    """Return what a program prints; '' if it is not there or takes too long."""
    import subprocess  # only without /proc

    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PS_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
