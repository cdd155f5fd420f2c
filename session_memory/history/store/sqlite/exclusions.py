"""The tables of excluded transcripts and items, used by every query for people and agents.

A writer updates the tables in the database. If these are behind the rules, or a user may see more
than others, the reader creates temporary tables of the same names, which SQLite then prefers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from ....common.system.json import decode, encode
from ....common.system.sqlite import Connection, fetch
from ....sessions.settings.compiled import stamp
from ....sessions.settings.rules import Rule, stricter
from ....sessions.transcripts.gate import SECRET_CHARACTERS, for_title
from ....sessions.transcripts.mirror import hidden_by
from ....sessions.transcripts.reader import title_of
from ..rules import ReadRules, StoreRules
from ..values import ITEM_BITS, NUMBERS, RuleSubject, items_of_file

Stamp = list[int] | None  # as settings.compiled has it

_TABLES = ("memory_excluded_files", "memory_excluded_items")
_TEMPORARY = """
    CREATE TEMP TABLE IF NOT EXISTS memory_excluded_files (file_id INTEGER PRIMARY KEY, is_told INTEGER NOT NULL);
    CREATE TEMP TABLE IF NOT EXISTS memory_excluded_items (
        item INTEGER NOT NULL, because INTEGER NOT NULL, is_told INTEGER NOT NULL, PRIMARY KEY (item, because)
    ) WITHOUT ROWID;
    DELETE FROM temp.memory_excluded_files;
    DELETE FROM temp.memory_excluded_items;
"""
SAID = f"""(
    SELECT substr(content, 1, {SECRET_CHARACTERS}) FROM memory_transcript_entries
    WHERE id BETWEEN f.id << {ITEM_BITS} AND f.id << {ITEM_BITS} | {NUMBERS} AND role = 'user' ORDER BY id LIMIT 1
)"""  # the first words in a transcript `f`
_PATH = "SELECT root || '/' || file_path FROM memory_file_states WHERE id = ?"
_EXCLUDED = """
    SELECT DISTINCT session_id FROM memory_file_states
    WHERE id = ? AND id IN (SELECT file_id FROM main.memory_excluded_files)
"""
_NAMING = f"SELECT id >> {ITEM_BITS}, session_id FROM memory_foreign_items"
_SHARED = "SELECT original FROM memory_shared_items WHERE id BETWEEN ? AND ?"
GIVEN_TITLE = 3  # the rank of a title that a person gave; other titles quote the session


def _hidden_items(first: str, last: str, condition: str = "true") -> str:
    """Return the query of the hidden items with ids between two expressions, and their originals.

    An item that a file shares is hidden where it is stored. `condition` is about the rows of both
    tables."""
    return f"""
        SELECT item, item AS original FROM memory_excluded_items
        WHERE item BETWEEN {first} AND {last} AND {condition}
        UNION SELECT s.id, s.original FROM memory_shared_items AS s WHERE s.id BETWEEN {first} AND {last} AND (
            EXISTS (SELECT 1 FROM memory_excluded_items WHERE item = s.original AND {condition})
            OR EXISTS (SELECT 1 FROM memory_excluded_files WHERE file_id = s.original >> {ITEM_BITS} AND {condition})
        )
    """


_OF_CONVERSATION = _hidden_items("c.first_item", "c.last_item", "NOT is_told")
# Conditions on `memory_conversations AS c` and `memory_file_states AS f`, if anything is excluded.
LISTED = f"""
    NOT EXISTS (SELECT 1 FROM memory_excluded_files WHERE file_id = f.id AND NOT is_told)
    AND (SELECT count(DISTINCT item) FROM ({_OF_CONVERSATION})) <= c.last_item - c.first_item
"""
WHOLE = """
    NOT EXISTS (SELECT 1 FROM memory_excluded_files WHERE file_id = f.id) AND NOT EXISTS (
        SELECT 1 FROM memory_excluded_items WHERE item BETWEEN c.first_item AND c.last_item AND because = f.id
    )
