"""An agent's home from a template, `_base` and a runtime's overlay: who the agent is stays, all else is renewed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import SessionMemoryError
from ..settings.homes import MEMORY_DIR
from ..system.files import make_private_dir
from ..system.screen import Screen
from . import environment, program
from .environment import Environment
from .file_changes import FileChange, checksum, missing_directories, read_if_there
from .home_changes import HomePlan, make_install
from .homes import Target
from .ledger import HomeRecord, Ledger, read_ledger
from .lock import locked
from .places import Places, source_dir
from .skills import SkillsPlan, plan_skills, replace, take_away

BASE = "_base"


@dataclass(frozen=True)
class Template:
    """What a home has beside the files of its overlay: `sessions`, the folder that names them, `skills`, the
    directory over `skills/`, and `start`, the command that talks to the agent."""

    sessions: str
    skills: str
    start: str


TEMPLATES = {
    "agent-sdk": Template("sessions", ".claude", "./agent.py"),
    "pi": Template("pi-sessions", ".agents", "./agent"),
}
# What makes an agent this one and no other: copied once, then its user's.
IDENTITY = ("AGENTS.md", "CLAUDE.md", f"{MEMORY_DIR}/config.yaml")


class NotEmptyError(SessionMemoryError):
    """A directory that holds something else."""


@dataclass
class Composed:
    """What was composed, or would be; `environment` is None in a dry run."""

    root: str
    template: str
    plan: HomePlan
    places: Places
    environment: Environment | None


def compose(
    path: str, template: str, places: Places, environ: Mapping[str, str], screen: Screen, *, force: bool, dry_run: bool
) -> Composed:
    """Makes the home at `path`, or renews it, and installs the program that it runs.

    Refuses a directory with other content, or of another template, unless `force`. Raises SessionMemoryError, OSError.
    """
    source = source_dir()
    program.check_source(source)
    root = os.path.abspath(os.path.expanduser(path))
    ledger = read_ledger(places.ledger_file)
    if not force:
        _check_place(root, template, ledger)
    plan = plan_home(root, template, source, str(places.python), places.app, ledger)
    for change in plan.changes:
        change.check()
    if dry_run:
        return Composed(root, template, plan, places, None)
    program.make_program_dir(places, ledger)
    with locked(places):
        made = environment.ensure(places, source / "requirements.lock", screen)
        program.ensure_app(places, source, made)
        program.ensure_launcher(places, made.python)
        program.ensure_link(places)
        plan = plan_home(root, template, source, made.python, places.app, ledger)
        make_home(plan, template, ledger)
    return Composed(root, template, plan, places, made)


def composed_home(path: str, ledger: Ledger) -> Target | None:
    """The home at `path`, if it was composed and is still there."""
    root = os.path.abspath(os.path.expanduser(path))
    record = ledger.homes.get(root)
    if record is None or not record.template or not os.path.isdir(root):
        return None
    return Target("composed", root, f"{root}/.claude", root, "")


def plan_home(root: str, template: str, source: Path, python: str, app: Path, ledger: Ledger) -> HomePlan:
    """What it takes to have the home as the template has it. Raises CannotWriteError."""
    record = ledger.homes.get(root)
    known = record.skills if record else {}
    target = Target("agent", root, f"{root}/{TEMPLATES[template].skills}", root, "")
    skills_dirs = tuple(f"{root}/{each.skills}/skills/" for each in TEMPLATES.values())
    plan = plan_skills(source, target, python, app, {p: s for p, s in known.items() if p.startswith(skills_dirs)})
    _plan_files(plan, root, template, source, {p: s for p, s in known.items() if not p.startswith(skills_dirs)})
    for name, path in _files(source, template):
        change = FileChange(Path(root, name), read_if_there(Path(root, name)), path.read_bytes(), 0o644)
        is_new = record is None or str(change.path) not in record.identity
        if name in IDENTITY and is_new and change.before is None:
            plan.changes.append(change)
    settings = Path(root, ".claude", "settings.json")
    content = read_if_there(settings)
    return HomePlan(root, FileChange(settings, content, content), plan)


def make_home(plan: HomePlan, template: str, ledger: Ledger) -> None:
    """Makes the changes, each noted in the ledger before. Raises CannotWriteError, ChangedMeanwhileError, OSError."""
    original = None if plan.settings.before is None else plan.settings.before.decode("utf-8", "surrogateescape")
    record = ledger.homes.setdefault(plan.root, HomeRecord(str(plan.settings.path), original))
    record.template = template
    for change in plan.changes:
        if os.path.relpath(change.path, plan.root) in IDENTITY and change.after is not None:
            record.identity[str(change.path)] = checksum(change.after)
    sessions_dir = f"{plan.root}/{MEMORY_DIR}/{TEMPLATES[template].sessions}"
    record.made += [path for path in map(str, missing_directories(Path(sessions_dir))) if path not in record.made]
    ledger.save()
    make_private_dir(sessions_dir)
    make_install(plan, ledger)


def _check_place(root: str, template: str, ledger: Ledger) -> None:
    """Raises NotEmptyError unless the home may be made at `root`."""
    record = ledger.homes.get(root)
    if record is not None and record.template == template:
        return
    if record is not None and record.template:
        hint = f"--force makes it one of {template}; sessions are kept"
        raise NotEmptyError(f"{root}: it was made from the template {record.template}", hint)
    if os.path.lexists(root) and (not os.path.isdir(root) or os.listdir(root)):
        hint = "--force puts the agent beside what is there; a file in its place is kept as .bak"
        raise NotEmptyError(f"{root}: there is something else in it", hint)


def _plan_files(plan: SkillsPlan, root: str, template: str, source: Path, known: Mapping[str, str]) -> None:
    """Adds the files that are renewed, and takes those away that the template has no more."""
    for name, path in _files(source, template):
        if name not in IDENTITY:
            content = path.read_bytes()
            at = Path(root, name)
            replace(plan, at, content, known.get(str(at)), 0o755 if content.startswith(b"#!") else 0o644)
            plan.files[str(at)] = checksum(content)
    for path_name, sum_then in known.items():
        if path_name not in plan.files:
            take_away(plan, Path(path_name), sum_then)


def _files(source: Path, template: str) -> list[tuple[str, Path]]:
    """What a template consists of: names relative to the home, and where each file lies; the overlay over the base."""
    found = {}
    for part in (BASE, template):
        directory = source / "templates" / part
        for path in sorted(directory.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found[path.relative_to(directory).as_posix()] = path
    return list(found.items())
