"""Homes made from templates: by `new`, and the sample home.

Renewing a home leaves the agent's own content untouched."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...awareness.install.ledger import HomeRecord, InstallLedger
from ...common.errors import SessionMemoryError
from ...common.system.file_changes import (
    FileChange,
    checksum,
    read_if_there,
    write_in_place,
)
from ...common.system.files import expanded, make_private_dir
from ...common.system.terminal import Terminal
from ...common.text.timestamps import epoch_seconds, iso_time
from ...sessions.runtimes.table import runtime
from ...sessions.settings.homes import MEMORY_DIR, home_at
from ...sessions.settings.program import ProgramPaths, source_dir
from . import program
from ._home_changes import HomePlan
from ._homes import RUNTIME, Target
from .environment import Environment, installed_extras, sizes_of

_BASE = "_base"


@dataclass(frozen=True)
class Template:
    """A template. `start` is the command that talks to the agent, `extras` are its needs."""

    start: str
    extras: tuple[str, ...] = ()


# The templates by the name of the runtime that runs the agent, as in the table of runtimes.
TEMPLATES = {"agent-sdk": Template("./agent.py", ("sdk",)), "pi": Template("./agent")}
# The files that make up this agent's personality: copied once, then the user's own.
IDENTITY = ("AGENTS.md", "CLAUDE.md", f"{MEMORY_DIR}/config.yaml")

# The sessions of the sample home, with the minutes since each was active.
_SAMPLE_MINUTES = {"main": 45, "discord": 3, "email": 20}
_SAMPLE = "sample"
_HOME_MARK = "@HOME@"  # replaced by the path of the home in the sample's transcripts
_TIMESTAMP = re.compile(r'(?<="timestamp":")[^"]+')


class HomeRequest(NamedTuple):
    """The home to make at `path`, and the `extras` that may be installed for it.

    A directory with other content, or made from another template, is refused unless `force`."""

    path: str
    template: str
    extras: list[str]
    force: bool
    is_dry_run: bool


@dataclass
class NewHome:
    """The home that was made or renewed, or would be.

    `environment` is None in a dry run."""

    root: str
    template: str
    plan: HomePlan
    paths: ProgramPaths
    environment: Environment | None
    missing: tuple[str, ...] = ()  # extras that the agent needs, and nobody has agreed to


def make_home(request: HomeRequest, paths: ProgramPaths, terminal: Terminal) -> NewHome:
    """Make or renew a home, and install the program that it runs.

    The extras that it needs are installed if the request names them, or if the person agrees at the
    terminal. Raises SessionMemoryError, OSError."""
    source = source_dir()
    program.check_source(source)
    root, template = os.path.abspath(expanded(request.path, os.environ)), request.template
    ledger = InstallLedger.read(paths.ledger_file)
    if not request.force:
        _check_root(root, template, ledger)
    plan = plan_template(root, template, source, ledger)
    for change in plan.changes:
        change.check()
    if request.is_dry_run:
        return NewHome(root, template, plan, paths, None)
    wanted = _wanted_extras(template, [*request.extras, *installed_extras(paths)], terminal)
    with program.locked(paths) as made_for_us:
        # as it is now: another install may have been at work until now
        ledger = InstallLedger.read(paths.ledger_file)
        program.note_directories(made_for_us, ledger)
        environment = program.ensure_program(paths, source, terminal, wanted).environment
        plan = plan_template(root, template, source, ledger)
        _make(plan, template, ledger)
    missing = tuple(name for name in TEMPLATES[template].extras if name not in wanted)
    return NewHome(root, template, plan, paths, environment, missing)


def _wanted_extras(template: str, agreed: list[str], terminal: Terminal) -> list[str]:
    """Return the extras to install: the requested ones, and the template's if the person agrees."""
    missing = [name for name in TEMPLATES[template].extras if name not in agreed]
    if not missing or not terminal.can_ask():
        return agreed
    question = f"This agent runs on {sizes_of(missing)}, which is not installed. Install it now?"
    return [*agreed, *missing] if terminal.ask(question) else agreed


def templated_home(path: str, ledger: InstallLedger, environ: Mapping[str, str]) -> Target | None:
    """Return the home at `path`, if it was made from a template and still exists."""
    root = os.path.abspath(expanded(path, os.environ))
    record = ledger.records.get(root)
    if record is None or not record.template or not os.path.isdir(root):
        return None
    return Target(
        "template", root, f"{root}/{RUNTIME.install.HOME_FOLDER}", root, "", home_at(root, environ)
    )


