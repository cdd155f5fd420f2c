"""The package `outside_runtime`, which tests import from several folders in one process."""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "outside_runtime"


def forget_package() -> None:
    """Let the next import of the package read it again, as a new process would."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "anvil_runtime"]:
        del sys.modules[name]
