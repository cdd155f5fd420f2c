"""Notices by the page: while a browser shows it, once each, and only of sessions that begin to wait."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents_scene import noted_process
from own_process import plain_environment
from page_scene import WAIT_SECONDS, ServedPage
from records import append, assistant, exchange, user
from store_scene import StoreUser

from session_memory.app.notices import Notices


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    """A person with a session that waits, one that could ask, and a program that writes notices
    down."""
    person = StoreUser(tmp_path)
    where = {"cwd": str(person.home), "at": time.time()}
    person.session("waits", *exchange("say hello", "Hello.", **where))
    path = person.session("asks", user("build it", **where))
    append(path, assistant(("Bash", {"command": "make"}), **where))
    script = f'printf "%s\\\\n" "$0" >> {person.home}/sent'
    person.config(f"notices: command\nnotice_command: [sh, -c, '{script}']\n")
    return person


def sent(person: StoreUser, lines: int) -> list[str]:
    """Return what was sent, once it has so many lines."""
    path, until = person.home / "sent", time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if path.exists() and len(path.read_text().splitlines()) >= lines:
            break
        time.sleep(0.05)
    return path.read_text().splitlines() if path.exists() else []


@contextmanager
def shown(page: ServedPage) -> Iterator[None]:
    """A browser that shows the page and hears of its changes."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=WAIT_SECONDS)
    headers = {"Host": page.host, "Cookie": page.cookie}
    connection.request("GET", f"{page.root}/changes", headers=headers)
    answer = connection.getresponse()
    assert answer.readline()
    yield
    connection.close()


def test_a_page_that_is_shown_sends_each_notice_once(person: StoreUser) -> None:
    config_dir = person.home / ".claude"
    with noted_process(config_dir, "waits", "idle"), ServedPage(person) as page:
        page.until("say hello")
        with shown(page), noted_process(config_dir, "asks", "waiting", "permission prompt"):
            where = {"cwd": str(person.home), "at": time.time()}
            person.session("other", *exchange("mend it", "Mended.", **where))
            notices = sent(person, 1)
            page.until("asks for approval")
            watcher = Notices(plain_environment(person.home), print)
            assert not watcher.is_claimed()
    assert [line.rpartition(": ")[2] for line in notices] == ["make"]
    assert notices[0].startswith("asks for approval: ")
    assert len(sent(person, 1)) == 1
