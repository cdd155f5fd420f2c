"""Prints the results of install, uninstall and new: as lines for people, as JSON for programs."""

from __future__ import annotations

import os
import shlex
import time
from dataclasses import dataclass
from typing import Any

from ... import NAME, __version__
from ...common.errors import SessionMemoryError
from ...common.system.terminal import Result, Terminal, byte_size
from ...common.text.format import counted, enumerated, one_line, shorten
from ...common.text.sanitize import for_people
from ...history.archives.estimate import archive_bytes
from ...sessions.settings.homes import MEMORY_DIR
from ...sessions.settings.program import EXTRAS
from ._home_changes import HomePlan
from ._homes import Target, only_read
from ._installation import Installed
from ._installers import NO_PIP
from ._uninstallation import Uninstalled
from .environment import Environment, names_of, sizes_of
from .example import PastUpdate
from .program import command_path
from .templates import IDENTITY, TEMPLATES, NewHome

ABOUT = "with your next prompt, each of your agents learns what your other sessions did."
TITLE_CHARACTERS = 60
STEP_CHARACTERS = 38
_LACKING = {  # without the packages of a group
    "basic": "agents with a config.yaml get none",
    "store": "nothing is stored or searched",
    "watch": "`watch`, completion and formatted output do not work",
    "page": "the page does not start",
}


def show_title(terminal: Terminal, what: str, *, is_dry_run: bool) -> None:
    about = "a dry run, which changes nothing." if is_dry_run else what
    terminal.paragraph(terminal.paint("bold", f"{NAME} {__version__}: {about}"))


def show_example(update: PastUpdate, terminal: Terminal, *, is_own: bool) -> None:
    """Print the example update, from this person's own sessions or from the sample."""
    name = shorten(one_line(for_people(update.name)), TITLE_CHARACTERS)
    if update.is_waiting:
        introduction = (
            "Two of your branches would conflict if you merged them now. The next prompt of"
        )
        introduction += f' "{name}" ({update.runtime}) gets:'
    elif is_own:
        when = time.strftime("%Y-%m-%d at %H:%M", time.localtime(update.at))
        introduction = f'On {when}, two of your sessions worked in the same project. The next prompt of "{name}"'
        introduction += f" ({update.runtime}) would have got:"
    else:
        introduction = (
            f"For example: Codex edits a file that {update.runtime} has read. With your next prompt"
        )
        introduction += f" {update.runtime} gets:"
    terminal.line()
    terminal.paragraph(introduction)
    terminal.quote(update.text)


@dataclass(frozen=True)
class InstallReport(Result):
    """The outcome of an install; `called_as` is the command that installs again."""

    done: Installed
    called_as: str

    def show(self, terminal: Terminal) -> None:
        _show_installed(self.done, terminal, self.called_as)

    def as_json(self) -> dict[str, Any]:
        return _installed_as_json(self.done)


def _show_installed(done: Installed, terminal: Terminal, called_as: str) -> None:
    terminal.heading("What would be changed:" if done.is_dry_run else "Installed:")
    _show_program(done, terminal, called_as)
    terminal.item("upkeep", f"copies conversations into ~/{MEMORY_DIR}; to turn it off:")
    # not wrapped: it is to be copied
    terminal.line(f"{' ' * 15}{command_of(done, terminal)} config upkeep off")
    places = {
        (target.runtime, target.config_dir) for target in done.targets if target.kind == "runtime"
    }
    kept = archive_bytes({*places, *only_read(os.environ)})
    if kept:
        terminal.item(
            "archives",
            f"the text of all sessions so far, about {byte_size(kept)}; to turn them off:",
        )
        terminal.line(f"{' ' * 15}{command_of(done, terminal)} config archive_history off")
    for note in done.notes:
        text, *commands = note.split("\n")
        terminal.note(terminal.short(text))
        for command in commands:  # not wrapped: it is to be copied
            terminal.line(f"      {command}")
    for index, (target, plan) in enumerate(zip(done.targets, done.plans)):
        _show_home(target, plan, terminal, is_dry_run=done.is_dry_run)
        if done.trials and done.trials[index].problem:
            terminal.note(
                f"A trial run of the hook failed: {terminal.short(done.trials[index].problem)}"
            )
    if done.is_sample:
        terminal.note(
            "No agent that runs hooks was used here yet, so this is a sample with three sessions to "
            "look at."
        )
    _show_refused(done.refused, "Not installed", terminal)


