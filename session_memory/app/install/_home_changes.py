"""Plans the changes that an install or uninstall makes in one home.

They concern hooks, permission rules, skills and our MCP server.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...awareness.install.formats import settings_at
from ...awareness.install.ledger import HomeRecord, InstallLedger
from ...awareness.install.plan import HookPlan, InstalledPaths
from ...common.errors import SessionMemoryError
from ...common.system.file_changes import FileChange, checksum, read_if_there
from ...common.system.git import find_worktree
from ...sessions.runtimes.install import Install
from ...sessions.settings.program import ProgramPaths
from ..tools.permissions import lookup_rules
from . import _own_content as own_content
from . import _servers as servers
from ._homes import RUNTIME, SHARED_SKILLS_FOLDER, Target

# The source of each SKILL.md has the command and the directory of archives in these forms. The
# second form is for users without an agent home.
_OF_PLUGINS = b"CLAUDE_PLUGIN_ROOT"  # in lines that only the agents of plugins need
# which is the installed command
_SCRIPT = b'"%b/scripts/memory.py"' % RUNTIME.install.PLUGIN_ROOT.encode()
_ARCHIVES = b'"${SESSION_MEMORY_DIR:-$HOME/.session-memory}/conversations"'
_NO_HOOKS = '{"hooks": {}}'


@dataclass
class HomePlan(HookPlan):
    """The changes to one home: hooks, permission rules, skills and our MCP server.

    `rules` are our permission rules after the change. `switched_off` is the setting that stops our
    hooks; `can_allow` means that the hooks can let lookups pass. `server` is the change of a
    separate file that lists our MCP server, `server_stripped` the content of that file without our
    server. `has_tools` means that the runtime will have the server, and `skills` are the names of
    the skills it will have. `plugins` are our plugins that are already there, so nothing else is
    added."""

    rules: list[str] = field(default_factory=list)
    switched_off: str = ""
    server: FileChange | None = None
    server_stripped: bytes | None = None
    has_tools: bool = False
    skills: list[str] = field(default_factory=list)
    can_allow: bool = False
    plugins: list[str] = field(default_factory=list)

    @property
    def shared_files(self) -> list[FileChange]:
        """The files that others write too."""
        return [*super().shared_files, *([self.server] if self.server else [])]

    def note_before(self, record: HomeRecord) -> None:
        """Note our future content beside the present one, until the changes are made."""
        super().note_before(record)
        if self.server and self.server.is_needed and not self.plugins:
            record.note_server(self.server, self.server_stripped)
        record.rules = sorted({*record.rules, *self.rules})

    def note_after(self, record: HomeRecord) -> None:
        """Note our content once the changes are made."""
        super().note_after(record)
        record.rules = self.rules
        record.server = {} if self.plugins else record.server


def plan_install(
    target: Target, made_from: InstalledPaths, ledger: InstallLedger, *, for_all: bool, allow: bool
) -> HomePlan:
    """Plan the changes that add our hooks and skills to a home.

    With `for_all`, skills are also put where several runtimes look; with `allow`, lookups run
    without asking. Later installs keep both choices. Raises SettingsFileError, CannotWriteError."""
    record = ledger.records.get(target.root)
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
            "`conversations/` and `memories/` to a .gitignore. Agents' file searches then skip them too."
        )
    return plan


def plan_notice_hooks(
    target: Target, made_from: InstalledPaths, ledger: InstallLedger
) -> HookPlan | None:
    """Plan the change that adds the hooks for notices to a home's settings, or removes them.

    Other hooks of ours stay as they are, also those that the person removed. Return None if the
    home has no settings with hooks. Raises SettingsFileError, CannotWriteError."""
    install, path, record = (
        target.runtime.install,
        target.settings_file,
        ledger.records[target.root],
    )
    before = read_if_there(path) if path and not target.plugins else None
    if path is None or before is None:
        return None
    is_ours = ledger.recogniser()
    present = settings_at(before, path, install).read().hooks
    kept = {(hook.event, hook.matcher) for hook in present if is_ours(hook.command)}
    without = replace(made_from, has_notices=False).hooks_for(install, _below(target))
    hooks = [
        hook
        for hook in made_from.hooks_for(install, _below(target))
        if hook not in without or (hook.event, hook.matcher) in kept
    ]
    plan = HookPlan(target.root, None, record.runtime, checksums=dict(record.files))
    plan.put_hooks(path, hooks, install, is_ours)
    plan.stripped = own_content.stripper(path, record, is_ours)(before)
    return plan


def _plan_hooks(
    plan: HomePlan, target: Target, made_from: InstalledPaths, ledger: InstallLedger, *, allow: bool
) -> None:
    """Plan hooks and permission rules in the runtime's settings, and our files beside them."""
    install, path, record = (
        target.runtime.install,
        target.settings_file,
        ledger.records.get(plan.root),
    )
    is_ours = ledger.recogniser()
    if not plan.plugins:
        known = record.files if record else {}
        plan.put_extensions(install, target.settings_dir, made_from, known)
    if path is None:
        return
    if plan.plugins:
        plan.settings = own_content.restored(path, record or HomeRecord(str(path), ""), is_ours)
        return
    plan.put_hooks(path, made_from.hooks_for(install, _below(target)), install, is_ours)
    _plan_rules(plan, target, made_from, ledger, allow=allow)


