"""The checks of `doctor` in a home: does the hook work there?"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import NAME
from ...awareness.events.log import missed_too_often, notices
from ...awareness.install.formats import settings_at
from ...awareness.install.ledger import HomeRecord, InstallLedger
from ...awareness.install.plan import NOTICE_HOOKS, InstalledPaths
from ...awareness.install.settings_file import SettingsFileError
from ...common.errors import SessionMemoryError
from ...common.system.file_changes import missing_directories, read_if_there
from ...common.system.files import user_dir
from ...common.system.git import find_worktree
from ...common.text.format import counted, enumerated
from ...common.text.timestamps import age
from ...sessions.runtimes.install import Hook, Install, text_of
from ...sessions.settings.homes import person_home
from ...sessions.settings.program import ProgramPaths
from ...sessions.settings.registry import agent_home
from ...sessions.transcripts.entries import Session
from ...sessions.transcripts.log import last_entries
from ..upkeep._runs import past_runs
from ._home_changes import extension_names
from ._homes import Target
from ._servers import has_server, needed_values, servers_file
from ._trial import Trial, fault_at_start, interpreter_of, modified, try_hook
from .environment import OLDEST_PYTHON, version_of
from .program_checks import NOTE, OK, WRONG, Finding

_SLOW_RATIO = 5
_LOG_LINES = 3
_UPKEEP_RUNS = 3
_SESSIONS_LOOKED_AT = 20
_ENTRIES_LOOKED_AT = 200  # of a session, for the last prompt


def check_home(
    target: Target,
    paths: ProgramPaths,
    ledger: InstallLedger,
    environ: Mapping[str, str],
    now: float,
) -> tuple[list[Finding], Trial | None]:
    """Return the findings on a home at `now` (seconds since 1970), and the trial of its hook.

    The trial is None without a hook."""
    if target.kind == "skills":
        return [_check_files(target, ledger)], None
    kept, last = [*_check_state(target), check_upkeep(target, now)], _check_log(target)
    if target.kind == "template":
        return [_check_files(target, ledger), *kept, *last], None
    if not os.access(target.settings_dir, os.R_OK | os.X_OK):
        text = f"{target.settings_dir} cannot be read"
        return [
            Finding(WRONG, "home", text, f"see: ls -ld {shlex.quote(target.settings_dir)}")
        ], None
    findings, hooks = _check_hooks(target, paths, ledger)
    hook = next((hook for hook in hooks if hook.event == target.runtime.PROMPT_EVENT), None)
    trial = None
    if hook is not None:
        broken = _check_command(hook.command, target)
        findings += broken
        if not broken:
            findings += check_starts(target, hooks, environ)
            trial = try_hook(target, hook.command, environ, is_timed=True)
            findings.append(check_trial(trial))
    record = ledger.records.get(target.root)
    findings += [
        *_check_status_line(target, ledger),
        *_check_plugins(target, hooks),
        *_check_tools(target, record),
        *check_disabled(target, record),
        *kept,
        *_check_transcripts(target),
    ]
    if record is not None and (hook is not None or extension_names(target)):
        findings += _check_served(target, record.installed_at, environ, now)
    return [*findings, *last], trial


def _check_served(
    target: Target, installed_at: float, environ: Mapping[str, str], now: float
) -> list[Finding]:
    """Check if the hooks have run in all sessions with a prompt since the install."""
    prompted = _prompted_since(target, installed_at, environ)
    served = [
        session
        for session in prompted
        if os.path.exists(target.home.cursor_file(session.key) + ".lock")
    ]
    return list(check_firing(len(prompted), len(served), now - installed_at))


def check_starts(target: Target, hooks: list[Hook], environ: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each reason that keeps some of the hooks from starting."""
    events: dict[str, dict[str, None]] = {}
    faults = {
        command: fault_at_start(target, command, environ)
        for command in dict.fromkeys(hook.command for hook in hooks)
    }
    for hook in hooks:
        if fault := faults[hook.command]:
            events.setdefault(fault, {})[hook.event] = None
    return [
        Finding(WRONG, "hooks", f"{enumerated(names)}: does not start: {fault}", _reinstall(target))
        for fault, names in events.items()
    ]


