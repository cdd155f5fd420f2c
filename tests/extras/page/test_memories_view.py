"""Memories on the page: shown with their sources, forgotten, and restored."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from git_scene import git, repository
from page_scene import Answer, ServedPage
from records import exchange
from store_scene import StoreUser

DECISION = """# Decisions

## Sessions are kept in Redis ^abcdefghij

The cart `src/cart.py` reads them from there <b>only</b>.

> then Redis it is

*From 2026-02-21 14:32:05 UTC, session s1, conversation 1, message 2, by summary, in {directory}*
"""
FACT = "# Facts\n\n## The bakery opens at five ^bcdefghijk\n"


@pytest.fixture
def user(tmp_path: Path) -> StoreUser:
    """A user with a repository, in which a file was changed since a decision about it, and a fact."""
    user = StoreUser(tmp_path)
    shop = repository(tmp_path / "shop")
    (shop / "src").mkdir()
    (shop / "src" / "cart.py").write_text("new")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "cart")
    user.session("s1", *exchange("Why is the cart empty?", "The cache was stale."))
    user.run("ingest")
    pages = tmp_path / ".session-memory" / "memories"
    pages.mkdir(parents=True)
    (pages / "decisions.md").write_text(DECISION.format(directory=shop))
    (pages / "facts.md").write_text(FACT)
    return user


def titles(answer: Answer) -> list[str]:
    return [
        html.unescape(title)
        for title in re.findall(r'<h2 class="grow" id="title-[^"]*">([^<]*)', answer.text)
    ]


def press(page: ServedPage, action: str, id: str, token: str | None = None) -> Answer:
    if token is None:
        found = re.search(r'name="form_token" value="([^"]+)"', page.view("/memories").text)
        assert found
        token = found[1]
    body = f"form_token={token}&id={id}"
    headers = {"Origin": f"http://{page.host}", "Content_Type": "application/x-www-form-urlencoded"}
    return page.ask(f"{page.root}/memories/{action}", method="POST", body=body, **headers)


def test_each_is_shown_with_its_quotation_its_origin_and_the_path_of_its_page(
    user: StoreUser,
) -> None:
    with ServedPage(user) as page:
        text = page.view("/memories").text
        assert titles(page.view("/memories")) == [
            "Sessions are kept in Redis",
            "The bakery opens at five",
        ]
        assert "then Redis it is" in text
        assert "<b>only</b>" not in text
        assert re.search(rf'href="{page.root}/session/s1\?at=2"', text)
        assert f'data-copy="{user.home}/.session-memory/memories/decisions.md"' in text
        assert "shop" in text


def test_what_speaks_against_one_is_told_when_it_is_asked_for(user: StoreUser) -> None:
    with ServedPage(user) as page:
        assert "1 file it names changed since" in page.view("/memories?doubts=1").text
        assert "changed since" not in page.view("/memories").text


def test_they_are_chosen_by_kind_project_and_words(user: StoreUser) -> None:
    with ServedPage(user) as page:
        assert titles(page.view("/memories?kind=fact")) == ["The bakery opens at five"]
        assert titles(page.view("/memories?project=shop")) == ["Sessions are kept in Redis"]
        assert titles(page.view("/memories?q=bakery")) == ["The bakery opens at five"]
        assert "No memories match" in page.view("/memories?q=zebra").text


def test_one_that_is_forgotten_is_gone_from_its_page_and_can_be_taken_back(user: StoreUser) -> None:
    decisions = user.home / ".session-memory" / "memories" / "decisions.md"
    with ServedPage(user) as page:
        assert press(page, "forget", "abcdefghij").status == 303
        assert titles(page.view("/memories")) == ["The bakery opens at five"]
        assert not decisions.exists() or "Redis" not in decisions.read_text()
        assert "1 memory forgotten in the last day" in page.view("/memories").text
        assert press(page, "take-back", "abcdefghij").status == 303
        assert titles(page.view("/memories")) == [
            "Sessions are kept in Redis",
            "The bakery opens at five",
        ]
        assert "Redis" in decisions.read_text()


def test_nothing_is_forgotten_without_a_form_of_ours_nor_by_a_part_of_an_id(
    user: StoreUser,
) -> None:
    with ServedPage(user) as page:
        assert press(page, "forget", "abcdefghij", token="guessed").status == 403
        assert press(page, "forget", "abc").status == 404
        assert press(page, "forget", "").status == 404
        assert press(page, "take-back", "").status == 404
        assert len(titles(page.view("/memories"))) == 2


def test_memories_of_what_is_excluded_are_not_there(user: StoreUser) -> None:
    user.config("sessions: {s1: {text: false}}")
    with ServedPage(user) as page:
        assert titles(page.view("/memories")) == ["The bakery opens at five"]


def test_no_memory_says_how_they_come_about(tmp_path: Path) -> None:
    user = StoreUser(tmp_path)
    user.session("s1", *exchange("Why is the cart empty?", "The cache was stale."))
    with ServedPage(user) as page:
        page.until("cart", "/list")
        assert "session-memory process" in page.view("/memories").text


LOG = """# 2026-02-21

## Why is the cart empty? ^cdefghijkl

Asked: why. Ended: the cache was stale.

*From 2026-02-21 14:32:05 UTC, session s1, conversation 1, by extractive, in /srv/shop*
"""


def test_the_log_is_counted_apart_from_memories_and_called_a_log(user: StoreUser) -> None:
    episodes = user.home / ".session-memory" / "memories" / "episodes"
    episodes.mkdir()
    (episodes / "2026-02-21.md").write_text(LOG)
    with ServedPage(user) as page:
        assert "2 memories, 1 entry of the log" in page.view("/memories").text
        of_kind = page.view("/memories?kind=episode").text
        assert "1 entry of the log" in of_kind
        assert "0 memories" not in of_kind
        assert '<span class="badge">log</span>' in of_kind
        assert '<span class="badge">episode</span>' not in of_kind