def _below(target: Target) -> str:
    """Return the path of an agent's home below its project; '' for other homes."""
    return os.path.relpath(target.root, target.project) if target.kind == "agent" else ""


def _plan_rules(
    plan: HomePlan, target: Target, made_from: InstalledPaths, ledger: InstallLedger, *, allow: bool
) -> None:
    """Plan the permission rules in settings that already have the planned hooks."""
    assert plan.settings
    install, record = target.runtime.install, ledger.records.get(plan.root)
    path, before = plan.settings.path, plan.settings.before
    own_rules: list[str] = []
    theirs: list[str] = []
    if before is not None:
        own_rules = own_content.own_rules(settings_at(before, path, install).read().rules, record)
        stripped = own_content.stripped(before, path, record, ledger.recogniser(), install)
        plan.stripped, theirs = stripped, settings_at(stripped, path, install).read().rules
    rules = lookup_rules(target.runtime, (made_from.paths.command,), _archives(target))
    rules = rules if allow or own_rules else []
    outdated = [rule for rule in own_rules if rule not in rules]
    settings = settings_at(plan.settings.after, path, install)
    settings = settings.without_rules(outdated).with_rules(rules)
    plan.settings = replace(plan.settings, after=settings.content)
    plan.can_allow = bool(install.COMMAND_RULE)
    plan.rules = [rule for rule in rules if rule not in theirs]
    plan.switched_off = install.switched_off(settings.read().values)


def _plan_server(
    plan: HomePlan, target: Target, paths: ProgramPaths, record: HomeRecord | None
) -> None:
    """Plan our MCP server in the file where the runtime lists servers.

    If that is not the settings file and is invalid, it is left alone: the runtime may understand
    more than our parser."""
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
        if before is not None:
            plan.server_stripped = own_content.server_stripped(before, path, record, install)
        plan.has_tools = True
        if install.EXTENSION_VALUES:
            after = settings_at(plan.server.after, path, install).value_of()
            plan.switched_off = install.switched_off(after)
    except SessionMemoryError as error:
        plan.notes.append(f"{error}. {_not_added(install)}")


def _not_added(install: Install) -> str:
    """Return what a home lacks if its list of servers cannot be changed."""
    text = "The tools are not added there; agents can still run the commands in the skills."
    needed = servers.needed_values(install)
    return f"{text} Agents get no updates until you add {needed}." if needed else text


def _archives(target: Target) -> str:
    """Return the directory of the archives, as skills and rules name it.

    It is relative for an agent that runs in its home."""
    if target.kind == "agent" and target.project == target.root:
        return os.path.relpath(target.home.conversations_dir, target.root)
    return target.home.conversations_dir


def extension_names(target: Target) -> list[str]:
    """Return the paths of our files beside a home's settings, relative to their directory."""
    return (
        list(target.runtime.install.wanted_files(_NO_HOOKS, "", ""))
        if target.kind == "runtime"
        else []
    )


def _plan_skills(
    plan: HomePlan, directory: Path, made_from: InstalledPaths, known: dict[str, str], archives: str
) -> None:
    """Plan all skills in `directory`, except where somebody else's skill has the name.

    `known`, from the ledger, are the files of our skills. `archives` is the directory of archives
    that the skills name."""
    for skill in sorted(path for path in (made_from.source / "skills").glob("*") if path.is_dir()):
        wanted = {
            directory / file.relative_to(skill.parent): _adapted(
                file.read_bytes(), made_from, archives
            )
            for file in _files(skill)
        }
        if _is_foreign(directory / skill.name, wanted, known):
            plan.notes.append(
                f"{directory / skill.name} was not made by session-memory and was left alone, so the skill "
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
    if record.status_line and record.status_line["file"] != record.settings_file:
        plan.files.append(own_content.without_status_line(record, is_ours))
    if record.server:
        plan.server = own_content.without_server(record)
    settings = Path(record.settings_file)
    plan.restore(record, own_content.stripper(settings, record, is_ours))
    for name, known in record.identity.items():
        current = read_if_there(Path(name))
        if current is not None and checksum(current) == known:  # else its user has made it theirs
            plan.files.append(FileChange(Path(name), current, None))
    return plan


def _adapted(content: bytes, made_from: InstalledPaths, archives: str) -> bytes:
    """Return a skill's file that names the installed command and the archives by their paths."""
    named = content.replace(_ARCHIVES, os.fsencode(shlex.quote(archives)))
    named = named.replace(_SCRIPT, os.fsencode(made_from.paths.command))
    return b"".join([line for line in named.splitlines(keepends=True) if _OF_PLUGINS not in line])


def _is_foreign(directory: Path, wanted: dict[Path, bytes], known: dict[str, str]) -> bool:
    """Check if the directory has content that we did not write and that differs from ours."""
    if directory.is_symlink():
        return True
    if not os.path.lexists(directory) or any(str(path) in known for path in wanted):
        return False
    return {path: path.read_bytes() for path in _files(directory)} != wanted


def _files(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path