def check_trial(trial: Trial) -> Finding:
    if trial.problem:
        text = f"a trial run, started as the runtime starts it, failed: {trial.problem}"
        return Finding(WRONG, "hook", text, "fix that, or report it")
    if not trial.hook_seconds:
        return Finding(OK, "hook", f"not tried: {trial.reason}")
    hook, bare = trial.hook_seconds * 1000, trial.bare_seconds * 1000
    text = f"it takes {hook:.0f} ms; starting Python alone takes {bare:.0f} ms"
    if trial.hook_seconds > _SLOW_RATIO * trial.bare_seconds:
        mend = "see `program` above; a network home directory is slow too"
        return Finding(NOTE, "hook", f"{text}: that is slow", mend)
    return Finding(OK, "hook", text)


def check_disabled(target: Target, record: HomeRecord | None = None) -> list[Finding]:
    """Report settings that switch hooks off: the home's, the administrator's or the project's.

    The project is the current directory's. `record` is the ledger's of the home."""
    install = target.runtime.install
    managed = install.MANAGED_SETTINGS.get(sys.platform, "")
    findings = []
    noted = _noted_servers(target, record)
    for path in [noted.get(path, path) for path in _switch_files(target, managed)]:
        try:
            values = _values(path, install)
        except SessionMemoryError as error:
            findings += _unseen(path, error, install)
            continue
        if switch := install.switched_off(values):
            findings.append(
                Finding(
                    WRONG,
                    "settings",
                    f"{path}: {switch}, so no hook runs there",
                    "change that, if you may change the file",
                )
            )
        if str(path) == managed and values.get(install.ONLY_MANAGED_HOOKS) is True:
            text = f"{path}: {install.ONLY_MANAGED_HOOKS} is true, so none of your hooks runs"
            findings.append(Finding(WRONG, "settings", text, "ask who administers this machine"))
    return findings


def _unseen(path: Path, error: SessionMemoryError, install: Install) -> list[Finding]:
    """Report settings that have to allow our plugin, but that only the runtime can read."""
    needed = needed_values(install)
    if not needed or NAME in text_of(str(path)):  # their person may have added it
        return []
    text = f"{error}, so session-memory cannot see if {install.runtime.TITLE} runs its plugin"
    return [Finding(WRONG, "settings", text, f"add {needed}")]


def _values(path: Path, install: Install) -> Mapping[str, Any]:
    """Return the values of a settings file; {} if there is none.

    Raises SettingsFileError, CannotWriteError."""
    content = read_if_there(path)
    if content is None or path.suffix == ".toml":
        return settings_at(content, path, install).decoded()[1] if content else {}
    return settings_at(content, path, install).value_of()


def _switch_files(target: Target, managed: str) -> list[Path]:
    """Return the settings files that could switch off hooks in a home or the current project.

    They need not exist."""
    if target.kind == "skills":
        return []
    install = target.runtime.install
    files = [Path(path) for path in install.switch_files(target.settings_dir)]
    names = [path.name for path in files]
    if target.kind != "runtime":
        files += [Path(target.config_dir, name) for name in names]
    elif not install.EXTENSION_VALUES:  # a plugin is allowed only by its user's own settings
        worktree = find_worktree(os.getcwd())
        root = worktree.root if worktree else os.getcwd()
        files += [Path(root, name) for name in install.PROJECT_SWITCH_FILES]
        if not install.PROJECT_SWITCH_FILES:
            files += [
                Path(top, install.HOME_FOLDER, name)
                for top in (os.getcwd(), root)
                for name in names
            ]
    return list(dict.fromkeys([*files, *([Path(managed)] if managed else [])]))


def check_firing(prompted: int, served: int, age_seconds: float) -> list[Finding]:
    """Report a hook that ran in no session with prompts since its install, `age_seconds` ago."""
    if not prompted or served:
        return []
    which = "the session" if prompted == 1 else f"any of the {prompted} sessions"
    text = f"it was installed {age(age_seconds)} and has not run in {which} with prompts since then"
    mend = (
        "restart sessions that were already running; no hook runs with --bare or --safe-mode, "
        "or if the SDK is started with setting_sources=[]"
    )
    return [Finding(WRONG, "firing", text, mend)]


