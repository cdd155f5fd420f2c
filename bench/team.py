"""`python -m bench.team`: the cost of a team's store, and whether it answers like a machine's own.

Invented entries are written into a store and pushed to a real server, which is started for this, or
which SESSION_MEMORY_TEST_POSTGRES names. Then the same queries go to both in turn. They are
compared by their time, their first ten hits, and the first of these. `--grow N`: the server then
multiplies the pushed content by N, up to 200, and is queried again. `--kills N`: instead, three
machines push at once while each is killed repeatedly, connections are cut and the server crashes;
at the end everything must be there exactly once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median, quantiles

import psycopg

from session_memory.extras.team import push as team_push
from session_memory.extras.team.postgres.connection import UnreachableTeamError
from session_memory.extras.team.postgres.engine import TeamStore
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.extras.team.push import SharedAs, push_new
from session_memory.history.store.sqlite.engine import SqliteStore
from session_memory.history.store.values import Filter, Hit
from tests.postgres_server import EACH_ITEM, PostgresServer, running_server

from .command import run
from .corpus import Texts
from .kills import forked, is_killed
from .scratch import scratch_directory
from .search import ENTRIES_A_FILE, SEED, batch_of, words_and_common

MACHINES = ("laptop", "server", "desk")
SHARED = SharedAs("example.org/app", "team", "/srv/agent")
CRASH_SHARE = 0.1  # of cuts
MACHINE_FILES = 60  # of each that is killed
TABLES = ("item", "posting", "conversation", "session", "segment")
# The values of columns in a copy that the server makes; an id belongs to a session or a segment.
_COPIED = {
    "id": "id | (%(copy)s::bigint << 16)",
    "session": "session | (%(copy)s::bigint << 16)",
    "segment": "segment | (%(copy)s::bigint << 16)",
    "file_path": "file_path || '-' || %(copy)s::text",
    "session_id": "session_id || '-' || %(copy)s::text",
    "at": "at + %(later)s",
    "first_at": "first_at + %(later)s",
    "last_at": "last_at + %(later)s",
    "items": "substr(varbit_send(('x' || encode(items, 'hex'))::varbit | "
    "('x' || repeat(%(mask)s, length(items) / 8))::varbit), 5)",
}
# in a killed batch, so a kill finds them between two items
KILLED_ITEMS = 200
KILLED_SECONDS = 0.3  # at most, after a process has connected


def main(entries: int = 1_000_000, queries: int = 1000, grow: int = 1, kills: int = 0) -> int:
    """Return the exit code: 1 if something was lost or doubled, or answers differ too often."""
    with scratch_directory() as name, running_server(is_durable=True) as server:
        if isinstance(server, str):
            print(f"bench: {server}", file=sys.stderr)
            return 1
        url = server.url_of(server.database, "ann")
        return (
            _kill(server, url, name, kills)
            if kills
            else _compare(server, url, name, entries, queries, grow)
        )


def _compare(
    server: PostgresServer, url: str, root: Path, entries: int, queries: int, times: int
) -> int:
    texts, random = Texts(SEED), Random(SEED)
    store = _store(root / "own.db", texts, random, range(entries // ENTRIES_A_FILE))
    began = time.perf_counter()
    _push(store, url, "laptop")
    seconds = time.perf_counter() - began
    print(
        f"pushed {entries:,} entries in {seconds:.0f} s: {entries / seconds:,.0f} a second",
        flush=True,
    )
    for table, size in _sizes(server):
        print(f"  {table}: {size / entries:,.0f} bytes an entry")
    words, common = words_and_common(texts, random)
    searches = [_query(words, common, random) for _ in range(queries)]
    own_times, team_times, same, same_first = [], [], 0, 0
    wanted = Filter(limit=10)
    with closing(TeamStore(url)) as team:
        for query in searches:
            own_hits, own_seconds = _timed(store, query, wanted)
            of_team, team_seconds = _timed(team, query, wanted)
            own_times.append(own_seconds * 1000)
            team_times.append(team_seconds * 1000)
            same += own_hits == of_team
            same_first += own_hits[:1] == of_team[:1]
    for title, milliseconds in (("own store", own_times), ("team", team_times)):
        _print_search(title, milliseconds)
    print(
        f"of {queries:,} queries the first ten hits are the same for {same:,}, the first for "
        f"{same_first:,}"
    )
    if times > 1:
        _grow(server, times)
        with closing(TeamStore(url)) as team:
            _timed(team, searches[0], wanted)  # which reads the table of conversations
            grown_times = [_timed(team, query, wanted)[1] * 1000 for query in searches]
        _print_search(f"team with {times * entries:,} entries", grown_times)
    return 0 if same >= 0.98 * queries and same_first == queries else 1


def _print_search(title: str, milliseconds: list[float]) -> None:
    p95 = quantiles(milliseconds, n=20)[-1]
    print(f"search, {title}: median {median(milliseconds):.1f} ms, p95 {p95:.1f} ms", flush=True)


def _grow(server: PostgresServer, times: int) -> None:
    """Let the server copy all sessions, as if they had been pushed repeatedly, each time later.

    The numbers of a copy's sessions have another third byte, which the ids in postings get by a
    bitwise or. So there are at most 65,535 sessions."""
    with psycopg.connect(server.url_of(server.database), autocommit=True) as connection:
        connection.execute("SET search_path = session_memory; SET synchronous_commit = off")
        connection.execute("SET maintenance_work_mem = '512MB'")
        connection.execute(
            "ALTER TABLE posting DROP CONSTRAINT posting_pkey; DROP INDEX posting_segment"
        )
        tables = {}
        for table in TABLES:
            connection.execute(f"CREATE TEMP TABLE first_{table} AS SELECT * FROM {table}")
            names = connection.execute(f"SELECT * FROM {table} LIMIT 0").description or ()
            tables[table] = [column.name for column in names]
        [(milliseconds,)] = connection.execute(
            "SELECT max(last_at) - min(first_at) FROM conversation"
        )
        for copy in range(1, times):
            for table, columns in tables.items():
                values = ", ".join([_COPIED.get(column, column) for column in columns])
                connection.execute(
                    f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT {values} "
                    f"FROM first_{table}",
                    {"copy": copy, "later": copy * milliseconds, "mask": f"{copy << 48:016x}"},
                )
        connection.execute("ALTER TABLE posting ADD PRIMARY KEY (term, segment)")
        connection.execute("CREATE INDEX posting_segment ON posting (segment)")
        connection.execute("VACUUM ANALYZE")


def _timed(
    store: SqliteStore | TeamStore, query: str, wanted: Filter
) -> tuple[list[tuple[str, int]], float]:
    """Return the hits, as sessions and numbers of entries, and the seconds that the query took."""
    began = time.perf_counter()
    hits: list[Hit] = store.search(query, wanted)
    seconds = time.perf_counter() - began
    return [(hit.conversation.session_id, hit.entry.number) for hit in hits], seconds


def _query(words: list[str], common: list[str], random: Random) -> str:
    """Return a query: one to four drawn words, a common word, a phrase, or an excluded word."""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(common)
    drawn_words = random.sample(words, random.randint(2, 4))
    return (
        f'"{drawn_words[0]}" {drawn_words[1]}'
        if kind == 1
        else f"{drawn_words[0]} -{drawn_words[1]}"
        if kind == 2
        else " ".join(drawn_words)
    )


def _kill(server: PostgresServer, url: str, root: Path, kills: int) -> int:
    texts, random = Texts(SEED), Random(SEED)
    for number, machine in enumerate(MACHINES):
        first = number * MACHINE_FILES
        store = _store(root / f"{machine}.db", texts, random, range(first, first + MACHINE_FILES))
        store.close()
    done = threading.Event()
    cuts, crashes = [0], [0]

    def cut() -> None:
        while not done.wait(random.uniform(0.5, 3)):
            with (
                suppress(psycopg.OperationalError),
                psycopg.connect(server.url, autocommit=True) as connection,
            ):
                if random.random() < CRASH_SHARE:
                    crashes[0] += _crash(connection)
                else:
                    sql = (
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE "
                        "usename = 'ann'"
                    )
                    cuts[0] += sum(count for (count,) in connection.execute(sql))

    with ProcessPoolExecutor(len(MACHINES), get_context("spawn")) as pool:
        each = -(-kills // len(MACHINES))
        killing = [
            pool.submit(_push_and_kill, url, root / f"{machine}.db", machine, each)
            for machine in MACHINES
        ]
        cutting = threading.Thread(target=cut)
        cutting.start()
        killed = sum([kill.result() for kill in killing])
        done.set()
        cutting.join()
    stores = [SqliteStore(str(root / f"{machine}.db")) for machine in MACHINES]
    for store, machine in zip(stores, MACHINES):
        _push(store, url, machine)
    content = _content(server)
    with psycopg.connect(server.url_of(server.database), autocommit=True) as connection:
        connection.execute(
            "TRUNCATE session_memory.session, session_memory.segment, session_memory.item, "
            "session_memory.posting, session_memory.conversation"
        )
    for store, machine in zip(stores, MACHINES):
        _push(store, url, machine)
    wanted = _content(server)
    problems = sum([len(set(content[table]) ^ set(wanted[table])) for table in wanted])
    problems += sum([abs(len(content[table]) - len(wanted[table])) for table in wanted])
    print(
        f"{killed:,} kills, {cuts[0]:,} connections cut, {crashes[0]:,} crashes of the server: "
        f"{len(content['item']):,} items, {problems} rows that are not as after one push"
    )
    return 1 if problems else 0


def _crash(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """Kill a member's backend, if there is one; the server then ends all others and recovers."""
    row = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE usename = 'ann' LIMIT 1"
    ).fetchone()
    with suppress(OSError):
        # and not on another machine
        if row and Path(f"/proc/{row[0]}/comm").read_text().startswith("postgres"):
            os.kill(int(str(row[0])), signal.SIGKILL)
            return True
    return False


