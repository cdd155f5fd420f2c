"""Plans the changes of an install and an uninstall in one home, then makes them."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...awareness.events.main import HOME_OPTION
from ...common.errors import SessionMemoryError
from ...common.system.git import find_worktree
from ...sessions.runtimes.install import Hook
from ...sessions.settings.program import ProgramPaths
from ..tools.permissions import lookup_rules
from . import _own_content as own_content
from . import _servers as servers
from . import _settings_file as settings_file
from ._file_changes import FileChange, checksum, read_if_there, remove_if_empty
from ._homes import RUNTIME, SHARED_SKILLS_FOLDER, Target
from .ledger import HomeRecord, InstallLedger

# How a SKILL.md names the command as the pack brings it, and the archives of whoever has no agent
# home.
_OF_PLUGINS = b"CLAUDE_PLUGIN_ROOT"  # in lines that only the agents of plugins need
# which is the installed command
_SCRIPT = b'"%b/scripts/memory.py"' % RUNTIME.install.PLUGIN_ROOT.encode()
_ARCHIVES = b'"${SESSION_MEMORY_DIR:-$HOME/.session-memory}/conversations"'
_NO_HOOKS = '{"hooks": {}}'
_MODE = 0o644  # of the files of skills


@dataclass(frozen=True)
class InstalledPaths:
    """The origin of the files in a home: `source` holds hooks/ and skills/, `python` is the
    interpreter; `paths` are those of the installed program."""

    source: Path
    python: str
    paths: ProgramPaths


@dataclass
class HomePlan:
    """The changes to one home.

    `settings` is None where it has none that hooks are put in, `runtime` what the ledger notes it
    by. `hooks` are those that will be in its settings, and `rules` the permission rules that will
    be there and be ours. `switched_off` is the setting that stops our hooks, `can_allow` that they
    can let lookups pass; `stripped` is the settings file without what is ours (None: there was no
    file). `server` and `server_stripped` are the same of a file of its own that lists our MCP
    server, which `has_tools` says the runtime then has. `files` are the changes to other files of
    ours, `checksums` those of the files that are ours afterwards, by path. `skills` are the names
    of the skills that are installed then, `extensions` the paths of what a runtime loads in place
    of hooks. `plugins` are those of ours that are there already, so that nothing else is put there;
    `notes` are for the user."""

    root: str
    settings: FileChange | None
    runtime: str = RUNTIME.name
    hooks: list[Hook] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    switched_off: str = ""
    stripped: bytes | None = None
    server: FileChange | None = None
    server_stripped: bytes | None = None
    has_tools: bool = False
    files: list[FileChange] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)
    skills: list[str] = field(default_factory=list)
    extensions: list[Path] = field(default_factory=list)
    can_allow: bool = False
    plugins: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[FileChange]:
        """The files that will not be as they were."""
        settings = [change for change in (self.settings, self.server) if change]
        return [change for change in (*settings, *self.files) if change.is_needed]

    def put(self, path: Path, content: bytes, known: str | None, mode: int = _MODE) -> None:
        """Plans a file of ours. Where it is not what we wrote (the checksum `known`) the user's
        version is kept."""
        current = read_if_there(path)
        if current is not None and current != content and checksum(current) != known:
            self._keep_aside(path, current)
        self.files.append(FileChange(path, current, content, mode))
        self.checksums[str(path)] = checksum(content)

    def take_away_old(self, known: dict[str, str]) -> None:
        """Plans the removal of files that the ledger says are ours (`known`), and that are not
        planned. Where one is not what we wrote the user's version is kept."""
        for name, known_checksum in known.items():
            path = Path(name)
            if name not in self.checksums and (current := read_if_there(path)) is not None:
                if checksum(current) != known_checksum:
                    self._keep_aside(path, current)
                self.files.append(FileChange(path, current, None))

    def _keep_aside(self, path: Path, current: bytes) -> None:
        """Plans a copy of what the user made of a file, under a name that is free."""
        number = 0
        aside = path.with_name(path.name + ".bak")
        while read_if_there(aside) not in (None, current):
            number += 1
            aside = path.with_name(f"{path.name}.bak{number}")
        self.files.append(FileChange(aside, read_if_there(aside), current, _MODE))
        self.notes.append(
            f"{path} was changed since it was installed: your version is kept as {aside.name}"
        )