def _check_hooks(
    target: Target, paths: ProgramPaths, ledger: InstallLedger
) -> tuple[list[Finding], list[Hook]]:
    """Check that the settings have all our hooks, and return those that they have.

    A plugin or extension may replace them."""
    path, install = target.settings_file, target.runtime.install
    has_plugin = bool(target.plugins)
    if path is None:
        return [] if has_plugin else [_check_files(target, ledger)], []
    try:
        content = read_if_there(path)
        hooks = settings_at(content, path, install).read().hooks if content is not None else []
    except SessionMemoryError as error:
        mend = "correct the file; until then, the runtime may ignore all of it"
        if isinstance(error, SettingsFileError) and error.needs_package:
            mend = _reinstall(target)
        return [Finding(WRONG, "settings", f"{error}", mend)], []
    is_ours = ledger.recogniser()
    here = [hook for hook in hooks if is_ours(hook.command)]
    if not (paths.app / "hooks" / NOTICE_HOOKS).is_file() or (has_plugin and not here):
        return [], here
    wanted, notice_events = _wanted_hooks(install, paths)
    present = {(hook.event, hook.matcher) for hook in here}
    missing = dict.fromkeys(
        hook.event for hook in wanted if (hook.event, hook.matcher) not in present
    )
    if missing:
        text = f"{path}: the hook for {enumerated(missing)} is missing, so it never runs"
        return [Finding(WRONG, "hooks", text, _reinstall(target))], here
    events = dict.fromkeys(hook.event for hook in here)
    if unwanted := [event for event in notice_events if event in events]:
        text = f"{path}: the hook for {enumerated(unwanted)} is there, but notices are off"
        return [Finding(NOTE, "hooks", text, f"{NAME} config notices off")], here
    found_all = Finding(OK, "hooks", f"{enumerated(events)} in {path}")
    return [found_all, *_check_trust(target, here)], here


def _wanted_hooks(install: Install, paths: ProgramPaths) -> tuple[list[Hook], list[str]]:
    """Return the hooks that a runtime should have, and the events that only notices need if the
    person wants none."""
    [without, with_notices] = [
        InstalledPaths(paths.app, "python3", paths, has_notices).hooks_for(install)
        for has_notices in (False, True)
    ]
    if person_home(os.environ).settings().wants_notice_hooks:
        return with_notices, []
    return without, [hook.event for hook in with_notices if hook not in without]


def _check_trust(target: Target, here: list[Hook]) -> list[Finding]:
    """Report hooks of ours that the runtime does not trust yet."""
    events = target.runtime.install.untrusted_hooks(target.settings_dir, here)
    if not events:
        return []
    names = enumerated(dict.fromkeys(events))
    text = f"{names}: not trusted yet, so {target.runtime.TITLE} does not run them"
    mend = target.runtime.install.after_install(target.settings_dir)
    return [Finding(WRONG, "trust", text, mend)]


def _check_files(target: Target, ledger: InstallLedger) -> Finding:
    """Check our files that a runtime or template loads, including skills."""
    record = ledger.records.get(target.root)
    about, mend = "extension", _reinstall(target)
    files = [str(Path(target.settings_dir, name)) for name in extension_names(target)]
    if record and target.kind in ("skills", "template"):
        about, files = target.kind, list(record.files)
    if record and record.template:
        mend = f"{NAME} new {shlex.quote(target.root)} --template {record.template}"
    gone = [path for path in files if not os.path.isfile(path)]
    if gone:
        return Finding(WRONG, about, f"{gone[0]} is gone", mend)
    return Finding(
        OK,
        about,
        f"{counted(len(files), 'file')} in {os.path.commonpath(map(os.path.dirname, files))}",
    )