"""
# The files with an excluded item, which is their own or a copy from another file.
FILES_WITH_EXCLUDED = f"""
    WITH items AS (
        SELECT item FROM memory_excluded_items WHERE NOT is_told
    ), files AS (
        SELECT file_id FROM memory_excluded_files WHERE NOT is_told
        UNION SELECT item >> {ITEM_BITS} FROM items
        UNION SELECT because FROM memory_excluded_items WHERE NOT is_told
    )
    SELECT file_id FROM files
    UNION SELECT id >> {ITEM_BITS} FROM memory_shared_items
    WHERE original IN (SELECT item FROM items)
        OR original >> {ITEM_BITS} IN (SELECT file_id FROM memory_excluded_files WHERE NOT is_told)
"""
# The number of hidden messages of `memory_conversations AS c`. The records of one message share its
# number.
HIDDEN_MESSAGES = f"""(
    SELECT count(DISTINCT coalesce(nullif(coalesce(e.message, t.message), 0), -x.item))
    FROM ({_OF_CONVERSATION}) AS x
    LEFT JOIN memory_transcript_entries AS e ON e.id = x.original
    LEFT JOIN memory_tool_uses AS t ON t.id = x.original
)"""
# Whether an item of `memory_file_states AS f` is hidden
_HAS_HIDDEN = (
    f"EXISTS ({_hidden_items(f'f.id << {ITEM_BITS}', f'f.id << {ITEM_BITS} | {NUMBERS}')})"
)


class VisibilityOverrides(NamedTuple):
    """Exceptions from exclusion for one user.

    A user sees all of their own sessions. A person may also ask to see the text of sessions that
    others see only as metadata."""

    own_sessions: tuple[str, ...] = ()
    with_private: bool = False


class Exclusions:
    """The exclusions of a connection. Without `rules`, the last write's apply."""

    def __init__(
        self,
        connection: Connection,
        rules: StoreRules | None,
        overrides: VisibilityOverrides | None = None,
    ) -> None:
        self._connection = connection
        self._rules = rules
        self._overrides = overrides or VisibilityOverrides()
        self._made_of: object = None
        self._has_any = False
        self._places: list[str] = []  # if the tables in the database are outdated

    def ready(self) -> bool:
        """Bring the tables up to date with the rules, and check if anything is excluded.

        Raises the errors of apsw."""
        places = _known_places(self._connection)
        stamps = {place: stamp(place) for place in places}
        is_current = self._rules is None or (bool(places) and stamps == places)
        if is_current and not _any_in(self._connection, "main"):
            self._drop()
            return False
        is_overridden = any(self._overrides)
        if is_current and not is_overridden:
            self._drop()
            return True
        if self._made_of != self._state(stamps):
            self._make(is_current)
            self._made_of = self._state(stamps)
        return self._has_any

    def settings(self) -> dict[str, Stamp]:
        """Return the files with the rules that apply, by path, each with its stamp.

        Raises the errors of apsw."""
        self.ready()
        places = self._places or list(_known_places(self._connection))
        return {place: stamp(place) for place in sorted(places) if place.endswith(".yaml")}

    def _make(self, is_current: bool) -> None:
        connection = self._connection
        connection.execute(_TEMPORARY)
        self._places = []
        if is_current or self._rules is None:
            for table in _TABLES:
                connection.execute(f"INSERT INTO temp.{table} SELECT * FROM main.{table}")
        else:
            read = self._rules()
            _judge(connection, "temp", read, _files(connection))
            self._places = list(read.places)
        if own_sessions := self._overrides.own_sessions:
            sql = (
                f"SELECT id FROM memory_file_states WHERE session_id IN "
                f"({', '.join('?' * len(own_sessions))})"
            )
            ids = fetch(connection, sql, own_sessions)
            connection.executemany("DELETE FROM temp.memory_excluded_files WHERE file_id = ?", ids)
            connection.executemany("DELETE FROM temp.memory_excluded_items WHERE because = ?", ids)
        if self._overrides.with_private:
            for table in _TABLES:
                connection.execute(f"DELETE FROM temp.{table} WHERE is_told")
        self._has_any = _any_in(connection, "temp")

    def _drop(self) -> None:
        if self._made_of is not None:
            for table in _TABLES:
                self._connection.execute(f"DROP TABLE temp.{table}")
            self._made_of = None
            self._places = []

    def _state(self, stamps: dict[str, Stamp]) -> object:
        """Return a value that changes with the rules and with every write, over any connection."""
        looked_at = {place: stamp(place) for place in self._places}
        return (
            stamps,
            looked_at,
            self._connection.pragma("data_version"),
            self._connection.total_changes(),
        )