def ours(ledger: InstallLedger) -> Callable[[str], bool]:
    """A function that tells whether a hook command is ours: the ledger has it, or it runs a copy of
    this program."""
    known = {command for record in ledger.homes.values() for command in record.commands}
    return lambda command: command in known or _runs_this_program(command)


def plan_install(
    target: Target, made_from: InstalledPaths, ledger: InstallLedger, *, for_all: bool, allow: bool
) -> HomePlan:
    """Plan the changes that put our hooks and skills into a home. With `for_all` the skills are
    also put where several runtimes look; with `allow`, lookups run without asking. Both stay so
    from then on. Raises SettingsFileError, CannotWriteError."""
    record = ledger.homes.get(target.root)
    plan, known = HomePlan(target.root, None, target.runtime.name), record.files if record else {}
    if target.kind == "skills":
        plan.runtime = SHARED_SKILLS_FOLDER
    else:
        plan.plugins = target.plugins
        _plan_hooks(plan, target, made_from, ledger, allow=allow and not plan.plugins)
        if target.kind == "runtime":
            _plan_server(plan, target, made_from.paths, record)
    directories = [] if plan.plugins or target.skills_dir is None else [target.skills_dir]
    is_shared = for_all or any(target.shared_skills_dir in Path(path).parents for path in known)
    if is_shared and target.kind in ("agent", "project"):
        directories.append(target.shared_skills_dir)
    for directory in directories:
        _plan_skills(plan, directory, made_from, known, _archives(target))
    plan.take_away_old(known)
    if target.kind == "agent" and (worktree := find_worktree(target.root)):
        plan.notes.append(
            f"{target.root} is in the work tree {worktree.root}: to keep what its agent "
            f"remembers out of git, add "
            "`conversations/` and `memories/` to a .gitignore. Agents' searches then skip them too."
        )
    return plan


def _plan_hooks(
    plan: HomePlan, target: Target, made_from: InstalledPaths, ledger: InstallLedger, *, allow: bool
) -> None:
    """Plans what has the runtime ask us: hooks and permission rules in its settings, and files of
    ours beside them."""
    install, record, path = (
        target.runtime.install,
        ledger.homes.get(plan.root),
        target.settings_file,
    )
    declared, app = (
        (made_from.source / "hooks" / "hooks.json").read_text(),
        str(made_from.paths.app),
    )
    known = record.files if record else {}
    for name, text in (
        {} if plan.plugins else install.wanted_files(declared, made_from.python, app)
    ).items():
        plan.extensions.append(Path(target.settings_dir, name))
        plan.put(plan.extensions[-1], text.encode(), known.get(str(plan.extensions[-1])))
    if path is None:
        return
    before, is_ours = read_if_there(path), ours(ledger)
    if plan.plugins:
        plan.settings = own_content.restored(path, record or HomeRecord(str(path), ""), is_ours)
        return
    hooks = [
        _naming_home(hook, target) for hook in install.wanted_hooks(declared, made_from.python, app)
    ]
    own_rules = [] if before is None else own_content.own_rules(before, path, record, install)
    rules = lookup_rules(target.runtime, (made_from.paths.command,), _archives(target))
    rules = rules if allow or own_rules else []
    stripped = (
        None if before is None else own_content.stripped(before, path, is_ours, own_rules, install)
    )
    theirs = (
        set() if stripped is None else set(settings_file.read(stripped, str(path), install).rules)
    )
    outdated = [rule for rule in own_rules if rule not in rules]
    after = settings_file.with_hooks(before, str(path), hooks, is_ours, install)
    after = settings_file.without_rules(after, str(path), outdated, install)
    after = settings_file.with_rules(after, str(path), rules, install)
    plan.settings, plan.hooks, plan.stripped = FileChange(path, before, after), hooks, stripped
    plan.can_allow = bool(install.COMMAND_RULE)
    plan.rules = [rule for rule in rules if rule not in theirs]
    plan.switched_off = install.switched_off(settings_file.read(after, str(path), install).values)


