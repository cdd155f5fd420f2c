"""The team's tools for the groups of a host: each agent finds only its group on other machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from host_scene import Box, GroupDir, ingested, three_groups
from store_scene import Scene, put, said, state
from team_scene import Team, memory

from session_memory.app.tools.call import call
from session_memory.app.tools.definitions import tools_for
from session_memory.extras.host._ipc import write_snapshots
from session_memory.extras.host.group_backend import GroupBackend
from session_memory.extras.host.request_files import RequestFiles
from session_memory.extras.team.postgres.memories import push_memories
from session_memory.extras.team.postgres.push import TeamPush
from session_memory.memory.shared_store import SharedPool
from session_memory.sessions.settings.registry import register_host


@pytest.fixture
def host(tmp_path: Path, team: Team, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupDir]:
    """A host of bob's, who reads what groups with the same names said on ann's, and what she said herself."""
    ann = Scene(tmp_path / "ann")
    for home in ("family", "work", ""):
        put(
            ann,
            None,
            state(f"of-{home}", home),
            said(f"the harbour of {home or 'ann'}", key=home or "ann"),
        )
    team.push(ann)
    known = [
        memory(f"The quay of {home or 'ann'}", f"id-{home}", home=home)
        for home in ("family", "work", "")
    ]
    with closing(TeamPush(team.url(), "laptop")) as pushing:
        push_memories(pushing, known, ())
    monkeypatch.setenv("HOME", str(tmp_path))
    with three_groups(tmp_path / "host") as host:
        register_host(str(host.root), os.environ)
        ingested(host)
        config = host.root / ".session-memory" / "config.yaml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(f"team:\n  url: '{team.typed_url('bob')}'\n  machine: desk\n")
        yield host


@pytest.fixture
def backend(host: GroupDir, teams: SharedPool) -> Callable[[str], GroupBackend]:
    def backend(group: str) -> GroupBackend:
        administration = host.backend(group).administration
        return GroupBackend(
            host.layout, group, host.sessions, administration=administration, pool=teams
        )

    return backend


@pytest.mark.parametrize(
    ("group", "expected"),
    [("family", ["family"]), ("work", ["work"]), ("main", ["family", "work"])],
)
def test_a_group_finds_what_its_namesakes_have_and_main_what_those_of_all_its_groups_have(
    backend: Callable[[str], GroupBackend], group: str, expected: list[str]
) -> None:
    asked = backend(group)
    told = (
        call(asked, "search_team", {"query": "harbour"}).text
        + call(asked, "search_team", {"query": "quay"}).text
    )
    for what in ("harbour", "quay"):
        assert [
            home
            for home in ("family", "work", "ann")
            if f"The {what} of {home}".lower() in told.lower()
        ] == expected


def test_a_conversation_of_another_group_is_none_that_can_be_read(
    backend: Callable[[str], GroupBackend], team: Team
) -> None:
    [(family,), (work,)] = team.rows(
        "SELECT c.session << 32 | c.first_number FROM conversation AS c JOIN session AS s ON s.id = c.session "
        "WHERE s.home != '' ORDER BY s.home"
    )
    asked = backend("family")
    assert "the harbour of family" in call(asked, "read_session", {"name": f"team-{family}"}).text
    refused = call(asked, "read_session", {"name": f"team-{work}"})
    assert (refused.is_error, f"the team has no conversation team-{work}" in refused.text) == (
        True,
        True,
    )


def test_an_agent_without_a_database_asks_the_team_by_its_request_files(
    host: GroupDir, backend: Callable[[str], GroupBackend]
) -> None:
    box, asked = Box(host, "family"), backend("family")
    files = RequestFiles(str(box.path))
    write_snapshots(host.layout, "family", host.sessions)
    assert "search_team" not in {tool.name for tool in files.served().tools}
    write_snapshots(host.layout, "family", host.sessions, audiences=asked.audiences)
    assert {tool.name for tool in files.served().tools} == {tool.name for tool in tools_for(asked)}
    box.ask("r1", "search_team", query="harbour")
    assert box.answer(asked) == 1
    assert "the harbour of family" in box.response("r1")["text"]
