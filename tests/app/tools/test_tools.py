"""The tools: their descriptions, the choice of a session, and the answers to errors."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from records import exchange, user
from store_scene import StoreUser
from tools_scene import FakeBackend, Home, some_sessions

from session_memory.app.tools import definitions
from session_memory.app.tools.call import ToolResult, call
from session_memory.app.tools.definitions import ALL as ALL_TOOLS
from session_memory.app.tools.definitions import TOOLS
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.app.tools.results import RESULT_CHARACTERS
from session_memory.common.errors import LockedError, SessionMemoryError
from session_memory.common.extensions import load
from session_memory.common.text.timestamps import milliseconds_at
from session_memory.extension_points import TOOLS as TOOLS_BY_NAME
from session_memory.extras.host._audiences import tools_of_group
from session_memory.sessions.runtimes.claude import encode_cwd

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "agent")


ALL = tools_of_group(is_main=True, others=("graph", "team"))


def arguments(schema: dict[str, Any]) -> list[str]:
    """The arguments in a schema, those that may be left out with a question mark."""
    return [name if name in schema["required"] else f"{name}?" for name in schema["properties"]]


class TestDefinitions:
    def test_there_are_these_tools(self) -> None:
        names = [
            "list_sessions",
            "clear_session",
            "resume_session",
            "search_sessions",
            "seen_error",
            "why",
        ]
        names += ["remember", "forget", "read_session"]
        of_tasks = ["schedule_task", "list_tasks", "update_task", "cancel_task"]
        of_main = ["list_groups", "register_group", "update_group"]
        assert [tool.name for tool in TOOLS] == names
        names.remove("why")  # which looks into the directory at hand
        assert [tool.name for tool in tools_of_group(is_main=False)] == names + of_tasks
        assert [tool.name for tool in ALL] == [
            *names,
            "search_graph",
            "search_team",
            *of_tasks,
            *of_main,
        ]

    def test_a_schema_is_one_and_describes_each_argument(self) -> None:
        for tool in ALL:
            Draft202012Validator.check_schema(tool.schema)
            assert all(
                len(one["description"]) > 15 for one in tool.schema["properties"].values()
            ), tool.name
            assert len(tool.description) > 60, tool.name

    def test_no_tool_but_those_of_main_takes_a_path_or_a_group(self) -> None:
        known = {"id", "name", "query", "lines", "limit", "skip", "save_as"}
        known |= {"since", "until", "project", "error", "text", "quote", "kind"}
        known |= {"prompt", "schedule_type", "schedule_value", "context_mode", "status"}
        for tool in tools_of_group(is_main=False, others=("graph", "team")):
            assert known.issuperset(tool.schema["properties"]), tool.name

    @given(st.sampled_from(ALL), st.data())
    def test_arguments_that_fit_the_schema_are_never_refused_and_others_only_in_words(
        self, tool: Any, data: st.DataObject
    ) -> None:
        values = (
            st.none()
            | st.booleans()
            | st.integers(-5, 600)
            | st.text(max_size=9)
            | st.just("x" * 201)
            | st.just([])
            | st.sampled_from(["once", "group", "paused"])
        )
        keys = st.sampled_from([*tool.schema["properties"], "path"])
        arguments = data.draw(st.dictionaries(keys, values) | values)
        answer = FakeBackend(fails=SessionMemoryError("reached")).ask_with(tool.name, arguments)
        is_given = {} if arguments is None else arguments
        is_valid = Draft202012Validator(tool.schema).is_valid(is_given) and all(
            milliseconds_at(is_given[name]) is not None
            for name in ("since", "until")
            if name in is_given
        )
        assert answer.text == "reached" or not is_valid
        assert (
            answer.text == "reached"
            or "`" in answer.text
            or "arguments must be an object" in answer.text
            or "it changes nothing" in answer.text
        )

    def test_the_documentation_lists_them_with_their_arguments(self) -> None:
        text = (REPOSITORY / "docs" / "reference" / "tools.md").read_text()
        listed = {
            name: words
            for name, words in re.findall(r"^\| `(\w+)\((.*?)\)` \|", text, re.MULTILINE)
        }
        assert listed == {tool.name: ", ".join(arguments(tool.schema)) for tool in (*ALL, *TOOLS)}

    def test_the_documentation_makes_a_server_as_it_says(self, tmp_path: Path) -> None:
        code = (
            (REPOSITORY / "docs" / "reference" / "tools.md")
            .read_text()
            .partition("```python\n")[2]
            .partition("```")[0]
        )
        code = code.replace("/srv/agent", str(tmp_path))
        names: dict[str, Any] = {}
        exec(f"import os\nfrom claude_agent_sdk import ClaudeAgentOptions\n{code}", names)
        assert names["options"].mcp_servers["session-memory"]["type"] == "sdk"
        assert names["backend"].sessions() == []

    def test_wrong_arguments_are_answered_with_what_to_give(self) -> None:
        told = FakeBackend().ask("read_session", lines=3)
        assert told == ToolResult(
            "read_session: `name` is missing; it takes name, lines, skip. Call it again", True
        )
        assert (
            FakeBackend()
            .ask("read_session", name="a", lines=0)
            .text.startswith("read_session: `lines` is a number from 1")
        )


class TestChoosing:
    def test_a_session_goes_by_its_id_and_its_name(self) -> None:
        for wanted in (
            "id-7",
            "ID-7",
            "session number 7",
            " Session Number 7 ",
            "session number 7…",
        ):
            told = FakeBackend(*some_sessions(9)).ask("read_session", name=wanted)
            assert told.text.endswith("User\nsaid in id-7"), wanted

    def test_what_is_no_name_is_answered_with_names_that_there_are(self) -> None:
        for wanted in (
            "7",
            "numbers",
            "../7",
            "/etc/passwd",
            "ıd-7",
            "id-7\x00",
            "x" * 200,
            "​",
            "…",
        ):
            told = FakeBackend(*some_sessions(3)).ask("read_session", name=wanted)
            assert told.is_error
            assert (
                '. The sessions are: "session number 0" (id id-0); "session number 1" (id id-1); "sess'
                in told.text
            )

    def test_a_name_that_several_have_is_answered_with_their_ids(self) -> None:
        assert (
            FakeBackend(*some_sessions(20))
            .ask("read_session", name="session number 1")
            .text.endswith("said in id-1")
        )
        told = FakeBackend(*some_sessions(20)).ask("read_session", name="session")
        assert told.text.startswith(
            "several sessions are called 'session'. Ask again with the id of one of these: "
        )
        assert re.search(
            r'"session number 11" \(id id-11\), \d+d ago; and 8 more \(list_sessions\)$', told.text
        )


class TestSwitching:
    def test_a_named_session_is_cleared_kept_and_resumed(self, home: Home) -> None:
        home.session("main", *exchange("plan the trip", "done"))
        home.session("discord", user("hello"))
        home.own, first = "main", home.session_id("main")
        told = home.ask("clear_session", name="Japan trip")
        (archive,) = (home.root / "conversations").glob("*-japan-trip.md")
        assert "plan the trip" in archive.read_text()
        assert told == ToolResult(
            f"Done: this conversation is kept as 'Japan trip' (id {first}), archived in "
            f"{archive}. Finish your answer: "
            f"the next message to 'main' starts a new conversation, and resume_session with id "
            f"{first} returns to this one. "
            "If the user talks to you in the runtime's own terminal, tell them to type `/clear`."
        )
        assert not (home.sessions_dir / "main.json").exists()
        home.session("main", user("and the taxes?"))
        second = home.session_id("main")
        assert f'"Japan trip" (id {first})' in home.ask("list_sessions").text
        told = home.ask("resume_session", id="Japan trip", save_as="Taxes")
        assert told.text.startswith(
            "Done: the next message to 'main' continues 'Japan trip'. Finish your answer. "
        )
        assert f"This conversation is kept as 'Taxes' (id {second}), archived in " in told.text
        assert home.session_id("main") == first
        assert f'"Taxes" (id {second})' in home.ask("list_sessions").text

    def test_a_session_that_cannot_be_archived_is_not_cleared(self, home: Home) -> None:
        home.session("main", *exchange("plan the trip", "done"))
        home.own, first = "main", home.session_id("main")
        (home.root / "conversations").write_text("in the way")
        assert home.ask("clear_session", name="Japan trip").is_error
        assert home.session_id("main") == first

    def test_resuming_a_session_that_has_a_name_says_what_the_user_types(self, home: Home) -> None:
        home.session("main", user("hello"))
        home.session("discord", user("hello"))
        home.own = "main"
        told = home.ask("resume_session", id="discord", save_as="Japan")
        assert not told.is_error
        assert (
            "type `/rename Japan`, then leave this conversation and run `claude --resume "
            in told.text
        )
        command = told.text.split("`")[3]
        assert shlex.split(command) == ["claude", "--resume", home.session_id("discord")]

    def test_resuming_the_session_at_hand_is_refused(self, home: Home) -> None:
        home.session("main", user("hello"))
        home.own = "main"
        assert (
            home.ask("resume_session", id="main").text
            == "you are already in 'main'. There is nothing to resume"
        )

    def test_outside_of_a_runtime_that_we_know_clearing_says_it_generally(self, home: Home) -> None:
        home.session("main", user("hello"))
        assert home.ask("clear_session", name="x").text.endswith(
            "Tell them to start a new conversation in the program in which they talk to you."
        )

    def test_each_runtime_says_its_own_commands(self, tmp_path: Path) -> None:
        environ = {"HOME": str(tmp_path), "PI_SESSION_ID": "1a2b"}
        told = call(HomeBackend(None, environ), "clear_session", {"name": "Japan"})
        assert "type `/name Japan`, then `/new`" in told.text
        assert "`pi --session 1a2b`" in told.text


class TestFaults:
    def test_an_error_that_we_raise_is_told_with_its_hint(self) -> None:
        told = FakeBackend(fails=SessionMemoryError("it is broken", "mend it")).ask("list_sessions")
        assert told == ToolResult("it is broken. Mend it", True)

    def test_a_path_in_an_error_of_the_system_is_not_told(self) -> None:
        told = FakeBackend(
            fails=PermissionError(13, "Permission denied", "/srv/host/groups/other")
        ).ask("list_sessions")
        assert told == ToolResult(
            "list_sessions: Permission denied. Tell the user if it happens again", True
        )

    def test_a_lock_that_somebody_else_holds_says_to_try_again(self) -> None:
        told = FakeBackend(fails=LockedError("/srv/host/x.lock: held by another process")).ask(
            "list_sessions"
        )
        assert told == ToolResult(
            "another process is busy with the same conversations. Try again in a moment", True
        )

    def test_a_fault_of_ours_is_an_answer_too_and_leaves_its_trace_on_stderr(
        self, capfd: pytest.CaptureFixture[str]
    ) -> None:
        told = FakeBackend(fails=ZeroDivisionError("division by zero")).ask("list_sessions")
        assert told == ToolResult(
            "list_sessions failed (ZeroDivisionError). Continue without it, and tell the user", True
        )
        assert "ZeroDivisionError: division by zero" in capfd.readouterr().err

    def test_no_error_is_longer_than_any_result(self) -> None:
        assert (
            len(FakeBackend(fails=SessionMemoryError("x" * 100_000)).ask("list_sessions").text)
            <= RESULT_CHARACTERS
        )


def test_read_session_takes_what_any_command_prints_of_a_session_of_any_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = StoreUser(tmp_path)
    (work := tmp_path / "work").mkdir()
    for name, text in (("1111-trip", "plan the kyoto trip"), ("2222-trip", "plan the osaka trip")):
        told = exchange(
            text, f"Here is what to do in {text[9:14]}.", at=time.time() - 60, cwd=str(work)
        )
        person.session(name, *told, project=encode_cwd(str(work)))
    person.run("ingest")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    person.session(
        "3333-tax",
        *exchange("count the taxes", "Done.", cwd=str(elsewhere)),
        project=encode_cwd(str(elsewhere)),
    )
    monkeypatch.chdir(elsewhere)
    backend = HomeBackend(None, person.environment)

    def read(name: str) -> str:
        return call(backend, "read_session", {"name": name}).text

    found = backend.session_behind("1111-trip")
    backend.sessions()  # as another call does in its thread
    assert found is not None
    assert backend.entries(found, 9)[0]
    number = {one["title"]: one["id"] for one in person.result("conversations")["conversations"]}
    for name in ("1111-trip", "1111", "kyoto", str(number["plan the kyoto trip"])):
        assert "Here is what to do in kyoto." in read(name), name
    assert re.search(r"fits 2 sessions.*2222-trip .*work.*1111-trip .*work", read("trip"), re.S)
    assert "no session is called 'lisbon'" in read("lisbon")


@pytest.mark.parametrize(("name", "place"), TOOLS_BY_NAME.items())
def test_a_row_is_the_function_of_its_tool_and_beside_it_its_definition(
    name: str, place: str
) -> None:
    (tool,) = [tool for tool in ALL_TOOLS if tool.name == name]
    assert (tool.run, tool.run.__name__) == (load(place), name)


def test_each_definition_has_a_row() -> None:
    files = Path(definitions.__file__).parents[2].rglob("tools.json")
    names = [each["name"] for file in files for each in json.loads(file.read_text())]
    assert sorted(names) == sorted(TOOLS_BY_NAME)
