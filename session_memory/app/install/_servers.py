"""Adds our MCP server to a runtime's list of servers, JSON or TOML, and removes it.

Values beside the list that our extension needs are added and removed with it. The list is edited as
text, so everything else keeps its bytes. A server that runs our command under another name, or has
our name but was added by a person, is the person's: ours is not added then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import NAME
from ...awareness.install.formats import settings_at
from ...awareness.install.settings_file import SettingsFileError
from ...common.system.file_changes import read_if_there
from ...common.text.json_edit import StrictJsonError
from ...common.text.toml_edit import parse_toml, with_table, without_tables
from ...sessions.runtimes.install import Install

_LAUNCHER = f"/{NAME}/bin/{NAME}"


def servers_file(install: Install, settings_dir: str) -> Path | None:
    """Return the file to which an install adds our server, or None."""
    return Path(install.mcp_files(settings_dir)[0]) if install.MCP_KEY else None


def with_server(content: bytes | None, path: Path, install: Install, launcher: str) -> bytes | None:
    """Return a list of servers (None: no file) with ours added, which `launcher` starts.

    Values that our extension needs are added too. Raises SettingsFileError."""
    return _with_values(_with_server(content, path, install, launcher), path, install)


def _with_server(
    content: bytes | None, path: Path, install: Install, launcher: str
) -> bytes | None:
    servers = _servers(content, path, install)
    if any(
        name == NAME or runs_ours(json.dumps(server))
        for name, server in servers.items()
        if not _is_own(name, server)
    ):
        return content
    old, wanted = servers.get(NAME, {}), install.wanted_server(launcher)
    # a person may have switched it off
    new = {**wanted, **(old or install.SERVER_DEFAULTS), "command": wanted["command"]}
    if new == old:
        return content
    if path.suffix == ".toml":
        return _with_table(_without_server(content or b"", path, install), path, install, new)
    return settings_at(content, path, install).with_value(_way(install), new).content


def _with_values(content: bytes | None, path: Path, install: Install) -> bytes | None:
    """Return settings with the values that our extension needs, unless a person has others."""
    for way, wanted in install.EXTENSION_VALUES.items():
        settings = settings_at(content, path, install)
        there = settings.value_of(*way)
        if (new := _completed(there, wanted)) != there:
            content = settings.with_value(way, new).content
    return content


def _completed(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with those that are missing, at any depth."""
    inner = {
        key: _completed(there[key], value)
        for key, value in wanted.items()
        if isinstance(value, dict) and isinstance(there.get(key), dict)
    }
    return {**wanted, **there, **inner}


def needed_values(install: Install) -> str:
    """Return the values that our extension needs, for a person who adds them; '' for none."""
    values = install.EXTENSION_VALUES.items()
    return ", ".join([f"{'.'.join(way)}: {json.dumps(value)}" for way, value in values])


def without_server(content: bytes, path: Path, install: Install, *, is_noted: bool = True) -> bytes:
    """Return a list of servers without ours, and without the values for our extension.

    Unless the ledger has noted them (`is_noted`), other values than ours stay. Raises
    SettingsFileError."""
    for way, ours in install.EXTENSION_VALUES.items():
        settings = settings_at(content, path, install)
        there = settings.value_of(*way)
        if there and (is_noted or there == ours):
            content = settings.with_value(way, None).content
    return _without_server(content, path, install)


def _without_server(content: bytes, path: Path, install: Install) -> bytes:
    servers = _servers(content, path, install)
    if not _is_own(NAME, servers.get(NAME)):
        return content
    if path.suffix != ".toml":
        settings = settings_at(content, path, install)
        return settings.with_value(_way(install), None).content
    text = content.decode()
    wanted = {name: server for name, server in servers.items() if name != NAME}
    header = re.compile(rf"\[{re.escape(install.MCP_KEY)}\.{re.escape(NAME)}[.\]]")
    after = without_tables(text, lambda table: header.match(table) is not None)
    if _servers(after.encode(), path, install) != wanted:
        raise SettingsFileError(
            str(path), StrictJsonError(f"{NAME} does not have its own table", text, len(text))
        )
    return after.encode()


def has_server(path: Path, install: Install) -> bool:
    """Check if a file lists a server that runs our command.

    Raises SettingsFileError, CannotWriteError."""
    return any(
        runs_ours(json.dumps(server))
        for server in _servers(read_if_there(path), path, install).values()
    )


def runs_ours(text: str) -> bool:
    """Check if the text of a server's settings runs our command."""
    return NAME in text and re.search(r"""["'\s]mcp["'\s]|mcp_server\.py""", text) is not None


def _servers(content: bytes | None, path: Path, install: Install) -> dict[str, Any]:
    """Return the servers by name. Raises SettingsFileError."""
    if path.suffix == ".toml":
        servers = settings_at(content, path, install).decoded()[1].get(install.MCP_KEY, {})
    else:
        servers = settings_at(content, path, install).value_of(*_way(install)[:-1])
    return servers if isinstance(servers, dict) else {}


def _way(install: Install) -> tuple[str, ...]:
    """Return the keys that lead to our server."""
    return (*install.MCP_KEY.split("."), NAME)


def _is_own(name: str, server: Any) -> bool:
    command = server.get("command") if isinstance(server, dict) else None
    program = command[0] if isinstance(command, list) and command else command
    return name == NAME and isinstance(program, str) and program.endswith(_LAUNCHER)


def _with_table(content: bytes, path: Path, install: Install, server: Mapping[str, Any]) -> bytes:
    """Return the text with the table of a server appended. Raises SettingsFileError."""
    text, there = settings_at(content, path, install).decoded()
    after = with_table(text, f"[{install.MCP_KEY}.{NAME}]", server)
    servers = {**_servers(content, path, install), NAME: dict(server)}
    wanted = {**there, install.MCP_KEY: servers}
    try:
        is_right = parse_toml(after) == wanted
    except StrictJsonError:
        is_right = False
    if not is_right:
        raise SettingsFileError(
            str(path), StrictJsonError("session-memory cannot add a table to it", text, len(text))
        )
    return after.encode()
