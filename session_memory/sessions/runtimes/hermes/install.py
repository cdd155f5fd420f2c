"""The install for Hermes: none yet."""

from __future__ import annotations

from ..install import Install


class HermesInstall(Install):
    HOME_FOLDER = ".hermes"
    CLEAR = "/new"
    RENAME = "/title {name}"
    RESUME = "hermes --resume {id}"