def apply(connection: Connection, rules: StoreRules | None, files: Iterable[int] = ()) -> None:
    """Update the tables within the caller's transaction.

    All of them are updated if the rules have changed, else only the rows of `files`, which were
    written. Without `rules`, the next reader must check."""
    if rules is None:
        connection.execute("DELETE FROM main.memory_rules")
        return
    known = _known_places(connection)
    is_current = not _have_changed(known)
    # Take the stamps before reading the rules, so a rule written meanwhile is read the next time.
    stamps = known if is_current else {place: stamp(place) for place in {*known, *rules().places}}
    read = rules()
    if is_current:
        written = tuple(files)
        before = _excluded_sessions(connection, written)
        _judge(connection, "main", read, _files(connection, written))
        sessions = before | _excluded_sessions(connection, written)
        _judge(connection, "main", read, _files(connection, _naming(connection, sessions)))
    else:
        for table in (*_TABLES, "memory_rules"):
            connection.execute(f"DELETE FROM main.{table}")
        _judge(connection, "main", read, _files(connection))
    places = [
        (place, encode(stamps[place] if place in stamps else stamp(place)))
        for place in read.places
        if place not in known or not is_current
    ]
    connection.executemany("INSERT OR REPLACE INTO main.memory_rules VALUES (?, ?)", places)


def is_behind(connection: Connection) -> bool:
    """Check if the rules have changed since the tables were made."""
    return _have_changed(_known_places(connection))


def item_shown(item: str) -> str:
    """Return the condition that the item with the id expression `item` is not excluded."""
    return (
        f"NOT EXISTS (SELECT 1 FROM memory_excluded_files WHERE file_id = {item} >> {ITEM_BITS}) "
        f"AND NOT EXISTS (SELECT 1 FROM memory_excluded_items WHERE item = {item})"
    )


def unless_private(expression: str, instead: str = "''") -> str:
    """Return `expression`, with `instead` for files of which only metadata may be shown.

    Both are about `memory_file_states AS f`."""
    return (
        f"iif(EXISTS (SELECT 1 FROM memory_excluded_files WHERE file_id = f.id), {instead}, "
        f"{expression})"
    )


def title_shown() -> str:
    """Return the title of `memory_file_states AS f`.

    If some of its text is private, only a title that a person gave is returned."""
    given = f"iif(f.title_rank >= {GIVEN_TITLE}, f.title, '')"
    return unless_private(f"iif({_HAS_HIDDEN}, {given}, f.title)", given)


def _judge(
    connection: Connection, schema: str, rules: ReadRules, files: Sequence[RuleSubject]
) -> None:
    """Write the excluded items of these files.

    An item in several files is excluded if it is excluded in any of them."""
    excluded: list[tuple[int, bool]] = []
    items: list[tuple[int, int, bool]] = []
    for file in files:
        rule = rules.rule(file)
        # none if another process has removed the file meanwhile, since readers take no transaction
        if any([hidden_by(path) for (path,) in fetch(connection, _PATH, (file.id,))]):
            rule = stricter(rule, Rule(ignore=True))
        if rule.is_private:
            excluded.append((file.id, not rule.ignore))
            items += [
                (item, file.id, not rule.ignore)
                for (item,) in fetch(connection, _SHARED, items_of_file(file.id))
            ]
        if not rule.ignore and rules.has_projects(file):
            items += _said_elsewhere(connection, rules, file)
        items += _of_other_sessions(connection, rules, file)
    ids = [(file.id,) for file in files]
    connection.executemany(f"DELETE FROM {schema}.memory_excluded_files WHERE file_id = ?", ids)
    if _any_in(connection, schema, _TABLES[1:]):
        connection.executemany(f"DELETE FROM {schema}.memory_excluded_items WHERE because = ?", ids)
    connection.executemany(f"INSERT INTO {schema}.memory_excluded_files VALUES (?, ?)", excluded)
    # Of two rules for one item the stricter wins.
    sql = (
        f"INSERT INTO {schema}.memory_excluded_items VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET is_told = is_told AND excluded.is_told"
    )
    connection.executemany(sql, items)


