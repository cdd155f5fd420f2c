"""The tools' results from store and memories: memories first, limited by time and project."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from host_scene import ingested, three_groups
from jsonschema import validate
from records import append, assistant, exchange, user
from store_scene import MONDAY, StoreUser
from tools_scene import Home

from session_memory.app.tools.call import ToolResult, call
from session_memory.app.tools.definitions import ALL, TOOLS
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.app.tools.results import RESULT_CHARACTERS
from session_memory.extras.host._ipc import answer_requests, write_snapshots
from session_memory.extras.host.group_backend import GroupBackend
from session_memory.extras.host.request_files import RequestFiles

DAY = 86_400
SHOP, BLOG = "5e55a0f1-0000-4000-8000-000000000001", "5e55a0f1-0000-4000-8000-000000000002"


class Person(StoreUser):
    """A person with a session in the directory webshop on Monday and one in blog on Tuesday."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self.environ: dict[str, str] = {}
        self.say(
            SHOP,
            "webshop",
            MONDAY,
            *[f"Please remember that plum jam {n} is for the webshop." for n in range(3)],
        )
        self.say(
            BLOG,
            "blog",
            MONDAY + DAY,
            *[f"Please remember that plum jam {n} is for the blog." for n in range(3)],
        )

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
        return call(
            HomeBackend(str(self.home), {"HOME": str(self.home), **self.environ}), tool, arguments
        )


@pytest.fixture
def person(tmp_path: Path) -> Person:
    found = Person(tmp_path)
    found.run("ingest")
    return found


def sessions_in(text: str) -> set[str]:
    return {id for id in (SHOP, BLOG) if f"(id {id}" in text}


