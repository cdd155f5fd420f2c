"""Kilo."""

from __future__ import annotations

from ..opencode import OpenCode


class Kilo(OpenCode):
    """Kilo, a fork of OpenCode: the same database and plugins, in places of its own."""

    name = "kilo"
    TITLE = "Kilo"
    USUAL_DIR = ".local/share/kilo"
    SOURCE = "kilo.db"
    SESSIONS_FOLDER = "kilo-sessions"
    PROGRAM = "kilo"
    PACKAGE = "@kilocode/cli"
    SERVERS = ("serve", "acp", "daemon", "remote", "console")
    OWN_ID_VARIABLE = "KILO_SESSION_ID"
    AGENT_VARIABLE = "KILO_PID"
    PARTS = ("records", "install")


RUNTIME = Kilo()
