"""Uninstall from homes: each gets back its content from before the install.

All homes are checked before anything is changed; one whose settings cannot be edited safely is left
out. Other people's content stays, and is reported: marks of trust, servers that a person added by
hand, hosts with their groups.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ... import NAME
from ...awareness.install.formats import settings_at
from ...awareness.install.ledger import HomeRecord, InstallLedger
from ...awareness.install.plan import HookPlan
from ...common.errors import SessionMemoryError
from ...common.extensions import load_present
from ...common.system.file_changes import checksum, read_if_there, remove_if_empty
from ...common.system.files import expanded
from ...common.system.json import as_object
from ...extension_points import LEFTOVERS
from ...sessions.runtimes.base import Runtime
from ...sessions.runtimes.install import text_of
from ...sessions.runtimes.table import all_runtimes
from ...sessions.settings.homes import home_at, person_home, private_beside
from ...sessions.settings.program import ProgramPaths
from . import _home_changes as home_changes
from . import program
from ._homes import (
    SHARED_SKILLS_FOLDER,
    Target,
    identify,
    is_here,
    known_home,
    runtime_called,
    settings_of,
    shared_skills,
)
from ._kept_files import delete, sort_out
from ._own_content import may_be_ours, rules_by_content
from ._servers import runs_ours, servers_file

# Our programs that a skill names, where installs put them.
_OF_OUR_SKILLS = (b"/session-memory/bin/session-memory ", b"/session-memory/app/scripts/")
_MCP_KEYS = ("mcpServers", "mcp")
_MCP_TABLE = re.compile(r"^\[mcp_servers\.([^\]\n]+)\]((?:\n(?!\[).*)*)", re.MULTILINE)


class Leftover(NamedTuple):
    """A thing that stays, with its place, and how to remove it."""

    what: str
    remove: str


@dataclass
class Uninstalled:
    """The result of an uninstall, or of a dry run.

    `restored` maps each home to whether its settings have their old bytes again. `purged` has the
    deleted data, each with its place; `kept` the remaining data, and `shared` the data that other
    homes use too. `unreachable` are homes that are no longer where they were; `left` is other
    people's content. `refused` has the errors of homes that were left out. `is_whole` means that
    the program is removed too."""

    paths: ProgramPaths
    plans: list[home_changes.HomePlan]
    is_dry_run: bool
    is_whole: bool
    restored: dict[str, bool] = field(default_factory=dict)
    purged: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    left: list[Leftover] = field(default_factory=list)
    refused: list[SessionMemoryError] = field(default_factory=list)


def uninstall(
    roots: list[str],
    paths: ProgramPaths,
    environ: Mapping[str, str],
    *,
    dry_run: bool,
    purge: bool,
    confirm: Callable[[list[str]], None],
) -> Uninstalled:
    """Uninstall from the homes `roots`, or from all homes, and then remove the program too.

    `purge` also deletes the data about their sessions, and the configuration, but not the named
    sessions, which belong to the host. `confirm` gets these paths first, and may raise to prevent
    the deletion. If a home has to be left out, the program stays too. Raises SessionMemoryError,
    also if every home is left out; OSError."""
    ledger = InstallLedger.read(paths.ledger_file)
    foreseen = _foreseen(roots, ledger, paths, environ, dry_run=dry_run, purge=purge)
    if dry_run:
        return foreseen
    if foreseen.purged:
        confirm(list(foreseen.purged))
    if not paths.program_dir.is_dir():
        return _take_out(foreseen, ledger)
    with program.locked(paths):
        # as it is now: an install may have been at work until now
        ledger = InstallLedger.read(paths.ledger_file)
        return _take_out(
            _foreseen(roots, ledger, paths, environ, dry_run=False, purge=purge), ledger
        )


def _foreseen(
    roots: list[str],
    ledger: InstallLedger,
    paths: ProgramPaths,
    environ: Mapping[str, str],
    *,
    dry_run: bool,
    purge: bool,
) -> Uninstalled:
    """Return the effects of an uninstall.

    A home that has moved, or that is missing in `ledger`, is added to it."""
    records, unreadable = _records(roots, ledger, environ)
    plans, refused = _plans(records, unreadable, ledger.recogniser())
    result = Uninstalled(paths, plans, dry_run, not roots and not refused, refused=refused)
    for plan in plans:
        result.restored[plan.root] = _is_restored(plan, records[plan.root])
    real = [plan.root for plan in plans if plan.root != str(paths.sample_home)]
    result.unreachable = [root for root in real if not os.path.isdir(root)]
    going = {str(change.path) for plan in plans for change in plan.changes if change.after is None}
    place = person_home(environ).memory_dir
    purgeable = dict(pair for root in real for pair in _purgeable(root, ledger, environ))
    if result.is_whole and os.path.lexists(place):
        purgeable = _with_all_of(place, purgeable)
    result.shared = [path for path in purgeable if path == place and not result.is_whole]
    ours = {path: base for path, base in purgeable.items() if path not in result.shared}
    _sort_out_data(ours, going, result, purge=purge)
    result.left = leftovers(plans, environ, is_whole=result.is_whole)
    return result


def _plans(
    records: Mapping[str, HomeRecord],
    unreadable: Mapping[str, SessionMemoryError],
    is_ours: Callable[[str], bool],
) -> tuple[list[home_changes.HomePlan], list[SessionMemoryError]]:
    """Return the plan for each home, and the errors of homes that cannot be changed safely.

    Skills that they share with others stay. `unreadable` are the errors of homes without a record,
    by the names of their runtimes. Raises SessionMemoryError if no home can be changed."""
    plans: list[home_changes.HomePlan] = []
    refused = [*unreadable.values()]
    left_out = [*unreadable]
    for root, record in records.items():
        try:
            plan = home_changes.plan_uninstall(root, record, is_ours)
            for change in plan.changes:
                change.check()
        except SessionMemoryError as error:
            refused.append(error)
            left_out.append(record.runtime)
        else:
            plans.append(plan)
    users = [runtime for name in left_out if (runtime := _user_of_shared_skills(name))]
    going = [plan for plan in plans if not (users and plan.runtime == SHARED_SKILLS_FOLDER)]
    if refused and not going:
        raise refused[0]
    refused += [
        SessionMemoryError(f"{plan.root}: {users[0].TITLE} still uses the skills there")
        for plan in plans
        if plan not in going
    ]
    return going, refused


def _user_of_shared_skills(name: str) -> Runtime | None:
    """Return the runtime with a name if it uses skills that several runtimes share, else None."""
    runtime = runtime_called(name)
    return runtime if runtime and not runtime.install.SKILLS_FOLDER else None


def _with_all_of(place: str, purgeable: Mapping[str, str]) -> dict[str, str]:
    """Return the purgeable paths with their bases, with `place` instead of the paths below it."""
    outside = {path: base for path, base in purgeable.items() if not path.startswith(f"{place}/")}
    return {place: place, **outside}


def _is_restored(plan: home_changes.HomePlan, record: HomeRecord) -> bool:
    """Check if the settings will be the same as before the install."""
    after = plan.settings.after if plan.settings else None
    return (None if after is None else after.decode()) == record.original


def _sort_out_data(
    ours: Mapping[str, str], going: Collection[str], result: Uninstalled, *, purge: bool
) -> None:
    """Record which data at these paths is deleted and which is kept.

    `ours` maps paths to their bases. Files that are `going` anyway are not counted."""
    for path, base in ours.items():
        ours_there, others = sort_out(path, base)
        left = [file for file in ours_there if file not in going]
        if purge:
            result.purged.update(dict.fromkeys(left, base))
            result.kept += others
        elif left or others:
            result.kept.append(path)


def _records(
    roots: list[str], ledger: InstallLedger, environ: Mapping[str, str]
) -> tuple[dict[str, HomeRecord], dict[str, SessionMemoryError]]:
    """Return the records of the homes to uninstall from, and errors of homes without a record.

    The errors are by the names of the runtimes. Without a ledger, search the homes of the person's
    runtimes. Skills that several runtimes share are removed with the last of these runtimes."""
    unreadable: dict[str, SessionMemoryError] = {}
    if roots:
        named = dict(_record_of(path, ledger, environ) for path in roots)
        left = {root: record for root, record in ledger.records.items() if root not in named}
        if not any(_user_of_shared_skills(record.runtime) for record in left.values()):
            named.update(
                {
                    root: record
                    for root, record in left.items()
                    if record.runtime == SHARED_SKILLS_FOLDER
                }
            )
        return named, unreadable
    if not ledger.records:
        here = [
            settings_of(runtime, environ) for runtime in all_runtimes() if is_here(runtime, environ)
        ]
        for target in (*here, shared_skills(environ)):
            if not os.path.isdir(target.root):
                continue
            try:
                record = _record_by_content(target, ledger.recogniser())
            except SessionMemoryError as error:
                unreadable[target.runtime.name] = error
            else:
                ledger.records[target.root] = record or _empty_record(target)
    return dict(ledger.records), unreadable


def _record_of(
    path: str, ledger: InstallLedger, environ: Mapping[str, str]
) -> tuple[str, HomeRecord]:
    """Return the home at `path`, and its record.

    The record comes from the ledger, from a home that has moved there since its install, or from
    the home's content. Raises SessionMemoryError."""
    root = os.path.abspath(expanded(path, os.environ))
    if root in ledger.records:
        return root, ledger.records[root]
    moved = next(
        (old for old, record in ledger.records.items() if _is_moved(old, record, root)), None
    )
    if moved is not None:
        ledger.records[root] = _at(ledger.records.pop(moved), moved, root)
        return root, ledger.records[root]
    target = identify(path, environ)
    if target.root != root:
        return _record_of(target.root, ledger, environ)
    record = _record_by_content(target, ledger.recogniser())
    if record is None:
        raise SessionMemoryError(
            f"{path}: session-memory was not installed there", f"the ledger is {ledger.path}"
        )
    ledger.records[root] = record
    return root, record