def _show_refused(refused: list[SessionMemoryError], result: str, terminal: Terminal) -> None:
    """Show the errors of homes that were left out."""
    for error in refused:
        hint, *lines = error.hint.rstrip().split("\n")
        terminal.note(f"{result}: {terminal.short(str(error))}" + (f" ({hint})" if hint else ""))
        for line in lines:  # to be copied
            terminal.line(line)


def _refused(errors: list[SessionMemoryError]) -> list[dict[str, str]]:
    return [{"error": str(error), "hint": error.hint} for error in errors]


@dataclass(frozen=True)
class UninstallReport(Result):
    """The outcome of an uninstall."""

    done: Uninstalled

    def show(self, terminal: Terminal) -> None:
        _show_uninstalled(self.done, terminal)

    def as_json(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "dry_run": self.done.is_dry_run,
            "program_removed": self.done.is_whole,
            "homes": [
                {**_changes(plan), "restored": self.done.restored[plan.root], "notes": plan.notes}
                for plan in self.done.plans
            ],
            "purged": list(self.done.purged),
            "kept": [*self.done.kept, *self.done.shared],
            "unreachable": self.done.unreachable,
            "refused": _refused(self.done.refused),
            "left": [leftover._asdict() for leftover in self.done.left],
        }


def _show_uninstalled(done: Uninstalled, terminal: Terminal) -> None:
    show_title(terminal, "uninstalled", is_dry_run=done.is_dry_run)
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
        how = (
            "not ours"
            if done.purged
            else "yours to delete"
            if has_gone
            else "--purge deletes it too, after asking"
        )
        terminal.item("kept", terminal.short(f"{path} ({how})"))
    for path in done.shared:
        terminal.item("kept", terminal.short(f"{path}, because other homes use it too"))
    for leftover in done.left:
        terminal.item("left", terminal.short(f"{leftover.what}: {leftover.remove}"))
    for root in done.unreachable:
        terminal.note(
            f"{terminal.short(root)} is missing, so nothing was removed from it. If you "
            "moved it, run this in a copy of the repository: python3 "
            "install.py --uninstall --home PATH"
        )
    _show_refused(done.refused, "Not uninstalled", terminal)
    if done.refused:
        terminal.note("The program stays, because these settings still name it.")


@dataclass(frozen=True)
class NewHomeReport(Result):
    """A home that was made from a template, or renewed."""

    done: NewHome

    def show(self, terminal: Terminal) -> None:
        _show_new(self.done, terminal)

    def as_json(self) -> dict[str, Any]:
        return {
            "version": __version__,
            "dry_run": self.done.environment is None,
            "template": self.done.template,
            "home": self.done.root,
            "files": [change.as_dict() for change in self.done.plan.changes],
            "notes": self.done.plan.notes,
            "program_dir": str(self.done.paths.program_dir),
            "problems": self.done.environment.problems if self.done.environment else {},
            "missing": list(self.done.missing),
        }


def _show_new(done: NewHome, terminal: Terminal) -> None:
    show_title(terminal, f"an agent on {done.template}", is_dry_run=done.environment is None)
    terminal.heading(terminal.short(done.root))
    for change in done.plan.changes:
        if done.environment is None:
            for line in change.diff().splitlines():
                terminal.line("  " + line)
        else:
            terminal.item(change.kind, os.path.relpath(change.path, done.root))
    if not done.plan.changes:
        terminal.line("  unchanged")
    for note in done.plan.notes:
        terminal.note(terminal.short(note))
    if done.environment is not None:
        _show_missing(done.environment, terminal, f"{NAME} install")
        if done.missing:
            terminal.heading(
                f"It runs on {sizes_of(done.missing)}, which is not installed. Install it first:"
            )
            extras = "".join(f" --with {name}" for name in done.missing)
            terminal.line(
                f"  {NAME} new {shlex.quote(done.root)} --template {done.template}{extras}"
            )
        terminal.heading("Talk to it:")
        where = terminal.short(done.root)
        terminal.line(f"  cd {shlex.quote(done.root) if ' ' in where else where}")
        terminal.line(f'  {TEMPLATES[done.template].start} --session discord "Who are you?"')
        terminal.line()
        terminal.paragraph(
            f"{IDENTITY[0]} says who the agent is. Run this command again to renew everything except "
            "that file and the configuration."
        )


