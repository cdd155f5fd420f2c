"""Sessions named after their first request are shown with the last one that says something."""

from __future__ import annotations

import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from page_scene import ServedPage
from records import assistant, exchange, user
from store_scene import Scene, StoreUser

from session_memory.history.titles import Titles

FIRST, LAST = "Show me how the cart works", "Add a factor for large orders"
BOTH = f"{FIRST} → {LAST}"
HOUR = 3600.0


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.store.close()


def shown(scene: Scene, *records: dict[str, Any], limit: int = 80) -> list[str]:
    """The titles of a session's conversations, the oldest first."""
    scene.write("s1", *records)
    scene.ingest()
    conversations = scene.conversations()
    titles = Titles(scene.store, conversations)
    return [titles.of(conversation, limit) for conversation in conversations]


def test_the_last_request_that_says_something_follows_the_first_one(scene: Scene) -> None:
    talk = [*exchange(FIRST, "Like this."), *exchange(LAST, "Done."), *exchange("thanks", "Sure.")]
    assert shown(scene, *talk) == [BOTH]


@pytest.mark.parametrize("first", ["/mode", "fix it"])
def test_a_later_request_replaces_one_that_says_little_about_a_session(
    scene: Scene, first: str
) -> None:
    asked = [*exchange(first, "Done."), *exchange(LAST, "Done.")]
    assert shown(scene, *asked) == [f"{first} → {LAST}"]
    assert Titles.of_sessions(scene.store, scene.conversations(), {"s1"}) == {"s1": LAST}


def test_of_both_requests_a_part_fits(scene: Scene) -> None:
    talk = [*exchange(FIRST, "Like this."), *exchange(LAST, "Done.")]
    assert shown(scene, *talk, limit=40) == ["Show me how the… → Add a factor for…"]


def test_a_single_request_is_not_repeated(scene: Scene) -> None:
    assert shown(scene, *exchange(FIRST, "Like this."), *exchange("go on", "Done.")) == [FIRST]


def test_a_pasted_screen_with_wide_gaps_is_not_repeated(scene: Scene) -> None:
    screen = f"Why does this fail{' ' * 300}│ npm test{' ' * 300}│ Exit code 1 {'again ' * 20}"
    [title] = shown(scene, *exchange(screen, "Like this."))
    assert title.startswith("Why does this fail │ npm test │ Exit code 1 again")
    assert "→" not in title


def test_a_request_that_begins_like_the_first_one_is_another(scene: Scene) -> None:
    more = f"{FIRST}, and why it is empty after a reload"
    [title] = shown(scene, *exchange(FIRST, "Like this."), *exchange(more, "So."))
    assert title == f"{FIRST} → Show me how the cart works, and why it is empty…"


def test_the_first_request_again_is_not_repeated(scene: Scene) -> None:
    talk = [*exchange(FIRST, "Like this."), *exchange(f"{FIRST}!\n", "Like this again.")]
    assert shown(scene, *talk) == [FIRST]


def test_a_title_that_a_person_gave_stays_alone(scene: Scene) -> None:
    given = {"type": "custom-title", "customTitle": "Cart", "sessionId": "s1"}
    talk = [*exchange(FIRST, "Like this."), *exchange(LAST, "Done.")]
    assert shown(scene, *talk, given) == ["Cart"]


def test_each_conversation_has_the_last_request_until_its_end(scene: Scene) -> None:
    then = time.time() - 9 * HOUR
    talk = [
        *exchange(FIRST, "Like this.", at=then),
        *exchange(LAST, "Done.", at=then + 3 * HOUR),
        *exchange("go on", "Done.", at=then + 6 * HOUR),
    ]
    assert shown(scene, *talk) == [FIRST, LAST, f"go on → {LAST}"]


class Owner(StoreUser):
    """A user with a session of two requests that edits a file, which is open twice."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        now = time.time()
        given = {"file_path": "/srv/agent/cart.py", "old_string": "a", "new_string": "b"}
        usage = {"input_tokens": 5, "output_tokens": 5}
        message = {"model": "claude-opus-4-5", "usage": usage}
        edit = {"type": "tool_use", "id": "a1", "name": "Edit", "input": given}
        self.session(
            "s1",
            *exchange(FIRST, "Like this.", at=now - 90),
            user(LAST, at=now - 60),
            assistant(edit, at=now - 59, message=message),
            user([{"tool_use_id": "a1", "type": "tool_result", "content": "Ok."}], at=now - 58),
            assistant("Done.", at=now - 57),
        )


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Owner:
    owner = Owner(tmp_path_factory.mktemp("owner"))
    owner.run("ingest")
    return owner


@pytest.fixture(scope="module")
def page(owner: Owner) -> Iterator[ServedPage]:
    with ServedPage(owner) as page:
        yield page


@pytest.mark.parametrize(
    "path",
    [
        "/list",
        "/sessions",
        "/sessions?q=factor+for+large",
        "/files",
        "/search?q=factor",
        "/palette?q=large",
        "/timeline",
        "/session/s1",
        "/costs/counted?since=all",
    ],
)
def test_every_view_shows_both_requests(page: ServedPage, path: str) -> None:
    assert BOTH in unescape(page.until(LAST, path).text)


def test_commands_show_both_requests(owner: Owner) -> None:
    for words in (["sessions", "--all"], ["sessions", "--conversations"], ["search", "factor"]):
        assert BOTH in owner.run(*words).stdout
    [session] = owner.result("sessions", "--all")["sessions"]
    assert (session["name"], session["last_request"]) == (FIRST, LAST)


def test_a_session_whose_text_is_hidden_shows_no_request(tmp_path: Path) -> None:
    owner = Owner(tmp_path)
    owner.config("projects:\n  /srv/agent: {quote: false}\n")
    owner.run("ingest")
    for words in (["sessions", "--all"], ["sessions", "--conversations"], ["since", "--json"]):
        assert LAST not in owner.run(*words).stdout
