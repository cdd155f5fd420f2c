"""What installing changes in one home, and what uninstalling changes back: planned whole, then made."""

from __future__ import annotations

import json
import os
import shlex
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import settings_file
from .file_changes import FileChange, checksum, missing_directories, read_if_there, remove_if_empty
from .homes import Target
from .ledger import HomeRecord, Ledger
from .settings_file import Hook, IsOurs
from .skills import SkillsPlan, plan_removal, plan_skills


@dataclass
class HomePlan:
    """The changes to one home. `hooks` are those that will be in its settings, `are_disabled` tells that the settings
    keep any hook from running, `stripped` is the settings file without our hooks (None: there was no file)."""

    root: str
    settings: FileChange
    skills: SkillsPlan
    hooks: list[Hook] = field(default_factory=list)
    are_disabled: bool = False
    stripped: bytes | None = None

    @property
    def changes(self) -> list[FileChange]:
        """The files that will not be as they were."""
        return [change for change in (self.settings, *self.skills.changes) if change.is_one]


def ours(ledger: Ledger) -> IsOurs:
    """Whether a hook command is one of ours: by the ledger, or by the copy of this program that it runs."""
    known = {command for record in ledger.homes.values() for command in record.commands}

    def is_ours(command: str) -> bool:
        return command in known or _runs_this_program(command)

    return is_ours


def plan_install(
    target: Target, source: Path, python: str, app: Path, ledger: Ledger, *, skills_for_all: bool = False
) -> HomePlan:
    """What it takes to have our hooks and skills in a home. Raises SettingsFileError, CannotWriteError."""
    record = ledger.homes.get(target.root)
    declared = (source / "hooks" / "hooks.json").read_text()
    hooks = settings_file.wanted_hooks(declared, python, str(app))
    path, is_ours = target.settings_file, ours(ledger)
    before = read_if_there(path)
    after = settings_file.with_hooks(before, str(path), hooks, is_ours)
    return HomePlan(
        target.root,
        FileChange(path, before, after),
        plan_skills(source, target, python, app, record.skills if record else {}, for_all=skills_for_all),
        hooks,
        settings_file.read(after, str(path)).are_disabled,
        None if before is None else settings_file.without_hooks(before, str(path), is_ours),
    )


def plan_uninstall(root: str, record: HomeRecord, is_ours: IsOurs) -> HomePlan:
    """What it takes to have a home as it was. Raises SettingsFileError, CannotWriteError."""
    path = Path(record.settings_file)
    before = read_if_there(path)
    after = before
    if before is not None and checksum(before) in record.written:
        after = None if record.original is None else record.original.encode()
    elif before is not None:
        after = settings_file.without_hooks(before, str(path), is_ours)
        if record.original is None and json.loads(after) == {}:
            after = None
    plan = HomePlan(root, FileChange(path, before, after), plan_removal(record.skills))
    for name, sum_then in record.identity.items():
        current = read_if_there(Path(name))
        if current is not None and checksum(current) == sum_then:  # else it is its user's by now
            plan.skills.changes.append(FileChange(Path(name), current, None))
    return plan


def make_install(plan: HomePlan, ledger: Ledger) -> None:
    """Makes the changes, each noted in the ledger before. Raises CannotWriteError, ChangedMeanwhileError, OSError."""
    if not plan.changes and plan.root in ledger.homes:
        return
    record = ledger.homes.setdefault(plan.root, HomeRecord(str(plan.settings.path)))
    after = plan.settings.after
    if after is not None and (plan.settings.is_one or not record.written):
        record.note_settings(plan.settings.before, plan.stripped, after)
        record.installed_at = time.time()
    record.commands = sorted({*record.commands, *(hook.command for hook in plan.hooks)})
    record.skills = {**plan.skills.files, **record.skills}
    for change in plan.changes:
        missing = [str(path) for path in missing_directories(change.path.parent)]
        record.made += [path for path in missing if path not in record.made]
    ledger.save()
    for change in plan.changes:
        change.path.parent.mkdir(parents=True, exist_ok=True)
        change.make()
        if change.after is None:
            remove_if_empty(change.path.parent)
    record.skills = dict(plan.skills.files)
    record.commands = [hook.command for hook in plan.hooks]
    ledger.save()


def make_uninstall(plan: HomePlan, ledger: Ledger) -> None:
    """Makes the changes and forgets the home. Raises CannotWriteError, ChangedMeanwhileError, OSError."""
    for change in plan.changes:
        change.make()
    for directory in sorted({change.path.parent for change in plan.skills.changes}, reverse=True):
        remove_if_empty(directory)
    record = ledger.homes.pop(plan.root, None)
    for made in reversed(record.made if record else []):
        remove_if_empty(Path(made))
    if ledger.path.exists():
        ledger.save()


def _runs_this_program(command: str) -> bool:
    """Whether a command runs a hook of a copy of this program, the installed one or another."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    for word in words:
        root, _, script = word.replace("\\", "/").rpartition("/hooks/")
        if root and script.endswith(".py") and "/" not in script:
            is_installed = root.endswith("/session-memory/app")
            return is_installed or os.path.isfile(os.path.join(root, "session_memory", "hooks", "prompt.py"))
    return False
