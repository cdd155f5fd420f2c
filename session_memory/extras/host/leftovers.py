"""The hosts that stay after an uninstall."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ...sessions.settings.registry import registered_hosts


def left_behind(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each registered host, in words, and how to remove it."""
    for host in registered_hosts(environ):
        groups = f"{host}/groups"
        if os.path.isdir(groups):
            number = len([entry for entry in os.scandir(groups) if entry.is_dir()])
            what = (
                f"the host {host}, with {number} group{'' if number == 1 else 's'} and "
                f"their sessions"
            )
            yield what, "stop it, then delete the directory"
