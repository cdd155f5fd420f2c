"""The page without a store, or with an unreadable one; and its memory use."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from browser_scene import Visitor
from page_scene import ServedPage
from records import exchange
from store_scene import StoreUser

MOST_MEGABYTES = 120


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path)


def test_without_any_session_it_says_what_will_be_here(person: StoreUser) -> None:
    with ServedPage(person) as page:
        page.until("No session is active")
        assert "No session yet" in page.until("No session yet", "/list").text


def test_a_notice_keeps_its_distance_from_what_follows_it(
    person: StoreUser, visitor: Visitor
) -> None:
    person.config("no_such_key: 1\n")
    with ServedPage(person) as page:
        page.until("no_such_key")
        tab = visitor.visit(page)
        notice = tab.locator(".notice").bounding_box()
        below = tab.locator(".empty").bounding_box()
    assert notice
    assert below
    assert below["y"] >= notice["y"] + notice["height"] + 8


def test_a_session_that_begins_later_shows_up_by_itself(person: StoreUser) -> None:
    with ServedPage(person) as page:
        page.until("No session is active")
        path = person.session("s1", *exchange("Why is the cart empty?", "The cache."))
        path.touch()
        shown = page.until("Why is the cart empty?")
        assert "The cache." in shown.text


def test_a_runtime_that_is_used_for_the_first_time_shows_up_by_itself(person: StoreUser) -> None:
    person.projects.rmdir()
    with ServedPage(person) as page:
        page.until("No session is active")
        person.projects.mkdir()
        person.session("s1", *exchange("Why is the cart empty?", "The cache.")).touch()
        # sooner than everything is looked at anyway
        page.until("Why is the cart empty?", seconds=10)


def test_a_store_of_a_newer_version_is_said_and_shown_as_far_as_it_goes(person: StoreUser) -> None:
    person.session("s1", *exchange("Why is the cart empty?", "The cache."))
    assert person.run("ingest").returncode == 0
    with closing(sqlite3.connect(person.database)) as database, database:
        database.execute("INSERT INTO migrations VALUES ('of_tomorrow', datetime('now'))")
    with ServedPage(person) as page:
        assert "newer" in page.until("newer").text


def test_a_damaged_store_is_made_anew_while_the_page_runs(person: StoreUser) -> None:
    person.session("s1", *exchange("Why is the cart empty?", "The cache."))
    with ServedPage(person) as page:
        page.until("cart", "/list")
        person.database.write_bytes(b"no database at all" * 1000)
        person.database.with_name("memory.db-wal").unlink(missing_ok=True)
        person.session("s2", *exchange("Is it back?", "It is."))
        shown = page.until("Is it back?", "/list")
        assert "Why is the cart empty?" in shown.text


def test_several_tabs_have_one_cookie_and_see_the_same(person: StoreUser) -> None:
    person.session("s1", *exchange("Why is the cart empty?", "The cache."))
    with ServedPage(person) as page:
        first = page.until("cart", "/list").text
        cookie = page.cookie
        page.enter()
        assert page.cookie == cookie
        assert page.view("/list").text == first


@pytest.mark.cost
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_server_takes_little_memory(person: StoreUser) -> None:
    for number in range(20):
        person.session(
            f"s{number}",
            *[
                one
                for n in range(60)
                for one in exchange(f"What of {n}?", "The `cache` was stale. " * 40)
            ],
        )
    with ServedPage(person) as page:
        page.until("/session/s19", "/list")
        for number in range(20):
            assert page.view(f"/session/s{number}").status == 200
            assert page.view(f"/session/s{number}/outline").status == 200
        status = Path(f"/proc/{page.process.pid}/status").read_text()
        kilobytes = int(status.partition("VmRSS:")[2].split()[0])
        assert kilobytes < MOST_MEGABYTES * 1024
