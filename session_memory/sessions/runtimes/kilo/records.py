"""Decodes the lines of mirrors of Kilo's sessions."""

from __future__ import annotations

from ..opencode.records import OpenCodeRecords


class KiloRecords(OpenCodeRecords):
    """The records of OpenCode, after a first one with Kilo's name."""

    HEADER = "kilo_session"

    def recognises(self, line: bytes) -> bool:
        return line.startswith(self._first)  # its other lines are OpenCode's
