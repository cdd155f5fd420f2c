"""Whether the hook does its work in one home: settings, interpreter, state, configuration, transcripts, a trial run."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from ..errors import SessionMemoryError
from ..settings import check as config
from ..settings.homes import Home
from ..system.screen import enumerated
from ..text.timestamps import age
from . import settings_file
from .activity import Activity, activity, activity_since
from .file_changes import missing_directories, read_if_there
from .finding import Finding, note, ok, wrong
from .home_changes import ours
from .homes import Target
from .interpreter import OLDEST, version_of
from .ledger import Ledger
from .places import NAME, Places
from .settings_file import Hook
from .trial import Trial, interpreter_of, try_hook

PROMPT_EVENT = "UserPromptSubmit"
_SLOW_RATIO = 5
_LOG_LINES = 3
_MANAGED_SETTINGS = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "linux": "/etc/claude-code/managed-settings.json",
}


def check_home(
    target: Target, places: Places, ledger: Ledger, environ: Mapping[str, str], now: float
) -> tuple[list[Finding], Trial | None]:
    """What there is to say of a home, and the trial of its hook if there is a hook to try."""
    if target.kind == "composed":
        return [
            *_check_composed(target, ledger),
            *_check_state(target),
            *_check_config(target),
            *_check_log(target),
        ], None
    if not os.access(target.claude_dir, os.R_OK | os.X_OK):
        return [
            wrong("home", f"{target.claude_dir} cannot be read", f"see: ls -ld {shlex.quote(target.claude_dir)}")
        ], None
    findings, hooks = _check_settings(target, places, ledger)
    hook = next((hook for hook in hooks if hook.event == PROMPT_EVENT), None)
    trial = None
    if hook is not None:
        broken = _check_command(hook.command, target)
        findings += broken
        if not broken:
            trial = try_hook(target, hook.command, environ)
            findings.append(told_of(trial))
    findings += [*check_disabled(target), *_check_state(target), *_check_config(target), *_check_transcripts(target)]
    record = ledger.homes.get(target.root)
    if hook is not None and record is not None:
        findings += check_firing(activity_since(target, record.installed_at, environ), record.installed_at, now)
    return [*findings, *_check_log(target)], trial


def _reinstall(target: Target) -> str:
    return f"{NAME} install --home {shlex.quote(target.root)}"


def _check_settings(target: Target, places: Places, ledger: Ledger) -> tuple[list[Finding], list[Hook]]:
    """Whether every hook of ours stands in the settings, and those that do."""
    path = target.settings_file
    try:
        content = read_if_there(path)
        found = settings_file.read(content, str(path)).hooks if content is not None else []
    except SessionMemoryError as error:
        return [wrong("settings", f"{error}", "correct the file; as it is, the runtime may read none of it")], []
    is_ours = ours(ledger)
    here = [hook for hook in found if is_ours(hook.command)]
    declared = read_if_there(places.app / "hooks" / "hooks.json")
    if declared is None:
        return [], here
    wanted = settings_file.wanted_hooks(declared.decode(), "python3", str(places.app))
    present = {(hook.event, hook.matcher) for hook in here}
    missing = dict.fromkeys(hook.event for hook in wanted if (hook.event, hook.matcher) not in present)
    if missing:
        text = f"{path}: the hook for {enumerated(missing)} is not there, so that it never runs"
        return [wrong("hooks", text, _reinstall(target))], here
    return [ok("hooks", f"{enumerated(dict.fromkeys(hook.event for hook in here))} in {path}")], here


def _check_composed(target: Target, ledger: Ledger) -> list[Finding]:
    """Whether what its template put into a home is all there."""
    record = ledger.homes[target.root]
    gone = [path for path in record.skills if not os.path.isfile(path)]
    if gone:
        mend = f"{NAME} new {shlex.quote(target.root)} --template {record.template}"
        return [wrong("template", f"{gone[0]} is gone", mend)]
    return [ok("template", f"{record.template}, {len(record.skills)} files")]


def _check_command(command: str, target: Target) -> list[Finding]:
    """Whether what a hook's command names is there."""
    python = interpreter_of(command)
    version = version_of(python) if python else ""
    if not version:
        return [wrong("interpreter", f"{python or command} is gone or does not run", _reinstall(target))]
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        return [wrong("interpreter", f"{python} is Python {version}, which is too old", _reinstall(target))]
    scripts = [word for word in shlex.split(command) if word.endswith(".py")]
    return [
        wrong("program", f"{script} is gone", _reinstall(target)) for script in scripts if not os.path.isfile(script)
    ]


