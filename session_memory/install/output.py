"""How an install or uninstall is told: to a person, and to a program."""

from __future__ import annotations

from typing import Any

from .. import __version__
from ..settings.compiled import DEFAULTS
from ..system.screen import Screen, enumerated
from ..text.timestamps import age
from . import sample
from .environment import Environment, names_of
from .home_changes import HomePlan
from .homes import Target
from .installation import Installed
from .places import NAME, tilde
from .program import is_our_link
from .removal import Uninstalled
from .trial import Trial


def show_installed(done: Installed, screen: Screen, me: str) -> None:
    """What was installed, what it does, what to do next. `me` is how the user calls this program."""
    about = "a dry run, nothing is changed" if done.is_dry_run else "installed"
    screen.line(screen.paint("bold", f"{NAME} {__version__}") + f": {about}")
    screen.line()
    _show_program(done, screen, me)
    for note in done.notes:
        screen.note(screen.short(note))
    if done.is_sample and not done.is_dry_run:
        _show_sample(done, screen)
    else:
        if done.is_sample:
            screen.heading("No agent home here: a sample of one would be made, to show the hook at work.")
        for index, (target, plan) in enumerate(zip(done.targets, done.plans)):
            _show_home(target, plan, screen, is_dry_run=done.is_dry_run)
            if done.trials:
                screen.line()
                show_trial(done.trials[index], screen)
    if not done.is_dry_run:
        _show_next(done, screen, me)
    screen.result(_installed_result(done))


def show_uninstalled(done: Uninstalled, screen: Screen) -> None:
    """What was taken out, and what is left."""
    about = "a dry run, nothing is changed" if done.is_dry_run else "uninstalled"
    screen.line(screen.paint("bold", f"{NAME} {__version__}") + f": {about}")
    for plan in done.plans:
        if plan.root != str(done.places.sample_home) and plan.changes:
            _show_removal(plan, done, screen)
    would = "would be " if done.is_dry_run else ""
    if done.is_whole:
        screen.heading(f"The program in {tilde(done.places.program_dir, screen.environ)} {would or 'is '}removed")
    for path in done.purged:
        screen.item("purged", f"{tilde(path, screen.environ)} {would or 'is '}deleted")
    for path in done.kept:
        screen.item("kept", f"{tilde(path, screen.environ)} (--purge deletes it too)")
    screen.result(
        {
            "version": __version__,
            "dry_run": done.is_dry_run,
            "program_removed": done.is_whole,
            "homes": [
                {**_changes(plan), "restored": done.restored[plan.root], "notes": plan.skills.notes}
                for plan in done.plans
            ],
            "purged": done.purged,
            "kept": done.kept,
        }
    )


def show_trial(trial: Trial, screen: Screen, *, with_speed: bool = True) -> None:
    """What the next prompt in a home would be told, and how long that takes."""
    if trial.problem:
        screen.note(f"The hook was tried and failed: {screen.short(trial.problem)}")
    elif not trial.session:
        screen.line(f"  Nothing to tell a prompt: {trial.reason}.")
    elif not trial.text:
        screen.line(f"  The next prompt of {screen.short(trial.session)} would be told nothing:")
        screen.line(f"  {trial.reason}.")
    else:
        screen.line(f"  The next prompt of {screen.short(trial.session)} would be told:")
        screen.line()
        screen.quote(trial.text)
        if with_speed:
            screen.line()
    if trial.hook_seconds and with_speed:
        screen.line(f"  {speed(trial)}")


def speed(trial: Trial) -> str:
    """How long the hook took, in a sentence."""
    hook, bare = trial.hook_seconds * 1000, trial.bare_seconds * 1000
    return f"The hook took {hook:.0f} ms; starting a Python that does nothing takes {bare:.0f} ms."


def _show_program(done: Installed, screen: Screen, me: str) -> None:
    would = "would be " if done.is_dry_run else ""
    where = tilde(done.places.env, screen.environ)
    missing = done.environment.missing
    if done.is_dry_run and missing:
        screen.item("environment", f"{where}: {', '.join(missing)} would be installed")
    elif done.environment.state == "missing":
        screen.item("environment", f"none; the hooks run with {done.environment.python}")
    else:
        screen.item("environment", f"{where}, Python {done.environment.version}: {done.environment.state}")
    changed = f"{would}copied and compiled" if done.is_app_changed else "as it was"
    screen.item("program", f"{tilde(done.places.app, screen.environ)}: {changed}")
    link = f"{would}linked" if done.is_link_made else "as it was"
    screen.item("command", f"{tilde(done.places.link, screen.environ)}: {link}")
    if not done.is_dry_run:
        _show_missing(done.environment, screen, me)


def _show_missing(made: Environment, screen: Screen, me: str) -> None:
    """What could not be installed, why, and what to do about it."""
    for problem in dict.fromkeys(made.problems.values()):
        groups = [group for group, its in made.problems.items() if its == problem]
        screen.note(f"Not installed: {', '.join(names_of(groups))} ({problem}).")
    if "basic" in made.problems:
        screen.note("All works without, but for homes with a config.yaml: those are told nothing until then.")
    if made.problems:
        screen.note(f"To add it where a package index can be reached: {me}")


