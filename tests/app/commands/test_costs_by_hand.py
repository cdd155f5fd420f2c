"""Costs of every runtime, compared with sums worked out by hand.

Repetitions by a record and copies in a fork count once, and tokens written to a cache have their
own price.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opencode_scene import OpenCodeDatabase
from records import write
from store_scene import MONDAY, StoreUser

from session_memory.common.text.timestamps import iso_time

MILLION = 1_000_000
OPUS, GPT = "claude-opus-4-5", "gpt-5"
OLD, NEW = "01a1fb3f-5096-47f4-9f3a-000000000001", "01a1fb3f-5096-47f4-9f3a-000000000002"


def rows(person: StoreUser, by: str, *words: str) -> dict[str, float | None]:
    return {row[by]: row["dollars"] for row in person.result("costs", "--by", by, *words)["rows"]}


def at(second: float) -> str:
    return iso_time(MONDAY + second)


def claude(
    id: str, text: str, answers: list[tuple[str, dict[str, Any]]], origin: str = ""
) -> list[dict[str, Any]]:
    """Return a session in which each answer takes two records; all but its last answer come from `origin`."""
    found: list[dict[str, Any]] = []
    for number, (message, usage) in enumerate(answers):
        copied = (
            {"forkedFrom": {"sessionId": origin, "messageUuid": f"{message}-0"}} if origin else {}
        )
        own = copied if number < len(answers) - 1 else {}
        base = {
            "parentUuid": None,
            "sessionId": id,
            "cwd": "/srv/site",
            "timestamp": at(number),
            **own,
        }
        found.append(
            {
                **base,
                "type": "user",
                "uuid": f"{id}{number}",
                "message": {"role": "user", "content": text},
            }
        )
        reply = {
            "id": message,
            "model": OPUS,
            "role": "assistant",
            "content": [{"type": "text", "text": "Done."}],
        }
        for part, output in enumerate((0, usage["output_tokens"])):
            told = {**reply, "usage": {**usage, "output_tokens": output}}
            found.append(
                {**base, "type": "assistant", "uuid": f"{message}-{part}", "message": told}
            )
    return found


FIRST = {"input_tokens": MILLION, "output_tokens": 100_000, "cache_read_input_tokens": 2 * MILLION}
SECOND = {
    "input_tokens": 0,
    "output_tokens": 200_000,
    "cache_creation_input_tokens": 3 * MILLION,
    "cache_creation": {
        "ephemeral_5m_input_tokens": 2 * MILLION,
        "ephemeral_1h_input_tokens": MILLION,
    },
}
FORKED = {"input_tokens": 200_000, "output_tokens": 0}


def put_claude(home: Path) -> None:
    folder = home / ".claude" / "projects" / "-srv-site"
    write(folder / f"{OLD}.jsonl", *claude(OLD, "Deploy.", [("m1", FIRST), ("m2", SECOND)]))
    # Its name comes before that of the session that it is a fork of.
    write(
        folder / "00000000-fork.jsonl",
        *claude("00000000-fork", "Again.", [("m1", FIRST), ("m3", FORKED)], OLD),
    )


def put_pi(home: Path) -> None:
    def message(second: int, role: str, **more: Any) -> dict[str, Any]:
        told = {"role": role, "content": [{"type": "text", "text": "Deploy."}], **more}
        line = {
            "type": "message",
            "id": f"e{second}",
            "parentId": f"e{second - 1}" if second else None,
        }
        return {**line, "timestamp": at(second), "message": told}

    def took(**usage: int) -> dict[str, Any]:
        return {"model": OPUS, "stopReason": "stop", "usage": {"cost": {"total": 0}, **usage}}

    own = [
        message(0, "user"),
        message(
            1,
            "assistant",
            **took(input=MILLION, output=100_000, cacheRead=2 * MILLION, cacheWrite=0),
        ),
        message(2, "user"),
        message(
            3, "assistant", **took(input=0, output=200_000, cacheRead=0, cacheWrite=2 * MILLION)
        ),
    ]
    header = {"type": "session", "version": 3, "cwd": "/srv/site"}
    folder = home / ".pi" / "agent" / "sessions" / "--srv-site--"
    write(folder / f"2026-11-20_{OLD}.jsonl", {**header, "id": OLD, "timestamp": at(0)}, *own)
    forked = {**header, "id": NEW, "timestamp": at(3.5), "parentSession": f"/x/{OLD}.jsonl"}
    write(
        folder / f"2026-11-20_{NEW}.jsonl",
        forked,
        *own,
        message(4, "user"),
        message(5, "assistant", **took(input=200_000, output=0, cacheRead=0, cacheWrite=0)),
    )


def put_codex(home: Path) -> None:
    def line(second: float, kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": at(second), "type": kind, "payload": payload}

    def count(second: float, total: int, read: int, cached: int, written: int) -> dict[str, Any]:
        last = {"input_tokens": read, "cached_input_tokens": cached, "output_tokens": written}
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": total}}
        return line(second, "event_msg", type="token_count", info=info)

    def turn(second: float, said: str) -> list[dict[str, Any]]:
        content = [{"type": "input_text", "text": said}]
        return [
            line(second, "turn_context", cwd="/srv/site", model=GPT),
            line(
                second, "response_item", type="message", role="user", id=f"u{said}", content=content
            ),
        ]

    day = home / ".codex" / "sessions" / "2026" / "11" / "20"
    counts = [(3 * MILLION, 3 * MILLION, 2 * MILLION, 100_000), (4 * MILLION, MILLION, 0, 200_000)]
    own = [
        *turn(2, "Deploy."),
        *(count(3, *counts[0]), count(4, *counts[0])),
        *turn(5, "Tag."),
        count(6, *counts[1]),
    ]
    write(
        day / f"rollout-2026-11-20T10-00-00-{OLD}.jsonl",
        line(0, "session_meta", id=OLD, cwd="/srv/site"),
        *own,
    )
    # Of an older version, which wrote at once what it copied, with times of its own.
    head = line(60, "session_meta", id=NEW, cwd="/srv/site", forked_from_id=OLD)
    copied = [*turn(60, "Deploy."), count(60, *counts[0]), *turn(60, "Tag."), count(60, *counts[1])]
    new = [*turn(90, "Again."), count(91, 5 * MILLION, 200_000, 0, 0)]
    write(day / f"rollout-2026-11-20T10-01-00-{NEW}.jsonl", head, *copied, *new)


def put_qwen(home: Path) -> None:
    def line(session: str, second: int, kind: str, **more: Any) -> dict[str, Any]:
        return {
            "uuid": f"{session}{second}",
            "parentUuid": None,
            "sessionId": session,
            "timestamp": at(second),
            "type": kind,
            "cwd": "/srv/site",
            **more,
        }

    def turn(session: str, second: int, origin: str = "", **took: Any) -> list[dict[str, Any]]:
        copied = (
            {"forkedFrom": {"sessionId": origin, "messageUuid": f"{origin}{second}"}}
            if origin
            else {}
        )
        event = {
            "event.name": "qwen-code.api_response",
            "event.timestamp": at(second),
            "response_id": f"r{second}",
            "model": GPT,
            **took,
        }
        said = {"provenance": "real_user", "message": {"parts": [{"text": "Deploy."}]}}
        told = {"subtype": "ui_telemetry", "systemPayload": {"uiEvent": event}}
        return [
            line(session, second, "user", **said, **copied),
            line(session, second, "system", **told, **copied),
        ]

    first = {
        "input_token_count": 3 * MILLION,
        "cached_content_token_count": 2 * MILLION,
        "output_token_count": 50_000,
        "total_token_count": 3_100_000,
    }
    second = {
        "input_token_count": MILLION,
        "output_token_count": 200_000,
        "total_token_count": 1_200_000,
    }
    chats = home / ".qwen" / "projects" / "-srv-site" / "chats"
    write(chats / f"{OLD}.jsonl", *turn(OLD, 0, **first), *turn(OLD, 1, **second))
    again = turn(NEW, 2, input_token_count=200_000, total_token_count=200_000)
    write(chats / f"{NEW}.jsonl", *turn(NEW, 0, OLD, **first), *turn(NEW, 1, OLD, **second), *again)


def put_copilot(home: Path) -> None:
    def event(second: float, kind: str, **data: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "data": data,
            "id": f"e{second}",
            "timestamp": at(second),
            "parentId": None,
        }

    def took(second: float, number: int, **usage: int) -> dict[str, Any]:
        account = {"sourceSessionId": OLD, "sequence": number, "usageId": f"u{number}"}
        return event(
            second, "session.usage_record", usage={"model": OPUS, "accounting": account, **usage}
        )

    own = [
        event(1, "user.message", content="Deploy."),
        took(2, 1, inputTokens=3 * MILLION, cacheReadTokens=2 * MILLION, outputTokens=100_000),
        event(3, "user.message", content="Tag."),
        took(4, 2, inputTokens=2 * MILLION, cacheWriteTokens=2 * MILLION, outputTokens=200_000),
    ]
    folder = home / ".copilot" / "session-state"

    def start(id: str, second: float) -> dict[str, Any]:
        context = {"cwd": "/srv/site"}
        return event(second, "session.start", sessionId=id, startTime=at(second), context=context)

    write(folder / OLD / "events.jsonl", start(OLD, 0), *own)
    # Its folder comes before that of the session that it is a fork of.
    again = [event(11, "user.message", content="Again."), took(12, 3, inputTokens=200_000)]
    write(folder / "00-fork" / "events.jsonl", start("00-fork", 10), *own, *again)


def put_opencode(home: Path) -> None:
    database = OpenCodeDatabase(home / ".local" / "share" / "opencode")

    def turn(id: str, second: float, **tokens: Any) -> None:
        prompt = database.user(id, "Deploy.", at=MONDAY + second)
        took = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}, **tokens}
        said = {"type": "text", "text": "Done.", "time": {"end": 1}}
        database.assistant(id, prompt, said, at=MONDAY + second + 0.5, modelID=OPUS, tokens=took)

    own = database.session("/srv/site", title="own", at=MONDAY)
    turn(
        own,
        1,
        input=MILLION,
        output=50_000,
        reasoning=50_000,
        cache={"read": 2 * MILLION, "write": 0},
    )
    turn(own, 2, output=200_000, cache={"read": 0, "write": 2 * MILLION})
    turn(database.fork(own, "fork", at=MONDAY + 10), 11, input=200_000)


def put_gemini(home: Path) -> None:
    def answer(id: str, second: int, **tokens: int) -> list[dict[str, Any]]:
        base = {"timestamp": at(second)}
        asked = {"id": f"p{id}", **base, "type": "user", "content": [{"text": "Deploy."}]}
        told = {
            "id": id,
            **base,
            "type": "gemini",
            "content": "Done.",
            "model": "gemini-2.5-pro",
            "tokens": tokens,
        }
        calls = [
            {
                "id": f"c{id}",
                "name": "read_file",
                "args": {"file_path": "/srv/a"},
                "status": "success",
            }
        ]
        return [asked, told, {**told, "toolCalls": calls}]  # repeated with its calls

    chats = home / ".gemini" / "tmp" / "site" / "chats"
    header = {"sessionId": OLD, "projectHash": "e3", "startTime": at(0), "kind": "main"}
    first = answer("a1", 1, input=3 * MILLION, cached=2 * MILLION, output=50_000, thoughts=50_000)
    write(
        chats / "session-2026-11-20T10-00-01a1fb3f.jsonl",
        header,
        *first,
        *answer("a2", 2, input=MILLION, cached=0, output=200_000, thoughts=0),
    )


# What each costs, by the prices of the table for a million tokens: Opus 4.5 reads for $5, from a
# cache for $.50, writes for $25 and puts into a cache for $6.25 (5 minutes) or $10 (an hour); GPT-5
# and Gemini 2.5 Pro read for $1.25, from a cache for $.125, and write for $10.
SUMS: dict[str, tuple[Any, dict[str, float]]] = {
    # 1 M read 5 + .1 M written 2.50 + 2 M cached 1; .2 M written 5 + 2 M into it 12.50 + 1 M for an
    # hour 10; .2 M read 1
    "claude": (put_claude, {OLD: 36.0, "00000000-fork": 1.0}),
    # 5 + 2.50 + 1; 5 + 12.50; 1
    "pi": (put_pi, {OLD: 26.0, NEW: 1.0}),
    "copilot": (put_copilot, {OLD: 26.0, "00-fork": 1.0}),
    # 1 M read 1.25 + 2 M cached .25 + .1 M written 1; 1 M read 1.25 + .2 M written 2; .2 M read .25
    "codex": (put_codex, {OLD: 5.75, NEW: 0.25}),
    "qwen": (put_qwen, {OLD: 5.75, NEW: 0.25}),
    "opencode": (put_opencode, {f"ses_{1:026}": 26.0, f"ses_{10:026}": 1.0}),
    "gemini": (put_gemini, {OLD: 5.75}),
}


@pytest.fixture
def person(tmp_path: Path) -> StoreUser:
    return StoreUser(tmp_path)


@pytest.mark.parametrize("runtime", SUMS)
def test_the_costs_are_those_of_a_count_by_hand_also_of_a_session_by_itself(
    person: StoreUser, runtime: str
) -> None:
    """A fork that is asked for alone is not charged for what it copied (issue 28, E2)."""
    put, expected = SUMS[runtime]
    put(person.home)
    assert rows(person, "session") == pytest.approx(expected)
    assert sum(one or 0 for one in rows(person, "model").values()) == pytest.approx(
        sum(expected.values())
    )
    for id, dollars in expected.items():
        assert rows(person, "session", "--session", id)[id] == pytest.approx(dollars)


def test_a_fork_whose_origin_is_gone_costs_what_it_copied(person: StoreUser) -> None:
    put_claude(person.home)
    (person.home / ".claude" / "projects" / "-srv-site" / f"{OLD}.jsonl").unlink()
    assert rows(person, "session")["00000000-fork"] == pytest.approx(9.5)


def test_a_model_that_is_not_known_is_named_and_costs_nothing(person: StoreUser) -> None:
    put_codex(person.home)
    for path in (person.home / ".codex").rglob("*.jsonl"):
        path.write_text(path.read_text().replace(json.dumps(GPT), json.dumps("gpt-5.99")))
    said = person.result("costs", "--by", "model")
    assert (said["total"]["dollars"], said["total"]["unpriced"]) == (None, ["gpt-5.99"])
