"""Another program uses our databases with a plain connection.

Meanwhile the page, the watcher, upkeep and the host are at work.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest
from host_scene import Echo, HostMachine
from page_scene import ServedPage
from records import append, exchange
from store_scene import ROOT, StoreUser

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="which files are deleted is read from /proc"
)

AUDITED = f"{ROOT}{os.pathsep}{ROOT / 'tests' / 'audit'}"
SEEN = "opens the database"  # by the audit hook
SQL = "SELECT count(*) FROM sqlite_schema; CREATE TABLE IF NOT EXISTS mine (x); INSERT INTO mine VALUES (1);"
PROGRAM = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=20)
connection.executescript(sys.argv[2])
connection.close()
"""


class AuditedUser(StoreUser):
    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "PYTHONPATH": AUDITED}


def use(database: str | Path) -> None:
    """Read and write a database as another program, with Python's SQLite and with the `sqlite3`
    tool if it is there."""
    subprocess.run([sys.executable, "-c", PROGRAM, str(database), SQL], check=True, timeout=60)
    if tool := shutil.which("sqlite3"):
        subprocess.run(
            [tool, "-cmd", ".timeout 20000", str(database), SQL],
            check=True,
            timeout=60,
            capture_output=True,
        )


@contextmanager
def deleted_logs(*pids: int) -> Iterator[set[str]]:
    """Watch which logs are deleted while these processes still have them open."""
    found: set[str] = set()
    has_ended = threading.Event()

    def look() -> None:
        while not has_ended.wait(0.02):
            found.update(deleted_now())

    def deleted_now() -> Iterator[str]:
        for pid in pids:
            for link in Path(f"/proc/{pid}/fd").glob("*"):
                with suppress(OSError):
                    target = os.readlink(link)
                    if target.endswith("-wal (deleted)"):
                        yield f"{pid}: {target}"

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield found
            found.update(deleted_now())
        finally:
            has_ended.set()
            looking.result()
    assert found == set()


def check(database: str | Path) -> None:
    """Check that a database is whole and that none was quarantined beside it."""
    database = Path(database)
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    quarantined = [
        file.name for file in database.parent.iterdir() if file.name.startswith(f"{database.name}.")
    ]
    assert [
        name
        for name in quarantined
        if not name.endswith((".lock", ".queue", ".queue-wal", ".queue-shm", ".queue.lock"))
    ] == []


def use_a_store(home: Path, rounds: int) -> None:
    """Each round is done with the page alone, whose locks nobody else has, with the watcher alone,
    and with both."""
    user = AuditedUser(home)
    path = user.session("one", *exchange("hello", "hi", at=time.time() - 9999))
    for number, (has_page, has_watcher) in enumerate(
        [(True, False), (False, True), (True, True)] * rounds
    ):
        with ExitStack() as stack:
            together = stack.enter_context(ThreadPoolExecutor(4))
            page = stack.enter_context(ServedPage(user)) if has_page else None  # type: ignore[arg-type]
            watcher = stack.enter_context(user.watching()) if has_watcher else None
            pids = [one.process.pid for one in (page, watcher) if one]
            if page:
                page.until("hello", "/session/one")
            stack.enter_context(deleted_logs(*pids))
            append(path, *exchange(f"question {number}", f"answer {number}", at=time.time()))
            views = ("/list", "/search?q=question", "/session/one", "/timeline") if page else ()
            shown = [together.submit(page.view, view) for view in views] if page else []
            use(user.database)
            assert [view.result().status for view in shown] == [200] * len(shown)
            use(user.database)
            done = user.run("search", f"answer {number}")
            assert (done.returncode, f"**answer** **{number}**" in done.stdout, done.stderr) == (
                0,
                True,
                "",
            ), done
            use(user.database)
            assert watcher is None or SEEN not in watcher.said
    assert user.run("process").returncode == 0
    said = [
        text for number in range(3 * rounds) for text in (f"question {number}", f"answer {number}")
    ]
    assert user.stored() == ["hello", "hi", *said]
    check(user.database)


def use_a_host(rounds: int) -> None:
    with Echo() as api, closing(HostMachine(api)) as host:
        host.environment["PYTHONPATH"] = AUDITED
        host.init("main", config="idle_seconds: 1\n")
        host.start()
        host.ask("main", "m-main-0")
        assert host.child
        with deleted_logs(host.child.pid):
            for number in range(1, rounds + 1):
                said = host.say("main", f"m-main-{number}")
                host.let_go()  # of the database, so that nobody's locks but the host's protect it
                use(host.layout.database)
                assert host.reply_to("main", said).text == f"m-main-{number}"
                host.let_go()
                use(host.layout.database)
                store = Path(host.layout.root, "store", "memory.db")
                if store.exists():
                    use(store)
        host.stop()
        assert SEEN not in host.output()
        check(host.layout.database)


def test_a_store_survives_other_programs_while_the_page_the_watcher_and_commands_use_it(
    tmp_path: Path,
) -> None:
    use_a_store(tmp_path, 1)


@pytest.mark.slow
def test_so_it_does_for_many_rounds(tmp_path: Path) -> None:
    use_a_store(tmp_path, 4)


@pytest.mark.slow
def test_a_host_answers_every_message_while_other_programs_use_its_database(
    bundled_cli: None,
) -> None:
    use_a_host(6)
