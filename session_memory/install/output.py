"""Shows the results of install, uninstall and new: to a person in lines, to a program as one JSON object."""

from __future__ import annotations

import os
import shlex
from typing import Any

from .. import NAME, __version__
from ..system.terminal import Terminal
from ..text.format import counted, enumerated
from .environment import EXTRAS, Environment, names_of
from .home_changes import HomePlan
from .homes import Target
from .installation import Installed
from .program import command_path
from .templates import IDENTITY, SAMPLE_PROMPT, TEMPLATES, NewHome
from .trial import Trial
from .uninstallation import Uninstalled


def show_installed(done: Installed, terminal: Terminal, called_as: str) -> None:
    """Print the result of an install, and what to do next. `called_as` is how the user calls this program."""
    _show_title("installed", terminal, is_dry_run=done.is_dry_run)
    terminal.line()
    _show_program(done, terminal, called_as)
    for note in done.notes:
        terminal.note(terminal.short(note))
    if done.is_sample:
        terminal.heading("You have no agent home yet: a sample shows the hook at work")
    shown: set[str] = set()  # sessions: in a project the prompts of all runtimes get the same
    for index, (target, plan) in enumerate(zip(done.targets, done.plans)):
        _show_home(target, plan, terminal, is_dry_run=done.is_dry_run)
        trial = done.trials[index] if done.trials and plan.hooks else None
        is_new = trial and trial.session not in shown and (trial.session or not shown)
        if trial and (trial.problem or is_new):
            shown.add(trial.session)
            if done.is_sample:
                terminal.paragraph(f"Someone types into its session main: {SAMPLE_PROMPT}", indent="  ")
            terminal.line()
            show_trial(trial, terminal)
    for error in done.refused:
        terminal.note(f"Not installed: {terminal.short(str(error))}" + (f" ({error.hint})" if error.hint else ""))
    if not done.is_dry_run:
        _show_next(done, terminal, called_as)
    terminal.result(_installed_result(done))


def show_uninstalled(done: Uninstalled, terminal: Terminal) -> None:
    """Print what was removed, and what is left."""
    _show_title("uninstalled", terminal, is_dry_run=done.is_dry_run)
    for plan in done.plans:
        if plan.root != str(done.paths.sample_home) and plan.changes:
            _show_removal(plan, done, terminal)
    verb = "would be" if done.is_dry_run else "is"
    if done.is_whole:
        terminal.heading(terminal.short(f"The program in {done.paths.program_dir} {verb} removed"))
    for path in done.purged:
        terminal.item("purged", terminal.short(f"{path} {verb} deleted"))
    has_gone = done.is_whole and not done.is_dry_run  # and the command with it
    for path in done.kept:
        how = "not ours" if done.purged else "yours to delete" if has_gone else "--purge deletes it too, after asking"
        terminal.item("kept", terminal.short(f"{path} ({how})"))
    for path in done.shared:
        terminal.item("kept", terminal.short(f"{path}, which is not of this home alone"))
    for root in done.unreachable:
        terminal.note(
            f"{terminal.short(root)} is not there, so that nothing was taken out of it. If it was moved: python3 "
            "install.py --uninstall --home PATH, from a copy of the repository."
        )
    terminal.result(
        {
            "version": __version__,
            "dry_run": done.is_dry_run,
            "program_removed": done.is_whole,
            "homes": [
                {**_changes(plan), "restored": done.restored[plan.root], "notes": plan.notes} for plan in done.plans
            ],
            "purged": list(done.purged),
            "kept": [*done.kept, *done.shared],
            "unreachable": done.unreachable,
        }
    )


def show_new(done: NewHome, terminal: Terminal) -> None:
    """The home that was made, and how to talk to its agent."""
    _show_title(f"an agent on {done.template}", terminal, is_dry_run=done.environment is None)
    terminal.heading(terminal.short(done.root))
    for change in done.plan.changes:
        if done.environment is None:
            for line in change.diff().splitlines():
                terminal.line("  " + line)
        else:
            terminal.item(change.kind, os.path.relpath(change.path, done.root))
    if not done.plan.changes:
        terminal.line("  as it was")
    for note in done.plan.notes:
        terminal.note(terminal.short(note))
    if done.environment is not None:
        _show_start(done, done.environment, terminal)
    terminal.result(
        {
            "version": __version__,
            "dry_run": done.environment is None,
            "template": done.template,
            "home": done.root,
            "files": [{"path": str(change.path), "change": change.kind} for change in done.plan.changes],
            "notes": done.plan.notes,
            "program_dir": str(done.paths.program_dir),
            "problems": done.environment.problems if done.environment else {},
        }
    )