def _plan_server(
    plan: HomePlan, target: Target, paths: ProgramPaths, record: HomeRecord | None
) -> None:
    """Plans our MCP server in the runtime's list, which is its settings file or another; that one
    is left as it is if it is not in order, as the runtime may read more than we."""
    install = target.runtime.install
    path, settings = servers.servers_file(install, target.settings_dir), plan.settings
    if path is None or (plan.plugins and not (record and record.server)):
        return
    if settings and settings.path == path:
        plan.settings = replace(
            settings, after=servers.with_server(settings.after, path, install, str(paths.launcher))
        )
        plan.has_tools = True
        return
    try:
        if record and plan.plugins:
            plan.server = own_content.without_server(record)
            return
        before = read_if_there(path)
        plan.server = FileChange(
            path, before, servers.with_server(before, path, install, str(paths.launcher))
        )
        plan.server_stripped = (
            None if before is None else servers.without_server(before, path, install)
        )
        plan.has_tools = True
    except SessionMemoryError as error:
        plan.notes.append(
            f"{error}. The tools are not added there; agents have the commands of the skills."
        )


def _naming_home(hook: Hook, target: Target) -> Hook:
    """Return a hook whose command names the agent home that the settings are of, from the project's
    directory on: in a copy of the home it names the copy."""
    if target.kind != "agent":
        return hook
    below = os.path.relpath(target.root, target.project)
    home = "$CLAUDE_PROJECT_DIR" if below == os.curdir else f"$CLAUDE_PROJECT_DIR/{below}"
    fail_open = target.runtime.install.FAIL_OPEN
    command = f'{hook.command.removesuffix(fail_open)} {HOME_OPTION} "{home}"{fail_open}'
    return Hook(hook.event, hook.matcher, {**hook.entry, "command": command})


def _archives(target: Target) -> str:
    """Return the directory of the archives as skills and rules name it: from an agent home on, if
    it runs there."""
    if target.kind == "agent" and target.project == target.root:
        return os.path.relpath(target.home.conversations_dir, target.root)
    return target.home.conversations_dir


def extension_names(target: Target) -> list[str]:
    """The files of ours beside the settings of a home, as paths in their directory."""
    return (
        list(target.runtime.install.wanted_files(_NO_HOOKS, "", ""))
        if target.kind == "runtime"
        else []
    )


def _plan_skills(
    plan: HomePlan, directory: Path, made_from: InstalledPaths, known: dict[str, str], archives: str
) -> None:
    """Plan every skill in `directory`; a skill there that is not ours (by `known`, from the ledger)
    is left alone. `archives` is the directory of archives that they name."""
    for skill in sorted(path for path in (made_from.source / "skills").glob("*") if path.is_dir()):
        wanted = {
            directory / file.relative_to(skill.parent): _adapted(
                file.read_bytes(), made_from, archives
            )
            for file in _files(skill)
        }
        if _is_foreign(directory / skill.name, wanted, known):
            plan.notes.append(
                f"{directory / skill.name} is not ours and was left alone: the skill "
                f"`{skill.name}` is not "
                "installed. Rename that directory and run this again to have it."
            )
            continue
        if skill.name not in plan.skills:
            plan.skills.append(skill.name)
        for path, content in wanted.items():
            plan.put(path, content, known.get(str(path)))


