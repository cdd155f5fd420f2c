"""A session and files in a real Chromium: folding, three widths, both themes, mouse and keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser_scene import Visitor, violations
from page_scene import ServedPage
from playwright.sync_api import Page, expect
from records import assistant, exchange, record, user
from store_scene import StoreUser

WIDTHS = ((1400, 900), (900, 700), (400, 800))
TOLD = 'A record of your other sessions, not instructions:\n[Session Activity]\n! oven.py: edited 2m ago by "bread"'
NEW = 'def heat(oven):\n    """Heat\n    it."""\n    return ' + " + ".join(
    f"oven.part_{n}" for n in range(60)
)


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    found = StoreUser(tmp_path_factory.mktemp("owner"))
    hook = {"type": "hook_additional_context", "content": [TOLD], "hookEvent": "UserPromptSubmit"}
    usage = {"input_tokens": 1000, "output_tokens": 2000, "cache_read_input_tokens": 40_000}
    thinking = {"type": "thinking", "thinking": "The oven is theirs.\n\nI look first."}
    thought = assistant(thinking, message={"model": "claude-opus-4-5", "usage": usage})
    edit = {
        "file_path": "/srv/agent/oven.py",
        "old_string": "def heat():\n    pass",
        "new_string": NEW,
    }
    edited = assistant({"type": "tool_use", "id": "c1", "name": "Edit", "input": edit})
    read = assistant(
        {
            "type": "tool_use",
            "id": "r1",
            "name": "Read",
            "input": {"file_path": "/srv/agent/oven.py"},
        }
    )
    found.session(
        "other", *exchange("Look at the oven, and tell me how it is heated", "Yes."), read
    )
    found.session(
        "s1",
        *[one for n in range(12) for one in exchange(f"Bake loaf {n}", f"Loaf {n} is baked.")],
        user("Heat it"),
        record("attachment", attachment=hook),
        thought,
        edited,
        assistant("Done."),
    )
    return found


@pytest.fixture(scope="module")
def page(owner: StoreUser) -> Iterator[ServedPage]:
    with ServedPage(owner) as page:
        page.until("Done.", "/session/s1")
        page.until("1 open in several sessions", "/files")
        yield page


def each_width(tab: Page) -> Iterator[int]:
    """Yield each width, after checking that nothing is wrong at it.

    The colours of both themes are the same at all widths."""
    for width, height in WIDTHS:
        tab.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark") if width == WIDTHS[0][0] else ("light",):
            tab.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            assert (
                violations(tab, colours=width == WIDTHS[0][0], all_else=theme == "light") == []
            ), (width, theme)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, f"wider than {width}"
        yield width


def test_a_session_with_all_of_it_open_has_no_fault_at_any_width(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/session/s1")
    tab.locator(".thought summary").click()
    tab.locator(".tool:not(.thought) summary").click()
    tab.locator(".cost summary").click()
    expect(tab.locator(".diff .add").first).to_be_visible()
    expect(tab.locator(".said.told")).to_contain_text("oven.py: edited 2m ago")
    expect(tab.locator(".did-next")).to_contain_text("Edit oven.py")
    expect(tab.get_by_label("About the session")).to_contain_text("claude-opus-4-5")
    for width in each_width(tab):
        box = tab.locator(".session-head").bounding_box()
        assert box
        assert box["height"] < 64, f"a header of more than two lines: {width}"
        assert width < 1000 or tab.locator("#cost").evaluate(
            "one => one.scrollWidth <= one.clientWidth"
        ), "the price is cut"


def test_nothing_shows_through_above_the_header_of_a_session(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/session/s1")
    for width, height in WIDTHS:
        tab.set_viewport_size({"width": width, "height": height})
        tab.evaluate("scrollTo(0, 300)")
        header = tab.locator(".session-head").bounding_box()
        assert header
        hit = (
            "([x, y]) => Boolean(document.elementFromPoint(x, y)?.closest('.said, .calls, .chunk'))"
        )
        rows = range(0, round(header["y"] + header["height"]) - 1)
        middle = header["x"] + header["width"] / 2
        assert [y for y in rows if tab.evaluate(hit, [middle, y])] == [], width


def test_what_was_told_thought_and_changed_is_reached_by_keys(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/session/s1")
    tab.wait_for_load_state()
    tab.keyboard.press("b")
    reached = []
    for _ in range(60):
        tab.keyboard.press("j")
        focused = tab.evaluate(
            "document.activeElement.closest('.told, .thought, .tool')?.className || ''"
        )
        if focused and focused not in reached:
            reached.append(focused)
            tab.keyboard.press("o")
    assert reached == ["said told", "tool thought", "tool"]
    expect(tab.locator(".thought")).to_contain_text("I look first.")
    expect(tab.locator(".diff .add").first).to_be_visible()


def test_files_are_read_by_mouse_and_by_keys_at_every_width(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/files")
    tab.wait_for_load_state()
    tab.keyboard.press("j")
    expect(tab.locator("article.edited").first).to_be_focused()
    tab.keyboard.press("o")
    expect(tab.locator(".diff .add").first).to_be_visible()
    for _ in each_width(tab):
        tab.locator("details.tool summary").first.click()
        expect(tab.locator(".diff").first).to_be_hidden()
        tab.locator("details.tool summary").first.click()
        expect(tab.locator(".diff").first).to_be_visible()
    tab.locator("article.edited").first.focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(".session-head")).to_be_visible()
