"""A team's memories: pushed by the rules of their sessions, found with owner and place, withdrawn."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from store_scene import MONDAY
from team_scene import PROJECT, Member, Team

from session_memory.app.tools.call import call
from session_memory.app.tools.home_backend import HomeBackend
from session_memory.memory.format import new_memory, render
from session_memory.memory.memory_index import Origin

AT = int(MONDAY * 1000)
SHARED = "projects: {~/work/app: {share: team}}"


@pytest.fixture
def machine(tmp_path):
    return lambda name: Member(tmp_path / name)


def remember(
    member: Member,
    title: str,
    *sessions: str,
    text: str = "",
    cwd: str = "",
    page: str = "decisions.md",
) -> Path:
    """Writes a decision on a page, drawn from these sessions; returns the page."""
    first, *more = [
        Origin(AT, session, 1, "summary", 1, cwd or str(member.clone)) for session in sessions
    ]
    memory = new_memory(
        "decision", title, text, "harbour", "we decided so", first, is_untrusted=False
    )
    path = member.home / ".session-memory" / "memories" / page
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as out:
        out.write("\n" + render(memory._replace(origins=(first, *more))))
    old = os.stat(path).st_mtime_ns - 10_000_000_000
    os.utime(path, ns=(old, old))
    os.utime(path.parent, ns=(old, old))
    return path


def shared(team: Team) -> list[tuple[str, ...]]:
    return team.rows(
        "SELECT owner || '@' || machine, title, project, share, cwd FROM memory ORDER BY title"
    )


def test_memories_are_shared_as_the_sessions_are_that_they_were_drawn_from(machine, team):
    ann = machine("laptop")
    for session in ("open", "own", "kept", "hidden"):
        ann.says(session, f"about {session}", "/src")
    ann.joins(
        team,
        "ann",
        SHARED,
        "sessions: {own: {share: mine}, kept: {share: off}, hidden: {ignore: true}}",
    )
    src = f"{ann.clone}/src"
    remember(ann, "The harbour opens at six", "open", cwd=src)
    remember(ann, "The quay is mine", "open", "own", cwd=src)
    remember(ann, "The mole is kept", "open", "kept", cwd=src)
    remember(ann, "The pier is hidden", "hidden", cwd=src)
    remember(ann, "The buoy is elsewhere", "gone", cwd=str(ann.home))
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    remember(ann, "The lock has a token", "gone", text=f"It is {token} ok", cwd=src)
    assert ann.result("team", "push")["memories"]["pushed"] == 3
    assert shared(team) == [
        ("ann@laptop", "The harbour opens at six", PROJECT, "team", f"{PROJECT}/src"),
        ("ann@laptop", "The lock has a token", PROJECT, "team", f"{PROJECT}/src"),
        ("ann@laptop", "The quay is mine", PROJECT, "mine", f"{PROJECT}/src"),
    ]
    assert token.lower() not in str(team.rows("SELECT * FROM memory, memory_posting")).lower()
    again = ann.result("team", "push")["memories"]
    assert (again["pushed"], again["withdrawn"]) == (0, 0)


def test_what_others_remember_is_found_with_who_and_where_and_read_where_it_was_said(
    machine, team, teams
):
    ann, bob = machine("laptop"), machine("desk")
    ann.says("plan", "plan the harbour", "/src")
    ann.joins(team, "ann", SHARED)
    bob.joins(team, "bob")
    remember(
        ann,
        "The harbour opens at six",
        "plan",
        text="Not at seven, because of the tide",
        cwd=f"{ann.clone}/src",
    )
    ann.run("team", "push")
    [found] = bob.result("memories", "search", "tide", "--team")["memories"]
    assert (found["who"], found["origins"][0]["directory"]) == ("ann@laptop", f"{PROJECT}/src")
    said = bob.run("search", "harbour", "--team").stdout
    assert "ann@laptop, decision: The harbour opens at six" in said
    conversation = found["origins"][0]["conversation"]
    assert f"read {conversation} --around 1 --team" in said
    assert "plan the harbour" in bob.run("show", conversation, "--around", "1", "--team").stdout
    assert "ann@laptop" in bob.run("memories", "--team").stdout
    assert (
        f"of ann@laptop, in {PROJECT}/src"
        in bob.run("memories", "show", found["id"], "--team").stdout
    )
    assert bob.result("memories")["memories"] == []
    backend = HomeBackend(None, bob.environment, pool=teams)
    told = call(backend, "search_team", {"query": "harbour"}).text
    assert f'"The harbour opens at six" (id team-{conversation}, 2026-' in told
    assert f"\nMemory of ann@laptop, in {PROJECT}/src: Not at seven" in told
    assert f"\nUser of ann@laptop, in {PROJECT}/src: plan the harbour" in told
    read = call(backend, "read_session", {"name": f"team-{conversation}", "lines": 1}).text
    assert read.startswith(
        f'"ann@laptop: plan the harbour" (id team-{conversation}): the last 1 of its messages.'
    )
    assert "For earlier messages: read_session with skip=1." in read
    assert "All right." in read
    assert (
        "plan the harbour"
        in call(backend, "read_session", {"name": f"team-{conversation}", "skip": 1}).text
    )
    assert (
        "another machine: search_team finds"
        in call(backend, "read_session", {"name": "ann@laptop"}).text
    )
    assert (
        "the team has no conversation team-7"
        in call(backend, "read_session", {"name": "team-7"}).text
    )
    assert (
        "Nothing was found"
        in call(backend, "search_team", {"query": "harbour", "project": "elsewhere"}).text
    )
    assert "team" not in HomeBackend(None, machine("alone").environment).audiences
    refused = bob.run("memories", "forget", found["id"], "--team")
    assert refused.returncode == 2
    assert "on the machine that it comes from" in refused.stderr


def test_doubts_edits_and_forgetting_reach_the_team_and_a_lost_folder_does_not(machine, team):
    ann = machine("laptop")
    ann.says("plan", "plan the harbour")
    ann.joins(team, "ann", SHARED)
    (ann.clone / "tide.py").write_text("high = 6\n")
    page = remember(ann, "The tide stands in `tide.py`", "plan")
    remember(ann, "The harbour opens at six", "plan")
    assert ann.result("team", "push")["memories"]["pushed"] == 2
    assert team.rows("SELECT doubts FROM memory ORDER BY title")[1] == (
        ["1 file it names changed since"],
    )
    page.write_text(page.read_text().replace("opens at six", "opens at eight"))
    os.utime(page, ns=(0, 0))
    assert ann.result("team", "push")["memories"]["pushed"] == 1
    [(title, id)] = team.rows("SELECT title, id FROM memory WHERE title LIKE '%%harbour%%'")
    assert title == "The harbour opens at eight"
    assert ann.run("memories", "forget", id).returncode == 0
    assert [title for _, title, *_ in shared(team)] == ["The tide stands in `tide.py`"]
    assert team.rows("SELECT term FROM memory_posting WHERE term = 'eight'") == []
    subprocess.run(["rm", "-r", str(page.parent), str(ann.database.parent)], check=True)
    assert ann.result("team", "push")["memories"]["withdrawn"] == 0
    assert len(shared(team)) == 1
    ann.result("team", "leave", "--purge")
    assert team.rows("SELECT number FROM memory UNION ALL SELECT memory FROM memory_posting") == []


def test_who_is_removed_with_all_that_they_shared_leaves_no_memories(
    machine, team, postgres: PostgresServer
):
    ann, admin = machine("laptop"), machine("admin")
    ann.says("plan", "plan the harbour")
    ann.joins(team, "ann", SHARED)
    remember(ann, "The harbour opens at six", "plan")
    ann.run("team", "push")
    try:
        assert admin.result("team", "remove", team.typed_url(), "ann", "--purge")["deleted"] == 1
        assert (
            team.rows("SELECT number FROM memory UNION ALL SELECT memory FROM memory_posting") == []
        )
    finally:
        admin.run("team", "init", team.typed_url(), "--member", "ann")


def test_what_a_person_notes_is_not_pushed(machine, team):
    ann = machine("laptop")
    ann.joins(team, "ann", SHARED)
    ann.says("plan", "plan the harbour")
    assert ann.run("remember", "We moor at the north pier", cwd=ann.clone).returncode == 0
    assert ann.run("team", "push").returncode == 0
    assert shared(team) == []
