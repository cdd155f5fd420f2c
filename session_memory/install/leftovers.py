"""Find what an uninstall leaves because others wrote it: marks of trust, servers that a person added by hand, hosts
with their groups; and how each is removed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .. import NAME
from ..runtimes import all_runtimes
from ..settings.registry import registered_hosts
from .home_changes import HomePlan

_MCP_KEYS = ("mcpServers", "mcp")
_MCP_TABLE = re.compile(r"^\[mcp_servers\.([^\]\n]+)\]((?:\n(?!\[).*)*)", re.MULTILINE)


class Leftover(NamedTuple):
    """A thing that stays, with its place, and how to remove it."""

    what: str
    remove: str


def leftovers(plans: list[HomePlan], environ: Mapping[str, str], *, is_whole: bool) -> list[Leftover]:
    """Return what stays in the homes of `plans`, and, if the program goes too, elsewhere."""
    found: list[Leftover] = []
    for plan in plans:
        runtime = next((one for one in all_runtimes() if one.name == plan.runtime), None)
        for path in runtime.install.mcp_files(plan.root) if runtime else ():
            found += _servers(os.path.normpath(path))
        if runtime and plan.settings:
            found += [Leftover(*one) for one in runtime.install.left_behind(plan.root, plan.settings.after)]
    if is_whole:
        for host in registered_hosts(environ):
            groups = f"{host}/groups"
            if os.path.isdir(groups):
                number = len([one for one in os.scandir(groups) if one.is_dir()])
                what = f"the host {host}, with {number} group{'' if number == 1 else 's'} and their sessions"
                found.append(Leftover(what, "stop it, then delete the directory"))
    return list(dict.fromkeys(found))


def _servers(path: str) -> Iterator[Leftover]:
    """Yield the MCP servers in a file that run our command."""
    text = _text(path)
    names = []
    if path.endswith(".toml"):
        names = [match[1].strip("\"'") for match in _MCP_TABLE.finditer(text) if _runs_ours(match[2])]
    elif NAME in text:
        try:
            names = list(_named_servers(json.loads(text)))
        except (ValueError, RecursionError):  # not plain JSON: a person finds it by the name
            names = [NAME] if re.search(rf'"{NAME}"[^}}]*"mcp"', text) else []
    for name in dict.fromkeys(names):
        yield Leftover(f"the MCP server {name} in {path}", "delete the entry there, which we did not write")


def _named_servers(value: Any) -> Iterator[str]:
    """Yield the names of servers that run our command, at any depth: some stand under projects."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key in _MCP_KEYS and isinstance(inner, dict):
            yield from [name for name, server in inner.items() if _runs_ours(json.dumps(server))]
        else:
            yield from _named_servers(inner)


def _runs_ours(text: str) -> bool:
    return NAME in text and re.search(r"""["'\s]mcp["'\s]|mcp_server\.py""", text) is not None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
