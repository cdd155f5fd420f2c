"""Tries an installed hook as the runtime runs it, on a throw-away copy of the state.

Nothing counts as delivered.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...common.system.files import user_dir
from ...sessions.runtimes.table import runtime
from ...sessions.settings.homes import ENV_DIR, ENV_HOME, Home, home_at, person_home, runtime_home
from ...sessions.settings.registry import agent_home
from ...sessions.transcripts.entries import Session
from ...sessions.transcripts.log import last_entries
from ._homes import Target

_RUNS = 3
_TIMEOUT_SECONDS = 30
_PROMPT = "What is going on elsewhere?"
_SHARED_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", ENV_DIR, ENV_HOME)


@dataclass(frozen=True)
class Trial:
    """The result of trying a hook.

    `text` is the update that the next prompt of `session` would get, '' for none, and `reason` may
    explain that. `problem` is the error. Times are medians in seconds: of a prompt with nothing
    new, and of `python -I -c pass`. They are 0 if not measured, as in an install."""

    session: str = ""
    text: str = ""
    reason: str = ""
    problem: str = ""
    hook_seconds: float = 0.0
    bare_seconds: float = 0.0


class _Scene(NamedTuple):
    """The input of a hook, its environment, the session it belongs to, and the copy of the home.

    The hook's answer has its text at `key`."""

    event: dict[str, Any]
    environ: dict[str, str]
    session: str
    home: Home
    key: str


def try_hook(target: Target, command: str, environ: Mapping[str, str], *, is_timed: bool) -> Trial:
    """Run a prompt hook's `command` for a home's next prompt, with its failures visible."""
    command = command.removesuffix(target.runtime.install.FAIL_OPEN)
    with tempfile.TemporaryDirectory(
        prefix="session-memory-", ignore_cleanup_errors=True
    ) as directory:
        try:
            set_up = _agent_scene if target.kind == "agent" else _plain_scene
            scene = set_up(target, os.path.realpath(directory), environ)
            return Trial(reason=scene) if isinstance(scene, str) else _run(scene, command, is_timed)
        except subprocess.TimeoutExpired:
            return Trial(problem=f"it did not finish within {_TIMEOUT_SECONDS} seconds")
        except OSError as error:
            return Trial(problem=f"{error.filename or target.root}: {error.strerror or error}")


def fault_at_start(target: Target, command: str, environ: Mapping[str, str]) -> str:
    """Return why a hook's `command` does not start, '' if it does.

    The hook gets input that is not an event, so it only logs that, in a throw-away directory. Hooks
    fail open: a broken one also ends with 0, but leaves no line in the log. Without an event, a
    hook logs for Claude Code's directory, and only if that exists."""
    command = command.removesuffix(target.runtime.install.FAIL_OPEN)
    with tempfile.TemporaryDirectory(
        prefix="session-memory-", ignore_cleanup_errors=True
    ) as directory:
        variables = {key: environ[key] for key in _SHARED_VARIABLES if key in environ}
        variables |= {**target.runtime.install.hook_variables("", directory), ENV_DIR: directory}
        variables[runtime("agent-sdk").CONFIG_VARIABLE] = directory
        variables.pop(ENV_HOME, None)
        try:
            done = _started(command, b"no event\n", variables, directory)
        except subprocess.TimeoutExpired:
            return f"it did not finish within {_TIMEOUT_SECONDS} seconds"
        if done.returncode:
            return _failure(done)
        if not any(Path(directory).rglob("hook.log")):
            return "it printed nothing: part of the program is missing or broken"
        return ""


def interpreter_of(command: str) -> str:
    """Return the interpreter that a hook's command starts; '' if unknown."""
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""


def modified(session: Session) -> float:
    """Return when the session's transcript was last written, in seconds since 1970; 0 if there is
    none."""
    try:
        return os.stat(session.path).st_mtime
    except OSError:
        return 0.0


def _agent_scene(target: Target, directory: str, environ: Mapping[str, str]) -> _Scene | str:
    """Set up the next prompt of the session `main`, or of the session that was last active.

    Return the reason if there is none."""
    sessions = target.sessions()
    if not sessions:
        return "no session has begun yet"
    session = max(sessions, key=lambda session: (session.name == "main", modified(session)))
    lying_in = Counter(
        os.path.dirname(session.path) for session in sessions if os.path.isfile(session.path)
    )
    project_dir = lying_in.most_common(1)[0][0] if lying_in else os.path.dirname(session.path)
    sessions_dir = os.path.join(directory, os.path.relpath(target.home.sessions_dir, target.root))
    shutil.copytree(target.home.sessions_dir, sessions_dir)
    moved = {**environ, ENV_DIR: f"{directory}/person", ENV_HOME: directory}
    home = home_at(directory, moved, sessions_dir=sessions_dir)
    cursors = target.home.cursor_file(session.name)
    if os.path.isfile(cursors):
        os.makedirs(os.path.dirname(home.cursor_file(session.name)))
        shutil.copyfile(cursors, home.cursor_file(session.name))
    start = os.path.normpath(os.path.join(directory, os.path.relpath(target.project, target.root)))
    os.makedirs(start, exist_ok=True)
    return _scene(
        target,
        session.name,
        home,
        f"{project_dir}/{os.path.basename(session.path)}",
        start,
        environ,
        moved,
    )


