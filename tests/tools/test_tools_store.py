"""What the tools tell of the store and the memories: memories first, within a time and a project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from records import append, assistant, exchange, user
from store_scene import MONDAY, StoreUser
from tools_scene import Home

from session_memory.commands.mcp import _search_memories
from session_memory.tools import HomeBackend, ToolResult, call
from session_memory.tools.results import RESULT_CHARACTERS

DAY = 86_400
SHOP, BLOG = "5e55a0f1-0000-4000-8000-000000000001", "5e55a0f1-0000-4000-8000-000000000002"


class Person(StoreUser):
    """A person with a session in the directory webshop on Monday and one in blog on Tuesday."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self.say(SHOP, "webshop", MONDAY, *[f"Please remember that plum jam {n} is for the webshop." for n in range(3)])
        self.say(BLOG, "blog", MONDAY + DAY, *[f"Please remember that plum jam {n} is for the blog." for n in range(3)])

    def say(self, id: str, folder: str, at: float, *texts: str) -> None:
        records: list[dict[str, Any]] = []
        for text in texts:
            records += [user(text, at=at), assistant("I see.", at=at + 1)]
        self.keep(id, folder, *records)

    def keep(self, id: str, folder: str, *records: dict[str, Any]) -> None:
        cwd = str(self.path / folder)
        path = self.projects / cwd.replace("/", "-") / f"{id}.jsonl"
        path.parent.mkdir(exist_ok=True)
        append(path, *[{**one, "cwd": cwd, "sessionId": id} for one in records])

    def ask(self, tool: str, /, **arguments: Any) -> ToolResult:
        backend = HomeBackend(str(self.home), {"HOME": str(self.home)}, memory_search=_search_memories)
        return call(backend, tool, arguments)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    found = Person(tmp_path)
    found.run("ingest")
    return found


def sessions_in(text: str) -> set[str]:
    return {id for id in (SHOP, BLOG) if f"(id {id}" in text}


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "expected"),
        [
            ({}, {SHOP, BLOG}),
            ({"since": "2026-09-22"}, {BLOG}),
            ({"until": "2026-09-22"}, {SHOP}),
            ({"project": "WebShop"}, {SHOP}),
            ({"project": "blog", "until": "2026-09-22"}, set()),
        ],
    )
    @pytest.mark.parametrize("has_memories", [False, True])
    def test_a_search_is_limited_to_a_time_and_a_project(
        self, person: Person, limits: dict[str, str], expected: set[str], has_memories: bool
    ) -> None:
        if has_memories:
            person.run("process")
        text = person.ask("search_sessions", query="plum jam", **limits).text
        assert sessions_in(text) == expected
        assert ("Memory: " in text) == (has_memories and bool(expected))

    def test_what_is_remembered_stands_before_what_was_said(self, person: Person) -> None:
        person.run("process")
        roles = re.findall(r"^(Memory|User|Assistant): ", person.ask("search_sessions", query="plum jam").text, re.M)
        assert roles == sorted(roles, key="Memory".__ne__)
        assert {"Memory", "User"} <= {*roles}

    def test_archives_are_limited_alike_where_there_is_no_store(self, tmp_path: Path) -> None:
        home = Home(tmp_path / "agent")
        home.archived("one", *exchange("plum jam on monday", "Yes.", at=MONDAY))
        home.archived("two", *exchange("plum jam on tuesday", "Yes.", at=MONDAY + DAY))
        text = home.ask("search_sessions", query="plum", since="2026-09-22").text
        assert ("monday" in text, "tuesday" in text) == (False, True)
        assert "Nothing was found" in home.ask("search_sessions", query="plum", project="no such").text

    def test_nothing_found_within_limits_says_to_leave_them_out(self, person: Person) -> None:
        told = person.ask("search_sessions", query="plum jam", until="2020-01-01").text
        assert "Or leave out since, until and project" in told
        assert "leave out" not in person.ask("search_sessions", query="submarine").text

    def test_what_is_no_point_in_time_is_answered_with_what_is_one(self, person: Person) -> None:
        told = person.ask("search_sessions", query="plum", since="some day")
        assert told.is_error
        assert told.text.startswith(
            "search_sessions: `since` is no point in time. Give a date (2026-02-01), a time ago"
        )

    def test_a_project_that_is_a_path_is_not_looked_at(self, person: Person, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").symlink_to(tmp_path / "webshop")
        told = person.ask("search_sessions", query="plum jam", project=str(tmp_path / "elsewhere"))
        assert sessions_in(told.text) == set()


def test_no_answer_is_longer_than_four_thousand_characters() -> None:
    assert RESULT_CHARACTERS == 4_000
