"""What may stand where a file belongs, and is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_loop(path: Path) -> None:
    path.symlink_to(path)


NO_FILES: dict[str, Callable[[Path], None]] = {
    made.__name__: made for made in (fifo, directory, zeros, link_loop)
}
