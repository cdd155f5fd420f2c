"""Patterns and costs on the page: the numbers of the commands."""

from __future__ import annotations

import itertools
import json
import re
import time
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from page_scene import ServedPage
from records import append, assistant, exchange, user
from store_scene import MONDAY, StoreUser, trip

from session_memory.extras.page._page_request import PageRequest, VisitorGoneError


def answer(
    id: str, at: float, model: str = "claude-opus-5", cost: int = 1_000_000
) -> dict[str, Any]:
    usage = {"input_tokens": cost, "output_tokens": 0}
    return assistant("Done.", at=at, message_id=id, message={"model": model, "usage": usage})


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    machine = StoreUser(tmp_path)
    machine.session("trip", *trip())
    machine.session(
        "a",
        user("Bake <b>bread</b>", at=MONDAY),
        answer("m1", MONDAY),
        answer("m2", MONDAY + 86400, "rye-1", 7),
    )
    machine.run("ingest")
    return machine


def test_the_numbers_are_those_of_the_command_patterns(machine: StoreUser) -> None:
    told = machine.result("patterns")
    [failing] = told["commands"]
    with ServedPage(machine) as page:
        assert page.view("/patterns").status == 200
        text = page.view("/patterns/counted?since=all").text
        assert f"{told['tool_uses']} tool use in {told['conversations']} conversations" in text
        assert f'/session/{failing["session"]}?at={failing["number"]}"' in text
        assert page.view(f"/session/{failing['session']}?at={failing['number']}").status == 200
        assert f'<code class="cut">{failing["command"]}</code>' in text
        assert f"{failing['failures']} of {failing['runs']}" in text
        assert (
            "No tool was used in this period"
            in page.view("/patterns/counted?since=all&project=none").text
        )


def test_instructions_are_shown_before_any_tool_was_used(tmp_path: Path) -> None:
    machine = StoreUser(tmp_path)
    rule = "Never edit the generated files."
    for number in range(3):
        machine.session(f"s{number}", user(f"Explain part {number}. {rule}", at=MONDAY + number))
    machine.run("ingest")
    with ServedPage(machine) as page:
        assert rule in page.view("/patterns/counted?since=all").text


def test_tools_are_counted_in_their_order_with_how_often_the_last_one_succeeds(
    machine: StoreUser,
) -> None:
    numbers = itertools.count()

    def call(tool: str, argument: dict[str, str], *, fails: bool = False) -> list[dict[str, Any]]:
        id = f"toolu_{next(numbers)}x"
        use = {"type": "tool_use", "id": id, "name": tool, "input": argument}
        result = {
            "tool_use_id": id,
            "type": "tool_result",
            "is_error": fails,
            "content": "Exit code 1\nbad" if fails else "ok",
        }
        return [assistant(use, at=MONDAY), user([result], at=MONDAY)]

    records = []
    for turn in range(4):
        records.append(user(f"Change cart {turn}", at=MONDAY))
        records += [
            *call("Read", {"file_path": "/srv/a.py"}),
            *call("Read", {"file_path": "/srv/b.py"}),
        ]
        records += [*call("Bash", {"command": "npm test"}, fails=True)]
        records += call(
            "Edit",
            {"file_path": "/srv/a.py", "old_string": "1", "new_string": "2"},
            fails=turn == 0,
        )
    machine.session("turns", *records)
    machine.run("ingest")
    told = machine.result("patterns")
    assert told["orders"] == [{"tools": ["Read", "Bash ✗", "Edit"], "times": 4, "failures": 1}]
    tools = {tuple(one["tools"]): (one["times"], one["failures"]) for one in told["tools"]}
    assert tools == {("Read",): (8, 0), ("Bash",): (5, 5), ("Edit",): (4, 1)}
    with ServedPage(machine) as page:
        text = page.view("/patterns/counted?since=all").text
    assert (
        '<td>Read → Bash ✗ → Edit</td><td class="number">4</td><td class="number" title="1 failed">75%</td>'
        in text
    )


