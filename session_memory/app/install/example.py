"""Examples of an update, shown before an install changes anything.

One is made from a sample, one from the person's own sessions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ...awareness.events.delivery_state import text_at
from ...common.errors import SessionMemoryError
from ...common.system.file_changes import write_in_place
from ...common.system.terminal import Terminal
from ...sessions.runtimes.table import runtime
from ...sessions.settings.homes import ENV_DIR, ENV_HOME, environment, person_home, user_dir
from ...sessions.transcripts.entries import INTRODUCTION
from ...sessions.transcripts.sessions import FoundSession, find_sessions
from .templates import sample_transcript

COLLISION = "! "  # how the line of one begins
_LOOKED_AT = 60  # sessions, the latest
_TRIED = 12  # prompts
_TIMEOUT_SECONDS = 20
_PAUSE_SECONDS = 60  # between what the other session did and the prompt
_CONFLICT_SECONDS = 2.0  # for the trial merges of a repository
_REPOSITORIES = 4  # that are tried, the latest
_DAY_SECONDS = 24 * 3600
_CODE = (
    f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import _print_last_meeting; "
    f"_print_last_meeting()"
)
# The sessions of the sample: each one's name, runtime, and the minutes since its last activity.
_SAMPLE = (("claude-code", "agent-sdk", 4.5), ("codex", "codex", 1.5))


class PastUpdate(NamedTuple):
    """The `text` that the session `name` would have got with its next prompt, at the time `at`.

    `at` is in seconds since the epoch. The text lacks its introduction."""

    name: str
    runtime: str
    at: float
    text: str
    # a merge conflict that exists now, not an update of the past
    is_waiting: bool = False

    @property
    def has_collision(self) -> bool:
        return any(line.startswith(COLLISION) for line in self.text.splitlines())


def sample_update(source: Path) -> PastUpdate | None:
    """Return an update in the sample project of `source`, or None if it has no sample."""
    with tempfile.TemporaryDirectory(
        prefix="session-memory-", ignore_cleanup_errors=True
    ) as directory:
        home = Path(os.path.realpath(directory))
        return last_meeting({"HOME": str(home)}) if write_sample(source, home) else None


def write_sample(source: Path, home: Path) -> list[str]:
    """Write the sample project below `home`, and return the paths of its transcripts.

    The sessions, of Claude Code and Codex, have just ended. Return no paths if `source` has no
    sample. Raises OSError."""
    paths = []
    project = f"{home}/shop"
    for name, of, minutes_ago in _SAMPLE if (source / "templates").is_dir() else ():
        os.makedirs(project, exist_ok=True)
        end = time.time() - minutes_ago * 60
        text, session_id = sample_transcript(source, name, project, end)
        agent_runtime, began = runtime(of), time.gmtime(end)
        config_dir = f"{home}/{agent_runtime.USUAL_DIR}"
        path = Path(agent_runtime.project_dir(config_dir, project), f"{session_id}.jsonl")
        if not agent_runtime.HAS_PROJECT_FOLDERS:
            rollout = f"rollout-{time.strftime('%Y-%m-%dT%H-%M-%S', began)}-{session_id}.jsonl"
            path = Path(
                agent_runtime.transcripts_dir(config_dir), time.strftime("%Y/%m/%d", began), rollout
            )
        path.parent.mkdir(parents=True)
        write_in_place(path, text.encode())
        os.utime(path, (end, end))
        paths.append(str(path))
    return paths


def last_meeting(environ: Mapping[str, str]) -> PastUpdate | None:
    """Return an update from the person's own sessions, as an example; None if there is none.

    It is what the next prompt would have got on the last day when two sessions of a project were at
    work. Recent collisions come first, then present merge conflicts, then anything else. A separate
    process searches, in a temporary directory if the person has no data of ours, so nothing is left
    behind."""
    kept = {key: value for key, value in environ.items() if key != ENV_HOME}
    with tempfile.TemporaryDirectory(
        prefix="session-memory-", ignore_cleanup_errors=True
    ) as directory:
        if not os.path.isdir(person_home(kept).memory_dir):
            kept[ENV_DIR] = directory
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _CODE, *sys.path],
                env=kept,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
            return PastUpdate(*json.loads(done.stdout)["update"]) if done.stdout else None
        except (OSError, ValueError, subprocess.TimeoutExpired):  # it is only an example
            return None


def _print_last_meeting() -> None:
    """Print the update for `last_meeting` as JSON, or nothing if there is none.

    Raises the error that prevents reading the sessions."""
    environ = environment()
    best: PastUpdate | None = None
    try:
        sessions = find_sessions(None, True, environ, most=_LOOKED_AT)
    except SessionMemoryError:  # there are none yet
        return
    for number, (session, at) in enumerate(_meetings(sessions)):
        text = text_at(session, at, environ)
        update = PastUpdate(
            session.name, session.runtime.TITLE, at, text.removeprefix(INTRODUCTION)
        )
        if text and (best is None or update.has_collision):
            best = update
        if number == _TRIED or (best and best.has_collision):
            break
    if not (best and best.has_collision):
        best = _waiting_conflict(environ) or best
    if best:
        Terminal(environ).verbatim(json.dumps({"update": best}))


def _waiting_conflict(environ: Mapping[str, str]) -> PastUpdate | None:
    """Return the line about the first merge conflict among the last day's sessions, or None.

    It may be between worktrees or branches."""
    try:
        return next(_conflicts(environ), None)
    except (SessionMemoryError, OSError):  # no git, or it cannot tell: the other example stays
        return None


def _conflicts(environ: Mapping[str, str]) -> Iterator[PastUpdate]:
    from ...history.conflicts import find_conflicts, live_sessions, sides_of

    now = time.time()
    sides = sides_of(live_sessions(None, environ, now), user_dir(environ))
    latest = list(dict.fromkeys(side.common_dir for side in sides))[:_REPOSITORIES]
    for clash in find_conflicts(
        [side for side in sides if side.common_dir in latest], _CONFLICT_SECONDS
    ):
        sessions = [each for each in clash.own.sessions if each.runtime.PROMPT_EVENT]
        if sessions and clash.other:
            session, line = sessions[0], clash.as_kept(now).line(now)
            yield PastUpdate(
                session.name,
                session.runtime.TITLE,
                now,
                f"[Session Activity]\n{line}",
                is_waiting=True,
            )


def _meetings(sessions: list[FoundSession]) -> Iterator[tuple[FoundSession, float]]:
    """Yield sessions that were at work within a day of another one in the same project.

    Each has the time when its next prompt could have come; the latest comes first. A session whose
    runtime runs no hooks gets no update."""
    for number, other in enumerate(sessions):
        for session in sessions[number + 1 :]:
            if (
                session.runtime.PROMPT_EVENT
                and session.start == other.start
                and (other.began or other.last_at) <= session.last_at + _DAY_SECONDS
            ):
                yield session, other.last_at + _PAUSE_SECONDS
