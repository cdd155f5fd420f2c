"""`agents --team`: the last state of the sessions that others share, and why it may be unknown."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents_scene import noted_process
from records import assistant, exchange, user
from store_scene import COMMAND
from team_scene import Member, Team

from session_memory.app.active_sessions import ActiveSession
from session_memory.app.commands import _team_reader
from session_memory.app.commands._team_reader import TeamAnswer, TeamReader

WAIT_SECONDS = 60
HOURS = 3_600_000


@pytest.fixture
def ann(tmp_path: Path, team: Team) -> Member:
    """A member whose sessions everybody may read."""
    member = Member(tmp_path / "laptop")
    member.joins(team, "ann", "  share: team")
    return member


@pytest.fixture
def bob(tmp_path: Path, team: Team) -> Iterator[Member]:
    """A member with an open session of his own, `own`."""
    member = Member(tmp_path / "desk")
    member.joins(team, "bob")
    member.session("own", *exchange("write the docs", "Written.", **at(member, 60)))
    with noted_process(member.home / ".claude", "own", "idle"):
        yield member


def at(member: Member, seconds_ago: float) -> dict[str, Any]:
    """The fields of a record in the member's clone."""
    return {"cwd": str(member.clone), "at": time.time() - seconds_ago}


def works_on_four(ann: Member) -> None:
    """Ann's sessions were asked, call a tool, have answered, and got no answer for long."""
    ann.session("asked", user("fix the \x1b[31mlogin\x1b[0m", **at(ann, 130)))
    call = assistant(("Bash", {"command": "npm test"}), **at(ann, 190))
    ann.session("calls", user("add a test", **at(ann, 200)), call)
    ann.session("answered", *exchange("round the price", "Rounded.", **at(ann, 300)))
    ann.session("silent", user("rename the cart", **at(ann, 900)))


def teams_agents(member: Member, *options: str) -> dict[str, dict[str, Any]]:
    """The sessions of others by their id."""
    shown = member.result("agents", "--team", *options)
    assert [each["id"] for each in shown["agents"]] == ["own"]
    assert shown["team"]["problem"] is None
    return {each["id"]: each for each in shown["team"]["agents"]}


def test_the_last_state_in_the_store_is_shown_and_a_reason_where_it_shows_none(
    ann: Member, bob: Member
) -> None:
    works_on_four(ann)
    ann.run("team", "push")
    agents = teams_agents(bob)
    states = {id: (each["state"], each["reason"]) for id, each in agents.items()}
    assert states == {
        "asked": ("working", None),
        "calls": ("unknown", "may run, or ask for approval"),
        "answered": ("unknown", "answered: waits or closed"),
        "silent": ("unknown", "no answer for long"),
    }
    assert {each["who"] for each in agents.values()} == {"ann@laptop"}
    assert not any(each["waits"] for each in agents.values())
    assert (agents["calls"]["tool"], agents["calls"]["argument"]) == ("Bash", "npm test")
    own, _, heading, *rows = bob.run("agents", "--team").stdout.splitlines()
    assert own.startswith("waits for you")
    assert heading == "The team, as its machines last pushed:"
    assert [row.split("  ")[0] for row in rows] == ["working", *["unknown"] * 3]
    assert rows[0].endswith('app  claude-code  ann@laptop  "fix the login"')
    assert rows[1].endswith("ann@laptop  Bash: npm test")


def test_only_what_is_shared_and_from_another_machine_is_shown(
    ann: Member, bob: Member, team: Team
) -> None:
    works_on_four(ann)
    ann.run("config", "sessions.asked.share", "mine")
    ann.run("config", "sessions.calls.ignore", "true")
    ann.run("config", "sessions.silent.share", "off")
    ann.run("team", "push")
    bob.run("team", "push")
    assert set(teams_agents(bob)) == {"answered"}
    for transcript in ann.projects.rglob("*.jsonl"):
        transcript.unlink()
    assert ann.result("agents", "--team")["team"]["agents"] == []
    other = Member(ann.home.parent / "desk of ann")
    other.joins(team, "ann")
    other.config(f"team: {{url: '{team.typed_url('ann')}', machine: desk}}\n")
    mine = other.result("agents", "--team")["team"]["agents"]
    assert {each["id"] for each in mine} == {"asked", "answered"}


