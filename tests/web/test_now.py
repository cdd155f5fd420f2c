"""Now: what each session was told and what waits for it, in the very words, and whose hands meet."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hooks_scene import PlainUser, told
from page_scene import ServedPage
from records import append, assistant, exchange, user, write
from store_scene import ROOT

from session_memory.host.callbacks import updates_callback
from session_memory.host.database import HostDatabase
from session_memory.host.group_files import name_session
from session_memory.settings.host_layout import Layout
from session_memory.web.active_sessions import active_since, aged, work_of
from session_memory.web.labels import project_of


class Person:
    """The user of a page who has the hook too."""

    def __init__(self, plain: PlainUser) -> None:
        self.home: Path = plain.root
        self.environment = {
            "HOME": str(plain.root), "PATH": os.defpath, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "TZ": "UTC",
            "PYTHONUNBUFFERED": "1",
        }  # fmt: skip


@pytest.fixture
def other(plain: PlainUser) -> Path:
    """The transcript of a session beside that of the user's, which is called "tend the roses"."""
    write(plain.project_dir / f"{plain.session_id}.jsonl", *exchange("tend the roses", "Gladly."))
    path: Path = plain.session(*exchange("plan a trip", "Gladly."))
    return path


@pytest.fixture
def page(plain: PlainUser, other: Path) -> Iterator[ServedPage]:
    with ServedPage(Person(plain)) as page:
        page.until("plan a trip")
        yield page


def test_what_waits_is_there_in_its_very_words_and_looking_takes_nothing_away(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    plain.run()
    append(other, *exchange("and a hotel", "Booked."))
    shown = unescape(page.until("Booked.").text)
    assert "Will be told at its next prompt" in shown
    next_told = told(plain.run())
    assert next_told in shown
    assert "and a hotel" in next_told
    gists = re.findall(r'next prompt</span> <span class="grow cut">(.+?)</span>', shown)
    assert any(f"- {gist}" in next_told.splitlines() for gist in gists)


def test_what_a_session_was_told_is_there_after_its_prompt(plain: PlainUser, other: Path, page: ServedPage) -> None:
    plain.run()
    shown = page.until("Was told ")
    assert "plan a trip" in shown.text


def test_two_sessions_with_a_file_in_hand_are_red(plain: PlainUser, other: Path, page: ServedPage) -> None:
    cart = plain.root / "cart.py"
    cart.write_text("1\n")
    own = plain.project_dir / f"{plain.session_id}.jsonl"
    append(own, assistant(("Read", {"file_path": str(cart)})))
    plain.run()
    append(other, assistant(("Edit", {"file_path": str(cart), "old_string": "1", "new_string": "2"})))
    cart.write_text("2\n")
    shown = page.until("with a collision")
    [line] = re.findall(r'<p class="collision">.*?</p>', unescape(shown.text))
    assert "cart.py" in shown.text
    assert "after this session read it" in line


def test_what_was_said_last_is_quoted_without_the_marks_of_markdown(other: Path, page: ServedPage) -> None:
    said = "## Done\n\nI fixed **both** of `cart.py`:\n\n```python\n__init__ = 2 * 3\n```\n- see [the docs](https://x.example)"
    append(other, *exchange("> why is `__init__` slow?", said))
    shown = page.until("Done I fixed both of cart.py: __init__ = 2 * 3 • see the docs").text
    assert ">why is __init__ slow?<" in shown


def test_what_an_agent_does_is_said_where_sessions_are_listed(other: Path, page: ServedPage) -> None:
    append(other, user("water the roses"))
    shown = page.until('<span class="badge green">at work</span>').text
    assert re.search(r">\d at work<", shown)
    assert "Gladly." not in shown.partition("water the roses")[2].partition("</article>")[0], (
        "what was said before that"
    )
    assert '<span class="at-work">at work</span>' in page.view("/list").text
    append(other, assistant(("Bash", {"command": "npm test"})))
    page.until('<span class="badge green">at work: Bash</span>')


def test_a_collision_that_was_told_of_is_as_long_ago_as_it_is_now() -> None:
    told = '! cart.py: edited 39m ago by "ann", before you edited it\n! main.py: edited just now by "ben", after you read it'
    shown = aged(told, 33 * 60)
    assert shown == told.replace("39m ago", "1h ago").replace("just now", "33m ago")


@pytest.mark.parametrize(
    ("role", "tool", "silent_seconds", "work"),
    [
        ("user", "", 300, "at work"), ("user", "", 700, ""), ("assistant", "Bash", 300, "at work: Bash"),
        ("assistant", "Bash", 700, ""), ("assistant", "", 10, "at work"), ("assistant", "", 30, ""),
        ("tool", "Edit", 30, "at work: Edit"), ("", "", 10_000, ""),
    ],
)  # fmt: skip
def test_who_has_answered_or_does_nothing_for_long_is_not_at_work(
    role: str, tool: str, silent_seconds: float, work: str
) -> None:
    assert work_of(role, tool, silent_seconds) == work


def test_a_broken_setting_is_said(plain: PlainUser, other: Path) -> None:
    plain.config("no_such_key: 1\n")
    with ServedPage(Person(plain)) as page:
        assert "no_such_key" in page.until("no_such_key").text


class Operator(Person):
    """Who runs the host at `layout`, and has no sessions of their own."""

    def __init__(self, layout: Layout, home: Path) -> None:
        (home / ".claude" / "projects").mkdir(parents=True)
        self.home = home
        self.environment = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
        self.environment |= {"TZ": "UTC", "PYTHONUNBUFFERED": "1"}


def test_a_host_s_page_shows_its_groups_to_its_operator(layout: Layout, tmp_path: Path) -> None:
    HostDatabase(f"{layout.root}/store/messages.db").close()
    for group in ("main", "garden"):
        write(Path(layout.group(group).transcript(f"id-of-{group}")), *exchange(f"what of {group}?", "All is well."))
    with ServedPage(Operator(layout, tmp_path / "home"), "--home", layout.root) as page:
        shown = page.until("what of garden?").text
        assert "what of main?" in shown
        assert '<span class="badge">garden</span>' in shown
        assert "All is well." in page.view("/session/id-of-garden").text
        name_session(layout.group("garden"), "chat", "id-of-garden")
        name_session(layout.group("garden"), "nightly", "id-of-nightly")
        nightly = layout.group("garden").transcript("id-of-nightly")
        write(Path(nightly), *exchange("water the roses", "Watered."))
        waiting = unescape(page.until("Will be told at its next prompt").text)
        assert "water the roses" in waiting.partition("Will be told at its next prompt")[2]
        callback: Any = updates_callback(layout.group("garden"), "chat")
        answer = asyncio.run(callback({"prompt": "hello", "session_id": "id-of-garden"}, None, None))
        assert answer["hookSpecificOutput"]["additionalContext"] in waiting
        page.until("Was told ")
    alone = ServedPage(Operator(layout, tmp_path / "other"), "--home", f"{layout.root}/groups/garden")
    with alone as page:
        assert "what of main?" not in page.until("what of garden?").text
        assert page.view("/session/id-of-main").status == 404


@pytest.mark.parametrize(("clock", "hours"), [("00:07", 12), ("11:30", 12), ("12:30", 12.5), ("23:00", 23)])
def test_at_night_what_was_before_midnight_is_active_too(clock: str, hours: float) -> None:
    now = time.mktime(time.strptime(f"2026-02-21 {clock}", "%Y-%m-%d %H:%M"))
    assert now - active_since(now) == hours * 3600


def test_the_name_of_a_project_holds_no_token():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert project_of(f"/srv/app-{token}") == "app-[redacted: github token]"
