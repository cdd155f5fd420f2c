"""Install into homes, in a way that can be undone.

All homes are checked before anything is changed. Homes that cannot be changed are left out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...awareness.install.ledger import InstallLedger
from ...awareness.install.plan import InstalledPaths
from ...awareness.install.settings_file import SettingsFileError
from ...common.errors import SessionMemoryError
from ...common.system.terminal import Terminal
from ...sessions.runtimes.base import Runtime
from ...sessions.settings.homes import ENV_DIR, MEMORY_DIR, home_at, person_home
from ...sessions.settings.program import ProgramPaths, source_dir
from . import program
from ._home_changes import HomePlan, plan_install
from ._homes import (
    RUNTIME,
    SHARED_SKILLS_FOLDER,
    NoHomeError,
    Target,
    find,
    home_named,
    is_here,
    settings_of,
    shared_skills,
)
from ._kept_files import check_place
from ._trial import Trial, try_hook
from .environment import Environment, missing_parts, version_of
from .package_checks import search_packages
from .program import InstalledProgram
from .templates import fill_sample_home, plan_template, templated_home


@dataclass
class Installed:
    """The result of an install or a dry run.

    `refused` has the errors of homes that were left out. An install has a trial for each home; a
    dry run has no `trials`."""

    paths: ProgramPaths
    targets: list[Target]
    plans: list[HomePlan]
    is_sample: bool
    is_dry_run: bool
    program: InstalledProgram
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: list[SessionMemoryError] = field(default_factory=list)

    @property
    def has_problems(self) -> bool:
        """Return whether packages are missing that could not be installed."""
        return not self.is_dry_run and bool(self.program.environment.problems)


class _Plans(NamedTuple):
    """The homes that can be changed with their changes, and the reasons against the others."""

    targets: list[Target]
    plans: list[HomePlan]
    refused: list[SessionMemoryError]


class InstallRequest(NamedTuple):
    """The homes and runtimes to install into; without either, all that can be found.

    `extras` are added to the environment. With `skills_for_all`, skills are also put where several
    runtimes look. A `dry_run` changes nothing."""

    roots: list[str]
    runtimes: Collection[Runtime] = ()
    extras: Collection[str] = ()
    skills_for_all: bool = False
    dry_run: bool = False


def install(
    request: InstallRequest,
    paths: ProgramPaths,
    environ: Mapping[str, str],
    terminal: Terminal,
    *,
    is_allowed: bool,
) -> Installed:
    """Install into the requested homes, or into a sample home if there are none.

    A home with invalid settings is left out; if all are invalid, nothing is changed. If it
    `is_allowed`, agents may also look things up without asking. Raises SessionMemoryError, OSError.
    """
    source = source_dir()
    program.check_source(source)
    program.check_name(paths)
    if environ.get(ENV_DIR):
        check_place(person_home(environ).memory_dir)
    foreseen = _foreseen_plans(request, paths, environ, is_allowed=is_allowed)
    targets = foreseen.targets
    is_sample = bool(targets) and targets[0].root == str(paths.sample_home)
    if request.dry_run:
        installed = _foreseen_program(paths, source, request.extras)
        return Installed(
            paths, targets, foreseen.plans, is_sample, True, installed, refused=foreseen.refused
        )
    with program.locked(paths) as made_for_us:
        # as it is now: another install may have been at work until now
        ledger = InstallLedger.read(paths.ledger_file)
        program.note_directories(made_for_us, ledger)
        installed = program.ensure_program(paths, source, terminal, request.extras)
        unsearched = search_packages(installed.environment, environ)
        if is_sample:
            fill_sample_home(paths.sample_home, source)
        place = _installed_paths(paths, installed.environment.python, environ)
        made = _plans_for(request, place, ledger, environ, is_allowed=is_allowed)
        for plan in made.plans:
            plan.make(ledger)
        trials = [_trial(target, plan, environ) for target, plan in zip(made.targets, made.plans)]
    notes = [*unsearched, *_notes(paths, environ)]
    return Installed(
        paths, made.targets, made.plans, is_sample, False, installed, trials, notes, made.refused
    )


def _installed_paths(
    paths: ProgramPaths, python: str, environ: Mapping[str, str]
) -> InstalledPaths:
    wants_notices = person_home(environ).settings().wants_notice_hooks
    return InstalledPaths(source_dir(), python, paths, wants_notices)


def _foreseen_plans(
    request: InstallRequest,
    paths: ProgramPaths,
    environ: Mapping[str, str],
    *,
    is_allowed: bool,
) -> _Plans:
    """Return the plans as they are before the environment is made.

    An install gets none if a settings file needs a package that the environment will have. A dry
    run raises SettingsFileError."""
    ledger = InstallLedger.read(paths.ledger_file)
    try:
        place = _installed_paths(paths, str(paths.python), environ)
        return _plans_for(request, place, ledger, environ, is_allowed=is_allowed)
    except SettingsFileError as error:
        if request.dry_run or not error.needs_package:
            raise
        return _Plans([], [], [])


def _plans_for(
    request: InstallRequest,
    made_from: InstalledPaths,
    ledger: InstallLedger,
    environ: Mapping[str, str],
    *,
    is_allowed: bool,
) -> _Plans:
    """Return the plans for the homes of a request, or for a sample home if there are none."""
    absent: list[SessionMemoryError] = []
    paths = made_from.paths
    targets = _targets(request, ledger, paths, environ, absent) or [_sample_target(paths, environ)]
    plans = _planned(targets, made_from, ledger, request.skills_for_all, is_allowed)
    return plans._replace(refused=[*absent, *plans.refused])


def _planned(
    targets: list[Target],
    made_from: InstalledPaths,
    ledger: InstallLedger,
    skills_for_all: bool,
    is_allowed: bool,
) -> _Plans:
    """Return the plans for `targets`. Raises the first target's error if none can be changed."""
    plans = _Plans([], [], [])
    for target in targets:
        try:
            if target.kind == "template":
                plan = plan_template(
                    target.root, ledger.records[target.root].template, made_from.source, ledger
                )
            else:
                plan = plan_install(
                    target, made_from, ledger, for_all=skills_for_all, allow=is_allowed
                )
            for change in plan.changes:
                change.check()
        except SessionMemoryError as error:
            plans.refused.append(error)
        else:
            plans.targets.append(target)
            plans.plans.append(plan)
    if plans.refused and all(target.kind == "skills" for target in plans.targets):
        raise min(plans.refused, key=lambda error: not getattr(error, "needs_package", False))
    return plans