def _excluded_sessions(connection: Connection, files: Iterable[int]) -> set[str]:
    """Return the ids of the sessions of these files which are excluded."""
    rows = [row for file_id in files for row in fetch(connection, _EXCLUDED, (file_id,))]
    return {session_id for (session_id,) in rows}


def _naming(connection: Connection, sessions: set[str]) -> list[int]:
    """Return the files with items that name one of these sessions."""
    named = fetch(connection, _NAMING) if sessions else ()
    return sorted({file_id for file_id, session_id in named if session_id in sessions})


def _said_elsewhere(
    connection: Connection, rules: ReadRules, file: RuleSubject
) -> list[tuple[int, int, bool]]:
    """Return the items of a file from excluded directories other than the session's first one."""
    first, last = items_of_file(file.id)
    tables = ("memory_transcript_entries", "memory_tool_uses")
    parts = []
    for table in tables:
        sql = f"SELECT DISTINCT cwd FROM {table} WHERE id BETWEEN ? AND ? AND cwd IS NOT NULL"
        for (cwd,) in fetch(connection, sql, (first, last)):
            rule = rules.rule_for_directory(file, cwd)
            if rule.is_private:
                items = fetch(
                    connection,
                    f"SELECT id FROM {table} WHERE id BETWEEN ? AND ? AND cwd = ?",
                    (first, last, cwd),
                )
                parts += [(item, file.id, not rule.ignore) for (item,) in items]
    return parts


def _of_other_sessions(
    connection: Connection, rules: ReadRules, file: RuleSubject
) -> list[tuple[int, int, bool]]:
    """Return the items of a file whose records name another session that a rule excludes."""
    items = items_of_file(file.id)
    parts = []
    sql = "SELECT DISTINCT session_id FROM memory_foreign_items WHERE id BETWEEN ? AND ?"
    for (session_id,) in fetch(connection, sql, items):
        known = [
            subject
            for subject in _files(connection, session_id=session_id)
            if subject.home == file.home
        ]
        judged = [
            rules.rule(subject)
            for subject in known or [file._replace(session_id=session_id, title="", file_path="")]
        ]
        rule = reduce(stricter, judged)
        if rule.is_private:
            query = (
                "SELECT id FROM memory_foreign_items WHERE id BETWEEN ? AND ? AND session_id = ?"
            )
            parts += [
                (item, file.id, not rule.ignore)
                for (item,) in fetch(connection, query, (*items, session_id))
            ]
    return parts


def _files(
    connection: Connection, ids: Sequence[int] | None = None, session_id: str = ""
) -> list[RuleSubject]:
    sql = f"SELECT id, home, session_id, title, {SAID}, cwd, file_path FROM memory_file_states AS f"
    if session_id:
        rows = list(fetch(connection, f"{sql} WHERE session_id = ?", (session_id,)))
    elif ids is None:
        rows = list(fetch(connection, sql))
    else:
        rows = [
            row
            for id in dict.fromkeys(ids)
            for row in fetch(connection, f"{sql} WHERE id = ?", (id,))
        ]
    return [
        RuleSubject(id, home, session, title or title_by(said), cwd, path)
        for id, home, session, title, said, cwd, path in rows
    ]


def title_by(said: str | None) -> str:
    """Return a session's title from its first words, as `sessions` shows it and rules name it."""
    return for_title(title_of(said)) if said else ""


def _any_in(connection: Connection, schema: str, tables: Sequence[str] = _TABLES) -> bool:
    return any(fetch(connection, f"SELECT 1 FROM {schema}.{table} LIMIT 1") for table in tables)


def _have_changed(known: dict[str, Stamp]) -> bool:
    return not known or any(stamp(place) != then for place, then in known.items())


def _known_places(connection: Connection) -> dict[str, Stamp]:
    rows = fetch(connection, "SELECT place, stamp FROM main.memory_rules")
    return {place: decode(known) for place, known in rows}
