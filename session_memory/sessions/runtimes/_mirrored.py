"""The base class of runtimes whose sessions are read from mirrors.

These runtimes do not store sessions as files of lines that only grow.
"""

from __future__ import annotations

from ...common.system.files import Opened, checksum, is_file, names_in, status_at
from ...common.system.json import as_string
from ...common.text.paths import LONGEST_NAME, dashed, is_name
from ..transcripts.mirror import Exclusion, MirrorLook, has_changed, mark_of
from .base import CopiedSessions, ProjectFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..transcripts._mirrored_files import Listing, Source
    from ..transcripts.mirror import Repeats
    from .base import Event

_MOST_CHARACTERS = 200  # of the name of a folder


class MirroredSessions(CopiedSessions, ProjectFolders):
    """A runtime with a mirror for each session (see sessions/transcripts/mirror.py).

    The mirror is `<directory>/<session>.jsonl`; a sub-agent's mirror is in `<session>/` beside it."""

    IS_MIRRORED = True
    SOURCE = ""  # the file or folder of sessions in the runtime's directory; '' for all of it
    # the folder for mirrors of sessions whose directory is unknown
    NO_DIRECTORY = "unknown"

    def transcripts_dir(self, config_dir: str) -> str:
        return self.copies_root(config_dir)

    def refresh(self, config_dir: str, everything: bool = False) -> None:
        """Update the mirrors if a session has changed.

        A prompt reads only a limited amount."""
        if self._changed_root(config_dir, everything):
            self._update(config_dir, everything)

    def look(self, config_dir: str) -> None:
        if root := self._changed_root(config_dir):
            MirrorLook(root, lambda: self._update(config_dir)).run()

    def source(self, config_dir: str) -> str:
        """Return the path of the file or folder with the runtime's own sessions."""
        return f"{config_dir}/{self.SOURCE}"

    def _changed_root(self, config_dir: str, everything: bool = False) -> str:
        """Return the directory of the mirrors if they may have to be updated; else ''."""
        if not status_at(self.source(config_dir)):
            return ""
        root = self.copies_root(config_dir)
        return root if everything or has_changed(root) else ""

    def _update(self, config_dir: str, everything: bool = False) -> None:
        mirrors = self.module("mirrors")
        mirrors.bring_up_to_date(Mirrors(self, config_dir), everything)

    def watched_dirs(self, config_dir: str) -> list[str]:
        return [config_dir]

    def folder_name(self, directory: str) -> str:
        return dashed(directory)[:_MOST_CHARACTERS] or self.NO_DIRECTORY

    def transcript_path(self, config_dir: str, cwd: str, session_id: str) -> str:
        """Return the path of the mirror.

        A session stays in its folder even if it continues in another directory."""
        path = super().transcript_path(config_dir, cwd, session_id)
        return path if is_file(path) else self.transcript_of(config_dir, session_id) or path

    def databases(self, config_dir: str) -> dict[str, str]:
        """Return the paths of the databases with sessions, by the keys that marks have for them."""
        return {}

    def database_name(self, key: str) -> str:
        """Return the name of a database, with which the ids of its copied sessions end."""
        return key

    def mirror_for(self, config_dir: str, path: str, key: str) -> str:
        """Return the path of the mirror of a session in the database `key`, existing or not.

        It is `path`, unless that is the mirror of another database's session with the same id."""
        session_id = self.session_id_of(path)
        present = path if is_file(path) else self.transcript_of(config_dir, session_id)
        others = mark_of(present).get("files", {}) if present else {}
        if key in others:
            return path
        own_id = self.copied_id(session_id, key)
        named = f"{path.rpartition('/')[0]}/{own_id}.jsonl"
        existing = named if is_file(named) else self.transcript_of(config_dir, own_id)
        if existing or not others:
            return existing or path
        databases = self.databases(config_dir)
        return named if any([other in databases for other in others]) else path

    def copied_id(self, session_id: str, key: str) -> str:
        """Return the id of a session in the database `key`, if another one has its usual id.

        It ends with the database's name, or with a checksum if it would be no name then."""
        own_id = f"{session_id}-{self.database_name(key)}"
        if is_name(own_id):
            return own_id
        end = f"-{checksum(own_id.encode('utf-8', 'surrogateescape')):x}"
        return session_id[: LONGEST_NAME - len(end)] + end

    def own_database(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the key of the database with the session of an event, by it or the environment.

        The event is empty for a command that an agent runs. Return '' if unknown."""
        return ""

    def own_event(self, event: dict[str, object], environ: Mapping[str, str]) -> dict[str, object]:
        session_id, cwd = as_string(event.get("session_id")), as_string(event.get("cwd"))
        own_id = self._own_id(session_id, cwd, self.own_database(event, environ), environ)
        return event if own_id == session_id else {**event, "session_id": own_id}

    def own_session_id(self, environ: Mapping[str, str]) -> str:
        session_id = super().own_session_id(environ)
        return self._own_id(session_id, "", self.own_database({}, environ), environ)

    def _own_id(self, session_id: str, cwd: str, key: str, environ: Mapping[str, str]) -> str:
        """Return the id that the mirror of a session in the database `key` has."""
        if not (key and is_name(session_id)):
            return session_id
        return self.mirror_id(self.config_dir(environ), cwd, session_id, key)

    def mirror_id(self, config_dir: str, cwd: str, session_id: str, key: str) -> str:
        """Return the id of the mirror of a session in the database `key` (see `mirror_for`)."""
        path = self.transcript_path(config_dir, cwd, session_id)
        return self.session_id_of(self.mirror_for(config_dir, path, key))

    def event_config_dir(self, event: Event, environ: Mapping[str, str]) -> str:
        """Return the usual directory: an event names no file below it that is read."""
        return self.config_dir(environ)

    def own_path(self, event: Event, start: str, config_dir: str) -> str:
        """Return the path of the mirror, not of the runtime's own file, which an event may name."""
        return self.transcript_path(config_dir, start, as_string(event.get("session_id")))


class Mirrors:
    """The mirrors of the sessions in a directory of a runtime: below `root`, without exclusions."""

    def __init__(self, runtime: MirroredSessions, config_dir: str) -> None:
        self.runtime = runtime
        self.config_dir = config_dir
        self.root = runtime.copies_root(config_dir)
        self.exclusion = Exclusion(runtime.home_of(config_dir))

    def refresh(
        self,
        everything: bool,
        find: Callable[[str], Listing],
        add: Callable[[Source, Mirrors, int], int],
    ) -> None:
        """Add new content of the runtime's files (see `refresh_mirrors`).

        `find` gets the runtime's directory. `add` gets a file, these mirrors, and how many bytes it
        may read."""
        from ..transcripts._mirrored_files import refresh_mirrors

        refresh_mirrors(
            self.root,
            self.exclusion,
            everything,
            lambda: find(self.config_dir),
            lambda source, most_bytes: add(source, self, most_bytes),
        )

    def folder(self, directory: str) -> str:
        """Return the folder for the mirrors of sessions that were started in `directory`."""
        return f"{self.root}/{self.runtime.folder_name(directory)}"

    def folder_of(self, session_id: str, directory: str) -> str:
        """Return the folder of the mirror of a session that is now in `directory`.

        A session's directory may change, but its mirror stays in the first known one."""
        folder, name = self.folder(directory), f"{session_id}.jsonl"
        names = [] if is_file(f"{folder}/{name}") else names_in(self.root)
        others = [f"{self.root}/{each}" for each in names if each != self.runtime.NO_DIRECTORY]
        return next((other for other in others if is_file(f"{other}/{name}")), folder)

    def first_directory(self, path: str) -> str:
        """Return the directory in the first line of the mirror at `path`; '' if there is none."""
        if not is_file(path):
            return ""
        from ..transcripts.lines import first_line

        with Opened(path) as descriptor:
            branch = self.runtime.records.open_transcript(first_line(descriptor))
        return branch.directory if branch else ""

    def repeats(self, directory: str, session_id: str) -> Repeats | None:
        """Return what a mirror of this session repeats of a forgotten one (see Exclusion)."""
        return self.exclusion.repeats(self.runtime.records, directory, session_id)
