"""The install into omp: its extension, skills and servers, and the commands that its user types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..pi.install import PiInstall


class OmpInstall(PiInstall):
    """Our hooks come as Pi's extension, which is told that it runs in omp."""

    HOME_FOLDER = ".omp"
    SERVER_DEFAULTS: Mapping[str, Any] = {}
    HAS_BOM = False
    COMMAND = "omp"
    RENAME, CLEAR, RESUME = "/rename {name}", "/new", "omp --resume {id}"
    START = "omp {prompt}"

    def plugins_named(self, settings_dir: str, plugin: str) -> list[str]:
        return []
