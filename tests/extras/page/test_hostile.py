"""Text from sessions is never markup on the page, and never breaks it, whatever it contains."""

from __future__ import annotations

import random
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from page_scene import ServedPage, hostile
from records import assistant, exchange, record, user
from share import some
from store_scene import StoreUser

from session_memory.extras.page.jinja import _code, _markdown

STRINGS = some(10_000, 3_000)
URLS = {
    "href",
    "src",
    "action",
    "data-load",
    "data-live",
    "data-live-later",
    "data-from",
    "formaction",
    "content",
}
WEB = ("http://", "https://", "mailto:")


class Markup(HTMLParser):
    """Reads HTML and says in `faults` what should not be there."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("iframe", "object", "embed", "base", "style", "img", "textarea"):
            self.faults.append(tag)
        for name, value in attrs:
            is_odd = name == "autofocus" and tag != "input"
            if name.startswith("on") or name in ("style", "srcdoc") or is_odd:
                self.faults.append(f"{tag} {name}={value}")
            text = value or ""
            is_link_away = tag == "a" and name == "href" and text.lower().startswith(WEB)
            is_own = text.startswith((f"{self.root}/", "#", "data:,")) or tag == "meta" or not text
            if name in URLS and not (is_link_away or is_own):
                self.faults.append(f"{tag} {name}={value}")


def faults(html: str, root: str = "/root") -> list[str]:
    reader = Markup(root)
    reader.feed(html)
    reader.close()
    return reader.faults


def test_ten_thousand_hostile_texts_are_no_more_than_text_as_markdown_and_as_code() -> None:
    source = random.Random(17)
    for _ in range(STRINGS):
        text = hostile(source)
        html = str(_markdown(text))
        assert faults(html) == [], text
        assert "<script" not in html.lower(), text
        lines = str(_code(text, "html"))
        assert re.sub(r'</?span(?: class="[\w ]*")?>', "", lines).count("<") == 0, text


def test_the_judge_sees_what_is_hostile() -> None:
    for text in (
        "<p onclick='x'>",
        "<iframe>",
        "<a href='javascript:x'>",
        "<img src=x>",
        "<a href='//x.example'>",
    ):
        assert faults(text), text


def test_hostile_names_files_texts_and_arguments_break_no_view(tmp_path: Path) -> None:
    source = random.Random(18)
    person = StoreUser(tmp_path)
    for number in range(8):
        records = [record("custom-title", customTitle=hostile(source), sessionId=f"s{number}")]
        for _ in range(12):
            path = f"/srv/{hostile(source)}"
            arguments = {
                "file_path": path,
                "old_string": hostile(source),
                "new_string": hostile(source),
            }
            records += exchange(f"please look at {hostile(source)}", hostile(source))
            records.append(
                assistant({"type": "tool_use", "id": "t1", "name": "Edit", "input": arguments})
            )
            records.append(assistant((hostile(source), {"command": hostile(source)})))
            results = [
                {
                    "tool_use_id": "t1",
                    "type": "tool_result",
                    "content": hostile(source),
                    "is_error": True,
                }
            ]
            records.append(user(results))
        person.session(f"s{number}", *records, project=f"-srv-{number}")
    with ServedPage(person) as page:
        page.until("/session/s7", "/list")
        seen: set[str] = set()
        waiting = [f"{page.root}/session/s{number}" for number in range(8)]
        waiting += [
            f"{page.root}{path}"
            for path in ("/", "/list", "/palette?q=a", "/search?q=look", "/timeline")
        ]
        while waiting and len(seen) < 120:
            address = waiting.pop(0)
            if address in seen:
                continue
            seen.add(address)
            answer = page.ask(address)
            assert answer.status == 200, address
            assert "This view failed" not in answer.text, address
            assert faults(answer.text, page.root) == [], address
            assert set(re.findall(r"<script[^>]*>", answer.text)) <= {
                f'<script src="{page.root}/static/theme.js">',
                f'<script src="{page.root}/static/page.js" defer>',
                f'<script src="{page.root}/static/session.js" defer>',
            }
            loads = re.findall(r'data-load="([^"]+)"', answer.text)
            waiting += [unescape(one) for one in source.sample(loads, min(8, len(loads)))]
        assert len(seen) > 50
