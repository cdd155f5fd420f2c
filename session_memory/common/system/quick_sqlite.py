"""SQLite through CPython's C module, without the `sqlite3` package.

It is for a prompt that reads another program's database. `import sqlite3` takes 0.7 of an
interpreter start. `_sqlite3` alone takes nearly as much, because it imports functools for its
statement cache; with our own cache it takes 0.1. News in 50 sessions of seven runtimes
(`many-new-50`) take 2.52 x a bare start with it, 3.06 x without. `_sqlite3` is private; if it is
missing or differs, `sqlite3` is used.
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


class _Statements:
    """Replaces functools for the C module.

    Without a cache of statements, compiling them takes 3 of the 11 ms for reading 116 messages of
    OpenCode."""

    @staticmethod
    def lru_cache(size: int) -> Callable[[Callable[[str], Any]], Callable[[str], Any]]:
        """Return a decorator that caches every compiled statement, since there are only a few."""

        def kept(compile: Callable[[str], Any]) -> Callable[[str], Any]:
            known: dict[str, Any] = {}

            def compiled(statement: str) -> Any:
                if statement not in known:
                    known[statement] = compile(statement)
                return known[statement]

            return compiled

        return kept


def _c_module() -> Any:
    if "functools" in sys.modules:
        return __import__("_sqlite3")
    sys.modules["functools"] = _Statements  # type: ignore[assignment]
    try:
        return __import__("_sqlite3")
    finally:
        del sys.modules["functools"]


if not TYPE_CHECKING:
    try:
        _module = _c_module()
        connect, Error = _module.connect, _module.Error
        connect(":memory:").close()
    except Exception:  # the equivalents in another version of Python
        try:
            from sqlite3 import Error, connect
        except ImportError:  # a Python that was built without it

            class Error(Exception):
                pass

            def connect(*_, **__):
                raise Error("this Python has no sqlite3")
