"""A knowledge graph, its store and queue, and a model of the fake server."""

from __future__ import annotations

import asyncio
import functools
import shutil
import ssl
import tempfile
from pathlib import Path
from typing import Any

from fakes.fake_openai import DIMENSIONS, FakeOpenAI
from stored import Stored

from session_memory.extras.graph import strategy as graph
from session_memory.extras.graph._database import graph_name_of, open_driver
from session_memory.extras.graph.strategy import GraphStrategy
from session_memory.extras.graph.values import GraphFact
from session_memory.history.store.sqlite.queue import StoredQueue
from session_memory.memory.queue import PartResult, Queue
from session_memory.memory.strategy import StrategyContext
from session_memory.memory.token_budget import TokenBudget

# Each client of a model makes one, which reads all certificates: 40 ms, and no test needs any.
ssl.create_default_context = functools.cache(ssl.create_default_context)  # type: ignore[assignment]


@functools.cache
def empty_graph() -> str:
    """A graph without anything in it: to make one takes ten times as long as to open it."""
    directory = tempfile.mkdtemp(prefix="session-memory-tests-graph-")

    async def made() -> None:
        graph._require_graphiti()
        await (await open_driver(f"kuzu://{directory}", "main", "")).close()  # type: ignore[no-untyped-call]

    asyncio.run(made())
    return f"{directory}/main.kuzu"


class Machine:
    """The store `database`, its queue, and a graph, which lies below `root`: it `has_graph` if that
    is made already."""

    def __init__(
        self,
        root: Path,
        api: FakeOpenAI,
        database: Path | None = None,
        has_graph: bool = False,
        **own: Any,
    ) -> None:
        self.root = root
        if has_graph:
            (root / "strategies" / "graphiti").mkdir(parents=True)
            shutil.copyfile(empty_graph(), root / "strategies" / "graphiti" / "main.kuzu")
        self.stored = Stored(database or root / "store" / "memory.db", least_messages=1)
        self.work = StoredQueue(self.stored.path)
        self.values = {"base_url": api.url, "model": "made-up", "dimensions": DIMENSIONS, **own}
        self.limits = (10**6, 10**6)

    def queue(self, **own: Any) -> tuple[Queue, GraphStrategy]:
        budget = TokenBudget(self.work.accounts, *self.limits, lambda: self.stored.now)
        strategy = GraphStrategy({"graphiti": {**self.values, **own}}, budget)
        strategy.attach(
            StrategyContext(
                str(self.root / "strategies"),
                lambda conversation, text, limit: [],
                lambda conversation: conversation.session_id == "stranger",
            )
        )
        keep = lambda conversation, entries, id, result: []  # noqa: E731
        return Queue(keep, budget, self.work, lambda: self.stored.now, attempts=9), strategy

    def run(self, **own: Any) -> list[PartResult]:
        queue, strategy = self.queue(**own)
        return list(queue.work_off([strategy], ("graphiti",)))

    def in_graph(self, group: str, ask: Any) -> Any:
        settings = graph.settings_of(self.values)
        url = graph.url_of(settings, str(self.root / "strategies"))

        async def asked() -> Any:
            budget = TokenBudget(self.work.accounts, *self.limits, lambda: self.stored.now)
            budget.open("search", 0, graph.Usage())
            async with graph.opened(settings, url, graph_name_of(group), budget) as opened:
                return await ask(opened)

        return asyncio.run(asked())

    def search(self, query: str, group: str = "") -> list[GraphFact]:
        found: list[GraphFact] = self.in_graph(group, lambda opened: opened.search(query, 10))
        return found

    def facts(self, query: str, group: str = "") -> list[str]:
        return [fact.fact for fact in self.search(query, group)]

    def episodes(self, group: str = "") -> list[str]:
        return sorted(
            one["name"] for one in self.in_graph(group, lambda opened: opened.episodes(""))
        )

    def close(self) -> None:
        self.work.close()
        self.stored.close()