def test_the_numbers_are_those_of_the_command_costs(machine: StoreUser) -> None:
    days = {row["day"]: row["dollars"] for row in machine.result("costs", "--by", "day")["rows"]}
    with ServedPage(machine) as page:
        assert page.view("/costs").status == 200
        text = page.view("/costs/counted?since=all").text
        for day, dollars in days.items():
            assert (
                f"<title>{day}: ${dollars:g}</title>"
                if dollars
                else f"<title>{day}, price unknown</title>"
            ) in text
        assert (
            '<b>$5.00<span class="muted" title="plus tokens of models without a known price">+</span></b>'
            in text
        )
        assert "<span>$5</span><span>$2.5</span><span>$0</span>" in text
        assert '<span title="1,000,007">1.0M</span>' in text
        assert "the highest bar: $5.00" in text
        assert "The price of rye-1 is unknown" in text
        assert "Bake &lt;b&gt;bread&lt;/b&gt;" in text
        assert f'href="{page.root}/session/a"' in text


def rows_of(text: str, by: str) -> dict[str, tuple[int, int, int, int, str]]:
    """The rows of a table on the page: tokens read, written, from and into a cache, and dollars, by
    the first cell."""
    found = re.search(rf'aria-label="By {by}".*?</section>', text, re.DOTALL)
    rows = re.findall(
        r"<tr><td>(?:<a [^>]*>)?(.*?)(?:</a>)?</td>(.*?)</tr>", found[0] if found else ""
    )
    return {
        name: (
            *[int(one.replace(",", "")) for one in re.findall(r'title="([\d,]+)"', rest)],
            (re.findall(r'class="number">([\d.,]+)(?:<span|</td>)', rest) or ["-"])[0],
        )
        for name, rest in rows
    }


@pytest.mark.parametrize(
    ("split", "names"),
    [
        ("model", ["claude-opus-5", "claude-haiku-4-5"]),
        ("project", ["agent", "rolls"]),
        ("runtime", ["Claude Code"]),
    ],
)
def test_dollars_over_time_are_split_by(machine: StoreUser, split: str, names: list[str]) -> None:
    machine.session(
        "b",
        *exchange("Sell", "Sold", at=MONDAY, cwd="/srv/rolls"),
        answer("m3", MONDAY, "claude-haiku-4-5"),
    )
    machine.run("ingest")
    with ServedPage(machine) as page:
        text = page.view(f"/costs/counted?since=all&by={split}").text
        assert f'value="{split}" selected' in page.view(f"/costs?by={split}").text
    dollars = dict(re.findall(r"<title>2026-09-21, ([^:]*): \$([\d.]+)</title>", text))
    assert list(dollars) == names
    assert sum(map(float, dollars.values())) == 6.0
    legend = re.findall(r'<span class="runtime hue-\d">(.*?)</span>', text)
    assert [re.sub("<.*?>", "", name) for name in legend] == names


@pytest.mark.parametrize("zone", [pytest.param("UTC", marks=pytest.mark.slow), "Europe/Berlin"])
def test_every_sum_on_the_page_is_that_of_the_command(machine: StoreUser, zone: str) -> None:
    now = time.time()
    recent = [answer(f"r{hours}", now - hours * 3600, cost=hours + 1) for hours in range(0, 240, 5)]
    usage = {
        "input_tokens": 3,
        "output_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 11,
    }
    cached = assistant(
        "Done.", at=now - 60, message_id="c", message={"model": "claude-opus-5", "usage": usage}
    )
    machine.session(
        "b", *exchange("Sell", "Sold", at=now - 250 * 3600, cwd="/srv/rolls"), *recent, cached
    )
    machine.run("ingest")
    with ServedPage(machine, TZ=zone) as page:
        for since in ("today", "7d", "30d", "all"):
            text = page.view(f"/costs/counted?since={since}").text
            for by in ("day", "model", "project", "session", "runtime"):
                words = [] if since == "all" else ["--since", since]
                done = machine.run("costs", "--json", "--limit", "99", "--by", by, *words, TZ=zone)
                told = {
                    row[by].rpartition("/")[2]: (
                        row["input_tokens"],
                        row["output_tokens"],
                        row["cache_read_tokens"],
                        row["cache_written_tokens"],
                        "-" if row["dollars"] is None else f"{row['dollars']:,.2f}",
                    )
                    for row in json.loads(done.stdout)["rows"]
                }
                shown = rows_of(text, by)
                if by in ("session", "runtime"):  # which the page names by its title
                    assert sorted(shown.values()) == sorted(told.values()), since
                else:
                    assert shown == told, (since, by)


