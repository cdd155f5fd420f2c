"""`session-memory uninstall`: see `install.command`, which also serves install.py."""

from __future__ import annotations

from ..install.command import UNINSTALL_SUMMARY as SUMMARY
from ..install.command import add_uninstall_arguments as add_arguments
from ..install.command import run_uninstall as run

__all__ = ["SUMMARY", "add_arguments", "run"]
