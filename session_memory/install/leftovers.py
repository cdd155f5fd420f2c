"""Find what an uninstall leaves because others wrote it: marks of trust, servers that a person added by hand, hosts
with their groups; and how each is removed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .. import NAME
from ..runtimes import all_runtimes
from ..settings.registry import registered_hosts
from .home_changes import HomePlan

_MCP_KEYS = ("mcpServers", "mcp")
_MCP_TABLE = re.compile(r"^\[mcp_servers\.([^\]\n]+)\]((?:\n(?!\[).*)*)", re.MULTILINE)
_TRUST_TABLE = re.compile(r"""^\[hooks\.state\.("(?:[^"\\]|\\.)*"|'[^']*')\]""", re.MULTILINE)


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
        if plan.settings and plan.settings.path.name == "hooks.json":
            found += _marks_of_trust(Path(plan.root, "config.toml"), plan.settings.path, plan.settings.after)
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


def _marks_of_trust(config: Path, hooks: Path, after: bytes | None) -> Iterator[Leftover]:
    """Yield Codex's marks of trust in hooks of ours that are gone then."""
    try:
        declared = json.loads(after or b"{}").get("hooks", {})
    except (ValueError, AttributeError):
        declared = {}
    staying = {
        _place(event, at, number)
        for event, groups in declared.items()
        for at, group in enumerate(groups)
        for number in range(len(group.get("hooks", ())))
    }
    keys = [match[1].strip("\"'") for match in _TRUST_TABLE.finditer(_text(str(config)))]
    real = os.path.realpath(hooks)
    gone = [
        key
        for key in keys
        for file, _, place in [key.partition("hooks.json:")]
        if os.path.realpath(f"{file}hooks.json") == real and place not in staying
    ]
    if gone:
        number = f"{len(gone)} mark{'' if len(gone) == 1 else 's'} of trust for hooks that are gone, in {config}"
        yield Leftover(number, f'delete the tables [hooks.state."{hooks}:..."], which Codex wrote')


def _place(event: str, group: int, number: int) -> str:
    """Return what Codex calls the place of a hook: `user_prompt_submit:0:0`."""
    name = re.sub("(?<!^)([A-Z])", r"_\1", event).lower()
    return f"{name}:{group}:{number}"


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