def _check_status_line(target: Target, ledger: InstallLedger) -> list[Finding]:
    """Check that the settings have our status line exactly if the person wants it."""
    install, path, command = (
        target.runtime.install,
        target.status_line_file,
        f"{NAME} config statusline",
    )
    try:
        content = read_if_there(path) if install.STATUS_LINE else None
        is_there = content is not None and settings_at(content, path, install).has_status_line(
            install, ledger.recogniser()
        )
    except SessionMemoryError as error:
        return [Finding(WRONG, "status line", f"{error}", "correct the file")]
    if install.SHOWS_STATUS and target.home.settings().statusline:
        return [Finding(OK, "status line", "on, by the extension")]
    is_wanted = bool(install.STATUS_LINE) and target.home.settings().statusline
    if is_there and is_wanted:
        return [Finding(OK, "status line", f"on, in {path}")]
    if is_wanted:
        return [Finding(NOTE, "status line", f"on, but {path} does not name it", f"{command} on")]
    return (
        [Finding(NOTE, "status line", f"off, but {path} names it", f"{command} off")]
        if is_there
        else []
    )


def _check_plugins(target: Target, hooks: list[Hook]) -> list[Finding]:
    """Report plugins of ours, whether or not the settings have hooks too."""
    dirs = dict.fromkeys((target.settings_dir, target.config_dir))
    names = dict.fromkeys(
        name for path in dirs for name in target.runtime.install.plugins_named(path, NAME)
    )
    if not names:
        return []
    if not hooks:
        return [
            Finding(
                OK, "plugin", f"{enumerated(names)} is switched on and does the work of the hooks"
            )
        ]
    text = (
        f"the plugin {enumerated(names)} is switched on too, so two sets of hooks run; each update "
        "still arrives only once"
    )
    return [Finding(NOTE, "plugin", text, "one of the two is enough")]


def _noted_servers(target: Target, record: HomeRecord | None) -> dict[Path, Path]:
    """Return the usual list of servers with the one that an install changed instead, if any.

    A variable named it then. Another variable counts more than the record."""
    install = target.runtime.install
    path, noted = servers_file(install, target.settings_dir), record.server if record else {}
    is_usual = path is not None and path == Path(target.settings_dir, install.MCP_FILES[0])
    return {path: Path(noted["file"])} if path and is_usual and "file" in noted else {}


def _check_tools(target: Target, record: HomeRecord | None) -> list[Finding]:
    """Check that the runtime lists our MCP server, unless a plugin of ours is there."""
    install = target.runtime.install
    path = servers_file(install, target.settings_dir) if target.kind == "runtime" else None
    if path is None or target.plugins:
        return []
    path = _noted_servers(target, record).get(path, path)
    try:
        if has_server(path, install):
            return [Finding(OK, "tools", f"served by {NAME} mcp, in {path}")]
    except SessionMemoryError as error:
        return [
            Finding(NOTE, "tools", f"{error}", "agents can still run the commands in the skills")
        ]
    return [Finding(NOTE, "tools", f"{path} does not list the server {NAME}", _reinstall(target))]


def _check_command(command: str, target: Target) -> list[Finding]:
    python = interpreter_of(command)
    version = version_of(python) if python else ""
    if not version:
        return [
            Finding(
                WRONG,
                "interpreter",
                f"{python or command} is gone or does not run",
                _reinstall(target),
            )
        ]
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PYTHON:
        text = f"{python} is Python {version}, which is too old"
        return [Finding(WRONG, "interpreter", text, _reinstall(target))]
    scripts = [word for word in shlex.split(command) if word.endswith(".py")]
    gone = [script for script in scripts if not os.path.isfile(script)]
    return [Finding(WRONG, "program", f"{script} is gone", _reinstall(target)) for script in gone]


