"""The install for ATIF: there is none.

An agent that writes ATIF has its own hooks and settings."""

from __future__ import annotations

from ..install import Install


class AtifInstall(Install):
    HOME_FOLDER = ".atif"
    RESUME = "session-memory handoff {id}"
