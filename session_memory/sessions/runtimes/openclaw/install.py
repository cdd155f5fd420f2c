"""The install for OpenClaw: there is none.

A plugin needs entries in OpenClaw's settings and the user's consent for conversations."""

from __future__ import annotations

from ..install import Install


class OpenClawInstall(Install):
    HOME_FOLDER = ".openclaw"
    CLEAR = "/new"
    RENAME = "/name {name}"
    RESUME = "openclaw agent --local --message 'Go on.' --session-id {id}"
