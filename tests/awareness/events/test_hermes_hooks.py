"""Hermes's hooks: a prompt is told the news, and a call is refused once with its collision."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hermes_scene import HermesDatabase
from hooks_scene import run
from records import new_id
from runtimes_scene import Person

from session_memory.sessions.runtimes.hermes import RUNTIME
from session_memory.sessions.runtimes.table import runtime, sender_of

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures" / "hermes" / "hooks"


class HermesUser:
    """Somebody who uses Hermes and Claude Code in one repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.person = Person(root)
        self.cwd = str(self.person.app)
        self.database = HermesDatabase(root / ".hermes")
        self.environ: dict[str, str] = {}

    def hook(self, script: str, event: str, session_id: str, **fields: Any) -> dict[str, Any]:
        """Return what a hook prints for an event in the form of Hermes 0.19."""
        extra = {"turn_id": f"{session_id}:{new_id()}", **fields.pop("extra", {})}
        given = {"hook_event_name": event, "session_id": session_id, "cwd": self.cwd}
        given |= {"tool_name": None, "tool_input": None, **fields, "extra": extra}
        output = run(given, self.root, script, arguments=["hermes"], **self.environ)
        printed: dict[str, Any] = json.loads(output or b"{}")
        return printed

    def asks(self, session_id: str, prompt: str, *, platform: str = "cli") -> str:
        """Return the context of a prompt, which the database then has beside it."""
        extra = {"user_message": prompt, "platform": platform}
        printed = self.hook("user_prompt_submit", "pre_llm_call", session_id, extra=extra)
        context = str(printed.get("context", ""))
        sent = f"{prompt}\n\n{context}" if context else None
        self.database.message(session_id, "user", prompt, api_content=sent)
        return context

    def answers(self, session_id: str) -> None:
        self.database.message(session_id, "assistant", "Yes.", finish_reason="stop")

    def calls(self, session_id: str, tool: str, **given: str) -> str:
        """Return why a call is refused, or ''."""
        call = {"tool_name": tool, "tool_input": given}
        printed = self.hook("pre_tool_use", "pre_tool_call", session_id, **call)
        assert printed.get("decision", "block") == "block"
        return str(printed.get("reason", ""))

    def has_read(self) -> str:
        """Return a session that has read the file `edited` ten minutes ago."""
        at = time.time() - 600
        session = self.database.session(self.cwd, at=at)
        self.database.exchange(session, "look at it", "Yes.", at=at)
        self.database.call(session, "read_file", {"path": self.person.edited}, at, at)
        return session


@pytest.fixture
def user(tmp_path: Path) -> HermesUser:
    return HermesUser(tmp_path)


