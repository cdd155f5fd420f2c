"""Install: every home is checked before anything is changed, and all that is changed can be undone."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..settings.homes import MEMORY_DIR, home_at
from ..settings.program import ProgramPaths, source_dir
from ..system.terminal import Terminal
from . import program
from .environment import Environment, missing_groups, version_of
from .home_changes import HomePlan, InstalledPaths, make_install, plan_install
from .homes import RUNTIME, Target, find, identify
from .ledger import InstallLedger, read_ledger
from .program import InstalledProgram
from .templates import fill_sample_home, plan_template, templated_home
from .trial import Trial, try_hook
from .upkeep_forecast import UpkeepForecast, forecast


@dataclass
class Installed:
    """What was installed, or would be in a dry run, which has no `trials`; else there is one for each home, as there is
    of the `forecasts`."""

    paths: ProgramPaths
    targets: list[Target]
    plans: list[HomePlan]
    is_sample: bool
    is_dry_run: bool
    program: InstalledProgram
    forecasts: list[UpkeepForecast | None]
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def install(
    homes: list[str],
    paths: ProgramPaths,
    environ: Mapping[str, str],
    terminal: Terminal,
    *,
    dry_run: bool,
    skills_for_all: bool,
    allow: Callable[[list[HomePlan]], bool],
    extras: Collection[str] = (),
) -> Installed:
    """Installs into `homes`, or into those that are found; where there is none, into a sample home.

    Nothing is changed before the settings of every home are found to be in order. With `skills_for_all` the skills are
    also put where several runtimes look. `allow` is given what would be done, and says whether agents may also look
    things up without asking; `extras` go into the environment too. Raises SessionMemoryError, OSError.
    """
    source = source_dir()
    program.check_source(source)

    def plans(python: str, ledger: InstallLedger, *, is_allowed: bool) -> tuple[list[Target], list[HomePlan]]:
        made_from = InstalledPaths(source, python, paths)
        targets = _targets(homes, ledger, paths, environ) or [_sample_target(paths, environ)]
        return targets, [_plan(target, made_from, ledger, skills_for_all, is_allowed) for target in targets]

    ledger = read_ledger(paths.ledger_file)
    targets, foreseen = plans(str(paths.python), ledger, is_allowed=False)
    is_allowed = allow(foreseen)
    if is_allowed:
        targets, foreseen = plans(str(paths.python), ledger, is_allowed=True)
    for plan in foreseen:
        for change in plan.changes:
            change.check()
    is_sample = targets[0].root == str(paths.sample_home)
    forecasts = [None if is_sample else forecast(target, environ) for target in targets]
    if dry_run:
        return Installed(
            paths, targets, foreseen, is_sample, dry_run, _foreseen_program(paths, source, extras), forecasts
        )
    with program.locked(paths) as made_for_us:
        ledger = read_ledger(paths.ledger_file)  # as it is now: another install may have been at work until now
        program.note_directories(made_for_us, ledger)
        installed = program.ensure_program(paths, source, terminal, extras)
        if is_sample:
            fill_sample_home(paths.sample_home, source)
        targets, made = plans(installed.environment.python, ledger, is_allowed=is_allowed)
        for plan in made:
            make_install(plan, ledger)
        trials = [_trial(target, plan, environ) for target, plan in zip(targets, made)]
    return Installed(paths, targets, made, is_sample, dry_run, installed, forecasts, trials, _notes(paths, environ))


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


def _plan(
    target: Target, made_from: InstalledPaths, ledger: InstallLedger, skills_for_all: bool, is_allowed: bool
) -> HomePlan:
    if target.kind == "template":
        return plan_template(target.root, ledger.homes[target.root].template, made_from, ledger)
    return plan_install(target, made_from, ledger, for_all=skills_for_all, allow=is_allowed)


def _foreseen_program(paths: ProgramPaths, source: Path, extras: Collection[str]) -> InstalledProgram:
    """What an install would make of the program."""
    missing = missing_groups(paths, source / program.LOCK_FILE)
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
        return [f"{paths.bin_dir} is not on your PATH; until it is, the command is {paths.link}"]
    return []


def _trial(target: Target, plan: HomePlan, environ: Mapping[str, str]) -> Trial:
    if not plan.hooks:
        return Trial(reason="its agent asks by itself")
    command = next((hook.command for hook in plan.hooks if hook.event == RUNTIME.HOOKS.PROMPT_EVENT), "")
    return try_hook(target, command, environ)
