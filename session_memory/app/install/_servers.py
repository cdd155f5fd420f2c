"""Adds our MCP server to a runtime's list of servers, JSON or TOML, and removes it.

The list is edited as text, so everything else keeps its bytes. A server that runs our command under
another name, or has our name but was added by a person, is the person's: ours is not added then.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import NAME
from ...awareness.install.settings_file import SettingsFile, SettingsFileError
from ...common.system.file_changes import read_if_there
from ...common.text.json_comments import BOM
from ...common.text.json_edit import StrictJsonError
from ...sessions.runtimes.install import Install

_LAUNCHER = f"/{NAME}/bin/{NAME}"
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)$")
_LONG_QUOTES = ('"""', "'''")
_TOML_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*''', re.DOTALL
)


def servers_file(install: Install, settings_dir: str) -> Path | None:
    """Return the file to which an install adds our server, or None."""
    return Path(install.mcp_files(settings_dir)[0]) if install.MCP_KEY else None


def with_server(content: bytes | None, path: Path, install: Install, launcher: str) -> bytes | None:
    """Return a list of servers (None: no file) with ours added, which `launcher` starts.

    Raises SettingsFileError."""
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
        return _with_table(without_server(content or b"", path, install), path, install, new)
    return SettingsFile(content, path, install).with_value((install.MCP_KEY, NAME), new).content


def without_server(content: bytes, path: Path, install: Install) -> bytes:
    """Return a list of servers without ours. Raises SettingsFileError."""
    servers = _servers(content, path, install)
    if not _is_own(NAME, servers.get(NAME)):
        return content
    if path.suffix != ".toml":
        settings = SettingsFile(content, path, install)
        return settings.with_value((install.MCP_KEY, NAME), None).content
    text, wanted = (
        content.decode(),
        {name: server for name, server in servers.items() if name != NAME},
    )
    after = _without_tables(text, f"{install.MCP_KEY}.{NAME}")
    if _toml(after, path).get(install.MCP_KEY, {}) != wanted:
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


def read_toml(content: bytes | None, path: Path) -> dict[str, Any]:
    """Return the values of a TOML file. Raises SettingsFileError, always on Python before 3.11."""
    return _toml(_text(content, path), path)


def _servers(content: bytes | None, path: Path, install: Install) -> dict[str, Any]:
    """Return the servers by name. Raises SettingsFileError."""
    if path.suffix == ".toml":
        servers = read_toml(content, path).get(install.MCP_KEY, {})
    else:
        servers = SettingsFile(content, path, install).value_of(install.MCP_KEY)
    return servers if isinstance(servers, dict) else {}


def _is_own(name: str, server: Any) -> bool:
    command = server.get("command") if isinstance(server, dict) else None
    program = command[0] if isinstance(command, list) and command else command
    return name == NAME and isinstance(program, str) and program.endswith(_LAUNCHER)


def _text(content: bytes | None, path: Path) -> str:
    try:
        return (content or b"").decode()
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        raise SettingsFileError(
            str(path), StrictJsonError("it is not UTF-8", before, len(before))
        ) from None


def _toml(text: str, path: Path) -> dict[str, Any]:
    if sys.version_info < (3, 11):
        raise SettingsFileError(
            str(path), StrictJsonError("reading TOML needs Python 3.11", text, 0)
        )
    import tomllib

    try:
        return tomllib.loads(text.removeprefix(BOM))
    except ValueError as error:
        place = _POSITION.search(str(error))
        lines = text.split("\n")[: int(place[1]) - 1] if place else []
        at = sum(len(line) + 1 for line in lines) + (int(place[2]) - 1 if place else 0)
        raise SettingsFileError(
            str(path), StrictJsonError(_POSITION.sub("", str(error)), text, at)
        ) from None


def _with_table(content: bytes, path: Path, install: Install, server: Mapping[str, Any]) -> bytes:
    """Return the text with a table appended, which splits no other table."""
    text = content.decode()
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [
        f"[{install.MCP_KEY}.{NAME}]",
        *(f"{key} = {_toml_value(value)}" for key, value in server.items()),
        "",
    ]
    # without a blank line, `_without_tables` knows that the text had no newline at its end
    gap = newline if text else ""
    after = text + gap + newline.join(lines)
    there = _toml(text, path)
    if _toml(after, path) != {
        **there,
        install.MCP_KEY: {**there.get(install.MCP_KEY, {}), NAME: dict(server)},
    }:
        raise SettingsFileError(
            str(path), StrictJsonError("session-memory cannot add a table to it", text, len(text))
        )
    return after.encode()


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{key} = {_toml_value(inner)}" for key, inner in value.items()) + " }"
        )
    return json.dumps(value, ensure_ascii=False)


def _without_tables(text: str, name: str) -> str:
    """Return a TOML text without a table, its subtables, and the blank line before it.

    Comments that belong to the next table stay. If the text did not end with a newline before the
    table was added, it does not end with one now."""
    header = re.compile(rf"^\[{re.escape(name)}[.\]]")
    kept: list[str] = []
    trailing: list[str] = []  # blank lines and comments since the last line of a removed table
    is_going = False
    is_open = False  # if the line before the table had no end
    for line, plain in zip(_lines(text), _lines(_without_long_strings(text))):
        if plain.startswith("["):
            is_now = header.match(plain) is not None
            if is_now and not is_going:
                is_open = bool(kept and kept[-1].strip())
                kept = kept if is_open else kept[:-1]
            kept += trailing if is_going and not is_now else []
            trailing, is_going = [], is_now
        if not is_going:
            kept.append(line)
        elif line.strip() and not line.startswith("#"):
            trailing = []
        else:
            trailing.append(line)
    after = "".join(kept + (trailing if any(line.strip() for line in trailing) else []))
    return (
        after.rstrip("\r\n")
        if is_open and is_going and not any(line.strip() for line in trailing)
        else after
    )


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _without_long_strings(text: str) -> str:
    """Return a TOML text with the same lines, in which multi-line strings are masked."""
    return _TOML_TOKEN.sub(
        lambda match: (
            re.sub(r"[^\r\n]", "x", match[0]) if match[0][:3] in _LONG_QUOTES else match[0]
        ),
        text,
    )
