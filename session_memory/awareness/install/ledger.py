"""installed.json: our additions to each home, and the content before them.

It is written before each change that it describes.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...common.errors import SessionMemoryError
from ...common.system.file_changes import (
    FileChange,
    checksum,
    missing_directories,
    read_if_there,
    write_in_place,
)

_FORMAT = 2
_SCHEMA_KEY = "$schema"  # OpenCode puts it into a file that has none


@dataclass
class HomeRecord:
    """The additions to one home of `runtime` (a name, or `.agents` for skills that several share).

    `settings_file` is '' for a runtime without one for hooks. `original` is the settings file
    before the install (None: it did not exist), and `written` are the checksums of the versions
    that we have written since. `commands` are the hook commands and `rules` the permission rules in
    it. `files` maps the path of each file that we wrote (of a skill, a template or an extension) to
    its checksum. `made` lists the directories that we created, the outermost first. `installed_at`
    is in seconds since 1970. A home made from a template has its name in `template`, and in
    `identity` the files that were copied once and are now the user's. `status_line` is {} or
    describes the file with our status line: its path `file`, its content `before` (None: it did not
    exist), and its checksum `after`. `server` describes a separate file that lists our MCP server
    in the same way."""

    settings_file: str
    original: str | None = None
    written: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    installed_at: float = 0.0
    template: str = ""
    identity: dict[str, str] = field(default_factory=dict)
    runtime: str = "claude-code"
    status_line: dict[str, Any] = field(default_factory=dict)
    server: dict[str, Any] = field(default_factory=dict)

    def note_server(self, change: FileChange, stripped: bytes | None) -> None:
        """Note a change of the file that lists our MCP server, as `note_settings` does."""
        if change.before is None or checksum(change.before) != self.server.get("after"):
            self.server = {
                "file": str(change.path),
                "before": None if stripped is None else stripped.decode(),
            }
        self.server["after"] = checksum(change.after or b"")

    def note_settings(self, before: bytes | None, stripped: bytes | None, after: bytes) -> None:
        """Note a change of the settings file; `stripped` is `before` without our hooks.

        The original stays the same as long as nobody else has written the file."""
        if before is None or checksum(before) not in self.written:
            self.original = None if stripped is None else stripped.decode()
            self.written = []
        self.written.append(checksum(after))

    def restored(
        self, path: Path, noted: Mapping[str, Any], strip: Callable[[bytes], bytes]
    ) -> FileChange:
        """Return the change of a file back to its original, or to the result of `strip`.

        It is the original if the file is as we wrote it. `noted` is `status_line` or `server`; {}
        for the settings file."""
        written = [noted["after"]] if noted else self.written
        original = noted["before"] if noted else self.original
        before = after = read_if_there(path)
        if before is not None and checksum(before) in written:
            after = None if original is None else original.encode()
        elif before is not None:
            after = strip(before)
            if original is None and _is_empty(after, path):
                after = None
        return FileChange(path, before, after)

    def note_directories(self, directory: Path) -> None:
        """Note which of `directory` and its parents do not exist yet."""
        missing = [str(path) for path in missing_directories(directory)]
        self.made += [path for path in missing if path not in self.made]

    def taken_below(self, directory: str) -> HomeRecord | None:
        """Move the files and directories in `directory` to a new record, and return it, or None."""

        def is_below(path: str) -> bool:
            return path == directory or path.startswith(f"{directory}/")

        files = {path: self.files.pop(path) for path in list(self.files) if is_below(path)}
        made = [path for path in self.made if is_below(path)]
        self.made = [path for path in self.made if path not in made]
        installed_at = self.installed_at
        return HomeRecord("", files=files, made=made, installed_at=installed_at) if files else None


@dataclass
class InstallLedger:
    """The ledger.

    `records` are by the paths of homes; `made` lists the directories that were created for the
    program itself."""

    path: Path
    records: dict[str, HomeRecord] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> InstallLedger:
        """Return the ledger at `path`, or an empty one. Raises SessionMemoryError."""
        try:
            content = json.loads(path.read_bytes())
            if content["format"] != _FORMAT:
                known = f"and this version reads only {_FORMAT}"
                raise ValueError(f"its format is {content['format']!r}, {known}")
            records = {home: HomeRecord(**record) for home, record in content["homes"].items()}
            return cls(path, records, content["made"])
        except FileNotFoundError:
            return cls(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            hint = "move it away and run install.py again: it finds its own entries in the settings"
            raise SessionMemoryError(f"{path}: it cannot be read ({error})", hint) from None

    def recogniser(self) -> Callable[[str], bool]:
        """Return a function that checks if a hook command is ours.

        It is if it is in the ledger now, or runs a copy of this program."""
        known = {command for record in self.records.values() for command in record.commands}
        return lambda command: command in known or _runs_this_program(command)

    def save(self) -> None:
        """Save the ledger for this user only, because settings may contain secrets.

        Raises OSError."""
        records = {root: asdict(record) for root, record in self.records.items()}
        content = {"format": _FORMAT, "homes": records, "made": self.made}
        write_in_place(self.path, (json.dumps(content, indent=1) + "\n").encode())


def _runs_this_program(command: str) -> bool:
    """Check if a command runs a hook of any copy of this program, installed or not."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    for word in words:
        root, _, script = word.replace("\\", "/").rpartition("/hooks/")
        if root and script.endswith(".py") and "/" not in script:
            return root.endswith("/session-memory/app") or os.path.isdir(
                os.path.join(root, "session_memory")
            )
    return False


def _is_empty(content: bytes, path: Path) -> bool:
    """Check if settings have nothing left that a person or a runtime would miss."""
    if path.suffix in (".toml", ".yaml"):
        return not content.strip()
    try:
        values = json.loads(content)
    except ValueError:  # it has comments
        return False
    return isinstance(values, dict) and not values.keys() - {_SCHEMA_KEY}
