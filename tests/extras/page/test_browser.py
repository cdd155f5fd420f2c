"""The page in a real Chromium: the palette, a session that is followed live, and hostile texts."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_scene import Visitor
from clients.claude import Claude
from page_scene import WAIT_SECONDS, ServedPage, hostile
from playwright.sync_api import expect
from records import append, assistant, exchange, record, user, write
from store_scene import StoreUser


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    found = StoreUser(Path(tmp_path_factory.mktemp("person")))
    new = "def total(cart):\n    cache = False\n\n    # a long line " + "goes on " * 40
    old = "def total(cart):\n    cache = True\n\n"
    edit = {"file_path": "/srv/agent/cart.py", "old_string": old, "new_string": new}
    records = [
        *exchange("Why is the cart empty?", "The `cache` was stale."),
        assistant(("Edit", edit)),
    ]
    records += [
        one for n in range(60) for one in exchange(f"What of cart {n}?", f"It holds {n} things.")
    ]
    write(found.projects / "-srv-agent" / "s1.jsonl", *records)
    found.session(
        "s2",
        *exchange("Bake a rye bread", "It is in the oven.", cwd="/srv/bakery"),
        project="-srv-bakery",
    )
    return found


@pytest.fixture(scope="module")
def page(person: StoreUser) -> Iterator[ServedPage]:
    with ServedPage(person) as page:
        page.until("rye", "/list")
        # what is shown before all is stored is loaded again
        page.until("It holds 59 things.", "/session/s1")
        yield page


def test_the_palette_finds_a_session_and_its_view_is_left_by_keys(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page)
    tab.keyboard.press("?")
    expect(tab.locator("#keys")).to_be_visible()
    tab.keyboard.press("Escape")
    tab.keyboard.press("Control+k")
    tab.keyboard.type("nothing of it")
    tab.keyboard.press("Escape")
    expect(tab.locator("#palette")).to_be_hidden()
    tab.keyboard.press("Control+k")
    tab.keyboard.type("rye")
    expect(tab.locator("#found a").first).to_contain_text("rye")
    tab.keyboard.press("Enter")
    expect(tab.locator("h1")).to_contain_text("rye")
    tab.wait_for_load_state()  # before that no key is listened to
    tab.keyboard.press("g")
    tab.keyboard.press("n")
    expect(tab.locator("h1")).to_have_text("Now")
    tab.wait_for_load_state()
    tab.keyboard.press("j")
    expect(tab.locator("[data-step]:focus")).to_have_count(1)
    tab.keyboard.press("Enter")
    expect(tab.locator(".session-head")).to_be_visible()


def test_ctrl_k_finds_what_was_said_as_one_types_within_the_filters(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page)
    tab.keyboard.press("Control+k")
    tab.keyboard.type("oven")
    said = tab.locator("#found .found-said")
    expect(said).to_contain_text("It is in the oven.")
    expect(said.locator("mark")).to_have_text("oven")
    tab.get_by_label("Project").select_option(label="agent")
    expect(said).to_have_count(0)
    tab.get_by_label("Project").select_option(label="bakery")
    expect(said).to_have_count(1)
    tab.get_by_label("Runtime").focus()
    tab.keyboard.press("ArrowDown")  # chooses the runtime, and moves nothing in what was found
    expect(said).to_have_count(1)
    tab.get_by_label("When").select_option(label="Today")
    expect(said).to_have_count(1)
    tab.get_by_label("Find", exact=True).last.focus()
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/session/s2\?at=2$"))


def test_a_search_is_gone_through_by_keys_and_escape_deletes_nothing(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/search")
    field, hits = tab.get_by_role("searchbox"), tab.locator("#results .hit")
    with tab.expect_response(re.compile("holds.*things")):  # a later answer takes the focus away
        tab.keyboard.type("holds things")
    expect(hits.nth(1)).to_be_visible()
    tab.keyboard.press("Escape")
    expect(field).to_have_value("holds things")
    tab.keyboard.press("ArrowDown")
    expect(hits.nth(0)).to_be_focused()
    tab.keyboard.press("ArrowDown")
    expect(hits.nth(1)).to_be_focused()
    tab.keyboard.press("Escape")
    expect(field).to_be_focused()
    tab.keyboard.press("Enter")
    expect(hits.nth(0)).to_be_focused()
    tab.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    expect(field).to_have_value("holds things")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/session/s1\?at="))


def test_a_session_is_followed_and_its_parts_load_as_one_reads(
    visitor: Visitor, page: ServedPage, person: StoreUser
) -> None:
    tab = visitor.visit(page, "/session/s1")
    expect(tab.get_by_text("It holds 59 things.")).to_be_in_viewport()
    [messages] = re.findall(r"(\d+) messages", tab.locator("#facts").inner_text())
    expect(tab.locator(".outline")).to_contain_text("What of cart 59?")
    append(
        person.projects / "-srv-agent" / "s1.jsonl",
        user("And what is new?"),
        assistant("This was written just now."),
    )
    expect(tab.get_by_text("This was written just now.")).to_be_in_viewport(
        timeout=WAIT_SECONDS * 1000
    )
    expect(tab.locator("#facts")).to_contain_text(f"{int(messages) + 2} messages")
    expect(tab.locator(".outline")).to_contain_text("And what is new?")
    tab.locator(".outline a", has_text="Why is the cart empty?").click()
    expect(tab.locator("#e1")).to_be_in_viewport()
    tab.locator("details.tool summary").first.click()
    expect(tab.locator(".diff .add").first).to_contain_text("cache = False")


def test_what_loads_above_the_end_of_a_session_does_not_stop_following(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/session/s1")
    end = tab.get_by_text("It holds 59 things.")
    expect(end).to_be_in_viewport()
    tab.evaluate(
        """() => {
            const part = document.querySelector(".chunk"), added = document.createElement("div");
            part.style.display = "none"; // shorter for a moment, as a part is that replaces its placeholder
            scrollTo(0, document.documentElement.scrollHeight);
            part.style.display = "";
            added.style.height = "3000px";
            part.prepend(added);
        }"""
    )
    tab.wait_for_timeout(200)
    expect(end).to_be_in_viewport()
    tab.mouse.wheel(0, -2000)
    expect(end).not_to_be_in_viewport()


def test_a_diff_shows_each_line_with_its_number_and_wraps_a_long_one(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/session/s1")
    tab.locator(".outline a", has_text="Why is the cart empty?").click()
    tab.locator("details.tool summary").first.click()
    rows = tab.locator(".diff code > span")
    expect(rows.filter(has_text="goes on")).to_be_visible()
    heights = [box["height"] for row in rows.all() if (box := row.bounding_box())]
    assert len(heights) == len(rows.all()) == 5
    assert max(heights[:-1]) < 30 < heights[-1], "only the long line takes more than one"
    assert [row.get_attribute("data-line") for row in rows.all()] == ["1", "2", "2", "3", "4"]
    assert tab.locator(".diff").first.evaluate("(diff) => diff.scrollWidth - diff.clientWidth") == 0
    tab.set_viewport_size({"width": 400, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_session_that_goes_on_after_a_long_silence_is_followed(
    visitor: Visitor, tmp_path: Path
) -> None:
    other = StoreUser(tmp_path)
    path = other.session(
        "s1", *exchange("Why is the cart empty?", "The cache.", at=time.time() - 86_400)
    )
    with ServedPage(other) as page:
        page.until("cart", "/list")
        tab = visitor.visit(page, "/session/s1")
        append(path, *exchange("Is it full now?", "It holds 3 things.", at=time.time()))
        expect(tab.get_by_text("It holds 3 things.")).to_be_in_viewport()
        expect(tab.locator("#facts")).to_contain_text("4 messages")


@pytest.mark.slow
def test_what_the_real_claude_code_does_is_shown_while_one_looks(
    visitor: Visitor, claude: Claude
) -> None:
    user_of_page = StoreUser(claude.home)
    with ServedPage(user_of_page) as page:
        tab = visitor.visit(page)
        expect(tab.locator("main")).to_contain_text("No session is active")
        turn = claude.run("Plant a yellow rose")
        card = tab.locator("tr", has_text="Plant a yellow rose")
        expect(card).to_contain_text(turn.answer)
        tab.goto(f"http://{page.host}{page.root}/session/{turn.session_id}")
        expect(tab.locator("#dialogue")).to_contain_text(turn.answer)
        again = claude.run("And a white one", "--resume", turn.session_id)
        assert again.session_id == turn.session_id
        expect(tab.locator(".said.user").last).to_contain_text("And a white one")


def test_nothing_that_was_said_runs(visitor: Visitor, tmp_path: Path) -> None:
    source = random.Random(19)
    other = StoreUser(tmp_path)
    records = [record("custom-title", customTitle=hostile(source), sessionId="s1")]
    for _ in range(25):
        records += exchange(f"look at {hostile(source)}", hostile(source))
        records.append(assistant(("Bash", {"command": hostile(source)})))
    write(other.projects / "-srv-agent" / "s1.jsonl", *records)
    with ServedPage(other) as page:
        page.until("/session/s1", "/list")
        tab = visitor.visit(page, "/session/s1")
        for summary in tab.locator("details.tool summary").all()[:10]:
            summary.click()
        tab.goto(f"http://{page.host}{page.root}/")
        expect(tab.locator("tr[data-step]")).to_have_count(1)
        visitor.faults = [fault for fault in visitor.faults if "404" not in fault]