def _show_program(done: Installed, terminal: Terminal, called_as: str) -> None:
    environment = done.program.environment
    if done.is_dry_run and environment.missing:
        terminal.item(
            "environment",
            f"{terminal.short(str(done.paths.env))}: {', '.join(environment.missing)}",
        )
    app = terminal.short(str(done.paths.app))
    python = "" if environment.state == "missing" else f", with Python {environment.version}"
    terminal.item("program", f"{app}{python}{'' if done.program.is_app_changed else ', unchanged'}")
    terminal.item(
        "command",
        terminal.short(f"{done.paths.link}{'' if done.program.is_link_made else ', unchanged'}"),
    )
    if not done.is_dry_run:
        _show_missing(environment, terminal, called_as)


def _show_missing(environment: Environment, terminal: Terminal, called_as: str) -> None:
    """Print the failed parts of an install, the reasons, and the remedies."""
    for problem in dict.fromkeys(environment.problems.values()):
        parts = [part for part, its in environment.problems.items() if its == problem]
        terminal.note(f"Not installed: {', '.join(names_of(parts))} ({problem}).")
    if not environment.problems:
        return
    lacking = [what for part, what in _LACKING.items() if part in environment.problems]
    if lacking:
        terminal.note(f"Prompts get updates without these packages, but {enumerated(lacking)}.")
    extras = "".join([f" --with {name}" for name in environment.problems if name in EXTRAS])
    where = (
        ""
        if environment.remedy or NO_PIP in environment.problems.values()
        else ", while a package index can be reached"
    )
    terminal.note(f"To install them{where}:")
    for command in filter(None, (environment.remedy, f"{called_as}{extras}")):
        terminal.line(f"      {command}")


def _show_home(target: Target, plan: HomePlan, terminal: Terminal, *, is_dry_run: bool) -> None:
    if is_dry_run:
        terminal.heading(f"{terminal.short(target.root)} ({target.title})")
        _show_changes(plan, terminal)
    else:
        parts = [f"{kind}{' as before' if not is_new else ''}" for kind, is_new in _parts_of(plan)]
        if plan.plugins:
            parts.append(
                f"nothing, since {enumerated(plan.plugins)} is already there and does the same"
            )
        parts = parts or [
            "renewed" if any(change.is_needed for change in plan.changes) else "as before"
        ]
        where = plan.settings.path if plan.settings and plan.hooks else target.root
        label = {"runtime": target.runtime.TITLE, "skills": "skills", "template": "template"}.get(
            target.kind, "agent"
        )
        terminal.item(label, terminal.short(f"{where}: {'; '.join(parts)}"))
        further = target.runtime.install.after_install(target.settings_dir)
        if (plan.hooks or plan.extensions) and further:
            terminal.note(further)
    if plan.switched_off:
        terminal.note(
            f"{plan.switched_off} in these settings, so our hooks do not run. The setting was not changed."
        )
    for note in plan.notes:
        terminal.note(terminal.short(note))


def _parts_of(plan: HomePlan) -> list[tuple[str, bool]]:
    """Return the kinds of our parts in a home after the change, each with whether it is new."""
    is_changed = any(change.is_needed for change in plan.files)
    hooks_are_new = bool(plan.settings and plan.settings.kind != "unchanged")
    in_folders = [path.parent if path.parent.name == NAME else path for path in plan.extensions]
    extensions = dict.fromkeys(path.name for path in in_folders)
    return [
        *([("hooks", hooks_are_new)] if plan.hooks else []),
        *[(f"extension {name}", is_changed) for name in extensions],
        *(
            [("tools", any(change.is_needed for change in (plan.settings, plan.server) if change))]
            if plan.has_tools
            else []
        ),
        *([(f"{len(plan.rules)} rules for lookups", hooks_are_new)] if plan.rules else []),
        *([(f"skills {enumerated(plan.skills)}", is_changed)] if plan.skills else []),
    ]


