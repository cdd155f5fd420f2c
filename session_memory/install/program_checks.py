"""Whether the installed program is whole: the copy, its compiled modules, the environment, the command."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from .environment import missing_groups, names_of
from .finding import Finding, note, ok, wrong
from .interpreter import minor, version_of
from .ledger import LedgerError, read_ledger
from .places import NAME, Places
from .program import is_our_link

REINSTALL = "run install.py again, from a copy of the repository"


def check_program(places: Places, environ: Mapping[str, str]) -> list[Finding]:
    """What there is to say of the program, whatever the homes."""
    if not (places.app / "session_memory" / "hooks" / "prompt.py").is_file():
        return [wrong("program", f"{places.app} is not there", REINSTALL)]
    version = version_of(places.python)
    findings = [_check_copy(places, version), _check_environment(places, version)]
    try:
        read_ledger(places.ledger_file)
    except LedgerError as error:
        findings.append(wrong("ledger", f"{error}", error.hint))
    findings.append(_check_command(places, environ))
    return findings


def _check_copy(places: Places, version: str) -> Finding:
    text = (places.app / "session_memory" / "__init__.py").read_text(errors="replace")
    found = re.search(r'__version__ = "([^"]+)"', text)
    about = f"version {found.group(1) if found else 'unknown'} in {places.app}"
    modules = list((places.app / "session_memory").rglob("*.py"))
    # Without an environment the hooks run with some other interpreter, whose modules are looked for by any tag.
    tag = f"cpython-{minor(version).replace('.', '')}" if version else "*"
    bare = [path for path in modules if not list((path.parent / "__pycache__").glob(f"{path.stem}.{tag}.pyc"))]
    if not bare:
        return ok("program", f"{about}, compiled")
    text = f"{about}: {len(bare)} of {len(modules)} modules are not compiled, for which prompts pay"
    if not all(os.access(path.parent, os.W_OK) for path in bare):
        text += f"; {bare[0].parent} cannot be written to"
    return wrong("program", text, REINSTALL)


def _check_environment(places: Places, version: str) -> Finding:
    if not version:
        if not places.env.exists():
            return note("environment", "there is none; the hooks do without, a config.yaml cannot be read", REINSTALL)
        return wrong("environment", f"{places.python} does not run", REINSTALL)
    missing = names_of(missing_groups(places, places.app / "requirements.lock"))
    if missing:
        text = f"Python {version}; not installed: {', '.join(missing)}"
        return note("environment", text, f"where a package index can be reached: {NAME} install")
    return ok("environment", f"Python {version} in {places.env}")


def _check_command(places: Places, environ: Mapping[str, str]) -> Finding:
    if not is_our_link(places):
        return note("command", f"{places.link} does not lead to {places.launcher}", f"run {places.launcher} instead")
    if str(places.bin_dir) not in environ.get("PATH", "").split(os.pathsep):
        return note("command", f"{places.bin_dir} is not on the PATH", f"run {places.link} instead")
    return ok("command", str(places.link))
