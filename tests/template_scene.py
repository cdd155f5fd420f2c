"""Homes of agents that are made from the templates."""

from __future__ import annotations

import subprocess
from pathlib import Path

from install_machine import Machine

TEMPLATES = ("agent-sdk", "pi")
AGENTS = {"agent-sdk": "agent.py", "pi": "agent"}


def new(machine: Machine, *words: str) -> subprocess.CompletedProcess[str]:
    return machine.install("new", *words)


def composed(machine: Machine, template: str, name: str = "anna") -> Path:
    """A new home of a template."""
    done = new(machine, name, "--template", template)
    assert (done.returncode, done.stderr) == (0, "")
    return machine.home / name


def machine_with_environment(home: Path) -> Machine:
    """A machine whose private environment stands already."""
    home.mkdir(exist_ok=True)
    return Machine(home).has_environment()