def _show_home(target: Target, plan: HomePlan, screen: Screen, *, is_dry_run: bool) -> None:
    screen.heading(f"{tilde(target.root, screen.environ)} ({target.title})")
    if is_dry_run:
        _show_changes(plan, screen)
    else:
        where = tilde(plan.settings.path, screen.environ)
        if plan.hooks:
            events = enumerated(dict.fromkeys(hook.event for hook in plan.hooks))
            screen.item("hooks", f"{events} in {where}: {_in_words(plan.settings.kind)}")
        changed = any(change.is_one for change in plan.skills.changes)
        if plan.skills.names:
            screen.item("skills", f"{', '.join(plan.skills.names)}: {'copied' if changed else 'as before'}")
    if plan.are_disabled:
        screen.note("disableAllHooks is true in these settings, so that no hook runs. It was left as it is.")
    for note in plan.skills.notes:
        screen.note(screen.short(note))


def _in_words(kind: str) -> str:
    return {"unchanged": "as before", "added": "put in a new file", "changed": "put in"}[kind]


def _show_changes(plan: HomePlan, screen: Screen) -> None:
    """The exact change, as it would be made."""
    if not plan.changes:
        screen.line("  nothing to change")
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in plan.settings.diff().splitlines():
        screen.line(screen.paint(styles[line[0]], line) if line[:1] in styles else line)
    for change in plan.changes:
        if change is not plan.settings:
            verb = {"added": "add", "changed": "replace", "removed": "remove"}[change.kind]
            screen.line(f"  would {verb} {tilde(change.path, screen.environ)}")


def _show_sample(done: Installed, screen: Screen) -> None:
    """The first thing that somebody without any agent home sees."""
    home = tilde(done.places.sample_home, screen.environ)
    screen.heading("You have no agent home yet, so here is one to look at")
    screen.paragraph(
        f"{home} is an agent that is talked to in three sessions. None of them knows what the others do, but for "
        f"the hook in its settings.",
        indent="  ",
    )
    screen.line()
    for name, (whom, minutes) in sample.SESSIONS.items():
        screen.line(f"  {name:<10}{whom:<24}{age(minutes * 60 + 1):>8}")
    screen.line()
    screen.line("  Now you type into main:")
    screen.line()
    screen.line(f"  > {sample.PROMPT}")
    screen.line()
    screen.line("  and before the agent answers, it is told:")
    screen.line()
    trial = done.trials[0]
    if trial.text:
        screen.quote(trial.text)
        screen.line()
        screen.paragraph(
            f"That is all that is added to a prompt: at most {DEFAULTS['max_characters']} characters, made without a "
            f"model and without the network. {speed(trial)} What it wants to know beyond that the agent looks up with "
            f"the skill `sessions`.",
            indent="  ",
        )
    else:
        screen.note(f"nothing: {trial.problem or trial.reason}")


def _show_next(done: Installed, screen: Screen, me: str) -> None:
    command = NAME
    if done.notes:
        path = done.places.link if is_our_link(done.places) else done.places.launcher
        command = tilde(path, screen.environ)
    screen.heading("Next")
    if done.is_sample:
        screen.line(f"  {me} --home PATH")
        screen.line("      installs into a home of yours. Once Claude Code has run here,")
        screen.line(f"      a plain `{me}` finds it.")
    screen.line(f"  {command} doctor")
    screen.line("      checks that all is well, and says how to mend what is not")
    screen.line(f"  {command} uninstall")
    screen.line("      takes everything out again, your settings as they were")


def _show_removal(plan: HomePlan, done: Uninstalled, screen: Screen) -> None:
    screen.heading(tilde(plan.root, screen.environ))
    if done.is_dry_run:
        _show_changes(plan, screen)
    elif plan.settings.is_one:
        is_back = done.restored[plan.root]
        how = "as it was before" if is_back else "our hooks are out, what you changed since stays"
        screen.item("settings", f"{tilde(plan.settings.path, screen.environ)}: {how}")
    if plan.skills.changes and not done.is_dry_run:
        screen.item("skills", "removed")
    for note in plan.skills.notes:
        screen.note(screen.short(note))


def _changes(plan: HomePlan) -> dict[str, Any]:
    return {
        "path": plan.root,
        "settings": {"path": str(plan.settings.path), "change": plan.settings.kind, "diff": plan.settings.diff()},
        "skills": [
            {"path": str(change.path), "change": change.kind} for change in plan.skills.changes if change.is_one
        ],
    }


def _installed_result(done: Installed) -> dict[str, Any]:
    homes = []
    for index, (target, plan) in enumerate(zip(done.targets, done.plans)):
        home = {"kind": target.kind, **_changes(plan), "hooks_disabled": plan.are_disabled, "notes": plan.skills.notes}
        if done.trials:
            trial = done.trials[index]
            home["trial"] = {**vars(trial), "hook_seconds": round(trial.hook_seconds, 5)}
            home["trial"]["bare_seconds"] = round(trial.bare_seconds, 5)
        homes.append(home)
    return {
        "version": __version__,
        "dry_run": done.is_dry_run,
        "program_dir": str(done.places.program_dir),
        "environment": {
            "python": done.environment.python,
            "version": done.environment.version,
            "state": done.environment.state,
            "missing": done.environment.missing,
            "problems": done.environment.problems,
        },
        "program_changed": done.is_app_changed,
        "command": str(done.places.link if is_our_link(done.places) else done.places.launcher),
        "is_sample": done.is_sample,
        "homes": homes,
        "notes": done.notes,
    }
