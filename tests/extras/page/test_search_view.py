"""Search on the page: the same hits as the command in the same order, within the chosen limits."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from page_scene import ServedPage
from records import exchange
from store_scene import MONDAY, StoreUser, trip


@pytest.fixture
def user(tmp_path: Path) -> StoreUser:
    user = StoreUser(tmp_path)
    user.session("trip", *trip())
    for number in range(6):
        words = f"the cherry jam number {number} " + "cherry " * number
        user.session(
            f"jam{number}", *exchange(words, "tasty", at=MONDAY + 60 * number, cwd="/srv/jam")
        )
    user.run("ingest")
    return user


def sessions(text: str) -> list[str]:
    return re.findall(r'<h2 class="cut"><a href="[^"]*/session/([^"?]+)', text)


def test_it_finds_what_the_command_finds_in_the_same_order(user: StoreUser) -> None:
    expected = [
        hit["conversation"]["session_id"]
        for hit in user.result("search", "cherry", "--limit", "20")["hits"]
    ]
    with ServedPage(user) as page:
        assert sessions(page.view("/search?q=cherry").text) == expected
        assert len(expected) == 7


def test_what_one_chooses_limits_it(user: StoreUser) -> None:
    found = {
        "project=jam": 6,
        "project=agent": 1,
        "project=none": 0,
        "runtime=claude-code": 7,
        "runtime=pi": 0,
        "who=user": 6,
        "who=assistant": 1,
        "who=command": 0,
        "session=trip": 1,
        "since=today": 0,
        "since=all": 7,
        "since=nonsense": 7,
        "who=nobody": 7,
        "limit=2": 2,
        "limit=x": 7,
    }
    with ServedPage(user) as page:
        assert {
            limit: len(sessions(page.view(f"/search?q=cherry&{limit}").text)) for limit in found
        } == found


def test_the_session_that_a_search_is_limited_to_is_named_by_what_tells_it_apart(
    user: StoreUser,
) -> None:
    with ServedPage(user) as page:
        for id, shown in (("0123456789ab", "01234567"), ("session_0123456789", "session_01234567")):
            assert f"only session {shown} <" in page.view(f"/search?q=cherry&session={id}").text


def test_a_hit_shows_its_words_and_what_was_said_around_it(user: StoreUser) -> None:
    with ServedPage(user) as page:
        text = page.view("/search?q=blossom").text
        assert "The cherry <mark>blossom</mark> is in April." in text
        assert "plan a trip to &lt;b&gt;Japan&lt;/b&gt;" in text
        address = re.search(r'data-load="([^"]*around[^"]*)"', text)
        assert address
        around = page.ask(address[1].replace("&amp;", "&")).text
        assert '<dd class="prose is-hit"><p>Gladly. The cherry blossom is in April.</p>' in around
        assert '<dd class="as-is">plan a trip to &lt;b&gt;Japan&lt;/b&gt;</dd>' in around


def test_what_is_excluded_is_not_found_nor_shown_around_a_number_that_one_guesses(
    user: StoreUser,
) -> None:
    [hit] = user.result("search", "blossom")["hits"]
    around = (
        f"/search/around?conversation={hit['conversation']['id']}&number={hit['entry']['number']}"
    )
    with ServedPage(user) as page:
        assert "blossom" in page.view(around).text
        user.config("sessions: {trip: {ignore: true}}")
        assert "no longer in the store" in page.view(around).text
        assert sessions(page.view("/search?q=blossom").text) == []


def test_any_text_is_a_query_and_none_is_markup(user: StoreUser) -> None:
    with ServedPage(user) as page:
        for query in (
            '"',
            "<script>alert(1)</script>",
            "👩‍🚀",
            "x" * 5000,
            "%00",
            "-cherry",
            "🎉 OR",
            "'--",
        ):
            answer = page.view(f"/search?q={quote(query)}")
            assert answer.status == 200, query
            assert "<script>alert" not in answer.text, query


def test_nothing_asked_and_nothing_found_say_what_to_do(user: StoreUser) -> None:
    with ServedPage(user) as page:
        assert "Type a few words" in page.view("/search").text
        assert "other words may help" in page.view("/search?q=zebra").text
        assert "Search everything" in page.view("/search?q=zebra&who=user").text