def _is_moved(old: str, record: HomeRecord, root: str) -> bool:
    """Check if `root` is the home that was at `old`, which no longer exists.

    It is if something in it is exactly as we wrote it there."""
    if os.path.lexists(old):
        return False
    here = _at(record, old, root)
    written = [
        (here.settings_file, set(record.written)),
        *((path, {known}) for path, known in here.files.items()),
    ]
    return any(
        (content := read_if_there(Path(path))) and checksum(content) in known
        for path, known in written
    )


def _at(record: HomeRecord, old: str, root: str) -> HomeRecord:
    def moved(path: str) -> str:
        return root + path[len(old) :] if path == old or path.startswith(old + os.sep) else path

    return replace(
        record,
        settings_file=moved(record.settings_file),
        files={moved(path): known for path, known in record.files.items()},
        identity={moved(path): known for path, known in record.identity.items()},
        made=[moved(path) for path in record.made],
        server={
            key: moved(value) if key == "file" else value for key, value in record.server.items()
        },
        status_line={
            key: moved(value) if key == "file" else value
            for key, value in record.status_line.items()
        },
    )


def _record_by_content(target: Target, is_ours: Callable[[str], bool]) -> HomeRecord | None:
    """Return our content in a home that the ledger does not list, or None."""
    path = target.settings_file
    content = read_if_there(path) if path else None
    settings = (
        settings_at(content, str(path), target.runtime.install).read()
        if content and may_be_ours(content)
        else None
    )
    files = _our_skills(target) | _our_extensions(target)
    if not files and not (settings and any(is_ours(hook.command) for hook in settings.hooks)):
        return None
    made = [directory for folder in _skill_folders(target) for directory in (folder.parent, folder)]
    record = _empty_record(target)
    record.rules, record.files = rules_by_content(settings.rules) if settings else [], files
    record.made = [
        str(path) for path in made if str(path) != target.settings_dir or target.kind == "skills"
    ]
    return record


