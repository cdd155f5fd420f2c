"""A session on the page: read as a dialogue, with what its tools did, followed live."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from page_scene import ServedPage
from records import append, assistant, exchange, user, write
from store_scene import StoreUser

EDIT = {"file_path": "/srv/agent/cart.py", "old_string": "cache = True\n", "new_string": "cache = False\n"}


def call(tool: str, id: str, arguments: dict[str, str]) -> dict[str, object]:
    return {"type": "tool_use", "id": id, "name": tool, "input": arguments}


def result(id: str, text: str, *, is_error: bool = False) -> dict[str, object]:
    block = {"tool_use_id": id, "type": "tool_result", "content": text, "is_error": is_error}
    return dict(user([block]))


@pytest.fixture(scope="module")
def user_with_sessions(tmp_path_factory: pytest.TempPathFactory) -> StoreUser:
    user_of_page = StoreUser(Path(tmp_path_factory.mktemp("user")))
    user_of_page.session(
        "s1",
        *exchange("Why is the cart **empty**?", "The `cache` was stale:\n\n```python\nreturn 1\n```"),
        assistant(call("Edit", "call-1", EDIT)),
        result("call-1", "The file was updated."),
        assistant(call("Bash", "call-2", {"command": "pytest -q"})),
        result("call-2", "E  assert 1 == 2\n1 failed", is_error=True),
        *exchange("Empty the other cart too", "It works."),
    )
    return user_of_page


@pytest.fixture(scope="module")
def page(user_with_sessions: StoreUser) -> Iterator[ServedPage]:
    with ServedPage(user_with_sessions) as page:
        page.until("cart", "/list")
        yield page


def test_the_dialogue_has_what_was_said_with_markdown_and_code(page: ServedPage) -> None:
    text = page.view("/session/s1").text
    assert "Why is the cart **empty**?" in text
    assert "<code>cache</code> was stale" in text
    assert '<span class="k">return</span>' in text
    assert "claude --resume s1" in unescape(text)


def test_who_says_something_after_a_tool_was_called_is_named(tmp_path: Path) -> None:
    asker = StoreUser(tmp_path)
    said = [user("run the tests"), assistant(call("Bash", "c1", {"command": "pytest"})), user("and then the linter")]
    asker.session(
        "s1", *said, assistant("Both pass."), assistant(call("Bash", "c2", {"command": "ls"})), assistant("Bye.")
    )
    with ServedPage(asker) as page:
        text = page.until("Bye.", "/session/s1").text
        assert re.findall(r"<header><b>(\w+)</b>", text) == ["You", "You", "Agent"]


def test_what_a_file_is_called_in_is_no_link_and_leads_nowhere(tmp_path: Path) -> None:
    reader = StoreUser(tmp_path)
    said = "See [cart.py](/srv/agent/cart%201.py), [docs](https://x.example/a), [that](javascript:alert(1)) and ![it](a.png)."
    reader.session("s1", *exchange("Where is it?", said))
    with ServedPage(reader) as page:
        prose = page.until("x.example", "/session/s1").text.partition('class="prose">')[2].partition("</div>")[0]
        assert '<span class="aim" title="/srv/agent/cart 1.py">cart.py</span>' in prose
        assert re.findall(r'href="([^"]*)"', prose) == ["https://x.example/a"]
        assert re.sub("<[^>]+>", "", prose).strip() == "See cart.py, docs, that and [it]."


def detail(page: ServedPage, tool: str) -> str:
    """What is loaded when the call of a tool is opened."""
    text = page.view("/session/s1").text
    found = re.search(rf"<b>{tool}</b>.*?data-load=\"([^\"]+)\"", text, re.DOTALL)
    assert found
    answer = page.ask(unescape(found[1]))
    assert answer.status == 200
    return unescape(re.sub("<[^>]+>", "", answer.text))


def test_an_edit_is_shown_as_a_diff(page: ServedPage) -> None:
    text = detail(page, "Edit")
    assert "- cache = True" in text
    assert "+ cache = False" in text
    assert "The file was updated." in text


def test_a_command_is_shown_with_its_result_and_its_error_at_once(page: ServedPage) -> None:
    assert "assert 1 == 2" in page.view("/session/s1").text
    assert "1 failed" in detail(page, "Bash")


def test_the_outline_has_the_requests_and_the_files_that_were_changed(page: ServedPage) -> None:
    text = page.view("/session/s1/outline").text
    assert "Why is the cart" in text
    assert "Empty the other cart too" in text
    assert "cart.py" in text


def test_a_session_that_is_not_there_is_said(page: ServedPage) -> None:
    for path in ("/session/nobody", "/session/s", "/session/s1/call?of=99&item=1", "/session/s1/items?of=0"):
        answer = page.view(path)
        assert answer.status == 404, path
        assert "Not here" in answer.text


def test_only_the_part_that_is_read_is_loaded_and_an_entry_has_a_link(tmp_path: Path) -> None:
    user_of_page = StoreUser(tmp_path)
    user_of_page.session("long", *[one for n in range(300) for one in exchange(f"question {n:03}", f"answer {n:03}")])
    with ServedPage(user_of_page) as page:
        page.until("question", "/list")
        first = page.view("/session/long?at=1").text
        assert "answer 000" in first
        assert "answer 299" not in first
        assert "answer 289" in page.view("/session/long?at=580").text
        assert "answer 299" in page.view("/session/long").text, "one that is at work is shown from its end"
        addresses = re.findall(r'data-load="([^"]+/items[^"]+)"', first)
        texts = [page.ask(unescape(address)).text for address in addresses]
        assert sum(text.count("answer ") for text in [first, *texts]) >= 300
        outline = page.view("/session/long/outline").text
        assert "question 299" in outline
        assert "question 199" not in outline, "what came first is asked for"
        [earlier] = re.findall(r'data-load="([^"]+)"', outline)
        assert page.ask(unescape(earlier)).text.count("question ") == 200


def test_what_is_excluded_is_not_there(tmp_path: Path) -> None:
    user_of_page = StoreUser(tmp_path)
    user_of_page.session("open", *exchange("Why is the cart empty?", "The cache."))
    user_of_page.session("inbox", *exchange("A letter from mira", "Answered."))
    with ServedPage(user_of_page) as page:
        page.until("letter", "/list")
        user_of_page.config("sessions: {inbox: {ignore: true}}\n")
        for path in ("/list", "/palette?q=inbox"):
            assert "letter" not in page.view(path).text, path
        assert page.view("/session/inbox").status == 404
        assert page.view("/session/open").status == 200


def test_what_is_written_now_is_in_the_last_part(tmp_path: Path) -> None:
    user_of_page = StoreUser(tmp_path)
    path = write(user_of_page.projects / "-srv-agent" / "s1.jsonl", *exchange("What is new?", "Nothing."))
    with ServedPage(user_of_page) as page:
        shown = page.until("Nothing.", "/session/s1").text
        live = re.search(r'data-live="([^"]+/items[^"]+)"', shown)
        assert live
        append(path, user("And now?"), assistant("This is."))
        page.until("This is.", unescape(live[1]).removeprefix(page.root))