def _plain_scene(target: Target, directory: str, environ: Mapping[str, str]) -> _Scene | str:
    """Set up the first prompt of a new session, in the project or in the last active one."""
    project_dir, where = target.transcripts_dir, target.project
    if not where:
        project_dir, where = _last_active_project(target, environ)
    if not os.path.isdir(project_dir):
        return "no session has started in this home yet"
    moved = {**environ, ENV_DIR: directory}
    home = runtime_home(target.config_dir, target.runtime.USUAL_DIR, moved)
    is_safe = os.path.isdir(where) and not agent_home(where, environ, stop=user_dir(environ))
    start = where if is_safe else directory  # in an agent home the hook would write to it
    own_id = str(uuid.uuid4())
    transcript = target.runtime.own_path(
        {"session_id": own_id, "cwd": where}, where, target.config_dir
    )
    return _scene(target, f"a new session in {where}", home, transcript, start, environ, moved)


def _scene(
    target: Target,
    session: str,
    home: Home,
    transcript: str,
    start: str,
    environ: Mapping[str, str],
    moved: Mapping[str, str],
) -> _Scene:
    """Copy the settings, and return a prompt for the session of this transcript.

    The session was started in `start`."""
    for of, to in ((person_home(environ), person_home(moved)), (target.home, home)):
        if os.path.isfile(of.config_file):
            os.makedirs(to.memory_dir, exist_ok=True)
            shutil.copyfile(of.config_file, to.config_file)
    install, session_id = target.runtime.install, target.runtime.session_id_of(transcript)
    variables = {key: moved[key] for key in _SHARED_VARIABLES if key in moved}
    variables |= install.hook_variables(session_id, start)
    return _Scene(
        install.prompt_event(session_id, transcript, start, _PROMPT),
        variables,
        session,
        home,
        target.runtime.CONTEXT_KEY,
    )


def _last_active_project(target: Target, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the transcripts' and the sessions' directory of the last active project.

    Return ('', '') if there is none. Projects of an agent home are left out, because the prompts of
    the home show their sessions' activity."""
    looked_at = set()
    for session in sorted(target.sessions(), key=modified, reverse=True):
        project_dir = os.path.dirname(session.path)
        if project_dir not in looked_at:
            looked_at.add(project_dir)
            entries, _ = last_entries(target.runtime, session.path, 1, None)
            cwd = entries[0].cwd if entries else ""
            if not (cwd and agent_home(cwd, environ, stop=user_dir(environ))):
                return project_dir, cwd or project_dir
    return "", ""


def _run(scene: _Scene, command: str, is_timed: bool) -> Trial:
    def start() -> subprocess.CompletedProcess[bytes]:
        content = json.dumps(scene.event).encode() + b"\n"
        return _started(command, content, scene.environ, scene.event["cwd"])

    done, text, problem = start(), "", ""
    log = Path(scene.home.log_file)
    if done.returncode:
        problem = _failure(done)
    elif done.stdout.strip():
        try:
            output = json.loads(done.stdout)
            text = str(output.get("hookSpecificOutput", output)[scene.key])
        except (ValueError, KeyError, TypeError, AttributeError):
            problem = "the runtime does not understand the hook's answer"
    elif log.is_file():
        problem = log.read_text(errors="replace").splitlines()[-1].partition(": ")[2]
    if problem:
        return Trial(scene.session, problem=problem)
    reason = "" if text else "nothing happened recently in the other sessions"
    if not is_timed:
        return Trial(scene.session, text, reason)
    bare = [interpreter_of(command), "-I", "-c", "pass"]
    bare_seconds = _seconds(lambda: subprocess.run(bare, env=scene.environ, check=False))
    return Trial(scene.session, text, reason, "", _seconds(start), bare_seconds)


def _started(
    command: str, content: bytes, variables: Mapping[str, str], directory: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a hook's command to its end, as a runtime does."""
    return subprocess.run(
        [shutil.which("sh") or "/bin/sh", "-c", command],
        input=content,
        env=variables,
        cwd=directory,
        capture_output=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


def _failure(done: subprocess.CompletedProcess[bytes]) -> str:
    said = done.stderr.decode(errors="replace").strip().splitlines() or ["it gave no reason"]
    return f"it exited with {done.returncode}: {said[-1]}"


def _seconds(run: Callable[[], object]) -> float:
    """Return the median time of a few runs."""
    times = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return statistics.median(times)
