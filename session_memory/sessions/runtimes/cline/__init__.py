"""Cline."""

from __future__ import annotations

from ..atif import Atif


class Cline(Atif):
    """Cline's command line: each session is a JSON document that is rewritten as it grows.

    It is `sessions/<session>/<session>.messages.json`, with a sub-agent's document beside it. Its
    messages are mirrored as steps of a trajectory (see atif/ and mirrors.py). In 3.0.65,
    none of 8 prompts started the hook for prompts, so Cline gets no updates."""

    name = "cline"
    TITLE = "Cline"
    USUAL_DIR = ".cline/data"
    CONFIG_VARIABLE = "CLINE_DATA_DIR"
    SOURCE = "sessions"
    SESSIONS_FOLDER = "cline-sessions"
    PROGRAM = "cline"
    PACKAGE = "cline"
    SERVERS = ("--cline-hub-daemon",)
    CONTINUES = ()
    # Cline does not set it. If a person does, the commands of an agent know their session.
    OWN_ID_VARIABLE = "CLINE_SESSION_ID"
    AGENT_VARIABLE = "CLINE_NO_INTERACTIVE"


RUNTIME = Cline()
