"""Processes of runtimes for tests: real ones that do nothing, and the note of each."""

from __future__ import annotations

from bench.open_sessions import noted_process as noted_process
