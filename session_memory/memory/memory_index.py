"""The index of memories on pages of Markdown, for searches. It can be rebuilt from the pages.

`home` is the group that has the memories, '' without groups. `path` is a page's path below the
group's directory; the path of memories of excluded sessions begins with PRIVATE."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from ..common.system.json import decode
from ..common.system.sqlite import Connection, Patience, fetch
from ..history.search.index import indexable
from ..history.search.query import LONGEST, parse, whole_expression
from ..history.store.rules import StoreRules
from ..history.store.sqlite.corruption import StoreDatabase
from ..history.store.sqlite.exclusions import Exclusions, Stamp, VisibilityOverrides
from ..history.store.sqlite.search_index import match_of, terms_of
from ..history.store.values import RuleSubject, joined

if TYPE_CHECKING:
    from ..history.store.values import Visible

UnknownSession = tuple[str, str, str]  # a group, an id, a directory
Changed = tuple[str, Sequence["IndexedMemory"]]

PRIVATE = ".private/"
_COLUMNS = (
    "i.home, i.path, i.id, i.kind, i.title, i.content, i.subject, i.quote, i.origins, "
    "i.superseded, i.is_untrusted, "
    "i.is_marked"
)
# Memories whose conversations no rule excludes.
_OF_NOTHING_EXCLUDED = """
    NOT EXISTS (
        SELECT 1 FROM json_each(i.origins) AS origin
        JOIN memory_file_states AS f ON f.home = i.home AND f.session_id = json_extract(origin.value, '$[1]')
        LEFT JOIN memory_conversations AS c ON c.id = json_extract(origin.value, '$[2]') AND c.file_id = f.id
        WHERE f.id IN (SELECT file_id FROM memory_excluded_files) OR f.id IN (
            SELECT because FROM memory_excluded_items WHERE c.id IS NULL OR item BETWEEN c.first_item AND c.last_item
        )
    )
"""
# The sessions of a group's memories that the store does not know, each with the directory on its
# page.
_UNKNOWN = """
    SELECT DISTINCT i.home, json_extract(origin.value, '$[1]') AS session,
        coalesce(json_extract(origin.value, '$[5]'), '')
    FROM memories AS i, json_each(i.origins) AS origin
    WHERE i.home = ? AND NOT EXISTS (
        SELECT 1 FROM memory_file_states AS f WHERE f.home = i.home AND f.session_id = session
    )
"""
# Texts of the latest conversations in a directory.
_TEXTS_BELOW = """
    SELECT substr(i.{column}, 1, ?) FROM (
        SELECT c.first_item, c.last_item FROM memory_file_states AS f
        JOIN memory_conversations AS c ON c.file_id = f.id
        WHERE (f.cwd = ? OR f.cwd >= ? AND f.cwd < ?)
            AND f.id NOT IN (SELECT file_id FROM memory_excluded_files)
        ORDER BY c.id DESC LIMIT 100
    ) AS c CROSS JOIN {table} AS i ON i.id BETWEEN c.first_item AND c.last_item
    WHERE i.{condition} LIMIT ?
