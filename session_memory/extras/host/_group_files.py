"""The files of a host and its groups: directories, CLAUDE.md, settings.json, the names of
sessions."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...common.system.files import write_atomically, write_private
from ...common.system.json import encode
from ...sessions.confined_files import directory_below, read_inside, write_inside
from ...sessions.runtimes.claude import RUNTIME
from ...sessions.runtimes.claude.install import NO_CALLBACK_EVENTS
from ...sessions.settings.host_layout import Group, Layout, open_below
from ...sessions.settings.keys import sample
from ...sessions.settings.program import source_dir
from ._ledger import Ledger
from ._values import LOCAL

CHAT = "chat"
TEMPLATE = "host"
NAME_SECONDS = 7 * 24 * 3600
# Claude Code deletes transcripts after 30 days otherwise.
KEEP_KEY, KEEP_DAYS = "cleanupPeriodDays", 36_500
SETTINGS_BYTES = 4 * 1024 * 1024
FEATURES = {
    "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1",
    "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0",
}


def prepare_host(layout: Layout) -> list[str]:
    """Create the host's missing directory and files; return the files created. Raises OSError."""
    layout.make()
    made = []
    instructions = _template("groups/global/CLAUDE.md")
    for path, content in (
        (layout.global_instructions, instructions),
        (layout.config_file, sample().encode()),
    ):
        if not os.path.lexists(path):
            write_private(path, content)
            made.append(path)
    return made


def prepare_group(group: Group) -> list[str]:
    """Create a group's missing directories and files; return those files.

    Raises OSError, OutsideGroupError."""
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
    else:
        keep_transcripts(group)
    return made


def keep_transcripts(group: Group) -> None:
    """Set how long the runtime keeps transcripts, unless a person did.

    Raises OSError, OutsideGroupError."""
    folder, name = os.path.split(group.settings_file)
    with directory_below(group.host, folder) as directory:
        try:
            settings = json.loads(read_inside(directory, name, SETTINGS_BYTES))
        except (OSError, ValueError):  # the runtime reports the fault
            return
        if isinstance(settings, dict) and KEEP_KEY not in settings:
            content = json.dumps({**settings, KEEP_KEY: KEEP_DAYS}, indent=2, ensure_ascii=False)
            write_inside(directory, name, content.encode("utf-8", "replace") + b"\n")


def add_group(
    layout: Layout, ledger: Ledger, name: str, chat: str = "", title: str = "", trigger: str = ""
) -> list[str]:
    """Register a group for the chat `chat`, or ('') for the terminal's, and create its files.

    Return the files. Files of an earlier group of this name are used again. Raises
    SessionMemoryError, OSError."""
    group = layout.group(name)
    ledger.register(name, chat or f"{LOCAL}{name}", title or name, trigger, bool(trigger))
    return prepare_group(group)


def first_settings() -> dict[str, Any]:
    """Return a group's first settings.json.

    It has the feature flags, and the flags of our hooks that the host does not run."""
    source = source_dir()
    declared = (source / "hooks" / "hooks.json").read_text()
    hooks: dict[str, list[dict[str, Any]]] = {}
    for hook in RUNTIME.install.wanted_hooks(declared, sys.executable, str(source)):
        if hook.event in NO_CALLBACK_EVENTS:  # the other hooks run inside the host
            matcher = {} if hook.matcher is None else {"matcher": hook.matcher}
            hooks.setdefault(hook.event, []).append({**matcher, "hooks": [hook.entry]})
    return {"env": FEATURES, KEEP_KEY: KEEP_DAYS, "hooks": hooks}


def instructions_for_all(layout: Layout) -> str:
    """Return the text of groups/global/CLAUDE.md; '' if it is missing or a symlink.

    Raises OutsideGroupError."""
    try:
        descriptor = open_below(layout.root, "groups", "global", "CLAUDE.md")
    except FileNotFoundError:
        return ""
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def name_session(group: Group, name: str, session_id: str) -> None:
    """Name a session for the group's other sessions.

    A name belongs to one session. Raises OSError."""
    path = f"{group.memory_home.sessions_dir}/{name}.json"
    write_atomically(path, encode({"sessionId": session_id}).encode())


def forget_old_names(group: Group, now: float) -> None:
    """Remove the names of tasks that have not run for NAME_SECONDS.

    `now` is in seconds since the epoch."""
    directory = Path(group.memory_home.sessions_dir)
    for path in directory.glob("*.json"):
        with suppress(OSError):  # the agent may have put anything there, such as a directory
            if path.stem != CHAT and now - path.lstat().st_mtime > NAME_SECONDS:
                path.unlink()


def _template(name: str) -> bytes:
    return Path(source_dir(), "templates", TEMPLATE, name).read_bytes()
