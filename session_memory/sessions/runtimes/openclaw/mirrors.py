"""Brings the mirrors of OpenClaw's sessions up to date by adding new rows.

OpenClaw only adds rows to a session, unless it replaces them; then the session has another
generation. A mark has the agent, the number of the next row, the generation, and the title. After a
replacement, the rows from the first changed one on are added again. The records are a tree, and only
the last record's branch counts, so these replace the earlier ones.
"""

from __future__ import annotations

from ....common.system.files import make_private_dir, names_in, read_whole
from ....common.text.paths import is_name
from ....common.text.secrets.redaction import redact
from ....common.text.timestamps import epoch_seconds
from ...transcripts.mirror import CompactMirror, Mirror, copies_of, is_mark
from .._mirrored_database import DatabaseSource, MirroredDatabase
from . import AGENTS, RUNTIME
from .database import AgentDatabase, Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ...transcripts._mirrored_files import Source
    from .._mirrored import Mirrors
    from .rows import Record, WindowRow

# the most rows of one session that a prompt adds to its mirror; a longer one waits for upkeep
PROMPT_ROWS = 300


def bring_up_to_date(mirrors: Mirrors, everything: bool) -> None:
    """Add new rows of the agents' databases to the mirrors."""
    _Agent.bring_up_to_date(mirrors, everything, _sources)


def _sources(config_dir: str) -> tuple[list[str], list[Source]]:
    """Return the directories whose listings show new databases, and the databases."""
    folder = f"{config_dir}/{AGENTS}"
    listed = [folder, *[f"{folder}/{name}/agent" for name in names_in(folder)]]
    databases = RUNTIME.databases(config_dir)
    return listed, [DatabaseSource(path, agent) for agent, path in databases.items()]


class _Agent(MirroredDatabase):
    """Adds the new rows of an agent's sessions to the mirrors."""

    READER = AgentDatabase

    def add_session(self, database: AgentDatabase, session: WindowRow, everything: bool) -> int:
        addition = _Addition(database, session)
        return self._append(database, addition, everything) if addition.first else 0

    def _append(self, database: AgentDatabase, addition: _Addition, everything: bool) -> int:
        session = addition.session
        exclusion, directory = self.mirrors.exclusion, addition.directory
        folder = self.mirrors.folder(directory)
        parent = addition.parent and self.mirror_for(f"{folder}/{addition.parent}.jsonl")[1]
        folder = f"{folder}/{parent}" if parent else folder
        folder, own_id = self.mirror_for(f"{folder}/{session.id}.jsonl")
        ids = [*dict.fromkeys(filter(None, (addition.parent, parent, session.id, own_id)))]
        path = f"{folder}/{own_id}.jsonl"
        titles = session.title, addition.parent_title
        hidden_by = exclusion.hidden_by([directory], ids, titles)
        repeats = self.mirrors.repeats(directory, own_id)
        forgotten = exclusion.forgotten(directory, *ids)
        make_private_dir(folder)
        with CompactMirror(path, hidden_by, repeats) as mirror:
            end, mark = database.next_row(session.id), mirror.mark
            if not everything and end - mark.get("next", 0) > PROMPT_ROWS:
                raise ValueError("its session is too long for now")
            lines = addition.lines(mirror, bool(hidden_by), forgotten)
            title = "" if forgotten else redact(session.title.strip())
            first: list[Record | bytes] = []
            if not mark:
                first.append(session.header(addition.first, own_id, parent))
            if title != mark.get("title", ""):
                first += session.title_lines(title)
            after = {
                **mark,
                "files": {self.key: 1},
                "next": end,
                "generation": addition.generation,
                "title": title,
            }
            if after == mark:
                return 0
            added = _checked(first, lines, database)
            return mirror.append(added, after, session.updated)


class _Addition:
    """The rows of a session that its mirror lacks.

    `first` is the session's first record, empty if it has no rows yet. The `parent` of a sub-agent
    is the id of the session that started it, with its title."""

    def __init__(self, database: AgentDatabase, session: WindowRow) -> None:
        self.session = session
        self.generation = database.generation(session.id)
        self._database = database
        self.first = database.first(session.id)
        above = database.parents(session)
        self.parent = self.parent_title = ""
        self.directory = self._directory(self.first)
        if session.is_of_subagent:
            is_there = above is not None and is_name(above.id)
            self.parent = above.id if above is not None and is_there else session.id
            self.parent_title = above.title if above is not None else ""
            self.directory = self._directory(database.first(self.parent)) or self.directory

    @staticmethod
    def _directory(first: Record) -> str:
        cwd = first.get("cwd")
        return cwd if isinstance(cwd, str) and cwd.startswith("/") else ""

    def lines(
        self, mirror: Mirror, is_excluded: bool, forgotten: float
    ) -> Iterable[Record | bytes]:
        """Return the lines to add to the mirror, without messages from before `forgotten`.

        Unless rows were replaced, they are read one by one: a session may have a gigabyte."""
        mark = mirror.mark
        is_replaced = bool(mark) and self.generation != mark["generation"]
        begin = 0 if is_replaced or not mark else mark["next"]
        lines = (
            self.session.line(record, seq)
            for seq, record in self._database.records(self.session.id, begin)
            if record.get("type") != "session" and not _is_forgotten(record, forgotten)
        )
        return _changed([*lines], mirror, is_excluded) if is_replaced else lines


def _checked(
    first: Iterable[Record | bytes], lines: Iterable[Record | bytes], database: AgentDatabase
) -> Iterator[Record | bytes]:
    """Yield the lines. Raises Error after the last one if the database has changed meanwhile."""
    yield from first
    yield from lines
    if not database.is_same:
        raise Error("the database is being changed")


def _is_forgotten(record: Record, until: float) -> bool:
    return bool(until) and (epoch_seconds(record.get("timestamp")) or 0.0) <= until


def _changed(
    lines: list[Record | bytes], mirror: Mirror, is_excluded: bool
) -> list[Record | bytes]:
    """Return the lines from the first one on that the mirror lacks.

    If only the end was removed, return the new last line, which ends the branch. Raises OSError."""
    mirrored = [line for line in read_whole(mirror.path).splitlines() if not is_mark(line)]
    known, copied = set(mirrored), b""
    for number, line in enumerate(lines):
        copies: list[Any] = [line] if isinstance(line, bytes) else copies_of([line], is_excluded)
        copied = mirror.encoded(copies)[0]
        if copied not in known:
            return lines[number:]
    return lines[-1:] if copied != mirrored[-1] else []
