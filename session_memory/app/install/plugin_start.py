"""The start of a session where we are a plugin or a package.

It installs the packages that the settings and the store need into a directory of ours, in the
background. No session waits for it; Claude Code mentions it once. Until it is done, config.yaml is
not read and nothing can be searched; afterwards upkeep starts. Runtimes without a directory for a
plugin's data share one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from ... import NAME
from ...awareness.events.log import HookLog
from ...common.system.files import (
    is_directory,
    is_file,
    make_private_dir,
    os,
    read_whole,
    write_atomically,
)
from ...common.system.json import as_object, decode, encode
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.table import all_runtimes
from ...sessions.runtimes.table import runtime as runtime_of
from ...sessions.settings.homes import ENV_GUARD, Home, environment, runtime_home
from ...sessions.settings.program import shared_data_dir
from ...sessions.settings.yaml_file import ENV_DATA

PARTS = ("basic", "store")
_NOTE_FILE = "/environment.json"
_RETRY_SECONDS = 3600
_CHILD = "--in-background"


def run(script: str, words: list[str]) -> None:
    """Run the plugin's SessionStart hook at `script`, then end the process with 0 in any case.

    With `words`, do the work that the hook started in the background."""
    environ = environment()
    runtime = runtime_of("agent-sdk")
    try:
        root = _root(script)
        if words and not environ.get(ENV_GUARD):
            _, name, data_dir = words
            runtime = next(
                known_runtime for known_runtime in all_runtimes() if known_runtime.name == name
            )
            _set_up(data_dir, root + "/requirements.lock", _home(runtime, environ))
        elif not environ.get(ENV_GUARD):
            event = as_object(decode(sys.stdin.buffer.read().decode("utf-8", "replace")))
            if runtime.is_own(event, environ):
                if environ.get(ENV_DATA):
                    _start(root, environ[ENV_DATA], runtime, is_told=True)
            else:
                runtime = next(
                    (candidate for candidate in all_runtimes() if candidate.is_own(event, environ)),
                    runtime,
                )
                if runtime.is_own(event, environ) and not _has_packages(environ):
                    data_dir = shared_data_dir(environ)
                    make_private_dir(data_dir)
                    _start(root, data_dir, runtime, is_told=False)
    except BaseException as error:
        HookLog(_home(runtime, environ)).write_fault("SessionStart", error)
    os._exit(0)


def pi_session_start(script: str) -> None:
    """Do the same for Pi's package, whose entry is `script`, and then run the hook itself.

    If the program is installed, its packages are used instead. Pi gives packages no directory, so
    ours is in Pi's own."""
    environ = environment()
    runtime = runtime_of("pi")
    try:
        root = _root(script)
        [data_dir] = runtime.install.plugin_data_dirs(environ, NAME)
        if (
            not environ.get(ENV_GUARD)
            and not _has_packages(environ)
            and is_file(root + "/requirements.lock")
        ):
            make_private_dir(data_dir)
            _start(root, data_dir, runtime, is_told=False)
    except Exception as error:
        HookLog(_home(runtime, environ)).write_fault("session_start", error)
    from ...awareness.events.main import pi_session_start as answer

    answer()


def _root(script: str) -> str:
    """Return the directory of the plugin, which contains `hooks/`, with links resolved.

    A plugin that is used in place may consist of links."""
    from os.path import dirname, realpath

    return dirname(dirname(realpath(script)))


def _home(runtime: Runtime, environ: Mapping[str, str]) -> Home:
    return runtime_home(runtime.config_dir(environ), runtime.USUAL_DIR, environ)


def _has_packages(environ: Mapping[str, str]) -> bool:
    """Check if an install has made an environment, with packages for any Python of its version."""
    from ...sessions.settings.program import program_paths

    return is_directory(str(program_paths(environ).env))


def _start(root: str, data_dir: str, runtime: Runtime, *, is_told: bool) -> None:
    """Start a child that makes the environment, unless it exists.

    After a failure, wait _RETRY_SECONDS before the next attempt."""
    wanted = _wanted(root + "/requirements.lock")
    note = _read_note(data_dir)
    if note.get("wanted") == wanted and (
        note.get("is_made") or time.time() - note.get("at", 0) < _RETRY_SECONDS
    ):
        return
    _write_note(data_dir, wanted, is_made=False)
    import subprocess

    subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            root + "/hooks/plugin_start.py",
            _CHILD,
            runtime.name,
            data_dir,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=data_dir,
        start_new_session=True,
        creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
    )
    if is_told and not note:
        text = (
            "session-memory works. The packages for settings and search are being installed in "
            f"{data_dir}, in the background."
        )
        sys.stdout.buffer.write(encode({"systemMessage": text}).encode() + b"\n")
        sys.stdout.buffer.flush()


def _set_up(data_dir: str, lock_file: str, home: Home) -> None:
    """Make or complete the environment, record the outcome, and start the upkeep of `home`."""
    from pathlib import Path

    from ...awareness.events.upkeep_start import start_upkeep
    from ...common.system.terminal import Terminal
    from ...sessions.settings.program import ProgramPaths
    from .environment import ensure_environment
    from .program import locked

    paths = ProgramPaths(Path(data_dir), Path(data_dir, "bin"))
    with locked(paths):
        made = ensure_environment(paths, Path(lock_file), Terminal({}, is_json=True), parts=PARTS)
    _write_note(
        data_dir,
        _wanted(lock_file),
        is_made=not made.problems,
        problem="; ".join(made.problems.values()),
    )
    if not made.problems:
        start_upkeep(home, home.settings().upkeep)


def _wanted(lock_file: str) -> str:
    """Return the identity of an environment: a checksum of the pins, and this Python's version."""
    return f"{crc32(read_whole(lock_file)):08x}-{sys.version_info[0]}.{sys.version_info[1]}"


def _read_note(data_dir: str) -> dict[str, Any]:
    try:
        return as_object(decode(read_whole(data_dir + _NOTE_FILE).decode()))
    except (OSError, ValueError):
        return {}


def _write_note(data_dir: str, wanted: str, *, is_made: bool, problem: str = "") -> None:
    note = {"wanted": wanted, "at": time.time(), "is_made": is_made, "problem": problem}
    write_atomically(data_dir + _NOTE_FILE, encode(note).encode())