def show_trial(trial: Trial, terminal: Terminal) -> None:
    """Print the update that the next prompt in a home would get."""
    if trial.problem:
        terminal.note(f"The hook was tried and failed: {terminal.short(trial.problem)}")
    elif not trial.text:
        terminal.line(f"  The next prompt would get no update: {trial.reason}.")
    else:
        terminal.line(f"  The next prompt of {terminal.short(trial.session)} would get this update:")
        terminal.line()
        terminal.quote(trial.text)


def _show_title(done: str, terminal: Terminal, *, is_dry_run: bool) -> None:
    about = "a dry run, nothing is changed" if is_dry_run else done
    terminal.line(terminal.paint("bold", f"{NAME} {__version__}") + f": {about}")


def _show_program(done: Installed, terminal: Terminal, called_as: str) -> None:
    would = "would be " if done.is_dry_run else ""
    environment = done.program.environment
    where = terminal.short(str(done.paths.env))
    if done.is_dry_run and environment.missing:
        terminal.item("environment", f"{where}: {', '.join(environment.missing)} would be installed")
    elif environment.state == "missing":
        terminal.item("environment", f"none; the hooks run with {environment.python}")
    else:
        terminal.item("environment", f"{where}, Python {environment.version}: {environment.state}")
    changed = f"{would}copied and compiled" if done.program.is_app_changed else "as it was"
    terminal.item("program", terminal.short(f"{done.paths.app}: {changed}"))
    link = f"{would}linked" if done.program.is_link_made else "as it was"
    terminal.item("command", terminal.short(f"{done.paths.link}: {link}"))
    if not done.is_dry_run:
        _show_missing(environment, terminal, called_as)


def _show_missing(environment: Environment, terminal: Terminal, called_as: str) -> None:
    """Print what could not be installed, why, and what to do about it."""
    for problem in dict.fromkeys(environment.problems.values()):
        groups = [group for group, its in environment.problems.items() if its == problem]
        terminal.note(f"Not installed: {', '.join(names_of(groups))} ({problem}).")
    if "basic" in environment.problems:
        terminal.note("All works without, but for homes with a config.yaml: those are told nothing until then.")
    if environment.problems:
        extras = [f" --with {name}" for name in environment.problems if name in EXTRAS]
        terminal.note(f"To add it where a package index can be reached: {called_as}{''.join(extras)}")


def _show_home(target: Target, plan: HomePlan, terminal: Terminal, *, is_dry_run: bool) -> None:
    terminal.heading(f"{terminal.short(target.root)} ({target.title})")
    if is_dry_run:
        _show_changes(plan, terminal)
    else:
        if plan.hooks:
            events = enumerated(dict.fromkeys(hook.event for hook in plan.hooks))
            assert plan.settings
            done = {"unchanged": "as before", "added": "put in a new file", "changed": "put in"}[plan.settings.kind]
            terminal.item("hooks", terminal.short(f"{events} in {plan.settings.path}: {done}"))
        for path in plan.extensions:
            terminal.item("extension", terminal.short(str(path)))
        if plan.rules:
            terminal.item("rules", f"{len(plan.rules)}, with which agents look things up without asking")
        if plan.skills:
            is_changed = any(change.is_needed for change in plan.files)
            terminal.item("skills", f"{', '.join(plan.skills)}: {'copied' if is_changed else 'as before'}")
        if plan.hooks and target.runtime.install.AFTER_INSTALL:
            terminal.note(target.runtime.install.AFTER_INSTALL)
    if plan.plugins:
        what = f"{enumerated(plan.plugins)} is there already, which does the same"
        terminal.item("plugin", f"{what}: nothing is put in beside it")
    if plan.are_disabled:
        key = target.runtime.install.HOOKS_ARE_OFF
        terminal.note(f"{key} is true in these settings, so that no hook runs. It was left as it is.")
    for note in plan.notes:
        terminal.note(terminal.short(note))


