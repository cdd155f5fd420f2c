"""Decodes the lines of mirrors of Cline's sessions (see mirrors.py): steps of a trajectory."""

from __future__ import annotations

from ..atif import records as atif

SESSION = "cline_session"


class ClineRecords(atif.HeadedRecords):
    """The first line names the session; all others belong to a trajectory."""

    HEADER = SESSION
