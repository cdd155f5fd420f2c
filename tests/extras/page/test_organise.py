"""Sessions: labels, pins, and actions on several sessions at once."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from browser_scene import SIZES, Visitor, violations
from page_scene import Answer, ServedPage
from playwright.sync_api import expect
from records import exchange, write
from store_scene import StoreUser

from session_memory.history.marks import Marks
from session_memory.sessions.settings.homes import person_home

TITLES = {"s1": "Bake the rye bread", "s2": "Sweep the floor", "s3": "Order the flour"}


@pytest.fixture
def owner(tmp_path: Path) -> StoreUser:
    owner = StoreUser(tmp_path)
    for number, (name, title) in enumerate(TITLES.items()):
        at = time.time() - 3600 * (number + 1)
        owner.session(name, *exchange(title, f"Done: {title}", at=at))
    owner.run("ingest")
    return owner


@pytest.fixture
def page(owner: StoreUser) -> Iterator[ServedPage]:
    with ServedPage(owner) as page:
        yield page


def names(shown: str) -> list[str]:
    """The titles of the sessions in the table, in its order."""
    return re.findall(r"data-opens>(.*?)</a>", shown)


def post(page: ServedPage, action: str, *sessions: str, **fields: str) -> Answer:
    """Send a form of the page about several selected sessions."""
    chosen = [("session", f"/{id}") for id in sessions]
    [token] = set(re.findall(r'name="form_token" value="(.*?)"', page.view("/sessions").text))
    return page.view(
        f"/sessions/{action}",
        method="POST",
        body=urlencode([("form_token", token), *chosen, *fields.items()]),
        Origin=f"http://{page.host}",
        Content_Type="application/x-www-form-urlencoded",
    )


def test_labels_are_given_shown_filtered_by_and_taken_away(page: ServedPage) -> None:
    assert names(page.view("/sessions").text) == list(TITLES.values())
    assert post(page, "mark", "s1", "s3", do="label", label="shop & co").status == 303
    labelled = page.view(f"/sessions?label={quote('shop & co')}").text
    assert names(labelled) == [TITLES["s1"], TITLES["s3"]]
    assert ">shop &amp; co</a>" in page.view("/session/s1").text
    post(page, "mark", "s1", do="unlabel", label="shop & co")
    assert names(page.view(f"/sessions?label={quote('shop & co')}").text) == [TITLES["s3"]]


def test_a_pinned_session_comes_first_whatever_the_period_is(
    owner: StoreUser, page: ServedPage
) -> None:
    owner.session("old", *exchange("Build the oven", "Built.", at=time.time() - 90 * 86_400))
    page.until("Build the oven", "/sessions?since=all")
    assert "Build the oven" not in page.view("/sessions").text
    assert post(page, "mark", "old", do="pin").status == 303
    assert names(page.view("/sessions?since=7d").text) == ["Build the oven", *TITLES.values()]
    post(page, "mark", "old", do="unpin")
    assert names(page.view("/sessions?since=7d").text) == list(TITLES.values())


def test_selected_sessions_are_exported_with_their_labels(page: ServedPage) -> None:
    post(page, "mark", "s1", do="label", label="shop")
    post(page, "mark", "s1", do="pin")
    answer = page.view("/sessions/export?format=json&session=/s1&session=/s2")
    assert re.fullmatch(
        r'attachment; filename="2-sessions-\d{4}-\d\d-\d\d.json"',
        answer.headers["content-disposition"],
    )
    exported = {each["session_id"]: each for each in json.loads(answer.text)["conversations"]}
    assert set(exported) == {"s1", "s2"}
    assert exported["s1"]["labels"] == ["shop"]
    assert exported["s1"]["pinned_at"]
    assert (exported["s2"]["labels"], exported["s2"]["pinned_at"]) == ([], None)
    html = page.view("/sessions/export?format=html&session=/s1").text
    assert "<dt>Labels</dt><dd>shop</dd>" in html.replace("\n", "")
    assert "Done: Bake" in page.view("/sessions/export?format=markdown&session=/s1").text
    assert page.view("/sessions/export?format=json&session=/nobody").status == 404


def test_forgetting_several_says_before_what_is_lost(owner: StoreUser, page: ServedPage) -> None:
    post(page, "mark", "s1", "s2", "s3", do="label", label="shop")
    asked = page.view("/sessions/chosen?session=/s1&session=/s2").text
    assert "Forget 2 sessions for good" in asked
    lost = page.view("/sessions/lost?session=/s1&session=/s2").text
    assert "Deleted for good: 2 conversations, 4 messages, 0 memories, 0 archives" in lost
    assert "transcripts stay; only what these sessions add later is stored again." in lost
    assert names(page.view("/sessions").text) == list(TITLES.values()), "it is only asked for"
    assert post(page, "forget", "s1", "s2").status == 303
    assert names(page.view("/sessions").text) == [TITLES["s3"]]
    assert owner.stored() == [TITLES["s3"], f"Done: {TITLES['s3']}"]
    marks = Marks.read(person_home({"HOME": str(owner.home)}))
    assert list(marks.of_sessions) == [("", "s3")]
    assert (owner.projects / "-srv-agent" / "s1.jsonl").exists(), "the runtime's own transcript"


def test_excluded_sessions_are_hidden_by_rules_and_nothing_is_deleted(
    owner: StoreUser, page: ServedPage
) -> None:
    assert post(page, "exclude", "s1", "s2").status == 303
    assert names(page.view("/sessions").text) == [TITLES["s3"]]
    config = owner.home / ".session-memory" / "config.yaml"
    assert config.read_text().count("ignore: true") == 2
    config.unlink()
    page.until(TITLES["s1"], "/sessions")
    assert names(page.view("/sessions").text) == list(TITLES.values())


def test_archives_of_several_are_written(owner: StoreUser, page: ServedPage) -> None:
    assert post(page, "archive", "s1", "s3").status == 303
    written = list((owner.home / ".session-memory" / "conversations").rglob("*.md"))
    texts = "".join(path.read_text() for path in written)
    assert TITLES["s1"] in texts
    assert TITLES["s3"] in texts
    assert TITLES["s2"] not in texts


def test_an_archive_of_a_session_whose_transcript_is_gone_says_so_and_writes_the_others(
    owner: StoreUser, page: ServedPage
) -> None:
    (owner.projects / "-srv-agent" / "s1.jsonl").unlink()
    answer = post(page, "archive", "s1", "s3")
    assert answer.status == 503
    assert "<h1>This could not be done</h1>" in answer.text
    assert "session s1: its transcript is gone" in answer.text
    [written] = (owner.home / ".session-memory" / "conversations").rglob("*.md")
    assert TITLES["s3"] in written.read_text()


def test_archives_of_a_runtime_directory_are_written_there(owner: StoreUser) -> None:
    directory = owner.home / "agent2" / ".claude"
    write(
        directory / "projects" / "-srv-agent" / "s9.jsonl", *exchange("Proof the dough", "Proofed.")
    )
    owner.run("ingest", "--home", str(directory))
    with ServedPage(owner, "--home", str(directory)) as page:
        assert post(page, "archive", "s9").status == 303
    [written] = (owner.home / ".session-memory" / "homes").rglob("conversations/*.md")
    assert "Proof the dough" in written.read_text()


@pytest.mark.parametrize("action", ["mark", "archive", "exclude", "forget"])
def test_no_action_works_without_the_token_or_from_another_site(
    page: ServedPage, action: str
) -> None:
    body = urlencode({"session": "/s1", "do": "label", "label": "x"})
    kind = {"Content_Type": "application/x-www-form-urlencoded"}
    origin = f"http://{page.host}"
    path = f"/sessions/{action}"
    assert page.view(path, method="POST", body=body, Origin=origin, **kind).status == 403
    assert page.view(path, method="POST", body=body, **kind).status == 403
    assert page.view(path).status in (404, 405)
    assert names(page.view("/sessions").text) == list(TITLES.values())
    assert ">x</a>" not in page.view("/sessions").text


def test_several_are_selected_labelled_and_forgotten_by_keys(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/sessions")
    tab.keyboard.press("j")
    tab.keyboard.press("x")
    tab.keyboard.press("j")
    tab.keyboard.press("x")
    expect(tab.get_by_role("checkbox", checked=True)).to_have_count(2)
    assert violations(tab) == []
    tab.get_by_role("button", name="Label, export").press("Enter")
    expect(tab.get_by_role("heading", name="2 selected sessions")).to_be_visible()
    expect(tab.get_by_text("Deleted for good: 2 conversations")).to_be_visible()
    assert violations(tab) == []
    tab.get_by_role("combobox", name="Label").fill("shop")
    tab.get_by_role("button", name="Add the label").press("Enter")
    expect(tab.locator(".all-sessions .badge", has_text="shop")).to_have_count(2)
    tab.get_by_role("button", name=f"Pin {TITLES['s3']}").press("Enter")
    expect(tab.locator("[data-opens]").first).to_have_text(TITLES["s3"])
    tab.get_by_role("checkbox", name="Select all sessions").check()
    tab.get_by_role("button", name="Label, export").press("Enter")
    tab.get_by_role("button", name="Forget 3 sessions for good").press("Enter")
    expect(tab.get_by_text("No session matches.")).to_be_visible()


@pytest.mark.parametrize("content", ['{"version": 9}', "[1]"])
def test_every_view_opens_with_a_notice_if_the_labels_cannot_be_read(
    owner: StoreUser, page: ServedPage, content: str
) -> None:
    marks = owner.home / ".session-memory" / "state" / "marks.json"
    marks.parent.mkdir(exist_ok=True)
    marks.write_text(content)
    for path in ("/", "/sessions", "/sessions/chosen?session=/s1", "/session/s1"):
        answer = page.view(path)
        assert answer.status == 200, path
        assert "No labels, pins and seen rows are shown: " in answer.text, path
    assert page.view("/session/s1/facts").status == 200
    assert marks.read_text() == content


def test_a_label_finds_sessions_before_the_latest_thousand_conversations(
    owner: StoreUser, page: ServedPage, visitor: Visitor
) -> None:
    days = [time.time() - 86_400 * number for number in range(1001, 0, -1)]
    talks = [record for at in days for record in exchange("Feed the dough", "Fed.", at=at)]
    owner.session("daily", *talks)
    owner.session("old", *exchange("Build the oven", "Built.", at=days[0] - 86_400))
    owner.run("ingest")
    assert post(page, "mark", "old", do="label", label="stone").status == 303
    latest = page.view("/sessions?since=all").text
    assert "Only the latest 1,000 conversations are searched" in latest
    assert "Build the oven" not in latest
    typed = page.view("/sessions?since=all&q=oven").text
    assert "None of the latest 1,000 conversations matches." in typed
    labelled = page.view("/sessions?since=all&label=stone").text
    assert names(labelled) == ["Build the oven"]
    assert "1,000 conversations" not in labelled
    assert names(page.view("/sessions?since=7d&label=stone").text) == []
    tab = visitor.visit(page, "/sessions?since=all")
    tab.get_by_role("button", name="Session", exact=True).click()
    expect(tab.locator("[data-opens]").first).to_have_text(TITLES["s1"])
    expect(tab.locator("#listed tr").last).to_contain_text("Only the latest 1,000")
    assert violations(tab) == []


def test_selected_sessions_stay_selected_when_their_rows_change(
    owner: StoreUser, visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/sessions")
    selected = tab.get_by_role("checkbox", name=f"Select {TITLES['s1']}")
    selected.check()
    tab.evaluate("box => box.closest('tr').id = 'before'", selected.element_handle())
    post(page, "mark", "s1", do="label", label="shop")
    expect(tab.locator(".all-sessions .badge", has_text="shop")).to_have_count(1)
    expect(tab.locator("#before")).to_have_count(0)
    expect(selected).to_be_checked()
    expect(tab.get_by_role("checkbox", checked=True)).to_have_count(1)


def test_rows_stay_sorted_while_one_types_in_the_filter(visitor: Visitor, page: ServedPage) -> None:
    tab = visitor.visit(page, "/sessions")
    tab.get_by_role("button", name="Session", exact=True).click()
    shown = tab.locator("[data-opens]")
    expect(shown).to_have_text(sorted(TITLES.values()))
    tab.get_by_role("searchbox", name="Title, project or label").fill("the fl")
    expect(shown).to_have_text(["Order the flour", "Sweep the floor"])


def test_that_nothing_matches_is_said_in_one_line_on_a_phone_too(
    visitor: Visitor, page: ServedPage
) -> None:
    tab = visitor.visit(page, "/sessions?q=nothing-of-this-name")
    said = tab.get_by_text("No session matches.")
    for size, (width, height) in SIZES.items():
        tab.set_viewport_size({"width": width, "height": height})
        size_of_text = tab.evaluate(
            "e => parseFloat(getComputedStyle(e).fontSize)", said.element_handle()
        )
        box = said.bounding_box()
        assert box
        assert box["height"] < 3 * size_of_text, size


def test_a_title_and_a_label_run_nothing(owner: StoreUser, page: ServedPage) -> None:
    owner.session("bad", *exchange("<img src=x onerror=alert(1)>", "No."))
    page.until("bad", "/sessions")
    post(page, "mark", "bad", do="label", label="<script>alert(1)</script>")
    for path in ("/sessions", "/sessions/chosen?session=/bad", "/session/bad"):
        shown = page.view(path).text
        assert "<img src=x" not in shown
        assert "<script>alert" not in shown
        assert "<script>alert" in unescape(shown)