def test_a_prompt_is_told_once_what_others_did(user: HermesUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    session = user.database.session(user.cwd)
    assert '"paint the door" (Claude Code' in user.asks(session, "begin")
    user.answers(session)
    assert user.asks(session, "go on") == ""
    user.answers(session)
    user.person.claude_session(user.person.app, "oil the hinge")
    told = user.asks(session, "go on")
    assert "oil the hinge" in told
    assert "paint the door" not in told


def test_profiles_hear_of_each_other(user: HermesUser) -> None:
    usual = user.database.session(user.cwd)
    user.asks(usual, "paint the door")
    user.answers(usual)
    profile = user.root / ".hermes" / "profiles" / "coder"
    user.database, user.environ = HermesDatabase(profile), {"HERMES_HOME": str(profile)}
    session = user.database.session(user.cwd)
    assert '"paint the door" (just now' in user.asks(session, "begin")
    user.answers(session)
    assert user.asks(session, "go on") == ""


def test_a_session_in_a_copied_database_hears_of_the_other_but_never_of_itself(
    user: HermesUser,
) -> None:
    session = user.database.session(user.cwd)
    user.asks(session, "paint the door")
    user.answers(session)
    user.asks(session, "thanks")
    user.answers(session)
    directory = user.root / ".hermes" / "profiles" / "coder"
    usual, coder = user.database, user.database.copy(directory)
    in_coder = {"HERMES_HOME": str(directory)}
    told = {"usual": "", "coder": ""}
    for turn in ("first", "second", "third"):
        for name, user.database, user.environ in (("coder", coder, in_coder), ("usual", usual, {})):
            told[name] += user.asks(session, f"{name} oils the {turn} hinge")
            user.answers(session)
    assert told["coder"].count("usual oils the first") == 1
    assert told["coder"].count("usual oils the second") == 1
    assert [told["usual"].count(f"coder oils the {each}") for each in ("second", "third")] == [1, 1]
    assert "usual oils" not in told["usual"]
    assert "coder oils" not in told["coder"]
    assert '"paint the door"' not in told["coder"] + told["usual"]
    call = {"path": user.person.edited}
    user.database.call(session, "patch", call, time.time(), time.time())
    assert user.calls(session, "patch", **call) == ""
    user.database, user.environ = coder, in_coder
    assert "app.py" in user.calls(session, "patch", **call)


def test_the_context_of_a_prompt_without_an_answer_is_told_again(user: HermesUser) -> None:
    """Hermes joins an unanswered prompt and the next one, without the context of the first."""
    user.person.claude_session(user.person.app, "paint the door")
    session = user.database.session(user.cwd)
    assert "paint the door" in user.asks(session, "begin")
    assert "paint the door" in user.asks(session, "begin again")
    user.answers(session)
    assert user.asks(session, "go on") == ""


@pytest.mark.parametrize("prompt", ["[ASYNC DELEGATION COMPLETE - d1]", ""])
def test_a_prompt_that_no_person_typed_is_told_nothing(user: HermesUser, prompt: str) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    assert user.asks(user.database.session(user.cwd), prompt) == ""


def test_a_sub_agent_is_told_nothing(user: HermesUser) -> None:
    user.person.claude_session(user.person.app, "paint the door")
    helper = user.database.sub_agent(user.database.session(user.cwd))
    assert user.asks(helper, "list the files", platform="subagent") == ""


@pytest.mark.parametrize(
    ("tool", "key"),
    [("patch", "path"), ("write_file", "path"), ("patch", "patch")],
)
def test_a_call_is_refused_once_with_its_collision(user: HermesUser, tool: str, key: str) -> None:
    session = user.has_read()
    user.person.claude_edits()
    target = {
        "path": user.person.edited,
        "patch": f"*** Begin Patch\n*** Update File: {user.person.edited}\n@@\n-1\n+3\n*** End Patch",
    }[key]
    reason = user.calls(session, tool, **{key: target})
    assert "mend it" in reason
    assert reason.endswith("It is run if it comes again.")
    assert user.calls(session, tool, **{key: target}) == ""


def test_the_events_of_the_real_program_are_its_own() -> None:
    if not CAPTURES.exists():
        pytest.skip("there are no captures beside the repository")
    for name in ("pre_llm_call", "pre_tool_call"):
        event = json.loads((CAPTURES / f"{name}.json").read_text())["stdin"]
        assert sender_of(event, {}, runtime("hermes")) is RUNTIME
        assert sender_of(event, {}, runtime("agent-sdk")) is RUNTIME
    event = json.loads((CAPTURES / "pre_llm_call.json").read_text())["stdin"]
    assert RUNTIME.prompt(event) == "Please change alpha to gamma in notes.txt"


def compacted_session(user: HermesUser) -> str:
    """The id of a session whose compaction began another one, with a prompt in each."""
    first = user.database.session(user.cwd, end_reason="compression", ended_at=1.0)
    user.database.exchange(first, "count the apples", "done")
    further = user.database.session(user.cwd, parent_session_id=first)
    user.database.exchange(further, "eat the apples", "done")
    return first


def test_a_prompt_is_told_nothing_of_a_session_after_a_compaction_of_a_hidden_one(
    user: HermesUser,
) -> None:
    first = compacted_session(user)
    (user.root / ".session-memory").mkdir()
    rules = f"sessions: {{{first}: {{ignore: true}}}}\n"
    (user.root / ".session-memory" / "config.yaml").write_text(rules)
    user.person.claude_session(user.person.app, "paint the door")
    told = user.asks(user.database.session(user.cwd), "begin")
    assert "paint the door" in told
    assert "excluded" not in told, told


def test_the_number_of_further_sessions_has_none_that_only_its_mirror_shows_to_be_hidden(
    user: HermesUser,
) -> None:
    """The prompt does not read it, because enough others are newer."""
    first = compacted_session(user)
    for number in range(9):
        user.person.claude_session(user.person.app, f"paint door {number}")
    own = [user.database.session(user.cwd) for _ in range(2)]
    assert user.asks(own[0], "begin").endswith("\n+8 more")  # six, and both of Hermes
    rules = f"sessions: {{{first}: {{ignore: true}}}}\n"
    (user.root / ".session-memory" / "config.yaml").write_text(rules)
    assert user.asks(own[1], "begin").endswith("\n+7 more")  # six, and the one that asked
