"""Patterns and costs on the page: the numbers of the commands."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from page_scene import ServedPage
from records import append, assistant, exchange, user
from store_scene import MONDAY, StoreUser, trip

from session_memory.web.page_request import PageRequest, VisitorGoneError


def answer(id: str, at: float, model: str = "claude-opus-5", cost: int = 1_000_000) -> dict[str, Any]:
    usage = {"input_tokens": cost, "output_tokens": 0}
    return assistant("Done.", at=at, message_id=id, message={"model": model, "usage": usage})


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    machine = StoreUser(tmp_path)
    machine.session("trip", *trip())
    machine.session(
        "a", user("Bake <b>bread</b>", at=MONDAY), answer("m1", MONDAY), answer("m2", MONDAY + 86400, "rye-1", 7)
    )
    machine.run("ingest")
    return machine


def test_the_numbers_are_those_of_the_command_patterns(machine: StoreUser) -> None:
    told = machine.result("patterns")
    [failing] = told["commands"]
    with ServedPage(machine) as page:
        assert page.view("/patterns").status == 200
        text = page.view("/patterns/counted?since=all").text
        assert f"<b>{told['conversations']}</b><span>conversations" in text
        assert f"<b>{told['tool_uses']}</b><span>tool uses" in text
        assert f'<code class="cut">{failing["command"]}</code>' in text
        assert f"{failing['failures']} of {failing['runs']}" in text
        hours = re.findall(r"<title>(\d+):00: (\d+)</title>", text)
        assert [int(number) for _, number in hours] == told["hours"]
        assert "No tool was used in this time" in page.view("/patterns/counted?since=all&project=none").text


def test_the_numbers_are_those_of_the_command_costs(machine: StoreUser) -> None:
    days = {row["day"]: row["dollars"] or 0 for row in machine.result("costs", "--by", "day")["rows"]}
    with ServedPage(machine) as page:
        assert page.view("/costs").status == 200
        text = page.view("/costs/counted?since=all").text
        for day, dollars in days.items():
            assert f"<title>{day}: {dollars:g}</title>" in text
        assert "<b>$5.00</b>" in text
        assert '<span title="1,000,007">1.0M</span>' in text
        assert "at most $5.00" in text
        assert "No price is known of rye-1" in text
        assert "Bake &lt;b&gt;bread&lt;/b&gt;" in text
        assert f'href="{page.root}/session/a"' in text


def test_what_an_answer_costs_that_comes_later_is_added(machine: StoreUser) -> None:
    with ServedPage(machine) as page:
        assert "<b>$5.00</b>" in page.view("/costs/counted?since=all").text
        append(machine.projects / "-srv-agent" / "a.jsonl", answer("m3", MONDAY + 60))
        assert "<b>$10.00</b>" in page.view("/costs/counted?since=all").text


def test_the_costs_of_what_is_excluded_are_not_told(machine: StoreUser) -> None:
    machine.config("sessions: {a: {ignore: true}}")
    with ServedPage(machine) as page:
        assert "No transcript says what anything cost" in page.view("/costs/counted?since=all").text


def test_only_the_project_that_is_chosen_counts(machine: StoreUser) -> None:
    machine.session(
        "b", *exchange("Bake", "Baked", at=MONDAY, cwd="/srv/rolls"), answer("m9", MONDAY), project="-srv-rolls"
    )
    machine.run("ingest")
    with ServedPage(machine) as page:
        assert "<b>$10.00</b>" in page.view("/costs/counted?since=all").text
        assert "<b>$5.00</b>" in page.view("/costs/counted?since=all&project=agent").text


def test_counting_ends_where_nobody_waits_for_it_any_more() -> None:
    answers = iter([False, False, True])
    request = PageRequest(*[None] * len(PageRequest._fields))._replace(is_gone=lambda: next(answers))  # type: ignore[arg-type]
    counted = request.while_wanted(itertools.count())
    assert [next(counted), next(counted)] == [0, 1]
    with pytest.raises(VisitorGoneError):
        next(counted)
