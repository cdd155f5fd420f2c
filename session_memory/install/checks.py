"""What `doctor` finds: whether the installed program is whole, and whether the hook does its work in a home."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .. import NAME
from ..activity.acknowledgement import kind_of_delivery
from ..errors import SessionMemoryError
from ..hooks.bundle import FILE as BUNDLE_FILE
from ..runtimes import all_runtimes
from ..runtimes.settings_hooks import Hook
from ..settings.homes import agent_home
from ..settings.notices import notices
from ..settings.program import ProgramPaths
from ..text.format import counted, enumerated
from ..text.timestamps import age
from ..transcripts.log import last_entries
from ..upkeep.runs import past_runs
from . import settings_file
from .environment import OLDEST_PYTHON, minor, missing_groups, names_of, version_of
from .file_changes import missing_directories, read_if_there
from .home_changes import ours
from .homes import RUNTIME, Target
from .ledger import InstallLedger, LedgerError, read_ledger
from .program import LOCK_FILE, has_usable_bundle, is_our_link
from .trial import Trial, interpreter_of, modified, try_hook

if TYPE_CHECKING:
    from ..transcripts.entries import Session

OK, NOTE, WRONG = "ok", "note", "wrong"
_REINSTALL = "run install.py again, from a copy of the repository"
_SLOW_RATIO = 5
_LOG_LINES = 3
_UPKEEP_RUNS = 3
_SESSIONS_LOOKED_AT = 20
_ENTRIES_LOOKED_AT = 200  # of a session, for the last prompt


@dataclass(frozen=True)
class Finding:
    """`state` is ok, note (not wrong, yet good to know) or wrong; `about` what was looked at; `mend` what to do."""

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
        read_ledger(paths.ledger_file)
    except LedgerError as error:
        findings.append(Finding(WRONG, "ledger", f"{error}", error.hint))
    deliveries = [
        Finding(OK, "delivery", f"{runtime.INSTALL.TITLE}: {kind_of_delivery(runtime)}") for runtime in all_runtimes()
    ]
    return [*findings, _check_link(paths, environ), *deliveries]


def check_home(
    target: Target, paths: ProgramPaths, ledger: InstallLedger, environ: Mapping[str, str], now: float
) -> tuple[list[Finding], Trial | None]:
    """The findings on a home at `now` (seconds since 1970), and the trial of its hook if there is a hook to try."""
    kept = [*_check_state(target), *_check_config(target), check_upkeep(target, now)]
    if target.kind == "template":
        return [*_check_template(target, ledger), *kept, *_check_log(target)], None
    if not os.access(target.settings_dir, os.R_OK | os.X_OK):
        text = f"{target.settings_dir} cannot be read"
        return [Finding(WRONG, "home", text, f"see: ls -ld {shlex.quote(target.settings_dir)}")], None
    findings, hooks = _check_hooks(target, paths, ledger)
    hook = next((hook for hook in hooks if hook.event == RUNTIME.HOOKS.PROMPT_EVENT), None)
    trial = None
    if hook is not None:
        broken = _check_command(hook.command, target)
        findings += broken
        if not broken:
            trial = try_hook(target, hook.command, environ)
            findings.append(check_trial(trial))
    findings += [*_check_plugins(target), *check_disabled(target), *kept, *_check_transcripts(target)]
    record = ledger.homes.get(target.root)
    if hook is not None and record is not None:
        prompted = _prompted_since(target, record.installed_at, environ)
        served = [session for session in prompted if os.path.exists(target.home.cursor_file(session.key) + ".lock")]
        findings += check_firing(len(prompted), len(served), now - record.installed_at)
    return [*findings, *_check_log(target)], trial


def check_trial(trial: Trial) -> Finding:
    """What a trial says of the hook."""
    if trial.problem:
        text = f"it was run as the runtime runs it, and failed: {trial.problem}"
        return Finding(WRONG, "hook", text, "mend that, or report it")
    if not trial.hook_seconds:
        return Finding(OK, "hook", f"not tried: {trial.reason}")
    hook, bare = trial.hook_seconds * 1000, trial.bare_seconds * 1000
    text = f"it takes {hook:.0f} ms; starting a Python that does nothing takes {bare:.0f} ms"
    if trial.hook_seconds > _SLOW_RATIO * trial.bare_seconds:
        mend = "see `program` above; a network home directory is slow too"
        return Finding(NOTE, "hook", f"{text}: that is slow", mend)
    return Finding(OK, "hook", text)


def check_disabled(target: Target) -> list[Finding]:
    """Whether any settings that count keep hooks from running."""
    names = RUNTIME.INSTALL
    files = [target.settings_file, target.settings_file.with_name(names.LOCAL_SETTINGS_FILE)]
    if target.kind != "runtime":
        files.append(Path(target.config_dir, names.SETTINGS_FILE))
    managed = names.MANAGED_SETTINGS.get(sys.platform)
    findings = []
    for path in dict.fromkeys([*files, *([Path(managed)] if managed else [])]):
        try:
            content = read_if_there(path)
            settings = None if content is None else settings_file.read(content, str(path))
        except SessionMemoryError:
            continue
        if settings and settings.is_on(names.HOOKS_ARE_OFF):
            text = f"{path}: {names.HOOKS_ARE_OFF} is true, so that no hook runs"
            findings.append(Finding(WRONG, "settings", text, "take that line out, if you may"))
        if settings and str(path) == managed and settings.is_on(names.ONLY_MANAGED_HOOKS):
            text = f"{path}: {names.ONLY_MANAGED_HOOKS} is true, so that no hook of yours runs"
            findings.append(Finding(WRONG, "settings", text, "ask who administers this machine"))
    return findings


def check_firing(prompted: int, served: int, age_seconds: float) -> list[Finding]:
    """Whether the hook ran in any (`served`) of the sessions that had prompts (`prompted`) since it was installed,
    `age_seconds` ago."""
    if not prompted or served:
        return []
    which = "the session" if prompted == 1 else f"any of the {prompted} sessions"
    text = f"it has not run in {which} that had prompts since it was installed ({age(age_seconds)})"
    mend = (
        "begin sessions anew that were running then; no hook runs under --bare or --safe-mode, nor where the SDK is "
        "given setting_sources=[]"
    )
    return [Finding(WRONG, "firing", text, mend)]


def _check_app(paths: ProgramPaths, version: str) -> Finding:
    text = (paths.app / "session_memory" / "__init__.py").read_text(errors="replace")
    found = re.search(r'__version__ = "([^"]+)"', text)
    about = f"version {found.group(1) if found else 'unknown'} in {paths.app}"
    modules = list((paths.app / "session_memory").rglob("*.py"))
    # Without an environment the hooks run with some other interpreter: its compiled modules have any tag.
    tag = f"cpython-{minor(version).replace('.', '')}" if version else "*"
    bare = [path for path in modules if not list((path.parent / "__pycache__").glob(f"{path.stem}.{tag}.pyc"))]
    if not bare:
        if version and not has_usable_bundle(paths.app, str(paths.python)):
            text = f"{about}, compiled; {BUNDLE_FILE} is not usable, so that prompts take a little longer"
            return Finding(NOTE, "program", text, _REINSTALL)
        return Finding(OK, "program", f"{about}, compiled")
    text = f"{about}: {len(bare)} of {len(modules)} modules are not compiled, for which prompts pay"
    if not all(os.access(path.parent, os.W_OK) for path in bare):
        text += f"; {bare[0].parent} cannot be written to"
    return Finding(WRONG, "program", text, _REINSTALL)


def _check_environment(paths: ProgramPaths, version: str) -> Finding:
    if not version:
        if not paths.env.exists():
            text = "there is none; the hooks do without, a config.yaml cannot be read"
            return Finding(NOTE, "environment", text, _REINSTALL)
        return Finding(WRONG, "environment", f"{paths.python} does not run", _REINSTALL)
    missing = names_of(missing_groups(paths, paths.app / LOCK_FILE))
    if missing:
        text = f"Python {version}; not installed: {', '.join(missing)}"
        return Finding(NOTE, "environment", text, f"where a package index can be reached: {NAME} install")
    return Finding(OK, "environment", f"Python {version} in {paths.env}")


def _check_link(paths: ProgramPaths, environ: Mapping[str, str]) -> Finding:
    if not is_our_link(paths):
        text = f"{paths.link} does not lead to {paths.launcher}"
        return Finding(NOTE, "command", text, f"run {paths.launcher} instead")
    if str(paths.bin_dir) not in environ.get("PATH", "").split(os.pathsep):
        return Finding(NOTE, "command", f"{paths.bin_dir} is not on the PATH", f"run {paths.link} instead")
    return Finding(OK, "command", str(paths.link))


def _check_hooks(target: Target, paths: ProgramPaths, ledger: InstallLedger) -> tuple[list[Finding], list[Hook]]:
    """Whether every hook of ours is in the settings, and those that are."""
    path = target.settings_file
    try:
        content = read_if_there(path)
        found = settings_file.read(content, str(path)).hooks if content is not None else []
    except SessionMemoryError as error:
        mend = "correct the file; as it is, the runtime may read none of it"
        return [Finding(WRONG, "settings", f"{error}", mend)], []
    is_ours = ours(ledger)
    here = [hook for hook in found if is_ours(hook.command)]
    declared = read_if_there(paths.app / "hooks" / "hooks.json")
    if declared is None:
        return [], here
    wanted = RUNTIME.INSTALL.wanted_hooks(declared.decode(), "python3", str(paths.app))
    present = {(hook.event, hook.matcher) for hook in here}
    missing = dict.fromkeys(hook.event for hook in wanted if (hook.event, hook.matcher) not in present)
    if missing:
        text = f"{path}: the hook for {enumerated(missing)} is not there, so that it never runs"
        return [Finding(WRONG, "hooks", text, _reinstall(target))], here
    return [Finding(OK, "hooks", f"{enumerated(dict.fromkeys(hook.event for hook in here))} in {path}")], here


def _check_plugins(target: Target) -> list[Finding]:
    """Whether a plugin of ours does the same as the hooks in the settings."""
    dirs = dict.fromkeys((target.settings_dir, target.config_dir))
    names = dict.fromkeys(name for path in dirs for name in RUNTIME.INSTALL.plugins_named(path, NAME))
    if not names:
        return []
    text = f"the plugin {enumerated(names)} is switched on too: both hooks run, and each thing is told by one of them"
    return [Finding(NOTE, "plugin", text, "one of both is enough")]


def _check_command(command: str, target: Target) -> list[Finding]:
    """Whether what a hook's command names is there."""
    python = interpreter_of(command)
    version = version_of(python) if python else ""
    if not version:
        return [Finding(WRONG, "interpreter", f"{python or command} is gone or does not run", _reinstall(target))]
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PYTHON:
        text = f"{python} is Python {version}, which is too old"
        return [Finding(WRONG, "interpreter", text, _reinstall(target))]
    scripts = [word for word in shlex.split(command) if word.endswith(".py")]
    gone = [script for script in scripts if not os.path.isfile(script)]
    return [Finding(WRONG, "program", f"{script} is gone", _reinstall(target)) for script in gone]


