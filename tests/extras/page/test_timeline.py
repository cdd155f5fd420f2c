"""The timeline: bars that do not overlap, the right days, and a year at a glance."""

from __future__ import annotations

import re
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_scene import ServedPage
from records import exchange
from store_scene import StoreUser

from session_memory.extras.page._labels import ShownRuntime
from session_memory.extras.page.jinja import environment
from session_memory.extras.page.views.timeline import Bar, _lanes_of

CLAUDE = ShownRuntime("Claude Code", 0)
heat = environment().globals["charts"].heat
BARS = st.builds(
    lambda project, left, room, messages: Bar(
        "s", 1, "t", CLAUDE, project, messages, 0, 0, left, 1, room, 0
    ),
    st.sampled_from("abc"),
    st.floats(0, 90),
    st.floats(0.4, 10),
    st.integers(1, 9),
)


@given(st.lists(BARS))
def test_no_bar_stands_on_another_and_none_is_lost(bars: list[Bar]) -> None:
    lanes = _lanes_of(bars)
    assert sorted(bar._replace(row=0) for lane in lanes for bar in lane.bars) == sorted(bars)
    above = 0
    for lane in lanes:
        assert lane.rows_above == above
        above += lane.rows
        assert {bar.project for bar in lane.bars} == {lane.project}
        for row in range(lane.rows):
            placed = sorted((bar.left, bar.left + bar.room) for bar in lane.bars if bar.row == row)
            assert placed
            assert all(until <= begin for (_, until), (begin, _) in pairwise(placed))


@pytest.fixture
def user(tmp_path: Path) -> StoreUser:
    """A user with a conversation of last week in one project, and two of today in another."""
    user = StoreUser(tmp_path)
    noon = time.mktime((*time.localtime()[:3], 12, 0, 0, 0, 0, -1))
    user.session("old", *exchange("Bake the bread", "Baked.", at=noon - 7 * 86400))
    user.session("new", *exchange("Sell the <b>rolls</b>", "Sold.", at=noon, cwd="/srv/shop"))
    user.session("newer", *exchange("Count the money", "Counted.", at=noon + 60, cwd="/srv/shop"))
    return user


def day(days_ago: int) -> str:
    noon = time.mktime((*time.localtime()[:3], 12, 0, 0, 0, 0, -1))
    return time.strftime("%Y-%m-%d", time.localtime(noon - days_ago * 86400))


def test_a_day_has_its_conversations_by_project_and_leads_to_them(user: StoreUser) -> None:
    with ServedPage(user) as page:
        page.until("Count the money", "/timeline")
        today = page.until("Sell the", "/timeline").text
        assert "Sell the &lt;b&gt;rolls&lt;/b&gt;" in today
        assert "2 conversations, 4 messages" in today
        assert re.search(rf'href="{page.root}/session/new\?conversation=\d+"', today)
        assert "Bake the bread" not in today.partition('id="main"')[2]
        before = page.view(f"/timeline?day={day(7)}").text
        assert "Bake the bread" in before
        assert "1 conversation, 2 messages" in before
        two_weeks = page.view("/timeline?span=month").text
        assert "3 conversations, 6 messages" in two_weeks
        assert f'data-day="{day(7)}"><title>{day(7)}: 2</title>' in two_weeks


def test_a_month_ends_with_its_last_day_and_no_later_than_today(user: StoreUser) -> None:
    user.session(
        "leap", *exchange("Leap", "Done.", at=time.mktime((2024, 1, 30, 12, 0, 0, 0, 0, -1)))
    )
    user.session(
        "late", *exchange("Late", "Done.", at=time.mktime((2024, 1, 1, 12, 0, 0, 0, 0, -1)))
    )
    user.run("ingest")
    with ServedPage(user) as page:
        month = page.view("/timeline?day=2024-01-31&span=month").text
        assert "2024-01-01 to 2024-01-31" in month
        assert "2 conversations, 4 messages" in month
        assert f'name="day" value="{day(0)}"' in page.view(f"/timeline?day={day(-9)}").text


