"""graphiti's driver for Kuzu, with groups, transactions, a safe close and indexes added.

Kuzu is no longer developed (graphiti warns about that), but works embedded and offline.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from typing import TYPE_CHECKING, Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from graphiti_core.driver.driver import GraphProvider
    from graphiti_core.driver.kuzu_driver import KuzuDriver, KuzuDriverSession

if TYPE_CHECKING:
    from graphiti_core.driver.driver import GraphDriver

_SUFFIXES = ("", ".wal", ".shadow", ".tmp")  # files that Kuzu keeps for one database


class _Session(KuzuDriverSession):
    """A session that writes an episode in one transaction."""

    async def execute_write(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        await self.driver.execute_query("BEGIN TRANSACTION")
        try:
            result = await func(self, *args, **kwargs)
            await self.driver.execute_query("COMMIT")
        except BaseException:
            await self.driver.execute_query("ROLLBACK")
            raise
        return result


class _Driver(KuzuDriver):
    """The database of one group.

    graphiti compares the group with `_database`, which its own driver lacks."""

    def __init__(self, path: str, name: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            super().__init__(path)
        self._database = name

    def clone(self, database: str) -> GraphDriver:
        return self

    def session(self, _database: str | None = None) -> _Session:
        return _Session(self)

    async def close(self) -> None:
        # After one of graphiti's parallel queries failed, others may still run; closing Kuzu then
        # crashes the process.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.to_thread(self.client.executor.shutdown, True)
        self.client.close()
        self.db.close()


async def open_kuzu(path: str, name: str) -> GraphDriver:
    """Open the database at `path`, creating it if missing.

    The caller holds its lock. Raises Kuzu's RuntimeError."""
    if not os.path.exists(path):
        await _make(path, name)
    return _Driver(path, name)


async def _make(path: str, name: str) -> None:
    """Create a database under a temporary name, and rename it when complete.

    An index that a killed process left unfinished can be neither used nor created again."""
    from graphiti_core.graph_queries import get_fulltext_indices

    unfinished = f"{path}.new"
    for suffix in _SUFFIXES:
        if os.path.exists(unfinished + suffix):
            os.unlink(unfinished + suffix)
    driver = _Driver(unfinished, name)
    try:
        for statement in get_fulltext_indices(GraphProvider.KUZU):
            await driver.execute_query(statement)
    finally:
        await driver.close()
    os.chmod(unfinished, 0o600)
    os.rename(unfinished, path)