def _check_template(target: Target, ledger: InstallLedger) -> list[Finding]:
    """Whether what its template put into a home is all there."""
    record = ledger.homes[target.root]
    gone = [path for path in record.files if not os.path.isfile(path)]
    if gone:
        mend = f"{NAME} new {shlex.quote(target.root)} --template {record.template}"
        return [Finding(WRONG, "template", f"{gone[0]} is gone", mend)]
    return [Finding(OK, "template", f"{record.template}, {counted(len(record.files), 'file')}")]


def check_upkeep(target: Target, now: float) -> Finding:
    """Whether upkeep does its work. It may fail once, as on a full disk; what fails each time somebody has to mend."""
    mode, runs = target.home.settings().upkeep, past_runs(target.home)
    if mode != "sessions":
        return Finding(OK, "upkeep", f"{mode}, by config.yaml")
    if not runs:
        return Finding(OK, "upkeep", "begins with the next start or end of a session")
    last, problems = runs[-1], [run.problem for run in runs[-_UPKEEP_RUNS:]]
    if len(problems) == _UPKEEP_RUNS and all(problems):
        text = f"it failed the last {_UPKEEP_RUNS} times, at last {age(now - last.began)}: {last.problem}"
        return Finding(WRONG, "upkeep", text, f"{NAME} status tells more; {NAME} ingest does it now")
    if last.problem:
        return Finding(NOTE, "upkeep", f"it failed {age(now - last.began)}: {last.problem}", "it is tried again")
    return Finding(OK, "upkeep", f"last {age(now - last.began)}")


