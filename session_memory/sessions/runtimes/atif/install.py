"""The install for ATIF: there is none, since an agent that writes it has hooks and settings of its
own."""

from __future__ import annotations

from ..install import Install


class AtifInstall(Install):
    HOME_FOLDER = ".atif"
    RESUME = "session-memory handoff {id}"
