"""Install and uninstall: every home is checked before anything is changed, and all that is changed can be undone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SessionMemoryError
from ..runtimes import all_runtimes
from ..settings.homes import MEMORY_DIR, home_at
from ..settings.program import ProgramPaths, source_dir
from ..system.terminal import Terminal
from . import program
from .environment import Environment, missing_groups, version_of
from .file_changes import remove_if_empty
from .home_changes import HomePlan, InstalledPaths, make_install, make_uninstall, ours, plan_install, plan_uninstall
from .homes import RUNTIME, NoHomeError, Target, find, identify
from .ledger import HomeRecord, InstallLedger, read_ledger
from .program import InstalledProgram
from .templates import fill_sample_home, plan_template, templated_home
from .trial import Trial, try_hook


class NotInstalledError(SessionMemoryError):
    """A home that nothing was installed into."""


@dataclass
class Installed:
    """What was installed, or would be in a dry run, which has no `trials`; else there is one for each home."""

    paths: ProgramPaths
    targets: list[Target]
    plans: list[HomePlan]
    is_sample: bool
    is_dry_run: bool
    program: InstalledProgram
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Uninstalled:
    """What was taken out, or would be. `restored` says by home whether its settings have their old bytes again.
    `purged` lists what was deleted of the user's own configuration and state, `kept` what was not. `is_whole` if the
    program is removed too."""

    paths: ProgramPaths
    plans: list[HomePlan]
    is_dry_run: bool
    is_whole: bool
    restored: dict[str, bool] = field(default_factory=dict)
    purged: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def install(
    homes: list[str],
    paths: ProgramPaths,
    environ: Mapping[str, str],
    terminal: Terminal,
    *,
    dry_run: bool,
    skills_for_all: bool = False,
) -> Installed:
    """Installs into `homes`, or into those that are found; where there is none, into a sample home.

    Nothing is changed before the settings of every home are found to be in order. With `skills_for_all` the skills are
    also put where several runtimes look. Raises SessionMemoryError, OSError.
    """
    source = source_dir()
    program.check_source(source)
    ledger = read_ledger(paths.ledger_file)
    targets = _targets(homes, ledger, paths, environ)
    is_sample = not targets
    if is_sample:
        targets = [_sample_target(paths, environ)]

    def plans(python: str) -> list[HomePlan]:
        made_from = InstalledPaths(source, python, paths.app)
        return [_plan(target, made_from, ledger, skills_for_all) for target in targets]

    foreseen = plans(str(paths.python))
    for plan in foreseen:
        for change in plan.changes:
            change.check()
    if dry_run:
        return Installed(paths, targets, foreseen, is_sample, dry_run, _foreseen_program(paths, source))
    program.make_program_dir(paths, ledger)
    with program.locked(paths):
        installed = program.ensure_program(paths, source, terminal)
        if is_sample:
            fill_sample_home(paths.sample_home, source)
        made = plans(installed.environment.python)
        for plan in made:
            make_install(plan, ledger)
    trials = [_trial(target, plan, environ) for target, plan in zip(targets, made)]
    return Installed(paths, targets, made, is_sample, dry_run, installed, trials, _notes(paths, environ))


def uninstall(
    homes: list[str], paths: ProgramPaths, environ: Mapping[str, str], *, dry_run: bool, purge: bool
) -> Uninstalled:
    """Uninstalls from `homes`; without any, from all, and removes the program.

    `purge` also deletes each home's configuration and state, but not the named sessions, which are the host's.
    Nothing is changed before the settings of every home are found to be in order. Raises SessionMemoryError, OSError.
    """
    ledger = read_ledger(paths.ledger_file)
    records = _records(homes, ledger, environ)
    is_ours = ours(ledger)
    plans = [plan_uninstall(root, record, is_ours) for root, record in records.items()]
    result = Uninstalled(paths, plans, dry_run, not homes)
    for plan, record in zip(plans, records.values()):
        after = plan.settings.after
        result.restored[plan.root] = (None if after is None else after.decode()) == record.original
    going = {str(change.path) for plan in plans for change in plan.changes if change.after is None}
    real = [(root, record) for root, record in records.items() if root != str(paths.sample_home)]
    own = dict.fromkeys(path for root, record in real for path in _purgeable(root, record, environ))
    left = [path for path in own if path not in going]
    result.purged, result.kept = (left, []) if purge else ([], left)
    if dry_run:
        return result
    if paths.program_dir.is_dir():
        with program.locked(paths):
            _take_out(result, ledger)
    else:
        _take_out(result, ledger)
    return result


def _targets(homes: list[str], ledger: InstallLedger, paths: ProgramPaths, environ: Mapping[str, str]) -> list[Target]:
    if homes:
        named = [templated_home(path, ledger, environ) or identify(path, environ) for path in homes]
        return list({target.root: target for target in named}.values())
    templated = [target for home in ledger.homes if (target := templated_home(home, ledger, environ))]
    roots = [target.root for target in templated]
    known = [home for home in ledger.homes if home != str(paths.sample_home)]
    return [*(target for target in find(known, environ, os.getcwd()) if target.root not in roots), *templated]


def _sample_target(paths: ProgramPaths, environ: Mapping[str, str]) -> Target:
    """The sample home, which has its transcripts in itself."""
    root = str(paths.sample_home)
    config_dir = f"{root}/{RUNTIME.INSTALL.HOME_FOLDER}"
    sessions_dir = f"{root}/{MEMORY_DIR}/{RUNTIME.FILES.SESSIONS_FOLDER}"
    return Target("agent", root, config_dir, root, config_dir, home_at(root, environ, sessions_dir=sessions_dir))


def _plan(target: Target, made_from: InstalledPaths, ledger: InstallLedger, skills_for_all: bool) -> HomePlan:
    if target.kind == "template":
        return plan_template(target.root, ledger.homes[target.root].template, made_from, ledger)
    return plan_install(target, made_from, ledger, for_all=skills_for_all)


def _foreseen_program(paths: ProgramPaths, source: Path) -> InstalledProgram:
    """What an install would make of the program."""
    missing = missing_groups(paths, source / program.LOCK_FILE)
    version = version_of(paths.python)
    state = "ready" if version else "missing"
    return InstalledProgram(
        Environment(str(paths.python), version, state, dict.fromkeys(missing, "")),
        not program.is_current(paths, source, version),
        not program.is_our_link(paths) and not program.link_problem(paths),
    )


def _notes(paths: ProgramPaths, environ: Mapping[str, str]) -> list[str]:
    problem = program.link_problem(paths)
    if problem:
        return [problem]
    if str(paths.bin_dir) not in environ.get("PATH", "").split(os.pathsep):
        return [f"{paths.bin_dir} is not on your PATH; until it is, the command is {paths.link}"]
    return []


def _trial(target: Target, plan: HomePlan, environ: Mapping[str, str]) -> Trial:
    if not plan.hooks:
        return Trial(reason="its agent asks by itself")
    command = next((hook.command for hook in plan.hooks if hook.event == RUNTIME.HOOKS.PROMPT_EVENT), "")
    return try_hook(target, command, environ)


def _records(homes: list[str], ledger: InstallLedger, environ: Mapping[str, str]) -> dict[str, HomeRecord]:
    """What is known of the homes to uninstall from. Without a ledger the person's home is looked at all the same."""
    if not homes:
        config_dir = RUNTIME.FILES.config_dir(environ)
        settings_file = os.path.join(config_dir, RUNTIME.INSTALL.SETTINGS_FILE)
        unrecorded = {config_dir: HomeRecord(settings_file, original="")}
        return dict(ledger.homes) or unrecorded
    records = {}
    for path in homes:
        root = os.path.abspath(os.path.expanduser(path))
        if root not in ledger.homes:
            root = identify(path, environ).root
        if root not in ledger.homes:
            raise NotInstalledError(f"{path}: nothing was installed there", f"the ledger is {ledger.path}")
        records[root] = ledger.homes[root]
    return records


def _purgeable(root: str, record: HomeRecord, environ: Mapping[str, str]) -> list[str]:
    """The files and directories with a home's configuration and state."""
    try:
        target = None if record.template else identify(root, environ)
    except NoHomeError:
        return []
    home = target.home if target else home_at(root, environ)
    if target is None or target.kind == "agent":
        sessions = [each.FILES.SESSIONS_FOLDER for each in all_runtimes()]
        paths = sorted(Path(home.memory_dir).glob("*"))
        return [str(path) for path in paths if path.name not in sessions]
    # The store, memories and archives of a person's place are not of this home alone.
    return [path for path in (home.config_file, home.state_dir) if os.path.lexists(path)]


def _take_out(result: Uninstalled, ledger: InstallLedger) -> None:
    for plan in result.plans:
        make_uninstall(plan, ledger)
    for path in result.purged:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        remove_if_empty(Path(path).parent)
    if result.is_whole:
        program.remove_program(result.paths, ledger)