def told_of(trial: Trial) -> Finding:
    """What a trial says of the hook."""
    if trial.problem:
        return wrong(
            "hook", f"it was run as the runtime runs it, and failed: {trial.problem}", "mend that, or report it"
        )
    if not trial.hook_seconds:
        return ok("hook", f"not tried: {trial.reason}")
    hook, bare = trial.hook_seconds * 1000, trial.bare_seconds * 1000
    text = f"it takes {hook:.0f} ms; starting a Python that does nothing takes {bare:.0f} ms"
    if trial.ratio > _SLOW_RATIO:
        return note("hook", f"{text}: that is slow", "see `program` above; a network home directory is slow too")
    return ok("hook", text)


def check_disabled(target: Target) -> list[Finding]:
    """Whether any settings that count keep hooks from running."""
    files = [target.settings_file, target.settings_file.with_name("settings.local.json")]
    if target.kind != "claude":
        files.append(Path(target.config_dir, "settings.json"))
    managed = _MANAGED_SETTINGS.get(sys.platform)
    findings = []
    for path in dict.fromkeys([*files, *([Path(managed)] if managed else [])]):
        try:
            content = read_if_there(path)
            settings = None if content is None else settings_file.read(content, str(path))
        except SessionMemoryError:
            continue
        if settings and settings.are_disabled:
            text = f"{path}: disableAllHooks is true, so that no hook runs"
            findings.append(wrong("settings", text, "take that line out, if you may"))
        if settings and str(path) == managed and settings.are_managed_only:
            text = f"{path}: allowManagedHooksOnly is true, so that no hook of yours runs"
            findings.append(wrong("settings", text, "ask who administers this machine"))
    return findings


def _check_state(target: Target) -> list[Finding]:
    state = Path(Home(str(target.memory_dir.parent)).state_dir)
    existing = state if state.exists() else missing_directories(state)[0].parent
    if not existing.is_dir():
        return [wrong("state", f"{existing} is no directory: what was told cannot be noted", "move it away")]
    if os.access(existing, os.W_OK | os.X_OK):
        return []
    text = f"{existing} is not writable: what was told cannot be noted, so nothing is told"
    return [wrong("state", text, f"see: ls -ld {shlex.quote(str(existing))}")]


def _check_config(target: Target) -> list[Finding]:
    path = target.memory_dir / "config.yaml"
    if not path.is_file():
        return []
    try:
        values = config.read(path)
    except SessionMemoryError as error:
        return [wrong("config", f"{error}. Until then nothing is told", error.hint or "correct the file")]
    except OSError as error:
        return [wrong("config", f"{path}: {error.strerror}", f"see: ls -l {shlex.quote(str(path))}")]
    return [ok("config", f"{path} sets {', '.join(values) or 'nothing'}")]


def _check_transcripts(target: Target) -> list[Finding]:
    found = activity(target)
    if found.transcripts:
        return [ok("transcripts", f"{len(found.transcripts)} in {found.place}")]
    if found.expected:
        text = f"none of the {found.expected} named sessions has a transcript in {found.place}"
        mend = "see that CLAUDE_CONFIG_DIR is what the agent's runtime has, and that it is started in the home"
        return [wrong("transcripts", text, mend)]
    return [note("transcripts", f"none yet in {found.place}")]


def check_firing(since: Activity, installed_at: float, now: float) -> list[Finding]:
    """Whether the hook ran in the sessions that had prompts since it was installed."""
    if not since.prompted or since.served:
        return []
    count = len(since.prompted)
    text = (
        f"it has not run in {'the session' if count == 1 else f'any of the {count} sessions'} that had prompts since "
    )
    text += f"it was installed ({age(now - installed_at)})"
    mend = (
        "begin sessions anew that were running then; no hook runs under --bare or --safe-mode, nor where the SDK is "
        "given setting_sources=[]"
    )
    return [wrong("firing", text, mend)]


def _check_log(target: Target) -> list[Finding]:
    """The last that the hook had to say, if anything."""
    content = None
    try:
        content = read_if_there(Path(Home(str(target.memory_dir.parent)).log_file))
    except SessionMemoryError as error:
        return [note("log", f"{error}")]
    lines = (content or b"").decode(errors="replace").splitlines()[-_LOG_LINES:]
    return [note("log", line) for line in lines]
