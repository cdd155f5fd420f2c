"""The command new: its arguments, and how what it did is told."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path

from .. import __version__
from ..system.screen import Screen
from .composition import IDENTITY, TEMPLATES, Composed, compose
from .environment import GROUPS
from .places import NAME, places, tilde

SUMMARY = "make a new agent's home from a template, or renew one"


def add_new_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of new."""
    parser.add_argument("home", metavar="HOME", help="the directory that becomes the agent's home")
    parser.add_argument("--template", choices=list(TEMPLATES), required=True, help="the runtime that the agent runs on")
    parser.add_argument("--force", action="store_true", help="even where there is something else")
    parser.add_argument("--dry-run", action="store_true", help="show the exact change and make none")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run_new(arguments: argparse.Namespace) -> int:
    """Composes the home; returns the exit code."""
    environ = dict(os.environ)
    environ.setdefault("HOME", str(Path.home()))
    screen = Screen(environ, is_json=arguments.json)
    done = compose(
        arguments.home, arguments.template, places(environ), environ, screen,
        force=arguments.force, dry_run=arguments.dry_run,
    )  # fmt: skip
    _show(done, screen)
    screen.result(_result(done))
    return 0


def _show(done: Composed, screen: Screen) -> None:
    is_dry_run = done.environment is None
    about = "a dry run, nothing is changed" if is_dry_run else f"an agent on {done.template}"
    screen.line(screen.paint("bold", f"{NAME} {__version__}") + f": {about}")
    screen.heading(tilde(done.root, screen.environ))
    for change in done.plan.changes:
        name = os.path.relpath(change.path, done.root)
        if is_dry_run:
            for line in change.diff().splitlines():
                screen.line("  " + line)
        else:
            screen.item(change.kind, name)
    if not done.plan.changes:
        screen.line("  as it was")
    for note in done.plan.skills.notes:
        screen.note(screen.short(note))
    if done.environment is None:
        return
    for group, problem in done.environment.problems.items():
        screen.note(f"Not installed: {', '.join(GROUPS[group])} ({problem}).")
    if "sdk" in done.environment.problems and done.template == "agent-sdk":
        screen.note(f"The agent does not start without. Where a package index can be reached: {NAME} install")
    screen.heading("Talk to it:")
    where = tilde(done.root, screen.environ)
    screen.line(f"  cd {shlex.quote(done.root) if ' ' in where else where}")
    screen.line(f'  {TEMPLATES[done.template].start} --session discord "Who are you?"')
    screen.line()
    screen.paragraph(f"Who it is you say in {IDENTITY[0]}. Run this again to renew all but that and the configuration.")


def _result(done: Composed) -> dict[str, object]:
    made = done.environment
    return {
        "version": __version__,
        "dry_run": made is None,
        "template": done.template,
        "home": done.root,
        "files": [{"path": str(change.path), "change": change.kind} for change in done.plan.changes],
        "notes": done.plan.skills.notes,
        "program_dir": str(done.places.program_dir),
        "problems": made.problems if made else {},
    }
