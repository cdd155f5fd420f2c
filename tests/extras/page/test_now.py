"""Now: the exact texts that each session got and will get, and files that several have in hand."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from agents_scene import noted_process
from hooks_scene import PlainUser, told
from page_scene import WAIT_SECONDS, ServedPage
from records import append, assistant, exchange, user, write
from store_scene import ROOT

from session_memory.app.labels import project_of
from session_memory.app.session_counts import active_since
from session_memory.extras.host._callbacks import updates_callback
from session_memory.extras.host._database import HostDatabase
from session_memory.extras.host._group_files import name_session
from session_memory.sessions.settings.host_layout import Layout


class Person:
    """The user of a page who has the hook too."""

    def __init__(self, plain: PlainUser) -> None:
        self.home: Path = plain.root
        self.environment = {
            "HOME": str(plain.root),
            "PATH": os.defpath,
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONUNBUFFERED": "1",
        }


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


def waiting_in(shown: str) -> list[str]:
    """What is shown as waiting, in its own words."""
    quotes = re.findall(r'<pre class="quote waits".*?>(.*?)</pre>', shown, re.S)
    return [re.sub("</?span.*?>", "", one).rstrip("\n") for one in quotes]


def test_what_waits_is_there_in_its_very_words_and_looking_takes_nothing_away(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    plain.run()
    append(other, *exchange("and a hotel", "Booked."))
    with noted_process(plain.root / ".claude", plain.session_id, "idle"):
        page.until("Booked.")
        shown = unescape(page.until('<summary class="muted">Next update</summary>').text)
    next_told = told(plain.run())
    assert next_told in waiting_in(shown)
    assert "and a hotel" in next_told


def test_what_a_session_was_told_is_there_after_its_prompt(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    plain.run()
    shown = page.until("Update it got ")
    assert "plan a trip" in shown.text


def collide(plain: PlainUser, other: Path) -> None:
    """The user's session has read cart.py, and the other one edits it.

    Times within 50 ms do not show which came first, so the file and its read are older."""
    cart, now = plain.root / "cart.py", time.time()
    cart.write_text("1\n")
    os.utime(cart, (now - 10, now - 10))
    own = plain.project_dir / f"{plain.session_id}.jsonl"
    append(own, assistant(("Read", {"file_path": str(cart)}), at=now - 5))
    plain.run()
    edit(plain, other)


def edit(plain: PlainUser, other: Path) -> None:
    cart = plain.root / "cart.py"
    called = assistant(("Edit", {"file_path": str(cart), "old_string": "1", "new_string": "2"}))
    cart.write_text(cart.read_text() + "2\n")  # after the call, as a runtime does
    append(other, called)


def rows_of(shown: str, label: str) -> list[str]:
    """The rows of a table, as the words in each, without the buttons."""
    [table] = re.findall(rf'aria-label="{label}">(.*?)</table>', shown, re.S)
    rows = re.findall(r"<tr data-step.*?</tr>", table, re.S)
    words = [re.sub(r"<form.*?</form>|<details.*?</details>", "", row, flags=re.S) for row in rows]
    return [" ".join(re.sub(r"<.*?>", " ", unescape(row)).split()) for row in words]


def test_a_file_in_two_hands_is_a_row_with_both_until_it_was_told(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    with noted_process(plain.root / ".claude", plain.session_id, "idle"):
        collide(plain, other)
        shown = page.until('aria-label="Collisions"').text
        [row] = rows_of(shown, "Collisions")
        known = "agent plan a trip edited tend the roses read just now 1 not told yet"
        assert row == f"{plain.root}/cart.py {known}"
        assert "1 collision<" in shown
        assert any("after you read it" in text for text in waiting_in(shown))
        assert "after you read it" in told(plain.run())
        deadline = time.monotonic() + WAIT_SECONDS
        while 'aria-label="Collisions"' in page.view().text:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_session_that_has_ended_does_not_wait_to_be_told(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    collide(plain, other)
    shown = unescape(page.until("after you read it").text)
    assert 'aria-label="Collisions"' not in shown
    assert ">Next update<" not in shown
    assert "Update at its next prompt, if you resume it" in shown


def post(page: ServedPage, shown: str, action: str, row: str) -> int:
    """Press the button of a row, and return the status of the answer."""
    [form] = [
        form
        for form in re.findall(r"<form.*?</form>", shown, re.S)
        if f'{action}"' in form and row in form
    ]
    fields = dict(re.findall(r'name="(\w+)" value="(.*?)"', form))
    origin = f"http://{page.host}"
    return page.view(
        f"/now/{action}",
        method="POST",
        body=urlencode(fields),
        Origin=origin,
        Content_Type="application/x-www-form-urlencoded",
    ).status


def test_what_was_seen_goes_away_until_something_new_happens_to_it(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    with noted_process(plain.root / ".claude", plain.session_id, "idle"):
        collide(plain, other)
        shown = page.until('aria-label="Collisions"').text
        assert post(page, shown, "seen", "cart.py") == 303
        shown = page.view().text
        assert 'aria-label="Collisions"' not in shown
        assert "1 seen: show again" in shown
        assert post(page, shown, "unseen", "") == 303
        shown = page.view().text
        assert rows_of(shown, "Collisions")
        edit(plain, other)
        after_edit = page.until("Collisions")
        deadline = time.monotonic() + WAIT_SECONDS
        while news_of(after_edit.text) == news_of(shown):
            assert time.monotonic() < deadline
            after_edit = page.until("Collisions")
        assert post(page, shown, "seen", "cart.py") == 303
        assert rows_of(page.view().text, "Collisions"), "hidden, although it has news"
        assert post(page, after_edit.text, "seen", "cart.py") == 303
        assert 'aria-label="Collisions"' not in page.view().text
        edit(plain, other)
        assert rows_of(page.until('aria-label="Collisions"').text, "Collisions")


def news_of(shown: str) -> str:
    """The time of the news in the row of the collision."""
    [row] = re.findall(r'name="news" value="(\d+)"[^\n]*Seen: [^"]*cart.py', shown)
    return row


def test_a_notice_is_in_plain_words_and_can_be_dismissed(plain: PlainUser, other: Path) -> None:
    plain.config("no_such_key: 1\n")
    with ServedPage(Person(plain)) as page:
        shown = page.until("no_such_key").text
        assert "`" not in re.sub("<pre.*?</pre>", "", shown, flags=re.S)
        assert post(page, shown, "seen", "Dismiss: settings") == 303
        assert "no_such_key" not in page.view().text
        plain.config("other_key: 1\n")
        page.until("other_key")


def test_a_row_is_not_hidden_by_a_form_without_the_token(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    shown = page.view().text
    forged = re.sub(r'(name="form_token" value=")[^"]*', r"\1x", shown)
    assert post(page, forged, "seen", "Seen: plan a trip") == 403
    assert "seen: show again" not in page.view().text


def test_an_idle_session_is_a_line_and_each_has_one_age(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    ago = time.time() - 40 * 60
    old = plain.session(*exchange("paint the fence", "Painted.", at=ago))
    os.utime(old, (ago + 20 * 60, ago + 20 * 60))  # a record without a message came later
    page.until("paint the fence", "/list")
    shown = page.until("paint the fence").text
    [idle] = re.findall(r'<tr [^>]*aria-label="paint the fence".*?</tr>', shown, re.S)
    idle = idle.partition('<td class="more">')[0]
    of_card = re.findall(r">(\d+m) ago<", idle)
    of_list = re.findall(r">(\d+m) ago<", page.view("/list").text)
    assert of_card == of_list
    assert len(of_card) == 1


def test_what_was_said_last_is_quoted_without_the_marks_of_markdown(
    other: Path, page: ServedPage
) -> None:
    said = "## Done\n\nI fixed **both** of `cart.py`:\n\n```python\n__init__ = 2 * 3\n```\n- see [the docs](https://x.example)"
    append(other, *exchange("> why is `__init__` slow?", said))
    shown = page.until("Done I fixed both of cart.py: __init__ = 2 * 3 • see the docs").text
    assert ">why is __init__ slow?<" in shown


def test_a_request_that_begins_with_the_session_s_name_is_shown(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    given = {"type": "custom-title", "customTitle": "plan a trip", "sessionId": other.stem}
    append(other, given, *exchange("plan a trip to the coast instead", "Gladly."))
    page.until('title="its last request">plan a trip to the coast instead<')


def test_what_an_agent_does_is_said_where_sessions_are_listed(
    plain: PlainUser, other: Path, page: ServedPage
) -> None:
    append(other, user("water the roses", cwd=str(plain.root)))
    with noted_process(plain.root / ".claude", other.stem, "busy"):
        shown = page.until('<span class="badge green" title="working">working</span>').text
        assert re.search(r">\d at work<", shown)
        [card] = [card for card in shown.split("<tbody")[1:] if ">working<" in card]
        assert "water the roses" in card
        assert ">Gladly.<" not in card, "what was said before that"
        assert '<span class="at-work">at work</span>' in page.view("/list").text
        append(other, assistant(("Bash", {"command": "npm test"}), cwd=str(plain.root)))
        page.until('<span class="badge green" title="working: Bash">working: Bash</span>')
    with noted_process(plain.root / ".claude", other.stem, "waiting", "permission prompt"):
        page.until("asks for approval: Bash</span>")


class Operator(Person):
    """Who runs the host at `layout`, and has no sessions of their own."""

    def __init__(self, layout: Layout, home: Path) -> None:
        (home / ".claude" / "projects").mkdir(parents=True)
        self.home = home
        self.environment = {
            "HOME": str(home),
            "PATH": os.defpath,
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
        }
        self.environment |= {"TZ": "UTC", "PYTHONUNBUFFERED": "1"}


def test_a_host_s_page_shows_its_groups_to_its_operator(layout: Layout, tmp_path: Path) -> None:
    HostDatabase(f"{layout.root}/store/messages.db").close()
    for group in ("main", "garden"):
        write(
            Path(layout.group(group).transcript(f"id-of-{group}")),
            *exchange(f"what of {group}?", "All is well."),
        )
    with ServedPage(Operator(layout, tmp_path / "home"), "--home", layout.root) as page:
        page.until("what of main?")
        shown = page.until("what of garden?").text
        assert '<span class="badge">garden</span>' in shown
        assert "All is well." in page.view("/session/id-of-garden").text
        name_session(layout.group("garden"), "chat", "id-of-garden")
        name_session(layout.group("garden"), "nightly", "id-of-nightly")
        nightly = layout.group("garden").transcript("id-of-nightly")
        write(Path(nightly), *exchange("water the roses", "Watered."))
        waiting = "\n".join(waiting_in(unescape(page.until('class="quote waits"').text)))
        assert "water the roses" in waiting
        callback: Any = updates_callback(layout.group("garden"), "chat")
        answer = asyncio.run(
            callback({"prompt": "hello", "session_id": "id-of-garden"}, None, None)
        )
        assert answer["hookSpecificOutput"]["additionalContext"] in waiting
        page.until("Update it got ")
    alone = ServedPage(
        Operator(layout, tmp_path / "other"), "--home", f"{layout.root}/groups/garden"
    )
    with alone as page:
        assert "what of main?" not in page.until("what of garden?").text
        assert page.view("/session/id-of-main").status == 404


@pytest.mark.parametrize(
    ("clock", "hours"), [("00:07", 12), ("11:30", 12), ("12:30", 12.5), ("23:00", 23)]
)
def test_at_night_what_was_before_midnight_is_active_too(clock: str, hours: float) -> None:
    now = time.mktime(time.strptime(f"2026-02-21 {clock}", "%Y-%m-%d %H:%M"))
    assert now - active_since(now) == hours * 3600


def test_the_name_of_a_project_holds_no_token():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    assert project_of(f"/srv/app-{token}") == "app-[redacted: github token]"
