"""The checks of `doctor` on the installed program: its files, its environment, its command."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ... import NAME
from ...awareness.activity.delivery import kind_of_delivery
from ...awareness.events.bundle import FILE as BUNDLE_FILE
from ...awareness.install.ledger import InstallLedger
from ...common.errors import SessionMemoryError
from ...common.text.format import enumerated
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.program import ProgramPaths
from .environment import minor, missing_parts, names_of, remedy_of, version_of
from .program import LOCK_FILE, has_usable_bundle, is_our_link

OK, NOTE, WRONG = "ok", "note", "wrong"
_REINSTALL = "run install.py again, from a copy of the repository"


@dataclass(frozen=True)
class Finding:
    """One finding.

    `state` is ok, note (not wrong, but good to know) or wrong; `about` the object of the check;
    `mend` the remedy."""

    state: str
    about: str
    text: str
    mend: str = ""


def check_program(paths: ProgramPaths, environ: Mapping[str, str]) -> list[Finding]:
    """The findings on the program, whatever the homes."""
    if not (paths.app / "session_memory" / "__init__.py").is_file():
        return [Finding(WRONG, "program", f"{paths.app} is not there", _REINSTALL)]
    version = version_of(paths.python)
    findings = [_check_app(paths, version), _check_environment(paths, version)]
    try:
        InstallLedger.read(paths.ledger_file)
    except SessionMemoryError as error:
        findings.append(Finding(WRONG, "ledger", f"{error}", error.hint))
    titles: dict[str, list[str]] = {}
    for runtime in [prompted for prompted in all_runtimes() if prompted.PROMPT_EVENT]:
        titles.setdefault(kind_of_delivery(runtime), []).append(runtime.TITLE)
    deliveries = [
        Finding(OK, "delivery", f"{enumerated(names)}: {kind}") for kind, names in titles.items()
    ]
    return [*findings, _check_link(paths, environ), *deliveries]


def _check_app(paths: ProgramPaths, version: str) -> Finding:
    text = (paths.app / "session_memory" / "__init__.py").read_text(errors="replace")
    match = re.search(r'__version__ = "([^"]+)"', text)
    about = f"version {match[1] if match else 'unknown'} in {paths.app}"
    names = {folder: files for folder, _, files in os.walk(paths.app / "session_memory")}
    modules = [
        (folder, file.removesuffix(".py"))
        for folder, files in names.items()
        for file in files
        if file.endswith(".py")
    ]
    # Without an environment the hooks run with another interpreter, so modules compiled for any
    # version count.
    ending = f"cpython-{minor(version).replace('.', '')}.pyc" if version else ".pyc"
    compiled = {
        (os.path.dirname(folder), file.partition(".")[0])
        for folder, files in names.items()
        if folder.endswith("__pycache__")
        for file in files
        if file.partition(".")[2] == ending or (not version and file.endswith(ending))
    }
    bare = [folder for folder, module in modules if (folder, module) not in compiled]
    if not bare:
        if version and not has_usable_bundle(paths.app, str(paths.python)):
            text = f"{about}, compiled; {BUNDLE_FILE} is unusable, so prompts take a little longer"
            return Finding(NOTE, "program", text, _REINSTALL)
        return Finding(OK, "program", f"{about}, compiled")
    text = f"{about}: {len(bare)} of {len(modules)} modules are not compiled, which slows down every prompt"
    if not all(os.access(folder, os.W_OK) for folder in bare):
        text += f"; {bare[0]} cannot be written to"
    return Finding(WRONG, "program", text, _REINSTALL)


def _check_environment(paths: ProgramPaths, version: str) -> Finding:
    if not version:
        if not paths.env.exists():
            text = "it is missing: only the hooks work, and only in homes without a config.yaml"
            return Finding(WRONG, "environment", text, _REINSTALL)
        return Finding(WRONG, "environment", f"{paths.python} does not run", _REINSTALL)
    missing = names_of(missing_parts(paths, paths.app / LOCK_FILE))
    if missing:
        text = f"Python {version}; not installed: {', '.join(missing)}"
        return Finding(
            WRONG,
            "environment",
            text,
            ", then: ".join(filter(None, (remedy_of(paths), f"{NAME} install"))),
        )
    return Finding(OK, "environment", f"Python {version} in {paths.env}")


def _check_link(paths: ProgramPaths, environ: Mapping[str, str]) -> Finding:
    if not is_our_link(paths):
        text = f"{paths.link} does not lead to {paths.launcher}"
        return Finding(NOTE, "command", text, f"run {paths.launcher} instead")
    if str(paths.bin_dir) not in environ.get("PATH", "").split(os.pathsep):
        return Finding(
            NOTE, "command", f"{paths.bin_dir} is not on your PATH", f"run {paths.link} instead"
        )
    return Finding(OK, "command", str(paths.link))