def chart_of(text: str) -> dict[str, float]:
    found = re.search(r'<svg class="chart bars".*?</svg>', text, re.DOTALL)
    return (
        {
            name: float(value)
            for name, value in re.findall(r"<title>([\d-]+): \$([\d.]+)[^<]*</title>", found[0])
        }
        if found
        else {}
    )


def moment(text: str, zone: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def test_a_day_of_23_or_25_hours_is_one_bar(machine: StoreUser) -> None:
    zone = "Europe/Berlin"
    # the clocks went forward on the 29th
    days = [date(2026, 3, 28) + timedelta(number) for number in range(4)]
    # and back on the 25th of October
    days += [date(2026, 10, 24) + timedelta(number) for number in range(4)]
    for hour in ("00:30", "23:30"):
        for index, day in enumerate(days):
            answers = answer(
                f"{hour}{day}", moment(f"{day}T{hour}", zone), cost=1_000_000 * (index + 1)
            )
            machine.session(
                f"{hour}-{index}".replace(":", ""), user("Bake", at=MONDAY - 10**7), answers
            )
    machine.run("ingest")
    with ServedPage(machine, TZ=zone) as page:
        chart = chart_of(page.view("/costs/counted?since=all").text)
    assert {day: dollars for day, dollars in chart.items() if dollars} == {
        **{day.isoformat(): 10.0 * (index + 1) for index, day in enumerate(days)},
        "2026-09-21": 5.0,
    }
    first = date(2026, 3, 28)
    assert list(chart) == [(first + timedelta(number)).isoformat() for number in range(len(chart))]
    assert list(chart)[-1] == datetime.now(ZoneInfo(zone)).date().isoformat()


@pytest.mark.parametrize(
    ("at", "unit", "first"),
    [
        ("1970-01-01T12:00:00+00:00", "year", "1970"),
        ("2024-02-03T12:00:00+00:00", "month", "2024-02"),
        ("0001-01-02T12:00:00+00:00", "day", "2026-09-21"),
        ("1000-01-02T12:00:00+00:00", "year", ""),
    ],
)
def test_a_record_of_long_ago_makes_no_thousand_bars(
    machine: StoreUser, at: str, unit: str, first: str
) -> None:
    old = answer("old", MONDAY)
    old["timestamp"] = at.replace("+00:00", ".000Z")
    machine.session("old", user("Bake", at=MONDAY), old)
    machine.run("ingest")
    assert json.loads(machine.run("costs", "--json").stdout)["total"]["dollars"] == 10.0
    with ServedPage(machine) as page:
        answered = page.view("/costs/counted?since=all")
    assert answered.status == 200
    chart = chart_of(answered.text)
    assert f'<h2 class="grow">Dollars by {unit}</h2>' in answered.text
    assert len(chart) <= 400
    assert first in ("", next(iter(chart)))
    leads_to = re.findall(r'data-day="(.*?)" data-span="(.*?)"', answered.text)
    assert (("2024-02-29", "month") in leads_to) == (unit == "month")
    assert "<b>$10.00<" in answered.text


def test_what_an_answer_costs_that_comes_later_is_added(machine: StoreUser) -> None:
    with ServedPage(machine) as page:
        assert "<b>$5.00<" in page.view("/costs/counted?since=all").text
        append(machine.projects / "-srv-agent" / "a.jsonl", answer("m3", MONDAY + 60))
        assert "<b>$10.00<" in page.view("/costs/counted?since=all").text


def test_the_costs_of_what_is_excluded_are_not_told(machine: StoreUser) -> None:
    machine.config("sessions: {a: {ignore: true}}")
    with ServedPage(machine) as page:
        assert (
            "No transcript from this period records its token usage"
            in page.view("/costs/counted?since=all").text
        )


def test_only_the_project_that_is_chosen_counts(machine: StoreUser) -> None:
    machine.session(
        "b",
        *exchange("Bake", "Baked", at=MONDAY, cwd="/srv/rolls"),
        answer("m9", MONDAY),
        project="-srv-rolls",
    )
    machine.run("ingest")
    with ServedPage(machine) as page:
        assert "<b>$10.00<" in page.view("/costs/counted?since=all").text
        assert "<b>$5.00<" in page.view("/costs/counted?since=all&project=agent").text


def test_counting_ends_where_nobody_waits_for_it_any_more() -> None:
    answers = iter([False, False, True])
    request = PageRequest(*[None] * len(PageRequest._fields))._replace(
        is_gone=lambda: next(answers)
    )  # type: ignore[arg-type]
    counted = request.while_wanted(itertools.count())
    assert [next(counted), next(counted)] == [0, 1]
    with pytest.raises(VisitorGoneError):
        next(counted)


def test_a_failed_step_leads_to_the_sessions_that_overcame_it(machine: StoreUser) -> None:
    numbers = itertools.count()

    def call(tool: str, argument: dict[str, str], at: float, *, fails: bool = False) -> list[Any]:
        id = f"toolu_{next(numbers)}y"
        use = {"type": "tool_use", "id": id, "name": tool, "input": argument}
        content = "Exit code 1\n2 tests <failed>" if fails else "ok"
        result = {
            "tool_use_id": id,
            "type": "tool_result",
            "is_error": fails,
            "content": content,
        }
        return [assistant(use, at=at), user([result], at=at)]

    test = {"command": "npm test"}
    edit = {"file_path": "/srv/cart.py", "old_string": "1", "new_string": "2"}
    for turn in range(3):
        at = MONDAY + turn * 60
        machine.session(
            f"turn{turn}",
            user(f"Round the total of cart {turn}", at=at),
            *call("Bash", test, at, fails=True),
            *call("Edit", edit, at + 1),
            *call("Bash", test, at + 2),
        )
    machine.session(
        "unsolved",
        user("Read the notes", at=MONDAY),
        *call("Read", {"file_path": "/srv/none"}, MONDAY, fails=True),
    )
    machine.run("ingest")
    with ServedPage(machine) as page:
        text = page.view("/patterns/counted?since=all").text
        [place] = re.findall(r'<a href="#([\w-]+)"><text class="bad"[^>]*>npm test ✗', text)
        _, _, behind = text.partition(f'<ul class="plain small" id="{place}">')
        recoveries = behind.partition("</ul>")[0]
        titles = re.findall(
            r'overcome</span> <a href="([^"]+)"[^>]*>([^<]+)</a> ([^<:]+)', recoveries
        )
        assert [title for _, title, _ in titles] == [
            f"Round the total of cart {turn}" for turn in (2, 1, 0)
        ]
        assert {helped for *_, helped in titles} == {"after editing `cart.py`"}
        assert "2 tests &lt;failed&gt;" in recoveries
        assert page.view("/session/" + titles[0][0].partition("/session/")[2]).status == 200
    assert "npm test ✗ → Edit: 3 times" in text
    assert "Edit → npm test: 3 times" in text
    assert "No session overcame it." in text
