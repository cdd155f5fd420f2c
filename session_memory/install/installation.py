"""Installing: everything is checked before anything is changed, and all that is changed can be changed back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..system.screen import Screen
from . import composition as composing
from . import environment, program, sample
from .environment import Environment
from .home_changes import HomePlan, make_install, plan_install
from .homes import Target, find, identify
from .interpreter import version_of
from .ledger import Ledger, read_ledger
from .lock import locked
from .places import Places, source_dir
from .trial import Trial, try_hook

PROMPT_EVENT = "UserPromptSubmit"


@dataclass
class Installed:
    """What was installed, or would be: `trials` has one for each home, and none in a dry run."""

    places: Places
    targets: list[Target]
    plans: list[HomePlan]
    is_sample: bool
    is_dry_run: bool
    environment: Environment
    is_app_changed: bool
    is_link_made: bool
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def install(
    paths: list[str],
    places: Places,
    environ: Mapping[str, str],
    screen: Screen,
    *,
    dry_run: bool,
    skills_for_all: bool = False,
) -> Installed:
    """Installs into the homes at `paths`, or into those that are found. Raises SessionMemoryError, OSError.

    Before every home's settings are found to be in order nothing is touched anywhere. With `skills_for_all` the skills
    are also put where several runtimes look.
    """
    source = source_dir()
    program.check_source(source)
    ledger = read_ledger(places.ledger_file)
    targets = _targets(paths, ledger, places, environ)
    is_sample = not targets
    if is_sample:
        targets = [sample_target(places)]
    plans = [_plan(target, source, str(places.python), places.app, ledger, skills_for_all) for target in targets]
    for plan in plans:
        for change in plan.changes:
            change.check()
    if dry_run:
        return _foreseen(places, targets, plans, is_sample, source)
    program.make_program_dir(places, ledger)
    with locked(places):
        made = environment.ensure(places, source / "requirements.lock", screen)
        is_app_changed = program.ensure_app(places, source, made)
        program.ensure_launcher(places, made.python)
        result = Installed(
            places, targets, plans, is_sample, dry_run, made, is_app_changed, program.ensure_link(places)
        )
        if is_sample:
            sample.compose(places.sample_home, source / "templates" / "sample")
        result.plans = [_plan(target, source, made.python, places.app, ledger, skills_for_all) for target in targets]
        for plan in result.plans:
            make_install(plan, ledger)
    result.notes = _notes(places, environ)
    result.trials = [_trial(target, plan, environ) for target, plan in zip(targets, result.plans)]
    return result


def sample_target(places: Places) -> Target:
    """The sample home, which has its transcripts in itself."""
    home = str(places.sample_home)
    return Target("agent", home, f"{home}/.claude", home, f"{home}/.claude")


def _targets(paths: list[str], ledger: Ledger, places: Places, environ: Mapping[str, str]) -> list[Target]:
    if paths:
        named = [composing.composed_home(path, ledger) or identify(path, environ) for path in paths]
        return list({target.root: target for target in named}.values())
    composed = [target for home in ledger.homes if (target := composing.composed_home(home, ledger))]
    roots = [target.root for target in composed]
    known = [home for home in ledger.homes if home != str(places.sample_home)]
    return [*(target for target in find(known, environ, os.getcwd()) if target.root not in roots), *composed]


def _plan(target: Target, source: Path, python: str, app: Path, ledger: Ledger, skills_for_all: bool) -> HomePlan:
    """What it takes to have a home up to date, whichever way it became one."""
    if target.kind == "composed":
        template = ledger.homes[target.root].template
        return composing.plan_home(target.root, template, source, python, app, ledger)
    return plan_install(target, source, python, app, ledger, skills_for_all=skills_for_all)


def _foreseen(places: Places, targets: list[Target], plans: list[HomePlan], is_sample: bool, source: Path) -> Installed:
    """What an install would come to."""
    missing = environment.missing_groups(places, source / "requirements.lock")
    version = version_of(places.python)
    return Installed(
        places, targets, plans, is_sample, True,
        Environment(str(places.python), version, "ready" if version else "missing", dict.fromkeys(missing, "")),
        not program.is_current(places, source, version),
        not program.is_our_link(places) and not program.link_problem(places),
    )  # fmt: skip


def _notes(places: Places, environ: Mapping[str, str]) -> list[str]:
    problem = program.link_problem(places)
    if problem:
        return [problem]
    if str(places.bin_dir) not in environ.get("PATH", "").split(os.pathsep):
        return [f"{places.bin_dir} is not on your PATH; until it is, the command is {places.link}"]
    return []


def _trial(target: Target, plan: HomePlan, environ: Mapping[str, str]) -> Trial:
    if not plan.hooks:
        return Trial(reason="its agent asks by itself")
    command = next((hook.command for hook in plan.hooks if hook.event == PROMPT_EVENT), "")
    return try_hook(target, command, environ)
