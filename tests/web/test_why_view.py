"""The page's lines of a file by session, to which each hunk of an edit links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from git_scene import repository
from page_scene import ServedPage
from records import assistant, user, write
from store_scene import StoreUser

from session_memory.runtimes.claude import encode_cwd
from session_memory.web.diffs import diff_of, hunk_lines

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


def test_an_edit_links_to_its_file_by_session_with_the_request_alongside(served: ServedPage) -> None:
    conversation = re.search(r"/call\?of=(\d+)", served.view("/session/s1").text)
    of = conversation[1] if conversation else "1"
    call = served.view(f"/session/s1/call?of={of}&item=2").text
    link = re.search(r'href="[^"]*(/session/s1/why\?[^"#]*)#L1"', call)
    assert link
    told = served.view(unescape(link[1])).text
    assert "“the cart has to add the tax &lt;b&gt;as the invoice does&lt;/b&gt;”" in told
    assert LINE in unescape(told)
    assert "not committed" in told


def test_only_a_file_that_the_session_edited_is_shown(served: ServedPage) -> None:
    assert served.view("/session/s1/why?of=1&item=1&path=/etc/passwd").status == 404


def test_each_hunk_whose_lines_are_known_has_a_link() -> None:
    placed = diff_of([("a\nb", "a\nc")], [("a\nb", "a\nc", 7, 7), ("x", "y\nz", 20, 21)])
    assert placed
    assert hunk_lines(placed) == [8, 21]
    unplaced = diff_of([("a\nb", "a\nc")], [])
    assert unplaced
    assert hunk_lines(unplaced) == []
