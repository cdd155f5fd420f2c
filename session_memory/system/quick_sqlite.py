"""SQLite through CPython's C module, without the `sqlite3` package, for a prompt that reads another program's database.

`import sqlite3` costs 0.7 of an interpreter start, `_sqlite3` alone nearly as much, since it imports functools for the
one cache of statements that we need none of: without that it is 0.1. `_sqlite3` is private; where it is missing or
differs, `sqlite3` itself serves.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection, Error
    from typing import Any

    connect: Callable[..., Connection]

__all__ = ["Error", "connect"]


class _NoCache:
    """What the C module takes from functools: every statement is compiled as it is run."""

    @staticmethod
    def lru_cache(size: int) -> Callable[[Any], Any]:
        """A decorator that changes nothing."""
        return lambda function: function


def _c_module() -> Any:
    if "functools" in sys.modules:
        return __import__("_sqlite3")
    sys.modules["functools"] = _NoCache  # type: ignore[assignment]
    try:
        return __import__("_sqlite3")
    finally:
        del sys.modules["functools"]


if not TYPE_CHECKING:
    try:
        _module = _c_module()
        connect, Error = _module.connect, _module.Error
        connect(":memory:").close()
    except Exception:  # whatever another version of Python has in its place
        from sqlite3 import Error, connect