def _show_changes(plan: HomePlan, terminal: Terminal) -> None:
    if not plan.changes:
        terminal.line("  nothing to change")
    styles = {"+": "green", "-": "red", "@": "dim"}
    shown = [change for change in (plan.settings, plan.server) if change]
    for line in [line for change in shown for line in change.diff().splitlines()]:
        terminal.line(terminal.paint(styles[line[0]], line) if line[:1] in styles else line)
    for change in plan.changes:
        if change not in shown:
            verb = {"added": "add", "changed": "replace", "removed": "remove"}[change.kind]
            terminal.line(terminal.short(f"  would {verb} {change.path}"))


def command_of(done: Installed, terminal: Terminal) -> str:
    """Return the installed command as this person's shell finds it."""
    return terminal.short(str(command_path(done.paths))) if done.notes else NAME


def show_next(done: Installed, terminal: Terminal, called_as: str) -> None:
    """Print the one next step."""
    command = command_of(done, terminal)
    terminal.heading("Next")
    if done.is_sample:
        sample = terminal.short(str(done.paths.sample_home))
        _show_step("Look at the sample:", terminal, f"{command} page --home {sample}")
        _show_step("Once you have used an agent here:", terminal, called_as)
        return
    agents = [target.runtime for target in done.targets if target.kind != "skills"]
    if any(runtime.PROMPT_EVENT for runtime in agents):
        text = "Start a new session of your agent. With each prompt it learns what your other sessions did."
    else:
        title = enumerated([runtime.TITLE for runtime in agents])
        text = (
            f"{title} runs no hooks of {NAME}, so its agents get no updates. Agents of other runtimes "
            "hear of its sessions, and you can search them."
        )
    terminal.paragraph(text, first="  ", indent="  ")
    _show_step("To see the state and everything else you can do:", terminal, command)


def _show_step(what: str, terminal: Terminal, command: str) -> None:
    """Print the purpose of a command, and the command on one line that can be copied."""
    terminal.paragraph(what, first="  ", indent="  ")
    terminal.line(f"    {command}")


def show_rules(done: Installed, terminal: Terminal) -> None:
    """Print how many rules each home got."""
    for target, plan in zip(done.targets, done.plans):
        if plan.rules:
            terminal.item(target.runtime.TITLE, f"{len(plan.rules)} rules for lookups")


def _show_removal(plan: HomePlan, done: Uninstalled, terminal: Terminal) -> None:
    terminal.heading(terminal.short(plan.root))
    if done.is_dry_run:
        _show_changes(plan, terminal)
    elif plan.settings and plan.settings.is_needed:
        is_back = done.restored[plan.root]
        was = "as it was before" if plan.settings.after else "removed, since there was none before"
        how = was if is_back else "our hooks were removed; your later changes stay"
        terminal.item("settings", terminal.short(f"{plan.settings.path}: {how}"))
    if plan.server and plan.server.is_needed and not done.is_dry_run:
        terminal.item("tools", terminal.short(f"{plan.server.path}: our server was removed"))
    if plan.files and not done.is_dry_run:
        terminal.item("files", f"{counted(len(plan.files), 'file')} of ours removed")
    for note in plan.notes:
        terminal.note(terminal.short(note))


def _changes(plan: HomePlan) -> dict[str, Any]:
    return {
        "path": plan.root,
        "runtime": plan.runtime,
        "settings": plan.settings and {**plan.settings.as_dict(), "diff": plan.settings.diff()},
        "server": plan.server and {**plan.server.as_dict(), "diff": plan.server.diff()},
        "skills": [change.as_dict() for change in plan.files if change.is_needed],
    }


def _installed_as_json(done: Installed) -> dict[str, Any]:
    changes: list[dict[str, Any]] = [
        {
            "kind": target.kind,
            **_changes(plan),
            "rules": plan.rules,
            "hooks_disabled": bool(plan.switched_off),
            "plugins": plan.plugins,
            "notes": plan.notes,
        }
        for target, plan in zip(done.targets, done.plans)
    ]
    for home, trial in zip(changes, done.trials):
        home["trial"] = vars(trial)
    return {
        "version": __version__,
        "dry_run": done.is_dry_run,
        "program_dir": str(done.paths.program_dir),
        "environment": {
            **vars(done.program.environment),
            "missing": done.program.environment.missing,
        },
        "program_changed": done.program.is_app_changed,
        "command": str(command_path(done.paths)),
        "is_sample": done.is_sample,
        "homes": changes,
        "notes": done.notes,
        "refused": _refused(done.refused),
    }
