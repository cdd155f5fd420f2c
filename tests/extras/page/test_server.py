"""The page as a process: it ends at once, leaves nothing running, and takes little memory."""

from __future__ import annotations

import asyncio
import http.client
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from page_scene import WAIT_SECONDS, ServedPage
from records import exchange
from starlette.requests import Request
from store_scene import StoreUser

from session_memory.extras.page._access import Access
from session_memory.extras.page._app import PageApp
from session_memory.extras.page._page_request import PageRequest
from session_memory.extras.page._view import View


@pytest.fixture
def user(tmp_path: Path) -> StoreUser:
    user = StoreUser(tmp_path)
    user.session("s1", *exchange("Why is the cart empty?", "The cache was stale."))
    return user


class Listener:
    """Somebody who listens to what changes."""

    def __init__(self, page: ServedPage) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=WAIT_SECONDS)
        self.connection.request(
            "GET", f"{page.root}/changes", headers={"Host": page.host, "Cookie": page.cookie}
        )
        self._events = self.connection.getresponse()

    def next(self) -> bytes:
        """The next version that is told."""
        while True:
            line = self._events.readline()
            assert line, "the page has ended"
            if line.startswith(b"data: "):
                return line


def test_ctrl_c_ends_it_while_a_browser_listens(user: StoreUser) -> None:
    took = []
    for _ in range(3):  # the best of them: other tests run beside this one
        with ServedPage(user) as page:
            page.until("cart", "/list")
            listener = Listener(page)
            listener.next()
            took.append(page.end())
            assert page.process.wait(10) == 0
            listener.connection.close()
    assert min(took) < 5


def test_ctrl_c_ends_it_while_it_still_starts(user: StoreUser) -> None:
    for _ in range(10):
        page = ServedPage(user)  # its link was just printed
        page.end()
        assert page.process.wait(0) == 0


INTERRUPTED = """
import signal, sys, threading, time
from session_memory.cli import main

def interrupt():
    while sys._current_frames()[threading.main_thread().ident].f_code.co_name != "select":
        time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
sys.exit(main(["page", "--no-browser"]))
"""


def test_ctrl_c_ends_it_also_if_it_does_not_interrupt_its_sleep(user: StoreUser) -> None:
    """As one that comes just before it falls asleep, or to another thread."""
    done = user.run_command(sys.executable, "-c", INTERRUPTED)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_view_that_counts_for_long_stops_when_the_page_ends() -> None:
    has_begun, has_ended = threading.Event(), threading.Event()

    def count(request: PageRequest) -> dict[str, Any]:
        has_begun.set()
        try:
            for _ in request.while_wanted(range(3000)):
                time.sleep(0.01)
        finally:
            has_ended.set()
        return {}

    class Everything:
        """The parts of a page that this view needs."""

        intake, version, location, sessions, found = "", 0, None, (), ()

        def catch_up(self) -> None: ...

        @contextmanager
        def store(self) -> Iterator[None]:
            yield None

    async def never() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {}

    async def shown() -> None:
        parts: Any = Everything()
        page = PageApp(parts, parts, Access(0), {}, parts, parts, print)
        request = Request(
            {"type": "http", "path": "/", "query_string": b"", "headers": [], "path_params": {}},
            never,
        )
        asking = asyncio.ensure_future(page._shown(View("costs", "/costs", count))(request))
        assert await asyncio.to_thread(has_begun.wait, WAIT_SECONDS)
        asking.cancel()  # as the server does with what is open at its end
        assert await asyncio.to_thread(has_ended.wait, 10)

    asyncio.run(shown())


def test_what_is_said_meanwhile_is_there_within_a_second(user: StoreUser) -> None:
    took = []
    with ServedPage(user) as page:
        page.until("cart", "/list")
        listener = Listener(page)
        for number in range(5):
            began = time.monotonic()
            user.session(f"new{number}", *exchange(f"What is new in {number}?", "This is."))
            while f"What is new in {number}?" not in page.view("/list").text:
                listener.next()
            took.append(time.monotonic() - began)
            if took[-1] < 1:
                break
        listener.connection.close()
    assert min(took) < 1


def test_what_breaks_while_the_page_is_open_is_said_and_gone_once_it_is_mended(
    user: StoreUser,
) -> None:
    said = "max_characters"
    with ServedPage(user) as page:
        page.until("cart", "/list")
        assert said not in page.view("/").text
        user.config("max_characters: many")
        page.until(said, "/")
        user.config("max_characters: 400")
        deadline = time.monotonic() + WAIT_SECONDS
        while said in page.view("/").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)
