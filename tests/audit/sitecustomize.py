"""Makes any direct opening of a SQLite file fail, because its close would drop a connection's
locks.

The tests import this, and so does each Python that has this directory on its PYTHONPATH.
"""

from __future__ import annotations

import os
import sys

_ENDINGS = (".db", ".db-wal", ".db-shm", ".db-journal")
opened: list[str] = []  # by the program, in this process


def _refuse(event: str, values: tuple[object, ...]) -> None:
    if event != "open" or not isinstance(values[0], str) or not values[0].endswith(_ENDINGS):
        return
    flags = values[2] if isinstance(values[2], int) else 0
    frame = sys._getframe(1)
    while frame and "/session_memory/" not in frame.f_code.co_filename:
        frame = frame.f_back  # type: ignore[assignment]
    if frame and not flags & os.O_EXCL:
        opened.append(values[0])
        text = f"{frame.f_code.co_filename}:{frame.f_lineno} opens the database {values[0]}"
        os.write(2, f"{text}\n".encode())
        raise AssertionError(text)


sys.addaudithook(_refuse)