def test_a_bar_leads_to_its_conversation_of_a_long_session(tmp_path: Path) -> None:
    user = StoreUser(tmp_path)
    noon = time.mktime((*time.localtime()[:3], 12, 0, 0, 0, 0, -1))
    user.session(
        "long",
        *exchange("Bake", "Baked.", at=noon - 7 * 86400),
        *exchange("Sell", "Sold.", at=noon),
    )
    user.run("ingest")
    with ServedPage(user) as page:
        for days_ago, first in ((7, 1), (0, 3)):
            text = page.view(f"/timeline?day={day(days_ago)}").text
            found = re.search(r'href="([^"]*\?conversation=\d+)"', text)
            assert found
            assert f'data-at="{first}"' in page.ask(found[1]).text


def test_a_day_that_is_none_is_today(user: StoreUser) -> None:
    with ServedPage(user) as page:
        page.until("Count the money", "/timeline")
        for query in (
            "day=2026-02-30",
            "day=x",
            "day=9999-99-99",
            "day=0-1-1",
            "span=century",
            "day=%00",
        ):
            answer = page.view(f"/timeline?{query}")
            assert answer.status == 200, query
            assert "Count the money" in answer.text, query


def test_a_title_has_room_in_the_evening_too(user: StoreUser) -> None:
    evening = time.mktime((*time.localtime()[:3], 23, 30, 0, 0, 0, -1)) - 7 * 86400
    user.session("late", *exchange("Set the dough for tomorrow", "Set.", at=evening))
    user.run("ingest")
    with ServedPage(user) as page:
        lanes = page.until("Set the dough", f"/timeline?day={day(7)}").text
        late = lanes.partition("Set the dough for tomorrow\n")[2].partition("</a>")[0]
        found = re.search(r'<svg x="([\d.]+)%" .*? width="([\d.]+)%"', late)
        bar = re.search(r'<rect class="hue-\d" x="([\d.]+)%"', late)
        assert found
        assert bar
        left, room = float(found[1]), float(found[2])
        assert (left, room) == (86, 14)
        assert left + float(bar[1]) / 100 * room == pytest.approx(23.5 / 24 * 100, abs=0.1)


def test_the_scale_of_a_day_of_23_hours_is_that_of_its_bars(tmp_path: Path) -> None:
    user, zone = StoreUser(tmp_path), ZoneInfo("Europe/Berlin")
    noon = datetime(2026, 3, 29, 12, tzinfo=zone).timestamp()
    user.session("noon", *exchange("Bake", "Baked.", at=noon))
    user.run("ingest")
    with ServedPage(user, TZ=str(zone)) as page:
        text = page.until("Bake", "/timeline?day=2026-03-29").text
    lanes = text.partition('id="main"')[2]
    at = {
        name: float(left)
        for left, name in re.findall(r'<svg x="([\d.]+)%" y="0".*?>(\d+:00)</text>', lanes)
    }
    assert at["12:00"] == pytest.approx(11 / 23 * 100, abs=0.01)
    assert at["21:00"] == pytest.approx(20 / 23 * 100, abs=0.01)


def test_a_day_without_conversations_says_so(user: StoreUser) -> None:
    with ServedPage(user) as page:
        page.until("Count the money", "/timeline")
        assert "No conversation in this day" in page.view("/timeline?day=2001-01-01").text


def test_one_busy_day_does_not_pale_the_others() -> None:
    days = {f"2026-02-{day:02}": 10.0 + day for day in range(1, 29)} | {"2026-03-01": 5000.0}
    year = heat(days, datetime(2026, 3, 1).timestamp(), "a year")
    assert re.findall(r'class="heat-(\d)"[^>]*data-day="2026-02-(?:2[5-8])"', year) == ["4"] * 4


@given(st.datetimes(datetime(2024, 1, 1), datetime(2034, 1, 1)))
def test_no_name_of_a_month_stands_on_the_next(until: datetime) -> None:
    places = [
        int(x)
        for x in re.findall(r'<text class="axis" x="(\d+)"', heat({}, until.timestamp(), "a year"))
    ]
    assert len(places) in (12, 13)
    assert all(one - before >= 28 for before, one in pairwise(places))
