"""A place to try the hook in: a home's transcripts as they are, and a throw-away copy of what the hook would change."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runtimes.claude import files as claude
from ..settings.homes import ENV_DIR, MEMORY_DIR, Home, agent_home, home_at, person_home, runtime_home
from ..system.json import decode_line
from .homes import Target

_TAIL_BYTES = 64 * 1024
_PROMPT = "What is going on elsewhere?"
_SHARED_VARIABLES = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", ENV_DIR)


@dataclass(frozen=True)
class Scene:
    """`event` is what the hook reads, `environ` what it runs with, `session` says whose prompt it is, `home` is the
    throw-away home and `cursors` what it begins with: the bytes of a file, by its path."""

    event: dict[str, Any]
    environ: dict[str, str]
    session: str
    home: Home
    cursors: dict[str, bytes]

    def reset(self) -> None:
        """Forgets what a run of the hook has seen."""
        shutil.rmtree(f"{self.home.state_dir}/cursors", ignore_errors=True)
        for path, content in self.cursors.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)


def stage(target: Target, directory: Path, environ: Mapping[str, str]) -> Scene | str:
    """A scene in `directory` for the next prompt in a home, or why there can be none yet. Raises OSError."""
    if target.kind == "agent":
        return _agent_scene(target, directory, environ)
    project_dir = claude.project_dir(target.config_dir, target.project) if target.project else ""
    where = target.project
    if not project_dir:
        project_dir, where = _last_active_project(target.config_dir, environ)
    if not os.path.isdir(project_dir):
        return "there are no sessions yet"
    config_dir = directory / ".claude"
    config_dir.mkdir(parents=True)
    # The hook opens no transcript that is a link, but a directory above may be one.
    (config_dir / "projects").symlink_to(os.path.dirname(project_dir), target_is_directory=True)
    # A place of its own for the person too, so that what the hook notes lies in the scene.
    person = person_home({**environ, ENV_DIR: str(directory / MEMORY_DIR)})
    home = runtime_home(str(config_dir), claude.USUAL_DIR, {**environ, ENV_DIR: person.memory_dir})
    _copy_config(person_home(environ), person)
    _copy_config(target.home, home)
    path = f"{config_dir}/projects/{os.path.basename(project_dir)}"
    session = f"a new session in {where}"
    environ = {**environ, ENV_DIR: person.memory_dir}
    return _scene(directory, str(uuid.uuid4()), path, session, home, {}, environ)


def named_transcripts(target: Target) -> dict[str, str]:
    """Where the transcript of each named session of an agent home lies, or will lie, by the session's name.

    They lie where the runtime was started; where none lies there, in the project that has the most of them.
    """
    names = claude.session_names(target.sessions_dir)
    ids = {name: session_id for name in names if (session_id := claude.named_session_id(target.sessions_dir, name))}
    expected = claude.project_dir(target.config_dir, target.project)
    counts = {expected: _count_there(expected, ids)}
    if not counts[expected]:
        counts.update({path: _count_there(path, ids) for path in project_dirs(target.config_dir)})
    best = max(counts, key=lambda path: counts[path])
    return {name: f"{best}/{session_id}.jsonl" for name, session_id in ids.items()}


def _agent_scene(target: Target, directory: Path, environ: Mapping[str, str]) -> Scene | str:
    transcripts = named_transcripts(target)
    if not transcripts:
        return "no session has begun yet"
    name = "main" if "main" in transcripts else max(transcripts, key=lambda name: _modified(transcripts[name]))
    sessions_dir = directory / os.path.basename(os.path.dirname(target.sessions_dir)) / "sessions"
    sessions_dir.mkdir(parents=True)
    for other in claude.session_names(target.sessions_dir):
        shutil.copyfile(f"{target.sessions_dir}/{other}.json", sessions_dir / f"{other}.json")
    home = home_at(str(directory), environ, sessions_dir=str(sessions_dir))
    _copy_config(target.home, home)
    real_cursors = Path(target.home.cursor_file(name))
    cursors = {home.cursor_file(name): real_cursors.read_bytes()} if real_cursors.is_file() else {}
    session_id = os.path.basename(transcripts[name])[: -len(".jsonl")]
    return _scene(directory, session_id, os.path.dirname(transcripts[name]), name, home, cursors, environ)


def _scene(
    directory: Path, session_id: str, project_dir: str, session: str, home: Home, cursors: dict[str, bytes],
    environ: Mapping[str, str],
) -> Scene:  # fmt: skip
    event = {
        "session_id": session_id,
        "transcript_path": f"{project_dir}/{session_id}.jsonl",
        "cwd": str(directory),
        "prompt_id": str(uuid.uuid4()),
        "permission_mode": "default",
        "hook_event_name": "UserPromptSubmit",
        "prompt": _PROMPT,
    }
    shared = {key: environ[key] for key in _SHARED_VARIABLES if key in environ}
    own = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(directory), "CLAUDE_CODE_SESSION_ID": session_id}
    return Scene(event, {**shared, **own}, session, home, cursors)


def _copy_config(home: Home, to: Home) -> None:
    if os.path.isfile(home.config_file):
        os.makedirs(to.memory_dir, exist_ok=True)
        shutil.copyfile(home.config_file, to.config_file)


def _last_active_project(config_dir: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The project directory that was written to last, and where its sessions run; ('', '') if there is none.

    Projects that belong to an agent home are that home's, not Claude Code's.
    """
    active = []
    for path in project_dirs(config_dir):
        transcripts = [session.path for session in claude.sessions_in(path)]
        if transcripts:
            newest = max(transcripts, key=_modified)
            active.append((_modified(newest), path, newest))
    for _, path, newest in sorted(active, reverse=True):
        cwd = _cwd_of(newest)
        if not (cwd and agent_home(cwd, environ, stop=environ.get("HOME", ""))):
            return path, cwd or path
    return "", ""


def _cwd_of(transcript: str) -> str:
    """The directory in which a transcript's session was last seen; '' if its end does not tell."""
    with open(transcript, "rb") as file:
        file.seek(max(0, os.path.getsize(transcript) - _TAIL_BYTES))
        lines = file.read().split(b"\n")
    for line in reversed(lines):
        for record in decode_line(line)[0]:
            if isinstance(record, dict) and isinstance(record.get("cwd"), str):
                return str(record["cwd"])
    return ""


def project_dirs(config_dir: str) -> Iterator[str]:
    """The directories that hold the transcripts of a project each."""
    try:
        with os.scandir(f"{config_dir}/projects") as entries:
            yield from [entry.path for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return


def _count_there(project_dir: str, ids: Mapping[str, str]) -> int:
    return sum(os.path.isfile(f"{project_dir}/{session_id}.jsonl") for session_id in ids.values())


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def event_line(scene: Scene) -> bytes:
    """The event as the runtime writes it: one line of JSON."""
    return json.dumps(scene.event).encode() + b"\n"