def _skill_folders(target: Target) -> list[Path]:
    """Return the folders of a home in which our skills may be."""
    own_folder, shared = target.skills_dir, target.shared_skills_dir
    return [
        *([own_folder] if own_folder else []),
        *([shared] if target.kind in ("agent", "project") else []),
    ]


def _our_skills(target: Target) -> dict[str, str]:
    """Return the files of a home's skills that have our content, with their checksums."""
    paths = [path for folder in _skill_folders(target) for path in sorted(folder.glob("*/*"))]
    texts = {
        str(path): path.read_bytes()
        for path in paths
        if path.is_file() and not path.parent.is_symlink()
    }
    return {
        path: checksum(text)
        for path, text in texts.items()
        if any(part in text for part in _OF_OUR_SKILLS)
    }


def _our_extensions(target: Target) -> dict[str, str]:
    """Return our extensions in a runtime's home, with the checksums."""
    names = home_changes.extension_names(target) if target.kind == "runtime" else ()
    there = HookPlan.extensions_there(target.settings_dir, names)
    return {path: checksum(content) for path, content in there.items()}


def _empty_record(target: Target) -> HomeRecord:
    """The record of a home in which nothing is known to be ours."""
    runtime = SHARED_SKILLS_FOLDER if target.kind == "skills" else target.runtime.name
    record = HomeRecord(str(target.settings_file or ""), "", runtime=runtime)
    if target.runtime.install.STATUS_LINE:
        record.status_line = {"file": str(target.status_line_file), "before": "", "after": ""}
    path = servers_file(target.runtime.install, target.settings_dir)
    if path and path != target.settings_file:
        record.server = {"file": str(path), "before": "", "after": ""}
    return record


