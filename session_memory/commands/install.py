"""`session-memory install`: see `install.command`, which also serves install.py."""

from __future__ import annotations

from ..install.command import INSTALL_SUMMARY as SUMMARY
from ..install.command import add_install_arguments as add_arguments
from ..install.command import run_install as run

__all__ = ["SUMMARY", "add_arguments", "run"]
