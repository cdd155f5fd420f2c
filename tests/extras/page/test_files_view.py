"""Files: who edited what, with the diff, and in whose working set it is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from git_scene import git, repository
from page_scene import ServedPage
from records import assistant, exchange, user
from store_scene import StoreUser

CART = "/srv/agent/cart.py"


def edit(id: str, path: str, before: str, after: str, ago: float = 60) -> dict[str, object]:
    given = {"file_path": path, "old_string": before, "new_string": after}
    return assistant(
        {"type": "tool_use", "id": id, "name": "Edit", "input": given}, at=time.time() - ago
    )


def result(id: str, *, is_error: bool = False) -> dict[str, object]:
    return user(
        [{"tool_use_id": id, "type": "tool_result", "content": "It ended.", "is_error": is_error}]
    )


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    found = StoreUser(tmp_path_factory.mktemp("owner"))
    read = assistant({"type": "tool_use", "id": "r1", "name": "Read", "input": {"file_path": CART}})
    found.session("reader", *exchange("Look at the cart", "Yes."), read, result("r1"))
    found.session(
        "first",
        *exchange("Fix the cart", "Yes."),
        edit("a1", CART, "a", "b", 90),
        result("a1"),
        edit("a2", "/srv/agent/refused.py", "a", "b"),
        result("a2", is_error=True),
    )
    found.session(
        "second",
        *exchange("Paint the cart", "Yes."),
        edit("b1", CART, "b", "c"),
        result("b1"),
        edit("b2", CART, "c", "<d>"),
        result("b2"),
        edit("b3", "/srv/agent/colour.py", "x", "y", 1),
        result("b3"),
    )
    return found


@pytest.fixture(scope="module")
def page(owner: StoreUser) -> Iterator[ServedPage]:
    with ServedPage(owner) as page:
        page.until("colour.py", "/files")
        yield page


def card(text: str, file: str) -> str:
    return next(
        one
        for one in re.findall(r"<article.*?</article>", text, re.DOTALL)
        if f">{file}</a>" in one
    )


def test_a_file_has_those_who_edited_it_the_latest_first(page: ServedPage) -> None:
    text = page.view("/files").text
    assert re.findall(r'<article[^>]*aria-label="([^"]+)"', text) == ["colour.py", "cart.py"]
    titles = re.findall(r'<span class="cut">([^<]+)</span>', card(text, "cart.py"))
    assert titles == ["Paint the cart", "Fix the cart"]
    assert "2 edits, " in card(text, "cart.py")
    assert "refused.py" not in text


def test_an_edit_of_a_file_has_its_diff(page: ServedPage) -> None:
    addresses = re.findall(
        r'data-load="([^"]+/call[^"]+)"', card(page.view("/files").text, "cart.py")
    )
    html = page.ask(unescape(addresses[0])).text
    lines = unescape(re.sub("<[^>]+>", "", html)).split("\n")
    shown = [line.strip() for line in lines if line.strip()]
    assert shown[:2] == [f"{CART}+1 -1 line numbers count from the start of the edit", "- c+ <d>"]
    assert "It ended." in shown[-1]
    assert len(addresses) == 3


def test_a_file_that_is_open_in_several_sessions_is_marked(page: ServedPage) -> None:
    text = page.until("1 open in several sessions", "/files").text
    found = card(text, "cart.py")
    assert found.count("open in this session") == 3
    assert re.search(r'<p class="row small reader">.*Look at the cart</a>', found)
    assert "alarm" in found
    assert "alarm" not in card(text, "colour.py")


def test_files_of_another_project_and_of_excluded_sessions_are_not_shown(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    secret = [
        {**one, "cwd": "/srv/secret"}
        for one in (*exchange("Hide", "Yes."), edit("s1", "/srv/secret/key.py", "a", "b"))
    ]
    owner.session("hidden", *secret, project="-srv-secret")
    owner.session("open", *exchange("Fix", "Yes."), edit("a1", CART, "a", "b"))
    with ServedPage(owner) as page:
        page.until("key.py", "/files")
        page.until("cart.py", "/files")
        assert "cart.py" not in page.view("/files?project=secret").text
        assert "key.py" in page.view("/files?project=secret").text
        owner.config("projects: {/srv/secret: {ignore: true}}\n")
        assert "key.py" not in page.view("/files").text
        assert "cart.py" in page.view("/files").text


def test_a_file_that_a_command_wrote_is_there_and_two_worktrees_are_told_apart(
    tmp_path: Path,
) -> None:
    person = StoreUser(tmp_path / "home")
    root = repository(tmp_path / "shop", **{"cart.ts": "1\n"})
    git(root, "worktree", "add", "-q", "-b", "fix", str(tmp_path / "shop-fix"))
    for name, directory in (("main", root), ("linked", tmp_path / "shop-fix")):
        command = {"command": "sed -i s/1/2/ cart.ts && git commit -qam Two"}
        call = assistant(
            {"type": "tool_use", "id": name, "name": "Bash", "input": command}, cwd=str(directory)
        )
        refused = assistant(
            {"type": "tool_use", "id": "r", "name": "Bash", "input": {"command": "touch x"}}
        )
        person.session(
            name,
            user("Make it two", cwd=str(directory)),
            call,
            result(name),
            refused,
            result("r", is_error=True),
        )
    with ServedPage(person) as page:
        text = page.until("2 files edited", "/files").text
        found = re.findall(r"<article.*?</article>", text, re.DOTALL)
        assert ["1 edit, " in one and ">cart.ts</a>" in one for one in found] == [True, True]
        assert sorted('title="worktree">shop-fix</span>' in one for one in found) == [False, True]
        outline = page.view("/session/main/outline").text
        assert "cart.ts" in outline
