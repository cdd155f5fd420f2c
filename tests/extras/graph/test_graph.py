"""The strategy by Graphiti: the real library and the real Kuzu, with a fake model behind its own
clients."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fakes.fake_openai import DIMENSIONS, FakeOpenAI
from graph_scene import Machine

from session_memory.common.errors import ConfigError
from session_memory.extras.graph import command as graph_command
from session_memory.extras.graph import strategy as graph
from session_memory.extras.graph._database import checked_url, graph_name_of
from session_memory.extras.graph.graphs import _forget_in_graph
from session_memory.history.store.location import find_location
from session_memory.memory.strategy import StrategyError, UnavailableError

pytestmark = pytest.mark.skipif(
    not (find_spec("graphiti_core") and find_spec("kuzu")),
    reason="graphiti-core and kuzu, which the extra [graphiti] installs, are not there",
)

HANG_SECONDS = 60.0
TALK = ("Ada uses Redis for sessions.", "> Noted.", "Bob likes Tea with milk.", "> Good to know.")


@pytest.fixture(scope="module")
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as server:
        yield server


@pytest.fixture
def api(server: FakeOpenAI) -> FakeOpenAI:
    server.reset()
    return server


@pytest.fixture
def machine(tmp_path: Path, api: FakeOpenAI) -> Iterator[Machine]:
    with closing(Machine(tmp_path, api, has_graph=True)) as machine:
        yield machine


@pytest.fixture
def bare(tmp_path: Path, api: FakeOpenAI) -> Iterator[Machine]:
    """A machine without a graph yet."""
    with closing(Machine(tmp_path, api)) as machine:
        yield machine


class TestEpisodes:
    def test_every_exchange_becomes_an_episode_that_is_searchable_in_its_group_alone(
        self, bare: Machine, api: FakeOpenAI
    ) -> None:
        """The graphs are for this user alone and lie beside the store; what the API reports is what
        is counted."""
        machine = bare
        machine.stored.add(*TALK, name="one", home="work")
        machine.stored.add("Cleo owns Shop now.", "> I see.", name="two", home="family.home")
        assert [done.status for done in machine.run()] == ["archived", "archived"]
        directory = machine.root / "strategies" / "graphiti"
        assert {path.name for path in directory.glob("*.kuzu")} == {
            "work.kuzu",
            "family_2e_home.kuzu",
        }
        assert directory.stat().st_mode & 0o777 == 0o700
        inputs = [request.body["input"] for request in api.requests if request.kind == "embedding"]
        embedded = sum(len(one) if isinstance(one, list) else 1 for one in inputs)
        asked = len(api.kinds()) - len(inputs)
        assert asked >= 2
        assert machine.work.accounts.of_day(machine.stored.now) == asked * 120 + embedded * 5
        assert machine.episodes("work") == ["session-one-0-0", "session-one-2-0"]
        assert machine.episodes("family.home") == ["session-two-0-0"]
        assert machine.facts("Who uses Redis?", "work")[0] == "Ada uses Redis"
        assert machine.facts("Who uses Redis?", "family.home") == []
        assert machine.facts("Who owns the Shop?", "family.home") == ["Cleo owns Shop"]
        assert "Cleo owns Shop" not in machine.facts("Cleo owns Shop", "work")
        [group] = {fact.graph for fact in machine.search("Ada", "work")}
        assert group.startswith("work__agent-")

    @pytest.mark.slow
    def test_what_untrusted_sessions_say_has_a_graph_of_its_own(self, machine: Machine) -> None:
        machine.stored.add(*TALK[:2], name="one")
        machine.stored.add("Eve owns Shop.", "> I see.", name="stranger")
        machine.run()
        assert machine.episodes() == ["session-one-0-0"]
        names = sorted(path.name for path in (machine.root / "strategies/graphiti").glob("*.kuzu"))
        assert names == ["main.kuzu", "main_untrusted.kuzu"]

    def test_what_came_later_is_added_and_nothing_twice(self, machine: Machine) -> None:
        machine.stored.add(*TALK[:2], name="one")
        machine.run()
        machine.stored.add(*TALK[2:], name="one", at=machine.stored.now - 7_200_000 + 120_000)
        assert [done.status for done in machine.run()] == ["archived"]
        assert machine.episodes() == ["session-one-0-0", "session-one-2-0"]


class TestFailures:
    @pytest.mark.slow
    def test_it_goes_on_at_the_exchange_where_it_stopped(
        self, machine: Machine, api: FakeOpenAI
    ) -> None:
        id = machine.stored.add(*TALK, name="one")
        machine.run()  # how many requests the first exchange takes is graphiti's affair
        first = api.kinds().index("ExtractedEntities", 1)
        completions = len([kind for kind in api.kinds()[:first] if kind != "embedding"])
        machine.stored.add(*TALK, name="again")
        api.reset()
        asked: list[int] = []
        api.failures = _Failing(completions, 500, asked)  # type: ignore[assignment]
        assert [done.status for done in machine.run()] == ["waiting"]
        assert machine.episodes() == ["session-again-0-0", "session-one-0-0", "session-one-2-0"]
        api.reset()
        machine.stored.now += 3_600_000
        assert [done.status for done in machine.run()] == ["archived"]
        assert "Ada uses Redis" not in _messages(api)
        assert len(machine.episodes()) == 4
        assert machine.stored.status(id)[0] == "archived"

    def test_a_crash_while_an_episode_is_written_leaves_nothing_of_it(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from graphiti_core.utils import bulk_utils

        machine.stored.add(*TALK[:2], name="one")
        with monkeypatch.context() as patch:
            patch.setattr(
                bulk_utils, "get_entity_edge_save_bulk_query", lambda provider: "made-up crash"
            )
            assert [done.status for done in machine.run()] == ["waiting"]
        assert machine.episodes() == []
        machine.stored.now += 3_600_000
        assert [done.status for done in machine.run()] == ["archived"]
        assert machine.facts("Ada") == ["Ada uses Redis"]

    def test_a_crash_while_a_graph_is_made_leaves_none_that_cannot_be_used(
        self, bare: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from graphiti_core import graph_queries

        machine = bare
        machine.stored.add(*TALK[:2], name="one")
        whole = graph_queries.get_fulltext_indices
        with monkeypatch.context() as patch:
            patch.setattr(
                graph_queries,
                "get_fulltext_indices",
                lambda provider: [whole(provider)[0], "made-up crash"],
            )
            assert [done.status for done in machine.run()] == ["stopped"]
        assert [
            path.name for path in (machine.root / "strategies/graphiti").glob("main.kuzu*[!k]")
        ] == ["main.kuzu.new"]
        assert [done.status for done in machine.run()] == ["archived"]
        assert machine.facts("Ada") == ["Ada uses Redis"]

    def test_a_query_that_fails_beside_others_ends_nothing_but_this_attempt(
        self, machine: Machine
    ) -> None:
        machine.stored.add(*TALK[:2], name="one")
        machine.run()
        drop = "CALL DROP_FTS_INDEX('RelatesToNode_', 'edge_name_and_fact')"
        machine.in_graph("", lambda opened: opened.client.driver.execute_query(drop))
        machine.stored.add(*TALK, "Cleo uses Redis and Dan uses Redis. Ada likes Tea.", name="two")
        assert [done.status for done in machine.run()] == ["waiting"]
        assert machine.episodes() == ["session-one-0-0"]

    def test_what_may_go_right_another_time_is_tried_again_later(
        self, machine: Machine, api: FakeOpenAI
    ) -> None:
        machine.stored.add(*TALK[:2], name="one")
        for failure in (429, 500, "no JSON", '{"nonsense": 1}', ""):
            api.failures = [failure]
            started = time.monotonic()
            assert [done.status for done in machine.run()] == ["waiting"], failure
            assert time.monotonic() - started < 30
            machine.stored.now += 24 * 3_600_000
        assert [done.status for done in machine.run()] == ["archived"]
        assert machine.episodes() == ["session-one-0-0"]

    def test_a_hang_is_cut_by_the_deadline(self, machine: Machine, api: FakeOpenAI) -> None:
        machine.stored.add(*TALK[:2])
        api.failures = [HANG_SECONDS]
        started = time.monotonic()
        (done,) = machine.run(timeout_seconds=1)
        assert time.monotonic() - started < HANG_SECONDS / 2
        assert (done.status, "timed out after 1 s" in done.reason or "Timeout" in done.reason) == (
            "waiting",
            True,
        )

    def test_a_key_that_is_refused_stops_the_strategy(
        self, machine: Machine, api: FakeOpenAI
    ) -> None:
        id = machine.stored.add(*TALK[:2])
        api.failures = [401]
        assert [done.status for done in machine.run()] == ["stopped"]
        assert machine.stored.status(id)[0] == "ready"

    def test_the_budget_is_a_hard_stop_at_every_request(
        self, machine: Machine, api: FakeOpenAI
    ) -> None:
        id = machine.stored.add(*TALK, name="one")
        machine.limits = (10**6, 26_000)
        queue, strategy = machine.queue(max_output_tokens=25_000)
        (done,) = queue.work_off([strategy], ("graphiti",))
        assert (done.status, machine.stored.status(id)[0]) == ("skipped", "skipped")
        assert "budget" in done.reason
        assert len(api.requests) <= 1

    def test_a_graph_that_another_process_has_open_is_waited_for(self, machine: Machine) -> None:
        machine.stored.add(*TALK[:2], name="one")
        machine.run()
        code = "import kuzu, sys; db = kuzu.Database(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
        holder = subprocess.Popen(
            [sys.executable, "-c", code, str(machine.root / "strategies/graphiti/main.kuzu")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            machine.stored.add(*TALK[2:], name="two")
            (done,) = machine.run()
            assert (done.status, "another process has the graph open" in done.reason) == (
                "waiting",
                True,
            )
        finally:
            holder.communicate()
        machine.stored.now += 3_600_000
        assert [done.status for done in machine.run()] == ["archived"]
        assert len(machine.episodes()) == 2


class TestCommand:
    @pytest.fixture(autouse=True)
    def config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: FakeOpenAI) -> Path:
        """The settings of a person who has the machine's graph."""
        for name in ("SESSION_MEMORY_HOME", "CLAUDE_CONFIG_DIR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        config = tmp_path / ".session-memory" / "config.yaml"
        config.parent.mkdir()
        config.write_text(
            f"memories:\n  graphiti:\n    base_url: {api.url}\n    dimensions: {DIMENSIONS}\n"
            f"    url: kuzu://{tmp_path}/strategies/graphiti\n"
        )
        return config

    def test_the_graph_is_searched_for_whoever_asks(
        self, bare: Machine, capsys: pytest.CaptureFixture[str]
    ) -> None:
        machine = bare
        assert self.run("search", "Who uses Redis?") == 1
        assert capsys.readouterr().err.splitlines() == [
            "session-memory: there is no knowledge graph yet: `session-memory process` makes one "
            "from conversations that have ended",
            "  session-memory config memories.strategies '[extractive, graphiti]'",
        ]
        machine.stored.add(*TALK)
        machine.run()
        assert self.run("search", "Who uses Redis?", "--untrusted") == 1
        assert "no knowledge graph of untrusted sessions yet" in capsys.readouterr().err
        assert self.run("search", "Redis?") == 1
        assert "nothing about Redis? in this project; --all" in capsys.readouterr().out
        assert self.run("search", "Who", "uses", "Redis?", "--all", "--limit", "1") == 0
        assert re.fullmatch(
            r"Ada uses Redis \(said in session-\d+, 2026-05-28\)\n", capsys.readouterr().out
        )
        self.run("search", "Redis", "--project", "agent", "--json")
        facts = json.loads(capsys.readouterr().out)["facts"]
        assert (facts[0]["fact"], facts[0]["name"]) == ("Ada uses Redis", "USES")
        assert facts[0]["graph"].startswith("main__agent-")

    def test_what_rules_exclude_is_not_found_and_what_is_forgotten_is_gone(
        self, machine: Machine, config: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        settings = config.read_text()
        machine.stored.add(*TALK[:2], name="one")
        machine.stored.add("Eve uses Redis too.", "> Noted.", name="two")
        machine.run()
        assert self.found(capsys) == ["Ada uses Redis", "Eve uses Redis"]
        config.write_text(settings + "sessions: {one: {text: false}}\n")
        assert self.found(capsys) == ["Eve uses Redis"]
        config.write_text(settings)
        location = find_location(None, {"HOME": str(machine.root)})
        assert _forget_in_graph(location, "", {"one": machine.stored.now}) == 1
        assert self.found(capsys) == ["Eve uses Redis"]
        assert len(machine.episodes()) == 1

    def found(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        self.run("search", "Redis", "--project", "agent", "--json")
        return sorted(fact["fact"] for fact in json.loads(capsys.readouterr().out)["facts"])

    @staticmethod
    def run(*words: str) -> int:
        parser = argparse.ArgumentParser()
        graph_command.add_arguments(parser)
        return graph_command.run(parser.parse_args(words))


class TestSettings:
    def test_what_is_not_as_documented_is_refused(self) -> None:
        for values in [
            7,
            {"modell": "x"},
            {"url": "http://x"},
            {"url": "kuzu://relative/path"},
            {"url": "neo4j://u:secret@h"},
            {"key_env": "sk-a-key"},
            {"dimensions": 1},
            {"timeout_seconds": True},
            {"base_url": "localhost"},
        ]:
            with pytest.raises(ConfigError):
                graph.settings_of(values)

    def test_a_url_names_the_graph(self) -> None:
        for url in [
            "kuzu:///var/graph",
            "neo4j://host:7687",
            "neo4j+s://me@host/db",
            "bolt://host",
            "falkor://host:6379",
        ]:
            assert checked_url(url) == url

    def test_groups_have_different_names_in_the_graph(self) -> None:
        names = ["", "a", "a.b", "a-b", "a_b", "a_2e_b", "a_untrusted"]
        ids = [graph_name_of(name, is_untrusted=flag) for name in names for flag in (False, True)]
        assert len(set(ids)) == len(ids)
        assert all(id.replace("-", "").replace("_", "").isalnum() for id in ids)

    def test_without_a_key_it_is_unavailable_and_says_which_is_missing(self) -> None:
        with pytest.raises(UnavailableError, match="OPENAI_API_KEY is not set"):
            graph._keys_of(graph.settings_of({}), {})
        assert graph._keys_of(graph.settings_of({"key_env": "MINE"}), {"MINE": "k"}) == ("k", "k")
        assert graph._keys_of(graph.settings_of({"base_url": "http://127.0.0.1"}), {}) == (
            "none",
            "none",
        )

    def test_without_graphiti_it_is_unavailable_and_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import importlib.util

        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(StrategyError) as raised:
            graph._require_graphiti()
        assert "--with graphiti" in raised.value.hint


class _Failing(list[Any]):
    """Lets `after` requests pass, then fails every one with `status`."""

    def __init__(self, after: int, status: int, asked: list[int]) -> None:
        super().__init__([status])
        self._left = after
        self._status = status

    def __bool__(self) -> bool:
        self._left -= 1
        return self._left < 0

    def pop(self, index: Any = 0) -> Any:
        return self._status


def _messages(api: FakeOpenAI) -> str:
    """What graphiti asked its model to extract from."""
    extracting = [
        request
        for request in api.requests
        if request.kind in ("ExtractedEntities", "ExtractedEdges")
    ]
    parts = [
        request.text.partition("CURRENT MESSAGE>")[2].partition("</CURRENT")[0]
        for request in extracting
    ]
    return "\n".join(parts)
