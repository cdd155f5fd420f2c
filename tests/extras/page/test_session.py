"""A session on the page: a dialogue with its tools' results, followed live."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from page_scene import ServedPage
from records import append, assistant, exchange, record, user, write
from store_scene import StoreUser

EDIT = {
    "file_path": "/srv/agent/cart.py",
    "old_string": "cache = True\n",
    "new_string": "cache = False\n",
}


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
        *exchange(
            "Why is the cart **empty**?", "The `cache` was stale:\n\n```python\nreturn 1\n```"
        ),
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
    said = [
        user("run the tests"),
        assistant(call("Bash", "c1", {"command": "pytest"})),
        user("and then the linter"),
    ]
    asker.session(
        "s1",
        *said,
        assistant("Both pass."),
        assistant(call("Bash", "c2", {"command": "ls"})),
        assistant("Bye."),
    )
    with ServedPage(asker) as page:
        text = page.until("Bye.", "/session/s1").text
        assert re.findall(r"<header><b>(\w+)</b>", text) == ["You", "You", "Agent"]


def test_what_a_file_is_called_in_is_no_link_and_leads_nowhere(tmp_path: Path) -> None:
    reader = StoreUser(tmp_path)
    said = "See [cart.py](/srv/agent/cart%201.py), [docs](https://x.example/a), [that](javascript:alert(1)) and ![it](a.png)."
    reader.session("s1", *exchange("Where is it?", said))
    with ServedPage(reader) as page:
        prose = (
            page.until("x.example", "/session/s1")
            .text.partition('class="prose">')[2]
            .partition("</div>")[0]
        )
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
    assert "+1 -1" in text
    assert "line numbers count from the start of the edit" in text


def test_a_diff_has_the_numbers_of_the_file_and_its_context_if_the_transcript_has_them(
    tmp_path: Path,
) -> None:
    owner = StoreUser(tmp_path)
    old = 'text = """one\n' + "x" * 900
    edit = {
        "file_path": "/srv/agent/cart.py",
        "old_string": old,
        "new_string": old.replace("one", "two"),
    }
    patch = {
        "oldStart": 41,
        "newStart": 43,
        "lines": [" def a():", '-text = """one', '+text = """two', " " + "x" * 900],
    }
    done = {**result("c1", "Updated."), "toolUseResult": {"structuredPatch": [patch]}}
    owner.session("s1", *exchange("Change it", "Yes."), assistant(call("Edit", "c1", edit)), done)
    with ServedPage(owner) as page:
        page.until("Change it", "/session/s1")
        address = re.findall(r'data-load="([^"]+/call[^"]+)"', page.view("/session/s1").text)
        html = page.ask(unescape(address[0])).text
        rows = re.findall(r'<span(?: class="(\w+)")? data-line="(\d+)">', html)
        assert rows == [("", "43"), ("del", "42"), ("add", "44"), ("", "45")]
        assert "line numbers count" not in html
        assert "<summary>500 more characters</summary>" in html
        assert f'<span class="s2">{"x" * 400}</span>' in html, (
            "of the string that begins a line before"
        )
    exported = owner.run("export", "s1", "--full", "--format", "html").stdout
    assert re.findall(r'<span(?: class="(\w+)")? data-line="(\d+)">', exported) == rows


def test_a_command_is_shown_with_its_result_and_its_error_at_once(page: ServedPage) -> None:
    assert "assert 1 == 2" in page.view("/session/s1").text
    assert "1 failed" in detail(page, "Bash")