def _push_and_kill(url: str, database: Path, machine: str, kills: int) -> int:
    """Start a push again and again and kill it meanwhile; return how many were killed.

    If everything is pushed, a part of it is withdrawn."""
    random, killed = Random(machine), 0
    while killed < kills:
        connected, write_end = os.pipe()
        child = forked(partial(_push_in_child, url, database, machine, write_end))
        os.close(write_end)
        os.read(connected, 1)
        os.close(connected)
        if is_killed(child, random.uniform(0, KILLED_SECONDS)):
            killed += 1
        else:
            with suppress(UnreachableTeamError), closing(TeamPush(url, machine)) as team:
                sample = list(team.pushed().values())
                team.withdraw(random.sample(sample, len(sample) // 2))
    return killed


def _push_in_child(url: str, database: Path, machine: str, write_end: int) -> None:
    """Push a store in small batches, and exit; report the beginning."""
    team_push.BATCH_ITEMS = KILLED_ITEMS
    store = SqliteStore(str(database))
    with suppress(UnreachableTeamError), closing(TeamPush(url, machine)) as team:
        os.write(write_end, b"1")
        push_new(store, team, lambda *_: SHARED)


def _content(server: PostgresServer) -> dict[str, list[tuple[object, ...]]]:
    """All rows, known by their machine and transcript."""
    with psycopg.connect(server.url_of(server.database), autocommit=True) as connection:
        connection.execute("SET search_path = session_memory")
        of_session = (
            "SELECT s.machine, s.file_path, t.* FROM {} AS t JOIN session AS s ON s.id = t.session"
        )
        rows_by_table: dict[str, list[tuple[object, ...]]] = {}
        rows_by_table["posting"] = list(
            connection.execute(
                f"SELECT s.machine, s.file_path, p.term, i.id & {(1 << 32) - 1} FROM posting AS "
                f"p {EACH_ITEM} "
                "LEFT JOIN session AS s ON s.id = i.id >> 32 AND s.segment = p.segment"
            )
        )
        for table in ("item", "conversation"):
            cursor = connection.execute(of_session.format(table))
            columns = [column.name for column in cursor.description or ()]
            at = columns.index("session")
            rows_by_table[table] = [(*row[:at], *row[at + 1 :]) for row in cursor]
        rows_by_table["session"] = list(
            connection.execute(
                "SELECT machine, file_path, next_number, mark, item_count, text_count, "
                "term_count FROM session"
            )
        )
        return rows_by_table


def _store(path: Path, texts: Texts, random: Random, files: range) -> SqliteStore:
    store = SqliteStore(str(path))
    for first in range(files.start, files.stop, 100):
        store.write(
            batch_of(texts, random, number) for number in range(first, min(first + 100, files.stop))
        )
    return store


def _push(store: SqliteStore, url: str, machine: str) -> None:
    with closing(TeamPush(url, machine)) as team:
        push_new(store, team, lambda *_: SHARED)


def _sizes(server: PostgresServer) -> list[tuple[str, int]]:
    """The bytes of each table, with its indexes."""
    with psycopg.connect(server.url_of(server.database), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        sql = "SELECT pg_total_relation_size(%s::regclass)"
        rows = [
            (table, connection.execute(sql, (f"session_memory.{table}",)).fetchone())
            for table in TABLES
        ]
        return [(table, int(row[0])) for table, row in rows if row]


if __name__ == "__main__":
    run(main)
