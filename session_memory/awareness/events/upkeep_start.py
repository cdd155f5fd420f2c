"""Starts upkeep in a separate process at a session's start and end, and during it if the setting
`upkeep_minutes` says so.

After a prompt that found a moved HEAD or an edit in another worktree, only upkeep's search for
conflicts is started. Neither is started if it ran a short time ago.
"""

from __future__ import annotations

import sys
import time

from ...common.system.files import is_directory, is_file, os
from ...sessions.settings.homes import Home

SCRIPT = "/hooks/upkeep.py"
JUDGEMENT_SECONDS = 30  # between two searches for conflicts that prompts start
CONFLICTS = "conflicts"
IGNORE_ALL = b"*\n"


def is_due(home: Home, now: float) -> bool:
    """Check that upkeep did not start within the time that the settings put between two runs.

    `now` is in seconds since 1970."""
    try:
        status = os.stat(home.upkeep_lock)
    except OSError:
        return True
    return not status.st_size or abs(now - status.st_mtime) >= home.settings().upkeep_seconds


def _keep_out_of_git(place: str) -> None:
    """Write a `.gitignore` with `*` into a directory of this program that has none.

    The directory may be in a worktree."""
    path = place + "/.gitignore"
    try:
        if os.stat(place, follow_symlinks=False).st_mode & 0o170000 != 0o040000 or is_file(path):
            return
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.write(descriptor, IGNORE_ALL)
        os.close(descriptor)
    except OSError:  # the directory does not exist yet, or is not writable
        pass


def start_upkeep(home: Home, mode: str) -> None:
    """Start upkeep if the setting `upkeep` says so and it is due.

    A group's upkeep is started by its host. Raises OSError."""
    _keep_out_of_git(home.memory_dir)
    if is_due(home, time.time()):
        _start(home, mode)


def start_judgement(home: Home, mode: str) -> None:
    """Start only the search for conflicts with other branches, unless it was just started.

    Raises OSError."""
    try:
        is_recent = abs(time.time() - os.stat(home.conflicts_lock).st_mtime) < JUDGEMENT_SECONDS
    except OSError:
        is_recent = False
    if not is_recent:
        _start(home, mode, CONFLICTS)


def _start(home: Home, mode: str, *words: str) -> None:
    if mode == "sessions" and not home.shared_root:
        start_script(SCRIPT, home.path, *words)


def start_script(script: str, *words: str) -> None:
    """Start one of our scripts in a separate process that nobody waits for.

    Its path begins with `/hooks/`. Do nothing on Windows. Raises OSError."""
    if not hasattr(os, "posix_spawn"):
        return
    loaded = sys.modules.get("os")  # only `os.environ` has this process's changes
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", _source_dir() + script, *words],
        loaded.environ if loaded else os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, descriptor, "/dev/null", os.O_RDWR, 0) for descriptor in (0, 1, 2)
        ],
        setsid=True,
    )


def _source_dir() -> str:
    """Return the directory with `hooks/`, beside the package or in a wheel.

    This repeats `settings.program.source_dir`, because importing that takes as long as the whole
    hook."""
    package: str = sys.modules[__package__.partition(".")[0]].__path__[0]
    packaged = f"{package}/packaged"
    return packaged if is_directory(packaged) else package.rpartition("/")[0]


def detach() -> bool:
    """Fork, for work that the runtime must not wait for or kill.

    Both processes then have no output. Return True in the child, which has its own process group.
    On Windows, which cannot fork, return True in the same process."""
    if not hasattr(os, "fork"):
        return True
    nothing = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):  # before the fork: a runtime waits until nobody has its pipes
        os.dup2(nothing, descriptor)
    try:
        os.setsid()
    except OSError:  # this process leads its group already
        pass
    child = os.fork()
    if child:
        try:  # a runtime may kill the process group as soon as its hook ends
            os.setpgid(child, child)
        except OSError:  # its work is done
            pass
    return not child