def check_upkeep(target: Target, now: float) -> Finding:
    """Check the last runs of upkeep. A single failure, as on a full disk, is only noted."""
    mode, runs = target.home.settings().upkeep, past_runs(target.home)
    if mode != "sessions":
        return Finding(OK, "upkeep", f"{mode}, by config.yaml")
    if not runs:
        return Finding(
            OK, "upkeep", "it runs for the first time when a session next starts or ends"
        )
    last, problems = runs[-1], [run.problem for run in runs[-_UPKEEP_RUNS:]]
    if len(problems) == _UPKEEP_RUNS and all(problems):
        text = (
            f"its last {_UPKEEP_RUNS} runs failed, the latest {age(now - last.began)}: "
            f"{last.problem}"
        )
        return Finding(
            WRONG,
            "upkeep",
            text,
            f"run {NAME} doctor status for details, or {NAME} ingest to do its work now",
        )
    if last.problem:
        return Finding(
            NOTE,
            "upkeep",
            f"it failed {age(now - last.began)}: {last.problem}",
            "the next start or end of a session runs it again",
        )
    return Finding(OK, "upkeep", f"last {age(now - last.began)}")


def _check_state(target: Target) -> list[Finding]:
    """Check that state can be written, and report faults in the settings that apply to a home."""
    findings = [
        Finding(WRONG, "config", notice, "correct or remove it") for notice in notices(target.home)
    ]
    if not findings and os.path.isfile(target.home.config_file):
        findings.append(Finding(OK, "config", f"{target.home.config_file} is as documented"))
    state = Path(target.home.state_dir)
    existing = state if state.exists() else missing_directories(state)[0].parent
    if not existing.is_dir():
        text = f"{existing} is not a directory, so deliveries cannot be recorded"
        findings.append(Finding(WRONG, "state", text, "move it away"))
    elif not os.access(existing, os.W_OK | os.X_OK):
        text = f"{existing} is not writable, so deliveries cannot be recorded and agents get no updates"
        findings.append(Finding(WRONG, "state", text, f"see: ls -ld {shlex.quote(str(existing))}"))
    return findings


def _check_transcripts(target: Target) -> list[Finding]:
    sessions = target.sessions()
    there = [session.path for session in sessions if os.path.isfile(session.path)]
    where = os.path.dirname(there[0]) if there and target.project else target.transcripts_dir
    if there:
        return [Finding(OK, "transcripts", f"{len(there)} in {where}")]
    if sessions:
        text = f"none of the {len(sessions)} named sessions has a transcript in {where}"
        variable = target.runtime.CONFIG_VARIABLE
        mend = (
            f"check that the agent's runtime has the same {variable}, and that it is started in "
            f"the home"
        )
        return [Finding(WRONG, "transcripts", text, mend)]
    return [Finding(NOTE, "transcripts", f"none yet in {where}")]


def _check_log(target: Target) -> list[Finding]:
    how = "see hook.log for the cause: a file system that hangs, or a very large history"
    findings = [
        Finding(
            WRONG,
            "deadline",
            f"{event} of session {id} took longer than 1 s {count} times in a row: {what}",
            how,
        )
        for id, event, count, what in missed_too_often(target.home)
    ]
    try:
        content = read_if_there(Path(target.home.log_file)) or b""
    except SessionMemoryError as error:
        return [*findings, Finding(NOTE, "log", f"{error}")]
    lines = content.decode(errors="replace").splitlines()[-_LOG_LINES:]
    return [*findings, *(Finding(NOTE, "log", line) for line in lines)]


def _prompted_since(target: Target, since: float, environ: Mapping[str, str]) -> list[Session]:
    """Return the recently written sessions that got a prompt after `since` (seconds since 1970)."""
    sessions = []
    for session in sorted(target.sessions(), key=modified, reverse=True)[:_SESSIONS_LOOKED_AT]:
        count = _ENTRIES_LOOKED_AT if modified(session) > since else 0
        entries = last_entries(target.runtime, session.path, count, None)[0] if count else []
        prompt = next((entry for entry in reversed(entries) if entry.role == "user"), None)
        if prompt is None or (prompt.timestamp or 0) <= since:
            continue
        # An agent home notes its sessions' reports there.
        if target.kind == "agent" or not agent_home(prompt.cwd, environ, stop=user_dir(environ)):
            sessions.append(session)
    return sessions


def _reinstall(target: Target) -> str:
    return f"{NAME} install --home {shlex.quote(target.root)}"
