"""What measures the product must not fail, or blame the product, by itself: found on repositories that
it was not made for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from records import assistant, lines, user

from bench.command import parser_of
from bench.handoff import pairs_of
from bench.research.public.__main__ import main as public
from bench.research.public.__main__ import readme_program
from bench.research.public.tools import AgentsView
from bench.research.updates.replay import _switched_at
from bench.research.updates.talks import Talk
from session_memory.history.store.values import Conversation, StoredEntry

START = 1_790_000_000.0


def ran(command: str, at: float) -> list[dict[str, object]]:
    call = assistant(("Bash", {"command": command}), at=at)
    id = call["message"]["content"][0]["id"]
    return [call, user([{"tool_use_id": id, "type": "tool_result", "content": "ok"}], at=at + 5)]


def test_a_session_s_own_checkout_is_played_when_it_ended() -> None:
    talk = Talk("one", "claude-code", lines(*ran("git checkout -b fix", START)))
    assert _switched_at(talk.lines) == START + 5
    echo = Talk("one", "claude-code", lines(*ran("git status", START), user("and now?", at=START)))
    assert _switched_at(echo.lines[:1]) is None  # without its result
    other = Talk("two", "claude-code", lines(*ran("npm test", START)))
    assert _switched_at(other.lines) is None


def test_a_line_without_a_word_ends_no_tool(tmp_path: Path) -> None:
    session = tmp_path / "s.jsonl"
    session.write_text('{"text": "the lamp | table"}\n')
    place = {"home": str(tmp_path), "clone": str(tmp_path), "sessions": {"s": str(session)}}
    questions = [
        {"id": 0, "task": "line", "text": "|---|"},
        {"id": 1, "task": "line", "text": "lamp"},
    ]
    given = "".join(json.dumps(line) + "\n" for line in (place, *questions))
    command = [sys.executable, "-c", readme_program()]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    answers = [json.loads(line)["sessions"] for line in done.stdout.splitlines()]
    assert answers == [[], ["s"]]
    assert AgentsView.line(object.__new__(AgentsView), questions[0]) == []  # asks no server


def test_an_option_for_several_values_may_be_given_several_times() -> None:
    given = ["score", "clone", "--tool", "one", "--tool", "two", "three"]
    assert parser_of(public).parse_args(given).tool == ["one", "two", "three"]
    assert parser_of(public).parse_args(["score", "clone"]).tool == []


def conversation(name: str, began: float, ended: float, cwd: str = "/srv/app") -> Conversation:
    times = (int(began * 3600_000), int(ended * 3600_000))
    return Conversation(
        1, name, f"{name}.jsonl", "", "claude-code", cwd, "", *times, 4, "ready", ""
    )


def test_a_session_that_goes_on_with_the_files_of_the_last_one_is_its_successor() -> None:
    sessions = {
        "plan": [conversation("plan", 1000, 1001)],
        "elsewhere": [conversation("elsewhere", 1002, 1003, "/srv/other")],
        "next": [conversation("next", 1005, 1006)],
        "late": [conversation("late", 1020, 1021)],
    }
    items: dict[str, list[StoredEntry]] = {name: [] for name in sessions}
    edits = {name: {"cart.py"} for name in sessions}
    assert pairs_of(sessions, items, edits) == ([("plan", "next")], 0)
    edits["next"] = {"other.py"}
    assert pairs_of(sessions, items, edits) == ([], 0)
