"""The team on the page: its sessions and memories, with who and where, from a real server."""

from __future__ import annotations

import re
import select
import socket
from contextlib import closing
from html import unescape
from pathlib import Path

from page_scene import ServedPage
from records import exchange
from store_scene import MONDAY, Scene, put, said, state
from team_scene import Member, Team, memory

from session_memory.extras.team.postgres.memories import push_memories
from session_memory.extras.team.postgres.push import TeamPush


def test_sessions_and_memories_of_the_team_are_found_with_who_and_where(
    tmp_path: Path, team: Team
) -> None:
    ann = Scene(tmp_path / "ann")
    put(ann, None, state("plan"), said("we plan the <b>harbour</b>", key="1"))
    team.push(ann)
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        push_memories(
            pushing,
            [memory("The harbour opens at six", "abcdefghij", doubts=("1 file changed",))],
            (),
        )
    bob = Member(tmp_path / "bob")
    bob.session("own", *exchange("of the harbour here", "Yes.", at=MONDAY))
    bob.joins(team, "bob")
    with ServedPage(bob) as page:
        own = page.view("/search?q=harbour").text
        assert "The team" in own
        assert "plan the" not in own
        found = page.view("/search?q=harbour&whose=team").text
        assert "ann@laptop" in found
        assert "of the <mark>harbour" not in found
        assert "&lt;b&gt;" in found
        [around] = re.findall(r'data-load="([^"]*whose=team)"', found)
        assert "we plan the" in page.ask(around.replace("&amp;", "&")).text
        remembered = page.view("/memories?whose=team").text
        assert "The harbour opens at six" in remembered
        assert "ann@laptop" in remembered
        assert "1 file changed" in remembered
        assert 'action="/memories/forget"' not in remembered
        assert "The harbour" not in page.view("/memories").text


def test_the_page_keeps_its_connection_and_leaves_a_server_alone_that_did_not_answer(
    tmp_path: Path, team: Team
) -> None:
    ann = Scene(tmp_path / "ann")
    put(ann, None, state("plan"), said("we plan the harbour", key="1"))
    team.push(ann)
    bob = Member(tmp_path / "bob")
    bob.session("own", *exchange("of the harbour here", "Yes.", at=MONDAY))
    bob.joins(team, "bob")
    connections = (
        "SELECT pid FROM pg_stat_activity WHERE usename = 'bob' AND pid != pg_backend_pid()"
    )
    with ServedPage(bob) as page:

        def found(view: str = "/search?q=harbour&whose=team") -> str:
            return page.view(view).text

        assert "ann@laptop" in found()
        [first] = team.rows(connections)
        assert "No memories yet" in found("/memories?whose=team")
        assert team.rows(connections) == [first]
        team.rows("SELECT pg_terminate_backend(%s, 5000)", *first)
        assert "ann@laptop" in found(), "as after a restart of the server"
        [second] = team.rows(connections)
        assert second != first
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        bob.run("config", "team.url", f"postgresql://bob@127.0.0.1:{port}/team")
        told = unescape(found())
        assert (
            f"The team's store cannot be reached now: 127.0.0.1:{port}/team: Connection refused"
            in told
        )
        assert "Nothing found" not in told
        with socket.create_server(("127.0.0.1", port)) as listening:
            assert re.search(
                r"the next attempt is in \d+ seconds?\.", found("/memories?whose=team")
            )
            assert select.select([listening], [], [], 0)[0] == [], "and it is not asked before"
        assert "of the <mark>harbour</mark> here" in found("/search?q=harbour")
