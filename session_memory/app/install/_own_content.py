"""Our content in files of a person or a runtime: returns such a file as it was before, or without
what is ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ...sessions.runtimes.install import Install
from ..tools.permissions import SERVERS
from . import _servers as servers
from . import _settings_file as settings_file
from ._file_changes import FileChange, checksum, read_if_there
from ._homes import RUNTIME, runtime_called
from .ledger import HomeRecord

# Permission rules as `tools.permissions` makes them, of a program and home that are not known.
_OWN_COMMAND = re.compile(r"Bash\(.*/session-memory/(?:bin/session-memory\b|app/scripts/).*\)")
_OWN_RULE = re.compile(rf"Read\(/(?:.*/)?conversations/\*\*\)|mcp__(?:{'|'.join(SERVERS)})__")


def restored(path: Path, record: HomeRecord, is_ours: Callable[[str], bool]) -> FileChange:
    """Return the settings file as it was before, or without what is ours. Raises
    SettingsFileError."""

    def strip(content: bytes) -> bytes:
        return stripped(
            content,
            path,
            is_ours,
            own_rules(content, path, record, _install_of(record)),
            _install_of(record),
        )

    return _undone(path, record.written, record.original, strip)


def without_status_line(record: HomeRecord, is_ours: Callable[[str], bool]) -> FileChange:
    """Return the file that has our status line as it was before, or without that line. Raises
    SettingsFileError."""
    install, noted = _install_of(record), record.status_line
    path = Path(noted["file"])
    strip = partial(
        settings_file.without_status_line, path=str(path), install=install, is_ours=is_ours
    )
    return _undone(path, [noted["after"]], noted["before"], strip)


def without_server(record: HomeRecord) -> FileChange:
    """Return the file that lists our MCP server as it was before, or without that server. Raises
    SettingsFileError."""
    path = Path(record.server["file"])
    strip = partial(servers.without_server, path=path, install=_install_of(record))
    return _undone(path, [record.server["after"]], record.server["before"], strip)


def _undone(
    path: Path, written: list[str], original: str | None, strip: Callable[[bytes], bytes]
) -> FileChange:
    """Return a file as it was before if it is one of those that were `written` (checksums), else
    what `strip` leaves of it."""
    before = after = read_if_there(path)
    if before is not None and checksum(before) in written:
        after = None if original is None else original.encode()
    elif before is not None:
        after = strip(before)
        if original is None and servers.is_empty(after, path):
            after = None
    return FileChange(path, before, after)


def stripped(
    content: bytes, path: Path, is_ours: Callable[[str], bool], rules: list[str], install: Install
) -> bytes:
    """Return a settings file without our hooks, status line and MCP server, and these permission
    rules. Raises SettingsFileError."""
    if install.STATUS_LINE:
        content = settings_file.without_status_line(content, str(path), install, is_ours)
    if install.MCP_KEY and path.name == install.MCP_FILES[0]:
        content = servers.without_server(content, path, install)
    content = settings_file.without_hooks(content, str(path), is_ours, install)
    return settings_file.without_rules(content, str(path), rules, install)


def own_rules(content: bytes, path: Path, record: HomeRecord | None, install: Install) -> list[str]:
    """Return the permission rules in a settings file that are ours: by the ledger, else by what
    they say. Raises SettingsFileError."""
    rules = settings_file.read(content, str(path), install).rules
    return [rule for rule in rules if rule in record.rules] if record else rules_by_content(rules)


def rules_by_content(rules: list[str]) -> list[str]:
    """Return the rules that are ours by what they say: where one names this program, all such as we
    make."""
    is_here = any(_OWN_COMMAND.match(rule) for rule in rules)
    return [
        rule for rule in rules if is_here and (_OWN_COMMAND.match(rule) or _OWN_RULE.match(rule))
    ]


def _install_of(record: HomeRecord) -> Install:
    one = runtime_called(record.runtime)
    return one.install if one else RUNTIME.install