def test_after_ten_minutes_without_a_push_the_state_is_unknown(
    ann: Member, bob: Member, team: Team
) -> None:
    ann.session("asked", user("fix the login", **at(ann, 130)))
    ann.run("team", "push")
    for table in ("machine", "session"):
        team.rows(f"UPDATE {table} SET pushed_at = pushed_at - 3 * {HOURS}")
    team.rows("UPDATE session SET branch = 'fix-login'")
    agent = teams_agents(bob)["asked"]
    assert (agent["project"], agent["branch"]) == ("app", "fix-login")
    assert (agent["state"], agent["reason"]) == ("unknown", "last push 3h ago")
    row = bob.run("agents", "--team").stdout.splitlines()[-1]
    assert "app (fix-login)  claude-code  ann@laptop" in row
    assert row.endswith("last push 3h ago")


def test_sessions_of_yesterday_and_of_other_projects_are_left_out(ann: Member, bob: Member) -> None:
    ann.session("old", user("fix the login", **at(ann, 2 * 86400)))
    ann.session("asked", user("fix the login", **at(ann, 130)))
    ann.run("team", "push")
    assert set(teams_agents(bob)) == {"asked"}
    assert set(teams_agents(bob, "--limit", "1")) == {"asked"}
    here = bob.result("agents", "--team", "--here", cwd=bob.clone)
    assert [each["id"] for each in here["team"]["agents"]] == ["asked"]
    elsewhere = bob.home / "notes"
    elsewhere.mkdir()
    assert bob.result("agents", "--team", "--here", cwd=elsewhere)["team"]["agents"] == []
    shown = bob.run("agents", "--team", "--here", cwd=elsewhere).stdout
    assert "The team shared no other session of today." in shown


def test_the_short_form_counts_only_own_sessions(ann: Member, bob: Member) -> None:
    works_on_four(ann)
    ann.run("team", "push")
    assert bob.run("agents", "--team", "--short").stdout == "1 waits\n"


def test_without_a_team_the_command_says_how_to_join(bob: Member) -> None:
    bob.config("")
    done = bob.run("agents", "--team")
    assert (done.returncode, done.stdout) == (1, "")
    assert "session-memory team join" in done.stderr


def test_a_server_that_is_silent_or_gone_hides_no_session_of_this_machine(bob: Member) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        for port, reason in (
            (listening.getsockname()[1], "no answer within 3 s"),
            (1, "Connection refused"),
        ):
            url = f"postgresql://bob@127.0.0.1:{port}/team"
            bob.config(f"team: {{url: '{url}', machine: desk}}\n")
            done = bob.run_process("agents", "--team")
            own, *problem = done.stdout.splitlines()
            assert own.startswith("waits for you")
            assert " ".join(" ".join(problem).split()).count(reason) == 1
            assert (done.returncode, done.stderr) == (0, "")
    shown = bob.result("agents", "--team")
    assert [each["id"] for each in shown["agents"]] == ["own"]
    assert "Connection refused" in shown["team"]["problem"]


def test_watch_prints_a_line_for_a_session_of_the_team(ann: Member, bob: Member) -> None:
    ann.session("asked", user("fix the login", **at(ann, 130)))
    ann.run("team", "push")
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "agents", "--watch", "--team", "--json"],
        env=bob.environment,
        cwd=bob.home,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        changes = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    by_id = {each["id"]: each for each in changes}
    assert (by_id["own"]["state"], by_id["own"]["who"]) == ("waits for you", None)
    assert (by_id["asked"]["state"], by_id["asked"]["who"]) == ("working", "ann@laptop")


def test_the_store_is_asked_again_and_old_states_are_unknown_once_it_refuses(
    ann: Member, bob: Member, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_team_reader, "QUESTION_SECONDS", 0.05)
    ann.session("asked", user("fix the login", **at(ann, 130)))
    ann.run("team", "push")
    with closing(TeamReader(None, {**os.environ, **bob.environment}, repeats=True)) as reader:
        answer = answered(reader, lambda answer: answer.is_known)
        assert [each.state.name for each in answer.sessions] == ["working"]
        ann.session("calls", user("add a test", **at(ann, 100)))
        ann.run("team", "push")
        answered(reader, lambda answer: len(answer.sessions) == 2)
        team.rows("SELECT remove_member('bob')")
        answer = answered(reader, lambda answer: bool(answer.problem))
    # the server may already refuse to look into the schema, or only to read the table
    refusals = "permission denied", "has no team store that you may read"
    assert any(refusal in answer.problem for refusal in refusals), answer.problem
    assert {reason(each) for each in answer.sessions} == {"the team's store cannot be read"}


def answered(reader: TeamReader, is_wanted: Callable[[TeamAnswer], bool]) -> TeamAnswer:
    """The first answer that is wanted."""
    until = time.monotonic() + WAIT_SECONDS
    while not is_wanted(answer := reader.latest()):
        assert time.monotonic() < until, answer
        time.sleep(0.05)
    return answer


def reason(session: ActiveSession) -> str:
    assert session.state.name == "unknown"
    return session.state.reason
