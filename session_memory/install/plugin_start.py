"""The SessionStart hook of a plugin: installs PyYAML and apsw into the plugin's data directory, in the background.

No session waits for it, and a message says so once. Until then the hooks do without a config.yaml, and what is searched
are archives.
"""

from __future__ import annotations

import sys
import time
from zlib import crc32

from ..runtimes.claude import hooks as claude
from ..settings.homes import ENV_GUARD, environment, runtime_home
from ..settings.plugin_data import ENV_DATA
from ..system.files import os, read_whole, write_atomically
from ..system.json import decode, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUPS = ("basic", "store")
_NOTE_FILE = "/environment.json"
_RETRY_SECONDS = 24 * 3600
_CHILD = "--in-background"


def run(script: str, words: list[str]) -> None:
    """Runs the hook, whose file is `script`, and ends the process with 0 whatever happens."""
    environ = environment()
    try:
        data_dir = environ.get(ENV_DATA, "")
        if data_dir and not environ.get(ENV_GUARD):
            root = script[: -len("/hooks/plugin_start.py")]
            if _CHILD in words:
                _set_up(data_dir, root + "/requirements.lock")
            elif claude.is_own(decode(sys.stdin.buffer.read().decode("utf-8", "replace"))):
                _start(script, data_dir, root + "/requirements.lock")
    except BaseException as error:
        from ..hooks.log import HookLog
        from ..runtimes.claude import files as claude_files

        home = runtime_home(claude_files.config_dir(environ), claude_files.USUAL_DIR, environ)
        HookLog(home).write_fault("SessionStart", error)
    os._exit(0)


def _start(script: str, data_dir: str, lock_file: str) -> None:
    """Has a child make the environment, unless it is made, or could not be made within the last day."""
    wanted = _wanted(lock_file)
    note = _read_note(data_dir)
    if note.get("wanted") == wanted and (note.get("is_made") or time.time() - note.get("at", 0) < _RETRY_SECONDS):
        return
    _write_note(data_dir, wanted, is_made=False)
    import subprocess

    subprocess.Popen(
        [sys.executable, "-I", "-S", script, _CHILD],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd=data_dir, start_new_session=True,
        creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
    )  # fmt: skip
    if not note:
        what = "What reads a config.yaml and searches the past is being set up"
        text = f"session-memory works. {what} in {data_dir}, in the background."
        sys.stdout.buffer.write(encode({"systemMessage": text}).encode() + b"\n")
        sys.stdout.buffer.flush()


def _set_up(data_dir: str, lock_file: str) -> None:
    """Makes the environment, or adds what it lacks, and notes whether that succeeded."""
    from pathlib import Path

    from ..settings.program import ProgramPaths
    from ..system.terminal import Terminal
    from .environment import ensure_environment
    from .program import locked

    paths = ProgramPaths(Path(data_dir), Path(data_dir, "bin"))
    with locked(paths):
        made = ensure_environment(paths, Path(lock_file), Terminal({}, is_json=True), groups=GROUPS)
    _write_note(data_dir, _wanted(lock_file), is_made=not made.problems, problem="; ".join(made.problems.values()))


def _wanted(lock_file: str) -> str:
    """What an environment is made from: a checksum of the pinned versions, and the version of this Python."""
    return f"{crc32(read_whole(lock_file)):08x}-{sys.version_info[0]}.{sys.version_info[1]}"


def _read_note(data_dir: str) -> dict[str, Any]:
    try:
        note = decode(read_whole(data_dir + _NOTE_FILE).decode())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _write_note(data_dir: str, wanted: str, *, is_made: bool, problem: str = "") -> None:
    note = {"wanted": wanted, "at": time.time(), "is_made": is_made, "problem": problem}
    write_atomically(data_dir + _NOTE_FILE, encode(note).encode())
