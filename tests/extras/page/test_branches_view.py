"""The page's branches in a real Chromium: who works where, and both sides of conflicts."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_scene import SIZES, Visitor, violations
from git_scene import git, repository
from page_scene import ServedPage
from playwright.sync_api import expect
from records import assistant, exchange, write
from store_scene import StoreUser

from session_memory.history.conflicts import MOST_SIDES
from session_memory.sessions.runtimes.claude import encode_cwd

CART = "".join(f"line {number}\n" for number in range(1, 41))
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedPage]:
    """The page of somebody with a session in each of two worktrees, whose changes of line 20 do not merge."""
    person = StoreUser(tmp_path / "home")
    main, fix = tmp_path / "shop", tmp_path / "shop-fix"
    repository(main, cart=CART)
    git(main, "worktree", "add", "-q", "-b", "fix/login", str(fix))
    for root, name, words in ((main, "s1", f"ours {HOSTILE}"), (fix, "s2", "theirs")):
        (root / "cart").write_text(CART.replace("line 20\n", f"{words}\n"))
        edit = assistant(("Edit", {"file_path": f"{root}/cart"}), cwd=str(root), sessionId=name)
        said = exchange(f"Mend {name}", "Done.", at=time.time() - 60, cwd=str(root), sessionId=name)
        write(person.projects / encode_cwd(str(root)) / f"{name}.jsonl", *said, edit)
    with ServedPage(person) as page:
        page.until("Mend s2", "/list")
        yield page


def test_both_sides_of_what_would_not_merge_stand_side_by_side_and_on_a_phone_below_each_other(
    visitor: Visitor, served: ServedPage
) -> None:
    tab = visitor.visit(served)
    tab.keyboard.press("g")
    tab.keyboard.press("b")
    expect(tab.locator("h1")).to_have_text("Branches")
    rows = tab.locator(".repository tbody tr")
    expect(rows).to_have_count(2)
    for branch, session in (("main", "Mend s1"), ("fix/login", "Mend s2")):
        row = rows.filter(has=tab.get_by_text(branch, exact=True))
        expect(row).to_contain_text(session)
        expect(row).to_contain_text("1 file")
    left, right = tab.locator(".sides figure").nth(0), tab.locator(".sides figure").nth(1)
    assert sorted([left.locator("pre").inner_text(), right.locator("pre").inner_text()]) == [
        f"ours {HOSTILE}",
        "theirs",
    ]
    expect(left).to_contain_text("from line 20")
    expect(tab.locator(".conflict summary")).to_have_text("cart changed on fix/login and on main")
    for size, (width, height) in SIZES.items():
        tab.set_viewport_size({"width": width, "height": height})
        one, other = left.bounding_box(), right.bounding_box()
        assert one
        assert other
        assert (one["y"] == other["y"]) == (size == "desktop"), size
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, size
    assert violations(tab) == []
    tab.emulate_media(color_scheme="dark")
    assert violations(tab, all_else=False) == []


def test_what_a_rule_hides_is_on_no_branch(served: ServedPage, tmp_path: Path) -> None:
    assert "theirs" in served.view("/branches/judged").text
    (tmp_path / "home" / ".session-memory" / "config.yaml").write_text(
        "sessions: {s2: {ignore: true}}\n"
    )
    text = served.view("/branches/judged").text
    assert "theirs" not in text
    assert "fix/login" not in text
    assert "Mend s1" in text


def test_without_a_session_in_a_repository_it_says_so(tmp_path: Path) -> None:
    person = StoreUser(tmp_path / "home")
    person.session("s1", *exchange("Bake a bread", "Done."))
    person.run("ingest")
    with ServedPage(person) as page:
        assert page.view("/branches").status == 200
        assert (
            "No session from the last day is in a git repository"
            in page.view("/branches/judged").text
        )


def test_a_branch_whose_repository_is_damaged_is_not_said_to_have_no_conflicts(
    served: ServedPage, tmp_path: Path
) -> None:
    assert "not judged" not in served.view("/branches/judged").text
    shutil.rmtree(tmp_path / "shop" / ".git" / "objects")
    text = served.view("/branches/judged").text
    assert "Not judged: main: " in text
    assert text.count(">not judged<") == 2
    assert ">none<" not in text


def test_branches_of_which_git_lacks_a_version_are_not_said_to_have_no_conflicts(
    served: ServedPage, tmp_path: Path
) -> None:
    cart = git(tmp_path / "shop", "rev-parse", "HEAD:cart").strip()
    (tmp_path / "shop" / ".git" / "objects" / cart[:2] / cart[2:]).unlink()
    text = served.view("/branches/judged").text
    assert "Not judged: fix/login with main (cart): " in text
    assert text.count(">not judged<") == 2
    assert ">none<" not in text


def test_a_branch_beyond_the_most_that_are_compared_is_not_said_to_have_no_conflicts(
    tmp_path: Path,
) -> None:
    person, main = StoreUser(tmp_path / "home"), tmp_path / "shop"
    repository(main, cart=CART)
    for number in range(MOST_SIDES + 1):
        root = tmp_path / f"part{number}"
        git(main, "worktree", "add", "-q", "-b", f"part{number}", str(root))
        said = exchange(f"Mend {number}", "Done.", at=time.time() - 60, cwd=str(root))
        write(person.projects / encode_cwd(str(root)) / f"s{number}.jsonl", *said)
    with ServedPage(person) as page:
        page.until("Mend 8", "/list")
        text = page.view("/branches/judged").text
    assert f"only the {MOST_SIDES} latest active branches of a repository are compared" in text
    assert text.count(">not judged<") == 1