"""
MOST_TEXTS, TEXT_CHARACTERS = 500, 500  # texts of each kind, and how much of each
WEIGHTS = (3.0, 2.0, 1.0, 0.5)  # of a word in the title, the subject, the text and the quotation
_RANK = f"bm25(memories_search, {', '.join(map(str, WEIGHTS))})"


class Origin(NamedTuple):
    """The source of a memory.

    It has the conversation; `message`, the number in its transcript of the message that proves it
    (0 if none); the time of that message, else of the last one, in milliseconds since 1970; the
    strategy; and the start directory of the session ('' if unknown)."""

    at: int | None
    session: str
    conversation: int
    strategy: str
    message: int = 0
    directory: str = ""


class IndexedMemory(NamedTuple):
    """A memory on its page and in the index.

    `superseded` is the id of its replacement ('' while it is current, '-' if the id is unknown).
    `is_marked`: it has an id on the page, so a strategy made it. `doubts` are reasons to doubt it;
    they are not stored. `who` is the member and the machine, as in ann@laptop, in a team's
    store."""

    home: str
    path: str
    id: str
    kind: str
    title: str
    text: str = ""
    subject: str = ""
    quote: str = ""
    origins: tuple[Origin, ...] = ()
    superseded: str = ""
    is_untrusted: bool = False
    is_marked: bool = True
    doubts: tuple[str, ...] = ()
    who: str = ""

    @property
    def at(self) -> int | None:
        """Return the time of its latest origin, in milliseconds since 1970; None if unknown."""
        return max((origin.at for origin in self.origins if origin.at is not None), default=None)

    @property
    def version(self) -> int:
        """The version of its content: see `PlacedMemory`."""
        return _version(self.kind, self.title, self.text, self.subject, json.dumps(self.origins))

    @property
    def whole_text(self) -> str:
        return f"{self.title}\n\n{self.text}" if self.text else self.title


class PlacedMemory(NamedTuple):
    """The page of a memory, and whether rules hide it.

    `is_told`: a prompt may quote it. `version`: a checksum."""

    id: str
    path: str
    is_hidden: bool
    is_told: bool
    version: int

    @property
    def is_misplaced(self) -> bool:
        """Check if a hidden memory is on an open page, or a visible one on a private page."""
        return self.is_hidden != self.path.startswith(PRIVATE)


class MemoryFilter(NamedTuple):
    """The limits of a listing or a search of memories.

    `home` None means all homes, `is_untrusted` None both kinds. Superseded memories are omitted
    unless `with_superseded`. Memories of excluded conversations are omitted unless `with_excluded`,
    which is for code that stores memories. `ids` and `paths` () mean all."""

    kinds: tuple[str, ...] = ()
    is_untrusted: bool | None = None
    with_superseded: bool = False
    limit: int = -1
    with_excluded: bool = False
    ids: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    home: str | None = None


class MemoryIndex(StoreDatabase):
    """The index, safe for several processes.

    `rules` exclude conversations; `with_private`: a person wants conversations whose text is
    private. Methods raise DatabaseError."""

    def __init__(
        self,
        database: str,
        rules: StoreRules | None = None,
        patience: Patience | None = None,
        visible: Visible = None,
        *,
        with_private: bool = False,
    ) -> None:
        super().__init__(database, patience)
        self._rules = rules
        self._visible = visible
        self._with_private = with_private
        self._exclusions = Exclusions(
            self.connection, rules, VisibilityOverrides(with_private=with_private)
        )

    def pages(self, home: str) -> dict[str, str]:
        """Return the stamps that the pages of a group had when they were read, by path."""
        return dict(self.rows("SELECT path, stamp FROM memory_pages WHERE home = ?", (home,)))

    def places(self, home: str) -> list[tuple[str, str]]:
        """Return the id of each memory of a group with the path of its page."""
        return [
            (id, path)
            for id, path in self.rows("SELECT id, path FROM memories WHERE home = ?", (home,))
        ]

    def replace(self, home: str, pages: Mapping[str, Changed], kept: Iterable[str]) -> None:
        """Replace the memories of changed pages, given by stamp; '' means that a page is gone.

        Memories that are on no page any more are deleted; those with an id in `kept` are noted as
        missing. Only differences are written."""
        remembered = set(kept)
        with self.transaction() as connection:
            now = {memory.id for _, memories in pages.values() for memory in memories}
            for path, (stamp, memories) in pages.items():
                new: dict[str, list[IndexedMemory]] = {}
                for memory in memories:
                    new.setdefault(memory.id, []).append(memory)
                sql = (
                    f"SELECT i.number, i.is_missing, {_COLUMNS} FROM memories AS i WHERE home "
                    f"= ? AND path = ?"
                )
                for number, is_missing, *row in fetch(connection, sql, (home, path)):
                    known = _memory(row)
                    if known.id in remembered and known.id not in now:
                        connection.execute(
                            "UPDATE memories SET is_missing = 1 WHERE number = ?", (number,)
                        )
                        continue
                    there = new[known.id].pop(0) if new.get(known.id) else None
                    if is_missing or known != there:
                        _remove(connection, number)
                        if there:
                            _insert(connection, there, number)
                _stamp(connection, home, path, stamp)
                for memory in chain.from_iterable(new.values()):
                    _insert(connection, memory)

    def put(self, home: str, stamps: Mapping[str, str], changed: Iterable[IndexedMemory]) -> None:
        """Add or replace memories on pages that are otherwise unchanged, given by their new
        stamps."""
        with self.transaction() as connection:
            for memory in changed:
                sql = "SELECT max(number) FROM memories WHERE home = ? AND path = ? AND id = ?"
                ((number,),) = fetch(connection, sql, (home, memory.path, memory.id))
                if number is not None:
                    _remove(connection, number)
                _insert(connection, memory, number)
            for path, stamp in stamps.items():
                _stamp(connection, home, path, stamp)

    def remove(self, home: str, ids: Iterable[str]) -> None:
        with self.transaction() as connection:
            for id in ids:
                sql = "SELECT number FROM memories WHERE home = ? AND id = ?"
                for (number,) in fetch(connection, sql, (home, id)):
                    _remove(connection, number)

    def settings(self) -> dict[str, Stamp]:
        """Return the files with rules that count, by path, each with its stamp."""
        with self.explained():
            return self._exclusions.settings()

    def memories(self, wanted: MemoryFilter) -> list[IndexedMemory]:
        """Return the matching memories: decisions and preferences first, episodes last.

        Of each, the latest come first."""
        condition, values = self._where(wanted)
        sql = (
            f"SELECT {_COLUMNS} FROM memories AS i WHERE {condition} "
            "ORDER BY CASE WHEN i.kind IN ('decision', 'preference') THEN 0 WHEN i.kind = "
            "'episode' THEN 2 ELSE 1 END, "
            "i.at IS NULL DESC, i.at DESC, i.number DESC LIMIT ?"
        )
        return self._shown(sql, values, wanted)

    def placed(self, home: str) -> list[PlacedMemory]:
        """Return the page of each memory of a group, and its visibility, without the texts.

        See `memories`."""
        with self.explained():
            shown = _OF_NOTHING_EXCLUDED if self._exclusions.ready() else "true"
        sql = (
            f"SELECT i.id, i.path, i.kind, i.title, i.content, i.subject, i.origins, {shown}, "
            "NOT i.is_untrusted AND i.superseded = '' "
            "FROM memories AS i WHERE i.home = ? AND NOT i.is_missing"
        )
        rows = self.rows(sql, (home,))
        unknown = self._hidden_unknown(self.rows(_UNKNOWN, (home,)))
        placed = []
        for id, path, *content, origins, is_shown, is_told in rows:
            is_hidden = not is_shown
            if origins == "[]":  # a person wrote it, and chose the page
                is_hidden = path.startswith(PRIVATE)
            elif unknown and is_shown:
                is_hidden = any(
                    (home, origin.session, origin.directory) in unknown
                    for origin in [Origin(*values) for values in decode(origins)]
                )
            placed.append(
                PlacedMemory(
                    id, path, is_hidden, is_told and not is_hidden, _version(*content, origins)
                )
            )
        return placed

    def texts_below(self, directory: str) -> list[str]:
        """Return recent prompts and commands, shortened, of sessions in a directory or below.

        Those of excluded sessions are left out."""
        above = directory.rstrip("/")
        inside = (f"{above}/", f"{above}0")  # the character after /
        return [
            text
            for table, column, condition in (
                ("memory_transcript_entries", "content", "role = 'user'"),
                ("memory_tool_uses", "argument", "kind = 'command'"),
            )
            for (text,) in self.rows(
                _TEXTS_BELOW.format(table=table, column=column, condition=condition),
                (TEXT_CHARACTERS, directory, *inside, MOST_TEXTS),
            )
        ]

    def missing(self, home: str) -> list[IndexedMemory]:
        """Return the memories that were on no page the last time."""
        sql = f"SELECT {_COLUMNS} FROM memories AS i WHERE i.home = ? AND i.is_missing"
        return [_memory(row) for row in self.rows(sql, (home,))]

    def beginning_with(self, id: str) -> list[IndexedMemory]:
        condition, values = self._where(MemoryFilter(with_superseded=True))
        sql = (
            f"SELECT {_COLUMNS} FROM memories AS i WHERE {condition} AND substr(i.id, 1, "
            f"length(?)) = ?"
        )
        return self._shown(f"{sql} LIMIT ?", (*values, id, id), MemoryFilter())

    def search(self, query: str, wanted: MemoryFilter) -> list[IndexedMemory]:
        expression = whole_expression(parse(query[:LONGEST], terms_of(self.connection)))
        if not expression:
            return []
        condition, values = self._where(wanted)
        sql = (
            f"SELECT {_COLUMNS} FROM memories_search JOIN memories AS i ON i.number = "
            f"memories_search.rowid "
            f"WHERE memories_search MATCH ? AND {condition} ORDER BY {_RANK}, i.at DESC LIMIT ?"
        )
        return self._shown(sql, (match_of(expression), *values), wanted)

    def excluded_sessions(self, home: str, sessions: Iterable[str]) -> set[str]:
        """Return the sessions of a group with anything that rules exclude.

        For a session that the store does not know, because its transcript is gone, its id and its
        former names are checked."""
        wanted = set(sessions)
        hidden = {
            session
            for _, session, _ in self._hidden_unknown({(home, session, "") for session in wanted})
        }
        with self.explained():
            if not self._exclusions.ready():
                return hidden
        sql = (
            "SELECT 1 FROM memory_file_states WHERE home = ? AND session_id = ? AND ("
            "id IN (SELECT file_id FROM memory_excluded_files) "
            "OR id IN (SELECT because FROM memory_excluded_items)) LIMIT 1"
        )
        return hidden | {session for session in wanted if self.rows(sql, (home, session))}

    def _shown(self, sql: str, values: Sequence[Any], wanted: MemoryFilter) -> list[IndexedMemory]:
        """Return the memories that a query finds; its last value is the limit.

        Sessions that the store does not know are checked here, because no table has them."""
        memories = [_memory(row) for row in self.rows(sql, (*values, wanted.limit))]
        if wanted.with_excluded or self._rules is None:
            return memories
        hidden = self._hidden_unknown(_sessions_of(memories))
        if hidden and wanted.limit >= 0:
            memories = [_memory(row) for row in self.rows(sql, (*values, -1))]
            hidden = self._hidden_unknown(_sessions_of(memories))
        shown = [memory for memory in memories if _sessions_of([memory]).isdisjoint(hidden)]
        return shown[: wanted.limit] if wanted.limit >= 0 else shown

    def _hidden_unknown(self, sessions: Iterable[UnknownSession]) -> set[UnknownSession]:
        """Return the sessions that the store does not know and that rules hide.

        The rules may use the id, former names or directory."""
        sql = "SELECT 1 FROM memory_file_states WHERE home = ? AND session_id = ? LIMIT 1"
        unknown = [session for session in sessions if not self.rows(sql, session[:2])]
        if not unknown or self._rules is None:
            return set()
        rules = self._rules()
        judged = [
            (session, rules.rule(RuleSubject(0, session[0], session[1], "", session[2], "")))
            for session in unknown
        ]
        return {
            session
            for session, rule in judged
            if rule.ignore or (rule.is_private and not self._with_private)
        }

    def _where(self, wanted: MemoryFilter) -> tuple[str, list[Any]]:
        with self.explained():
            is_excluding = not wanted.with_excluded and self._exclusions.ready()
        return joined(
            (True, "NOT i.is_missing", ()),
            (
                self._visible is not None,
                _is_one_of("i.home", self._visible),
                self._visible or (),
            ),
            (wanted.home is not None, "i.home = ?", (wanted.home,)),
            (wanted.kinds, _is_one_of("i.kind", wanted.kinds), wanted.kinds),
            (wanted.ids, _is_one_of("i.id", wanted.ids), wanted.ids),
            (wanted.paths, _is_one_of("i.path", wanted.paths), wanted.paths),
            (wanted.is_untrusted is not None, "i.is_untrusted = ?", (wanted.is_untrusted,)),
            (not wanted.with_superseded, "i.superseded = ''", ()),
            (
                not wanted.with_excluded and not self._with_private,
                f"i.path NOT GLOB '{PRIVATE}*'",
                (),
            ),
            (is_excluding, _OF_NOTHING_EXCLUDED, ()),
        )


def _is_one_of(column: str, allowed: Sequence[str] | None) -> str:
    return f"{column} IN ({', '.join('?' * len(allowed or ()))})"


def _sessions_of(memories: Iterable[IndexedMemory]) -> set[UnknownSession]:
    return {
        (memory.home, origin.session, origin.directory)
        for memory in memories
        for origin in memory.origins
    }


def _insert(connection: Connection, memory: IndexedMemory, number: int | None = None) -> None:
    connection.execute(
        "INSERT INTO memories (number, home, path, id, kind, title, content, subject, quote, "
        "origins, superseded, "
        "is_untrusted, is_marked, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, *memory[:8], json.dumps(memory.origins), *memory[9:12], memory.at),
    )
    number = connection.last_insert_rowid()
    texts = [indexable(text) for text in (memory.title, memory.subject, memory.text, memory.quote)]
    connection.execute(
        "INSERT INTO memories_search (rowid, title, subject, content, quote) "
        "VALUES (?, ?, ?, ?, ?)",
        (number, *texts),
    )


def _stamp(connection: Connection, home: str, path: str, stamp: str) -> None:
    connection.execute("DELETE FROM memory_pages WHERE home = ? AND path = ?", (home, path))
    if stamp:
        connection.execute("INSERT INTO memory_pages VALUES (?, ?, ?)", (home, path, stamp))


def _remove(connection: Connection, number: int) -> None:
    connection.execute("DELETE FROM memories_search WHERE rowid = ?", (number,))
    connection.execute("DELETE FROM memories WHERE number = ?", (number,))


def _version(*content: str) -> int:
    return crc32("\0".join(content).encode("utf-8", "surrogatepass"))


def _memory(row: Sequence[Any]) -> IndexedMemory:
    (
        home,
        path,
        id,
        kind,
        title,
        text,
        subject,
        quote,
        origins,
        superseded,
        is_untrusted,
        is_marked,
    ) = row
    parsed_origins = tuple([Origin(*origin) for origin in decode(origins)])
    return IndexedMemory(
        home,
        path,
        id,
        kind,
        title,
        text,
        subject,
        quote,
        parsed_origins,
        superseded,
        bool(is_untrusted),
        bool(is_marked),
    )
