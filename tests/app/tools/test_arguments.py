"""Arguments in any usual spelling of clients and models are read; others are named in an error."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from records import exchange
from store_scene import StoreUser
from tools_scene import FakeBackend, some_sessions

from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.app.tools.sdk_server import sdk_server
from session_memory.common.errors import SessionMemoryError
from session_memory.extras.host._audiences import tools_of_group

ALL = tools_of_group(is_main=True, others=("graph", "team"))
REACHED = FakeBackend(fails=SessionMemoryError("reached"))
# A value for each required argument, and for those with which something changes.
NEEDED: dict[str, Any] = {
    "schedule_type": "once",
    "schedule_value": "2030-01-01",
    "text": "a",
    "quote": "the quoted words",
    "prompt": "go",
}


def needed(tool: Any) -> dict[str, Any]:
    names = tool.schema["required"] + (["prompt"] if tool.name == "update_task" else [])
    names += ["name"] if tool.name == "update_group" else []
    return {name: NEEDED.get(name, "word") for name in names}


@pytest.mark.parametrize("name", [tool.name for tool in ALL])
def test_a_tool_ignores_what_a_client_adds_and_what_is_absent(name: str) -> None:
    tool = next(tool for tool in ALL if tool.name == name)
    optional = set(tool.schema["properties"]) - set(needed(tool))
    for extra in (
        {"wait_for_previous": False},
        {"explanation": "because", "_meta": {}},
        dict.fromkeys(optional),
        dict.fromkeys(
            [one for one in optional if tool.schema["properties"][one].get("minLength", 1)], ""
        ),
    ):
        assert REACHED.ask_with(name, {**needed(tool), **extra}).text == "reached", extra


def test_no_schema_has_a_pattern() -> None:
    """One that JavaScript cannot compile hides all tools (see findings/pattern-of-one-tool.sh)."""
    schemas = [schema for tool in ALL for schema in (tool.schema, tool.output)]
    assert any(schemas)
    assert '"pattern"' not in json.dumps(schemas)


@pytest.mark.parametrize("value", [5, "5", 5.0, "5.0", " 5 ", "05", "+5"])
def test_a_number_is_read_in_any_usual_spelling(value: object) -> None:
    class Counting(FakeBackend):
        def search(self, query: str, limit: int, *_: object) -> list[Any]:
            raise SessionMemoryError(f"{limit!r}")

    assert Counting().ask_with("search_sessions", {"query": "a", "limit": value}).text == "5"


@pytest.mark.parametrize(
    "value", [True, "five", "5.5", 5.5, float("nan"), float("inf"), [5], {"value": 5}, "0x5", "５"]
)
def test_what_is_no_number_is_refused_by_its_name(value: object) -> None:
    told = REACHED.ask_with("search_sessions", {"query": "a", "limit": value})
    assert told.text == "search_sessions: `limit` must be a whole number. Call it again"


@pytest.mark.parametrize("value", [0, "0", -1, 51, "51", "9" * 5000])
def test_a_number_out_of_its_range_is_refused_with_the_range(value: object) -> None:
    told = REACHED.ask_with("search_sessions", {"query": "a", "limit": value})
    assert told.text == "search_sessions: `limit` is a number from 1 to 50. Call it again"


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-01",
        "2026-11-01T00:00:00Z",
        "2026-11-01T00:00:00z",
        "2026-11-01T00:00:00.123456Z",
        "2026-11-01T00:00Z",
        "2026-11-01T00:00:00+02:00",
        "2026-11-01 00:00:00-0700",
        "2026-11-01T00:00:00+02",
        "2026-11-01 13:30",
        "2026-11-01T13:30:01.5",
        "2026/11/01",
        "20261101",
        "now",
        "Yesterday",
        "3d",
        "3 days",
        "3 days ago",
        "2 hours ago",
        "1 week",
    ],
)
def test_a_time_is_read_in_any_usual_spelling(value: str) -> None:
    for name in ("since", "until"):
        assert REACHED.ask_with("search_sessions", {"query": "a", name: value}).text == "reached"


@pytest.mark.parametrize(
    "value",
    ["soon", "2026-13-01", "2026-11-01T25:00", "2026-11-01T00:00:00+x", "2026-11-01Tx", "3 y"],
)
def test_what_is_no_time_is_refused_by_its_name(value: str) -> None:
    told = REACHED.ask_with("search_sessions", {"query": "a", "since": value})
    assert told.text.startswith("`since` is not a time. Give a date (2026-02-01)")


def test_an_id_that_is_a_number_and_a_word_in_capitals_are_read() -> None:
    backend = FakeBackend(*[one._replace(id="3") for one in some_sessions(1)])
    assert not backend.ask_with("read_session", {"name": 3}).is_error
    assert (
        REACHED.ask_with(
            "remember", {"text": "a", "quote": "the quoted words", "kind": "Decision "}
        ).text
        == "reached"
    )
    told = REACHED.ask_with("remember", {"text": "a", "quote": "the quoted words", "kind": "idea"})
    assert told.text.startswith("remember: `kind` is fact or decision or preference")


def test_a_required_argument_that_is_null_or_missing_is_named() -> None:
    for given in ({}, {"query": None}, {"limit": 5}):
        told = REACHED.ask_with("search_sessions", given)
        assert told.text.startswith("search_sessions: `query` is missing; it takes query, limit, ")


@pytest.mark.parametrize(
    "given",
    [{"wait_for_previous": False}, {"limit": "5"}, {"limit": None}, {"limit": 5.0, "project": ""}],
)
def test_a_server_in_the_agents_own_program_reads_them_as_well(given: dict[str, Any]) -> None:
    """Its library checks a call against the schema before we see it."""
    from mcp import Client

    async def answered() -> Any:
        async with Client(sdk_server(REACHED)["instance"]) as client:
            return await client.call_tool("search_sessions", {"query": "marigold", **given})

    assert asyncio.run(answered()).content[0].text == "reached"


def test_a_nul_character_is_a_clean_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = StoreUser(tmp_path)
    user.session("one", *exchange("plan the trip", "done"))
    user.run("ingest")
    for what in ("a\x00b", "a.py\x00:1", "\x00"):
        told = call(HomeBackend(None, user.environment), "why", {"what": what})
        assert told.is_error
        assert told.text.startswith("the name of a file or commit cannot contain a NUL character")
    assert "Traceback" not in capsys.readouterr().err