def _check_state(target: Target) -> list[Finding]:
    state = Path(target.home.state_dir)
    existing = state if state.exists() else missing_directories(state)[0].parent
    if not existing.is_dir():
        text = f"{existing} is no directory: what was told cannot be noted"
        return [Finding(WRONG, "state", text, "move it away")]
    if os.access(existing, os.W_OK | os.X_OK):
        return []
    text = f"{existing} is not writable: what was told cannot be noted, so nothing is told"
    return [Finding(WRONG, "state", text, f"see: ls -ld {shlex.quote(str(existing))}")]


def _check_config(target: Target) -> list[Finding]:
    """What is wrong in the settings that count for a home, and with those left where they were once read."""
    found = [Finding(WRONG, "config", notice, "correct or remove it") for notice in notices(target.home)]
    if found or not os.path.isfile(target.home.config_file):
        return found
    return [Finding(OK, "config", f"{target.home.config_file} is as documented")]


def _check_transcripts(target: Target) -> list[Finding]:
    sessions = target.sessions()
    there = [session.path for session in sessions if os.path.isfile(session.path)]
    where = os.path.dirname(there[0]) if there and target.project else target.transcripts_dir
    if there:
        return [Finding(OK, "transcripts", f"{len(there)} in {where}")]
    if sessions:
        text = f"none of the {len(sessions)} named sessions has a transcript in {where}"
        variable = RUNTIME.FILES.CONFIG_VARIABLE
        mend = f"see that {variable} is what the agent's runtime has, and that it is started in the home"
        return [Finding(WRONG, "transcripts", text, mend)]
    return [Finding(NOTE, "transcripts", f"none yet in {where}")]


