"""Plans the changes that add hooks to a home or remove them, and makes them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...common.errors import SessionMemoryError
from ...common.system.file_changes import FileChange, checksum, read_if_there, remove_if_empty
from ...sessions.runtimes.install import Hook, Install
from ...sessions.settings.program import ProgramPaths
from ..events.main import HOME_OPTION
from .formats import settings_at
from .ledger import HomeRecord, InstallLedger

NOTICE_HOOKS = "notices.json"  # in hooks/, the hooks that only notices need
_MODE = 0o644  # of files that a runtime loads
# in each extension of ours, whatever the version; OpenClaw's has further files in its directory
_OF_EXTENSIONS = (b"SESSION_MEMORY_PYTHON", b"/hooks/user_prompt_submit.py")


@dataclass(frozen=True)
class InstalledPaths:
    """The origin of the files in a home.

    `source` has hooks/ and skills/, and `python` is the interpreter. `paths` are the paths
    of the installed program. With `has_notices`, the hooks for notices belong to them."""

    source: Path
    python: str
    paths: ProgramPaths
    has_notices: bool = False

    def hooks_for(self, install: Install, below: str = "") -> list[Hook]:
        """Return the hooks that a runtime's settings should have.

        If `below` is not '', their commands name the agent home at this path in the project's
        directory."""
        hooks = install.wanted_hooks(self._declared(), self.python, str(self.paths.app))
        if not below:
            return hooks
        return [_naming_home(hook, below, install.FAIL_OPEN) for hook in hooks]

    def files_for(self, install: Install) -> dict[str, str]:
        """Return the text of each of our files that a runtime loads.

        The keys are paths in the directory of the runtime's settings."""
        return install.wanted_files(self._declared(), self.python, str(self.paths.app))

    def _declared(self) -> str:
        declared = (self.source / "hooks" / "hooks.json").read_text()
        if not self.has_notices:
            return declared
        notices = json.loads((self.source / "hooks" / NOTICE_HOOKS).read_text())
        return json.dumps({"hooks": {**json.loads(declared)["hooks"], **notices["hooks"]}})