def _purgeable(
    root: str, ledger: InstallLedger, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the data about a home's sessions, and its configuration, each with its place."""
    is_templated = bool(ledger.records[root].template)
    target = None if is_templated else known_home(root, ledger, environ)
    if not is_templated and (target is None or target.kind == "skills"):
        return
    home = target.home if target else home_at(root, environ)
    if target is None or target.kind == "agent":
        sessions = [each.SESSIONS_FOLDER for each in all_runtimes()]
        inside = [
            str(path)
            for path in sorted(Path(home.memory_dir).glob("*"))
            if path.name not in sessions
        ]
        yield from ((path, home.memory_dir) for path in inside)
        kept = [home.conversations_dir, home.memories_dir]
        yield from (
            (path, home.root)
            for path in [*kept, *map(private_beside, kept)]
            if os.path.lexists(path)
        )
    elif os.path.lexists(home.memory_dir):
        yield home.memory_dir, home.memory_dir


def _take_out(result: Uninstalled, ledger: InstallLedger) -> Uninstalled:
    for plan in result.plans:
        plan.make_removal(ledger)
    for path, place in result.purged.items():
        if os.path.lexists(path):
            delete(path, place)
        remove_if_empty(Path(path).parent)
    if result.is_whole:
        program.remove_program(result.paths, ledger)
    return result


def leftovers(
    plans: list[home_changes.HomePlan], environ: Mapping[str, str], *, is_whole: bool
) -> list[Leftover]:
    """Return what stays in the homes of `plans`, and elsewhere if the program is removed."""
    leftovers_found: list[Leftover] = []
    for plan in plans:
        runtime = runtime_called(plan.runtime)
        for path in runtime.install.mcp_files(plan.root) if runtime else ():
            change = next((changed for changed in plan.changes if str(changed.path) == path), None)
            text = (change.after or b"").decode("utf-8", "replace") if change else text_of(path)
            leftovers_found += _servers(os.path.normpath(path), text)
        if runtime:
            after = plan.settings.after if plan.settings else None
            left = runtime.install.left_behind(plan.root, after)
            leftovers_found += [Leftover(*parts) for parts in left]
    if is_whole:
        for left_by in load_present(LEFTOVERS.values()):
            leftovers_found += [Leftover(*words) for words in left_by(environ)]
    return list(dict.fromkeys(leftovers_found))


def _servers(path: str, text: str) -> Iterator[Leftover]:
    """Yield the MCP servers that run our command, from the text of a file."""
    names = []
    if path.endswith(".toml"):
        names = [
            match[1].strip("\"'") for match in _MCP_TABLE.finditer(text) if runs_ours(match[2])
        ]
    elif NAME in text:
        try:
            names = list(_named_servers(json.loads(text)))
        except (ValueError, RecursionError):  # not plain JSON: a person finds it by the name
            names = [NAME] if re.search(rf'"{NAME}"[^}}]*"mcp"', text) else []
    for name in dict.fromkeys(names):
        yield Leftover(f"the MCP server {name} in {path}", "delete the entry there")


def _named_servers(value: Any) -> Iterator[str]:
    """Yield the names of servers that run our command, at any depth, since some are per project."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key in _MCP_KEYS and isinstance(inner, dict):
            inner = as_object(inner.get("servers")) or inner
            yield from [name for name, server in inner.items() if runs_ours(json.dumps(server))]
        else:
            yield from _named_servers(inner)