def _check_log(target: Target) -> list[Finding]:
    """The last lines of the hook's log, if there are any."""
    try:
        content = read_if_there(Path(target.home.log_file))
    except SessionMemoryError as error:
        return [Finding(NOTE, "log", f"{error}")]
    lines = (content or b"").decode(errors="replace").splitlines()[-_LOG_LINES:]
    return [Finding(NOTE, "log", line) for line in lines]


def _prompted_since(target: Target, since: float, environ: Mapping[str, str]) -> list[Session]:
    """The sessions, of those that were last written, in which somebody prompted after `since` (seconds since 1970)."""
    found = []
    for session in sorted(target.sessions(), key=modified, reverse=True)[:_SESSIONS_LOOKED_AT]:
        entries = last_entries(RUNTIME, session.path, _ENTRIES_LOOKED_AT)[0] if modified(session) > since else []
        prompt = next((entry for entry in reversed(entries) if entry.role == "user"), None)
        if prompt is None or (prompt.timestamp or 0) <= since:
            continue
        # What an agent home's sessions were told is noted there.
        if target.kind == "agent" or not agent_home(prompt.cwd, environ, stop=environ.get("HOME", "")):
            found.append(session)
    return found


def _reinstall(target: Target) -> str:
    return f"{NAME} install --home {shlex.quote(target.root)}"
