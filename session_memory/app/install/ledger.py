"""installed.json: what was added where, and what was there before. Written before each change that
it describes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...common.errors import SessionMemoryError
from ._file_changes import FileChange, checksum, missing_directories, write_in_place

_FORMAT = 2


class LedgerError(SessionMemoryError):
    """The ledger cannot be read."""


@dataclass
class HomeRecord:
    """The additions to one home of `runtime` (by its name; `.agents` for skills that several
    share).

    `settings_file` is '' where the runtime has none for hooks. `original` is the settings file as
    it was before (None: there was none), `written` the checksums of the versions of it that we
    wrote since, `commands` the hook commands in it and `rules` the permission rules. `files` maps
    the path of a file that we wrote (of a skill or a template, or an extension) to the checksum of
    that. `made` lists the directories that were not there before, the outermost first.
    `installed_at` is in seconds since 1970. A home made from a template has its name in `template`,
    and in `identity` the files that were copied once and are the user's since. `status_line` is {}
    or has the `file` that our status line was put in, what that was `before` (None: there was
    none), and the checksum of what it was `after`; `server` has the same of a file of its own that
    lists our MCP server."""

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
        """Notes a change of the file that lists our MCP server, as `note_settings` does."""
        if change.before is None or checksum(change.before) != self.server.get("after"):
            self.server = {
                "file": str(change.path),
                "before": None if stripped is None else stripped.decode(),
            }
        self.server["after"] = checksum(change.after or b"")

    def note_settings(self, before: bytes | None, stripped: bytes | None, after: bytes) -> None:
        """Notes a change of the settings file; `stripped` is `before` without any hooks of ours. As
        long as nobody else has written the file the original stays what it was."""
        if before is None or checksum(before) not in self.written:
            self.original = None if stripped is None else stripped.decode()
            self.written = []
        self.written.append(checksum(after))

    def note_directories(self, directory: Path) -> None:
        """Notes which of `directory` and its parents are yet to be made."""
        missing = [str(path) for path in missing_directories(directory)]
        self.made += [path for path in missing if path not in self.made]


@dataclass
class InstallLedger:
    """`homes` by path; `made` lists the directories that the program itself needed and that were
    not there before."""

    path: Path
    homes: dict[str, HomeRecord] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    def save(self) -> None:
        """Writes it, for this user alone: settings may hold secrets. Raises OSError."""
        content = {
            "format": _FORMAT,
            **{key: value for key, value in asdict(self).items() if key != "path"},
        }
        write_in_place(self.path, (json.dumps(content, indent=1) + "\n").encode())


def with_files_below(record: HomeRecord, directory: str) -> HomeRecord | None:
    """The files and directories in `directory` that a record lists, as a record of their own, out
    of which they are taken; None if it lists none."""

    def is_below(path: str) -> bool:
        return path == directory or path.startswith(f"{directory}/")

    files = {path: record.files.pop(path) for path in list(record.files) if is_below(path)}
    made, record.made = (
        [path for path in record.made if is_below(path)],
        [p for p in record.made if not is_below(p)],
    )
    return (
        HomeRecord("", files=files, made=made, installed_at=record.installed_at) if files else None
    )


def read_ledger(path: Path) -> InstallLedger:
    """The ledger; an empty one if there is none yet. Raises LedgerError."""
    try:
        content = json.loads(path.read_bytes())
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']!r}, this program knows {_FORMAT}")
        homes = {home: HomeRecord(**record) for home, record in content["homes"].items()}
        return InstallLedger(path, homes, content["made"])
    except FileNotFoundError:
        return InstallLedger(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        hint = "move it away and run install.py again: it finds its own entries in the settings"
        raise LedgerError(f"{path}: it cannot be read ({error})", hint) from None
