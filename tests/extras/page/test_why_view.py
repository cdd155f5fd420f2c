"""The page's lines of a file by session, to which each hunk of an edit links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from browser_scene import Visitor, violations
from git_scene import repository
from page_scene import ServedPage
from playwright.sync_api import expect
from records import assistant, user, write
from store_scene import StoreUser

from session_memory.extras.page._diffs import diff_of, hunks_of
from session_memory.sessions.runtimes.claude import encode_cwd

LINE = "total = price * (1 + tax_rate)"
REQUEST = "the cart has to add the tax <b>as the invoice does</b>"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedPage]:
    """The page of somebody whose session wrote a line that is not committed."""
    person = StoreUser(tmp_path / "home")
    root = repository(tmp_path / "shop", **{"cart.py": "price = 1\n"})
    (root / "cart.py").write_text(f"price = 1\n{LINE}\n")
    given = {"file_path": f"{root}/cart.py", "content": f"price = 1\n{LINE}\n"}
    edit = assistant(("Write", given), cwd=str(root), sessionId="s1")
    said = user(REQUEST, cwd=str(root), sessionId="s1")
    write(person.projects / encode_cwd(str(root)) / "s1.jsonl", said, edit)
    with ServedPage(person) as page:
        page.until("the cart has to", "/list")
        yield page


def test_an_edit_links_to_its_file_by_session_with_the_request_alongside(
    served: ServedPage,
) -> None:
    conversation = re.search(r"/call\?of=(\d+)", served.view("/session/s1").text)
    of = conversation[1] if conversation else "1"
    call = served.view(f"/session/s1/call?of={of}&item=2").text
    link = re.search(r'href="[^"]*(/session/s1/why\?[^"#]*hunk=1)#asked">Why line 1\?<', call)
    assert link
    told = served.view(unescape(link[1])).text
    assert '<span id="asked" class="add" data-line="1">price = 1' in told
    assert "“the cart has to add the tax &lt;b&gt;as the invoice does&lt;/b&gt;”" in told
    assert LINE in unescape(told)
    assert "not committed" in told


def test_only_a_file_that_the_session_edited_is_shown(served: ServedPage) -> None:
    assert served.view("/session/s1/why?of=1&item=1&path=/etc/passwd").status == 404


def test_the_lines_of_a_hunk_are_marked_where_they_stand_now(
    served: ServedPage, tmp_path: Path
) -> None:
    path = tmp_path / "shop" / "cart.py"
    path.write_text(f"import tax\n\n    {LINE}\n")
    told = served.view("/session/s1/why?of=1&item=2&hunk=1").text
    assert re.findall(r'class="add" data-line="(\d+)"', told) == ["3"]
    path.write_text("import tax\n")
    assert (
        "No line of that change is still in the file."
        in served.view("/session/s1/why?of=1&item=2&hunk=1").text
    )


def test_each_hunk_that_adds_lines_can_be_asked_about() -> None:
    placed = diff_of(
        [("a\nb", "a\nc")], [("a\nb", "a\nc", 7, 7), ("gone", "", 12, 12), ("x", "y\nz", 20, 21)]
    )
    assert placed
    assert hunks_of(placed) == [(8, ("c",)), (21, ("y", "z"))]
    unplaced = diff_of([("a\nb", "a\nc")], [])
    assert unplaced
    assert hunks_of(unplaced) == [(0, ("c",))]


def test_the_request_stands_beside_its_lines_in_a_browser(
    visitor: Visitor, served: ServedPage
) -> None:
    tab = visitor.visit(served, "/session/s1/why?of=1&item=2&hunk=1#asked")
    for width in (1400, 900, 400):
        tab.set_viewport_size({"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(tab) == [], width
        words, lines = (
            tab.locator(one).first.bounding_box() for one in (".why > div", ".why > pre")
        )
        assert words
        assert lines
        assert (words["x"] + words["width"] <= lines["x"]) == (width > 1000), width
    tab.locator(".why a").first.click()
    expect(tab.locator(".session-head")).to_be_visible()


def test_an_edit_in_files_leads_to_why_in_a_browser(visitor: Visitor, served: ServedPage) -> None:
    tab = visitor.visit(served, "/files")
    tab.locator("details.tool summary").first.click()
    tab.get_by_text("Why line 1?").click()
    expect(tab.locator("#asked")).to_be_visible()
    expect(tab.locator("h1")).to_have_text("Why is cart.py like this?")
