"""What a group and its agent find before they start: directories, CLAUDE.md, settings.json, the names of sessions."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ..runtimes.declared_hooks import wanted_hooks
from ..settings.host_layout import Group, Layout, open_below
from ..settings.program import source_dir
from ..system.files import write_atomically, write_private
from ..system.json import encode

CHAT = "chat"
TEMPLATE = "host"
NAME_SECONDS = 7 * 24 * 3600
FEATURES = {
    "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0",
}
# The others run inside the host, as callbacks of the SDK, which has none for these.
_HOOK_EVENTS = ("SessionStart", "SessionEnd")


def prepare_host(layout: Layout) -> list[str]:
    """Makes the host's directory, with what all groups are told; the files that were missing. Raises OSError."""
    layout.make()
    made = []
    for path, name in ((layout.global_instructions, "groups/global/CLAUDE.md"), (layout.config_file, "host.yaml")):
        if not os.path.lexists(path):
            write_private(path, _template(name))
            made.append(path)
    return made


def prepare_group(group: Group) -> list[str]:
    """Makes the group's directories, and its CLAUDE.md and settings.json where there are none; the files made.

    Raises OSError, OutsideGroupError.
    """
    group.make()
    forget_old_names(group, time.time())
    made = []
    if not os.path.lexists(group.instructions):
        content = _template(f"groups/{'main' if group.is_main else 'group'}/CLAUDE.md")
        write_private(group.instructions, content.replace(b"{group}", group.name.encode()))
        made.append(group.instructions)
    if not os.path.lexists(group.settings_file):
        write_private(group.settings_file, json.dumps(first_settings(), indent=2).encode() + b"\n")
        made.append(group.settings_file)
    return made


def first_settings() -> dict[str, Any]:
    """What settings.json holds when it is made: the feature flags, and what of our hooks the host does not run."""
    source = source_dir()
    declared = (source / "hooks" / "hooks.json").read_text()
    hooks: dict[str, list[dict[str, Any]]] = {}
    for hook in wanted_hooks(declared, sys.executable, str(source)):
        if hook.event in _HOOK_EVENTS:
            matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
            hooks.setdefault(hook.event, []).append({**matcher, "hooks": [hook.entry]})
    return {"env": FEATURES, "hooks": hooks}


def instructions_for_all(layout: Layout) -> str:
    """What groups/global/CLAUDE.md says; '' where there is none, or a link in its place. Raises OutsideGroupError."""
    try:
        descriptor = open_below(layout.root, "groups", "global", "CLAUDE.md")
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def name_session(group: Group, name: str, session_id: str) -> None:
    """Has the group's other sessions hear of this one under `name`, and of no other under it. Raises OSError."""
    path = f"{group.memory_home.sessions_dir}/{name}.json"
    write_atomically(path, encode({"sessionId": session_id}).encode())


def forget_old_names(group: Group, now: float) -> None:
    """Takes the names of tasks away that have not run for long; what they did was told by then. `now` in seconds."""
    directory = Path(group.memory_home.sessions_dir)
    for path in directory.glob("*.json"):
        if path.stem != CHAT and now - path.lstat().st_mtime > NAME_SECONDS:
            path.unlink()


def _template(name: str) -> bytes:
    return Path(source_dir(), "templates", TEMPLATE, name).read_bytes()
