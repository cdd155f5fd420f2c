"""Directories of the program that an install replaces while processes may still run from them."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from ...sessions.settings.program import is_in_use

HOOK_SECONDS = 60.0  # no hook runs longer; upkeep and commands lock their version


def replace_directory(built: Path, at: Path) -> None:
    """Point the link `at` to the directory `built` beside it, atomically.

    Readers find either version. The old directory stays for processes that still run from it. On
    Windows, where links need a privilege, `at` is a directory, and its replacement is not atomic.
    """
    if os.name == "nt":
        shutil.rmtree(at, ignore_errors=True)
        built.rename(at)
    else:
        if at.is_dir() and not at.is_symlink():  # a copy of a home directory that followed links
            at.rename(at.with_name(f"{at.name}-copied-{os.getpid()}"))
        link = at.with_name(at.name + ".new")
        link.unlink(missing_ok=True)
        link.symlink_to(built.name, target_is_directory=True)
        link.replace(at)


def remove_replaced(at: Path) -> None:
    """Remove former targets of the link `at` that no process uses, and targets never put in place.

    Nothing is removed while a hook may still run that started before the last change of the link.
    """
    if at.is_symlink() and 0 <= time.time() - at.lstat().st_mtime < HOOK_SECONDS:
        return
    current = os.readlink(at) if at.is_symlink() else ""
    for path in at.parent.glob(f"{at.name}-*"):
        if path.name != current and not is_in_use(str(path)):
            shutil.rmtree(path, ignore_errors=True)
