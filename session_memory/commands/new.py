"""`session-memory new`: see `install.command`, which also serves install.py."""

from __future__ import annotations

from ..install.command import NEW_SUMMARY as SUMMARY
from ..install.command import add_new_arguments as add_arguments
from ..install.command import run_new as run

__all__ = ["SUMMARY", "add_arguments", "run"]
