"""The install for Cline: none, because its prompt hook does not run."""

from __future__ import annotations

from ..install import Install


class ClineInstall(Install):
    HOME_FOLDER = ".cline"
    CLEAR = "/clear"
    RESUME = "cline -i --id {id}"
