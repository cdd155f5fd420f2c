"""`session-memory costs` counts the rarer fields of usage, and no copy twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from records import assistant, lines, stamp, user
from store_scene import MONDAY, StoreUser


@pytest.fixture
def machine(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path)


def answer(usage: dict[str, Any], *, id: str = "m1", **fields: Any) -> dict[str, Any]:
    record = assistant(
        "Done.", at=MONDAY, message={"model": "claude-sonnet-4-5", "usage": usage}, **fields
    )
    record["message"]["id"] = id
    return record


def total(machine: StoreUser) -> dict[str, Any]:
    return machine.result("costs")["total"]


def test_the_tokens_of_an_advisor_count_for_its_model(machine):
    parts = [
        {"type": "message", "input_tokens": 100, "output_tokens": 20},
        {
            "type": "advisor_message",
            "model": "claude-opus-5",
            "input_tokens": 1_000_000,
            "output_tokens": 7,
        },
        {"type": "message", "input_tokens": 0, "output_tokens": 30},
    ]
    usage = {"input_tokens": 100, "output_tokens": 50, "iterations": parts}
    # each record repeats it
    machine.session("a", user("Bake", at=MONDAY), answer(usage), answer(usage))
    rows = machine.result("costs", "--by", "model")["rows"]
    counts = {row["model"]: (row["input_tokens"], row["output_tokens"]) for row in rows}
    assert counts == {"claude-opus-5": (1_000_000, 7), "claude-sonnet-4-5": (100, 50)}


def test_records_of_an_answer_without_a_message_id_count_once_by_their_request(machine):
    records = [
        answer({"input_tokens": 1000, "output_tokens": at}, id="", requestId="req_1")
        for at in (3, 3, 500)
    ]
    machine.session("a", user("Bake", at=MONDAY), *records)
    assert (total(machine)["input_tokens"], total(machine)["output_tokens"]) == (1000, 500)


def test_searches_on_the_web_have_their_price(machine):
    usage = {"input_tokens": 0, "output_tokens": 0, "server_tool_use": {"web_search_requests": 100}}
    machine.session("a", user("Bake", at=MONDAY), answer(usage))
    assert total(machine)["dollars"] == 1.0


def rollout(machine: StoreUser, number: int, records: list[dict[str, Any]], at: float) -> None:
    when = stamp(at)[:19].replace(":", "-")
    folder = machine.home / ".codex/sessions/2026/09/21"
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    (folder / f"rollout-{when}-{uid(number)}.jsonl").write_text(text)


def uid(number: int) -> str:
    return f"019f9000-0000-7000-8000-{number:012x}"


def codex(kind: str, at: float, **payload: Any) -> dict[str, Any]:
    return {"timestamp": stamp(at), "type": kind, "payload": payload}


def header(number: int, at: float, **fields: Any) -> dict[str, Any]:
    return codex(
        "session_meta",
        at,
        id=uid(number),
        timestamp=stamp(at),
        cwd="/srv/agent",
        **{"source": "cli", **fields},
    )


def turn(name: str, at: float) -> list[dict[str, Any]]:
    said = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": f"bake {name}"}],
    }
    return [
        codex("turn_context", at, turn_id=name, cwd="/srv/agent", model="gpt-5-codex"),
        codex("response_item", at, **said),
    ]


def count(at: float, read: int, total: int) -> dict[str, Any]:
    last = {
        "input_tokens": read,
        "cached_input_tokens": 0,
        "output_tokens": 10,
        "total_tokens": read + 10,
    }
    return codex(
        "event_msg",
        at,
        type="token_count",
        info={"total_token_usage": {"total_tokens": total}, "last_token_usage": last},
    )


HEADS = {
    "sub-agent that names its parent in its source alone": (
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": uid(1)}}}},
        0.01,
    ),
    "sub-agent whose copy took seconds": (
        {"forked_from_id": uid(1), "parent_thread_id": uid(1), "thread_source": "subagent"},
        0.5,
    ),
    "fork of the user whose copy took seconds": ({"forked_from_id": uid(1)}, 0.5),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_copy_of_another_rollout_counts_once_whenever_it_was_written(machine, case):
    head, gap = HEADS[case]
    parent = [header(1, MONDAY), *turn("t1", MONDAY)]
    parent += [count(MONDAY + at, 1000, 1010 * (at + 1)) for at in range(5)]
    later = MONDAY + 600
    copied = [{**record, "timestamp": stamp(later + gap * at)} for at, record in enumerate(parent)]
    rollout(machine, 1, parent, MONDAY)
    new = [*turn("t9", later + 60), count(later + 61, 300, 5360)]
    rollout(machine, 2, [header(2, later, **head), *copied, *new], later)
    assert (total(machine)["input_tokens"], total(machine)["output_tokens"]) == (5300, 60)


def test_an_old_rollout_that_has_sums_alone_counts_their_differences(machine):
    def summed(at: float, read: int, written: int) -> dict[str, Any]:
        sums = {
            "input_tokens": read,
            "cached_input_tokens": 0,
            "output_tokens": written,
            "total_tokens": read + written,
        }
        return codex("event_msg", at, type="token_count", info={"total_token_usage": sums})

    records = [
        header(1, MONDAY),
        *turn("t1", MONDAY),
        summed(MONDAY + 1, 100, 10),
        summed(MONDAY + 2, 100, 10),
    ]
    rollout(machine, 1, [*records, summed(MONDAY + 3, 400, 30), summed(MONDAY + 4, 50, 5)], MONDAY)
    assert (total(machine)["input_tokens"], total(machine)["output_tokens"]) == (450, 35)


def uses(machine: StoreUser) -> dict[str, tuple[int, float]]:
    """The tokens written and the dollars of each use."""
    rows = machine.result("costs", "--by", "use")["rows"]
    return {row["use"]: (row["output_tokens"], row["dollars"]) for row in rows}


def test_sub_agents_workflows_the_advisor_and_searches_have_a_row_each(machine):
    million = {"input_tokens": 0, "output_tokens": 1_000_000}
    advice = {"type": "advisor_message", "model": "claude-opus-5", "output_tokens": 1_000_000}
    searches = {"server_tool_use": {"web_search_requests": 12}}
    asked = answer({**million, **searches, "iterations": [advice]})
    path = machine.session("a", user("Bake", at=MONDAY), asked)
    for folder, id in (("subagents", "m2"), ("subagents/workflows/w1", "m3")):
        agent = path.with_suffix("") / folder / f"agent-{id}.jsonl"
        agent.parent.mkdir(parents=True, exist_ok=True)
        agent.write_bytes(lines(user("Look", at=MONDAY), answer(million, id=id)))
    expected = {
        "advisor": (1_000_000, 25.0),
        "main agent": (1_000_000, 15.0),
        "sub-agents": (1_000_000, 15.0),
        "agents of workflows": (1_000_000, 15.0),
        "web searches": (0, 0.12),
    }
    assert uses(machine) == expected
    assert uses(machine) == expected, "as they were counted the first time"
    assert total(machine)["dollars"] == 70.12
    for words in ((), ("--by", "use")):
        assert "12 web searches " in machine.run("costs", *words).stdout
    shown = machine.run("costs").stdout.splitlines()
    names = [line.rpartition("  1,000,000")[0].split("  ")[:2] for line in shown]
    assert ["", "sub-agents"] in names
    [searched] = [line for line in shown if "12 web searches" in line]
    assert searched.split()[-1] == "0.12"
    by_model = machine.result("costs", "--by", "model")["rows"]
    assert {row["model"]: row["dollars"] for row in by_model}["claude-sonnet-4-5"] == 45.12


def test_a_session_alone_has_no_row_of_its_use(machine):
    machine.session("a", user("Bake", at=MONDAY), answer({"input_tokens": 5, "output_tokens": 5}))
    assert "main agent" not in machine.run("costs").stdout
