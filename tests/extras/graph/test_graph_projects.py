"""The groups of projects in a graph: the real library and the real Kuzu, with a fake model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fakes.fake_openai import FakeOpenAI
from git_scene import git, repository
from graph_scene import Machine

from session_memory.app.projects import project_directories, read_project
from session_memory.extras.graph._groups import ProjectGroups, group_of, project_root
from session_memory.sessions.settings.homes import person_home
from session_memory.sessions.transcripts.earlier_paths import note_repositories

pytestmark = pytest.mark.skipif(
    not (find_spec("graphiti_core") and find_spec("kuzu")),
    reason="graphiti-core and kuzu, which the extra [graphiti] installs, are not there",
)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, server: FakeOpenAI) -> tuple[Path, Path, int]:
    """A directory with a graph of a repository, its worktree, and a directory beside it; a copy of
    it, and the time there."""
    root = tmp_path_factory.mktemp("projects") / "scene"
    root.mkdir()
    shop = repository(root / "shop")
    git(shop, "worktree", "add", "-q", "../shop-fix")
    (root / "billing").mkdir()
    with closing(Machine(root, server, has_graph=True)) as machine:
        add = machine.stored.add
        add("Shop uses Postgres.", "> Noted.", name="one", cwd=str(shop))
        add("Shop likes Tea.", "> Noted.", name="two", cwd=str(root / "shop-fix"))
        add("Billing uses Redis.", "> Noted.", name="three", cwd=str(root / "billing"))
        machine.run()
    return root, Path(shutil.copytree(root, root.with_name("kept"))), machine.stored.now


@pytest.fixture
def machine(scene: tuple[Path, Path, int], server: FakeOpenAI) -> Iterator[Machine]:
    """The scene as it was made, at the same path for each test."""
    root, kept, now = scene
    shutil.rmtree(root)
    shutil.copytree(kept, root)
    server.reset()
    with closing(Machine(root, server)) as machine:
        machine.stored.now = now
        yield machine


def facts_of(machine: Machine, path: Path, words: str = "Shop Billing uses likes") -> list[str]:
    """Return the facts of the project at a path."""
    home = person_home({"HOME": str(machine.root)})
    project = read_project(str(path), {})
    wanted = ProjectGroups(project, project_directories(project, home))
    found = machine.in_graph("", lambda graph: graph.search(words, 10, wanted))
    return sorted(fact.fact for fact in found)


def groups(machine: Machine, pattern: str) -> set[str]:
    """Return the groups of what a pattern matches as `x`."""
    query = f"MATCH {pattern} RETURN DISTINCT x.group_id AS id"

    async def asked(graph: Any) -> Any:
        return (await graph.client.driver.execute_query(query))[0]

    return {row["id"] for row in machine.in_graph("", asked)}


OF_SHOP, OF_BILLING = ["Shop likes Tea", "Shop uses Postgres"], ["Billing uses Redis"]
EPISODES, FACTS, THINGS = "(x:Episodic)", "(x:RelatesToNode_)", "(x:Entity)"


def test_a_search_finds_a_project_s_facts_only(machine: Machine) -> None:
    assert facts_of(machine, machine.root / "shop") == OF_SHOP
    assert facts_of(machine, machine.root / "shop-fix") == OF_SHOP
    assert facts_of(machine, machine.root / "billing") == OF_BILLING
    assert facts_of(machine, machine.root / "other") == []
    assert sorted(machine.facts("Shop Billing uses likes")) == [*OF_BILLING, *OF_SHOP]
    assert len(groups(machine, EPISODES)) == 2


@pytest.mark.parametrize(
    "left", [(EPISODES, FACTS, THINGS), (EPISODES, THINGS), (EPISODES,)], ids=len
)
def test_an_earlier_graph_is_divided_though_the_first_time_was_interrupted(
    machine: Machine, left: tuple[str, ...]
) -> None:
    """The division moves facts, things and episodes in this order."""

    async def undivided(graph: Any) -> None:
        for pattern in left:
            await graph.client.driver.execute_query(f"MATCH {pattern} SET x.group_id = 'main'")

    before = {pattern: groups(machine, pattern) for pattern in (EPISODES, FACTS, THINGS)}
    machine.in_graph("", undivided)
    assert facts_of(machine, machine.root / "shop") == OF_SHOP
    assert facts_of(machine, machine.root / "billing") == OF_BILLING
    assert {pattern: groups(machine, pattern) for pattern in before} == before
    assert machine.episodes() == ["session-one-0-0", "session-three-0-0", "session-two-0-0"]


def test_a_session_is_forgotten_in_its_project_s_group(machine: Machine) -> None:
    now = machine.stored.now
    assert machine.in_graph("", lambda graph: graph.forget("one", now)) == 1
    assert facts_of(machine, machine.root / "shop") == ["Shop likes Tea"]


@pytest.mark.parametrize("is_clone", [False, True], ids=["moved", "cloned"])
def test_a_repository_that_moved_or_was_cloned_again_keeps_its_group(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, is_clone: bool
) -> None:
    monkeypatch.setenv("HOME", str(machine.root))
    home = person_home({"HOME": str(machine.root)})
    shop, new = machine.root / "shop", machine.root / "shop-2"
    git(shop, "remote", "add", "origin", "https://git.example/acme/shop.git")
    note_repositories(home.repositories_file, [str(shop)], str(machine.root))
    before = groups(machine, EPISODES)
    if is_clone:
        git(machine.root, "clone", "-q", str(shop), str(new))
        git(new, "remote", "set-url", "origin", "https://git.example/acme/shop.git")
        shutil.rmtree(shop)
    else:
        shop.rename(new)
    machine.stored.add("Shop owns Ships.", "> Noted.", name="four", cwd=str(new))
    machine.run()
    assert groups(machine, EPISODES) == before
    assert {"Shop owns Ships", "Shop uses Postgres"} <= {
        fact
        for fact in [
            *facts_of(machine, new, "Shop owns Ships"),
            *facts_of(machine, new, "Shop uses Postgres"),
        ]
    }


def test_the_group_of_a_project_is_that_of_its_main_worktree(tmp_path: Path) -> None:
    shop = repository(tmp_path / "my shop.git")
    git(shop, "worktree", "add", "-q", "../fix")
    (shop / "src").mkdir()
    roots = {project_root(str(path)) for path in (shop, shop / "src", tmp_path / "fix")}
    assert roots == {str(shop)}
    assert group_of("main", str(shop)).startswith("main__my-shop-git-")
    assert project_root("") == ""
    assert group_of("main", "") == "main"