@dataclass
class HookPlan:
    """The changes to one home.

    `settings` is the change of the file with the hooks; None if the home has no such file.
    `runtime` is the name in the ledger. `hooks` will be in the settings. `stripped` is the settings
    file without our content; None without a file. `files` are the changes to our other files,
    `checksums` their checksums afterwards, by path. `extensions` are the paths of files that a
    runtime loads instead of hooks. `notes` are for the user."""

    root: str
    settings: FileChange | None
    runtime: str = "claude-code"
    hooks: list[Hook] = field(default_factory=list)
    stripped: bytes | None = None
    files: list[FileChange] = field(default_factory=list)
    checksums: dict[str, str] = field(default_factory=dict)
    extensions: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def shared_files(self) -> list[FileChange]:
        """The files that others write too."""
        return [self.settings] if self.settings else []

    @property
    def changes(self) -> list[FileChange]:
        """The files that will not be as they were."""
        return [change for change in (*self.shared_files, *self.files) if change.is_needed]

    def put(self, path: Path, content: bytes, known: str | None, mode: int = _MODE) -> None:
        """Plan one of our files; keep a user's version, which differs from the checksum `known`."""
        current = read_if_there(path)
        if current is not None and current != content and checksum(current) != known:
            self._keep_aside(path, current)
        self.files.append(FileChange(path, current, content, mode))
        self.checksums[str(path)] = checksum(content)

    def take_away_old(self, known: dict[str, str]) -> None:
        """Plan the removal of our earlier files, which are in the ledger (`known`) and not planned.

        If a file is not as we wrote it, keep the user's version."""
        for name, known_checksum in known.items():
            path = Path(name)
            if name not in self.checksums and (current := read_if_there(path)) is not None:
                if checksum(current) != known_checksum:
                    self._keep_aside(path, current)
                self.files.append(FileChange(path, current, None))

    def put_extensions(
        self, install: Install, directory: str, made_from: InstalledPaths, known: dict[str, str]
    ) -> None:
        """Plan the files in a runtime's `directory` that it loads instead of hooks.

        Raises SessionMemoryError if a file is somebody else's, CannotWriteError."""
        texts = made_from.files_for(install)
        ours = known.keys() | self.extensions_there(directory, texts).keys()
        for name, text in texts.items():
            path = Path(directory, name)
            if str(path) not in ours and read_if_there(path) not in (None, text.encode()):
                raise SessionMemoryError(
                    f"{path}: session-memory did not write this file",
                    "move it away and run this command again",
                )
            self.extensions.append(path)
            self.put(path, text.encode(), known.get(str(path)))

    def put_hooks(
        self, path: Path, hooks: list[Hook], install: Install, is_ours: Callable[[str], bool]
    ) -> None:
        """Plan these hooks in the settings file at `path`, instead of our present ones.

        Raises SettingsFileError, CannotWriteError."""
        before = read_if_there(path)
        after = settings_at(before, path, install).with_hooks(hooks, is_ours).content
        self.settings, self.hooks = FileChange(path, before, after), hooks
        if before is not None:
            self.stripped = settings_at(before, path, install).without_hooks(is_ours).content

    def restore(self, record: HomeRecord, strip: Callable[[bytes], bytes]) -> None:
        """Plan the removal of everything that a record lists.

        `strip` removes it from a settings file that others have written since. Raises
        SettingsFileError, CannotWriteError."""
        if record.settings_file:
            path = Path(record.settings_file)
            self.settings = record.restored(path, {}, strip)
        self.take_away_old(record.files)

    def make(self, ledger: InstallLedger) -> None:
        """Make the changes, and note each in the ledger beforehand.

        Raises CannotWriteError, ChangedMeanwhileError, OSError."""
        if not self.changes and self.root in ledger.records:
            return
        settings = self.settings
        path = str(settings.path) if settings else ""
        new = HomeRecord(path, installed_at=time.time(), runtime=self.runtime)
        record = ledger.records.setdefault(self.root, new)
        if settings and settings.after is not None and (settings.is_needed or not record.written):
            record.note_settings(settings.before, self.stripped, settings.after)
            record.installed_at = time.time()
        self.note_before(record)
        for change in self.changes:
            record.note_directories(change.path.parent)
        ledger.save()
        for change in self.changes:
            change.make()
            if change.after is None:
                remove_if_empty(change.path.parent)
        self.note_after(record)
        ledger.save()

    def note_before(self, record: HomeRecord) -> None:
        """Note our future content beside the present one, until the changes are made."""
        record.commands = sorted({*record.commands, *(hook.command for hook in self.hooks)})
        record.files = {**self.checksums, **record.files}

    def note_after(self, record: HomeRecord) -> None:
        """Note our content once the changes are made."""
        record.commands = [hook.command for hook in self.hooks]
        record.files = dict(self.checksums)

    def make_removal(self, ledger: InstallLedger) -> None:
        """Make the changes and forget the home.

        Raises CannotWriteError, ChangedMeanwhileError, OSError."""
        for change in self.changes:
            change.make()
        for directory in sorted({change.path.parent for change in self.files}, reverse=True):
            remove_if_empty(directory)
        record = ledger.records.pop(self.root, None)
        for made in reversed(record.made if record else []):
            remove_if_empty(Path(made))
        if ledger.path.exists():
            ledger.save()

    def _keep_aside(self, path: Path, current: bytes) -> None:
        """Plan a copy of the user's version of a file, under an unused name."""
        number = 0
        aside = path.with_name(path.name + ".bak")
        while read_if_there(aside) not in (None, current):
            number += 1
            aside = path.with_name(f"{path.name}.bak{number}")
        self.files.append(FileChange(aside, read_if_there(aside), current, _MODE))
        self.notes.append(
            f"{path} has changed since it was installed; your version is kept as {aside.name}"
        )

    @staticmethod
    def extensions_there(directory: str, names: Iterable[str]) -> dict[str, bytes]:
        """Return the files of our extensions among the `names` in a directory, with their contents.

        Raises CannotWriteError."""
        paths = [Path(directory, name) for name in names]
        there = {path: content for path in paths if (content := read_if_there(path)) is not None}
        folders = {
            path.parent
            for path, content in there.items()
            if any(mark in content for mark in _OF_EXTENSIONS)
        }
        return {str(path): content for path, content in there.items() if path.parent in folders}


def _naming_home(hook: Hook, below: str, fail_open: str) -> Hook:
    """Return a hook whose command names an agent home by its path `below` the project's directory.

    So in a copy of the home, it names the copy. `fail_open` is the end of the command."""
    home = "$CLAUDE_PROJECT_DIR" if below == os.curdir else f"$CLAUDE_PROJECT_DIR/{below}"
    command = f'{hook.command.removesuffix(fail_open)} {HOME_OPTION} "{home}"{fail_open}'
    return Hook(hook.event, hook.matcher, {**hook.entry, "command": command})
