"""Reads the files of OpenCode from before it had a database: `storage/session/<project>/<session>.json`,
`message/<session>/` and `part/<message>/`, a JSON file for each. They stay there when OpenCode imports them into its
database, which it does for those of projects that it knows.

They are read as if they had been imported. Only upkeep and commands do that: no prompt waits for it."""

from __future__ import annotations

from ...system.files import names_in, path_stamp, read_whole
from ...system.json import as_object, as_string, encode
from ...system.quick_sqlite import connect
from ...transcripts.mirror import keep_state, read_state
from .database import DatabaseReader
from .rows import decoded, milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

_STATE = ".files"  # in the directory of the mirrors
_ENDING = ".json"
_TABLES = """
CREATE TABLE session (id PRIMARY KEY, parent_id, project_id, directory, title, time_created, time_updated, revert);
CREATE TABLE message (id PRIMARY KEY, session_id, time_created, data);
CREATE INDEX message_order ON message (session_id, time_created, id);
CREATE INDEX session_project ON session (project_id)
"""


class UnimportedSessions:
    """The files of sessions in `storage` that were never in the database, as `paths` by their ids: what was deleted
    there stays deleted. What is known of them is kept below `root`, the directory of the mirrors."""

    def __init__(self, storage: str, root: str) -> None:
        self._state_dir = f"{root}/{_STATE}"
        state = read_state(self._state_dir)
        self._imported: list[str] = state.get("imported", [])
        self._read: dict[str, list[int]] = state.get("read", {})
        imported = set(self._imported)
        folders = [f"{storage}/session/{name}" for name in names_in(f"{storage}/session")]
        every = dict(file for folder in folders for file in _files_in(folder))
        self.paths = {key: path for key, path in every.items() if key not in imported}
        self._stamps = {key: path_stamp(path) for key, path in self.paths.items()}

    @property
    def changed(self) -> list[str]:
        """Return those that were not read yet as they are."""
        return [key for key in self.paths if self._read.get(key) != self._stamps[key]]

    def keep_read(self, going_on: Collection[str]) -> None:
        """Note that they were read, but for those that go on. Raises OSError."""
        self._keep(self._imported, {key: stamp for key, stamp in self._stamps.items() if key not in going_on})

    def keep_imported(self, in_database: Collection[str]) -> None:
        """Note which of them are in the database by now. Raises OSError."""
        found = [key for key in self.paths if key in in_database]
        if found:
            self._keep(self._imported + found, self._read)
            self.paths = {key: path for key, path in self.paths.items() if key not in in_database}

    def _keep(self, imported: list[str], read: dict[str, list[int]]) -> None:
        keep_state(self._state_dir, {"imported": imported, "read": read})


class FileReader(DatabaseReader):
    """The sessions of these `paths`, and the messages and parts below `storage`. What cannot be read is left out."""

    def __init__(self, storage: str, paths: dict[str, str]) -> None:
        super().__init__(storage)
        self._storage = storage
        self._paths = paths

    def __enter__(self) -> FileReader:
        self._connection = connect(":memory:", isolation_level=None)
        for statement in _TABLES.split(";"):
            self._connection.execute(statement)
        for session_id, path in self._paths.items():
            session = decoded(_text(path))
            if session:
                self._insert(session_id, path.split("/")[-2], session)
        return self

    def unread(self) -> dict[str, Any]:
        return {}

    def parts(self, message_id: str) -> list[tuple[str, str]]:
        files = sorted(_files_in(f"{self._storage}/part/{message_id}"))
        return [(part_id, _text(path)) for part_id, path in files]

    def part_ids(self, message_id: str) -> list[str]:
        return sorted([part_id for part_id, _ in _files_in(f"{self._storage}/part/{message_id}")])

    def _insert(self, session_id: str, project: str, session: dict[str, Any]) -> None:
        row = [session_id, session.get("parentID"), project]
        row += [as_string(session.get(key)) for key in ("directory", "title")]
        row += [milliseconds(as_object(session.get("time")).get(key)) for key in ("created", "updated")]
        values = (*row, encode(session["revert"]) if session.get("revert") else None)
        self._connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
        for message_id, path in _files_in(f"{self._storage}/message/{session_id}"):
            message = decoded(_text(path))
            # The role as it stands in the database, where it is looked for.
            data = f'{{"role":"{message.pop("role", "")}", {encode(message)[1:]}' if message else ""
            if data:
                values = (message_id, session_id, milliseconds(as_object(message.get("time")).get("created")), data)
                self._connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)


def _files_in(directory: str) -> Iterator[tuple[str, str]]:
    """Return the JSON files in a directory: the id that each is named after, and its path."""
    for name in names_in(directory):
        if name.endswith(_ENDING) and not name.startswith("."):
            yield name.removesuffix(_ENDING), f"{directory}/{name}"


def _text(path: str) -> str:
    try:
        return read_whole(path).decode("utf-8", "replace")
    except OSError:
        return ""
