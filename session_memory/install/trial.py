"""The installed hook, run as the runtime runs it: what it tells, and how long it takes beside a bare interpreter."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .homes import Target
from .scene import Scene, event_line, stage

_RUNS = 7
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Trial:
    """`text` is what the next prompt of `session` would be told ('' for nothing, `reason` may say why); `problem`
    says what went wrong. Times are medians in seconds, of the hook and of `python -I -c pass`; 0 if not taken."""

    session: str = ""
    text: str = ""
    reason: str = ""
    problem: str = ""
    hook_seconds: float = 0.0
    bare_seconds: float = 0.0


def try_hook(target: Target, command: str, environ: Mapping[str, str]) -> Trial:
    """Runs a UserPromptSubmit hook's `command` for the next prompt in a home, so that nothing counts as seen."""
    with tempfile.TemporaryDirectory(prefix="session-memory-") as directory:
        try:
            scene = stage(target, Path(os.path.realpath(directory)), environ)
            if isinstance(scene, str):
                return Trial(reason=scene)
            return _run(scene, command)
        except subprocess.TimeoutExpired:
            return Trial(problem=f"it did not end within {_TIMEOUT_SECONDS} seconds")
        except OSError as error:
            return Trial(problem=f"{error.filename or target.root}: {error.strerror or error}")


def interpreter_of(command: str) -> str:
    """The interpreter that a hook's command starts; '' if that cannot be told."""
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return ""


def _run(scene: Scene, command: str) -> Trial:
    scene.reset()
    done = _start(scene, command)
    text, problem = _understood(done)
    log = Path(scene.home.log_file)
    if not text and not problem and log.is_file():
        problem = log.read_text(errors="replace").splitlines()[-1].partition(": ")[2]
    if problem:
        return Trial(scene.session, problem=problem)
    hook, bare = [], []
    for _ in range(_RUNS):
        scene.reset()
        hook.append(_seconds(lambda: _start(scene, command)))
        bare.append(_seconds(lambda: _bare(command, scene)))
    return Trial(
        scene.session, text, "" if text else "nothing happened lately in the other sessions",
        hook_seconds=statistics.median(hook), bare_seconds=statistics.median(bare),
    )  # fmt: skip


def _start(scene: Scene, command: str) -> subprocess.CompletedProcess[bytes]:
    shell = shutil.which("sh") or "/bin/sh"
    return subprocess.run(
        [shell, "-c", command], input=event_line(scene), env=scene.environ, cwd=scene.event["cwd"],
        capture_output=True, timeout=_TIMEOUT_SECONDS, check=False,
    )  # fmt: skip


def _bare(command: str, scene: Scene) -> None:
    subprocess.run([interpreter_of(command), "-I", "-c", "pass"], env=scene.environ, check=False)


def _understood(done: subprocess.CompletedProcess[bytes]) -> tuple[str, str]:
    """What a run told, and what was wrong with it."""
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it did not say why"]
        return "", f"it ended with {done.returncode}: {said[-1]}"
    if not done.stdout.strip():
        return "", ""
    try:
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]), ""
    except (ValueError, KeyError, TypeError):
        return "", "what it printed is no answer that the runtime understands"


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