def _targets(
    request: InstallRequest,
    ledger: InstallLedger,
    paths: ProgramPaths,
    environ: Mapping[str, str],
    refused: list[SessionMemoryError],
) -> list[Target]:
    """Return the requested homes, and the folders of skills that several of them share.

    `refused` gets the reason for each named home that is left out."""
    targets = _named(request, ledger, environ, refused)
    if not request.roots and not request.runtimes:
        templated = [
            target for home in ledger.records if (target := templated_home(home, ledger, environ))
        ]
        roots = [*(target.root for target in templated), str(paths.sample_home)]
        targets = [*find(ledger, environ, os.getcwd(), but=roots), *templated]
    runtime_targets = [target for target in targets if target.kind == "runtime"]
    skills = shared_skills(environ)
    if (
        runtime_targets
        and skills.root not in [target.root for target in targets]
        and (
            request.skills_for_all
            or any(
                not target.runtime.install.SKILLS_FOLDER and not target.plugins
                for target in runtime_targets
            )
        )
    ):
        targets.append(skills)
    for target in runtime_targets:
        record = ledger.records.get(target.root)
        if (
            record
            and skills.root not in ledger.records
            and (theirs := record.taken_below(skills.root))
        ):
            theirs.runtime = SHARED_SKILLS_FOLDER
            ledger.records[skills.root] = theirs
    return targets


def _named(
    request: InstallRequest,
    ledger: InstallLedger,
    environ: Mapping[str, str],
    refused: list[SessionMemoryError],
) -> list[Target]:
    """Return the homes that were named, and add the reasons against others to `refused`.

    Raises NoHomeError."""
    targets = [
        templated_home(path, ledger, environ) or home_named(path, ledger, environ)
        for path in request.roots
    ]
    for runtime in request.runtimes:
        target = settings_of(runtime, environ)
        if is_here(runtime, environ):
            targets.append(target)
            continue
        names = runtime.install
        where = f"{target.settings_dir} does not exist" + (
            f", nor a command {names.COMMAND}" if names.COMMAND else ""
        )
        hint = "start it once, then run this command again"
        refused.append(NoHomeError(f"{runtime.TITLE} is not on this machine: {where}", hint))
    if refused and not targets:
        raise refused[0]
    return list({target.root: target for target in targets}.values())


def _sample_target(paths: ProgramPaths, environ: Mapping[str, str]) -> Target:
    """The sample home, which has its transcripts in itself."""
    root = str(paths.sample_home)
    config_dir = f"{root}/{RUNTIME.install.HOME_FOLDER}"
    sessions_dir = f"{root}/{MEMORY_DIR}/{RUNTIME.SESSIONS_FOLDER}"
    return Target(
        "agent",
        root,
        config_dir,
        root,
        config_dir,
        home_at(root, environ, sessions_dir=sessions_dir),
    )


def _foreseen_program(
    paths: ProgramPaths, source: Path, extras: Collection[str]
) -> InstalledProgram:
    """Return the program as an install would leave it."""
    missing = missing_parts(paths, source / program.LOCK_FILE)
    version = version_of(paths.python)
    state = "ready" if version else "missing"
    return InstalledProgram(
        Environment(str(paths.python), version, state, dict.fromkeys([*missing, *extras], "")),
        not program.is_current(paths, source, version),
        not program.is_our_link(paths) and not program.link_problem(paths),
    )


def _notes(paths: ProgramPaths, environ: Mapping[str, str]) -> list[str]:
    problem = program.link_problem(paths)
    if problem:
        return [problem]
    if str(paths.bin_dir) not in environ.get("PATH", "").split(os.pathsep):
        add = 'export PATH="$HOME/.local/bin:$PATH"'
        return [
            f"{paths.bin_dir} is not on your PATH. Add this line to the startup file of your "
            f"shell:\n{add}"
        ]
    return []


def _trial(target: Target, plan: HomePlan, environ: Mapping[str, str]) -> Trial:
    if not plan.hooks:
        return Trial(reason="its agent asks by itself")
    event = target.runtime.PROMPT_EVENT
    command = next((hook.command for hook in plan.hooks if hook.event == event), "")
    return try_hook(target, command, environ, is_timed=False)
