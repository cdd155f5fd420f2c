"""A page that nobody looks at rests, whatever runtimes have sessions."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cline_scene import ClineSession
from hermes_scene import HermesDatabase
from openclaw_scene import OpenClawDatabase
from opencode_scene import OpenCodeDatabase
from page_scene import ServedPage
from records import (
    OmpSession,
    append,
    atif_exchange,
    droid_exchange,
    droid_start,
    exchange,
    kimi_exchange,
    kimi_start,
    write,
)
from store_scene import StoreUser

from bench.corpus import FORMATS, Author, texts_of, write_chat
from bench.sources import generated_for
from session_memory.sessions.runtimes.table import all_runtimes, runtime

SESSIONS = 3  # of each runtime
CORE_SHARE = 0.003
TICKS = os.sysconf("SC_CLK_TCK")

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the time of a process is read from /proc"
)


def write_sessions(home: Path) -> None:
    """Write sessions of every runtime, an hour and more old."""
    texts, hour_ago = texts_of(7), time.time() - 3600
    sources = {name: generated_for(7, name, "/srv/agent") for name in FORMATS}
    for number in range(SESSIONS):
        for name, write_source in sources.items():
            path = write_source(
                Path(runtime(name).config_dir({"HOME": str(home)})), 20_000, hour_ago
            )
            os.utime(path, (hour_ago, hour_ago))
        author = Author(texts, f"gemini-{number}", "alpha", 20_000, hour_ago)
        author.cwd = "/srv/agent"
        path = write_chat(Path(runtime("gemini").config_dir({"HOME": str(home)})), author)
        os.utime(path, (hour_ago, hour_ago))
    steps = json.dumps(
        {
            "schema_version": "ATIF-v1.7",
            "session_id": "atif-1",
            "agent": {"name": "own"},
            "steps": atif_exchange("an old question", "an old answer", at=hour_ago),
        }
    )
    path = home / ".atif" / "trajectory.json"
    path.parent.mkdir()
    path.write_text(steps)
    os.utime(path, (hour_ago, hour_ago))
    for name, last in (("opencode", 0), ("kilo", 1000)):
        data_dir = Path(runtime(name).config_dir({"HOME": str(home)}))
        database = OpenCodeDatabase(data_dir, last=last)
        database.exchange("/srv/agent", "an old question", "an old answer")
        database.exchange("/srv/agent", "a question", "an answer")
    droid = runtime("droid")
    path = Path(droid.transcript_path(droid.config_dir({"HOME": str(home)}), "/srv/agent", "d1"))
    said = droid_exchange("an old question", "an old answer", at=hour_ago)
    write(path, droid_start("d1", "/srv/agent"), *said)
    os.utime(path, (hour_ago, hour_ago))
    cline = ClineSession(home / ".cline" / "data", "/srv/agent", at=hour_ago)
    cline.exchange("an old question", "an old answer", at=hour_ago)
    os.utime(cline.path, (hour_ago, hour_ago))
    path = home / ".kimi-code/sessions/wd_agent_1/session_1/agents/main/wire.jsonl"
    path.parent.mkdir(parents=True)
    said = kimi_exchange("an old question", "an old answer", at=hour_ago)
    write(path, *kimi_start("/srv/agent", at=hour_ago), *said)
    os.utime(path, (hour_ago, hour_ago))
    session = OmpSession(cwd="/srv/agent", at=hour_ago)
    session.exchange("an old question", "an old answer", at=hour_ago)
    path = session.write(home / ".omp" / "agent" / "sessions" / "-srv-agent")
    os.utime(path, (hour_ago, hour_ago))
    rows = OpenClawDatabase(home / ".openclaw")
    rows.exchange(rows.session("/srv/agent"), "a question", "an answer")
    messages = HermesDatabase(home / ".hermes")
    messages.exchange(messages.session("/srv/agent"), "a question", "an answer")


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    person = StoreUser(tmp_path)
    person.session("one", *exchange("plan a trip", "Gladly."))
    write_sessions(tmp_path)
    return person


@pytest.fixture
def page(person: StoreUser) -> Iterator[ServedPage]:
    with ServedPage(person) as page:
        yield page


def cpu_seconds(page: ServedPage) -> float:
    """Return the processor time of the page and of what it started."""
    fields = Path(f"/proc/{page.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def version(page: ServedPage) -> int:
    found = re.search(r'data-version="(\d+)"', page.view("/search").text)
    assert found
    return int(found[1])


def settle(page: ServedPage) -> int:
    """Wait until all is in the store and nothing has been new for a while; the version of then."""
    last, since = version(page), time.monotonic()
    deadline = since + 300
    while time.monotonic() < since + 3:
        assert time.monotonic() < deadline, "it never rests"
        time.sleep(0.2)
        if (now := version(page)) != last:
            last, since = now, time.monotonic()
    return last


def test_it_does_nothing_as_long_as_nothing_changes(page: ServedPage, person: StoreUser) -> None:
    page.until("plan a trip", "/list")
    settle(page)
    # so that it looks again
    append(person.projects / "-srv-agent" / "one.jsonl", *exchange("and a hotel", "Booked."))
    page.until("Booked.", "/session/one")
    before = settle(page)
    with closing(sqlite3.connect(person.database)) as connection:
        runtimes = connection.execute("SELECT DISTINCT runtime FROM sessions").fetchall()
    assert len(runtimes) == len(all_runtimes())
    began = cpu_seconds(page)
    time.sleep(6)
    # one look at everything, on a machine that has other things to do
    assert cpu_seconds(page) - began < 0.3
    assert version(page) == before


@pytest.mark.slow
def test_it_takes_a_three_hundredth_of_a_core_at_most(page: ServedPage) -> None:
    page.until("plan a trip", "/list")
    settle(page)
    time.sleep(15)  # until it has looked at everything once more
    began, at = cpu_seconds(page), time.monotonic()
    time.sleep(30)  # in which it looks at everything again
    share = (cpu_seconds(page) - began) / (time.monotonic() - at)
    assert share <= CORE_SHARE, f"{share:.2%} of a core"
