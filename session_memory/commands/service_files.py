"""Service files that keep `session-memory watch` running for a user."""

from __future__ import annotations

import os
import plistlib
import shutil
import sys
from collections.abc import Mapping

from .. import NAME
from ..runtimes import all_runtimes
from ..settings.homes import ENV_HOME
from ..settings.program import program_paths

LABEL = "session-memory-watch"
KINDS = ("systemd", "launchd")


def service(kind: str, home: str | None, environ: Mapping[str, str]) -> str:
    """Return the text of the file for `systemd` or `launchd`, which watches the store of `home`."""
    words = [*_command(environ), "watch", *(["--home", os.path.abspath(home)] if home else [])]
    passed_on = [*(one.CONFIG_VARIABLE for one in all_runtimes()), ENV_HOME]
    variables = {name: environ[name] for name in passed_on if environ.get(name)}
    return _systemd(words, variables) if kind == "systemd" else _launchd(words, variables)


def _command(environ: Mapping[str, str]) -> list[str]:
    """Return the command that starts this program: its launcher, else the current command."""
    launcher = program_paths(environ).launcher
    if launcher.is_file():
        return [str(launcher)]
    found = shutil.which(NAME, path=environ.get("PATH"))
    if found:
        return [os.path.abspath(found)]
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from session_memory.cli import main; sys.exit(main())"
    return [sys.executable, "-c", code, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))]


def _systemd(words: list[str], variables: dict[str, str]) -> str:
    environment = "".join([f"Environment={_quoted(f'{name}={value}')}\n" for name, value in variables.items()])
    return (
        f"# ~/.config/systemd/user/{LABEL}.service; then: systemctl --user enable --now {LABEL}\n"
        "[Unit]\n"
        "Description=session-memory: keeps the store of all sessions up to date\n\n"
        "[Service]\n"
        f"{environment}"
        f"ExecStart={' '.join(map(_quoted, words))}\n"
        "Restart=on-failure\n"
        "RestartSec=10\n"
        "Nice=10\n\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def _quoted(word: str) -> str:
    """Return a word as systemd.syntax(7) and the specifiers of systemd.unit(5) want it."""
    word = word.replace("%", "%%").replace("$", "$$").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{word}"' if not word or any(character in word for character in " \t;'\"\\") else word


def _launchd(words: list[str], variables: dict[str, str]) -> str:
    facts = {
        "Label": LABEL,
        "ProgramArguments": words,
        "EnvironmentVariables": variables,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
    }
    if not variables:
        del facts["EnvironmentVariables"]
    text = plistlib.dumps(facts, sort_keys=False).decode()
    where = f"<!-- ~/Library/LaunchAgents/{LABEL}.plist; then: launchctl load -w that file -->\n"
    head, _, rest = text.partition("\n")
    return f"{head}\n{where}{rest}"