class TestLimits:
    def test_a_search_is_limited_to_a_time_and_a_project(self, person: Person) -> None:
        for has_memories in (False, True):
            if has_memories:
                person.run("process")
            for limits, expected in (
                ({}, {SHOP, BLOG}),
                ({"since": "2026-09-22"}, {BLOG}),
                ({"until": "2026-09-22"}, {SHOP, BLOG}),
                ({"since": "2026-09-22", "until": "2026-09-22"}, {BLOG}),
                ({"until": "2026-09-21"}, {SHOP}),
                ({"project": "WebShop"}, {SHOP}),
                ({"project": "blog", "until": "2026-09-21"}, set()),
            ):
                text = person.ask("search_sessions", query="plum jam", **limits).text
                assert sessions_in(text) == expected, limits
                assert ("Log: " in text) == (has_memories and bool(expected)), limits

    def test_what_is_remembered_stands_before_what_was_said_and_the_log_after_it(
        self, person: Person
    ) -> None:
        person.run("process")
        person.run("remember", "Plum jam is for the webshop")
        text = person.ask("search_sessions", query="plum jam").text
        roles = re.findall(r"^(Memory|User|Assistant|Log): ", text, re.M)
        assert roles == sorted(roles, key=lambda role: (role != "Memory", role == "Log"))
        assert {"Memory", "User", "Log"} <= {*roles}

    def test_nothing_found_within_limits_says_to_leave_them_out(self, person: Person) -> None:
        told = person.ask("search_sessions", query="plum jam", until="2020-01-01").text
        assert "Or leave out since, until and project" in told
        assert "leave out" not in person.ask("search_sessions", query="submarine").text

    def test_what_is_no_point_in_time_is_answered_with_what_is_one(self, person: Person) -> None:
        told = person.ask("search_sessions", query="plum", since="some day")
        assert told.is_error
        assert told.text.startswith("`since` is not a time. Give a date (2026-02-01), a time")

    def test_a_project_that_is_a_path_is_not_looked_at(
        self, person: Person, tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").symlink_to(tmp_path / "webshop")
        told = person.ask("search_sessions", query="plum jam", project=str(tmp_path / "elsewhere"))
        assert sessions_in(told.text) == set()


def failed_and_mended(error: str, *, told: str = "try") -> list[dict[str, Any]]:
    """A command that fails, an edit, and the same command, which works then."""

    def use(id: str, name: str, **given: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": name, "input": given}

    def result(id: str, content: str, *, is_error: bool = False) -> dict[str, Any]:
        return user(
            [{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}],
            at=MONDAY,
        )

    return [
        user(told, at=MONDAY),
        assistant("So.", use("t1", "Bash", command="make jam"), at=MONDAY + 1),
        result("t1", f"Exit code 2\n{error}", is_error=True),
        assistant("Ah.", use("t2", "Edit", file_path="/srv/agent/jars.txt"), at=MONDAY + 2),
        result("t2", "done"),
        assistant("Again.", use("t3", "Bash", command="make jam"), at=MONDAY + 3),
        result("t3", "fine"),
    ]


class TestErrors:
    ERROR = "JarError: cherimoya jar 17 has no lid"

    def test_an_error_that_was_seen_is_told_with_what_solved_it(self, person: Person) -> None:
        person.keep("s3", "webshop", *failed_and_mended(self.ERROR))
        told = person.ask("seen_error", error="JarError: cherimoya jar 99 has no lid")
        assert told.text.startswith("Seen once. The text below is a record")
        assert (
            "1. Exit code 2: JarError: cherimoya jar 17 has no lid\nOf: Bash: make jam\n"
            in told.text
        )
        assert "(id s3, 2026-09-21, in conversation " in told.text
        solution = "Solution: it worked after editing `jars.txt`"
        assert told.text.endswith(f'{solution}\nAsked: "try"')

    def test_another_error_is_said_never_to_have_been_seen(self, person: Person) -> None:
        person.keep("s3", "webshop", *failed_and_mended(self.ERROR))
        told = person.ask("seen_error", error="TypeError: submarine is not callable")
        assert (told.text, told.is_error) == (
            "No tool has failed with this error in any session.",
            False,
        )

    def test_values_beside_the_text_fit_the_schema_that_the_tool_declares_and_say_the_same(
        self, person: Person
    ) -> None:
        person.keep(
            "s1", "webshop", *exchange("plan the <garden>", "roses"), *failed_and_mended(self.ERROR)
        )
        asked = {"search_sessions": {"query": "garden"}, "seen_error": {"error": self.ERROR}}
        for name, arguments in asked.items():
            told = person.ask(name, **arguments)
            [schema] = [tool.output for tool in ALL if tool.name == name]
            assert schema
            assert told.data
            validate(told.data, schema)
            assert told.text.startswith(told.data["note"])
            assert told.data["results"]
            for one in told.data["results"]:
                said = [str(value).casefold() for key, value in one.items() if key != "at"]
                assert [value for value in said if value not in told.text.casefold()] == []
            assert "<" not in json.dumps(told.data)
        nothing = person.ask("search_sessions", query="submarine")
        assert nothing.data == {"note": nothing.text, "results": []}
        assert person.ask("search_sessions").data is None

    def test_many_places_stay_within_the_bound_and_say_how_to_see_more(
        self, person: Person
    ) -> None:
        for number in range(30):
            person.keep(
                f"s{number}", "webshop", *failed_and_mended(f"{self.ERROR} {f'plum{number} ' * 50}")
            )
        text = person.ask("seen_error", error=self.ERROR).text
        assert "Seen 30 times" in text
        assert "27 more: call seen_error with limit=30." in text
        text = person.ask("seen_error", error=self.ERROR, limit=30).text
        assert len(text) <= RESULT_CHARACTERS
        assert " more: give a longer piece of the error." in text

    def test_an_excluded_session_is_not_told_of(self, person: Person) -> None:
        person.keep("s3", "webshop", *failed_and_mended(self.ERROR))
        person.config("sessions: {s3: {ignore: true}}")
        assert "No tool has failed" in person.ask("seen_error", error=self.ERROR).text

    def test_without_a_store_it_says_so(self, tmp_path: Path) -> None:
        told = Home(tmp_path / "agent").ask("seen_error", error=self.ERROR)
        assert told.is_error
        assert told.text.startswith(
            "nothing can be looked up: the store of all conversations does not exist yet"
        )

    def test_a_group_is_told_of_its_own_errors_and_main_of_all(self, tmp_path: Path) -> None:
        with three_groups(tmp_path / "host") as host:
            host.begin("work", *failed_and_mended(self.ERROR))
            ingested(host)
            assert "No tool has failed" in host.call("family", "seen_error", error=self.ERROR).text
            for group in ("work", "main"):
                assert (
                    "after editing `jars.txt`"
                    in host.call(group, "seen_error", error=self.ERROR).text
                )

    def test_a_group_without_a_database_asks_its_host(self, tmp_path: Path) -> None:
        with three_groups(tmp_path / "host") as host:
            host.begin("work", *failed_and_mended(self.ERROR))
            ingested(host)
            directory = Path(host.layout.group("work").ipc_dir)
            write_snapshots(host.layout, "work", host.sessions)
            asking = RequestFiles(str(directory))
            assert "seen_error" in [tool.name for tool in asking.served().tools]
            with ThreadPoolExecutor() as pool:
                answer = pool.submit(asking.call, "seen_error", {"error": self.ERROR})
                while not answer.done():
                    answer_requests(host.layout, "work", host.backend("work"))
            assert "after editing `jars.txt`" in answer.result().text


def test_a_search_says_how_far_its_answer_reaches(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        "not complete in the store yet" not in person.ask("search_sessions", query="plum jam").text
    )
    # no time at all for what is new
    monkeypatch.setattr("session_memory.history.store.refresh.REFRESH_SECONDS", -1.0)
    person.say(SHOP, "webshop", MONDAY, "And quince jam.")
    for query in ("plum jam", "submarine"):
        told = person.ask("search_sessions", query=query).text
        assert (
            " of 2 sessions are not complete in the store yet; session-memory ingest completes them."
            in told
        )
    monkeypatch.setattr("session_memory.history.search.postings.MOST_CHECKED", 2)
    assert (
        "4 older entries may contain the quoted phrase"
        in person.ask("search_sessions", query='"jam plum"').text
    )


class TestMemories:
    QUOTE = "plum jam 1 is for the webshop"

    @pytest.fixture
    def agent(self, person: Person) -> Person:
        person.environ = {"CLAUDE_CODE_SESSION_ID": SHOP}
        return person

    def test_what_is_remembered_is_found_with_where_it_came_from_and_kept_once(
        self, agent: Person
    ) -> None:
        told = [
            agent.ask("remember", text="The webshop sells plum jam.", quote=self.QUOTE)
            for _ in range(2)
        ]
        assert told[0] == told[1]
        assert not told[0].is_error
        (kept,) = agent.result("memories")["memories"]
        assert (kept["kind"], kept["title"], kept["quote"]) == (
            "fact",
            "The webshop sells plum jam.",
            self.QUOTE,
        )
        assert [(origin["session"], origin["strategy"]) for origin in kept["origins"]] == [
            (SHOP, "agent")
        ]
        assert kept["id"] in told[0].text
        assert f"memory {kept['id']}" in agent.ask("search_sessions", query="webshop plum jam").text

    @pytest.mark.parametrize("quote", ["plum jam 1 is for the blog", "something never said"])
    def test_what_this_session_did_not_say_is_not_remembered(
        self, agent: Person, quote: str
    ) -> None:
        told = agent.ask("remember", text="The webshop sells plum jam.", quote=quote)
        assert told.is_error
        assert told.text.startswith("nothing was remembered: the quotation is not in this session")
        assert agent.result("memories")["memories"] == []

    @pytest.mark.parametrize("rule", ["{ignore: true}", "{text: false}"])
    @pytest.mark.parametrize("where", ["sessions", "projects"])
    def test_nothing_is_remembered_of_what_a_rule_excludes(
        self, agent: Person, rule: str, where: str
    ) -> None:
        key = SHOP if where == "sessions" else str(agent.path / "webshop")
        agent.config(f"{where}: {{{key}: {rule}}}")
        assert agent.ask("remember", text="The webshop sells plum jam.", quote=self.QUOTE).is_error
        assert [*agent.home.rglob("facts.md")] == []

    def test_no_secret_is_remembered(self, agent: Person) -> None:
        text = "The password is password=hunter2Plum9Jam for all."
        assert not agent.ask("remember", text=text, quote=self.QUOTE).is_error
        (page,) = agent.home.rglob("facts.md")
        assert "hunter2Plum9Jam" not in page.read_text()

    def test_a_memory_is_forgotten_and_the_user_takes_it_back(self, agent: Person) -> None:
        agent.ask("remember", text="The webshop sells plum jam.", quote=self.QUOTE)
        (kept,) = agent.result("memories")["memories"]
        told = agent.ask("forget", id=kept["id"])
        assert told.text.startswith(f'Forgotten: fact {kept["id"]}: "The webshop sells plum jam."')
        assert agent.result("memories")["memories"] == []
        assert agent.ask("remember", text="The webshop sells plum jam.", quote=self.QUOTE).is_error
        undo = told.text.split("`")[1]
        assert undo == f"session-memory memories forget {kept['id']} --undo --home {agent.home}"
        agent.run(*undo.split()[1:])
        assert [one["id"] for one in agent.result("memories")["memories"]] == [kept["id"]]

    def test_no_memory_is_forgotten_by_a_part_of_its_id(self, agent: Person) -> None:
        agent.ask("remember", text="The webshop sells plum jam.", quote=self.QUOTE)
        (kept,) = agent.result("memories")["memories"]
        assert agent.ask("forget", id=kept["id"][:4]).is_error
        assert len(agent.result("memories")["memories"]) == 1

    @pytest.mark.parametrize("asking", ["family", "main"])
    def test_a_group_changes_its_own_memories_only(self, tmp_path: Path, asking: str) -> None:
        with three_groups(tmp_path / "host") as host:
            for group in ("work", asking):
                host.begin(group, *exchange(f"jam of {group} is good", "Yes.", at=MONDAY))
            ingested(host)

            def ask(group: str, tool: str, /, **arguments: Any) -> ToolResult:
                return call(GroupBackend(host.layout, group, host.sessions), tool, arguments)

            kept = ask("work", "remember", text="Jam of work is good.", quote="jam of work is good")
            assert not kept.is_error, kept
            id = kept.text.partition("fact ")[2].partition(":")[0]
            assert ask(asking, "forget", id=id).text.startswith("no memory has the id")
            assert ask(asking, "remember", text="Jam.", quote="jam of work is good").is_error
            assert not ask("work", "forget", id=id).is_error

    def test_a_group_without_a_database_changes_them_through_its_host(self, tmp_path: Path) -> None:
        with three_groups(tmp_path / "host") as host:
            host.begin("work", *exchange("jam of work is good", "Yes.", at=MONDAY))
            ingested(host)
            backend = GroupBackend(host.layout, "work", host.sessions)
            write_snapshots(host.layout, "work", host.sessions)
            asking = RequestFiles(str(host.layout.group("work").ipc_dir))

            def ask(tool: str, **arguments: str) -> ToolResult:
                with ThreadPoolExecutor() as pool:
                    answer = pool.submit(asking.call, tool, arguments)
                    while not answer.done():
                        answer_requests(host.layout, "work", backend)
                return answer.result()

            kept = ask("remember", text="Jam of work is good.", quote="jam of work is good")
            assert kept.text.startswith("Remembered as fact ")
            id = kept.text.split()[3].rstrip(":")
            (page,) = Path(host.layout.group("work").root).rglob("facts.md")
            assert id in page.read_text()
            assert ask("remember", text="Jam is bad.", quote="jam of work is bad").is_error
            told = ask("forget", id=id)
            assert (told.is_error, page.exists()) == (False, False)
            assert told.text.startswith(f"Forgotten: fact {id}:")

    def test_they_are_not_among_what_needs_no_permission(self) -> None:
        assert {tool.name for tool in TOOLS if not tool.is_read_only} >= {"remember", "forget"}


def test_no_answer_is_longer_than_four_thousand_characters() -> None:
    assert RESULT_CHARACTERS == 4_000
