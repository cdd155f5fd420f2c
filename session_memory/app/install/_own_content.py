"""Our content in files of a person or a runtime.

A file is restored to its state before the install, or stripped of our content.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ... import NAME
from ...awareness.install.formats import settings_at
from ...awareness.install.ledger import HomeRecord
from ...common.system.file_changes import FileChange
from ...sessions.runtimes.install import Install
from ..tools.permissions import SERVERS
from . import _servers as servers
from ._homes import RUNTIME, runtime_called

# Permission rules made by `tools.permissions`, for any program and home.
_OWN_COMMAND = re.compile(r"Bash\(.*/session-memory/(?:bin/session-memory\b|app/scripts/).*\)")
_OWN_RULE = re.compile(rf"Read\(/(?:.*/)?conversations/\*\*\)|mcp__(?:{'|'.join(SERVERS)})__")


def restored(path: Path, record: HomeRecord, is_ours: Callable[[str], bool]) -> FileChange:
    """Return the settings file as it was before the install, or else without our content.

    Raises SettingsFileError."""
    return record.restored(path, {}, stripper(path, record, is_ours))


def stripper(
    path: Path, record: HomeRecord, is_ours: Callable[[str], bool]
) -> Callable[[bytes], bytes]:
    """Return a function that strips our content from the settings file at `path`.

    The function raises SettingsFileError."""
    install = _install_of(record)
    return lambda content: (
        stripped(content, path, record, is_ours, install) if may_be_ours(content) else content
    )


def without_status_line(record: HomeRecord, is_ours: Callable[[str], bool]) -> FileChange:
    """Return the file with our status line as it was before the install, or else without the line.

    Raises SettingsFileError."""
    install, noted = _install_of(record), record.status_line
    path = Path(noted["file"])

    def strip(content: bytes) -> bytes:
        settings = settings_at(content, path, install)
        after = settings.without_status_line(install, is_ours).content
        return settings.keeping_containers(after, noted["before"] or "").content

    return record.restored(path, noted, strip)


def without_server(record: HomeRecord) -> FileChange:
    """Return the file with our MCP server as it was before the install, or else without the server.

    Raises SettingsFileError."""
    path, install = Path(record.server["file"]), _install_of(record)

    def strip(content: bytes) -> bytes:
        is_ours = may_be_ours(content)
        return server_stripped(content, path, record, install) if is_ours else content

    return record.restored(path, record.server, strip)


def server_stripped(
    content: bytes, path: Path, record: HomeRecord | None, install: Install
) -> bytes:
    """Return a file that lists MCP servers without ours. Raises SettingsFileError."""
    noted = record.server if record else {}
    is_noted = bool(noted.get("after"))
    after = servers.without_server(content, path, install, is_noted=is_noted)
    settings = settings_at(content, path, install)
    return settings.keeping_containers(after, noted.get("before") or "").content


def stripped(
    content: bytes,
    path: Path,
    record: HomeRecord | None,
    is_ours: Callable[[str], bool],
    install: Install,
) -> bytes:
    """Return a settings file without our hooks, status line, MCP server and permission rules.

    Raises SettingsFileError."""
    before = settings_at(content, path, install)
    rules = own_rules(before.read().rules, record)
    if install.STATUS_LINE:
        content = before.without_status_line(install, is_ours).content
    if install.MCP_KEY and path.name == install.MCP_FILES[0]:
        content = servers.without_server(content, path, install)
    settings = settings_at(content, path, install).without_hooks(is_ours)
    after = settings.without_rules(rules).content
    return before.keeping_containers(after, (record and record.original) or "").content


def may_be_ours(content: bytes) -> bool:
    """Check if a settings file may have a hook of ours, or something with our name."""
    return b".py" in content or NAME.encode() in content


def own_rules(rules: list[str], record: HomeRecord | None) -> list[str]:
    """Return our permission rules among others, known from the ledger or by their content."""
    return [rule for rule in rules if rule in record.rules] if record else rules_by_content(rules)


def rules_by_content(rules: list[str]) -> list[str]:
    """Return our permission rules, recognised by their content.

    If a rule names this program, all rules of the forms that we make count as ours."""
    is_here = any(_OWN_COMMAND.match(rule) for rule in rules)
    return [
        rule for rule in rules if is_here and (_OWN_COMMAND.match(rule) or _OWN_RULE.match(rule))
    ]


def _install_of(record: HomeRecord) -> Install:
    runtime = runtime_called(record.runtime)
    return runtime.install if runtime else RUNTIME.install