def _show_changes(plan: HomePlan, terminal: Terminal) -> None:
    """The exact change, as it would be made."""
    if not plan.changes:
        terminal.line("  nothing to change")
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in plan.settings.diff().splitlines() if plan.settings else ():
        terminal.line(terminal.paint(styles[line[0]], line) if line[:1] in styles else line)
    for change in plan.changes:
        if change is not plan.settings:
            verb = {"added": "add", "changed": "replace", "removed": "remove"}[change.kind]
            terminal.line(terminal.short(f"  would {verb} {change.path}"))


def _show_next(done: Installed, terminal: Terminal, called_as: str) -> None:
    command = terminal.short(str(command_path(done.paths))) if done.notes else NAME
    sample = f" --home {terminal.short(str(done.paths.sample_home))}" if done.is_sample else ""
    steps = {f"{command} page{sample}": "show in the browser what all agents do and did"}
    if done.is_sample:
        steps[f"{called_as} --home PATH"] = "install into an agent's home"
        steps[called_as] = "install into the runtimes that you have used by then"
    elif any(plan.hooks and plan.can_allow and not plan.rules for plan in done.plans):
        steps[f"{called_as} --allow"] = "let agents look things up without asking you for each command"
    steps[f"{command} doctor"] = "check everything, and how to fix what does not work"
    steps[f"{command} config upkeep off"] = "stop copying what is said into the store in the background"
    steps[f"{command} uninstall"] = "take everything out again, your settings as they were"
    terminal.heading("Next")
    for words, what in steps.items():
        terminal.line(f"  {words}")
        terminal.line(f"      {what}")


def _show_removal(plan: HomePlan, done: Uninstalled, terminal: Terminal) -> None:
    terminal.heading(terminal.short(plan.root))
    if done.is_dry_run:
        _show_changes(plan, terminal)
    elif plan.settings and plan.settings.is_needed:
        is_back = done.restored[plan.root]
        was = "as it was before" if plan.settings.after else "removed, since there was none before"
        how = was if is_back else "our hooks are out, what you changed since stays"
        terminal.item("settings", terminal.short(f"{plan.settings.path}: {how}"))
    if plan.files and not done.is_dry_run:
        terminal.item("files", f"{counted(len(plan.files), 'file')} of ours removed")
    for note in plan.notes:
        terminal.note(terminal.short(note))


def _show_start(done: NewHome, environment: Environment, terminal: Terminal) -> None:
    """Print what the agent lacks, and how to talk to it."""
    for group, problem in environment.problems.items():
        terminal.note(f"Not installed: {', '.join(names_of([group]))} ({problem}).")
    if "sdk" in environment.problems and done.template == "agent-sdk":
        terminal.note(
            f"The agent does not start without. Where a package index can be reached: {NAME} install --with sdk"
        )
    terminal.heading("Talk to it:")
    where = terminal.short(done.root)
    terminal.line(f"  cd {shlex.quote(done.root) if ' ' in where else where}")
    terminal.line(f'  {TEMPLATES[done.template].start} --session discord "Who are you?"')
    terminal.line()
    terminal.paragraph(
        f"Who it is you say in {IDENTITY[0]}. Run this again to renew all but that and the configuration."
    )


def _changes(plan: HomePlan) -> dict[str, Any]:
    settings = plan.settings
    return {
        "path": plan.root,
        "runtime": plan.runtime,
        "settings": settings and {"path": str(settings.path), "change": settings.kind, "diff": settings.diff()},
        "skills": [{"path": str(change.path), "change": change.kind} for change in plan.files if change.is_needed],
    }


def _installed_result(done: Installed) -> dict[str, Any]:
    homes = []
    for index, (target, plan) in enumerate(zip(done.targets, done.plans)):
        home = {
            "kind": target.kind,
            **_changes(plan),
            "rules": plan.rules,
            "hooks_disabled": plan.are_disabled,
            "plugins": plan.plugins,
            "notes": plan.notes,
        }
        if done.trials:
            trial = done.trials[index]
            home["trial"] = {**vars(trial), "hook_seconds": round(trial.hook_seconds, 5)}
            home["trial"]["bare_seconds"] = round(trial.bare_seconds, 5)
        homes.append(home)
    return {
        "version": __version__,
        "dry_run": done.is_dry_run,
        "program_dir": str(done.paths.program_dir),
        "environment": {**vars(done.program.environment), "missing": done.program.environment.missing},
        "program_changed": done.program.is_app_changed,
        "command": str(command_path(done.paths)),
        "is_sample": done.is_sample,
        "homes": homes,
        "notes": done.notes,
        "refused": [{"error": str(error), "hint": error.hint} for error in done.refused],
    }