def plan_template(root: str, template: str, source: Path, ledger: InstallLedger) -> HomePlan:
    """Plan the changes that update a home to its template. Raises CannotWriteError."""
    record = ledger.records.get(root)
    known = record.files if record else {}
    settings = Path(root, RUNTIME.install.HOME_FOLDER, RUNTIME.install.SETTINGS_FILE)
    content = read_if_there(settings)
    plan = HomePlan(root, FileChange(settings, content, content))
    for name, path in _files(source, template):
        at, content = Path(root, name), path.read_bytes()
        mode = 0o755 if content.startswith(b"#!") else 0o644
        if name not in IDENTITY:
            plan.put(at, content, known.get(str(at)), mode)
        elif (record is None or str(at) not in record.identity) and read_if_there(at) is None:
            plan.files.append(FileChange(at, None, content, mode))
    plan.take_away_old(known)
    return plan


def fill_sample_home(home: Path, source: Path) -> None:
    """Write the sample's named sessions and their transcripts, as if they had just happened.

    Raises OSError."""
    transcripts_dir = RUNTIME.project_dir(f"{home}/{RUNTIME.install.HOME_FOLDER}", str(home))
    names = home / MEMORY_DIR / RUNTIME.SESSIONS_FOLDER
    make_private_dir(transcripts_dir)
    make_private_dir(str(names))
    for name, minutes_ago in _SAMPLE_MINUTES.items():
        end = time.time() - minutes_ago * 60 - 1
        text, session_id = sample_transcript(source, name, str(home), end)
        transcript = Path(transcripts_dir, f"{session_id}.jsonl")
        write_in_place(transcript, text.encode())
        os.utime(transcript, (end, end))
        write_in_place(
            names / f"{name}.json", (json.dumps({"sessionId": session_id}) + "\n").encode()
        )


def sample_transcript(source: Path, name: str, directory: str, end: float) -> tuple[str, str]:
    """Return a sample transcript of a session in `directory`, and the session's id.

    Its last record is from the time `end`. Raises OSError."""
    text = (source / "templates" / _SAMPLE / f"{name}.jsonl").read_text()
    text = text.replace(_HOME_MARK, json.dumps(directory)[1:-1])
    shift = end - max(epoch_seconds(time) or 0 for time in _TIMESTAMP.findall(text))
    text = _TIMESTAMP.sub(lambda match: iso_time((epoch_seconds(match[0]) or 0) + shift), text)
    first = json.loads(text.partition("\n")[0])
    return text, first.get("sessionId") or first["payload"]["id"]


def _check_root(root: str, template: str, ledger: InstallLedger) -> None:
    """Raise SessionMemoryError unless a home may be made at `root`."""
    record = ledger.records.get(root)
    if record is not None and record.template == template:
        return
    if record is not None and record.template:
        hint = f"--force changes it to {template} and keeps its sessions"
        raise SessionMemoryError(f"{root}: it was made from the template {record.template}", hint)
    if os.path.lexists(root) and (not os.path.isdir(root) or os.listdir(root)):
        hint = (
            "--force adds the agent's files to the directory; a file that it replaces is kept as "
            ".bak"
        )
        raise SessionMemoryError(f"{root}: the directory has other content", hint)


def _make(plan: HomePlan, template: str, ledger: InstallLedger) -> None:
    """Make the changes, and note each in the ledger beforehand.

    Raises CannotWriteError, ChangedMeanwhileError, OSError."""
    settings = plan.settings
    assert settings is not None  # as plan_template made it
    original = (
        None if settings.before is None else settings.before.decode("utf-8", "surrogateescape")
    )
    record = ledger.records.setdefault(plan.root, HomeRecord(str(settings.path), original))
    record.template = template
    for change in plan.changes:
        if os.path.relpath(change.path, plan.root) in IDENTITY and change.after is not None:
            record.identity[str(change.path)] = checksum(change.after)
    sessions_dir = f"{plan.root}/{MEMORY_DIR}/{runtime(template).SESSIONS_FOLDER}"
    record.note_directories(Path(sessions_dir))
    ledger.save()
    make_private_dir(sessions_dir)
    plan.make(ledger)


def _files(source: Path, template: str) -> list[tuple[str, Path]]:
    """Return the names of a template's files, relative to the home, and their sources.

    A file of the overlay replaces the base's."""
    paths = {}
    for part in (_BASE, template):
        directory = source / "templates" / part
        for path in sorted(directory.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                paths[path.relative_to(directory).as_posix()] = path
    return list(paths.items())
