"""Files that live sessions changed and nobody has merged yet, as a team knows them: objects of git and lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..values import LIVE_HOURS, OthersFile, UnmergedFile
from .connection import NOW, explained
from .push import TeamPush
from .rows import labels

MOST_FILES = 1000  # of all others
MOST_HUNKS = 200  # of a file
_MOST_CHARACTERS = 20_000
_OBJECT = re.compile("([0-9a-f]{40}|[0-9a-f]{64})?")


def shared_edits(team: TeamPush, sessions: Iterable[int]) -> dict[int, set[str]]:
    """Return the files whose edits by these sessions the team has, by session. Raises TeamError."""
    sql = "SELECT DISTINCT session, text FROM item WHERE session = ANY(%s) AND kind = 'edit'"
    found: dict[int, set[str]] = {}
    with explained(team.url, team.connection):
        for session, path in team.connection.execute(sql, (list(sessions),)):
            found.setdefault(session, set()).add(path)
    return found


def push_changed_files(team: TeamPush, files: Mapping[int, Iterable[UnmergedFile]]) -> None:
    """Make these the changed files of this machine's sessions, by their numbers in the team. Raises TeamError."""
    rows = {(id, *one._replace(hunks=json.dumps(one.hunks[:MOST_HUNKS]))) for id, of in files.items() for one in of}  # type: ignore[arg-type]
    own = "WHERE session IN (SELECT id FROM session WHERE owner = current_user AND machine = %s)"
    with explained(team.url, team.connection), team.connection.transaction():
        known = team.connection.execute(f"SELECT * FROM changed_file {own}", (team.machine,)).fetchall()
        if rows != set(known):
            team.connection.execute(f"DELETE FROM changed_file {own}", (team.machine,))
            insert = "INSERT INTO changed_file VALUES (%s, %s, %s, %s, %s, %s, %s)"
            team.connection.cursor().executemany(insert, sorted(rows))


def others_files(team: TeamPush, projects: Iterable[str]) -> list[OthersFile]:
    """Return the files that others changed lately in these projects, the latest first. Raises TeamError."""
    sql = (
        "SELECT s.id, s.owner || '@' || s.machine, s.project, s.session_id, s.runtime, "
        "coalesce(nullif(s.title, ''), (SELECT left(i.text, 200) FROM item AS i WHERE i.session = s.id AND "
        "i.role = 'user' ORDER BY i.number LIMIT 1), ''), s.branch, "
        "f.path, f.head, f.base, f.blob, f.hunks, f.at FROM changed_file AS f JOIN session AS s ON s.id = f.session "
        "WHERE s.project = ANY(%s) AND NOT (s.owner = current_user AND s.machine = %s) "
        f"AND f.at > {NOW} - {LIVE_HOURS * 3_600_000} AND length(f.path) + length(f.hunks) < {_MOST_CHARACTERS} "
        f"ORDER BY f.at DESC LIMIT {MOST_FILES}"
    )
    with explained(team.url, team.connection):
        return list(_sound(team.connection.execute(sql, (list(projects), team.machine))))


def _sound(rows: Iterable[tuple[Any, ...]]) -> Iterator[OthersFile]:
    """Yield what the rows say, without those that only a member's own program can have written."""
    for *session, path, head, base, blob, hunks, at in rows:
        try:
            read = tuple([(int(a), int(b), int(c), int(d)) for a, b, c, d in json.loads(hunks)])
        except (ValueError, TypeError, RecursionError):
            continue
        is_inside = not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
        if is_inside and head and all(map(_OBJECT.fullmatch, (head, base, blob))):
            file = UnmergedFile(path, head, base, blob, read[:MOST_HUNKS], at)
            yield OthersFile._make((*labels(session), file))