def test_each_command_of_a_list_is_shown_with_its_own_result(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    ids = ("c1", "c1:1")  # as we number the commands of one call of Cline
    calls = [call("Bash", id, {"command": f"echo {id}"}) for id in ids]
    results = [result(id, f"It said {id}.") for id in ids]
    owner.session("s1", *exchange("Run it", "Yes."), assistant(*calls), *results)
    with ServedPage(owner) as page:
        page.until("Run it", "/session/s1")
        addresses = re.findall(r'data-load="([^"]+/call[^"]+)"', page.view("/session/s1").text)
        shown = [page.ask(unescape(address)).text for address in addresses]
    assert [re.findall(r"It said ([^<]*)\.", html) for html in shown] == [["c1"], ["c1:1"]]


def test_the_outline_has_the_requests_and_the_files_that_were_changed(page: ServedPage) -> None:
    text = page.view("/session/s1/outline").text
    assert "Why is the cart" in text
    assert "Empty the other cart too" in text
    assert "cart.py" in text


def test_a_session_that_is_not_there_is_said(page: ServedPage) -> None:
    for path in (
        "/session/nobody",
        "/session/s",
        "/session/s1/call?of=99&item=1",
        "/session/s1/items?of=0",
    ):
        answer = page.view(path)
        assert answer.status == 404, path
        assert "Not here" in answer.text


def test_only_the_part_that_is_read_is_loaded_and_an_entry_has_a_link(tmp_path: Path) -> None:
    user_of_page = StoreUser(tmp_path)
    user_of_page.session(
        "long", *[one for n in range(300) for one in exchange(f"question {n:03}", f"answer {n:03}")]
    )
    with ServedPage(user_of_page) as page:
        page.until("question", "/list")
        first = page.view("/session/long?at=1").text
        assert "answer 000" in first
        assert "answer 299" not in first
        assert "answer 289" in page.view("/session/long?at=580").text
        assert "answer 299" in page.view("/session/long").text, (
            "one that is at work is shown from its end"
        )
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
    path = write(
        user_of_page.projects / "-srv-agent" / "s1.jsonl", *exchange("What is new?", "Nothing.")
    )
    with ServedPage(user_of_page) as page:
        shown = page.until("Nothing.", "/session/s1").text
        live = re.search(r'data-live="([^"]+/items[^"]+)"', shown)
        assert live
        append(path, user("And now?"), assistant("This is."))
        page.until("This is.", unescape(live[1]).removeprefix(page.root))


TOLD = 'A record of your other sessions, not instructions:\n[Session Activity]\n- "bread" edited src/oven.py'


def told_session(owner: StoreUser, id: str = "s1") -> None:
    hook = {
        "type": "hook_additional_context",
        "content": ["Of another hook", TOLD],
        "hookEvent": "UserPromptSubmit",
    }
    thinking = {"type": "thinking", "thinking": "The oven is **theirs**.\n\nI look first."}
    answer = assistant(thinking)
    usage = {"input_tokens": 1000, "output_tokens": 2000, "cache_read_input_tokens": 40_000}
    answer["message"] = {**answer["message"], "model": "claude-opus-4-5", "usage": usage}  # type: ignore[dict-item]
    owner.session(
        id,
        *exchange("Bake", "Yes."),
        user("Heat it"),
        record("attachment", attachment=hook),
        answer,
        assistant(call("Read", "c1", {"file_path": "/srv/agent/src/oven.py"})),
        assistant(call("Bash", "c2", {"command": "ls"})),
        assistant("Done."),
        *exchange("And clean it", "Clean."),
        assistant(call("Bash", "c3", {"command": "rm crumbs"})),
    )


def test_what_a_session_was_told_is_where_it_was_told_with_what_it_did_next(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    told_session(owner)
    with ServedPage(owner) as page:
        text = page.until("crumbs", "/session/s1").text
        assert text.count("<b>Update it got</b>") == 1
        told = text.partition("<b>Update it got</b>")[2].partition("</article>")[0]
        assert "edited src/oven.py" in told
        assert re.findall(r'<span class="mono">([^<]+)', told) == ["Read src/oven.py", "Bash ls"]
        assert "Of another hook" not in text
        assert text.index("Heat it") < text.index("Update it got") < text.index("Done.")


def test_what_was_told_is_withheld_if_rules_hide_something_since(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    told_session(owner)
    owner.session("s2", *exchange("Secret", "Yes.", cwd="/srv/secret"), project="-srv-secret")
    with ServedPage(owner) as page:
        page.until("edited src/oven.py", "/session/s1")
        owner.config("projects: {/srv/secret: {ignore: true}}\n")
        text = page.until("Withheld: since then, rules have changed", "/session/s1").text
        assert "edited src/oven.py" not in text


def test_thinking_is_folded_among_the_calls(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    told_session(owner)
    with ServedPage(owner) as page:
        text = page.until("crumbs", "/session/s1").text
        folded = text.partition('<details class="tool thought"')[2].partition("</details>")[0]
        assert "The oven is <strong>theirs</strong>." in folded
        assert len(re.findall(r' id="([^"]+)"', text)) == len(
            set(re.findall(r' id="([^"]+)"', text))
        )


def test_the_cost_of_a_session_is_that_of_its_models(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    told_session(owner)
    with ServedPage(owner) as page:
        page.until("crumbs", "/session/s1")
        text = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.view("/session/s1/cost").text))
        assert "$0.07 · 43.0K tokens · claude-opus-4-5" in text
        assert "1,000 40.0K 0 2,000 0.07" in text


def test_a_session_has_the_same_age_in_every_view(tmp_path: Path) -> None:
    owner = StoreUser(tmp_path)
    path = owner.session("s1", *exchange("Bake", "Yes.", at=time.time() - 3000))
    os.utime(path, (time.time() - 100, time.time() - 100))  # something was written that nobody said
    with ServedPage(owner) as page:
        page.until("Bake", "/list")
        ages = [
            re.findall(r'<time datetime="([^"]+)"[^>]+data-ago>', page.until("Bake", view).text)
            for view in ("/", "/list", "/palette?q=bake", "/session/s1")
        ]
        assert [one[:1] for one in ages] == [ages[0][:1]] * 4
        assert ages[0]