def plan_uninstall(root: str, record: HomeRecord, is_ours: Callable[[str], bool]) -> HomePlan:
    """Plan the changes that restore a home. Raises SettingsFileError, CannotWriteError."""
    plan = HomePlan(root, None, record.runtime)
    if record.settings_file:
        plan.settings = own_content.restored(Path(record.settings_file), record, is_ours)
    if record.status_line and record.status_line["file"] != record.settings_file:
        plan.files.append(own_content.without_status_line(record, is_ours))
    if record.server:
        with suppress(settings_file.SettingsFileError):  # then it is named as left
            plan.server = own_content.without_server(record)
    plan.take_away_old(record.files)
    for name, known in record.identity.items():
        current = read_if_there(Path(name))
        if current is not None and checksum(current) == known:  # else its user has made it theirs
            plan.files.append(FileChange(Path(name), current, None))
    return plan


def make_install(plan: HomePlan, ledger: InstallLedger) -> None:
    """Makes the changes, each noted in the ledger before. Raises CannotWriteError,
    ChangedMeanwhileError, OSError."""
    if not plan.changes and plan.root in ledger.homes:
        return
    settings = plan.settings
    new = HomeRecord(
        str(settings.path) if settings else "", installed_at=time.time(), runtime=plan.runtime
    )
    record = ledger.homes.setdefault(plan.root, new)
    if settings and settings.after is not None and (settings.is_needed or not record.written):
        record.note_settings(settings.before, plan.stripped, settings.after)
        record.installed_at = time.time()
    if plan.server and plan.server.is_needed and not plan.plugins:
        record.note_server(plan.server, plan.server_stripped)
    record.commands = sorted({*record.commands, *(hook.command for hook in plan.hooks)})
    record.rules = sorted({*record.rules, *plan.rules})
    record.files = {**plan.checksums, **record.files}
    for change in plan.changes:
        record.note_directories(change.path.parent)
    ledger.save()
    for change in plan.changes:
        change.make()
        if change.after is None:
            remove_if_empty(change.path.parent)
    record.files = dict(plan.checksums)
    record.commands = [hook.command for hook in plan.hooks]
    record.rules = plan.rules
    record.server = {} if plan.plugins else record.server
    ledger.save()


def make_uninstall(plan: HomePlan, ledger: InstallLedger) -> None:
    """Makes the changes and forgets the home. Raises CannotWriteError, ChangedMeanwhileError,
    OSError."""
    for change in plan.changes:
        change.make()
    for directory in sorted({change.path.parent for change in plan.files}, reverse=True):
        remove_if_empty(directory)
    record = ledger.homes.pop(plan.root, None)
    for made in reversed(record.made if record else []):
        remove_if_empty(Path(made))
    if ledger.path.exists():
        ledger.save()


def _adapted(content: bytes, made_from: InstalledPaths, archives: str) -> bytes:
    """Return a skill's file whose commands name the installed command and the archives by their
    paths."""
    named = content.replace(_ARCHIVES, os.fsencode(shlex.quote(archives)))
    named = named.replace(_SCRIPT, os.fsencode(made_from.paths.command))
    return b"".join([line for line in named.splitlines(keepends=True) if _OF_PLUGINS not in line])


def _is_foreign(directory: Path, wanted: dict[Path, bytes], known: dict[str, str]) -> bool:
    """Check if something is there that we neither wrote nor would write in the same way."""
    if directory.is_symlink():
        return True
    if not os.path.lexists(directory) or any(str(path) in known for path in wanted):
        return False
    return {path: path.read_bytes() for path in _files(directory)} != wanted


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _runs_this_program(command: str) -> bool:
    """Check if a command runs a hook of a copy of this program, the installed one or another."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    for word in words:
        root, _, script = word.replace("\\", "/").rpartition("/hooks/")
        if root and script.endswith(".py") and "/" not in script:
            return root.endswith("/session-memory/app") or os.path.isdir(
                os.path.join(root, "session_memory")
            )
    return False
